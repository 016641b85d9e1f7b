/* The C counterpart of core_side.py: the driver calls behind cuda.core, timed without Python.
 *
 * As a program it opens libcuda.so.1 and prints nanoseconds, one row per line. As a shared library it receives the
 * addresses: the CPU device has no shared library of its own.
 *
 * cc -O2 -Iharness -o core core.c -ldl     or     cc -O2 -Iharness -shared -fPIC -o core.so core.c -ldl
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

typedef int (*fn_void)(void);
typedef int (*fn_int)(int);
typedef int (*fn_pointer)(void *);
typedef int (*fn_pointers)(void *, void *);
typedef int (*fn_get)(int *, int);
typedef int (*fn_retain)(void **, int);
typedef int (*fn_create)(void **, unsigned);
typedef int (*fn_priority)(void **, unsigned, int);
typedef int (*fn_load)(void **, const void *, void *, void *, unsigned, void *, void *, unsigned);
typedef int (*fn_kernel)(void **, void *, const char *);
typedef int (*fn_pool)(void **, int);
typedef int (*fn_allocate)(unsigned long long *, size_t, void *, void *);
typedef int (*fn_free)(unsigned long long, void *);
typedef int (*fn_copy)(unsigned long long, unsigned long long, size_t, void *);
typedef int (*fn_launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                         void **);

typedef int (*fn_address)(const char *, void **, int, unsigned long long, int *);

/* Order of the addresses, as in core_side.py. */
static const char *const NAMES[] = {
    "cuInit",          "cuDeviceGet",     "cuDevicePrimaryCtxRetain",     "cuCtxSetCurrent",         "cuCtxGetDevice",
    "cuCtxSynchronize", "cuStreamCreate", "cuStreamCreateWithPriority",   "cuStreamDestroy",         "cuStreamSynchronize",
    "cuEventCreate",   "cuEventDestroy",  "cuEventRecord",                "cuLibraryLoadData",       "cuLibraryGetKernel",
    "cuDeviceGetMemPool", "cuMemAllocFromPoolAsync", "cuMemFreeAsync",    "cuMemcpyAsync",           "cuLaunchKernel",
};
enum { INIT, GET, RETAIN, SET_CURRENT, GET_DEVICE, SYNCHRONIZE, STREAM_CREATE, STREAM_PRIORITY, STREAM_DESTROY,
       STREAM_SYNCHRONIZE, EVENT_CREATE, EVENT_DESTROY, EVENT_RECORD, LOAD, KERNEL, POOL, ALLOCATE, FREE, COPY, LAUNCH,
       COUNT };
enum { ROWS = 10, BYTES = 256, DISABLE_TIMING = 2 };

/* The device is idle when a round begins. */
#define TIME(slot, rounds, count, call) TIME_BETWEEN(slot, rounds, count, call, CHECK(synchronize()))

/* results: ROWS doubles, nanoseconds, in the order of core_side.ROWS. */
int bench(void *const *f, const char *ptx, int rounds, double *results)
{
    int device;
    void *context, *stream, *event, *library, *none, *three, *sixteen, *pool, *p;
    unsigned long long from, to, memory;
    fn_void synchronize = (fn_void)f[SYNCHRONIZE];
    fn_launch launch = (fn_launch)f[LAUNCH];
    CHECK(((fn_int)f[INIT])(0));
    CHECK(((fn_get)f[GET])(&device, 0));
    CHECK(((fn_retain)f[RETAIN])(&context, device));
    CHECK(((fn_pointer)f[SET_CURRENT])(context));
    CHECK(((fn_create)f[STREAM_CREATE])(&stream, 1));
    CHECK(((fn_create)f[EVENT_CREATE])(&event, DISABLE_TIMING));
    CHECK(((fn_load)f[LOAD])(&library, ptx, 0, 0, 0, 0, 0, 0));
    CHECK(((fn_kernel)f[KERNEL])(&none, library, "none"));
    CHECK(((fn_kernel)f[KERNEL])(&three, library, "three"));
    CHECK(((fn_kernel)f[KERNEL])(&sixteen, library, "sixteen"));
    CHECK(((fn_pool)f[POOL])(&pool, device));
    CHECK(((fn_allocate)f[ALLOCATE])(&from, BYTES, pool, stream));
    CHECK(((fn_allocate)f[ALLOCATE])(&to, BYTES, pool, stream));
    float x = 2;
    int i = 1;
    unsigned long long n = BYTES;
    void *arguments3[] = {&x, &from, &n};
    void *arguments16[16];
    for (int k = 0; k < 16; k += 4) {
        arguments16[k] = &from;
        arguments16[k + 1] = &x;
        arguments16[k + 2] = &i;
        arguments16[k + 3] = &n;
    }
    CHECK(launch(none, 1, 1, 1, 1, 1, 1, 0, stream, 0, 0));
    CHECK(launch(three, 1, 1, 1, 1, 1, 1, 0, stream, arguments3, 0));
    CHECK(launch(sixteen, 1, 1, 1, 1, 1, 1, 0, stream, arguments16, 0));
    CHECK(((fn_copy)f[COPY])(to, from, BYTES, stream));
    CHECK(((fn_pointers)f[EVENT_RECORD])(event, stream));
    CHECK(synchronize());

    double *out = results;
    TIME(*out++, rounds, 256, launch(none, 1, 1, 1, 1, 1, 1, 0, stream, 0, 0));
    TIME(*out++, rounds, 256, launch(three, 1, 1, 1, 1, 1, 1, 0, stream, arguments3, 0));
    TIME(*out++, rounds, 256, launch(sixteen, 1, 1, 1, 1, 1, 1, 0, stream, arguments16, 0));
    TIME(*out++, rounds, 2000, ((fn_pointer)f[GET_DEVICE])(&device));
    TIME(*out++, rounds, 500,
         (((fn_create)f[EVENT_CREATE])(&p, DISABLE_TIMING), ((fn_pointer)f[EVENT_DESTROY])(p)));
    TIME(*out++, rounds, 20, (((fn_priority)f[STREAM_PRIORITY])(&p, 1, 0), ((fn_pointer)f[STREAM_DESTROY])(p)));
    TIME(*out++, rounds, 200, ((fn_pointers)f[EVENT_RECORD])(event, stream));
    TIME(*out++, rounds, 500, ((fn_pointer)f[STREAM_SYNCHRONIZE])(stream));
    TIME(*out++, rounds, 100,
         (((fn_allocate)f[ALLOCATE])(&memory, BYTES, pool, stream), ((fn_free)f[FREE])(memory, stream)));
    TIME(*out++, rounds, 200, ((fn_copy)f[COPY])(to, from, BYTES, stream));
    return out - results == ROWS ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: core FILE.ptx ROUNDS\n");
        return 2;
    }
    const char *ptx = read_ptx(argv[1]);
    if (!ptx)
        return 1;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    fn_address address = (fn_address)dlsym(driver, "cuGetProcAddress_v2");
    void *functions[COUNT];
    for (int n = 0; n < COUNT; n++) {
        int status;
        if (!address || address(NAMES[n], &functions[n], 12000, 0, &status) != 0 || !functions[n]) {
            fprintf(stderr, "no %s\n", NAMES[n]);
            return 1;
        }
    }
    double results[ROWS];
    if (bench(functions, ptx, atoi(argv[2]), results))
        return 1;
    print_results(results, ROWS);
    return 0;
}
