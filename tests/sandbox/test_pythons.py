"""The two ways to run Python agree to the byte: a fork of the zygote, and a fresh interpreter.

The fresh interpreter is the specification. Each program runs once in each, and exit status, stdout and stderr must be
the same.
"""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from sandbox.compiling import LIMITS
from sandbox.judge import Judge
from sandbox.problem import Submission, TestResult
from sandbox.verdicts import Verdict
from tests.sandbox.calling import PYTHONS
from tests.sandbox.cells import ROOMY, problem

pytestmark = pytest.mark.jail

STDIN = b"3 4\nsecond line\nlast without newline"

PROGRAMS = {
    # -- ending
    "end_of_file": "print('a')",
    "exit_none": "import sys; print('a'); sys.exit()",
    "exit_zero": "import sys; sys.exit(0)",
    "exit_number": "import sys; print('a', end=''); sys.exit(3)",
    "exit_minus_one": "import sys; sys.exit(-1)",
    "exit_256": "import sys; sys.exit(256)",
    "exit_huge": "import sys; sys.exit(2**70)",
    "exit_most_negative": "import sys; sys.exit(-2**63)",
    "exit_true": "import sys; sys.exit(True)",
    "exit_string": "import sys; print('a'); sys.exit('an excuse')",
    "exit_object": "import sys; sys.exit([1, 'x'])",
    "exit_unprintable": "class E:\n    def __str__(self): raise ValueError('no')\nraise SystemExit(E())",
    "exit_tuple": "raise SystemExit(1, 2)",
    "exit_subclass": "class Done(SystemExit): pass\nraise Done(4)",
    "exit_from_function": "def f(n):\n    if n == 0: exit(5)\n    f(n - 1)\nf(50)",
    "exit_builtin": "exit()",
    "quit_builtin": "quit('why')",
    "exit_in_finally": "import sys\ntry: sys.exit(1)\nfinally: print('finally')",
    "exit_caught": "import sys\ntry: sys.exit(1)\nexcept SystemExit as e: print('caught', e.code)",
    "exit_in_group": "raise BaseExceptionGroup('g', [SystemExit(3)])",
    "os_exit": "import os; print('lost'); os._exit(2)",
    "os_exit_flushed": "import os, sys; print('kept'); sys.stdout.flush(); os._exit(2)",
    "os_abort": "import os; print('x', flush=True); os.abort()",
    "killed": "import os, signal; print('x', flush=True); os.kill(os.getpid(), signal.SIGTERM)",
    "interrupted": "print('x', flush=True); raise KeyboardInterrupt",
    "interrupted_by_signal": "import os, signal; print('x'); os.kill(os.getpid(), signal.SIGINT)",
    # -- exceptions
    "exception": "print('before')\n1 / 0",
    "exception_deep": "def f(n):\n    return 1 // n + f(n - 1)\nf(5)",
    "exception_chained": "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise ValueError('x') from e",
    "exception_in_handler": "try:\n    {}['k']\nexcept KeyError:\n    undefined",
    "exception_group": "raise ExceptionGroup('g', [ValueError(1), TypeError(2)])",
    "exception_with_notes": "e = ValueError('x'); e.add_note('note'); raise e",
    "exception_name_hint": "import sys\nsys.stdou.write('')",
    "exception_not_ascii": "raise ValueError('größe \\ud800')",
    "exception_unprintable": "class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E",
    "exception_no_message": "raise AssertionError",
    "exception_own_hook": "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__, len(a))\n1 / 0",
    "exception_broken_hook": "import sys\ndef hook(*a): raise ValueError('hook')\nsys.excepthook = hook\n1 / 0",
    "exception_no_hook": "import sys\ndel sys.excepthook\n1 / 0",
    "traceback_printed": "import traceback\ntry: 1 / 0\nexcept ZeroDivisionError: traceback.print_exc()",
    "traceback_limit": "import sys\nsys.tracebacklimit = 0\n1 / 0",
    "stack_seen": "import traceback; traceback.print_stack()",
    "frames_seen": "import sys\nf = sys._getframe(); print(f.f_code.co_name, f.f_code.co_filename, f.f_lineno)",
    "locals_are_globals": "print(locals() is globals())",
    "memory_error": "x = [0] * 10**15",
    "import_error": "import no_such_module",
    "syntax_error_in_eval": "eval('1 +')",
    "warning": "import warnings; warnings.warn('careful')",
    "syntax_warning": "x = 1\nprint(x is 1)",
    "deprecated_escape": "print('\\d')",
    # -- recursion
    "depth_of_functions": "def f(n):\n    try: return f(n + 1)\n    except RecursionError: return n\nprint(f(0))",
    "depth_of_functions_with_own_limit": (
        "import sys\nsys.setrecursionlimit(300)\n"
        "def f(n):\n    try: return f(n + 1)\n    except RecursionError: return n\nprint(sys.getrecursionlimit())"
    ),
    "depth_of_c_calls": "def f(n):\n    try: return max([n], key=lambda n: f(n + 1))\n"
    "    except RecursionError: return [n]\nd = []\ndef g(n):\n    d.append(n); sorted([0], key=lambda _: g(n + 1))\n"
    "try: g(0)\nexcept RecursionError: pass\nprint(len(d))",
    "depth_of_repr": "x = []\nfor _ in range(10**5): x = [x]\ntry: repr(x)\nexcept RecursionError as e: print(e)",
    "recursion_error_uncaught": "def f(n): return f(n + 1)\nf(0)",
    "deep_recursion": "import sys\nsys.setrecursionlimit(10**6)\ndef f(n): return n and 1 + f(n - 1)\nprint(f(50000))",
    # -- at exit
    "atexit": "import atexit\natexit.register(print, 'first'); atexit.register(print, 'second'); print('main')",
    "atexit_after_exception": "import atexit\natexit.register(print, 'bye')\n1 / 0",
    "atexit_fails": "import atexit\natexit.register(lambda: 1 / 0); atexit.register(print, 'ran'); print('main')",
    "atexit_exits": "import atexit, sys\natexit.register(sys.exit, 9)",
    "atexit_os_exit": "import atexit, os\natexit.register(os._exit, 9); print('lost')",
    "del_at_exit": "class C:\n    def __del__(self): print('deleted', flush=True)\nc = C()\nprint('main')",
    "del_order": "class C:\n    def __init__(self, n): self.n = n\n    def __del__(self): print('del', self.n)\n"
    "a = C('a'); _b = C('b'); c = C('c'); __d = C('d')",
    "del_of_a_cycle": "class C:\n    def __del__(self): print('cycle')\nc = C(); c.me = c",
    "del_fails": "class C:\n    def __del__(self): 1 / 0\nc = C()",
    "del_sees_globals": "class C:\n    def __del__(self): print(word)\nc = C(); word = 'seen'",
    "weakref_finalize": "import weakref\nclass C: pass\nc = C()\nweakref.finalize(c, print, 'finalized')",
    "del_uses_modules": "import os, sys\nclass C:\n    def __del__(self): sys.stdout.write(os.sep)\nc = C()",
    "del_closed_file": "f = open('/tmp/f', 'w')\nclass C:\n    def __del__(self): print(f.closed)\nc = C()",
    "own_stdout_wrapper": "import io\nout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, 'w')))\nout.write('own')",
    "own_stdout_replaced": "import sys, io\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, write_through=False)\n"
    "print('replaced')",
    "open_fd_1": "f = open(1, 'w'); f.write('through fd'); print('and print')",
    "generator_pending": "def g():\n    try: yield 1\n    finally: print('closed')\nx = g(); next(x)",
    "exit_in_del": "import sys\nclass C:\n    def __del__(self): sys.exit(3)\nc = C()",
    "stdout_closed": "import sys; print('a'); sys.stdout.close()",
    "stdout_fd_closed": "import os; print('lost'); os.close(1)",
    "stdout_none": "import sys; print('a'); sys.stdout = None; print('b')",
    "stdout_is_string": "import sys, io; sys.stdout = io.StringIO(); print('kept to itself')",
    "stderr_closed": "import sys; sys.stderr.close(); 1 / 0",
    "stdout_without_flush": "import sys\nclass S:\n    def write(self, s): pass\nsys.stdout = S(); print('x')",
    "stdout_flush_fails": "import sys\nclass S:\n    def write(self, s): pass\n"
    "    def flush(self): raise OSError('f')\nsys.stdout = S()",
    "fork": "import os\nprint('both', flush=True)\nif os.fork() == 0: print('child')\nelse: os.wait(); print('parent')",
    "fork_unflushed": "import os\nprint('twice')\nif os.fork(): os.wait()",
    "subprocess": "import subprocess, sys\nprint(subprocess.run(['/bin/echo', 'hi'], capture_output=True).stdout)",
    # -- threads
    "thread": "import threading\nt = threading.Thread(target=print, args=('t',)); t.start(); t.join(); print('m')",
    "thread_left": "import threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start(); print('main')",
    "thread_daemon": "import threading, time\n"
    "threading.Thread(target=time.sleep, args=(100,), daemon=True).start(); print('main')",
    "thread_fails": "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='T'); t.start(); t.join()",
    "thread_exits": "import threading, sys\nt = threading.Thread(target=sys.exit, args=(3,)); t.start(); t.join()",
    "thread_deep": "import sys, threading\nsys.setrecursionlimit(10**6); threading.stack_size(2**26)\n"
    "def f(n): return n and 1 + f(n - 1)\nt = threading.Thread(target=lambda: print(f(20000))); t.start(); t.join()",
    "thread_names": "import threading\nprint(threading.current_thread().name, threading.active_count(), "
    "threading.main_thread() is threading.current_thread())",
    "thread_in_exception": "import threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start(); 1 / 0",
    "executor_left": "from concurrent.futures import ThreadPoolExecutor\nimport time\n"
    "ThreadPoolExecutor(2).submit(lambda: (time.sleep(0.1), print('done')))",
    "asyncio": "import asyncio\nasync def main(): await asyncio.sleep(0.01); print('async')\nasyncio.run(main())",
    # -- what a program sees of its surroundings
    "name": "print(__name__, __file__, __doc__, __package__, __spec__, __cached__, __annotations__)",
    "globals": "print(list(globals()))",
    "dir": "print(dir())",
    "loader": "print(type(__loader__).__name__, __loader__.name, __loader__.path)",
    "builtins_is_module": "print(type(__builtins__), __builtins__.len)",
    "builtins": "import builtins; print(sorted(dir(builtins)))",
    "docstring": "'''words'''\nprint(__doc__)",
    "annotations": "x: int = 1\ny: 'str'\nprint(__annotations__)",
    "future": "from __future__ import annotations\nx: undefined\nprint(__annotations__)",
    "main_module": "import __main__, sys; print(__main__ is sys.modules['__main__'], __main__.__dict__ is globals())",
    "argv": "import sys; print(sys.argv)",
    "path": "import sys; print(sys.path)",
    "cwd": "import os; print(os.getcwd(), sorted(os.environ.items()))",
    "ids": "import os; print(os.getuid(), os.geteuid(), os.getgid(), os.getgroups(), os.getpid() > 1)",
    "signals": "import signal\nprint([(n, str(signal.getsignal(n))) for n in (1, 2, 13, 15, 17, 25)])",
    "umask_and_limits": "import os, resource\nprint(os.umask(0), [resource.getrlimit(n) for n in range(16)])",
    "own_modules_hidden": "import sys\nprint({'wire', 'zygote', 'warden'} & set(sys.modules))\nimport wire",
    "import_of_itself": "if __name__ == '__main__':\n    import main; print(main.__name__)\nelse: print('again')",
    "import_from_cwd": "open('mine.py', 'w').write('x = 1')\nimport mine",
    "pickle_of_main": "import pickle\nclass C: pass\nprint(type(pickle.loads(pickle.dumps(C()))) is C)",
    "dataclass": "from dataclasses import dataclass\n@dataclass(order=True)\nclass P: x: int\nprint(P(1) < P(2))",
    "typing": "import typing\ndef f(x: 'int') -> str: ...\nprint(typing.get_type_hints(f))",
    "inspect": "import inspect\ndef f(): pass\nprint(inspect.getsource(f), inspect.getfile(f))",
    "help": "help(len)",
    "help_repr": "print(help, exit, quit)",
    "license": "print(license, copyright is not None)",
    "underscore": "print('_' in dir())",
    "hash_of_strings": "print(hash('a'), list({'x', 'y', 'z', 'w'}))",
    "flags": "import sys\nprint(sys.flags.optimize, sys.flags.hash_randomization, sys.flags.utf8_mode, __debug__, "
    "sys.flags.dev_mode, sys.flags.interactive)",
    "int_digits": "import sys; print(sys.get_int_max_str_digits())\nint('9' * 5000)",
    "gc": "import gc; print(gc.isenabled(), gc.get_threshold(), gc.garbage)",
    "gc_collects": "import gc, weakref\nclass C: pass\nc = C(); c.me = c; w = weakref.ref(c); del c; gc.collect(); "
    "print(w())",
    "locale": "import locale; print(locale.getlocale(), locale.getpreferredencoding())",
    "argparse": "import argparse; argparse.ArgumentParser().parse_args(['--x'])",
    "doctest": "'''\n>>> 1 + 1\n3\n'''\nimport doctest; print(doctest.testmod())",
    "unittest": "import unittest, sys\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(1, 1)\n"
    "r = unittest.main(exit=False, argv=['x'], testRunner=unittest.TextTestRunner(open('/dev/null', 'w')))\n"
    "print(r.result.testsRun)",
    # -- streams
    "stream_names": "import sys\nprint([(s.name, s.mode, s.encoding, s.errors, s.line_buffering, s.isatty(), "
    "s.newlines) for s in (sys.stdin, sys.stdout, sys.stderr)])",
    "stream_layers": "import sys\nprint([(type(s), type(s.buffer), s.buffer.name, s.buffer.mode, type(s.buffer.raw), "
    "s.buffer.raw.name, s.buffer.raw.mode, s.buffer.raw.closefd) for s in (sys.stdin, sys.stdout, sys.stderr)])",
    "stream_reprs": "import sys; print(sys.stdin, sys.stdout, sys.stderr, sys.stdin.buffer, sys.stdout.buffer)",
    "stream_originals": "import sys; print(sys.__stdin__ is sys.stdin, sys.__stdout__ is sys.stdout)",
    "stream_seek": "import sys\nprint(sys.stdin.seekable(), sys.stdin.tell(), sys.stdout.seekable())\n"
    "sys.stdin.read(3); sys.stdin.seek(0); print(sys.stdin.read(3))",
    "stream_order": "import sys, os\nprint('print'); os.write(1, b'write\\n'); sys.stdout.buffer.write(b'buffer\\n')",
    "input": "print(input().split(), input(), input())",
    "input_prompt": "print(input('prompt> '))",
    "input_end": "for _ in range(4): print(input())",
    "input_end_caught": "try:\n    while True: print(input())\nexcept EOFError as e: print('EOF', e)",
    "input_after_read": "import sys; sys.stdin.read(2); print(input())",
    "input_then_read": "import sys; input(); print(repr(sys.stdin.read()), repr(sys.stdin.read()))",
    "input_buffer": "import sys; print(sys.stdin.buffer.readline(), sys.stdin.buffer.read())",
    "input_lines": "import sys; print([line for line in sys.stdin], sys.stdin.readlines())",
    "input_open_0": "print(open(0).read())",
    "input_fileinput": "import fileinput; print([line for line in fileinput.input()])",
    "input_os_read": "import os; print(os.read(0, 4)); print(input())",
    "input_redefined": "import sys\ninput = sys.stdin.readline\nprint(repr(input()), repr(input()))",
    "input_stdin_replaced": "import sys, io\nsys.stdin = io.StringIO('own'); print(input())",
    "input_stdin_closed": "import sys\nsys.stdin.close()\nprint(input())",
    "encoding_out": "print('größe 你好 🎉')",
    "encoding_surrogate": "print('\\ud800')",
    "encoding_reconfigured": "import sys; sys.stdout.reconfigure(encoding='latin-1'); print('é')",
    "encoding_errors": "import sys; print('\\udcff'); sys.stdout.reconfigure(errors='strict'); print('\\udcff')",
    "newlines": "import sys; print('a\\r\\nb\\n\\rc', end='\\r'); sys.stdout.write('\\n')",
    "flood": "print('x' * 500000)",
    "both_streams": "import sys\nfor i in range(3): print(i); print(-i, file=sys.stderr)",
    # -- sources
    "nothing": "",
    "only_comment": "# -*- coding: utf-8 -*-",
    "crlf": "x = 1\r\nif x:\r\n    print('crlf')\r\n",
    "byte_order_mark": "\ufeffprint('mark')",
    "shadowed_builtins": "print, len = len, print\nlen(print([1]))",
    "broken_builtins": "import builtins\nprint('x')\nbuiltins.print = builtins.open = builtins.Exception = None",
    "cleared_builtins": "import builtins\nprint('x')\nvars(builtins).clear()",
    "broken_signals": "import signal\nsignal.signal = signal.SIGINT = None\nraise KeyboardInterrupt",
    "broken_os": "import os\nprint('x')\nos._exit = os.kill = os.getpid = None",
    "broken_modules": "import sys\nprint('x'); sys.modules.clear()",
    "broken_sys": "import sys\nprint('x')\nfor n in ('modules', 'path', 'argv'): delattr(sys, n)",
    "broken_atexit": "import atexit\natexit.register(print, 'never'); atexit._clear(); print('x')",
    "broken_threading": "import threading\nprint('x'); threading._shutdown = None",
    "trace": "import sys\nn = 0\ndef t(*a):\n    global n; n += 1; return t\ndef f():\n    x = 1\n    return x\n"
    "sys.settrace(t); f(); sys.settrace(None); print(n)",
}  # fmt: skip

