/* What the C sides of the benchmarks share: a clock, and the end of a program whose call fails. */
#ifndef TIMING_H
#define TIMING_H

#include <stdio.h>
#include <time.h>

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        int status_ = (call);                                                                                          \
        if (status_ != 0) {                                                                                            \
            fprintf(stderr, "%s: error %d\n", #call, status_);                                                         \
            return 1;                                                                                                  \
        }                                                                                                              \
    } while (0)

/* Nanoseconds on a clock that only goes forward. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

#endif
