"""RMM: memory from its resources, copies, streams of ours."""

import numpy as np
from checks import check, finish, need, need_gpu


def rmm():
    module = need("rmm")
    need_gpu("RMM contains NVIDIA's CUDA runtime, which accepts NVIDIA's driver only (docs/clients.md)")
    return module


@check
def it_imports():
    module = need("rmm")
    assert callable(module.DeviceBuffer.to_device)


@check
def a_buffer_is_copied_to_the_device_and_back():
    buffer = rmm().DeviceBuffer.to_device(np.arange(1000, dtype=np.int32).tobytes())
    assert buffer.size == 4000
    assert (np.frombuffer(buffer.copy_to_host(), np.int32) == np.arange(1000)).all()
    copy = buffer.copy()
    buffer.resize(100)
    assert buffer.size == 100 and (np.frombuffer(copy.tobytes(), np.int32) == np.arange(1000)).all()


@check
def pools_are_set_and_reset():
    module = rmm()
    pool = module.mr.PoolMemoryResource(module.mr.CudaMemoryResource(), initial_pool_size=1 << 24)
    module.mr.set_current_device_resource(pool)
    try:
        buffer = module.DeviceBuffer.to_device(bytes(range(256)))
        assert buffer.tobytes() == bytes(range(256))
        del buffer
    finally:
        module.mr.set_current_device_resource(module.mr.CudaMemoryResource())
    del pool


@check
def the_runtime_of_ours_reads_its_memory():
    from cuda.bindings import runtime

    buffer = rmm().DeviceBuffer.to_device(b"0123456789abcdef")
    out = bytearray(16)
    kind = runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost
    (status,) = runtime.cudaMemcpy(out, buffer.ptr, 16, kind)
    assert status == runtime.cudaError_t.cudaSuccess and out == b"0123456789abcdef"


@check
def a_stream_of_cuda_core_is_accepted():
    module = rmm()
    import arrays
    from rmm.pylibrmm.stream import Stream

    stream = arrays.device().create_stream()
    buffer = module.DeviceBuffer(size=4096, stream=Stream(obj=stream))
    stream.sync()
    assert buffer.size == 4096 and buffer.ptr


if __name__ == "__main__":
    finish()
