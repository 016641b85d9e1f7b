/* The C counterpart of calls_side.py: the same driver calls, timed without Python.
 *
 * As a program it opens libcuda.so.1 and prints nanoseconds, one row per line. As a shared library it receives the
 * addresses: the CPU device has no shared library of its own.
 *
 * cc -O2 -Iharness -o calls calls.c -ldl     or     cc -O2 -Iharness -shared -fPIC -o calls.so calls.c -ldl
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

typedef int (*fn0)(void *);
typedef int (*fn_init)(unsigned);
typedef int (*fn_device_get)(int *, int);
typedef int (*fn_attribute)(int *, int, int);
typedef int (*fn_retain)(void **, int);
typedef int (*fn_create)(void **, unsigned);
typedef int (*fn_stream_ctx)(void *, void **);
typedef int (*fn_load)(void **, const void *);
typedef int (*fn_function)(void **, void *, const char *);
typedef int (*fn_launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                         void **);
typedef int (*fn_void)(void);

/* Order of the addresses, as in calls_side.py. */
static const char *const NAMES[] = {
    "cuInit",           "cuDeviceGet",    "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",     "cuCtxGetCurrent",
    "cuStreamCreate",   "cuStreamGetCtx", "cuStreamQuery",            "cuDeviceGetAttribute", "cuEventCreate",
    "cuEventDestroy_v2", "cuModuleLoadData", "cuModuleGetFunction",   "cuLaunchKernel",      "cuCtxSynchronize",
};
enum { INIT, DEVICE_GET, RETAIN, SET_CURRENT, GET_CURRENT, STREAM_CREATE, STREAM_CTX, STREAM_QUERY, ATTRIBUTE,
       EVENT_CREATE, EVENT_DESTROY, LOAD, FUNCTION, LAUNCH, SYNCHRONIZE, COUNT };

/* results: nanoseconds, in the order of calls_side.ROWS. */
int bench(void *const *f, const char *ptx, int launches, double *results)
{
    void *context, *current, *stream, *stream_context, *module, *kernel16, *kernel512;
    void *event;
    int device, value;
    CHECK(((fn_init)f[INIT])(0));
    CHECK(((fn_device_get)f[DEVICE_GET])(&device, 0));
    CHECK(((fn_retain)f[RETAIN])(&context, device));
    CHECK(((fn0)f[SET_CURRENT])(context));
    CHECK(((fn_create)f[STREAM_CREATE])(&stream, 0));
    CHECK(((fn_load)f[LOAD])(&module, ptx));
    CHECK(((fn_function)f[FUNCTION])(&kernel16, module, "sixteen"));
    CHECK(((fn_function)f[FUNCTION])(&kernel512, module, "many"));

    /* int, float, pointer, double, four times; and 512 ints. */
    int i = 1;
    float x = 2;
    void *p = 0;
    double d = 3;
    void *arguments16[16], *arguments512[512];
    for (int n = 0; n < 16; n += 4) {
        arguments16[n] = &i;
        arguments16[n + 1] = &x;
        arguments16[n + 2] = &p;
        arguments16[n + 3] = &d;
    }
    for (int n = 0; n < 512; n++)
        arguments512[n] = &i;
    fn_launch launch = (fn_launch)f[LAUNCH];
    fn_void synchronize = (fn_void)f[SYNCHRONIZE];
    CHECK(launch(kernel16, 1, 1, 1, 1, 1, 1, 0, stream, arguments16, 0));
    CHECK(launch(kernel512, 1, 1, 1, 1, 1, 1, 0, stream, arguments512, 0));
    CHECK(synchronize());

    TIME_BETWEEN(results[0], 20, 20000, ((fn0)f[SET_CURRENT])(context), (void)0);
    TIME_BETWEEN(results[1], 20, 20000, ((fn0)f[STREAM_QUERY])(stream), (void)0);
    TIME_BETWEEN(results[2], 20, 20000, ((fn0)f[GET_CURRENT])(&current), (void)0);
    TIME_BETWEEN(results[3], 20, 20000, ((fn_stream_ctx)f[STREAM_CTX])(stream, &stream_context), (void)0);
    TIME_BETWEEN(results[4], 20, 20000, ((fn_attribute)f[ATTRIBUTE])(&value, 16, device), (void)0);
    TIME_BETWEEN(results[5], 20, 5000, (((fn_create)f[EVENT_CREATE])(&event, 0), ((fn0)f[EVENT_DESTROY])(event)), (void)0);
    TIME_BETWEEN(results[6], 100, launches, launch(kernel16, 1, 1, 1, 1, 1, 1, 0, stream, arguments16, 0), synchronize());
    TIME_BETWEEN(results[7], 100, launches, launch(kernel512, 1, 1, 1, 1, 1, 1, 0, stream, arguments512, 0), synchronize());
    CHECK(synchronize());
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: calls FILE.ptx LAUNCHES\n");
        return 2;
    }
    const char *ptx = read_ptx(argv[1]);
    if (!ptx)
        return 1;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    void *functions[COUNT];
    for (int n = 0; n < COUNT; n++) {
        functions[n] = dlsym(library, NAMES[n]);
        if (!functions[n]) {
            fprintf(stderr, "no %s\n", NAMES[n]);
            return 1;
        }
    }
    double results[8];
    if (bench(functions, ptx, atoi(argv[2]), results))
        return 1;
    print_results(results, 8);
    return 0;
}
