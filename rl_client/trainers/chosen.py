"""Which setting of `rl_client.episodes` the environment asks for, where a trainer leaves no other way to say it:

RKGRADE_SETTING     python, terminal or repair
RKGRADE_LIMITS      JSON: fields of `rl_client.tools.ToolLimits`
RKGRADE_ATTEMPTS    answers of `repair`, the first included; 2 unless it is set
"""

from __future__ import annotations

import json
import os
from typing import get_args

from pydantic import TypeAdapter, ValidationError

from rl_client.episodes import Name, Setting
from rl_client.errors import ClientError
from rl_client.tools import ToolLimits
from service.contract import first_mistake

_NAME: TypeAdapter[Name] = TypeAdapter(Name)
_LIMITS = TypeAdapter(ToolLimits)


def setting() -> Setting:
    """Raises ClientError naming the variable that is at fault."""
    try:
        name = _NAME.validate_python(os.environ.get("RKGRADE_SETTING"))
    except ValidationError:
        raise ClientError(f"RKGRADE_SETTING has to be one of {', '.join(get_args(Name))}") from None
    try:
        given = json.loads(os.environ.get("RKGRADE_LIMITS", "{}"))
    except (ValueError, RecursionError) as error:
        raise ClientError(f"RKGRADE_LIMITS is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise ClientError("RKGRADE_LIMITS is no JSON object")
    attempts = os.environ.get("RKGRADE_ATTEMPTS", "2")
    if not (attempts.isascii() and attempts.isdecimal() and 1 <= int(attempts) <= 64):
        raise ClientError(f"RKGRADE_ATTEMPTS is {attempts!r}, and no whole number from 1 to 64")
    if unknown := sorted(given.keys() - ToolLimits.__dataclass_fields__.keys()):
        raise ClientError(f"RKGRADE_LIMITS: there is no {unknown[0]!r}")
    try:
        return Setting(name, _LIMITS.validate_python(given), int(attempts))
    except ValidationError as error:
        raise ClientError(f"RKGRADE_LIMITS: {first_mistake(error)}") from None
    except ValueError as error:
        raise ClientError(f"RKGRADE_LIMITS: {error}") from None
