/* Our own minimal stand-in for <vdpau/vdpau.h>: types only, enough to read NVIDIA's headers. Not for compiling programs. */
#ifndef CUPYRITE_STUB_VDPAU_H
#define CUPYRITE_STUB_VDPAU_H
#include <stdint.h>
typedef uint32_t VdpDevice;
typedef uint32_t VdpVideoSurface;
typedef uint32_t VdpOutputSurface;
typedef uint32_t VdpFuncId;
typedef int VdpStatus; /* an enum in the original */
typedef VdpStatus VdpGetProcAddress(VdpDevice device, VdpFuncId function_id, void **function_pointer);
#endif
