/* Our own minimal stand-in for <EGL/eglext.h>: types only, enough to read NVIDIA's headers. Not for compiling programs. */
#ifndef CUPYRITE_STUB_EGLEXT_H
#define CUPYRITE_STUB_EGLEXT_H
typedef void *EGLImageKHR;
typedef void *EGLStreamKHR;
typedef void *EGLSyncKHR;
#endif
