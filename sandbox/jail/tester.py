"""A test script at work, in a cell of its own: it runs here, and what it tests is asked for over two pipes.

The program itself lies in another cell, so that nothing it does reaches this interpreter: its `assert`, its builtins
and its frames are not these. The script finds a module `solution`, and the program's names among its own, made of
stand-ins (`sandbox.jail.stand_ins`). The end is told by the exit status, and by a few words on a descriptor of their
own (`sandbox.jail.link`).
"""

from __future__ import annotations

import ast
import builtins
import importlib
import linecache
import os
import re
import sys
import traceback
import types
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any, NoReturn

    from sandbox.jail import crossing, ends
    from sandbox.jail.elsewhere import SCRATCH
    from sandbox.jail.link import Link, builtin_class
    from sandbox.jail.stand_ins import LINK, MODULE
else:
    import crossing
    import ends
    from elsewhere import SCRATCH
    from link import Link, builtin_class
    from stand_ins import LINK, MODULE

SCRIPT_FD = 4

#: Modules of ours that a script is not to find.
NEIGHBOURS = (
    "approx arrays askable callbacks cases changes checks crossing elsewhere ends evaluating fixtures hearing link "
    "outcomes pytest_api shared silent stand_ins suites tester"
).split()

#: By which a script looks names up that stand in texts.
LOOKUPS = (b"eval", b"exec", b"globals", b"locals", b"vars", b"timeit", b"doctest")


class Solution(types.ModuleType):
    """The module `solution`: what the script names of the program."""

    def __getattr__(self, name: str) -> Any:
        if name[:2] == "__" and name != "__all__":
            raise AttributeError(name)
        if name == "__all__":
            return list(self.__dict__["_rkgrade_public"])
        there = LINK[0].value("names", names=[name])
        if type(there) is dict and name in there and name in self.__dict__["_rkgrade_library"]:
            return self.__dict__["_rkgrade_library"][name]
        if type(there) is not dict or name not in there:
            raise AttributeError(f"module {MODULE!r} has no attribute {name!r}", name=name, obj=self)
        return LINK[0].named(name, is_class=is_class(name)) if there[name] is None else borrowed(there[name], name)

    def __setattr__(self, name: str, value: Any) -> None:
        # The import system's own; a script that replaces what it tests, as mocks do, would test something else.
        if name[:2] != "__":
            LINK[0].end(ends.BROKEN, "the test replaces names of the program")
        super().__setattr__(name, value)


def borrowed(whence: object, name: str) -> Any:
    """A module of the library's, or a type in one, that the script uses under its own name by the program's import."""
    said = str(whence)
    module, _, inner = said.partition(".")
    if not crossing.is_lent(said, name):
        LINK[0].end(ends.OUTSIDE, detail=f"{said} is not lent as {name}")
    try:
        found = importlib.import_module(module)
    except ImportError:
        LINK[0].end(ends.OUTSIDE, detail=f"{said} is not to be had")
    if not inner:
        return found
    kind = getattr(found, inner, None)
    # Of typing's, whatever is no function: some of those evaluate texts.
    of_typing = module == "typing" and hasattr(kind, "__module__") and not isinstance(kind, types.FunctionType)
    if inner[:1] == "_" or not (isinstance(kind, type) or of_typing):
        LINK[0].end(ends.OUTSIDE, detail=f"{said} is not lent")
    return kind


