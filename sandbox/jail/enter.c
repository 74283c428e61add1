/* enter: what has to be done in a process of its own before it becomes another program.
 *
 *     enter warden PROGRAM [ARGUMENT ...]
 *
 * nsjail starts the warden through this: the capabilities that it hands over are inheritable too, and would stay so in
 * every program. Here that set is emptied; as uid 0 of its namespace, the warden keeps the others across exec. Whoever
 * started the grader may have ignored or blocked signals (nohup ignores SIGHUP) or changed the umask, which programs
 * would inherit in turn: here all that is as on a fresh login.
 *
 *     enter UID EXTRAS ENTRIES NICE RESOURCE:LIMIT,... DIRECTORY PREPARE,... PROGRAM [ARGUMENT ...]
 *
 * The last step between the warden and an exec'd program. The warden spawns this (vfork and exec, so its own memory is
 * not copied) with the program's stdin, stdout and stderr as 0 to 2, a close-on-exec pipe as 3, from 4 on EXTRAS
 * descriptors that stay the program's, and after those ENTRIES that lead into its cgroups. In this order: enter the
 * cgroups, set the limits and how nice it is, have stdin as controlling terminal if it is one, take the uid (from 0 to
 * another: the kernel drops every capability), make what the program is to find in DIRECTORY ("name/" a directory,
 * "name=N" a link to its descriptor N), close what is not its own, exec.
 * What goes wrong is written to descriptor 3, which an exec closes.
 *
 * In C because it was measured: forking the warden's interpreter instead costs 1.3 ms a test more. Without the C
 * library for the same reason: its start alone costs 0.28 ms, all of this 0.06 ms.
 */

#include <asm/ioctls.h>
#include <asm/unistd.h>
#include <linux/capability.h>
#include <linux/fcntl.h>
#include <linux/resource.h>
#include <linux/signal.h>

enum { FAILED_FD = 3, FIRST_EXTRA_FD = 4 };

/* -- the kernel's door */

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n mov %rsp, %rdi\n and $-16, %rsp\n call start\n");

static long call(long number, long a, long b, long c, long d) {
    long result;
    register long fourth __asm__("r10") = d;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n mov x0, sp\n and sp, x0, #-16\n bl start\n");

static long call(long number, long a, long b, long c, long d) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
    return x0;
}
#else
#error "enter.c knows the system calls of x86-64 and arm64 only"
#endif

/* -- text */

static unsigned long number(const char *text) {
    unsigned long value = 0;
    for (; *text >= '0' && *text <= '9'; text++) value = 10 * value + (unsigned long)(*text - '0');
    return value;
}

static char *find(char *text, char wanted) {
    while (*text != '\0' && *text != wanted) text++;
    return text;
}

/* Cuts the next item off a list that commas separate; NULL at its end. */
static char *next(char **list) {
    char *item = *list;
    if (*item == '\0') return 0;
    char *end = find(item, ',');
    *list = *end == '\0' ? end : end + 1;
    *end = '\0';
    return item;
}

static int equal(const char *one, const char *other) {
    while (*one != '\0' && *one == *other) one++, other++;
    return *one == *other;
}

static int starts_with(const char *text, const char *start) {
    while (*start != '\0' && *text == *start) text++, start++;
    return *start == '\0';
}

/* -- what can go wrong */

__attribute__((noreturn)) static void leave(int status) {
    for (;;) call(__NR_exit_group, status, 0, 0, 0);
}

static void say(int fd, char *text) { call(__NR_write, fd, (long)text, find(text, '\0') - text, 0); }

/* Ends the process where a system call's result is an error. */
static void must(long result, int fd, char *what) {
    if (result >= 0) return;
    char digits[] = "errno 0000";
    for (int place = 9; place > 5; place--, result /= 10) digits[place] = (char)('0' - result % 10);
    say(fd, what);
    say(fd, ": ");
    say(fd, digits);
    leave(127);
}

/* -- the warden */

/* The highest signal of the kernel's; its sets are one 64-bit word. */
enum { SIGNALS = 64, SIGNAL_SET_BYTES = 8 };

