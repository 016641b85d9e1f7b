/* A driver whose launches, copies, allocations and updates of instantiated graphs do nothing; all else goes to another
 * driver. With it the benchmarks show what the calls of each side cost without the device.
 *
 * cc -O2 -shared -fPIC -DDRIVER='"/path/of/the/other/driver"' -o libcuda.so.1 idle_driver.c -ldl
 *
 * Only functions requested through cuGetProcAddress are found.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int nothing(void) { return 0; }

/* Returns an address that is never accessed. */
static int allocated(unsigned long long *address)
{
    *address = 1 << 16;
    return 0;
}

static const char *const IDLE[] = {"cuLaunchKernel",    "cuLaunchKernelEx", "cuMemcpyAsync",
                                   "cuMemcpyDtoDAsync", "cuMemFreeAsync",   "cuGraphLaunch",
                                   "cuGraphExecKernelNodeSetParams", "cuGraphExecNodeSetParams"};

typedef int (*fn_address)(const char *, void **, int, unsigned long long, int *);

static fn_address other(void)
{
    static fn_address found;
    if (!found) {
        void *driver = dlopen(DRIVER, RTLD_NOW);
        found = driver ? (fn_address)dlsym(driver, "cuGetProcAddress_v2") : 0;
        if (!found) {
            fprintf(stderr, "%s\n", dlerror());
            abort();
        }
    }
    return found;
}

int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags, int *status)
{
    void *mine = strcmp(name, "cuGetProcAddress") == 0 ? (void *)cuGetProcAddress_v2 : 0;
    for (unsigned n = 0; n < sizeof IDLE / sizeof *IDLE; n++)
        if (strcmp(name, IDLE[n]) == 0)
            mine = (void *)nothing;
    if (strcmp(name, "cuMemAllocFromPoolAsync") == 0)
        mine = (void *)allocated;
    if (!mine)
        return other()(name, function, version, flags, status);
    *function = mine;
    if (status)
        *status = 0;
    return 0;
}

int cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags)
{
    return cuGetProcAddress_v2(name, function, version, flags, 0);
}

/* Functions that programs look up with dlsym. */
int cuInit(unsigned flags)
{
    void *function;
    int status = cuGetProcAddress_v2("cuInit", &function, 12000, 0, 0);
    return status ? status : ((int (*)(unsigned))function)(flags);
}

int cuDriverGetVersion(int *version)
{
    void *function;
    int status = cuGetProcAddress_v2("cuDriverGetVersion", &function, 12000, 0, 0);
    return status ? status : ((int (*)(int *))function)(version);
}
