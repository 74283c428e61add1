"""The contract as a whole: documented, and in need of pydantic alone."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import BaseModel

from service.contract import BatchRequest, CallProblem, GradeRequest, GradeResult, ProblemInfo, StdioProblem


@pytest.mark.parametrize("model", [StdioProblem, CallProblem, GradeRequest])
def test_the_examples_in_the_documentation_are_valid(model: type[BaseModel]) -> None:
    examples = model.model_json_schema()["examples"]

    assert examples
    for example in examples:
        model.model_validate(example)


@pytest.mark.parametrize("model", [BatchRequest, GradeResult, ProblemInfo])
def test_every_model_and_field_is_described(model: type[BaseModel]) -> None:
    schema = model.model_json_schema()
    objects = [schema, *(item for item in schema["$defs"].values() if item.get("type") == "object")]
    undescribed = [
        f"{item['title']}.{name}"
        for item in objects
        for name, field in item["properties"].items()
        if not field.get("description")
    ]

    assert all(item.get("description") for item in objects)
    assert undescribed == []


def test_contract_and_scoring_need_nothing_of_the_server() -> None:
    program = (
        "import sys; import service.contract, service.scoring, service.extraction\n"
        "server = {'fastapi', 'starlette', 'uvicorn', 'redis', 'rq', 'typer', 'fcntl', 'pydantic_settings'}\n"
        "print(sorted(server & set(sys.modules)))"
    )

    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert found.stdout == "[]\n"
