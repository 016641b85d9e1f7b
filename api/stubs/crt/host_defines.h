/* Our own minimal stand-in for <crt/host_defines.h>: the decorations that the runtime's headers use, as a C compiler
   for the host sees them. Enough to read the headers. Not for compiling programs. */
#ifndef CUPYRITE_STUB_HOST_DEFINES_H
#define CUPYRITE_STUB_HOST_DEFINES_H
#define __host__
#define __device__
#define __global__
#define __constant__
#define __managed__
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define CUDARTAPI
#define CUDARTAPI_CDECL
#define CUDAAPI
#define CUDACB
#endif
