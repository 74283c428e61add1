"""Looks for another test's words in every page this process may read, and in every live object."""
import ctypes
import gc
import re

# The pattern does not match itself, nor does any constant here.
pattern = re.compile(rb"NEEDLE-[0-9a-f]{16}")
found = set()
with open("/proc/self/maps") as maps:
    areas = maps.read().splitlines()
for area in areas:
    span, rights, *_, name = (*area.split(), "")
    if not rights.startswith("r") or "[v" in area or ".so" in area:
        continue
    start, end = (int(x, 16) for x in span.split("-"))
    if end - start > 64 << 20:
        continue
    found.update(pattern.findall(ctypes.string_at(start, end - start)))
for thing in gc.get_objects():
    if isinstance(thing, dict):
        for value in list(thing.values()):
            if isinstance(value, (str, bytes)):
                found.update(pattern.findall(value if isinstance(value, bytes) else value.encode(errors="replace")))
print(*(word.decode() for word in sorted(found)) if found else ["held"])
