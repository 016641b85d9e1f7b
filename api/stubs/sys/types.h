/* Our own minimal stand-in for <sys/types.h>: types only, enough to read NVIDIA's headers. Not for compiling programs. */
#ifndef CUPYRITE_STUB_SYS_TYPES_H
#define CUPYRITE_STUB_SYS_TYPES_H
#include <stddef.h>
typedef long ssize_t;
typedef long off_t;
typedef long long loff_t;
struct timespec;
#endif
