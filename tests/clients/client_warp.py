"""Warp: kernels, arrays through `StridedMemoryView`, streams both ways."""

import arrays
import numpy as np
from checks import check, finish, need, need_gpu


def warp():
    module = need("warp")
    need_gpu("Warp's own CUDA runtime asks the driver for export tables (docs/clients.md)")
    arrays.device()
    module.init()
    return module


@check
def it_imports_and_lists_devices():
    module = need("warp")
    module.init()
    assert "cpu" in [str(device) for device in module.get_devices()]


@check
def an_array_is_viewed():
    from cuda.core.utils import StridedMemoryView

    wp = warp()
    array = wp.array(np.arange(24, dtype=np.float32).reshape(4, 6), device="cuda:0")
    for make in (StridedMemoryView.from_dlpack, StridedMemoryView.from_cuda_array_interface):
        view = make(array, stream_ptr=-1)
        assert view.ptr == array.ptr and view.shape == (4, 6) and view.dtype == np.float32


@check
def a_kernel_of_ours_runs_on_an_array_of_Warp():
    wp = warp()
    a = wp.array(np.arange(1000, dtype=np.float32), device="cuda:0")
    b = wp.zeros(1000, dtype=wp.float32, device="cuda:0")
    wp.synchronize()
    stream = arrays.device().create_stream()
    arrays.twice(stream, a.ptr, b.ptr, 1000)
    stream.sync()
    assert (b.numpy() == 2 * np.arange(1000)).all()


@check
def a_stream_of_ours_is_a_stream_of_Warp():
    wp = warp()
    ours = arrays.device().create_stream()
    a = wp.zeros(1000, dtype=wp.float32, device="cuda:0")
    b = wp.zeros(1000, dtype=wp.float32, device="cuda:0")
    wp.synchronize()
    arrays.late(ours, a.ptr, 1000)
    wp.copy(b, a, stream=wp.Stream("cuda:0", cuda_stream=int(ours.handle)))
    ours.sync()
    assert (b.numpy() == 3).all()


if __name__ == "__main__":
    finish()
