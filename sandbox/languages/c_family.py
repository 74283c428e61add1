"""C and C++, by g++ and by clang++."""

from __future__ import annotations

from sandbox.languages.base import Install, Language

C_SUM = '#include <stdio.h>\nint main(void) { long a, b; scanf("%ld %ld", &a, &b); printf("%ld\\n", a + b); }\n'
CPP_SUM = "#include <bits/stdc++.h>\nint main() { long a, b; std::cin >> a >> b; std::cout << a + b << '\\n'; }\n"

#: Where cells find the precompiled headers, a directory for each language id.
HEADERS_IN_JAIL = "/rkgrade-headers"

DIAGNOSTICS = ("-fdiagnostics-color=never", "-fmax-errors=20")


def _flags(standard: str, diagnostics: tuple[str, ...] = DIAGNOSTICS) -> tuple[str, ...]:
    # GNU dialects, as on the sites the data sets come from: their programs use its extensions. Statically linked:
    # starting a dynamic program costs as much again as running a trivial one.
    return ("-O2", f"-std={standard}", "-static", *diagnostics)


def _gcc(language_id: str, name: str, standard: str, aliases: tuple[str, ...]) -> Language:
    header = ("-I", f"{HEADERS_IN_JAIL}/{language_id}")
    return Language(
        id=language_id,
        name=name,
        source_name="main.cpp",
        compile=("/usr/bin/g++", *_flags(standard), *header, "-o", "/box/main", "/prog/main.cpp"),
        run=("/prog/main",),
        version_command=("/usr/bin/g++", "--version"),
        aliases=aliases,
        header=("/usr/bin/g++", *_flags(standard)),
        self_test=CPP_SUM,
        install=Install(apt=("g++",)),
        is_default=True,
    )


def _clang(language_id: str, name: str, standard: str, aliases: tuple[str, ...]) -> Language:
    flags = _flags(standard, ("-fno-color-diagnostics", "-ferror-limit=20"))
    return Language(
        id=language_id,
        name=name,
        source_name="main.cpp",
        compile=("/usr/bin/clang++", *flags, "-o", "/box/main", "/prog/main.cpp"),
        run=("/prog/main",),
        version_command=("/usr/bin/clang++", "--version"),
        aliases=aliases,
        self_test=CPP_SUM,
        install=Install(apt=("clang",)),
    )


LANGUAGES = (
    Language(
        id="c",
        name="C17",
        source_name="main.c",
        compile=("/usr/bin/gcc", *_flags("gnu17"), "-o", "/box/main", "/prog/main.c", "-lm"),
        run=("/prog/main",),
        version_command=("/usr/bin/gcc", "--version"),
        aliases=("c17", "c11", "gcc"),
        self_test=C_SUM,
        install=Install(apt=("gcc",)),
        is_default=True,
    ),
    _gcc("cpp", "C++17", "gnu++17", ("c++", "c++17", "cpp17", "g++", "g++17", "cxx", "cc", "c++14", "c++11")),
    _gcc("cpp20", "C++20", "gnu++20", ("c++20", "g++20")),
    _gcc("cpp23", "C++23", "gnu++2b", ("c++23", "g++23")),
    _clang("cpp-clang", "C++17, by clang", "gnu++17", ("clang++", "clang++17", "clang")),
    _clang("cpp20-clang", "C++20, by clang", "gnu++20", ("clang++20",)),
    _clang("cpp23-clang", "C++23, by clang", "gnu++2b", ("clang++23",)),
)
