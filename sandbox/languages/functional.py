"""Haskell, OCaml, and C#: compiled languages with runtimes and collectors of their own."""

from __future__ import annotations

from sandbox.languages.base import Install, Language, shell

HASKELL_SUM = 'main :: IO ()\nmain = interact $ \\text -> show (sum (map read (words text) :: [Integer])) ++ "\\n"\n'

OCAML_SUM = 'let () = Scanf.scanf " %d %d" (fun a b -> Printf.printf "%d\\n" (a + b))\n'

CSHARP_SUM = """
using System;
using System.Linq;

class Program {
    static void Main() {
        Console.WriteLine(Console.ReadLine().Split().Select(long.Parse).Sum());
    }
}
"""

LANGUAGES = (
    Language(
        id="haskell",
        name="Haskell",
        source_name="main.hs",
        # -main-is is left alone: whatever the module is called, `main` in it is the program.
        compile=(
            "/usr/bin/ghc",
            "-O2",
            "-v0",
            "-threaded",
            "-rtsopts",
            "-fdiagnostics-color=never",
            "-outputdir",
            "/tmp/ghc",
            "-o",
            "/box/main",
            "/prog/main.hs",
        ),
        # The stack lies on the heap and is bounded by a share of the machine's memory: the cgroup is to decide.
        run=("/prog/main", "+RTS", "-K{memory_mb}m", "-RTS"),
        version_command=("/usr/bin/ghc", "--version"),
        aliases=("hs", "ghc"),
        self_test=HASKELL_SUM,
        compile_time_factor=4.0,
        extra_processes=16,
        reserves_address_space=True,
        host_paths=("/var/lib/ghc",),
        install=Install(apt=("ghc",)),
    ),
    Language(
        id="ocaml",
        name="OCaml",
        source_name="main.ml",
        compile=shell(
            # What it makes of a source lies beside it.
            "cp /prog/main.ml /tmp; cd /tmp; "
            "ocamlopt -I +threads -w -a -unsafe -inline 100 unix.cmxa str.cmxa threads.cmxa -o /box/main main.ml"
        ),
        run=("/prog/main",),
        version_command=("/usr/bin/ocamlopt", "-version"),
        aliases=("ml",),
        self_test=OCAML_SUM,
        extra_processes=4,
        install=Install(apt=("ocaml-nox",)),
    ),
    Language(
        id="csharp",
        name="C# (Mono)",
        source_name="main.cs",
        compile=(
            "/usr/bin/mcs",
            "-optimize+",
            "-unsafe",
            "-nowarn:0162,0168,0219,0414,0649",
            "-r:System.Numerics.dll",
            "-out:/box/main.exe",
            "/prog/main.cs",
        ),
        artefact="main.exe",
        run=("/usr/bin/mono", "/prog/main.exe"),
        version_command=("/usr/bin/mcs", "--version"),
        aliases=("c#", "cs", "mono"),
        self_test=CSHARP_SUM,
        extra_processes=32,
        reserves_address_space=True,
        host_paths=("/etc/mono",),
        install=Install(apt=("mono-mcs", "libmono-system-core4.0-cil", "libmono-system-numerics4.0-cil")),
    ),
)
