"""Reports as JSON what a program may reasonably look at in its interpreter before it does anything."""
import json
import signal
import sys
import threading

here = {}
here["version"] = sys.version
here["arguments"] = sys.argv
here["executable"] = sys.executable
here["path"] = sys.path
# The warden's interpreter does not look for modules in the program's home, which is its scratch disk.
here["flags"] = {
    name: getattr(sys.flags, name)
    for name in dir(sys.flags)
    if not name.startswith("_") and isinstance(getattr(sys.flags, name), int) and name != "no_user_site"
}
here["globals"] = sorted(name for name in globals() if name.startswith("__"))
here["file"] = __file__
here["builtins"] = sorted(dir(__builtins__))
here["streams"] = [
    [stream.name, stream.mode, stream.encoding, stream.errors, stream.line_buffering, stream.write_through, stream.isatty(), repr(stream.newlines)]
    for stream in (sys.stdin, sys.stdout, sys.stderr)
]
here["raw"] = [[type(stream.buffer).__name__, stream.buffer.raw.name, stream.buffer.raw.mode] for stream in (sys.stdin, sys.stdout, sys.stderr)]
here["signals"] = {str(number): str(signal.getsignal(number)) for number in range(1, 65) if number not in (32, 33)}
here["threads"] = [thread.name for thread in threading.enumerate()]
here["switch_interval"] = sys.getswitchinterval()
here["digits"] = sys.get_int_max_str_digits()
here["encoding"] = [sys.getdefaultencoding(), sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()]
here["warnings"] = sys.warnoptions
here["hooks"] = [sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__]
here["prefix"] = [sys.prefix, sys.exec_prefix, sys.base_prefix]


def depth(n=1):
    try:
        return depth(n + 1)
    except RecursionError:
        return n


here["depth"] = depth()
print(json.dumps(here))
