/* The C counterpart of peer_copies.py, a shared library: the same copies at the addresses that it receives.
 *
 * cc -O2 -I../harness -shared -fPIC -o peer_copies.so peer_copies.c
 */
#include <stddef.h>
#include <stdint.h>

#include "bench.h"

typedef int (*fn_peer)(uint64_t, void *, uint64_t, void *, size_t, void *);
typedef int (*fn_copy)(uint64_t, uint64_t, size_t, void *);
typedef int (*fn_pointer)(void *);
typedef int (*fn_record)(void *, void *);
typedef int (*fn_wait)(void *, void *, unsigned);

/* Order of the addresses, as in peer_copies.SYMBOLS. */
enum { COPY_PEER, COPY, SYNCHRONIZE, RECORD, WAIT };

/* As Way.in_c of peer_copies.py. */
typedef struct {
    uint64_t to, from;
    void *to_context, *from_context;
    size_t size;
    void *stream;
} peer_copy;

static inline int enqueue(void *const *f, int peer, const peer_copy *c)
{
    if (peer)
        return ((fn_peer)f[COPY_PEER])(c->to, c->to_context, c->from, c->from_context, c->size, c->stream);
    return ((fn_copy)f[COPY])(c->to, c->from, c->size, c->stream);
}

/* All copies `count` times back to back, then one synchronization of each stream. mean: nanoseconds a repetition. */
int back_to_back(void *const *f, int peer, const peer_copy *copies, int ways, int count, double *mean)
{
    double start = now();
    for (int n = 0; n < count; n++)
        for (int way = 0; way < ways; way++)
            CHECK(enqueue(f, peer, &copies[way]));
    for (int way = 0; way < ways; way++)
        CHECK(((fn_pointer)f[SYNCHRONIZE])(copies[way].stream));
    *mean = (now() - start) / count;
    return 0;
}

/* One copy and a synchronization of the stream `last`, `count` times. With an event, `last` waits for the copy first.
 * mean: nanoseconds a repetition. */
int one_by_one(void *const *f, int peer, const peer_copy *copy, void *event, void *last, int count, double *mean)
{
    double start = now();
    for (int n = 0; n < count; n++) {
        CHECK(enqueue(f, peer, copy));
        if (event) {
            CHECK(((fn_record)f[RECORD])(event, copy->stream));
            CHECK(((fn_wait)f[WAIT])(last, event, 0));
        }
        CHECK(((fn_pointer)f[SYNCHRONIZE])(last));
    }
    *mean = (now() - start) / count;
    return 0;
}
