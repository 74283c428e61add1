"""Interpreted languages beside Python and JavaScript: a look at the syntax, then the source itself is run."""

from __future__ import annotations

from sandbox.languages.base import Install, Language, checked, shell

_RUBY = "/usr/bin/ruby"
_PHP = "/usr/bin/php"
_PERL = "/usr/bin/perl"
_LUA = "/usr/bin/lua5.4"
_BASH = "/usr/bin/bash"
_R = "/usr/bin/Rscript"

LANGUAGES = (
    Language(
        id="ruby",
        name="Ruby",
        source_name="main.rb",
        compile=checked(f"{_RUBY} -c", "main.rb"),
        artefact="main.rb",
        # Its own stack of frames is 1 MiB unless told otherwise, whatever the stack of the process.
        run=("/usr/bin/env", "RUBY_THREAD_VM_STACK_SIZE=268435456", _RUBY, "--disable-did_you_mean", "/prog/main.rb"),
        version_command=(_RUBY, "--version"),
        aliases=("rb",),
        self_test="puts gets.split.map(&:to_i).sum\n",
        extra_processes=4,
        reserves_address_space=True,
        install=Install(apt=("ruby",)),
    ),
    Language(
        id="php",
        name="PHP",
        source_name="main.php",
        compile=checked(f"{_PHP} -n -l", "main.php"),
        artefact="main.php",
        # -n: no configuration of this host's; the cgroup limits memory.
        run=(_PHP, "-n", "-d", "memory_limit=-1", "-d", "display_errors=stderr", "/prog/main.php"),
        version_command=(_PHP, "--version"),
        self_test='<?php fscanf(STDIN, "%d %d", $a, $b); echo $a + $b, "\\n";\n',
        reserves_address_space=True,
        install=Install(apt=("php-cli",)),
    ),
    Language(
        id="perl",
        name="Perl",
        source_name="main.pl",
        compile=checked(f"{_PERL} -c", "main.pl"),
        artefact="main.pl",
        run=(_PERL, "/prog/main.pl"),
        version_command=(_PERL, "-e", 'print "Perl $^V\\n"'),
        aliases=("pl",),
        self_test='my ($a, $b) = split " ", <STDIN>; print $a + $b, "\\n";\n',
        install=Install(apt=("perl",)),
    ),
    Language(
        id="lua",
        name="Lua 5.4",
        source_name="main.lua",
        compile=checked("/usr/bin/luac5.4 -p", "main.lua"),
        artefact="main.lua",
        run=(_LUA, "/prog/main.lua"),
        version_command=(_LUA, "-v"),
        aliases=("lua5.4",),
        self_test='local a, b = io.read("n", "n")\nprint(a + b)\n',
        install=Install(apt=("lua5.4",)),
    ),
    Language(
        id="bash",
        name="Bash",
        source_name="main.sh",
        compile=checked(f"{_BASH} -n", "main.sh"),
        artefact="main.sh",
        run=(_BASH, "/prog/main.sh"),
        version_command=(_BASH, "--version"),
        aliases=("sh", "shell"),
        self_test="read a b\necho $((a + b))\n",
        install=Install(apt=("bash",)),
    ),
    Language(
        id="r",
        name="R",
        source_name="main.R",
        compile=shell(f"{_R} --vanilla -e 'invisible(parse(\"/prog/main.R\"))' >&2; cp /prog/main.R /box/main.R"),
        artefact="main.R",
        run=(_R, "--vanilla", "--max-ppsize=500000", "/prog/main.R"),
        version_command=(_R, "--version"),
        aliases=("rscript",),
        self_test='numbers <- scan(file("stdin"), quiet = TRUE)\ncat(format(sum(numbers), digits = 15), "\\n")\n',
        extra_processes=8,
        host_paths=("/etc/R",),
        install=Install(apt=("r-base-core",)),
    ),
)
