/* What the C calls of raising.py cost: raising LIBNVVM LIBNVJITLINK prints nanoseconds a call, a row a line. */

#include <dlfcn.h>
#include <stdio.h>
#include <time.h>

typedef int (*version_function)(int *, int *);
typedef int (*size_function)(void *, size_t *);
typedef int (*create_program)(void **);
typedef int (*create_linker)(void **, unsigned, const char **);

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

enum { ROUNDS = 30, COUNT = 20000 };

#define SMALLEST(call)                                  \
    do {                                                \
        double best = 1e30;                             \
        for (int round = 0; round < ROUNDS; round++) {  \
            double start = now();                       \
            for (int i = 0; i < COUNT; i++)             \
                call;                                   \
            double mean = (now() - start) / COUNT;      \
            if (mean < best)                            \
                best = mean;                            \
        }                                               \
        printf("%.3f\n", best);                         \
    } while (0)

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
    SMALLEST(nvvm_version(&major, &minor));
    SMALLEST(log_size(program, &size));
    SMALLEST(nvjitlink_version(&major, &minor));
    SMALLEST(error_log_size(linker, &size));
    return 0;
}
