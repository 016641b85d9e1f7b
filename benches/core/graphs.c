/* The C counterpart of graphs_side.py: the driver calls behind cuda.core.graph, timed without Python.
 *
 * graphs FILE.ptx ROUNDS     opens libcuda.so.1 and prints nanoseconds, one row per line.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    void *func;
    unsigned grid[3], block[3], shared;
    void **params, **extra;
    void *kern, *ctx;
} kernel_params;

enum { NODES = 1000, LAUNCHES = 100, UPDATES = 1000 };
static void *library;

static void *find(const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "%s is missing\n", name);
        exit(1);
    }
    return found;
}

static void check(int status, const char *what)
{
    if (status) {
        fprintf(stderr, "%s: error %d\n", what, status);
        exit(1);
    }
}
#define CALL(type, name, ...) check(((int (*) type)find(#name))(__VA_ARGS__), #name)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static double least(double a, double b) { return a < b ? a : b; }


int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    static char ptx[1 << 20];
    FILE *file = fopen(argv[1], "rb");
    if (!file) return 1;
    size_t size = fread(ptx, 1, sizeof ptx - 1, file);
    ptx[size] = 0;
    fclose(file);
    int rounds = atoi(argv[2]), device;
    void *context, *stream, *code, *kernel, *graph, *chain, *executable, *single, *only;
    CALL((int), cuInit, 0);
    CALL((int *, int), cuDeviceGet, &device, 0);
    CALL((void **, int), cuDevicePrimaryCtxRetain, &context, device);
    CALL((void *), cuCtxSetCurrent, context);
    CALL((void **, unsigned), cuStreamCreate, &stream, 1);
    CALL((void **, void *, void *, void *, unsigned, void *, void *, unsigned), cuLibraryLoadData, &code, ptx, 0, 0, 0, 0,
         0, 0);
    CALL((void **, void *, const char *), cuLibraryGetKernel, &kernel, code, "none");
    int (*create)(void **, unsigned) = (int (*)(void **, unsigned))find("cuGraphCreate");
    int (*add)(void **, void *, void **, size_t, const kernel_params *) =
        (int (*)(void **, void *, void **, size_t, const kernel_params *))find("cuGraphAddKernelNode_v2");
    int (*instantiate)(void **, void *, unsigned long long) =
        (int (*)(void **, void *, unsigned long long))find("cuGraphInstantiateWithFlags");
    int (*destroy)(void *) = (int (*)(void *))find("cuGraphDestroy");
    int (*destroy_executable)(void *) = (int (*)(void *))find("cuGraphExecDestroy");
    int (*launch)(void *, void *) = (int (*)(void *, void *))find("cuGraphLaunch");
    int (*update)(void *, void *, const kernel_params *) =
        (int (*)(void *, void *, const kernel_params *))find("cuGraphExecKernelNodeSetParams_v2");
    int (*synchronize)(void *) = (int (*)(void *))find("cuStreamSynchronize");
    int (*begin)(void *, int) = (int (*)(void *, int))find("cuStreamBeginCapture_v2");
    int (*end)(void *, void **) = (int (*)(void *, void **))find("cuStreamEndCapture");
    int (*launch_kernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                         void **) =
        (int (*)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                 void **))find("cuLaunchKernel");
    kernel_params params;
    memset(&params, 0, sizeof params);
    for (int i = 0; i < 3; i++) params.grid[i] = params.block[i] = 1;
    params.kern = kernel;
    params.ctx = context;
    double rows[5] = {1e18, 1e18, 1e18, 1e18, 1e18};
    check(create(&single, 0), "create");
    check(add(&only, single, NULL, 0, &params), "add");
    void *one;
    check(instantiate(&one, single, 0), "instantiate");
    for (int round = 0; round < rounds; round++) {
        double start = now();
        check(create(&graph, 0), "create");
        void *last = NULL, *node;
        for (int i = 0; i < NODES; i++, last = node) check(add(&node, graph, &last, i > 0, &params), "add");
        chain = graph;
        rows[0] = least(rows[0], (now() - start) / NODES);
        start = now();
        check(instantiate(&executable, chain, 0), "instantiate");
        check(destroy_executable(executable), "destroy");
        rows[1] = least(rows[1], (now() - start) / NODES);
        check(destroy(chain), "destroy");
    }
    /* Row by row, as in graphs_side.py, so that no launch follows an update. */
    check(launch(one, stream), "launch");
    check(synchronize(stream), "synchronize");
    for (int round = 0; round < rounds; round++) {
        double start = now();
        for (int i = 0; i < LAUNCHES; i++) check(launch(one, stream), "launch");
        rows[2] = least(rows[2], (now() - start) / LAUNCHES);
        check(synchronize(stream), "synchronize");
    }
    for (int round = 0; round < rounds; round++) {
        double start = now();
        for (int i = 0; i < UPDATES; i++) check(update(one, only, &params), "update");
        rows[3] = least(rows[3], (now() - start) / UPDATES);
    }
    for (int round = 0; round < rounds; round++) {
        double start = now();
        check(begin(stream, 2), "begin");
        for (int i = 0; i < NODES; i++)
            check(launch_kernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL), "launch");
        check(end(stream, &graph), "end");
        rows[4] = least(rows[4], (now() - start) / NODES);
        check(destroy(graph), "destroy");
    }
    for (int i = 0; i < 5; i++) printf("%.1f\n", rows[i]);
    return 0;
}
