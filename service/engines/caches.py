"""What a worker shares with others of what it has found out: results, and compiled programs.

On one host that is in the data directory, between hosts on Redis and in the store. Imports no client of Redis where
there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sandbox import testlib
from service.engines.setup import Sharing, WorkerSetup
from service.stores.compiled import CompiledStore
from service.verdicts.cache import EntryStore, VerdictCache
from service.verdicts.naming import code_digest
from service.verdicts.on_disk import DiskVerdicts


@dataclass(frozen=True, slots=True)
class Caches:
    verdicts: VerdictCache | None
    programs: CompiledStore | None

    def take_faults(self) -> dict[str, str]:
        """What they failed of since this was last asked, by their names."""
        found = {}
        if self.verdicts is not None and (fault := self.verdicts.take_fault()) is not None:
            found["verdicts"] = fault
        if self.programs is not None and (fault := self.programs.take_fault()) is not None:
            found["programs"] = fault
        return found


def caches(setup: WorkerSetup) -> Caches:
    sharing = setup.sharing
    verdicts = None
    if sharing.verdicts_bytes is not None:
        # A checker may have been compiled with it.
        header = testlib.header(setup.config)
        host = "" if header is None else header.shown.name
        # Of the code that is running, and not of what may have taken its place by the first grade.
        code_digest()
        verdicts = VerdictCache(_entries(setup, sharing.verdicts_bytes), host=host)
    secret = _secret(sharing)
    if setup.store_url is None or secret is None:
        return Caches(verdicts, None)
    return Caches(verdicts, CompiledStore(setup.store_url, secret, limit_bytes=sharing.programs_bytes))


def _entries(setup: WorkerSetup, limit_bytes: int) -> EntryStore:
    sharing = setup.sharing
    if sharing.redis_url is None:
        path = setup.config.data_dir / "verdicts" / "verdicts.sqlite"
        return DiskVerdicts(path, limit_bytes=limit_bytes, keep_s=sharing.verdicts_s)
    from service.engines.rq.shared import RedisVerdicts, connection

    return RedisVerdicts(connection(sharing.redis_url), limit_bytes=limit_bytes, keep_s=sharing.verdicts_s)


def _secret(sharing: Sharing) -> Callable[[], bytes] | None:
    """None where hosts have none in common."""
    if sharing.programs_secret is not None:
        secret = bytes.fromhex(sharing.programs_secret)
        return lambda: secret
    if sharing.redis_url is None:
        return None
    from service.engines.rq.shared import RedisSecret, connection

    return RedisSecret(connection(sharing.redis_url))
