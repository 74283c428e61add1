"""Texts that a test script evaluates, unpickles or resolves once the program has answered: they may be the program's.

`assert eval(f(x)) == 24` is how a script looks at an expression that a program found. What such a text calls is called
in the script's process, which it could end as if all had passed. So of a text that does not stand in the script only
what reckons is evaluated: numbers, operators, a few builtins, what the script itself defines and is no function. Of
pickled objects only data and classes of the program's and the script's are made, and annotations of the program's are
not resolved. Anything else is `NotCovered`, and so is what the library would see in place of the program's code.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import functools
import inspect
import sys
import timeit
import types
import typing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from sandbox.jail import crossing
    from sandbox.jail.link import Link
    from sandbox.jail.outcomes import NotCovered
    from sandbox.jail.stand_ins import MODULE, Program, ProgramType
else:
    import crossing
    from outcomes import NotCovered
    from stand_ins import MODULE, Program, ProgramType

CODE = types.CodeType

#: Builtins that an expression of a program's may call: they make values of values.
RECKONING = frozenset(
    "abs bool complex dict divmod float frozenset int len list max min pow range round set sorted str sum tuple".split()
)

#: What such an expression may be made of.
NODES = (
    ast.Expression,
    ast.Constant,
    ast.Name,
    ast.Call,
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Tuple,
    ast.List,
    ast.Set,
    ast.Dict,
    ast.Subscript,
    ast.Slice,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
    ast.expr_context,
)

#: Modules whose types pickled data may name, beside the script's and the program's.
PICKLED = frozenset({"collections", "datetime", "decimal", "fractions", "numpy"})

#: By which pickled data make objects of a class without calling anything of its making.
MAKERS = frozenset({("copyreg", "_reconstructor"), ("copyreg", "__newobj__"), ("_codecs", "encode")})

#: By which these look at code, signatures, members and fields.
LOOKS = {
    inspect: "getfile getfullargspec getmembers getsource getsourcefile getsourcelines isasyncgenfunction "
    "iscoroutinefunction isfunction isgeneratorfunction ismethod signature",
    dataclasses: "asdict astuple fields replace",
}


class Texts:
    """What stands for `eval`, `exec` and `compile` in a script."""

    def __init__(self, link: Link, tree: ast.Module) -> None:
        self.link = link
        self.make_timer = timeit.Timer.__init__
        self.own = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and type(node.value) is str}

    def is_own(self, text: object) -> bool:
        """Whether nothing of the program's can be in it."""
        return not self.link.answered or isinstance(text, CODE) or (type(text) is str and text in self.own)

    def eval(self, text: Any, of: dict[str, Any] | None = None, inner: Any = None, /) -> Any:
        if of is None:
            frame = sys._getframe(1)
            of, inner = frame.f_globals, frame.f_locals
        scope = of if inner is None else inner
        if not self.is_own(text):
            text = builtins.compile(reckons(text, of, scope), "<string>", "eval", dont_inherit=True)
        return builtins.eval(text, of, scope)

    def exec(self, text: Any, of: dict[str, Any] | None = None, inner: Any = None, /, **closure: Any) -> None:
        if of is None:
            frame = sys._getframe(1)
            of, inner = frame.f_globals, frame.f_locals
        if not self.is_own(text):
            raise NotCovered("running text that the program may have made")
        builtins.exec(text, of, of if inner is None else inner, **closure)

    def compile(self, text: Any, *args: Any, **keywords: Any) -> Any:
        flags = keywords.get("flags", args[2] if len(args) > 2 else 0)
        if not (self.is_own(text) or flags & ast.PyCF_ONLY_AST):
            raise NotCovered("compiling text that the program may have made")
        return builtins.compile(text, *args, **{"dont_inherit": True, **keywords})

    def time(self, timer: Any, *args: Any, **keywords: Any) -> None:
        """`timeit` runs what it is given as texts; where it is given none, "pass"."""
        texts = {one for one in (*args, *keywords.values()) if isinstance(one, str)} - {"pass"}
        if not all(map(self.is_own, texts)):
            raise NotCovered("timing text that the program may have made")
        self.make_timer(timer, *args, **keywords)

    def audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "pickle.find_class" and self.link.answered and not is_data(*args):
            raise NotCovered(f"unpickling {args[0]}.{args[1]}")


def reckons(text: Any, of: dict[str, Any], scope: Any) -> ast.Expression:
    """The expression, where all it does is to reckon. Raises NotCovered, and what reading it raises."""
    tree = ast.parse(text.strip() if isinstance(text, str) else text, "<string>", "eval")
    called = set()
    for node in ast.walk(tree):
        if not isinstance(node, NODES):
            raise NotCovered(f"evaluating text that the program may have made, with {type(node).__name__} in it")
        if isinstance(node, ast.Call):
            if not isinstance(node.func, ast.Name) or node.func.id not in RECKONING or node.keywords:
                raise NotCovered("evaluating text that the program may have made, and that calls")
            called.add(node.func)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node not in called:
            for names in (scope, of, vars(builtins)):
                if node.id in names:
                    if callable(names[node.id]):
                        raise NotCovered(f"evaluating text that the program may have made, with {node.id} in it")
                    break
    return tree


def is_data(module: str, name: str) -> bool:
    """Whether what pickled data name is a type or a class, of which they make an object."""
    if (module, name) in MAKERS:
        return True
    if module == "builtins":
        kind = getattr(builtins, name, None)
        return name in crossing.TYPES or (isinstance(kind, type) and issubclass(kind, BaseException))
    if module in ("__main__", "test_solution"):
        return isinstance(vars(sys.modules[module]).get(name), type)
    return module == MODULE or (module in PICKLED and isinstance(getattr(sys.modules.get(module), name, None), type))


def of_the_tests_only(look: Callable[..., Any], otherwise: str) -> Callable[..., Any]:
    """A function of the library's that looks at an object: not at the program's, whose annotations are texts of the
    program's, and whose code is elsewhere."""

    @functools.wraps(look)
    def looked(of: Any, *args: Any, **keywords: Any) -> Any:
        if isinstance(of, (Program, ProgramType)):
            raise NotCovered(otherwise)
        return look(of, *args, **keywords)

    return looked


def guard(link: Link, tree: ast.Module) -> dict[str, Any]:
    """Names for the script's namespace; and what it has from the library is guarded, too."""
    texts = Texts(link, tree)
    sys.addaudithook(texts.audit)
    annotations = "resolving annotations of the program's"
    typing.get_type_hints = of_the_tests_only(typing.get_type_hints, annotations)
    inspect.get_annotations = of_the_tests_only(inspect.get_annotations, annotations)
    timer: Any = timeit.Timer
    timer.__init__ = lambda timer, *args, **keywords: texts.time(timer, *args, **keywords)
    for module, names in LOOKS.items():
        for name in names.split():
            look = of_the_tests_only(getattr(module, name), f"{module.__name__}.{name} of the program's")
            setattr(module, name, look)
    return {"eval": texts.eval, "exec": texts.exec, "compile": texts.compile}
