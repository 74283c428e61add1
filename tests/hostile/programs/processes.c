/* One unruly behaviour per word on stdin; where it comes to an end of its own, it has printed "held". */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char word[64];
static int is(const char *name) { return strcmp(word, name) == 0; }
static void say(const char *text) { write(1, text, strlen(text)); }
static void spin(void) { for (volatile unsigned long i = 0;; i++) {} }
static void *spin_thread(void *unused) { spin(); return unused; }
static void *sleep_thread(void *unused) { for (;;) pause(); return unused; }
static void carry_on(int number) { (void)number; }

static double cpu_s(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
static void burn(double seconds) { while (cpu_s(CLOCK_PROCESS_CPUTIME_ID) < seconds) {} }
static void doze(double seconds) {
    struct timespec span = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&span, 0);
}

static void behave(void) {
    if (is("fork_bomb")) for (;;) fork();
    if (is("vfork_bomb")) for (;;) if (vfork() == 0) execl("/proc/self/exe", "x", "again", (char *)0), _exit(0);
    if (is("fork_sleepers")) { while (fork() >= 0) {} for (;;) pause(); }
    if (is("orphan_bomb")) for (;;) if (fork() == 0) { if (fork() == 0) { setsid(); continue; } _exit(0); }
    if (is("thread_spinners")) {
        pthread_t thread;
        for (int i = 0; i < 16; i++) pthread_create(&thread, 0, spin_thread, 0);
        for (;;) pause();
    }
    if (is("thread_bomb")) {
        pthread_t thread;
        pthread_attr_t small;
        pthread_attr_init(&small);
        pthread_attr_setstacksize(&small, 65536);
        int count = 0;
        while (count < 100000 && pthread_create(&thread, &small, sleep_thread, 0) == 0) count++;
        say(count < 64 ? "held\n" : "escaped\n");
        _exit(0);
    }
    if (is("fork_count")) {
        int count = 0;
        pid_t first = getpid();
        while (count < 1000 && fork() != -1) {
            /* Children wait for the end; the first process counts. */
            count++;
            if (getpid() != first) for (;;) pause();
        }
        say(count < 64 ? "held\n" : "escaped\n");
        _exit(0);
    }
    if (is("zombies")) {
        /* Children that nobody waits for, until there is room for no more. */
        while (1) { pid_t child = fork(); if (child == 0) _exit(0); if (child < 0) break; }
        say("held\n");
    }
    if (is("child_spins_after")) { if (fork() == 0) spin(); say("held\n"); }
    if (is("child_sleeps_after")) { if (fork() == 0) for (;;) pause(); say("held\n"); }
    if (is("daemon")) {
        if (fork() == 0) {
            setsid();
            if (fork() == 0) {
                signal(SIGHUP, SIG_IGN);
                signal(SIGTERM, SIG_IGN);
                for (;;) { close(open("/tmp/alive", O_CREAT | O_WRONLY, 0600)); doze(0.001); }
            }
            _exit(0);
        }
        wait(0);
        say("held\n");
    }
    if (is("alive")) { doze(0.05); say(access("/tmp/alive", F_OK) == 0 ? "escaped\n" : "held\n"); }
    if (is("answer_after_exit")) { if (fork() == 0) { doze(0.1); say("held\n"); _exit(0); } }
    if (is("answer_by_clone_parent")) {
        /* The new process is the warden's child, as this one is. */
        if (syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) == 0) { doze(0.1); say("held\n"); for (;;) pause(); }
    }
    if (is("clone_no_signal")) {
        if (syscall(SYS_clone, 0, 0, 0, 0, 0) == 0) for (;;) pause();
        if (syscall(SYS_clone, SIGKILL, 0, 0, 0, 0) == 0) for (;;) pause();
        say("held\n");
    }
    if (is("subreaper")) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        if (fork() == 0) { if (fork() == 0) for (;;) pause(); _exit(0); }
        wait(0);
        say("held\n");
    }
    if (is("leader_thread_leaves")) {
        /* The first thread ends; the process lives on in the others. */
        pthread_t thread;
        pthread_create(&thread, 0, spin_thread, 0);
        syscall(SYS_exit, 0);
    }
    if (is("children_in_turn")) {
        /* No single process comes near the limit; together they pass it. */
        for (;;) { if (fork() == 0) { burn(0.05); _exit(0); } wait(0); }
    }
    if (is("orphans_in_turn")) {
        /* CPU time that no wait() of this process ever adds up. */
        signal(SIGCHLD, SIG_IGN);
        for (;;) { if (fork() == 0) { if (fork() == 0) { burn(0.05); _exit(0); } _exit(0); } doze(0.05); }
    }
    if (is("system_time")) for (;;) syscall(SYS_getppid);
    if (is("child_spins_parent_waits")) { if (fork() == 0) spin(); wait(0); }
    if (is("just_over")) { burn(0.30); say("held\n"); }
    if (is("just_under")) { burn(0.10); say("held\n"); }
    if (is("handlers")) {
        for (int number = 1; number < 65; number++) signal(number, carry_on);
        struct itimerval often = {{0, 1000}, {0, 1000}};
        setitimer(ITIMER_REAL, &often, 0);
        setitimer(ITIMER_VIRTUAL, &often, 0);
        setitimer(ITIMER_PROF, &often, 0);
        spin();
    }
    if (is("blocked_signals")) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, 0);
        spin();
    }
    if (is("sleep")) doze(1000);
    if (is("sleep_blocked")) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, 0);
        for (;;) doze(1000);
    }
    if (is("sleep_closed")) { for (int fd = 0; fd < 1024; fd++) close(fd); for (;;) pause(); }
    if (is("stop_self")) raise(SIGSTOP);
    if (is("vfork_hangs")) { if (vfork() == 0) for (;;) pause(); }
    if (is("deadlock")) {
        pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        pthread_mutex_lock(&lock);
        pthread_mutex_lock(&lock);
    }
    if (is("read_own_pipe")) { int ends[2]; pipe(ends); read(ends[0], word, 1); }
    if (is("kill_all")) { kill(-1, SIGKILL); say("held\n"); }
    if (is("kill_group")) { if (fork() == 0) for (;;) pause(); kill(0, SIGKILL); }
    if (is("out_of_fds")) { while (open("/dev/null", O_RDONLY) >= 0) {} say("held\n"); }
    if (is("fds_in_flight")) {
        /* Descriptors that live in sockets' queues and in no process. */
        int pair[2], rounds = 0;
        while (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0 && rounds++ < 200) {
            char control[CMSG_SPACE(sizeof pair)], data = 'x';
            struct iovec part = {&data, 1};
            struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
            struct cmsghdr *head = CMSG_FIRSTHDR(&message);
            head->cmsg_level = SOL_SOCKET;
            head->cmsg_type = SCM_RIGHTS;
            head->cmsg_len = CMSG_LEN(sizeof pair);
            memcpy(CMSG_DATA(head), pair, sizeof pair);
            sendmsg(pair[0], &message, 0);
            close(pair[0]);
            close(pair[1]);
        }
        say("held\n");
    }
    if (is("exec_true")) execl("/bin/true", "true", (char *)0);
    if (is("exec_shell")) execl("/bin/sh", "sh", "-c", "echo held", (char *)0);
    if (is("exec_self")) execl("/proc/self/exe", "x", "again", (char *)0);
    if (is("exec_from_memory")) {
        int fd = memfd_create("copy", 0), self = open("/proc/self/exe", O_RDONLY);
        char block[65536];
        for (ssize_t got; (got = read(self, block, sizeof block)) > 0;) write(fd, block, (size_t)got);
        char *arguments[] = {"x", "again", 0}, *environment[] = {0};
        fexecve(fd, arguments, environment);
        perror("fexecve");
    }
    if (is("close_stdout")) { close(1); printf("held\n"); }
    if (is("stdout_elsewhere")) { close(1); open("/tmp/elsewhere", O_CREAT | O_WRONLY, 0600); say("held\n"); }
    if (is("stdout_reopened")) { int fd = open("/dev/stdout", O_WRONLY); close(1); dup2(fd, 1); say("held\n"); }
    if (is("stdout_read_back")) {
        char back[8] = "";
        say("held\n");
        int fd = open("/proc/self/fd/1", O_RDONLY);
        if (read(fd, back, 5) != 5 && pread(1, back, 5, 0) != 5) _exit(3);
    }
    if (is("dump_core")) { struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY}; setrlimit(RLIMIT_CORE, &all); prctl(PR_SET_DUMPABLE, 1); abort(); }
}

int main(int count, char **arguments) {
    (void)arguments;
    if (count > 1) { say("held\n"); return 0; }
    if (scanf("%63s", word) != 1) return 2;
    behave();
    return 0;
}
