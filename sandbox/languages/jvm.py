"""Languages of the Java virtual machine: Java, Kotlin, Scala.

Theory of operation
-------------------
A program is one jar, so that its artefact is one file. Compilers and programs run with archives of classes made once
(class-data sharing), which take most of the start-up: of Kotlin's compiler two thirds. An archive of another machine's
version is not used, and nothing else comes of it.

The heap is what the memory limit leaves beside the machine's own needs. A program that fills it has met its memory
limit although its cgroup has not; so the machine is told to run, when it is out of memory, a command that allocates
until the cgroup ends it: what decides is the kernel's word, as for every other program, and nothing that a program
could say of itself.
"""

from __future__ import annotations

from pathlib import Path

from sandbox.languages.base import TOOLS, Install, Language, Prebuilt, shell

JAVA = "/usr/bin/java"
FILES = Path(__file__).parent / "files"
JDK = Install(apt=("openjdk-17-jdk-headless|default-jdk-headless",))

#: The tables of files that the machine's own directory links to.
CONFIGURATION = ("/etc/java-*-openjdk",)

#: Compiler threads, the collector, finalizers and signals: 13 on one core, more on hosts with many.
THREADS = 64

#: A+B takes 16 MiB beside its heap; compiled code, class tables and stacks of larger programs come on top.
OVERHEAD_MB = 64

