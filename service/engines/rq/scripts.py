"""The Lua scripts in `lua/`: each change of the queue's state is one of them, so that it happens whole or not at all.

A Redis that has restarted has forgotten them, and is told again.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import Any, cast

from redis.asyncio import Redis
from redis.exceptions import NoScriptError
from rq.defaults import RQ_KEY_PREFIX

_LUA = files("service.engines.rq") / "lua"
_PRELUDE = (_LUA / "prelude.lua").read_text().replace("@RQ@", RQ_KEY_PREFIX)


class Script:
    def __init__(self, name: str) -> None:
        self._text = (_LUA / f"{name}.lua").read_text().replace("--@prelude\n", _PRELUDE)
        self._sha = hashlib.sha1(self._text.encode(), usedforsecurity=False).hexdigest()

    async def __call__(self, redis: Redis, *arguments: str | bytes | int | float) -> Any:
        """What the script returns. Raises RedisError."""
        try:
            return await cast(Any, redis.evalsha(self._sha, 0, *arguments))
        except NoScriptError:
            return await cast(Any, redis.eval(self._text, 0, *arguments))
