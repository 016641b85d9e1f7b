// Loads and unloads a shared library with device code. Its variables start anew each time.
#include <dlfcn.h>
#include "check.h"

int main(int, char **arguments) {
    for (int i = 0; i < 3; i++) {
        void *library = dlopen(arguments[1], RTLD_NOW);
        EXPECT(library != nullptr);
        int (*run)() = (int (*)())dlsym(library, "run");
        EXPECT(run != nullptr && run() == 1 && run() == 2);
        EXPECT(dlclose(library) == 0);
        EXPECT(dlopen(arguments[1], RTLD_NOW | RTLD_NOLOAD) == nullptr);
    }
    std::puts("done");
}
