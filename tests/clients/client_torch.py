"""PyTorch: DLPack and the array interface both ways, streams both ways, its caching allocator beside our pools."""

import arrays
import numpy as np
from checks import Skip, check, finish, need, need_gpu


def torch():
    module = need("torch")
    need_gpu("PyTorch's own CUDA runtime asks the driver for export tables (docs/clients.md)")
    if not module.cuda.is_available():
        raise Skip("this build of PyTorch has no CUDA, or finds no GPU")
    arrays.device()
    return module


@check
def a_CPU_tensor_is_viewed():
    from cuda.core.utils import StridedMemoryView

    module = need("torch")
    tensor = module.arange(12, dtype=module.float64).reshape(3, 4).t()
    view = StridedMemoryView.from_dlpack(tensor, stream_ptr=-1)
    assert view.ptr == tensor.data_ptr() and view.shape == (4, 3) and view.strides == (1, 4)
    assert not view.is_device_accessible and view.dtype == np.float64


@check
def a_tensor_is_viewed():
    from cuda.core.utils import StridedMemoryView

    t = torch()
    tensor = t.arange(24, dtype=t.float32, device="cuda").reshape(4, 6)[:, ::2]
    for make in (StridedMemoryView.from_any_interface, StridedMemoryView.from_dlpack):
        view = make(tensor, stream_ptr=-1)
        assert view.ptr == tensor.data_ptr() and view.shape == (4, 3) and view.strides == (6, 2)
        assert view.is_device_accessible and view.device_id == 0 and view.dtype == np.float32


@check
def the_array_interface_of_a_tensor_is_accepted():
    from cuda.core.utils import StridedMemoryView

    t = torch()
    tensor = t.arange(24, dtype=t.float32, device="cuda").reshape(4, 6)
    view = StridedMemoryView.from_cuda_array_interface(tensor, stream_ptr=-1)
    assert view.ptr == tensor.data_ptr() and view.shape == (4, 6)


@check
def a_bfloat16_tensor_is_viewed():
    from cuda.core.utils import StridedMemoryView

    t = torch()
    need("ml_dtypes")
    tensor = t.ones(8, dtype=t.bfloat16, device="cuda")
    view = StridedMemoryView.from_dlpack(tensor, stream_ptr=-1)
    assert view.ptr == tensor.data_ptr() and view.dtype.itemsize == 2


@check
def a_buffer_of_ours_is_a_tensor_and_its_memory_outlives_the_names():
    t = torch()
    device = arrays.device()
    stream = device.create_stream()
    buffer = device.allocate(4000, stream=stream)
    stream.sync()
    tensor = t.from_dlpack(buffer).view(t.float32)
    assert tensor.data_ptr() == int(buffer.handle) and tensor.numel() == 1000 and tensor.is_cuda
    del buffer
    tensor.fill_(5)
    assert float(tensor.sum()) == 5000


@check
def an_array_of_ours_is_a_tensor():
    t = torch()
    ours = arrays.Array(np.arange(1000, dtype=np.float32))
    tensor = t.as_tensor(ours, device="cuda")
    assert tensor.data_ptr() == ours.pointer
    tensor += 1
    assert (ours.get() == np.arange(1000) + 1).all()


@check
def a_tensor_goes_through_a_view_and_back():
    from cuda.core.utils import StridedMemoryView

    t = torch()
    tensor = t.arange(100, dtype=t.int32, device="cuda")
    view = StridedMemoryView.from_dlpack(tensor, stream_ptr=-1)
    if not hasattr(view, "__dlpack__"):
        raise Skip("views do not export DLPack in this version")
    back = t.from_dlpack(view)
    assert back.data_ptr() == tensor.data_ptr() and bool((back == tensor).all())


