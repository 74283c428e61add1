"""The token that a grader may ask for: from a file, or from the environment, never from the command line, which
everybody on a machine can read.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from rl_client.errors import TokenError

VARIABLE = "RKGRADE_TOKEN"

#: What a token may be made of (RFC 6750, 2.1).
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")


def read_token(file: Path | None = None, variable: str = VARIABLE) -> str | None:
    """The token in `file`, else that of the variable, else None. Raises TokenError."""
    if file is None:
        text = os.environ.get(variable, "").strip()
        return _checked(text, variable) if text else None
    try:
        text = file.read_text("utf-8").strip()
    except OSError as error:
        raise TokenError(f"{file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TokenError(f"{file}: not UTF-8") from error
    return _checked(text, str(file))


def _checked(text: str, source: str) -> str:
    if _TOKEN.fullmatch(text) is None:
        raise TokenError(f"{source}: holds no token, which is one word of letters, digits and - . _ ~ + / =")
    return text
