/* The C counterpart of rows_side.py, a shared library: the same calls at the addresses that it receives.
 *
 * cc -O2 -I../harness -shared -fPIC -o rows.so rows.c
 */
#include <stdint.h>

#include "bench.h"

typedef int (*fn)();

/* Order of the addresses, as in rows_side.SYMBOLS. */
enum { GET_CURRENT, SET_CURRENT, STREAM_QUERY, DEVICE_ATTRIBUTE, EVENT_RECORD, EVENT_CREATE, EVENT_DESTROY,
       POINTER_ATTRIBUTE, GET_FUNCTION, ALLOCATE, FREE, ALLOCATE_ASYNC, FREE_ASYNC, LAUNCH, TILED, IM2COL, IM2COL_WIDE,
       EVENT_QUERY, EVENT_SYNCHRONIZE, STREAM_SYNCHRONIZE, SYNCHRONIZE, CREATE_PROGRAM, DESTROY_PROGRAM };
/* Order of the kernels, as in rows_side.KERNELS. */
enum { NONE, THREE, SIXTEEN, LONGS, BYTES };

/* Calls with the signatures of the header. */
#define P(index, ...) ((int (*)(__VA_ARGS__))f[index])

int bench(void *const *f, void *stream, void *module, void *const *kernels, void *memory, int rounds, int launches,
          double *out)
{
    void *context, *event, *function, *program, *buffer;
    int value;
    uint64_t address = (uint64_t)memory, allocated;
    CHECK(P(GET_CURRENT, void **)(&context));
    CHECK(P(EVENT_CREATE, void **, unsigned)(&event, 2));

    TIME_BETWEEN(*out++, rounds, 2000, P(GET_CURRENT, void **)(&context), );
    TIME_BETWEEN(*out++, rounds, 2000, P(SET_CURRENT, void *)(context), );
    TIME_BETWEEN(*out++, rounds, 2000, P(STREAM_QUERY, void *)(stream), );
    TIME_BETWEEN(*out++, rounds, 2000, P(DEVICE_ATTRIBUTE, int *, int, int)(&value, 16, 0), );
    TIME_BETWEEN(*out++, rounds, 500, P(EVENT_RECORD, void *, void *)(event, stream), );
    TIME_BETWEEN(*out++, rounds, 500,
                 (P(EVENT_CREATE, void **, unsigned)(&buffer, 2), P(EVENT_DESTROY, void *)(buffer)), );
    TIME_BETWEEN(*out++, rounds, 2000, P(POINTER_ATTRIBUTE, void *, int, uint64_t)(&value, 2, address), );
    TIME_BETWEEN(*out++, rounds, 2000, P(GET_FUNCTION, void **, void *, const char *)(&function, module, "none"), );
    TIME_BETWEEN(*out++, rounds, 100,
                 (P(ALLOCATE, uint64_t *, size_t)(&allocated, 256), P(FREE, uint64_t)(allocated)), );
    TIME_BETWEEN(*out++, rounds, 100,
                 (P(ALLOCATE_ASYNC, uint64_t *, size_t, void *)(&allocated, 256, stream),
                  P(FREE_ASYNC, uint64_t, void *)(allocated, stream)), );

    uint64_t one = 1;
    void *arguments[512];
    for (int n = 0; n < 512; n++)
        arguments[n] = &one;
#define LAUNCHED(kernel)                                                                                               \
    P(LAUNCH, void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **)  \
    (kernels[kernel], 1, 1, 1, 1, 1, 1, 0, stream, arguments, 0)
#define WAIT P(SYNCHRONIZE, void)()
    CHECK(LAUNCHED(LONGS));
    TIME_BETWEEN(*out++, rounds, launches, LAUNCHED(NONE), WAIT);
    TIME_BETWEEN(*out, rounds, launches, LAUNCHED(SIXTEEN), WAIT);
    out[1] = out[0];
    out += 2;
    TIME_BETWEEN(*out, rounds, launches, LAUNCHED(LONGS), WAIT);
    out[1] = out[0];
    out += 2;
    TIME_BETWEEN(*out, rounds, launches, LAUNCHED(BYTES), WAIT);
    out[1] = out[0];
    out += 2;

    _Alignas(64) char map[128];
    uint64_t shape2[] = {64, 64}, strides2[] = {256}, shape3[] = {32, 16, 16}, strides3[] = {128, 2048};
    uint32_t box[] = {16, 16}, ones[] = {1, 1, 1};
    int corner[] = {0};
#define MAP void *, int, unsigned, uint64_t, uint64_t *, uint64_t *
    TIME_BETWEEN(*out++, rounds, 1000,
                 P(TILED, MAP, uint32_t *, uint32_t *, int, int, int, int)
                 (map, 7, 2, address, shape2, strides2, box, ones, 0, 0, 0, 0), );
    TIME_BETWEEN(*out++, rounds, 1000,
                 P(IM2COL, MAP, int *, int *, unsigned, unsigned, uint32_t *, int, int, int, int)
                 (map, 7, 3, address, shape3, strides3, corner, corner, 32, 16, ones, 0, 0, 0, 0), );
    TIME_BETWEEN(*out++, rounds, 1000,
                 P(IM2COL_WIDE, MAP, int, int, unsigned, unsigned, uint32_t *, int, int, int, int, int)
                 (map, 7, 3, address, shape3, strides3, 0, 0, 32, 16, ones, 0, 0, 3, 0, 0), );

    static char texts[2][100][8];
    const char *names[2][100];
    for (int list = 0; list < 2; list++)
        for (int n = 0; n < 100; n++) {
            snprintf(texts[list][n], sizeof texts[list][n], "%c%d.h", "st"[list], n);
            names[list][n] = texts[list][n];
        }
#define PROGRAM(headers)                                                                                               \
    (P(CREATE_PROGRAM, void **, const char *, const char *, int, const char *const *, const char *const *)             \
     (&program, "", "", headers, names[0], names[1]), P(DESTROY_PROGRAM, void **)(&program))
    TIME_BETWEEN(*out++, rounds, 500, PROGRAM(0), );
    TIME_BETWEEN(*out++, rounds, 50, PROGRAM(100), );

    CHECK(P(EVENT_RECORD, void *, void *)(event, stream));
    CHECK(WAIT);
    TIME_BETWEEN(*out++, rounds, 2000, P(EVENT_QUERY, void *)(event), );
    TIME_BETWEEN(*out++, rounds, 2000, P(EVENT_SYNCHRONIZE, void *)(event), );
    TIME_BETWEEN(*out++, rounds, 2000, P(STREAM_SYNCHRONIZE, void *)(stream), );
    TIME_BETWEEN(*out++, rounds, 500, P(STREAM_SYNCHRONIZE, void *)(0), );
    TIME_BETWEEN(*out++, rounds, 500, P(EVENT_RECORD, void *, void *)(event, stream), );
    TIME_BETWEEN(*out++, rounds, launches, LAUNCHED(NONE), WAIT);
    TIME_BETWEEN(*out++, rounds, launches, LAUNCHED(THREE), WAIT);
    *out++ = 0;
    TIME_BETWEEN(*out++, rounds, 100,
                 (P(ALLOCATE_ASYNC, uint64_t *, size_t, void *)(&allocated, 256, stream),
                  P(FREE_ASYNC, uint64_t, void *)(allocated, stream)), );
    return 0;
}
