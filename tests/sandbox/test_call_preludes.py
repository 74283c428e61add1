"""What programs whose functions are called find imported, how deep they recurse, and LeetCode's lists and trees."""

from __future__ import annotations

import json

import pytest

from sandbox.judge import Judge
from tests.sandbox.calling import PYTHONS, call_problem, called, came_to

pytestmark = pytest.mark.jail

ACCEPTED = ("accepted", "", "")

both_pythons = pytest.mark.parametrize("language", PYTHONS)


# ---------------------------------------------------------------------------------------------------------------
# Preludes

USES_PRELUDE = """
def f(words: List[str]) -> Optional[int]:
    best = defaultdict(int)
    for a, b in itertools.combinations(words, 2):
        best[gcd(len(a), len(b))] += 1
    heapify(words)
    return [reduce(lambda a, b: a + b, words), json.dumps(best), inf > 0, bisect.bisect([1, 2], 1), pow(2, 3, 5)]
"""


@both_pythons
@pytest.mark.parametrize("prelude", ["lcb", "leetcode"])
def test_a_prelude_imports_what_its_programs_rely_on(judge: Judge, language: str, prelude: str) -> None:
    problem = call_problem(([["b", "aa"]], ["aab", '{"1": 1}', True, 1, 3]), prelude=prelude)
    assert came_to(*called(judge, language, USES_PRELUDE, problem)) == ACCEPTED


@both_pythons
def test_without_a_prelude_nothing_is_imported(judge: Judge, language: str) -> None:
    assert came_to(*called(judge, language, USES_PRELUDE, call_problem(([["b"]], 0)))) == (
        "runtime_error",
        "raised NameError",
        "",
    )


@both_pythons
@pytest.mark.parametrize(("prelude", "levels"), [("none", 990), ("lcb", 49_900), ("leetcode", 49_900)])
def test_recursion_goes_as_deep_as_the_prelude_says(judge: Judge, language: str, prelude: str, levels: int) -> None:
    source = "def f(n):\n    return 0 if n == 0 else 1 + f(n - 1)\n"
    problem = call_problem(([levels], levels), ([levels + 200], 0), prelude=prelude)
    results = called(judge, language, source, problem)
    assert [came_to(result) for result in results] == [ACCEPTED, ("runtime_error", "raised RecursionError", "")]


def test_both_pythons_recurse_to_the_same_depth(judge: Judge) -> None:
    source = "def f(n=1):\n    try:\n        return f(n + 1)\n    except RecursionError:\n        return n\n"
    depths = {
        language: json.loads(called(judge, language, source, call_problem(([], -1)))[0].checker_message.split()[0])
        for language in PYTHONS
    }
    assert depths["python"] == depths["python-exec"]


# ---------------------------------------------------------------------------------------------------------------
# LeetCode's lists and trees

TREES = """
class Solution:
    def reverse(self, head: Optional[ListNode]) -> Optional[ListNode]:
        before = None
        while head:
            head.next, before, head = before, head, head.next
        return before

    def merge(self, lists: List[Optional[ListNode]]) -> Optional[ListNode]:
        values = []
        for node in lists:
            while node:
                values.append(node.val)
                node = node.next
        first = last = ListNode()
        for value in sorted(values):
            last.next = ListNode(value)
            last = last.next
        return first.next

    def split(self, head: Optional[ListNode]) -> List[Optional[ListNode]]:
        return [head, None]

    def invert(self, root: 'Optional[TreeNode]') -> "TreeNode":
        if root:
            root.left, root.right = self.invert(root.right), self.invert(root.left)
        return root

    def full(self, n: int) -> List[Optional[TreeNode]]:
        if n == 1:
            return [TreeNode(0)]
        parts = [(self.full(k), self.full(n - 1 - k)) for k in range(1, n, 2)]
        return [TreeNode(0, one, other) for left, right in parts for one in left for other in right]

    def shared(self):
        leaf = TreeNode(1)
        return TreeNode(0, leaf, leaf)

    def circle(self):
        node = ListNode(1)
        node.next = node
        return node

    def knot(self):
        node = TreeNode(1)
        node.left = node
        return node

    def values(self, values: List[int]) -> int:
        return sum(values)
"""

NODES = [
    ("reverse", [[1, 2, 3]], [3, 2, 1]),
    ("reverse", [[]], []),
    ("merge", [[[1, 4], [], [2, 3]]], [1, 2, 3, 4]),
    ("merge", [[]], []),
    ("split", [[1, 2]], [[1, 2], []]),
    ("invert", [[4, 2, 7, 1, None, 6]], [4, 7, 2, None, 6, None, 1]),
    ("invert", [[1, None, 2, 3]], [1, 2, None, None, 3]),
    ("invert", [[]], []),
    ("full", [5], [[0, 0, 0, None, None, 0, 0], [0, 0, 0, 0, 0]]),
    ("shared", [], [0, 1, 1]),
    ("values", [[1, 2]], 3),
]


@both_pythons
@pytest.mark.parametrize(("method", "arguments", "expected"), NODES)
def test_lists_become_nodes_where_annotations_say_so_and_lists_again(
    judge: Judge, language: str, method: str, arguments: list[object], expected: object
) -> None:
    problem = call_problem((arguments, expected), function=f"Solution.{method}", prelude="leetcode")
    assert came_to(*called(judge, language, TREES, problem)) == ACCEPTED


@both_pythons
@pytest.mark.parametrize(
    ("method", "said"),
    [("circle", "linked list that leads back into itself"), ("knot", "tree that leads back into itself")],
)
def test_nodes_without_end_are_no_plain_data(judge: Judge, language: str, method: str, said: str) -> None:
    problem = call_problem(([], []), function=f"Solution.{method}", prelude="leetcode")
    assert came_to(*called(judge, language, TREES, problem)) == ("wrong_answer", "", f"returned no plain data: {said}")


@both_pythons
def test_a_programs_own_node_class_is_used(judge: Judge, language: str) -> None:
    source = """
class ListNode:
    def __init__(self, x):
        self.val = x
        self.next = None
        self.own = True
def f(head: ListNode) -> ListNode:
    assert head.own
    return head.next
"""
    problem = call_problem(([[1, 2, 3]], [2, 3]), prelude="leetcode")
    assert came_to(*called(judge, language, source, problem)) == ACCEPTED


@both_pythons
def test_a_long_list_is_no_deep_recursion(judge: Judge, language: str) -> None:
    source = "def f(head: Optional[ListNode]) -> Optional[ListNode]:\n    return head\n"
    values = list(range(100_000))
    assert came_to(*called(judge, language, source, call_problem(([values], values), prelude="leetcode"))) == ACCEPTED
