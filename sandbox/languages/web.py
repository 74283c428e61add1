"""JavaScript and TypeScript, by Node.js.

Memory is limited by the cgroup alone: the engine's own limit is set to all of the memory limit, so that it is the
kernel that decides, and a limit on address space, of which the engine reserves gigabytes, is never set.
"""

from __future__ import annotations

from sandbox.languages.base import TOOLS, Install, Language, checked

NODE = "/usr/bin/node"

#: The pool of file operations, compiler and collector threads: 10 on one core.
THREADS = 32

JAVASCRIPT_SUM = """
const [a, b] = require("fs").readFileSync(0, "utf8").split(" ").map(Number);
console.log(a + b);
"""
TYPESCRIPT_SUM = """
import { readFileSync } from "fs";

const [a, b]: number[] = readFileSync(0, "utf8").split(" ").map(Number);
console.log(a + b);
"""

_RUN = (NODE, "--stack-size={most_stack_kb}", "--max-old-space-size={memory_mb}", "/prog/main.js")

_TYPESCRIPT = f"{TOOLS}/typescript/lib/typescript.js"

#: Types are taken out, not checked: what they are checked against (declarations of Node.js) no two sites share.
_TRANSPILE = f"""
const fs = require("fs"), ts = require("{_TYPESCRIPT}");
const text = fs.readFileSync("/prog/main.ts", "utf8");
const compilerOptions = {{ target: "ES2022", module: "CommonJS", esModuleInterop: true }};
const done = ts.transpileModule(text, {{ compilerOptions, fileName: "main.ts", reportDiagnostics: true }});
const host = {{ getCanonicalFileName: (name) => name, getCurrentDirectory: () => "", getNewLine: () => "\\n" }};
if (done.diagnostics.length) {{
    process.stderr.write(ts.formatDiagnostics(done.diagnostics, host));
    process.exit(1);
}}
fs.writeFileSync("/box/main.js", done.outputText);
"""

LANGUAGES = (
    Language(
        id="javascript",
        name="JavaScript",
        source_name="main.js",
        compile=checked(f"{NODE} --check", "main.js"),
        artefact="main.js",
        run=_RUN,
        version_command=(NODE, "-p", "'Node.js ' + process.version"),
        aliases=("js", "node", "nodejs"),
        self_test=JAVASCRIPT_SUM,
        extra_processes=THREADS,
        reserves_address_space=True,
        install=Install(apt=("nodejs",)),
        is_default=True,
    ),
    Language(
        id="typescript",
        name="TypeScript",
        source_name="main.ts",
        compile=(NODE, "-e", _TRANSPILE),
        artefact="main.js",
        run=_RUN,
        version_command=(NODE, "-p", f"'TypeScript ' + require('{TOOLS}/typescript/package.json').version"),
        aliases=("ts",),
        self_test=TYPESCRIPT_SUM,
        extra_processes=THREADS,
        reserves_address_space=True,
        needs=(_TYPESCRIPT,),
        install=Install(
            apt=("nodejs",),
            npm=(
                "typescript@5.9.3",
                "sha512-jl1vZzPDinLr9eUt3J/t7V6FgNEw9QjvBPdysz9KfQDD41fQrC2Y4vKQdiaUpFT4bXlb1RHhLpp8wtm6M5TgSw==",
                "typescript",
            ),
        ),
    ),
)