def asserting(tree: ast.Module) -> set[int]:
    """Lines on which the script asserts something, by a statement or by a method like `assertEqual` or `fail`.

    One that cannot but fail (`assert False`) is an error that the script makes, such as others make by `raise`.
    """
    lines: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            asserts = not isinstance(node.test, ast.Constant)
        else:
            called = node.func if isinstance(node, ast.Call) else None
            asserts = isinstance(called, ast.Attribute) and (called.attr[:6] == "assert" or called.attr == "fail")
        if asserts and isinstance(node, (ast.Assert, ast.Call)):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def of_the_library(tree: ast.Module, names: set[str]) -> dict[str, types.ModuleType]:
    """Modules of the library's that the script takes from the program: by the names, and all that it asks them for.

    A program that has a name at all cannot make anything else of it: `math.fabs(f(x) - 1.5) < 1e-6` is to be math's.
    """
    asked: dict[str, set[str]] = {name: set() for name in names & {*crossing.LENT, *crossing.ALSO_CALLED}}
    whole = {id(node) for node in ast.walk(tree) if isinstance(node, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            whole.discard(id(node.value))
            if node.value.id in asked:
                asked[node.value.id].add(node.attr)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) in whole:
            asked.pop(node.id, None)
    found = {}
    for name, attributes in asked.items():
        try:
            module = importlib.import_module(crossing.ALSO_CALLED.get(name, name))
        except ImportError:
            continue
        if all(hasattr(module, attribute) for attribute in attributes):
            found[name] = module
    return found


def is_class(name: str) -> bool:
    """Whether a script that uses the name means a class: CapWords, which PEP 8 keeps for them."""
    return re.fullmatch("[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*", name) is not None


def used(tree: ast.Module, *, in_texts: bool) -> set[str]:
    """Names that the script looks up, be it in its texts, and gives to nothing of its own."""
    looked_up: set[str] = set()
    bound: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (looked_up if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
        elif in_texts and isinstance(node, ast.Constant) and type(node.value) is str:
            looked_up.update(re.findall(r"[^\W\d]\w*", node.value))
    return looked_up - bound


def mentions(tree: ast.Module, names: Iterable[str], *, anywhere: bool) -> bool:
    """Whether code that runs in any case has one of the names, or of what it imports from the program, other than in
    imports: code outside functions and classes, or `anywhere`."""
    nodes = list(ast.walk(tree))
    meant = set(names)
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module == MODULE:
            meant |= {one.asname or one.name for one in node.names}
        elif isinstance(node, ast.Import):
            meant |= {one.asname or one.name for one in node.names if one.name == MODULE}
    if not anywhere:
        inner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        nodes = [node for top in tree.body if not isinstance(top, inner) for node in ast.walk(top)]
    return any(isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in meant for node in nodes)


def exited_well(link: Link, error: BaseException) -> bool:
    """Whether the script ended itself, and meant well by it."""
    if not isinstance(error, SystemExit) or link.hearing.is_raised(error):
        return False
    return error.code in (None, 0, False)


def told(error: BaseException) -> str:
    """The exception with its traceback, frames of ours left out."""
    try:
        lines = traceback.format_exception(type(error), error, error.__traceback__)
    except Exception:
        # The program chooses what its exceptions hold: a SyntaxError's line need be no text.
        return builtin_class(error)
    return "".join(line for line in lines if '"/rkgrade' not in line)


def failure(link: Link, error: BaseException, *, in_suite: bool, there: Collection[str] = ()) -> NoReturn:
    """End as the exception that ended the script says; `there` are the names that the script has of the program's."""
    detail = told(error)
    if link.hearing.is_raised(error):
        link.end(ends.RAISED, f"raised {builtin_class(error)}", detail)
    if isinstance(error, SystemExit) and not in_suite:
        link.end(ends.FAILED, detail=detail)
    if isinstance(error, ImportError):
        if error.name == MODULE:
            if isinstance(error, ModuleNotFoundError):
                link.lack("the program, loaded anew")
            link.end(ends.MISSING, "the program lacks what the test imports from it", detail)
        link.end(ends.BROKEN, f"the test imports what is not to be had: {error.name}", detail)
    if isinstance(error, NameError) and error.name in there:
        link.end(ends.BROKEN, "the test uses a name of the program's that it does not import", detail)
    if isinstance(error, FileNotFoundError) and os.path.abspath(str(error.filename)).startswith(SCRATCH):
        link.lack("files of the program's")
    if isinstance(error, NameError) or (isinstance(error, AttributeError) and isinstance(error.obj, Solution)):
        link.end(ends.MISSING, "the program lacks a name that the test uses", detail)
    link.end(ends.FAILED, detail=detail)


def introduced(link: Link, wanted: list[str]) -> dict[str, object]:
    """Hear that the program is loaded, and which of the names it has. Raises what the program raised."""
    with link.on_data_of_the_program():
        loaded = link.receive()
        if "raised" in loaded:
            raise link.exception(loaded["raised"], ending_is_meant=True)
        there = link.value("names", names=wanted)
    # No objects of the program's, which say themselves what they are equal to.
    if type(there) is not dict or {type(name) for name in there} - {str} or not set(there) <= set(wanted):
        link.end(ends.OUTSIDE)
    return there


def main(runner: str, entry_point: str) -> NoReturn:
    """Run the script; `entry_point` is empty where the problem names none."""
    link = Link()
    LINK.append(link)
    with open(SCRIPT_FD, "rb") as file:
        source = file.read()
    in_suite = runner == "pytest"
    arrays, checks, elsewhere, evaluating, silent = map(
        importlib.import_module, ("arrays", "checks", "elsewhere", "evaluating", "silent")
    )
    # What takes its time, only where it is used.
    cases = importlib.import_module("cases") if in_suite or b"unittest" in source or b"mock" in source else None
    suites = importlib.import_module("suites") if in_suite else None
    for name in NEIGHBOURS:
        sys.modules.pop(name, None)
    sys.path[0] = "/box"
    sys.argv = [ends.SCRIPT_NAME]
    link.surroundings = elsewhere.surroundings()
    try:
        tree = ast.parse(source, ends.SCRIPT_NAME)
        code = compile(source, ends.SCRIPT_NAME, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        link.end(ends.BROKEN, f"the test script does not compile: {type(error).__name__}", str(error))
    link.hearing.asserting = asserting(tree)
    linecache.cache[ends.SCRIPT_NAME] = (
        len(source),
        None,
        source.decode("utf-8", "replace").splitlines(True),
        ends.SCRIPT_NAME,
    )
    names = used(tree, in_texts=any(one in source for one in LOOKUPS))
    names = {name for name in names if not hasattr(builtins, name)}
    try:
        there = introduced(link, sorted(names | ({entry_point} - {""})))
    except BaseException as error:
        failure(link, error.with_traceback(None), in_suite=False)
    if entry_point and entry_point not in there:
        link.end(ends.MISSING, f"the program defines no {entry_point}")
    solution = Solution(MODULE)
    solution.__dict__["_rkgrade_public"] = [name for name in there if name in names and name[:1] != "_"]
    library = solution.__dict__["_rkgrade_library"] = of_the_library(tree, names)
    solution.__spec__ = ModuleSpec(MODULE, None)
    sys.modules[MODULE] = solution
    module = types.ModuleType("__main__" if runner == "exec" else "test_solution")
    module.__file__ = ends.SCRIPT_NAME
    namespace = module.__dict__
    sys.modules[module.__name__] = module
    namespace.update(evaluating.guard(link, tree))
    silent.listen(link.hearing, source)
    elsewhere.sow(link, source)
    arrays.compare_something(source)
    if cases is not None:
        cases.listen(link.hearing)
    if suites is not None:
        sys.modules["pytest"] = suites.pytest_module()
    if cases is not None and b"mock" in source:
        cases.without_patching(lambda: link.lack("unittest.mock.patch"))
    lost: set[str] = set()
    try:
        if not in_suite:
            for name, whence in there.items():
                if name in library:
                    namespace[name] = library[name]
                    continue
                try:
                    meant = is_class(name) and name != entry_point
                    namespace[name] = link.named(name, is_class=meant) if whence is None else borrowed(whence, name)
                except Exception:
                    # It cannot cross: as good as not there, should the script come to it.
                    lost.add(name)
        exec(code, namespace)
        if suites is not None:
            suites.run(module)
        elif entry_point and checks.defines_check(tree) and not checks.calls_check(tree):
            checks.finished(namespace["check"](namespace[entry_point]), "a check")
        elif checks.drops_check(tree) and checks.yields(namespace.get("check")):
            link.hearing.miss("a check that yields")
    except checks.NotCovered as what:
        link.lack(str(what))
    except BaseException as error:
        if in_suite or not exited_well(link, error):
            failure(link, error, in_suite=in_suite, there=there.keys() - lost)
    silent.hear_the_rest(link.hearing)
    if link.hearing.unheard is not None:
        failure(link, link.hearing.unheard, in_suite=in_suite, there=there.keys() - lost)
    if link.hearing.missed:
        link.lack(link.hearing.missed)
    if not link.looked and not mentions(tree, there, anywhere=in_suite):
        # Any program would have passed: an entry point is not named, or tests are defined that nobody runs.
        link.end(ends.BROKEN, "the test ended without a single look at the program")
    link.end(ends.PASSED)
