/* Our own minimal stand-in for <stddef.h>: types only, enough to read NVIDIA's headers. Not for compiling programs. */
#ifndef CUPYRITE_STUB_STDDEF_H
#define CUPYRITE_STUB_STDDEF_H
typedef __SIZE_TYPE__ size_t;
#endif