#: What a fresh interpreter says on stderr of its own stack, compiler or end, and a fork says otherwise.
STDERR_DIFFERS = frozenset(
    {"atexit_exits", "del_fails", "exit_in_del", "stack_seen", "stderr_closed", "syntax_warning"}
)


def outcome(result: TestResult, name: str) -> dict[str, object]:
    """What must agree; addresses of objects aside."""
    return {
        "exit_code": result.exit_code,
        "signal": result.signal,
        "stdout": result.stdout_tail,
        "stderr": b"" if name in STDERR_DIFFERS else re.sub(rb"0x[0-9a-f]+", b"0x", result.stderr_tail),
    }


@pytest.mark.parametrize("name", PROGRAMS)
def test_forked_and_fresh_interpreters_agree(judge: Judge, name: str) -> None:
    test = problem((STDIN, b""))
    forked, fresh = (
        judge.judge(Submission(test, language, PROGRAMS[name].encode(), ROOMY))
        for language in ("python", "python-exec")
    )
    assert outcome(forked.tests[0], name) == outcome(fresh.tests[0], name)


def test_the_second_fork_is_like_the_first(judge: Judge) -> None:
    """Whatever a program breaks, it breaks in its own copy."""
    for name in ("broken_builtins", "broken_modules", "broken_sys", "broken_threading", "stdout_closed"):
        twice = problem((STDIN, b""), (STDIN + b" ", b""))
        first, second = judge.judge(Submission(twice, "python", PROGRAMS[name].encode(), ROOMY)).tests
        assert outcome(first, name) == outcome(second, name)


