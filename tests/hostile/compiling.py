"""Sources that attack whoever compiles them, and sources that only look odd."""

from __future__ import annotations

from sandbox import languages
from sandbox.languages import REGISTRY
from sandbox.verdicts import Verdict
from tests.hostile.case import Case, Run, in_pythons

CANNOT_COMPILE = {
    "includes_shadow": b'#include "/etc/shadow"\nint main(void) {}\n',
    "includes_warden_environment": b'#include "/proc/1/environ"\nint main(void) {}\n',
    "includes_itself": b"#include __FILE__\nint main(void) {}\n",
    "embeds_shadow": b'__asm__(".incbin \\"/etc/shadow\\"");\nint main(void) {}\n',
    "embeds_endless_zeros": b'__asm__(".incbin \\"/dev/zero\\"");\nint main(void) {}\n',
    "fills_object_file": b'__asm__(".space 0x300000000, 1");\nint main(void) {}\n',
    "no_main": b"int f(void) { return 1; }\n",
    "empty": b"",
    "only_nuls": bytes(4096),
    "binary": bytes(range(256)) * 16,
    "flood_of_errors": b"int main(void) { " + b"?; " * 100000 + b"}\n",
    "deep_parentheses": b"int main(void) { return " + b"(" * 200000 + b"; }\n",
    "error_directive": b"#error " + b"x" * 500000 + b"\n",
}

COMPILES_C = {
    "carriage_returns": b'#include <stdio.h>\r\nint main(void) {\r\n    puts("held");\r\n}\r\n',
    "byte_order_mark": b'\xef\xbb\xbf#include <stdio.h>\nint main(void) { puts("held"); }\n',
    "no_newline_at_end": b'#include <stdio.h>\nint main(void) { puts("held"); }',
    "latin_1_comment": b'#include <stdio.h>\n/* caf\xe9 */ int main(void) { puts("held"); }\n',
    "constructor": (
        b'#include <stdio.h>\n__attribute__((constructor)) static void f(void) { puts("held"); }\nint main(void) {}\n'
    ),
    "megabyte": b'#include <stdio.h>\nint main(void) { puts("held"); }\n/*' + b"x" * 2**20 + b"*/\n",
}

CANNOT_COMPILE_CPP = {
    "endless_templates": (
        b"template <int N> struct T { static const int v = T<N + 1>::v + T<N + 2>::v; };\n"
        b"int main() { return T<0>::v; }\n"
    ),
    "endless_constexpr": (b'constexpr long f(long n) { return f(n + 1); }\nint main() { static_assert(f(0), ""); }\n'),
}

#: Each is a SyntaxError of the interpreter's, or what it says of memory and nesting.
CANNOT_COMPILE_PYTHON = {
    "syntax": "print('held'\n",
    "indentation": "if True:\nprint('held')\n",
    "mixed_tabs": "if True:\n        print('held')\n\tprint('held')\n",
    "late_future_import": "x = 1\nfrom __future__ import annotations\nprint('held')\n",
    "unknown_future": "from __future__ import free_lunch\nprint('held')\n",
    "unknown_cookie": "# -*- coding: martian -*-\nprint('held')\n",
    "cookie_of_no_text": "# -*- coding: zlib -*-\nprint('held')\n",
    "nul": "print('held')\n\0\n",
    "not_utf8": b"print('\xff\xfe')\n",
    "byte_order_mark_and_other_cookie": b"\xef\xbb\xbf# coding: latin-1\nprint('held')\n",
    "utf16": "print('held')\n".encode("utf-16"),
    "python2": "print 'held'\n",
    "return_outside": "return 1\n",
    "parentheses": "(" * 100000,
    "brackets_closed": "x = " + "[" * 100000 + "]" * 100000 + "\nprint('held')\n",
    "long_sum": "y = 1\nx = " + "+".join(["y"] * 100000) + "\nprint('held')\n",
    "long_minus": "x = " + "-" * 100000 + "1\nprint('held')\n",
    "deep_indentation": "\n".join(" " * depth + "if 1:" for depth in range(2000)) + "\n",
    "long_number": "x = " + "9" * 100000 + "\nprint('held')\n",
    "binary": bytes(range(256)) * 16,
}

