"""Suites of tests in Python, as several sets have them: whether one is Python, and whether it could fail a program."""

from __future__ import annotations

import ast
import warnings

from rl_client.datasets.row import RowError

#: Calls by these names fail a program as `assert` does; so does whatever has `assert` in its name.
_FAILING = frozenset({"raises", "warns", "fail", "exit"})


def parsed(script: str, where: str) -> ast.Module:
    """The suite's tree. Raises RowError where it is no Python, which would be found out once a program is judged."""
    try:
        with warnings.catch_warnings():
            # Of escapes in others' strings, which mean what they always did.
            warnings.simplefilter("ignore")
            return ast.parse(script)
    except SyntaxError as error:
        raise RowError("malformed", f"{where}: no Python: {error.msg} in line {error.lineno}") from None
    except (ValueError, MemoryError, RecursionError) as error:
        raise RowError("malformed", f"{where}: no Python: {str(error) or type(error).__name__}") from None


def asserts(tree: ast.Module) -> bool:
    """Whether anything in the suite could fail a program that merely runs."""
    return any(isinstance(node, (ast.Assert, ast.Raise)) or _fails(node) for node in ast.walk(tree))


def defines(tree: ast.Module, function: str) -> bool:
    """Whether the suite has such a function of its own, outside of all others."""
    return any(isinstance(node, ast.FunctionDef) and node.name == function for node in tree.body)


def uses(tree: ast.Module, name: str) -> bool:
    return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(tree))


def _fails(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return name in _FAILING or "assert" in name.lower()
