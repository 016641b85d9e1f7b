/* Our own minimal stand-in for <limits.h>: enough to read NVIDIA's headers. Not for compiling programs. */
#ifndef CUPYRITE_STUB_LIMITS_H
#define CUPYRITE_STUB_LIMITS_H
#define INT_MAX __INT_MAX__
#define UINT_MAX (__INT_MAX__ * 2U + 1U)
#define ULLONG_MAX (__LONG_LONG_MAX__ * 2ULL + 1ULL)
#endif
