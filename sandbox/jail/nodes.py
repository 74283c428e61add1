"""Linked lists and trees, as LeetCode gives them: made of lists where a function's annotations ask, and lists again."""

from __future__ import annotations

import builtins
import types

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from sandbox.jail.values import MAX_DEPTH, MODULE, SCALARS, NotPlain
else:
    from values import MAX_DEPTH, MODULE, SCALARS, NotPlain

#: What functions of this module find builtin names in: a copy, whatever a program does to the original.
__builtins__ = dict(vars(builtins))  # type: ignore[assignment]

#: More than any tree of a problem has; a tree with more has a branch that leads back into it.
MAX_TREE_NODES = 1 << 20


class ListNode:
    """A linked list's node, as LeetCode gives it."""

    __module__ = MODULE

    def __init__(self, val: Any = 0, next: ListNode | None = None) -> None:
        self.val = val
        self.next = next


class TreeNode:
    """A binary tree's node, as LeetCode gives it."""

    __module__ = MODULE

    def __init__(self, val: Any = 0, left: TreeNode | None = None, right: TreeNode | None = None) -> None:
        self.val = val
        self.left = left
        self.right = right


# -- linked lists and trees


def node_in(annotation: object) -> tuple[str, bool]:
    """Which node, if any, an annotation speaks of, and whether of a list of them. It may be text, or half resolved."""
    text = annotation if isinstance(annotation, str) else repr(annotation)
    for name in ("ListNode", "TreeNode"):
        before, found, _ = text.partition(name)
        if found:
            return name, "ist[" in before
    return "", False


def annotated(function: Callable[..., Any]) -> tuple[list[object], object]:
    """Annotations of the parameters that arguments go to, by position, and of the result."""
    bound = isinstance(function, types.MethodType)
    inner: Any = function
    while (wrapped := getattr(inner, "__wrapped__", None)) is not None:
        inner = wrapped
    code = getattr(inner, "__code__", None)
    if code is None:
        return [], None
    names = code.co_varnames[: code.co_argcount][1 if bound else 0 :]
    said = getattr(inner, "__annotations__", {})
    return [said.get(name) for name in names], said.get("return")


def with_nodes(function: Callable[..., Any], arguments: list[Any], namespace: dict[str, Any]) -> list[Any]:
    """The arguments, with lists made into nodes where the function's annotations ask for them."""
    makers = {"ListNode": linked, "TreeNode": tree}
    parameters, _ = annotated(function)
    made = list(arguments)
    for position, (value, annotation) in enumerate(zip(arguments, parameters, strict=False)):
        name, several = node_in(annotation)
        if name and isinstance(value, list):
            make, kind = makers[name], namespace[name]
            made[position] = [make(one, kind) for one in value] if several else make(value, kind)
    return made


def without_nodes(value: object, function: Callable[..., Any], namespace: dict[str, Any]) -> object:
    """The result, with nodes made into lists again. Raises NotPlain."""
    name, several = node_in(annotated(function)[1])
    if name and several and isinstance(value, (list, tuple)):
        value = [[] if one is None else one for one in value]
    elif name and not several and value is None:
        value = []
    writers: dict[type, Callable[[Any], list[Any]]] = {ListNode: linked_values, TreeNode: tree_values}
    for own, writer in (("ListNode", linked_values), ("TreeNode", tree_values)):
        if isinstance(kind := namespace.get(own), type):
            writers[kind] = writer
    return flattened(value, writers, 0)


def flattened(value: object, writers: dict[type, Callable[[Any], list[Any]]], level: int) -> object:
    if type(value) in writers:
        return writers[type(value)](value)
    if isinstance(value, (list, tuple)) and level < MAX_DEPTH and not SCALARS.issuperset(map(type, value)):
        return [flattened(item, writers, level + 1) for item in value]
    return value


def linked(values: list[Any] | None, kind: type[ListNode]) -> ListNode | None:
    head = None
    for value in reversed(values or ()):
        node = kind(value)
        node.next = head
        head = node
    return head


def linked_values(head: ListNode | None) -> list[Any]:
    values: list[Any] = []
    met: set[int] = set()
    while head is not None:
        if id(head) in met:
            raise NotPlain("linked list that leads back into itself")
        met.add(id(head))
        values.append(head.val)
        head = head.next
    return values


def tree(values: list[Any] | None, kind: type[TreeNode]) -> TreeNode | None:
    """From its values level by level, None where a node is missing."""
    if not values or values[0] is None:
        return None
    root = kind(values[0])
    parents = [root]
    rest = iter(values[1:])
    for parent in parents:
        for side in ("left", "right"):
            value = next(rest, None)
            if value is not None:
                child = kind(value)
                setattr(parent, side, child)
                parents.append(child)
    return root


def tree_values(root: TreeNode) -> list[Any]:
    values: list[Any] = []
    waiting: list[TreeNode | None] = [root]
    for node in waiting:
        if node is None:
            values.append(None)
        else:
            values.append(node.val)
            waiting += (node.left, node.right)
        if len(values) > MAX_TREE_NODES:
            raise NotPlain("tree that leads back into itself")
    while values and values[-1] is None:
        values.pop()
    return values
