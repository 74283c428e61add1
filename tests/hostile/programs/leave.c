/* "leave": leaves something on every shelf that outlives a process. "look": prints "held" where nothing of it is found. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mqueue.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static const char *const shelves[] = {"/tmp", "/box", "/dev/shm", "/prog", "/", "/dev", "/usr", "/etc", "/proc", "/var/tmp", "/run"};
enum { SHELVES = sizeof shelves / sizeof *shelves };

static void leave_in(const char *shelf) {
    char path[PATH_MAX];
    if (chdir(shelf) != 0) return;
    const char *const names[] = {"plain", ".hidden", "new\nline", "\xff\xfe", "-rf", "*", "~", " "};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        int fd = open(names[i], O_CREAT | O_WRONLY, 0);
        if (fd >= 0) close(fd);
    }
    memset(path, 'n', 255);
    path[255] = 0;
    int fd = open(path, O_CREAT | O_WRONLY, 0);
    if (fd >= 0) {
        write(fd, "left", 4);
        int immutable = 0x10 | 0x20;
        ioctl(fd, 0x40086602, &immutable); /* FS_IOC_SETFLAGS: immutable, append-only */
        close(fd);
    }
    symlink("/", "root");
    symlink("/usr", "usr");
    symlink("/prog", "prog");
    symlink("loop", "loop");
    symlink("../../proc/1/cwd", "warden");
    link("plain", "hard");
    link("/usr/bin/env", "env");
    mkfifo("pipe", 0);
    struct sockaddr_un address = {AF_UNIX, "socket"};
    bind(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address);
    /* Names that a sweeper might use for itself, as directories that are not empty. */
    for (int i = 0; i < 20; i++) {
        snprintf(path, sizeof path, ".rkgrade-sweep%d", i);
        if (mkdir(path, 0700) == 0) {
            strcat(path, "/inner");
            mkdir(path, 0700);
        }
    }
    mkdir("closed", 0700);
    mkdir("closed/inner", 0700);
    close(open("closed/inner/file", O_CREAT | O_WRONLY, 0));
    chmod("closed/inner", 0);
    chmod("closed", 0);
    mkdir("sticky", 01000);
    mkdir("setgid", 02755);
    for (int depth = 0; depth < 2000; depth++) {
        if (mkdir("deep", 0700) != 0 || chdir("deep") != 0) break;
    }
    chmod(".", 0);
    chmod(shelf, 0);
}

static void leave(void) {
    for (int i = 0; i < SHELVES; i++) leave_in(shelves[i]);
    int id = shmget(7, 1 << 20, IPC_CREAT | 0600);
    if (id >= 0) strcpy(shmat(id, 0, 0), "left");
    struct { long type; char text[8]; } message = {1, "left"};
    msgsnd(msgget(7, IPC_CREAT | 0600), &message, 5, IPC_NOWAIT);
    semget(7, 1, IPC_CREAT | 0600);
    mq_open("/left", O_CREAT | O_RDWR, 0600, 0);
    /* The state of this process, none of which the next one may inherit. */
    umask(0777);
    signal(SIGTERM, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, 0);
    setpriority(PRIO_PROCESS, 0, 19);
    personality(ADDR_NO_RANDOMIZE);
    prctl(PR_SET_NAME, "left");
    struct rlimit small = {4, 4};
    setrlimit(RLIMIT_NOFILE, &small);
    /* A sleeper in a session of its own, reparented. */
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            for (;;) pause();
        }
        _exit(0);
    }
    puts("held");
    fflush(stdout);
    kill(getpid(), SIGKILL);
}

static int wrong = 0;
static void complain(const char *what) {
    fprintf(stderr, "found: %s\n", what);
    wrong = 1;
}

static void look(void) {
    char text[4096], name[64];
    for (int i = 0; i < 2; i++) {
        DIR *directory = opendir(shelves[i]);
        if (!directory) {
            complain(shelves[i]);
            continue;
        }
        for (struct dirent *entry; (entry = readdir(directory));)
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) complain(entry->d_name);
        closedir(directory);
        snprintf(name, sizeof name, "%s/mine", shelves[i]);
        int fd = open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
        if (fd < 0 || write(fd, "x", 1) != 1) complain("a directory that cannot be written");
        struct stat facts;
        stat(name, &facts);
        if ((facts.st_mode & 0777) != 0600) complain("umask");
        unlink(name);
    }
    if (!getcwd(text, sizeof text) || strcmp(text, "/box") != 0) complain("working directory");
    if (shmget(7, 0, 0) >= 0) complain("shared memory");
    if (msgget(7, 0) >= 0) complain("message queue");
    if (semget(7, 0, 0) >= 0) complain("semaphore");
    if (mq_open("/left", O_RDONLY) != (mqd_t)-1) complain("POSIX message queue");
    if (umask(0) != 022) complain("umask");
    for (int number = 1; number < 65; number++) {
        struct sigaction action;
        if (sigaction(number, 0, &action) == 0 && action.sa_handler != SIG_DFL) complain("signal disposition");
    }
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, 0, &blocked);
    for (int number = 1; number < 65; number++)
        if (sigismember(&blocked, number) == 1) complain("signal mask");
    if (getpriority(PRIO_PROCESS, 0) != 0) complain("priority");
    if (personality(0xffffffff) > 0) complain("personality");
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < 64) complain("descriptor limit");
    struct itimerval timer;
    getitimer(ITIMER_REAL, &timer);
    if (timer.it_value.tv_sec || timer.it_value.tv_usec) complain("timer");
    /* Only process 1 and this one. */
    DIR *processes = opendir("/proc");
    for (struct dirent *entry; (entry = readdir(processes));) {
        int pid = atoi(entry->d_name);
        if (pid > 1 && pid != getpid()) complain("process");
    }
    puts(wrong ? "escaped" : "held");
}

int main(void) {
    char word[16];
    if (scanf("%15s", word) != 1) return 2;
    strcmp(word, "leave") == 0 ? leave() : look();
    return 0;
}
