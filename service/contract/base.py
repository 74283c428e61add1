"""What every model of the wire has in common: what is done with fields that it does not know, and that no error, which
may come to stand in a log, quotes what was sent.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Request(BaseModel):
    """Sent by a client: a misspelt field is an error that names it, never a default taken in silence.

    Every list and mapping is checked up to its first mistake: each costs half a kilobyte, and two bytes can make one.
    Names of fields alone are kept for the next body: by default pydantic's parser keeps thousands of short strings of
    what was sent, some megabytes in each process, long after it was answered.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", cache_strings="keys", hide_input_in_errors=True)


class Response(BaseModel):
    """Sent by the grader: fields added later are ignored by clients that do not know them."""

    model_config = ConfigDict(frozen=True, extra="ignore", cache_strings="keys", hide_input_in_errors=True)
