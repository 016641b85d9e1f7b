/* The C half of differences_side.py: pairs of calls, by address, in the process of the Python code that they are compared
 * with.
 *
 * cc -O2 -Iharness -shared -fPIC -o differences.so differences.c
 */
#include <stddef.h>

#include "bench.h"

typedef int (*fn_malloc)(void **, size_t);
typedef int (*fn_pointer)(void *);
typedef int (*fn_copy)(void *, const void *, size_t, int);
typedef int (*fn_event)(void **, unsigned);
typedef int (*fn_allocate)(void **, size_t, void *, void *);
typedef int (*fn_allocate_async)(void **, size_t, void *);
typedef int (*fn_release)(void *, void *);
typedef int (*fn_launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                         void **);

enum { BYTES = 256, TO_DEVICE = 1, DISABLE_TIMING = 2 };
/* As in differences_side.py. */
enum { MALLOC, FREE, MALLOC_HOST, FREE_HOST, STREAM_CREATE, STREAM_DESTROY, MEMCPY, MALLOC_ASYNC,
       FREE_ASYNC, EVENT_CREATE, EVENT_DESTROY, ALLOCATE, RELEASE, LAUNCH, MEMORY, HOST, POOL, STREAM, KERNEL };
enum { ROW_MALLOC, ROW_MALLOC_HOST, ROW_STREAM, ROW_MEMCPY, ROW_MALLOC_ASYNC, ROW_EVENT, ROW_BUFFER, ROW_LAUNCH };

#define TURN(call)                                                                                                     \
    for (int n = 0; n < count; n++)                                                                                    \
        failed |= (call);                                                                                              \
    break

/* Nanoseconds a pair (or a call, for the copy and the launch): the mean of `count` in a row; negative where one failed. */
double turn(int row, int count, void *const *given)
{
    void *p = NULL;
    float factor = 2;
    unsigned long long bytes = BYTES;
    void *arguments[] = {&factor, (void *)&given[MEMORY], &bytes};
    int failed = 0;
    double start = now();
    switch (row) {
    case ROW_MALLOC:
        TURN(((fn_malloc)given[MALLOC])(&p, BYTES) || ((fn_pointer)given[FREE])(p));
    case ROW_MALLOC_HOST:
        TURN(((fn_malloc)given[MALLOC_HOST])(&p, BYTES) || ((fn_pointer)given[FREE_HOST])(p));
    case ROW_STREAM:
        TURN(((fn_pointer)given[STREAM_CREATE])(&p) || ((fn_pointer)given[STREAM_DESTROY])(p));
    case ROW_MEMCPY:
        TURN(((fn_copy)given[MEMCPY])(given[MEMORY], given[HOST], BYTES, TO_DEVICE));
    case ROW_MALLOC_ASYNC:
        TURN(((fn_allocate_async)given[MALLOC_ASYNC])(&p, BYTES, given[STREAM]) ||
             ((fn_release)given[FREE_ASYNC])(p, given[STREAM]));
    case ROW_EVENT:
        TURN(((fn_event)given[EVENT_CREATE])(&p, DISABLE_TIMING) || ((fn_pointer)given[EVENT_DESTROY])(p));
    case ROW_BUFFER:
        TURN(((fn_allocate)given[ALLOCATE])(&p, BYTES, given[POOL], given[STREAM]) ||
             ((fn_release)given[RELEASE])(p, given[STREAM]));
    case ROW_LAUNCH:
        TURN(((fn_launch)given[LAUNCH])(given[KERNEL], 1, 1, 1, 1, 1, 1, 0, given[STREAM], arguments, NULL));
    default:
        failed = 1;
    }
    return failed ? -1 : (now() - start) / count;
}
