"""`check(candidate)` of a script: whether there is one to be called, and seeing a call to its end."""

from __future__ import annotations

import ast
import importlib
import inspect
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sandbox.jail.outcomes import NotCovered
else:
    from outcomes import NotCovered


def defines_check(tree: ast.Module) -> bool:
    return any(isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == "check" for node in tree.body)


def calls_check(tree: ast.Module) -> bool:
    """Whether code outside functions does."""
    inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    outside = [node for node in tree.body if not isinstance(node, inner)]
    calls = (node.func for top in outside for node in ast.walk(top) if isinstance(node, ast.Call))
    return any(isinstance(name, ast.Name) and name.id == "check" for name in calls)


def drops_check(tree: ast.Module) -> bool:
    """Whether code outside functions calls it for nothing but that it runs."""
    calls = (node.value for node in tree.body if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))
    return any(isinstance(call.func, ast.Name) and call.func.id == "check" for call in calls)


def yields(function: object) -> bool:
    """Whether a function of the script's, not one of the program's, does: called, it has run nothing yet."""
    generators = inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR
    return type(function) is types.FunctionType and bool(function.__code__.co_flags & generators)


def finished(given: Any, what: str) -> None:
    """See a call to its end, be it a coroutine's. Raises NotCovered for a generator: of that nothing has run."""
    if inspect.iscoroutine(given):
        importlib.import_module("asyncio").run(given)
    elif type(given) in (types.GeneratorType, types.AsyncGeneratorType):
        raise NotCovered(f"{what} that yields")