_COMPILER = (JAVA, "-Xshare:auto", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Xmx1024m")


def _run(archive: str, *boot: str) -> tuple[str, ...]:
    return (
        JAVA,
        "-Xshare:auto",
        f"-XX:SharedArchiveFile={archive}",
        *boot,
        "-XX:+UseSerialGC",
        "-XX:-UsePerfData",
        "-Xms{heap_mb}m",
        "-Xmx{heap_mb}m",
        "-Xss{stack_kb}k",
        "-XX:OnOutOfMemoryError=/usr/bin/tail /dev/zero",
        "-jar",
        "/prog/main.jar",
    )


def _record(name: str, command: str) -> str:
    return f"{JAVA} -Xshare:off -XX:+UseSerialGC -XX:DumpLoadedClassList={name} {command} </dev/null >/dev/null"


def _dump(archive: str, classes: str, class_path: str) -> str:
    return (
        f"{JAVA} -Xshare:dump -XX:SharedClassListFile={classes} -XX:SharedArchiveFile={archive} {class_path} "
        ">/dev/null 2>&1"
    )


def _dump_without_class_path(archive: str, classes: str, boot: str = "") -> str:
    """An archive that serves whatever the class path is; its classes are the machine's own.

    Programs' own classes, and their lambdas, are taken off the list. The machine archives nothing where its class path
    is a directory that holds something, and without one given it is the directory that it was started in.
    """
    return (
        f"grep -v -e source: -e '^#' -e '^@lambda-proxy' {classes} | sed 's/ id: .*//' >{classes}.own; "
        f"mkdir -p nothing; cd nothing; {_dump(f'../{archive}', f'../{classes}.own', boot)}"
    )


JAVA_ARCHIVE = Prebuilt(
    "java",
    files=tuple((name, (FILES / name).read_text()) for name in ("Compile.java", "Train.java")),
    commands=(
        ("/usr/bin/javac", "-d", ".", "Compile.java"),
        shell(_record("compiler", "-cp . Compile Train.java train.jar")),
        shell(_dump_without_class_path("compiler.jsa", "compiler")),
        shell(_record("classes", "-jar train.jar")),
        shell(_dump_without_class_path("classes.jsa", "classes")),
    ),
)
_JAVA_CLASSES = f"{JAVA_ARCHIVE.in_jail}/classes.jsa"

JAVA_SUM = """
import java.util.Scanner;

public class Sum {
    public static void main(String[] arguments) {
        Scanner in = new Scanner(System.in);
        System.out.println(in.nextLong() + in.nextLong());
    }
}
"""

_KOTLIN_LIB = f"{TOOLS}/kotlin/lib"
_KOTLIN_COMPILER = f"{_KOTLIN_LIB}/kotlin-compiler.jar"
_KOTLIN_BOOT = f"-Xbootclasspath/a:{_KOTLIN_LIB}/kotlin-stdlib.jar"
_KOTLINC = "org.jetbrains.kotlin.cli.jvm.K2JVMCompiler -no-reflect -nowarn -jvm-target 17"

KOTLIN_SUM = """
fun main() {
    val (a, b) = readLine()!!.split(" ").map { it.toLong() }
    println(a + b)
}
"""
_KOTLIN_TRAIN = """
import java.util.*

data class Edge(val to: Int, val weight: Long)

fun main() {
    val words = (readLine() ?: "1 2").split(" ").map { it.toLong() }
    val graph = Array(5) { mutableListOf<Edge>() }
    for (i in 0 until 20) graph[i % 5].add(Edge(i, i.toLong()))
    val sorted = graph.flatMap { it }.sortedByDescending { it.weight }.groupBy { it.to % 3 }.mapValues { it.value.size }
    val queue = PriorityQueue<Edge>(compareBy { it.weight })
    queue.addAll(graph[0])
    val text = buildString { for ((key, value) in sorted) append("$key=$value ") }
    println(words.sum() + queue.poll().weight)
    println(text + (1..10).filter { it % 2 == 0 }.joinToString(",") + ArrayDeque(listOf(1, 2)).removeFirst())
}
"""
KOTLIN_ARCHIVE = Prebuilt(
    "kotlin-archive",
    files=(("train.kt", _KOTLIN_TRAIN),),
    commands=(
        shell(_record("compiler", f"-cp {_KOTLIN_COMPILER} {_KOTLINC} -d train.jar train.kt")),
        shell(_dump("compiler.jsa", "compiler", f"-cp {_KOTLIN_COMPILER}")),
        shell(_record("classes", f"{_KOTLIN_BOOT} -jar train.jar")),
        shell(_dump_without_class_path("classes.jsa", "classes", _KOTLIN_BOOT)),
    ),
)

_SCALA_LIB = "/usr/share/java"
_SCALA_COMPILER = ":".join(
    f"{_SCALA_LIB}/{name}.jar"
    for name in (
        "scala-compiler",
        "scala-library",
        "scala-reflect",
        "scala-parser-combinators_2.11",
        "scala-xml_2.11",
    )
)
_SCALA_BOOT = f"-Xbootclasspath/a:{_SCALA_LIB}/scala-library.jar"
_SCALAC = "scala.tools.nsc.Main -usejavacp -nowarn"

SCALA_SUM = """
object Main {
  def main(arguments: Array[String]): Unit = {
    val Array(a, b) = scala.io.StdIn.readLine().split(" ").map(_.toLong)
    println(a + b)
  }
}
"""
SCALA_ARCHIVE = Prebuilt(
    "scala-archive",
    files=(("train.scala", SCALA_SUM.replace("scala.io.StdIn.readLine()", '"1 2"')),),
    commands=(
        shell(_record("compiler", f"-cp {_SCALA_COMPILER} {_SCALAC} -d train.jar train.scala")),
        shell(_dump("compiler.jsa", "compiler", f"-cp {_SCALA_COMPILER}")),
        shell(_record("classes", f"{_SCALA_BOOT} -jar train.jar")),
        shell(_dump_without_class_path("classes.jsa", "classes", _SCALA_BOOT)),
    ),
)

LANGUAGES = (
    Language(
        id="java",
        name="Java",
        source_name="main.java",
        compile=(
            *_COMPILER,
            f"-XX:SharedArchiveFile={JAVA_ARCHIVE.in_jail}/compiler.jsa",
            "-cp",
            JAVA_ARCHIVE.in_jail,
            "Compile",
            "/prog/main.java",
            "/box/main.jar",
        ),
        artefact="main.jar",
        run=_run(_JAVA_CLASSES),
        version_command=(JAVA, "-XX:-UsePerfData", "--version"),
        aliases=("java17", "openjdk"),
        self_test=JAVA_SUM,
        extra_processes=THREADS,
        heap_overhead_mb=OVERHEAD_MB,
        reserves_address_space=True,
        needs=("/usr/bin/javac",),
        host_paths=CONFIGURATION,
        prebuilt=JAVA_ARCHIVE,
        install=JDK,
        is_default=True,
    ),
    Language(
        id="kotlin",
        name="Kotlin",
        source_name="main.kt",
        compile=(
            *_COMPILER,
            f"-XX:SharedArchiveFile={TOOLS}/kotlin-archive/compiler.jsa",
            "-cp",
            _KOTLIN_COMPILER,
            *_KOTLINC.split(),
            "-d",
            "/box/main.jar",
            "/prog/main.kt",
        ),
        artefact="main.jar",
        run=_run(f"{TOOLS}/kotlin-archive/classes.jsa", _KOTLIN_BOOT),
        version_command=("/usr/bin/sed", "s/^/Kotlin /", f"{TOOLS}/kotlin/build.txt"),
        aliases=("kt",),
        self_test=KOTLIN_SUM,
        compile_time_factor=4.0,
        extra_processes=THREADS,
        heap_overhead_mb=OVERHEAD_MB,
        reserves_address_space=True,
        needs=(JAVA, _KOTLIN_COMPILER),
        host_paths=CONFIGURATION,
        install=Install(
            apt=JDK.apt,
            npm=(
                "kotlin-compiler@2.4.20",
                "sha512-IF5IVM7LpPhA/ntHQQpaVt1yxpaaQovtEVYLyqWMuaLr0XelLPPm7/sM6HLhtcRjjjoSsK7I7lP2kzYJkMy73w==",
                "kotlin",
            ),
            made=KOTLIN_ARCHIVE,
        ),
    ),
    Language(
        id="scala",
        name="Scala 2.11",
        source_name="main.scala",
        compile=(
            *_COMPILER,
            "-Xss64m",
            f"-XX:SharedArchiveFile={TOOLS}/scala-archive/compiler.jsa",
            "-cp",
            _SCALA_COMPILER,
            *_SCALAC.split(),
            "-d",
            "/box/main.jar",
            "/prog/main.scala",
        ),
        artefact="main.jar",
        run=_run(f"{TOOLS}/scala-archive/classes.jsa", _SCALA_BOOT),
        version_command=("/usr/bin/readlink", f"{_SCALA_LIB}/scala-library.jar"),
        aliases=("scala2",),
        self_test=SCALA_SUM,
        compile_time_factor=4.0,
        extra_processes=THREADS,
        heap_overhead_mb=OVERHEAD_MB,
        reserves_address_space=True,
        needs=(JAVA, f"{_SCALA_LIB}/scala-compiler.jar"),
        host_paths=CONFIGURATION,
        install=Install(apt=(*JDK.apt, "scala"), made=SCALA_ARCHIVE),
    ),
)
