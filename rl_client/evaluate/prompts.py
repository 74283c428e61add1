"""What a model is asked: a template that is filled with a problem's statement. Pure.

A template is text in which `$statement`, `$starter` (code to be completed; empty where the answer is a program that
reads stdin) and `$language` stand for what they say; `$$` is a dollar sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import Template as _Template

from pydantic import BaseModel, ConfigDict

from rl_client.datasets.statements import Statement
from rl_client.evaluate.errors import BadTemplate
from rl_client.tools import ToolSpec

Messages = list[dict[str, str]]

_FIELDS = ("statement", "starter", "language")


class Template(BaseModel):
    """One template, checked. Raises BadTemplate where it is filled."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    program: str
    """For an answer that reads stdin."""
    completing: str
    """For an answer that completes code."""

    def filled(self, statement: Statement, language: str) -> str:
        """The prompt. `language`: of the answer, as the grader calls it. Raises BadTemplate."""
        text = self.completing if statement.starter else self.program
        try:
            return _Template(text).substitute(
                statement=statement.text.rstrip(),
                starter=statement.starter.rstrip(),
                language=_WORDS.get(language, language),
            )
        except (KeyError, ValueError) as error:
            name = (
                f"${error.args[0]} is none of"
                if isinstance(error, KeyError)
                else "a dollar sign is $$, and else one of"
            )
            raise BadTemplate(f"the template: {name} {', '.join(f'${one}' for one in _FIELDS)}") from None


def template_of(name: str, text: str | None = None) -> Template:
    """The template of that name, or what a file of that name holds. Raises BadTemplate."""
    if text is None:
        return TEMPLATES[name]
    template = Template(program=text, completing=text)
    for starter in ("", "starter"):
        template.filled(Statement("statement", starter), "python")
    if "statement" not in _Template(text).get_identifiers():
        raise BadTemplate(f"{name}: says nothing of the problem: $statement is not in it")
    return template


#: Languages whose ids are not their names; of others the id is told as it is.
_WORDS = {
    "python": "Python 3", "python-exec": "Python 3", "pypy": "Python 3 (PyPy)", "c": "C17", "cpp": "C++17",
    "cpp20": "C++20", "cpp23": "C++23", "java": "Java", "javascript": "JavaScript", "rust": "Rust", "go": "Go",
}  # fmt: skip

_ANSWER = "### Answer: (in one code block, as above)\n"

TEMPLATES = {
    # The parts, and their order, are those of lcb_runner/prompts/code_generation.py; the words are ours.
    "livecodebench": Template(
        program=(
            "### Question:\n$statement\n\n"
            "### Format: Write a $language program that reads the input from stdin and writes the answer to stdout. "
            "Do not test it on the examples. Put the whole program in a code block, such as:\n"
            f"```\n... the program ...\n```\n\n{_ANSWER}"
        ),
        completing=(
            "### Question:\n$statement\n\n"
            "### Format: Complete this $language code, and put the whole of it in a code block.\n"
            f"```\n$starter\n```\n\n{_ANSWER}"
        ),
    ),
    "stdin": Template(
        program=(
            "$statement\n\n"
            "Write a $language program that solves this problem for every input within its bounds. It reads stdin and "
            "writes to stdout. It is run on hidden tests, large ones among them, with limits of time and memory. "
            "Answer with the whole program in one code block.\n"
        ),
        completing=(
            "$statement\n\n```\n$starter\n```\n\n"
            "Complete this $language code. It is run on hidden tests, large ones among them, with limits of time and "
            "memory. Answer with the whole of it in one code block.\n"
        ),
    ),
    "statement": Template(program="$statement", completing="$statement\n\n$starter"),
}


def system_of_tools(tools: Sequence[ToolSpec], calls: int) -> str:
    """What a model is told of the tools that it has, and how they are called (`rl_client.calls`)."""
    lines = ["You have tools. This is how they are called, each with its one text:", ""]
    for tool in tools:
        lines += [f"<tool: {tool.name}>", f"... {tool.argument_description} ...", "</tool>", tool.description, ""]
    lines += [
        f"What they answer is in the next message. You have {calls} calls in all. Your answer is a message without a "
        "call: the whole program in one code block.",
    ]
    return "\n".join(lines)


def messages_of(prompt: str, system: str | None) -> Messages:
    """A conversation that begins with the prompt."""
    first = [] if system is None else [{"role": "system", "content": system}]
    return [*first, {"role": "user", "content": prompt}]
