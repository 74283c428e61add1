/* Makes the one system call named on stdin. Prints "held" where the kernel refuses it, "escaped" where it works. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char word[64];
static pid_t warden;
static int is(const char *name) { return strcmp(word, name) == 0; }

static int flag_of(const char *name) {
    static const struct { const char *name; int flag; } flags[] = {
        {"user", CLONE_NEWUSER}, {"mnt", CLONE_NEWNS}, {"pid", CLONE_NEWPID}, {"net", CLONE_NEWNET},
        {"ipc", CLONE_NEWIPC}, {"uts", CLONE_NEWUTS}, {"cgroup", CLONE_NEWCGROUP}, {"time", 0x80},
    };
    for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++)
        if (strcmp(flags[i].name, name) == 0) return flags[i].flag;
    abort();
}

static long clone_child(unsigned long flags) {
    long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) _exit(0);
    if (pid > 0) waitpid(pid, 0, 0);
    return pid;
}

/* struct clone_args has 88 bytes; only flags (first) and exit_signal (fifth) matter here. */
static long clone3_child(uint64_t flags) {
    uint64_t arguments[11] = {flags, 0, 0, 0, SIGCHLD};
    long pid = syscall(SYS_clone3, arguments, sizeof arguments);
    if (pid == 0) _exit(0);
    if (pid > 0) waitpid(pid, 0, 0);
    return pid;
}

#if defined(__x86_64__)
/* The 32-bit entry has call numbers of its own: a filter that does not look at the architecture is passed by. */
static long int80(long number, long a, long b, long c) {
    long result;
    __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
    return result < 0 && result > -4096 ? (errno = (int)-result, -1) : result;
}
#endif

/* Whether the kernel keeps a lock, whatever it says of it: another process asks who has it. */
static long locked(int command) {
    struct flock part = {.l_type = F_WRLCK, .l_len = 1}, found = part;
    int fd = open("/tmp/locked", O_CREAT | O_RDWR, 0600), status;
    fcntl(fd, command, &part);
    if (fork() == 0) _exit(fcntl(fd, F_GETLK, &found) == 0 && found.l_type == F_UNLCK ? 10 : 20);
    return wait(&status) > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 10 ? -1 : 0;
}

static long permitted(long result) { return result < 0 && errno == EPERM ? -1 : 0; }