static void forget_the_starter(void) {
    /* The handler is SIG_DFL, and nothing of the rest is set. As large as any architecture's `struct sigaction`. */
    const unsigned long by_default[8] = {0};
    const unsigned long none = 0;
    for (int signal = 1; signal <= SIGNALS; signal++) {
        if (signal == SIGKILL || signal == SIGSTOP) continue;
        must(call(__NR_rt_sigaction, signal, (long)by_default, 0, SIGNAL_SET_BYTES), 2, "sigaction");
    }
    must(call(__NR_rt_sigprocmask, SIG_SETMASK, (long)&none, 0, SIGNAL_SET_BYTES), 2, "sigprocmask");
    call(__NR_umask, 022, 0, 0, 0);
}

__attribute__((noreturn)) static void become_warden(char **argv, char **environment) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
    must(call(__NR_capget, (long)&header, (long)sets, 0, 0), 2, "capget");
    for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) sets[i].inheritable = 0;
    must(call(__NR_capset, (long)&header, (long)sets, 0, 0), 2, "capset");
    forget_the_starter();
    must(call(__NR_execve, (long)argv[0], (long)argv, (long)environment, 0), 2, argv[0]);
    leave(127);
}

/* -- the program */

static void set_limits(char *list) {
    for (char *item; (item = next(&list)) != 0;) {
        unsigned long value = number(find(item, ':') + 1);
        struct rlimit64 limit = {value, value};
        must(call(__NR_prlimit64, 0, (long)number(item), (long)&limit, 0), FAILED_FD, "setting a limit");
    }
}

static void prepare(char *list) {
    for (char *item; (item = next(&list)) != 0;) {
        char *descriptor = find(item, '=');
        if (*descriptor == '\0') {
            must(call(__NR_mkdirat, AT_FDCWD, (long)item, 0755, 0), FAILED_FD, item);
            continue;
        }
        *descriptor++ = '\0';
        char target[] = "/proc/self/fd/000";
        unsigned long fd = number(descriptor);
        for (int place = 16; place > 13; place--, fd /= 10) target[place] = (char)('0' + fd % 10);
        /* The kernel reads no leading zeros there. */
        char *digits = target + 14;
        while (*digits == '0' && digits < target + 16) digits++;
        for (char *to = target + 14; (*to = *digits) != '\0'; to++, digits++) {}
        must(call(__NR_symlinkat, (long)target, AT_FDCWD, (long)item, 0), FAILED_FD, item);
    }
}

__attribute__((noreturn)) static void become_program(char **argv, char **environment) {
    long id = (long)number(argv[1]);
    long first_entry = FIRST_EXTRA_FD + (long)number(argv[2]);
    long end = first_entry + (long)number(argv[3]);
    for (long fd = first_entry; fd < end; fd++) must(call(__NR_write, fd, (long)"0", 1, 0), FAILED_FD, "entering a cgroup");
    set_limits(argv[5]);
    /* Refused where the grader itself yields to others, and this host lets nobody take that back. */
    call(__NR_setpriority, 0, 0, (long)number(argv[4]), 0);
    /* Refused where stdin is no terminal, which it is in sessions alone. */
    call(__NR_ioctl, 0, TIOCSCTTY, 0, 0);
    must(call(__NR_chdir, (long)argv[6], 0, 0, 0), FAILED_FD, argv[6]);
    must(call(__NR_setresgid, id, id, id, 0), FAILED_FD, "taking the program's gid");
    must(call(__NR_setresuid, id, id, id, 0), FAILED_FD, "taking the program's uid");
    prepare(argv[7]);
    must(call(__NR_fcntl, FAILED_FD, F_SETFD, FD_CLOEXEC, 0), FAILED_FD, "fcntl");
    must(call(__NR_close_range, first_entry, ~0U, 0, 0), FAILED_FD, "close_range");
    long failure = call(__NR_execve, (long)argv[8], (long)(argv + 8), (long)environment, 0);
    /* A file of the program's own that cannot be run (an ELF with an interpreter that is not there, say) is the
     * program's failure, as a shell would tell it; a missing interpreter of ours is ours. */
    if (!starts_with(argv[8], "/prog/")) must(failure, FAILED_FD, argv[8]);
    leave(127);
}

/* `stack` as the kernel hands it over: argument count, arguments, NULL, environment. */
__attribute__((noreturn, used)) void start(long *stack) {
    long argc = stack[0];
    char **argv = (char **)(stack + 1);
    char **environment = argv + argc + 1;
    if (argc > 2 && equal(argv[1], "warden")) become_warden(argv + 2, environment);
    if (argc > 8) become_program(argv, environment);
    leave(127);
}
