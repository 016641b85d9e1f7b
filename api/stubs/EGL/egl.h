/* Our own minimal stand-in for <EGL/egl.h>: types only, enough to read NVIDIA's headers. Not for compiling programs. */
#ifndef CUPYRITE_STUB_EGL_H
#define CUPYRITE_STUB_EGL_H
#include <stdint.h>
typedef int32_t EGLint;
#endif
