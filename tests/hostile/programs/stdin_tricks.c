/* Tries to change the input that other runs of the same test will read. Prints the input it finds. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

int main(void) {
    char text[64] = "";
    ssize_t length = read(0, text, sizeof text - 1);
    static const char *roads[] = {"/proc/self/fd/0", "/dev/stdin", "/dev/fd/0"};
    for (unsigned i = 0; i < 3; i++) {
        for (int flags = O_WRONLY; flags <= O_RDWR; flags++) {
            int fd = open(roads[i], flags);
            if (fd >= 0) {
                pwrite(fd, "forged\n", 7, 0);
                ftruncate(fd, 0);
                fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096);
                fallocate(fd, 0, 0, 8192);
                void *shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
                if (shared != MAP_FAILED) memcpy(shared, "forged\n", 7);
                fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
                close(fd);
            }
            fd = open(roads[i], flags | O_TRUNC);
            if (fd >= 0) close(fd);
        }
        truncate(roads[i], 0);
    }
    write(0, "forged\n", 7);
    ftruncate(0, 0);
    fcntl(0, F_ADD_SEALS, F_SEAL_WRITE);
    fchmod(0, 0);
    fchown(0, getuid(), getgid());
    fsetxattr(0, "user.x", "x", 1, 0);
    fsetxattr(0, "trusted.x", "x", 1, 0);
    fcntl(0, F_SETFL, O_APPEND | O_NONBLOCK);
    fcntl(0, F_SETLEASE, F_WRLCK);
    flock(0, LOCK_EX);
    lseek(0, 0, SEEK_END);
    write(1, text, (size_t)length);
    return 0;
}
