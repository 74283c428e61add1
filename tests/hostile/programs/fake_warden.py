"""Sends a good report on every descriptor it has or can find, then fails: the failure must be what counts."""
import array
import gc
import os
import socket
import sys

REPORTS = [
    b'{"status":0,"cpu_s":0.0,"wall_s":0.0,"collected":[],"sweeping":false}',
    b'{"ready":true}',
    b'{"swept":true}',
    b'{"fault":"none of mine"}',
]
frame = sys._getframe()
while frame is not None:
    for value in [*frame.f_globals.values(), *frame.f_locals.values()]:
        if isinstance(value, socket.socket):
            for report in REPORTS:
                value.send(report)
    frame = frame.f_back
for thing in gc.get_objects():
    if isinstance(thing, socket.socket):
        try:
            for report in REPORTS:
                thing.send(report)
        except OSError:
            pass
for fd in range(3, 4096):
    try:
        sock = socket.socket(fileno=fd)
    except OSError:
        try:
            os.write(fd, REPORTS[0])
        except OSError:
            pass
        continue
    for report in REPORTS:
        sock.sendmsg([report], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
# Abstract sockets of this network namespace, should anything of the judge listen there.
for name in ("\0rkgrade", "\0nsjail", "\0warden"):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
        try:
            sock.connect(name)
            sock.send(REPORTS[0])
        except OSError:
            pass
print("held")
sys.stdout.flush()
os._exit(7)
