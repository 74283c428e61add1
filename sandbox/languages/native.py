"""Languages beside C and C++ that are compiled to a program of the machine's own: Rust, Go, Pascal, Fortran, D, Nim."""

from __future__ import annotations

from sandbox.languages.base import TOOLS, Install, Language, Prebuilt, shell

RUST_SUM = """
use std::io::Read;

fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).unwrap();
    println!("{}", text.split_whitespace().map(|word| word.parse::<i64>().unwrap()).sum::<i64>());
}
"""

GO_SUM = """
package main

import "fmt"

func main() {
	var a, b int64
	fmt.Scan(&a, &b)
	fmt.Println(a + b)
}
"""
_GO = f"{TOOLS}/go/go"
_GO_ENVIRONMENT = (
    "/usr/bin/env",
    f"GOROOT={_GO}",
    "GOCACHE=/tmp",
    "GOTOOLCHAIN=local",
    "GOPROXY=off",
    "CGO_ENABLED=0",
    "GOTELEMETRY=off",
    f"{_GO}/bin/go",
)
_GO_PACKAGES = (
    "bufio bytes cmp compress/... container/... context crypto/md5 crypto/rand crypto/sha1 crypto/sha256 crypto/sha512 "
    "encoding/... errors flag fmt hash/... index/suffixarray io/... iter log maps math/... os path regexp/... "
    "os/signal runtime runtime/debug runtime/pprof slices sort strconv strings sync/... text/... time unicode/... "
    "unique unsafe"
)
#: The standard library, compiled once: Go compiles it into a cache on first use, which takes a minute, and a cell's
#: cache would be empty every time. With it the compiler and the linker are called by themselves, as `go build` would.
GO_STANDARD = Prebuilt(
    "go-standard",
    files=(),
    commands=(
        shell(
            f"export GOROOT={_GO} GOCACHE=$PWD GOTOOLCHAIN=local GOPROXY=off CGO_ENABLED=0 GOTELEMETRY=off HOME=$PWD; "
            f"{_GO}/bin/go list -deps -export -f '{{{{if .Export}}}}packagefile {{{{.ImportPath}}}}={{{{.Export}}}}"
            f"{{{{end}}}}' {_GO_PACKAGES} >packages"
        ),
    ),
)
_GO_TOOLS = f"{_GO}/pkg/tool/*"
_GO_IMPORTS = f"-importcfg {TOOLS}/{GO_STANDARD.name}/packages"

PASCAL_SUM = """
var
  a, b: int64;
begin
  readln(a, b);
  writeln(a + b);
end.
"""

FORTRAN_SUM = """
program sum
  integer(8) :: a, b
  read (*, *) a, b
  write (*, '(I0)') a + b
end program
"""

D_SUM = """
import std.stdio;

void main() {
    long a, b;
    readf(" %d %d", &a, &b);
    writeln(a + b);
}
"""

NIM_SUM = """
import std/[strutils, sequtils, math]

echo stdin.readLine.splitWhitespace.mapIt(it.parseInt).sum
"""

LANGUAGES = (
    Language(
        id="rust",
        name="Rust",
        source_name="main.rs",
        compile=(
            "/usr/bin/rustc",
            "--edition=2021",
            "-O",
            "-C",
            "target-feature=+crt-static",
            "-A",
            "warnings",
            "-o",
            "/box/main",
            "/prog/main.rs",
        ),
        run=("/prog/main",),
        version_command=("/usr/bin/rustc", "--version"),
        aliases=("rs", "rust2021"),
        self_test=RUST_SUM,
        compile_time_factor=2.0,
        extra_processes=16,
        install=Install(apt=("rustc-web|rustc",)),
        is_default=True,
    ),
    Language(
        id="go",
        name="Go",
        source_name="main.go",
        compile=shell(
            f"cd /box; {_GO_TOOLS}/compile -p main -complete {_GO_IMPORTS} -pack -o main.a /prog/main.go >&2; "
            f"{_GO_TOOLS}/link {_GO_IMPORTS} -s -w -o main main.a >&2"
        ),
        run=("/prog/main",),
        version_command=(*_GO_ENVIRONMENT, "version"),
        aliases=("golang",),
        self_test=GO_SUM,
        compile_time_factor=2.0,
        extra_processes=32,
        reserves_address_space=True,
        needs=(f"{TOOLS}/{GO_STANDARD.name}/packages",),
        install=Install(wheels="go", made=GO_STANDARD),
        is_default=True,
    ),
    Language(
        id="pascal",
        name="Pascal (Free Pascal)",
        source_name="main.pas",
        # -O2 and no checks, as on the sites; -Sgic: goto, inline, C-like operators.
        compile=shell("fpc -O2 -Sgic -v0ewh- -l- -FE/box -FU/tmp -o/box/main /prog/main.pas >&2"),
        run=("/prog/main",),
        version_command=("/usr/bin/fpc", "-iV"),
        aliases=("pas", "fpc", "freepascal", "delphi"),
        self_test=PASCAL_SUM,
        host_paths=("/etc/fpc*.cfg",),
        install=Install(apt=("fp-compiler",)),
    ),
    Language(
        id="fortran",
        name="Fortran",
        source_name="main.f90",
        compile=(
            "/usr/bin/gfortran",
            "-O2",
            "-static",
            "-fdiagnostics-color=never",
            "-J/tmp",
            "-o",
            "/box/main",
            "/prog/main.f90",
        ),
        run=("/prog/main",),
        version_command=("/usr/bin/gfortran", "--version"),
        aliases=("f90", "gfortran"),
        self_test=FORTRAN_SUM,
        install=Install(apt=("gfortran",)),
    ),
    Language(
        id="d",
        name="D",
        source_name="main.d",
        compile=(
            "/usr/bin/gdc",
            "-O2",
            "-frelease",
            "-static-libphobos",
            "-fdiagnostics-color=never",
            "-o",
            "/box/main",
            "/prog/main.d",
        ),
        run=("/prog/main",),
        version_command=("/usr/bin/gdc", "--version"),
        aliases=("dlang", "gdc"),
        self_test=D_SUM,
        install=Install(apt=("gdc",)),
    ),
    Language(
        id="nim",
        name="Nim",
        source_name="main.nim",
        compile=(
            "/usr/bin/nim",
            "compile",
            "-d:release",
            "--hints:off",
            "--warnings:off",
            "--colors:off",
            "--threads:on",
            "--mm:orc",
            "--nimcache:/tmp/nim",
            "-o:/box/main",
            "/prog/main.nim",
        ),
        run=("/prog/main",),
        version_command=("/usr/bin/nim", "--version"),
        aliases=("nimlang",),
        self_test=NIM_SUM,
        compile_time_factor=2.0,
        host_paths=("/etc/nim",),
        install=Install(apt=("nim",)),
    ),
)
