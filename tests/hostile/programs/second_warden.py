"""Defuses every way out of the interpreter, so as to fall back into the code that forked this process."""
import builtins
import os
import sys

print("held", flush=True)
for module, names in (
    (os, ["_exit", "abort", "kill", "waitpid", "wait4", "fork", "close", "closerange", "read", "write", "pipe"]),
    (sys, ["exit", "excepthook", "unraisablehook", "stdin"]),
    (builtins, ["exit", "quit", "SystemExit", "BaseException", "open", "exec", "print", "__import__", "len", "any"]),
):
    for name in names:
        if hasattr(module, name):
            setattr(module, name, lambda *arguments, **options: None)
for name in ("json", "socket", "signal", "select", "resource", "io", "struct", "wire", "zygote", "warden"):
    module = sys.modules.get(name)
    if module is not None:
        for attribute in list(vars(module)):
            if not attribute.startswith("__"):
                setattr(module, attribute, lambda *arguments, **options: None)
