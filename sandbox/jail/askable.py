"""By which names an object of the program's is asked for something, and which of them compare.

Each name is one that a script can say; what comes of it is for `sandbox.jail.stand_ins` to decide.
"""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction
from types import FunctionType, GeneratorType, MethodType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sandbox.jail import crossing
else:
    import crossing

#: Special methods that are passed on as they are: none is given anything to compare with.
PASSED_ON = (
    "call len getitem setitem delitem iter next reversed enter exit bool int float complex index round abs neg pos "
    "invert trunc floor ceil repr str format bytes"
).split()

#: By which an object becomes a number, or true or false.
CONVERSIONS = frozenset("bool int float complex index round abs trunc floor ceil".split())

#: By which it becomes a number. What it is true of, how long it is and how it reads may change with time (caches do).
NUMBERS = CONVERSIONS - {"bool"}

#: Those that are given another operand.
ORDERS = "lt le gt ge contains".split()
ARITHMETIC = [
    side + name
    for name in "add sub mul matmul truediv floordiv mod divmod pow lshift rshift and xor or".split()
    for side in ("", "r", "i")
]

#: In-place arithmetic, and entering and iterating, give the object itself again without handing it out anew.
GIVES_ITSELF = frozenset({"__enter__", "__iter__"} | {f"__{name}__" for name in ARITHMETIC if name[:1] == "i"})

#: Methods of plain types that say yes or no.
PREDICATES = {"startswith", "endswith"} | {name for kind in (str, set, float) for name in dir(kind) if name[:2] == "is"}

#: And others of plain data, arrays and frames, whose answers can be made of the question: what they are given is often
#: what is expected.
COMPARING = frozenset(
    PREDICATES
    | set(
        "removeprefix removesuffix strip lstrip rstrip split rsplit partition rpartition replace "
        "count find rfind index rindex remove discard "
        "difference difference_update intersection intersection_update symmetric_difference "
        "symmetric_difference_update union subtract "
        "compare compare_signal compare_total compare_total_mag same_quantum equals equal eq ne isin isclose allclose "
        "array_equal almost_equals".split()
    )
)

#: Types by which the other side of a comparison is known for plain data.
PLAIN = frozenset(
    {
        *(*crossing.SCALARS, *crossing.TYPES.values(), Decimal, Fraction),
        *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta),
    }
    - {object}
)

#: Those of them whose values never change.
FIXED = frozenset({bool, int, float, complex, str, bytes, tuple, frozenset})

#: Attributes of plain data and of arrays: whoever asks for another means no plain data.
OF_PLAIN = frozenset(name for kind in PLAIN for name in dir(kind)) | frozenset(
    "all any sum prod max min mean std var ptp shape size ndim dtype T flat tolist item flatten ravel argmax argmin "
    "nonzero astype round values empty abs".split()
)

#: Attributes of objects with such names that the program is asked for.
ASKED_FOR = frozenset(
    f"__{name}__"
    for name in (
        "name qualname annotations dict doc module code defaults kwdefaults closure self func slots abstractmethods "
        "dataclass_fields dataclass_params match_args"
    ).split()
)

#: What passes for such a type of the interpreter's where `isinstance` is asked.
KINDS = {"generator": GeneratorType, "function": FunctionType, "method": MethodType, "property": property}
