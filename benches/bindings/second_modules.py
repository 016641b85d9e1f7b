"""ns per call: the functions that raise beside those that return a tuple."""

import ctypes
import time

from cuda.bindings import driver as a
from cuda.bindings import nvrtc
from cuda.bindings._v2 import driver as b


def ns(call, n=200000):
    for _ in range(1000):
        call()
    best = 1e9
    for _ in range(7):
        t = time.perf_counter_ns()
        for _ in range(n // 7):
            call()
        best = min(best, (time.perf_counter_ns() - t) / (n // 7))
    return best


b.init(0)
ctx = b.device_primary_ctx_retain(0)
b.ctx_set_current(ctx)
(s, e) = (b.stream_create(1), b.event_create(2))
_, at = a.cuStreamCreate(1)
_, ae = a.cuEventCreate(2)
p = b.mem_alloc_v2(1 << 20)
_, prog = nvrtc.nvrtcCreateProgram(b'extern "C" __global__ void k(int *p, int n) {}', b"k.cu", 0, None, None)
nvrtc.nvrtcCompileProgram(prog, 1, [b"-arch=compute_80"])
_, n = nvrtc.nvrtcGetPTXSize(prog)
ptx = bytearray(n)
nvrtc.nvrtcGetPTX(prog, ptx)
m = b.module_load_data(bytes(ptx))
k = b.module_get_function(m, b"k")
ak = a.CUfunction(k)
args = ((p, 1), (ctypes.c_void_p, ctypes.c_int))
for name, x, y in (
    ("ctx_get_current", lambda: b.ctx_get_current(), lambda: a.cuCtxGetCurrent()),
    ("device_get_attribute", lambda: b.device_get_attribute(10, 0), lambda: a.cuDeviceGetAttribute(10, 0)),
    ("event_record", lambda: b.event_record(e, s), lambda: a.cuEventRecord(ae, at)),
    ("stream_query", lambda: b.stream_is_capturing(s), lambda: a.cuStreamIsCapturing(at)),
    ("mem_get_info", lambda: b.mem_get_info_v2(), lambda: a.cuMemGetInfo()),
    ("memset_d8_async", lambda: b.memset_d8_async(p, 0, 4, s), lambda: a.cuMemsetD8Async(p, 0, 4, at)),
    (
        "launch_kernel",
        lambda: b.launch_kernel(k, 1, 1, 1, 1, 1, 1, 0, s, args, 0),
        lambda: a.cuLaunchKernel(ak, 1, 1, 1, 1, 1, 1, 0, at, args, 0),
    ),
):
    n = 7000 if "launch" in name or "memset" in name or "record" in name else 200000
    print(f"{name:22} raising {ns(x, n):8.1f} ns   tuple {ns(y, n):8.1f} ns")
