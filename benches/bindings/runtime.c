/* The C counterpart of runtime_side.py: the same calls of the runtime API, timed without Python.
 *
 * As a program it opens libcudart and libcuda.so.1 and prints nanoseconds, one row per line. As a shared library it
 * receives the addresses.
 *
 * cc -O2 -Iharness -o runtime runtime.c -ldl     or     cc -O2 -Iharness -shared -fPIC -o runtime.so runtime.c -ldl
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

typedef int (*fn_void)(void);
typedef int (*fn_1)(void *);
typedef int (*fn_2)(void *, void *);
typedef int (*fn_int)(int);
typedef int (*fn_size)(void *, size_t);
typedef int (*fn_malloc_async)(void **, size_t, void *);
typedef int (*fn_copy)(void *, const void *, size_t, int);
typedef int (*fn_copy_async)(void *, const void *, size_t, int, void *);
typedef int (*fn_set)(void *, int, size_t);
typedef int (*fn_set_async)(void *, int, size_t, void *);
typedef int (*fn_wait)(void *, void *, unsigned);
typedef int (*fn_elapsed)(float *, void *, void *);
typedef int (*fn_load)(void **, const void *, void *, void *, unsigned, void *, void *, unsigned);
typedef int (*fn_kernel)(void **, void *, const char *);
typedef int (*fn_launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                         void **);

/* Order of the addresses, as in runtime_side.py. The last one is the driver's. */
static const char *const NAMES[] = {
    "cudaSetDevice",        "cudaGetDevice",      "cudaMalloc",           "cudaFree",          "cudaMallocAsync",
    "cudaFreeAsync",        "cudaMallocHost",     "cudaFreeHost",         "cudaMemcpy",        "cudaMemcpyAsync",
    "cudaMemset",           "cudaMemsetAsync",    "cudaStreamCreate",     "cudaStreamDestroy", "cudaStreamQuery",
    "cudaStreamSynchronize", "cudaStreamWaitEvent", "cudaEventCreate",    "cudaEventDestroy",  "cudaEventRecord",
    "cudaEventQuery",       "cudaEventSynchronize", "cudaEventElapsedTime", "cudaLibraryLoadData",
    "cudaLibraryGetKernel", "cudaDeviceSynchronize", "cuLaunchKernel",
};
enum { SET_DEVICE, GET_DEVICE, MALLOC, FREE, MALLOC_ASYNC, FREE_ASYNC, MALLOC_HOST, FREE_HOST, MEMCPY, MEMCPY_ASYNC,
       MEMSET, MEMSET_ASYNC, STREAM_CREATE, STREAM_DESTROY, STREAM_QUERY, STREAM_SYNCHRONIZE, STREAM_WAIT, EVENT_CREATE,
       EVENT_DESTROY, EVENT_RECORD, EVENT_QUERY, EVENT_SYNCHRONIZE, EVENT_ELAPSED, LOAD, KERNEL, SYNCHRONIZE, LAUNCH,
       COUNT };
enum { ROWS = 20, BYTES = 256, TO_DEVICE = 1 };

/* The device is idle when a round begins. */
#define TIME(slot, rounds, count, call) TIME_BETWEEN(slot, rounds, count, call, CHECK(synchronize()))

