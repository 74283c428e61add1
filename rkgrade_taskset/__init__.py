"""What verifiers finds by the id `rkgrade-taskset`: it looks for a module of that name, at the top of all packages."""

from rl_client.trainers.verifiers_taskset import RkgradeTaskset

__all__ = ["RkgradeTaskset"]
