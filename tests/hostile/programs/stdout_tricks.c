/* Prints "held", then leaves stdout and stderr sealed, locked, closed to all and mapped: the next run must not care. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void) {
    puts("held");
    fflush(stdout);
    for (int fd = 1; fd <= 2; fd++) {
        flock(fd, LOCK_EX);
        mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        fchmod(fd, 0);
        fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK);
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
        fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
        fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL);
        lseek(fd, 1 << 20, SEEK_SET);
    }
    return 0;
}
