"""JAX: DLPack round trips with `cuda.core`."""

import arrays
import numpy as np
from checks import Skip, check, finish, need, need_gpu


def jax():
    module = need("jax")
    need_gpu("JAX's own CUDA runtime asks the driver for export tables (docs/clients.md)")
    if module.default_backend() != "gpu":
        raise Skip(f"JAX's backend is {module.default_backend()}")
    arrays.device()
    return module


@check
def a_CPU_array_is_viewed():
    from cuda.core.utils import StridedMemoryView

    module = need("jax")
    array = module.device_put(np.arange(12, dtype=np.float32).reshape(3, 4), module.devices("cpu")[0])
    view = StridedMemoryView.from_dlpack(array, stream_ptr=-1)
    assert view.shape == (3, 4) and view.dtype == np.float32 and not view.is_device_accessible


@check
def an_array_is_viewed():
    from cuda.core.utils import StridedMemoryView

    module = jax()
    array = module.numpy.arange(24, dtype="float32").reshape(4, 6).block_until_ready()
    view = StridedMemoryView.from_dlpack(array, stream_ptr=-1)
    assert view.shape == (4, 6) and view.is_device_accessible and view.ptr == array.unsafe_buffer_pointer()


@check
def a_kernel_of_ours_reads_an_array_of_JAX():
    module = jax()
    array = module.numpy.arange(1000, dtype="float32").block_until_ready()
    ours = arrays.Array(np.zeros(1000, dtype=np.float32))
    stream = arrays.device().create_stream()
    arrays.twice(stream, array.unsafe_buffer_pointer(), ours.pointer, 1000)
    stream.sync()
    assert (ours.get() == 2 * np.arange(1000)).all()


@check
def a_buffer_of_ours_is_an_array_of_JAX():
    module = jax()
    ours = arrays.Array(np.arange(64, dtype=np.uint8))
    array = module.dlpack.from_dlpack(ours.buffer)
    assert array.nbytes == 64 and array.unsafe_buffer_pointer() == ours.pointer
    assert (np.asarray(array).view(np.uint8) == np.arange(64)).all()
    del ours
    assert int(array.view("uint8").astype("int32").sum()) == sum(range(64))


@check
def an_array_goes_through_a_view_and_back():
    from cuda.core.utils import StridedMemoryView

    module = jax()
    array = module.numpy.arange(100, dtype="float32").block_until_ready()
    view = StridedMemoryView.from_dlpack(array, stream_ptr=-1)
    if not hasattr(view, "__dlpack__"):
        raise Skip("views do not export DLPack in this version")
    back = module.dlpack.from_dlpack(view)
    assert (np.asarray(back) == np.arange(100)).all()


if __name__ == "__main__":
    finish()