FORKS = """
import os
for _ in range(260):
    if os.fork() == 0: os._exit(0)
    os.wait()
print(7)
"""

LONG_TO_COMPILE = FORKS + "x = [" + "1234567, " * 200_000 + "]\n"


@pytest.mark.parametrize("language", PYTHONS)
def test_a_source_at_the_edge_of_what_compiling_may_take_has_a_verdict(
    judge: Judge, monkeypatch: pytest.MonkeyPatch, language: str
) -> None:
    """It compiles in the first cell, and takes a little more in the next, which a program can ask for at will."""
    source = LONG_TO_COMPILE.encode()
    tests = problem((b"1", b"7"), (b"22", b"7"), (b"333", b"7"))
    limits = replace(ROOMY, cpu_s=4 * ROOMY.cpu_s, wall_s=60.0)
    compiled = judge.judge(Submission(tests, language, source, limits)).compile
    assert compiled is not None

    def tighten(_: TestResult) -> None:
        monkeypatch.setattr("sandbox.compiling.LIMITS", replace(LIMITS, cpu_s=0.7 * compiled.cpu_s))

    judgement = judge.judge(Submission(tests, language, source, limits), on_test=tighten)
    assert [result.verdict for result in judgement.tests] == [Verdict.ACCEPTED] * 3, judgement.tests[2].message