static long attack(void) {
    struct sock_filter allow_all[] = {{0x06, 0, 0, 0x7fff0000}};
    struct sock_fprog filters = {1, allow_all};
    char buffer[64] = "";
    struct iovec mine = {buffer, sizeof buffer}, theirs = {(void *)0x400000, sizeof buffer};
    struct timespec then = {1, 0};
    struct timeval old_time = {1, 0};
    struct perf_event_attr perf = {.type = PERF_TYPE_SOFTWARE, .size = sizeof perf, .config = PERF_COUNT_SW_CPU_CLOCK};
    struct sched_param realtime = {.sched_priority = 1};
    cpu_set_t all;
    memset(&all, 0xff, sizeof all);

    if (strncmp(word, "unshare_", 8) == 0) return unshare(flag_of(word + 8));
    if (strncmp(word, "clone_", 6) == 0) return clone_child((unsigned long)flag_of(word + 6));
    if (strncmp(word, "clone3_", 7) == 0) return clone3_child((uint64_t)flag_of(word + 7));

    if (is("kill_warden")) return kill(warden, SIGKILL);
    if (is("kill_init")) return kill(1, SIGKILL);
    if (is("stop_warden")) return kill(warden, SIGSTOP);
    if (is("pidfd_signal")) return syscall(SYS_pidfd_send_signal, syscall(SYS_pidfd_open, warden, 0), SIGKILL, 0, 0);
    if (is("pidfd_getfd")) return syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, warden, 0), 0, 0);
    if (is("ptrace_attach")) return ptrace(PTRACE_ATTACH, warden, 0, 0);
    if (is("ptrace_seize")) return ptrace(PTRACE_SEIZE, warden, 0, 0);
    if (is("ptrace_traceme")) return ptrace(PTRACE_TRACEME, 0, 0, 0);
    if (is("process_vm_readv")) return process_vm_readv(warden, &mine, 1, &theirs, 1, 0);
    if (is("process_vm_writev")) return process_vm_writev(warden, &mine, 1, &theirs, 1, 0);
    if (is("kcmp")) return syscall(SYS_kcmp, getpid(), warden, 0, 0, 0);
    if (is("prlimit_warden")) {
        struct rlimit none = {0, 0};
        return prlimit(warden, RLIMIT_NOFILE, &none, 0);
    }
    if (is("renice_warden")) return setpriority(PRIO_PROCESS, (id_t)warden, 19);
    if (is("affinity_of_warden")) return sched_setaffinity(warden, sizeof all, &all);
    if (is("setpgid_warden")) return setpgid(warden, getpid());

    if (is("nice_up")) return setpriority(PRIO_PROCESS, 0, -1);
    if (is("affinity")) return sched_setaffinity(0, sizeof all, &all);
    if (is("realtime")) return sched_setscheduler(0, SCHED_FIFO, &realtime);
    if (is("raise_core")) {
        struct rlimit core = {1 << 20, 1 << 20};
        return setrlimit(RLIMIT_CORE, &core);
    }
    if (is("lower_core") || is("lower_core_softly") || is("lower_core_by_the_elder_call")) {
        struct rlimit core = {0, is("lower_core_softly") ? 1 : 0};
        return is("lower_core_by_the_elder_call") ? syscall(SYS_setrlimit, RLIMIT_CORE, &core)
                                                  : prlimit(0, RLIMIT_CORE, &core, 0);
    }
    if (is("raise_output")) {
        struct rlimit limit;
        getrlimit(RLIMIT_FSIZE, &limit);
        limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
        return setrlimit(RLIMIT_FSIZE, &limit);
    }
    if (is("raise_fds")) {
        struct rlimit limit;
        getrlimit(RLIMIT_NOFILE, &limit);
        limit.rlim_cur = limit.rlim_max = limit.rlim_max + 1;
        return setrlimit(RLIMIT_NOFILE, &limit);
    }

    if (is("mount_proc")) return mount("proc", "/tmp", "proc", 0, 0);
    if (is("mount_tmpfs")) return mount("none", "/tmp", "tmpfs", 0, 0);
    if (is("mount_cgroup")) return mount("none", "/tmp", "cgroup", 0, "memory");
    if (is("mount_bind")) return mount("/", "/tmp", 0, MS_BIND, 0);
    if (is("remount_root")) return mount("/", "/", 0, MS_REMOUNT | MS_BIND, 0);
    if (is("umount")) return umount2("/box", MNT_DETACH);
    if (is("umount_proc")) return umount2("/proc", MNT_DETACH);
    if (is("pivot_root")) return syscall(SYS_pivot_root, "/tmp", "/tmp");
    if (is("chroot")) return chroot("/tmp");
    if (is("open_tree")) return syscall(428, AT_FDCWD, "/tmp", 1);
    if (is("move_mount")) return syscall(429, AT_FDCWD, "/tmp", AT_FDCWD, "/box", 0);
    if (is("fsopen")) return syscall(430, "tmpfs", 0);
    if (is("fspick")) return syscall(433, AT_FDCWD, "/tmp", 0);
    if (is("mount_setattr")) return syscall(442, AT_FDCWD, "/tmp", 0, buffer, 32);
    if (is("mknod_disk")) return mknod("/tmp/disk", S_IFBLK | 0666, makedev(8, 0));
    if (is("mknod_mem")) return mknod("/tmp/mem", S_IFCHR | 0666, makedev(1, 1));
    if (is("setns")) return setns(open("/proc/1/ns/mnt", O_RDONLY), 0);
    if (is("swapon")) return syscall(SYS_swapon, "/tmp/x", 0);

    if (is("inet")) return socket(AF_INET, SOCK_STREAM, 0);
    if (is("inet_udp")) return socket(AF_INET, SOCK_DGRAM, 0);
    if (is("inet6")) return socket(AF_INET6, SOCK_STREAM, 0);
    if (is("inet_raw")) return socket(AF_INET, SOCK_RAW, 1);
    if (is("netlink")) return socket(AF_NETLINK, SOCK_RAW, 0);
    if (is("packet")) return socket(AF_PACKET, SOCK_RAW, 0);
    if (is("vsock")) return socket(40, SOCK_STREAM, 0);
    if (is("alg")) return socket(38, SOCK_SEQPACKET, 0);
    if (is("bluetooth")) return socket(31, SOCK_RAW, 0);
    /* Only the low 32 bits reach the kernel's socket(2); a filter that compares 64 must not be fooled. */
    if (is("inet_high_bits")) return syscall(SYS_socket, 0x100000000L | AF_INET, SOCK_STREAM, 0);

    if (is("bpf")) return syscall(SYS_bpf, 0, buffer, sizeof buffer);
    if (is("keyctl")) return syscall(SYS_keyctl, 0, -3, 1);
    if (is("add_key")) return syscall(SYS_add_key, "user", "left", "behind", 6, -3);
    if (is("perf_event_open")) return syscall(SYS_perf_event_open, &perf, 0, -1, -1, 0);
    if (is("userfaultfd")) return syscall(SYS_userfaultfd, 1);
    if (is("io_uring_setup")) { char parameters[120] = ""; return syscall(425, 4, parameters); }
    if (is("inotify")) return syscall(SYS_inotify_init);
    if (is("inotify_flags")) return inotify_init1(IN_CLOEXEC);
    if (is("dnotify")) return fcntl(open("/usr/bin", O_RDONLY), F_NOTIFY, DN_ACCESS | DN_MULTISHOT);
    if (is("dnotify_high_bits")) return syscall(SYS_fcntl, open("/usr/bin", O_RDONLY), 0x100000000L | F_NOTIFY, DN_ACCESS);
    /* On a file of its own, which no kernel minds. */
    if (is("write_hint")) return fcntl(open("/tmp/hinted", O_CREAT | O_RDWR, 0600), F_SET_RW_HINT, &(uint64_t){3});
    if (is("read_if_cached")) {
        /* What has just been read is there: without the filter it would be read again. */
        int env = open("/usr/bin/env", O_RDONLY);
        if (preadv(env, &mine, 1, 0) <= 0) return 0;
        return preadv2(env, &mine, 1, 0, RWF_NOWAIT);
    }
    if (is("sync")) return syscall(SYS_sync);
    if (is("syncfs")) return syncfs(open("/usr", O_RDONLY));
    if (is("seccomp")) return syscall(SYS_seccomp, 1, 0, &filters);
    if (is("prctl_seccomp")) return prctl(PR_SET_SECCOMP, 2, &filters);
    if (is("prctl_high_bits")) return syscall(SYS_prctl, 0x100000000L | PR_SET_SECCOMP, 2, &filters);
    if (is("socket_filter")) return setsockopt(socket(AF_UNIX, SOCK_DGRAM, 0), SOL_SOCKET, 26, &filters, sizeof filters);
    /* As if done, also of what cannot be written: nobody has asked the disk. */
    if (is("fsync")) return fsync(-1) == 0 ? -1 : 0;
    if (is("fdatasync")) return fdatasync(-1) == 0 ? -1 : 0;
    if (is("record_lock")) return locked(F_SETLK);
    if (is("record_lock_waiting")) return locked(F_SETLKW);
    if (is("open_file_lock")) return locked(F_OFD_SETLK);
    /* Most kernels have none of these to give, and say so: a refusal is only what says "not permitted". */
    if (is("core_scheduling")) return permitted(prctl(62, 1, 0, 0, 0));
    if (is("huge_pages")) return permitted(syscall(SYS_mmap, 0, 2 << 20, 3, MAP_PRIVATE | MAP_ANONYMOUS | 0x40000, -1, 0));
    if (is("huge_memfd")) return permitted(memfd_create("huge", 4));
    if (is("merged_pages")) return permitted(madvise(mmap(0, 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096, 12));
    if (is("shmget")) return syscall(SYS_shmget, 7, 4096, 01600);
    if (is("msgget")) return syscall(SYS_msgget, 7, 01600);
    if (is("semget")) return syscall(SYS_semget, 7, 1, 01600);
    if (is("mq_open")) return syscall(SYS_mq_open, "left", O_CREAT | O_RDWR, 0600, 0);

    if (is("clock_settime")) return clock_settime(CLOCK_REALTIME, &then);
    if (is("settimeofday")) return settimeofday(&old_time, 0);
    if (is("sethostname")) return sethostname("mine", 4);
    if (is("reboot")) return syscall(SYS_reboot, 0xfee1dead, 672274793, 0x89abcdef, 0);
    if (is("init_module")) return syscall(SYS_init_module, buffer, sizeof buffer, "");
    if (is("kexec_load")) return syscall(SYS_kexec_load, 0, 0, 0, 0);
    if (is("syslog")) return syscall(SYS_syslog, 3, buffer, sizeof buffer);
    if (is("acct")) return acct("/tmp/acct");
    if (is("fanotify")) return syscall(SYS_fanotify_init, 0, 0);
    if (is("open_by_handle")) {
        struct { unsigned bytes; int type; unsigned char handle[8]; } root = {8, 1, {2}};
        return syscall(SYS_open_by_handle_at, AT_FDCWD, &root, O_RDONLY);
    }
#if defined(__x86_64__)
    if (is("iopl")) return syscall(SYS_iopl, 3);
    if (is("int80_socket")) return int80(359, AF_INET, SOCK_STREAM, 0);
    if (is("int80_unshare")) return int80(310, CLONE_NEWUSER, 0, 0);
    if (is("x32_socket")) return syscall(0x40000000 | SYS_socket, AF_INET, SOCK_STREAM, 0);
    if (is("x32_unshare")) return syscall(0x40000000 | SYS_unshare, CLONE_NEWUSER);
#endif
    abort();
}

int main(void) {
    if (scanf("%63s", word) != 1) return 2;
    warden = getppid();
    /* In a child: a filter may also answer with a signal, and that is a refusal too. */
    pid_t child = fork();
    if (child < 0) return 3;
    if (child == 0) {
        errno = 0;
        long result = attack();
        fprintf(stderr, "%s: %ld, %s\n", word, result, strerror(errno));
        _exit(result < 0 ? 10 : 20);
    }
    int status;
    waitpid(child, &status, 0);
    int refused = WIFEXITED(status) ? WEXITSTATUS(status) == 10 : WTERMSIG(status) == SIGSYS;
    puts(refused ? "held" : "escaped");
    return 0;
}
