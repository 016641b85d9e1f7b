/* The C counterpart of calls_side.py: the same driver calls, timed without Python.
 *
 * As a program it opens libcuda.so.1 itself and prints one line "name nanoseconds" a row. As a shared library it is
 * handed the addresses, which is how the CPU device (which is no library of its own) is measured.
 *
 * cc -O2 -o calls calls.c -ldl     and     cc -O2 -shared -fPIC -o calls.so calls.c -ldl
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "timing.h"

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

/* Order of the addresses; calls_side.py has the same list. */
static const char *const NAMES[] = {
    "cuInit",           "cuDeviceGet",    "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",     "cuCtxGetCurrent",
    "cuStreamCreate",   "cuStreamGetCtx", "cuStreamQuery",            "cuDeviceGetAttribute", "cuEventCreate",
    "cuEventDestroy_v2", "cuModuleLoadData", "cuModuleGetFunction",   "cuLaunchKernel",      "cuCtxSynchronize",
};
enum { INIT, DEVICE_GET, RETAIN, SET_CURRENT, GET_CURRENT, STREAM_CREATE, STREAM_CTX, STREAM_QUERY, ATTRIBUTE,
       EVENT_CREATE, EVENT_DESTROY, LOAD, FUNCTION, LAUNCH, SYNCHRONIZE, COUNT };

/* The smallest mean of `rounds` rounds of `count` calls; what is between rounds is not timed. */
#define TIME(slot, rounds, count, call, between)                                                                       \
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

/* results: eight doubles, nanoseconds, in the order of calls_side.ROWS. */
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

    /* int, float, pointer, double, four times over; and 512 ints. */
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

    TIME(results[0], 20, 20000, ((fn0)f[SET_CURRENT])(context), );
    TIME(results[1], 20, 20000, ((fn0)f[STREAM_QUERY])(stream), );
    TIME(results[2], 20, 20000, ((fn0)f[GET_CURRENT])(&current), );
    TIME(results[3], 20, 20000, ((fn_stream_ctx)f[STREAM_CTX])(stream, &stream_context), );
    TIME(results[4], 20, 20000, ((fn_attribute)f[ATTRIBUTE])(&value, 16, device), );
    TIME(results[5], 20, 5000, (((fn_create)f[EVENT_CREATE])(&event, 0), ((fn0)f[EVENT_DESTROY])(event)), );
    TIME(results[6], 100, launches, launch(kernel16, 1, 1, 1, 1, 1, 1, 0, stream, arguments16, 0), synchronize());
    TIME(results[7], 100, launches, launch(kernel512, 1, 1, 1, 1, 1, 1, 0, stream, arguments512, 0), synchronize());
    CHECK(synchronize());
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: calls FILE.ptx LAUNCHES\n");
        return 2;
    }
    FILE *file = fopen(argv[1], "rb");
    static char ptx[1 << 20];
    if (!file || fread(ptx, 1, sizeof ptx - 1, file) == 0) {
        fprintf(stderr, "%s: cannot read\n", argv[1]);
        return 1;
    }
    fclose(file);
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
    for (int n = 0; n < 8; n++)
        printf("%.2f\n", results[n]);
    return 0;
}
