"""Reports as JSON what a program finds around itself."""
import fcntl
import json
import os
import resource

here = {}
here["uids"] = list(os.getresuid())
here["gids"] = list(os.getresgid())
here["groups"] = [group for group in os.getgroups() if group != os.getgid()]
with open("/proc/self/status") as file:
    here["status"] = {name: value.strip() for name, value in (line.split(":", 1) for line in file)}
with open("/proc/self/uid_map") as file:
    here["uid_map"] = [[int(word) for word in line.split()] for line in file]

descriptors = []
for number in range(4096):
    try:
        fcntl.fcntl(number, fcntl.F_GETFD)
        descriptors.append(number)
    except OSError:
        pass
here["descriptors"] = descriptors
here["descriptor_rights"] = [
    ["read", "write", "both"][fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE] for number in range(3)
]
here["environment"] = dict(os.environ)
here["processes"] = sum(name.isdigit() for name in os.listdir("/proc"))
here["parent"] = os.getppid()
here["session_leader"] = os.getsid(0) == os.getpid()

with open("/proc/self/net/dev") as file:
    here["interfaces"] = [line.split(":")[0].strip() for line in file.readlines()[2:]]
with open("/proc/self/net/route") as file:
    here["routes"] = len(file.readlines()[1:])
with open("/proc/self/net/fib_trie") as file:
    here["interfaces_up"] = [line.strip() for line in file if "host" in line]

with open("/proc/self/mounts") as file:
    here["mounts"] = {fields[1]: fields[3].split(",") for fields in map(str.split, file)}
writable = []
for top, directories, _ in os.walk("/"):
    if top == "/proc" or top.count("/") > 4:
        directories.clear()
    if os.access(top, os.W_OK):
        writable.append(top)
here["writable_directories"] = sorted(writable)
here["devices"] = sorted(os.listdir("/dev"))
here["root"] = sorted(os.listdir("/"))
here["etc"] = sorted(os.listdir("/etc"))

# Of what lies in /proc only files of this very process may be open for writing.
writable = []
for top, directories, files in os.walk("/proc"):
    if top == "/proc":
        directories[:] = [name for name in directories if not name.isdigit() and name not in ("self", "thread-self")]
    for name in files:
        path = os.path.join(top, name)
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            writable.append(path)
        except OSError:
            pass
here["writable_proc"] = writable
try:
    with open("/proc/1/cmdline") as file:
        here["boot_command_line_of_warden"] = file.read()
except OSError:
    here["boot_command_line_of_warden"] = None

here["cores"] = sorted(os.sched_getaffinity(0))
with open("/proc/self/oom_score_adj") as file:
    here["oom_score_adjustment"] = int(file.read())
here["nice"] = os.getpriority(os.PRIO_PROCESS, 0)
here["limits"] = {
    name: resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")
}
here["hostname"] = os.uname().nodename
here["working_directory"] = os.getcwd()
print(json.dumps(here))