@check
def a_stream_of_PyTorch_is_a_stream_of_ours():
    t = torch()
    theirs = t.cuda.Stream()
    ours = arrays.device().create_stream(arrays.Foreign(theirs.cuda_stream))
    assert int(ours.handle) == theirs.cuda_stream
    tensor = t.zeros(1000, device="cuda")
    t.cuda.synchronize()
    arrays.late(ours, tensor.data_ptr(), 1000)
    with t.cuda.stream(theirs):
        assert bool(((tensor + 1) == 4).all())


@check
def a_stream_of_ours_is_a_stream_of_PyTorch():
    t = torch()
    ours = arrays.device().create_stream()
    tensor = t.zeros(1000, device="cuda")
    t.cuda.synchronize()
    with t.cuda.stream(t.cuda.ExternalStream(int(ours.handle))):
        arrays.late(ours, tensor.data_ptr(), 1000)
        assert bool(((tensor + 1) == 4).all())


@check
def DLPack_orders_a_buffer_after_the_work_on_its_stream():
    t = torch()
    device = arrays.device()
    ours = device.create_stream()
    buffer = device.allocate(4000, stream=ours)
    arrays.late(ours, int(buffer.handle), 1000)
    theirs = t.cuda.Stream()
    theirs_in_ours = device.create_stream(arrays.Foreign(theirs.cuda_stream))
    theirs_in_ours.wait(ours)
    with t.cuda.stream(theirs):
        tensor = t.from_dlpack(buffer).view(t.float32)
        assert bool((tensor == 3).all())


@check
def an_event_of_PyTorch_orders_our_streams():
    from cuda.bindings import driver

    t = torch()
    theirs = t.cuda.Stream()
    tensor, result = t.zeros(1000, device="cuda"), t.zeros(1000, device="cuda")
    t.cuda.synchronize()
    arrays.late(arrays.device().create_stream(arrays.Foreign(theirs.cuda_stream)), tensor.data_ptr(), 1000)
    event = theirs.record_event()
    ours = arrays.device().create_stream()
    (status,) = driver.cuStreamWaitEvent(ours.handle, event.cuda_event, 0)
    assert status == driver.CUresult.CUDA_SUCCESS
    arrays.twice(ours, tensor.data_ptr(), result.data_ptr(), 1000)
    ours.sync()
    assert bool((result == 6).all())


@check
def the_caching_allocator_works_beside_our_pools():
    t = torch()
    device = arrays.device()
    stream = device.create_stream()
    for i in range(100):
        tensor = t.full((1 << 18,), float(i), device="cuda")
        ours = device.allocate(1 << 20, stream=stream)
        t.cuda.synchronize()
        arrays.twice(stream, tensor.data_ptr(), int(ours.handle), 1 << 18)
        ours.close(stream)
        stream.sync()
        del tensor
        if i % 25 == 0:
            t.cuda.empty_cache()
    t.cuda.synchronize()


@check
def a_captured_graph_of_PyTorch_replays_beside_our_work():
    t = torch()
    tensor = t.zeros(100, device="cuda")
    graph = t.cuda.CUDAGraph()
    with t.cuda.graph(graph):
        tensor += 1
    ours = arrays.Array(np.zeros(100, dtype=np.float32))
    for _ in range(5):
        graph.replay()
        arrays.twice(arrays.device().create_stream(), tensor.data_ptr(), ours.pointer, 100)
    t.cuda.synchronize()
    assert bool((tensor == 5).all())


@check
def the_runtime_module_of_the_bindings_shares_the_context():
    from cuda.bindings import runtime

    t = torch()
    tensor = t.arange(16, dtype=t.int32, device="cuda")
    t.cuda.synchronize()
    status, attributes = runtime.cudaPointerGetAttributes(tensor.data_ptr())
    assert status == runtime.cudaError_t.cudaSuccess and attributes.device == 0
    host = np.zeros(16, dtype=np.int32)
    kind = runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost
    (status,) = runtime.cudaMemcpy(host.ctypes.data, tensor.data_ptr(), 64, kind)
    assert status == runtime.cudaError_t.cudaSuccess and (host == np.arange(16)).all()


if __name__ == "__main__":
    finish()
