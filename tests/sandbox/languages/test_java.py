"""Java beyond the ten programs: where a program starts, and what its limits are to its virtual machine."""

from __future__ import annotations

import pytest

from sandbox.judge import Judge
from sandbox.problem import Limits, Submission, TestResult
from sandbox.verdicts import Verdict
from tests.sandbox.cells import MB, problem

pytestmark = pytest.mark.jail

LIMITS = Limits(cpu_s=10.0, wall_s=60.0, memory_bytes=256 * MB)

BODY = 'public static void main(String[] a) { System.out.println("here"); }'


def result(judge: Judge, source: str, limits: Limits = LIMITS, wanted: bytes = b"here\n") -> TestResult:
    judgement = judge.judge(Submission(problem((b"", wanted)), "java", source.encode(), limits))
    assert judgement.compile is not None
    assert judgement.compile.ok, judgement.compile.message
    return judgement.tests[0]


@pytest.mark.parametrize(
    "source",
    [
        f"public class Main {{ {BODY} }}",
        f"public class SomethingElse {{ {BODY} }}",
        f"class notPublic {{ {BODY} }}",
        f"package com.example.deep; import java.util.*; public class Solution {{ {BODY} }}",
        f"class Helper {{ static int f() {{ return 1; }} }} public class Zebra {{ {BODY} }}",
        f"public class Zebra {{ {BODY} }} class Helper {{ }} interface Another {{ }}",
        f"class First {{ public static void main(String[] a) {{ }} }} public class Second {{ {BODY} }}",
        f"public class Outer {{ static class Inner {{ void main() {{ }} }} {BODY} }}",
        f"public class Outer {{ public static class Inner {{ {BODY} }} }}",
        f"public enum Colour {{ RED; {BODY} }}",
        f"interface Program {{ {BODY.replace('public ', '')} }}",
        f"record Point(int x) {{ {BODY} }}",
        "public class Varied { public static final void main(final String... a) { System.out.println(\"here\"); } }",
        f"/* public class Wrong {{ */ public class Größe {{ String s = \"class No {{\"; {BODY} }}",
    ],
)  # fmt: skip
def test_the_class_to_start_is_found_whatever_it_is_called(judge: Judge, source: str) -> None:
    found = result(judge, source)
    assert (found.verdict, found.stderr_tail) == (Verdict.ACCEPTED, b"")


def test_a_source_without_a_class_to_start_is_told_so(judge: Judge) -> None:
    source = b"public class Main { static int f() { return 1; } }"
    judgement = judge.judge(Submission(problem((b"", b"")), "java", source, LIMITS))
    assert judgement.compile is not None
    assert "no class has a method: public static void main" in judgement.compile.message


def test_bytes_that_are_no_text_in_a_comment_do_no_harm(judge: Judge) -> None:
    source = b"// caf\xe9\n" + f"public class Main {{ {BODY} }}".encode()
    judgement = judge.judge(Submission(problem((b"", b"here\n")), "java", source, LIMITS))
    assert judgement.tests[0].verdict is Verdict.ACCEPTED


@pytest.mark.parametrize("memory_mb", [64, 128, 256, 1024])
def test_the_heap_is_what_the_memory_limit_leaves(judge: Judge, memory_mb: int) -> None:
    source = BODY.replace('"here"', "Runtime.getRuntime().maxMemory() >> 20")
    found = result(judge, f"public class Main {{ {source} }}", Limits(cpu_s=10.0, memory_bytes=memory_mb * MB), b"")
    heap_mb = int(found.stdout_tail)
    assert memory_mb / 2 * 0.9 <= heap_mb <= memory_mb


def test_garbage_is_collected_before_the_limit_is_met(judge: Judge) -> None:
    source = """
        public class Main {
            static long sum;
            public static void main(String[] a) {
                for (int i = 0; i < 100000; i++) { int[] b = new int[10000]; b[i % 10000] = i; sum += b[5]; }
                System.out.println("here");
            }
        }
    """
    found = result(judge, source)
    assert (found.verdict, found.stderr_tail) == (Verdict.ACCEPTED, b"")


@pytest.mark.parametrize(
    "statement",
    [
        "long[] x = new long[200000000]; System.out.println(x[5]);",
        "try { long[] x = new long[200000000]; } catch (OutOfMemoryError e) { } System.out.println(1);",
        'StringBuilder s = new StringBuilder("a"); while (true) s.append(s);',
    ],
)
def test_a_heap_that_is_full_is_a_memory_limit_by_the_kernels_word(judge: Judge, statement: str) -> None:
    found = result(judge, f"public class Main {{ public static void main(String[] a) {{ {statement} }} }}")
    assert found.verdict is Verdict.MEMORY_LIMIT


@pytest.mark.parametrize("status", [1, 3, 134, 137])
def test_no_exit_status_passes_for_a_memory_limit(judge: Judge, status: int) -> None:
    source = (
        "public class Main { public static void main(String[] a) { "
        f'System.out.println("java.lang.OutOfMemoryError"); System.exit({status}); }} }}'
    )
    found = result(judge, source)
    assert (found.verdict, found.exit_code) == (Verdict.RUNTIME_ERROR, status)


def test_threads_of_the_machine_are_not_counted_against_the_program(judge: Judge) -> None:
    source = """
        public class Main {
            public static void main(String[] a) throws Exception {
                Thread[] threads = new Thread[40];
                for (int i = 0; i < 40; i++) {
                    threads[i] = new Thread(() -> { try { Thread.sleep(100); } catch (InterruptedException e) { } });
                    threads[i].start();
                }
                for (Thread thread : threads) thread.join();
                System.out.println("here");
            }
        }
    """
    found = result(judge, source, Limits(cpu_s=10.0, memory_bytes=256 * MB, processes=40))
    assert (found.verdict, found.stderr_tail) == (Verdict.ACCEPTED, b"")


def test_an_uncaught_exception_names_the_line_of_the_program(judge: Judge) -> None:
    source = (
        "package p;\n\npublic class Odd {\n"
        + BODY.replace("System", "\nif (a.length == 0) throw new RuntimeException(); System")
        + "}\n"
    )
    found = result(judge, source)
    assert found.verdict is Verdict.RUNTIME_ERROR
    assert b"at p.Odd.main(main.java:5)" in found.stderr_tail
