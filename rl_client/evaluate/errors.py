"""What evaluating may raise, beside `DatasetError` and what the grader's client does. Messages are one line.

EvaluationError
├── BadOption          what was asked for is not there to be had; begins with the option
├── OutputTaken        the folder holds another evaluation
├── BadTemplate        a template that says nothing of the problem, or asks for what there is not
├── BadCompletions     a line of completions that is none; names the file, the line and the field
├── NothingGraded      there is nothing to report
├── ProblemRefused     the grader does not take a problem or a program of it
└── ServerError        the model's server cannot be used, or not any more
    ├── ServerUnreachable  nothing answers there, or nothing but errors for longer than there is patience
    └── ServerUnfit        it answers, but refuses what is asked for, or not as OpenAI's API has it
PromptTooLong          of one prompt, which the server never takes; others may be fine
"""

from __future__ import annotations


class EvaluationError(Exception):
    """Anything that ends an evaluation."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class BadOption(EvaluationError):
    pass


class OutputTaken(EvaluationError):
    pass


class BadTemplate(EvaluationError):
    pass


class BadCompletions(EvaluationError):
    pass


class NothingGraded(EvaluationError):
    pass


class ProblemRefused(EvaluationError):
    pass


class ServerError(EvaluationError):
    pass


class ServerUnreachable(ServerError):
    pass


class ServerUnfit(ServerError):
    pass


class PromptTooLong(Exception):
    """The model has no room for it, in the server's words."""
