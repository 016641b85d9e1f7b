"""CuPy: arrays through `StridedMemoryView`, kernels on its arrays, streams both ways."""

import arrays
import numpy as np
from checks import check, finish, need, need_gpu

STATIC = "CuPy's own CUDA runtime asks the driver for export tables (docs/clients.md)"


def cupy():
    module = need("cupy")
    need_gpu(STATIC)
    arrays.device()
    return module


@check
def an_array_is_viewed_through_DLPack_and_the_array_interface():
    from cuda.core.utils import StridedMemoryView

    cp = cupy()
    a = cp.arange(24, dtype=cp.float32).reshape(4, 6)[:, ::2]
    for view in (
        StridedMemoryView.from_any_interface(a, stream_ptr=-1),
        StridedMemoryView.from_dlpack(a, stream_ptr=-1),
        StridedMemoryView.from_cuda_array_interface(a, stream_ptr=-1),
    ):
        assert view.ptr == a.data.ptr and view.shape == (4, 3), (view.ptr, a.data.ptr, view.shape)
        assert view.strides == (6, 2), view.strides
        assert view.dtype == np.float32 and view.is_device_accessible and view.exporting_obj is a


@check
def a_kernel_of_ours_runs_on_an_array_of_CuPy():
    cp = cupy()
    a = cp.arange(1000, dtype=cp.float32)
    b = cp.zeros_like(a)
    cp.cuda.get_current_stream().synchronize()
    stream = arrays.device().create_stream()
    arrays.twice(stream, a.data.ptr, b.data.ptr, 1000)
    stream.sync()
    assert (b == 2 * a).all()


@check
def an_array_of_ours_is_an_array_of_CuPy():
    cp = cupy()
    ours = arrays.Array(np.arange(1000, dtype=np.float32))
    theirs = cp.asarray(ours)
    assert theirs.data.ptr == ours.pointer
    theirs += 1
    assert (ours.get() == np.arange(1000) + 1).all()


@check
def a_buffer_of_ours_goes_through_DLPack():
    cp = cupy()
    device = arrays.device()
    stream = device.create_stream()
    buffer = device.allocate(64, stream=stream)
    stream.sync()
    theirs = cp.from_dlpack(buffer)
    assert theirs.nbytes == 64 and theirs.data.ptr == int(buffer.handle)


@check
def a_stream_of_CuPy_is_a_stream_of_ours():
    cp = cupy()
    theirs = cp.cuda.Stream(non_blocking=True)
    ours = arrays.device().create_stream(arrays.Foreign(theirs.ptr))
    assert int(ours.handle) == theirs.ptr
    a = cp.zeros(1000, dtype=cp.float32)
    cp.cuda.Device().synchronize()
    arrays.late(ours, a.data.ptr, 1000)
    with theirs:
        b = a + 1
        assert (b.get() == 4).all()


@check
def a_stream_of_CuPy_is_accepted_by_launch():
    cp = cupy()
    theirs = cp.cuda.Stream(non_blocking=True)
    a = cp.arange(100, dtype=cp.float32)
    b = cp.zeros_like(a)
    cp.cuda.Device().synchronize()
    target = theirs if hasattr(theirs, "__cuda_stream__") else arrays.Foreign(theirs.ptr)
    arrays.twice(target, a.data.ptr, b.data.ptr, 100)
    theirs.synchronize()
    assert (b == 2 * a).all()


@check
def a_stream_of_ours_is_a_stream_of_CuPy():
    cp = cupy()
    ours = arrays.device().create_stream()
    a = cp.zeros(1000, dtype=cp.float32)
    cp.cuda.Device().synchronize()
    with cp.cuda.ExternalStream(int(ours.handle)):
        arrays.late(ours, a.data.ptr, 1000)
        assert ((a + 1).get() == 4).all()


@check
def a_kernel_of_CuPy_waits_for_an_event_of_ours():
    cp = cupy()
    first, second = arrays.device().create_stream(), arrays.device().create_stream()
    a = cp.zeros(1000, dtype=cp.float32)
    cp.cuda.Device().synchronize()
    arrays.late(first, a.data.ptr, 1000)
    second.wait(first.record())
    with cp.cuda.ExternalStream(int(second.handle)):
        assert ((a + 1).get() == 4).all()


@check
def the_memory_pools_work_side_by_side():
    cp = cupy()
    device = arrays.device()
    stream = device.create_stream()
    for _ in range(50):
        theirs = cp.ones(1 << 18, dtype=cp.float32)
        ours = device.allocate(1 << 20, stream=stream)
        arrays.twice(stream, theirs.data.ptr, int(ours.handle), 1 << 18)
        stream.sync()
        ours.close(stream)
        assert float(theirs.sum()) == 1 << 18
    stream.sync()


if __name__ == "__main__":
    finish()