/* results: ROWS doubles, nanoseconds, in the order of runtime_side.ROWS. */
int bench(void *const *f, const char *ptx, int rounds, double *results)
{
    void *memory, *host, *stream, *event, *begin, *library, *kernel, *p;
    int device;
    float elapsed;
    fn_void synchronize = (fn_void)f[SYNCHRONIZE];
    CHECK(((fn_int)f[SET_DEVICE])(0));
    CHECK(((fn_size)f[MALLOC])(&memory, 1 << 20));
    CHECK(((fn_size)f[MALLOC_HOST])(&host, 1 << 20));
    CHECK(((fn_1)f[STREAM_CREATE])(&stream));
    CHECK(((fn_1)f[EVENT_CREATE])(&begin));
    CHECK(((fn_1)f[EVENT_CREATE])(&event));
    CHECK(((fn_load)f[LOAD])(&library, ptx, 0, 0, 0, 0, 0, 0));
    CHECK(((fn_kernel)f[KERNEL])(&kernel, library, "sixteen"));
    int i = 1;
    float x = 2;
    void *q = 0;
    double d = 3;
    void *arguments[16];
    for (int n = 0; n < 16; n += 4) {
        arguments[n] = &i;
        arguments[n + 1] = &x;
        arguments[n + 2] = &q;
        arguments[n + 3] = &d;
    }
    char pageable[BYTES] = {0};
    CHECK(((fn_malloc_async)f[MALLOC_ASYNC])(&p, BYTES, stream));
    CHECK(((fn_2)f[FREE_ASYNC])(p, stream));
    CHECK(((fn_launch)f[LAUNCH])(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, 0));
    CHECK(((fn_2)f[EVENT_RECORD])(begin, stream));
    CHECK(((fn_2)f[EVENT_RECORD])(event, stream));
    CHECK(synchronize());

    double *out = results;
    TIME(*out++, rounds, 2000, ((fn_int)f[SET_DEVICE])(0));
    TIME(*out++, rounds, 2000, ((fn_1)f[GET_DEVICE])(&device));
    TIME(*out++, rounds, 100, (((fn_size)f[MALLOC])(&p, BYTES), ((fn_1)f[FREE])(p)));
    TIME(*out++, rounds, 100, (((fn_malloc_async)f[MALLOC_ASYNC])(&p, BYTES, stream), ((fn_2)f[FREE_ASYNC])(p, stream)));
    TIME(*out++, rounds, 20, (((fn_size)f[MALLOC_HOST])(&p, BYTES), ((fn_1)f[FREE_HOST])(p)));
    TIME(*out++, rounds, 200, ((fn_copy)f[MEMCPY])(memory, pageable, BYTES, TO_DEVICE));
    TIME(*out++, rounds, 200, ((fn_copy_async)f[MEMCPY_ASYNC])(memory, host, BYTES, TO_DEVICE, stream));
    TIME(*out++, rounds, 200, ((fn_set)f[MEMSET])(memory, 0, BYTES));
    TIME(*out++, rounds, 200, ((fn_set_async)f[MEMSET_ASYNC])(memory, 0, BYTES, stream));
    TIME(*out++, rounds, 20, (((fn_1)f[STREAM_CREATE])(&p), ((fn_1)f[STREAM_DESTROY])(p)));
    TIME(*out++, rounds, 2000, ((fn_1)f[STREAM_QUERY])(stream));
    TIME(*out++, rounds, 500, ((fn_1)f[STREAM_SYNCHRONIZE])(stream));
    TIME(*out++, rounds, 500, ((fn_wait)f[STREAM_WAIT])(stream, event, 0));
    TIME(*out++, rounds, 500, (((fn_1)f[EVENT_CREATE])(&p), ((fn_1)f[EVENT_DESTROY])(p)));
    TIME(*out++, rounds, 200, ((fn_2)f[EVENT_RECORD])(event, stream));
    TIME(*out++, rounds, 2000, ((fn_1)f[EVENT_QUERY])(event));
    TIME(*out++, rounds, 500, ((fn_1)f[EVENT_SYNCHRONIZE])(event));
    TIME(*out++, rounds, 500, ((fn_elapsed)f[EVENT_ELAPSED])(&elapsed, begin, event));
    TIME(*out++, rounds, 200, ((fn_launch)f[LAUNCH])(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, 0));
    TIME(*out++, rounds, 500, synchronize());
    return out - results == ROWS ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: runtime LIBCUDART FILE.ptx ROUNDS\n");
        return 2;
    }
    const char *ptx = read_ptx(argv[2]);
    if (!ptx)
        return 1;
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *runtime = driver ? dlopen(argv[1], RTLD_NOW) : 0;
    if (!runtime) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void *functions[COUNT];
    for (int n = 0; n < COUNT; n++) {
        functions[n] = dlsym(n == LAUNCH ? driver : runtime, NAMES[n]);
        if (!functions[n]) {
            fprintf(stderr, "no %s\n", NAMES[n]);
            return 1;
        }
    }
    double results[ROWS];
    if (bench(functions, ptx, atoi(argv[3]), results))
        return 1;
    print_results(results, ROWS);
    return 0;
}
