/* A CUDA driver with two GPUs of compute capability 9.0, for tests of what happens on a GPU. It executes nothing.
   `fake_break(n)` puts the primary context of device 0 into an error state; n resets end it, and a negative n never ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICES 2
static int initialized, broken, resets;
static int visible[DEVICES], count;

int cuInit(unsigned flags) {
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    char text[64];
    snprintf(text, sizeof text, "%s", list ? list : "0,1");
    count = 0;
    for (char *part = strtok(text, ","); part && count < DEVICES; part = strtok(NULL, ",")) visible[count++] = atoi(part);
    initialized = 1;
    return count ? 0 : 100;
}
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGetCount(int *n) { *n = count; return initialized ? 0 : 3; }
int cuDeviceGetName(char *name, int size, int device) { snprintf(name, size, "Fake GPU %d", visible[device]); return 0; }
int cuDeviceGetAttribute(int *value, int attribute, int device) { *value = attribute == 75 ? 9 : 0; return 0; }
int cuGetErrorName(int status, const char **name) {
    *name = status == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : status == 100 ? "CUDA_ERROR_NO_DEVICE" : NULL;
    return *name ? 0 : 1;
}
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    *flags = 0;
    *active = device == 0 && broken;
    return initialized ? 0 : 3;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = &broken; return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) { return 0; }
int cuCtxPushCurrent_v2(void *context) { return 0; }
int cuCtxPopCurrent_v2(void **context) { return 0; }
int cuCtxSynchronize(void) { return broken ? 700 : 0; }
int cuDevicePrimaryCtxReset_v2(int device) { if (resets > 0 && --resets == 0) broken = 0; return 0; }
int cuDeviceGetMemPool(void **pool, int device) { return 3; }
void fake_break(int n) { cuInit(0); broken = 1; resets = n; }
