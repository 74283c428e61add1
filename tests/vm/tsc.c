/* Prints how many thousand ticks a second the time stamp counter of an x86 processor makes. */
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec + at.tv_nsec / 1e9;
}

int main(void) {
    double best = 0, shortest = 1e9;
    /* Of several readings the one that was interrupted least: both clocks are read in the least time. */
    for (int i = 0; i < 5; i++) {
        double start = now();
        unsigned long long first = __rdtsc();
        double started = now();
        nanosleep(&(struct timespec){0, 100000000}, NULL);
        double end = now();
        unsigned long long last = __rdtsc();
        double ended = now();
        double unsure = started - start + ended - end;
        if (unsure < shortest) {
            shortest = unsure;
            best = (last - first) / ((end + ended - start - started) / 2);
        }
    }
    printf("%.0f\n", best / 1000);
}
