"""OpenRLHF's own RolloutRayActor and SamplesGenerator, on Ray, with a model in vLLM's CPU build, by the agent's file.

Takes 4 GB and some ten minutes to set up, so it is run where TEST_OPENRLHF_RAY says so.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.rl_client.doubling import ID
from tests.rl_client.trainers.openrlhf_python import ROOT, openrlhf_vllm_python

AGENT = ROOT / "rl_client" / "trainers" / "openrlhf_agent.py"
DRIVER = Path(__file__).with_name("openrlhf_ray.py")


@pytest.mark.jail
@pytest.mark.trainer
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not os.environ.get("TEST_OPENRLHF_RAY"), reason="TEST_OPENRLHF_RAY is not set: 4 GB, ten minutes")
def test_openrlhfs_own_rollouts_with_a_real_model(url: str) -> None:
    python = openrlhf_vllm_python()

    label = json.dumps({"problem": ID, "scale": "signed", "format_error": -2.0})
    environment = {
        "RKGRADE_URL": url, "RKGRADE_SETTING": "repair", "PYTHONPATH": str(ROOT), "VLLM_CPU_KVCACHE_SPACE": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0", "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1", "RAY_USAGE_STATS_ENABLED": "0",
    }  # fmt: skip
    done = subprocess.run(
        [str(python), str(DRIVER), str(AGENT), label],
        env={**os.environ, **environment}, capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-8000:] + done.stdout[-4000:]
    told = json.loads(next(line for line in reversed(done.stdout.splitlines()) if line.startswith("{")))
    assert (told["consumed"], len(told["samples"])) == (2, 4)
    for one in told["samples"]:
        # It writes no program, is told so, and writes none again.
        assert (one["reward"], one["score"], one["turns"]) == (-2.0, 0.0, 2)
        assert "No program was found in that answer." in one["heard"]
        assert (one["log_probs_of_what_was_said"], one["log_probs_elsewhere"]) == (True, True)
        assert one["logs"]["rkgrade_rewarded"] == one["logs"]["rkgrade_format_error"] == 1.0
    assert len({tuple(one["logs"]) for one in told["samples"]}) == 1
