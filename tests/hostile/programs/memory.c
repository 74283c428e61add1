/* Takes memory in the way named on stdin, then prints "held". */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MB = 1 << 20 };
static char word[64];
static int is(const char *name) { return strcmp(word, name) == 0; }
static char *take(size_t bytes) {
    char *memory = malloc(bytes);
    if (memory) memset(memory, 0x5a, bytes);
    /* The compiler may drop memory that nobody looks at. */
    __asm__ volatile("" : : "r"(memory) : "memory");
    return memory;
}
static void fill(const char *directory, long files, size_t bytes_each) {
    static char block[MB];
    char path[128];
    memset(block, 0x5a, sizeof block);
    for (long i = 0; i < files; i++) {
        snprintf(path, sizeof path, "%s/%ld", directory, i);
        int fd = open(path, O_CREAT | O_WRONLY, 0600);
        for (size_t done = 0; done < bytes_each; done += sizeof block)
            if (write(fd, block, sizeof block) <= 0) break;
        close(fd);
    }
}
static long deeper(long depth) {
    volatile char frame[256];
    frame[depth & 255] = (char)depth;
    return depth == 0 ? 0 : deeper(depth - 1) + (frame[depth & 255] == (char)depth);
}

__attribute__((noinline)) static void big_frame(void) {
    volatile char big[40L * MB];
    for (size_t i = 0; i < sizeof big; i += 4096) big[i] = 1;
}

int main(void) {
    if (scanf("%63s", word) != 1) return 2;
    if (is("at_once")) take(1024L * MB);
    if (is("slowly")) for (int i = 0; i < 1024; i++) { take(MB); usleep(200); }
    if (is("in_child")) { if (fork() == 0) { take(1024L * MB); _exit(0); } wait(0); }
    if (is("in_children")) {
        for (int i = 0; i < 8; i++) if (fork() == 0) { take(20L * MB); usleep(300000); _exit(0); }
        for (int i = 0; i < 8; i++) wait(0);
    }
    if (is("mapped_shared")) memset(mmap(0, 1024L * MB, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), 1, 1024L * MB);
    if (is("memfds")) {
        static char block[MB];
        for (int i = 0; i < 256; i++) { int fd = memfd_create("hoard", 0); for (int j = 0; j < 16; j++) write(fd, block, MB); }
    }
    if (is("pipes")) {
        static char block[MB];
        for (int i = 0; i < 400; i++) {
            int ends[2];
            if (pipe2(ends, O_NONBLOCK) != 0) break;
            fcntl(ends[1], F_SETPIPE_SZ, MB);
            write(ends[1], block, MB);
        }
    }
    if (is("reserved_only")) { if (mmap(0, 4096L * MB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED) return 3; }
    if (is("just_under")) take(40L * MB);
    if (is("kill_self")) { take(8L * MB); kill(getpid(), SIGKILL); }
    if (is("fill_tmp")) fill("/tmp", 640, 16L * MB);
    if (is("fill_box")) fill("/box", 640, 16L * MB);
    if (is("fill_shm")) fill("/dev/shm", 640, 16L * MB);
    if (is("many_files")) { fill("/tmp", 100000, 0); fill("/box", 100000, 0); }
    if (is("half_in_tmp")) fill("/tmp", 2, 16L * MB);
    if (is("endless_recursion")) { fprintf(stderr, "%ld", deeper(1L << 40)); }
    if (is("deep_recursion")) { if (deeper(100000) != 100000) return 3; }
    if (is("stack_array")) big_frame();
    puts("held");
    return 0;
}