def test_a_source_that_compiles_no_more_is_a_fault_of_the_graders(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = LONG_TO_COMPILE.encode()
    tests = problem((b"1", b"7"), (b"22", b"7"), (b"333", b"7"))

    def tighten(_: TestResult) -> None:
        monkeypatch.setattr("sandbox.compiling.LIMITS", replace(LIMITS, cpu_s=0.01))

    judgement = judge.judge(Submission(tests, "python", source, ROOMY), on_test=tighten)
    assert [result.verdict.value for result in judgement.tests] == ["accepted", "accepted", "internal_error"]


def test_a_source_that_takes_long_to_compile_is_not_compiled_for_each_test(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long: longer than what such a program here surely takes, on however fast a machine."""
    monkeypatch.setattr("sandbox.program.COSTLY_S", 0.05)
    source = LONG_TO_COMPILE.encode()
    tests = problem(*((b"1" * length, b"7") for length in range(1, 4)))
    started = judge.cells_started
    judgement = judge.judge(Submission(tests, "python", source, ROOMY))
    assert judgement.compile is not None
    assert [result.verdict for result in judgement.tests] == [Verdict.ACCEPTED] * 3, judgement.compile.message
    assert judgement.compile.cpu_s > 0.05
    assert judge.cells_started == started + 1
