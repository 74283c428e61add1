"""Python: CPython in two ways of starting, and PyPy.

Programs find numpy and sortedcontainers in a directory that set-up fills from a lock and that holds nothing else.
"""

from __future__ import annotations

from sandbox.languages.base import TOOLS, Install, Language, Start, shell

PYTHON = "/usr/bin/python3"
PYPY = "/usr/bin/pypy3"
PYTHON_SUM = "print(sum(map(int, input().split())))\n"

#: On the path of every Python program, by PYTHONPATH.
PYTHON_LIBRARIES = f"{TOOLS}/python"

LIBRARIES = Install(wheels="python")

LANGUAGES = (
    Language(
        id="python",
        name="Python 3",
        source_name="main.py",
        run=(PYTHON, "/prog/main.py"),
        version_command=(PYTHON, "--version"),
        aliases=("py", "py3", "python3", "cpython"),
        start=Start.ZYGOTE,
        checks_python=True,
        self_test=PYTHON_SUM,
        install=LIBRARIES,
        is_default=True,
    ),
    Language(
        id="python-exec",
        name="Python 3, a fresh interpreter for each test",
        source_name="main.py",
        run=(PYTHON, "/prog/main.py"),
        version_command=(PYTHON, "--version"),
        checks_python=True,
        self_test=PYTHON_SUM,
        install=LIBRARIES,
        is_default=True,
    ),
    Language(
        id="pypy",
        name="PyPy 3",
        source_name="main.py",
        # Bytecode is written to wherever the source lies; the jail's /prog cannot be written to.
        compile=shell(
            f'{PYPY} -c \'compile(open("/prog/main.py", "rb").read(), "/prog/main.py", "exec")\'; '
            "cp /prog/main.py /box/main.py"
        ),
        artefact="main.py",
        run=(PYPY, "/prog/main.py"),
        version_command=(PYPY, "-c", "import sys; print('PyPy', sys.version.split('[PyPy ')[1].split()[0])"),
        aliases=("pypy3",),
        self_test=PYTHON_SUM,
        install=Install(apt=("pypy3",), wheels="python"),
    ),
)