COMPILES_PYTHON = {
    "tabs": "if True:\n\tif True:\n\t\tprint('held')\n",
    "carriage_returns": "if True:\r\n    print('held')\r\n",
    "old_mac_line_ends": "if True:\r    print('held')\r",
    "form_feed": "\f\nprint('held')\n",
    "no_newline_at_end": "print('held')",
    "byte_order_mark": b"\xef\xbb\xbfprint('held')\n",
    "cookie_latin_1": (
        b"# -*- coding: latin-1 -*-\nword = '\xe9'\nprint('held' if word == chr(0xe9) else 'escaped')\n"
    ),
    "cookie_on_line_two": (
        b"#!/usr/bin/python3\n# vim: set fileencoding=cp1252 :\nprint('held' if '\x80' == chr(0x20ac) else 'no')\n"
    ),
    "cookie_utf8": "# -*- coding: utf-8 -*-\nprint('held' if len('é') == 1 else 'no')\n",
    "cookie_utf7": "# -*- coding: utf-7 -*-\nprint('held')\n",
    "future": "from __future__ import annotations\ndef f(x: no_such_name): pass\nprint('held')\n",
    "docstring_and_future": (
        "'''words'''\nfrom __future__ import annotations\nprint('held' if __doc__ == 'words' else 'no')\n"
    ),
    # Annotations are evaluated: no future of whoever compiled this may leak in.
    "no_foreign_future": (
        "try:\n    def f(x: no_such_name): pass\n    print('escaped')\nexcept NameError:\n    print('held')\n"
    ),
    "asserts_are_on": ("try:\n    assert False\n    print('escaped')\nexcept AssertionError:\n    print('held')\n"),
    "global_at_module_level": "global x\nx = 1\nprint('held' if globals()['x'] == 1 else 'no')\n",
    "nonascii_names": "prínt = print\nprínt('held')\n",
    "megabyte": "x = [" + "1234567, " * 116000 + "]\nprint('held')\n",
    "megabyte_line": "x = '" + "y" * 2**20 + "'\nprint('held')\n",
    "warnings": "x = 1\nif x is 1: pass\n'\\d'\nprint('held')\n",
    "null_statement": "...\nprint('held')\n",
    # Near the interpreter's own limits of nesting, from where it refuses to where it does not.
    "sum_of_900": "y = 1\nx = " + "+".join(["y"] * 900) + "\nprint('held')\n",
    "parentheses_90": "x = " + "(" * 90 + "1" + ")" * 90 + "\nprint('held')\n",
    "elif_900": "x = 950\nif x == 0: pass\n"
    + "".join(f"elif x == {i}: pass\n" for i in range(900))
    + "print('held')\n",
    "nested_80": "".join(" " * depth + "if 1:\n" for depth in range(80)) + " " * 80 + "print('held')\n",
}

EMPTY_PYTHON = {"empty": "", "only_comment": "# nothing", "only_newlines": "\n\n\n"}

#: By language and name: the compiler ends well, and there is no program. Of languages that are installed here.
LEAVES_NO_PROGRAM = {
    ("perl", "folder"): "BEGIN { mkdir '/box/main.pl' }\n",
    ("perl", "link"): "BEGIN { open F, '>', '/tmp/own'; symlink '/tmp/own', '/box/main.pl' }\n",
    ("pascal", "unit"): "unit main;\ninterface\nimplementation\nend.\n",
    ("haskell", "module"): "module Other where\nother :: Int\nother = 1\n",
    ("haskell", "ends_the_compiler"): (
        "{-# LANGUAGE TemplateHaskell #-}\nimport Language.Haskell.TH\nimport System.Posix.Process\n"
        "import System.Exit\n$(runIO (exitImmediately ExitSuccess))\nmain :: IO ()\nmain = return ()\n"
    ),
    ("nim", "quits"): "static: quit(0)\n",
    ("nim", "runs"): 'static: discard staticExec("mkdir /box/main")\n',
}

CASES: list[Case] = [
    *(
        Case(f"leaves_no_program_{name}", language, source.encode(), (Run(),), compiles=False)
        for (language, name), source in LEAVES_NO_PROGRAM.items()
        if languages.missing(REGISTRY[language]) is None
    ),
    *(Case(f"compile_{name}", "c", source, (Run(),), compiles=False) for name, source in CANNOT_COMPILE.items()),
    *(Case(f"compile_{name}", "cpp", source, (Run(),), compiles=False) for name, source in CANNOT_COMPILE_CPP.items()),
    *(Case(f"compile_{name}", "c", source, (Run(),)) for name, source in COMPILES_C.items()),
]
for _name, _source in CANNOT_COMPILE_PYTHON.items():
    CASES += in_pythons(f"compile_{_name}", _source, compiles=False)
for _name, _source in COMPILES_PYTHON.items():
    CASES += in_pythons(f"compile_{_name}", _source)
for _name, _source in EMPTY_PYTHON.items():
    CASES += in_pythons(_name, _source, Run(verdict=Verdict.WRONG_ANSWER), Run(expected=b""))
