/* Shared by the C sides of the benchmarks: a clock, timed loops, error exits and the loading of PTX. */
#ifndef BENCH_H
#define BENCH_H

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

/* Nanoseconds on a monotonic clock. */
static inline double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

/* The smallest mean of `rounds` rounds of `count` calls, in nanoseconds. `between` runs after each round, untimed. */
#define TIME_BETWEEN(slot, rounds, count, call, between)                                                               \
    do {                                                                                                               \
        double best_ = 1e300;                                                                                          \
        for (int r_ = 0; r_ < (rounds); r_++) {                                                                        \
            double start_ = now();                                                                                     \
            for (int i_ = 0; i_ < (count); i_++) {                                                                     \
                call;                                                                                                  \
            }                                                                                                          \
            double mean_ = (now() - start_) / (count);                                                                 \
            if (mean_ < best_)                                                                                         \
                best_ = mean_;                                                                                         \
            between;                                                                                                   \
        }                                                                                                              \
        (slot) = best_;                                                                                                \
    } while (0)

/* Reads a PTX file as a string; NULL, with a message, where that fails. The buffer is static. */
static inline const char *read_ptx(const char *path)
{
    static char text[1 << 20];
    FILE *file = fopen(path, "rb");
    if (!file || fread(text, 1, sizeof text - 1, file) == 0) {
        fprintf(stderr, "%s: cannot read\n", path);
        return 0;
    }
    fclose(file);
    return text;
}

/* Prints results, one per line. */
static inline void print_results(const double *results, int count)
{
    for (int n = 0; n < count; n++)
        printf("%.3f\n", results[n]);
}

#endif
