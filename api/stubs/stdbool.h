/* Our own minimal stand-in for <stdbool.h>: types only, enough to read NVIDIA's headers. Not for compiling programs. */
#ifndef CUPYRITE_STUB_STDBOOL_H
#define CUPYRITE_STUB_STDBOOL_H
#define bool _Bool
#endif
