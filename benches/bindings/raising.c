/* The C calls of raising.py: raising LIBNVVM LIBNVJITLINK prints nanoseconds a call, one row per line. */

#include <dlfcn.h>
#include <stddef.h>

#include "bench.h"

typedef int (*version_function)(int *, int *);
typedef int (*size_function)(void *, size_t *);
typedef int (*create_program)(void **);
typedef int (*create_linker)(void **, unsigned, const char **);

enum { ROUNDS = 30, COUNT = 20000, ROWS = 4 };

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    void *nvvm = dlopen(argv[1], RTLD_NOW), *nvjitlink = dlopen(argv[2], RTLD_NOW);
    if (!nvvm || !nvjitlink) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    version_function nvvm_version = (version_function)dlsym(nvvm, "nvvmVersion");
    version_function nvjitlink_version = (version_function)dlsym(nvjitlink, "nvJitLinkVersion");
    size_function log_size = (size_function)dlsym(nvvm, "nvvmGetProgramLogSize");
    size_function error_log_size = (size_function)dlsym(nvjitlink, "nvJitLinkGetErrorLogSize");
    void *program, *linker;
    const char *options[] = {"-arch=sm_80"};
    if (((create_program)dlsym(nvvm, "nvvmCreateProgram"))(&program) != 0)
        return 1;
    if (((create_linker)dlsym(nvjitlink, "nvJitLinkCreate"))(&linker, 1, options) != 0)
        return 1;
    int major, minor;
    size_t size;
    double results[ROWS];
    TIME_BETWEEN(results[0], ROUNDS, COUNT, nvvm_version(&major, &minor), (void)0);
    TIME_BETWEEN(results[1], ROUNDS, COUNT, log_size(program, &size), (void)0);
    TIME_BETWEEN(results[2], ROUNDS, COUNT, nvjitlink_version(&major, &minor), (void)0);
    TIME_BETWEEN(results[3], ROUNDS, COUNT, error_log_size(linker, &size), (void)0);
    print_results(results, ROWS);
    return 0;
}
