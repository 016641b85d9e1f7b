// Checks of the programs in this folder. A failed one prints its place and ends the program with status 1.
#pragma once
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                            \
    do {                                                                                       \
        cudaError_t status = (call);                                                           \
        if (status != cudaSuccess) {                                                           \
            std::printf("line %d: %s: %s\n", __LINE__, #call, cudaGetErrorName(status));       \
            std::exit(1);                                                                      \
        }                                                                                      \
    } while (0)
#define EXPECT(condition)                                                                      \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            std::printf("line %d: %s\n", __LINE__, #condition);                                \
            std::exit(1);                                                                      \
        }                                                                                      \
    } while (0)
