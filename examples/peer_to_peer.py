"""Two devices: copies between them, and a kernel on one that uses the memory of the other.

On a machine without GPUs, `CUPYRITE_CPU_DEVICES=2` configures two CPU devices.
"""

import numpy as np
from cuda.bindings import driver
from sample import Kernels, Skip, check, name_of, run, use, verify

SOURCE = r"""
extern "C" __global__ void twice(const float *in, float *out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = 2 * in[i];
}
"""


def main():
    if check(driver.cuDeviceGetCount()) < 2:
        raise Skip("two devices are needed (CUPYRITE_CPU_DEVICES=2 configures two CPU devices)")
    if not (check(driver.cuDeviceCanAccessPeer(0, 1)) and check(driver.cuDeviceCanAccessPeer(1, 0))):
        raise Skip("the first two devices cannot access each other's memory")
    print(f"and on {name_of(1)}")
    n = 1 << 18
    data = np.arange(n, dtype=np.float32)
    contexts = [use(device) for device in (0, 1)]
    memory, kernels = [], []
    for device, context in enumerate(contexts):
        check(driver.cuCtxSetCurrent(context))
        check(driver.cuCtxEnablePeerAccess(contexts[1 - device], 0))
        memory.append(check(driver.cuMemAlloc(data.nbytes)))
        kernels.append(Kernels(SOURCE, device=device))

    # There and back again, one copy at a time.
    check(driver.cuCtxSetCurrent(contexts[0]))
    check(driver.cuMemcpyHtoD(memory[0], data.ctypes.data, data.nbytes))
    check(driver.cuMemcpyPeer(memory[1], contexts[1], memory[0], contexts[0], data.nbytes))
    check(driver.cuCtxSynchronize())

    # A kernel on device 0 reads device 1 and writes its own memory; then one on device 1 does the reverse.
    for device in (0, 1):
        check(driver.cuCtxSetCurrent(contexts[device]))
        kernels[device]["twice"](n // 256, 256, memory[1 - device], memory[device], np.int32(n))
        check(driver.cuCtxSynchronize())
    out = np.empty_like(data)
    check(driver.cuMemcpyDtoH(out.ctypes.data, memory[1], out.nbytes))
    verify((out == 4 * data).all(), "the numbers after two kernels, each on the other's memory")
    for device, context in enumerate(contexts):
        check(driver.cuCtxSetCurrent(context))
        check(driver.cuMemFree(memory[device]))
        check(driver.cuCtxDisablePeerAccess(contexts[1 - device]))
    check(driver.cuCtxSetCurrent(contexts[0]))
    print(f"{n} numbers copied there and back, and doubled twice")


if __name__ == "__main__":
    run(main)
