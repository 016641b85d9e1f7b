"""numba-cuda-mlir: kernels, and a stream of ours."""

import numpy as np
from checks import check, finish, need


def cuda():
    need("numba_cuda_mlir")
    from numba_cuda_mlir import cuda

    return cuda


@check
def a_kernel_runs():
    c = cuda()

    @c.jit
    def twice(a, b):
        i = c.grid(1)
        if i < a.size:
            b[i] = a[i] * 2

    a = np.arange(1000, dtype=np.float32)
    source, target = c.to_device(a), c.device_array_like(a)
    twice[8, 128](source, target)
    assert (target.copy_to_host() == 2 * a).all()


@check
def shared_memory_and_barriers():
    c = cuda()

    @c.jit
    def reverse(a):
        block = c.shared.array(64, np.int32)
        i = c.threadIdx.x
        block[i] = a[i]
        c.syncthreads()
        a[i] = block[63 - i]

    a = np.arange(64, dtype=np.int32)
    on_device = c.to_device(a)
    reverse[1, 64](on_device)
    assert (on_device.copy_to_host() == a[::-1]).all()


@check
def atomics():
    c = cuda()

    @c.jit
    def histogram(values, bins):
        i = c.grid(1)
        if i < values.size:
            c.atomic.add(bins, values[i], 1)

    values = np.random.default_rng(0).integers(0, 16, 5000).astype(np.int32)
    source, bins = c.to_device(values), c.to_device(np.zeros(16, dtype=np.int32))
    histogram[40, 128](source, bins)
    assert (bins.copy_to_host() == np.bincount(values, minlength=16)).all()


@check
def a_stream_of_cuda_core_is_accepted():
    import arrays

    c = cuda()
    stream = arrays.device().create_stream()

    @c.jit
    def fill(a):
        i = c.grid(1)
        if i < a.size:
            a[i] = 7

    theirs = c.external_stream(int(stream.handle))
    target = c.to_device(np.zeros(100, dtype=np.float32), stream=theirs)
    fill[1, 128, theirs](target)
    stream.sync()
    assert (target.copy_to_host() == 7).all()


if __name__ == "__main__":
    finish()
