"""cuda.core: libraries, streams and events that the program destroys itself, through cuda.bindings.

Each case runs in a process of its own: NVIDIA's driver crashes when a library is unloaded twice, a stream is destroyed
twice, or an event is destroyed after a reset of its context.
"""

import subprocess
import sys
import textwrap

import pytest

SETUP = '''
import gc
import threading

import numpy as np
from cuda.bindings import driver, runtime
from cuda.core import Device, Kernel, LaunchConfig, LegacyPinnedMemoryResource, ObjectCode, launch
from cuda.core._utils.cuda_utils import CUDAError

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .global .align 4 .u32 counter;
.visible .entry k(.param .u64 p)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, 7;
    st.global.u32 [%rd2], %r1;
    ret;
}
"""

device = Device(0)
device.set_current()
stream = device.create_stream()
config = LaunchConfig(grid=1, block=1)


def load():
    code = ObjectCode.from_ptx(PTX)
    return code, code.get_kernel("k")


def run(kernel):
    """Launches the kernel and reads what it wrote."""
    memory = LegacyPinnedMemoryResource().allocate(4)
    values = np.from_dlpack(memory).view(np.uint32)
    values[:] = 0
    launch(stream, config, kernel, memory)
    stream.sync()
    return int(values[0])


def unload(code):
    (status,) = driver.cuLibraryUnload(code.handle)
    assert status == driver.CUresult.CUDA_SUCCESS, status


def refused(call):
    """Whether a call raises CUDA_ERROR_INVALID_HANDLE that names the cause."""
    try:
        call()
    except CUDAError as error:
        assert "CUDA_ERROR_INVALID_HANDLE" in str(error), error
        assert "ed by the program" in str(error), error
        return True
    return False


def reset():
    """Resets the primary context, and makes it usable again."""
    assert driver.cuDevicePrimaryCtxReset(0) == (0,)
    status, context = driver.cuDevicePrimaryCtxRetain(0)
    assert status == 0
    assert driver.cuCtxSetCurrent(context) == (0,)


code, kernel = load()
'''

CASES = {
    "a refused destruction of the primary context": """
        status, context = driver.cuCtxGetCurrent()
        assert status == 0 and driver.cuCtxDestroy(context)[0] != 0
        assert run(kernel) == 7
        stream.sync()
    """,
    "drop": """
        unload(code)
        del kernel, code
        gc.collect()
    """,
    "drop after a launch": """
        assert run(kernel) == 7
        unload(code)
        del kernel, code
        gc.collect()
    """,
    "after its objects were dropped": """
        handle, entry, module = code.handle, kernel.handle, code.get_module()
        assert run(kernel) == 7
        del kernel, code
        gc.collect()
        assert driver.cuLibraryGetKernelCount(handle) == (0, 1)
        assert driver.cuKernelGetLibrary(entry)[0] == 0
        assert driver.cuModuleGetFunctionCount(module) == (0, 1)
        assert driver.cuLibraryUnload(handle) == (0,)
        code, kernel = load()
        assert run(kernel) == 7
    """,
    "after its objects were dropped, with only the kernel's handle": """
        entry = kernel.handle
        del kernel, code
        gc.collect()
        again = Kernel.from_handle(entry)
        assert run(again) == 7
        status, handle = driver.cuKernelGetLibrary(entry)
        assert driver.cuLibraryUnload(handle) == (0,)
    """,
    "after its objects were dropped, with only the module": """
        module = code.get_module()
        del kernel, code
        gc.collect()
        status, function = driver.cuModuleGetFunction(module, b"k")
        assert status == 0
        assert driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)[0] in (0, 1)
    """,
    "by an integer": """
        (status,) = driver.cuLibraryUnload(int(code.handle))
        assert status == 0
        del kernel, code
        gc.collect()
    """,
    "with the runtime API": """
        (status,) = runtime.cudaLibraryUnload(int(code.handle))
        assert status == 0
        assert refused(lambda: run(kernel))
        del kernel, code
        gc.collect()
    """,
    "kernels afterwards": """
        assert run(kernel) == 7
        unload(code)
        assert refused(lambda: run(kernel))
        assert refused(lambda: code.get_kernel("k"))
        assert refused(lambda: kernel.attributes.num_regs(device))
        assert refused(lambda: kernel.occupancy.max_active_blocks_per_multiprocessor(32, 0))
        del code
        assert refused(lambda: run(kernel))
    """,
    "a kernel that was not launched": """
        unload(code)
        assert refused(lambda: run(kernel))
        assert refused(lambda: kernel.num_arguments)
    """,
    "others are not affected": """
        other, other_kernel = load()
        unload(code)
        # The driver may give handles out again.
        more = [load() for _ in range(20)]
        del kernel, code
        gc.collect()
        assert run(other_kernel) == 7
        assert [run(k) for _, k in more] == [7] * 20
    """,
    "from another thread": """
        def work(code, kernel):
            unload(code)
            assert refused(lambda: run(kernel))

        thread = threading.Thread(target=work, args=(code, kernel))
        thread.start()
        thread.join()
        del thread
        owners = [code, kernel]
        del code, kernel
        thread = threading.Thread(target=owners.clear)
        thread.start()
        thread.join()
        gc.collect()
    """,
    "many threads at once": """
        codes = [load()[0] for _ in range(64)]
        def work(part):
            for code in part:
                unload(code)
        threads = [threading.Thread(target=work, args=(codes[n::8],)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        del codes
        gc.collect()
        assert run(kernel) == 7
    """,
    "at the end of the process": """
        assert run(kernel) == 7
        unload(code)
    """,
    "refused while a stream is captured": """
        kept, kept_kernel = load()
        stream_handle = stream.handle
        mode = driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL
        assert driver.cuStreamBeginCapture(stream_handle, mode) == (0,)
        (status,) = driver.cuLibraryUnload(code.handle)
        driver.cuStreamEndCapture(stream_handle)
        # A driver that refuses it leaves the library loaded; one that does not has unloaded it.
        if status == driver.CUresult.CUDA_SUCCESS:
            assert refused(lambda: run(kernel))
        else:
            assert run(kernel) == 7
        del kernel, code
        gc.collect()
        assert run(kept_kernel) == 7
    """,
    "drop after a reset of the primary context": """
        assert run(kernel) == 7
        assert driver.cuDevicePrimaryCtxReset(0) == (0,)
        del kernel, code
        gc.collect()
    """,
    "unload, then reset, then drop": """
        assert run(kernel) == 7
        unload(code)
        reset()
        fresh = device.create_stream()
        assert refused(lambda: launch(fresh, config, kernel, 0))
        del kernel, code
        gc.collect()
    """,
    "reset, then unload, then drop": """
        assert run(kernel) == 7
        assert driver.cuDevicePrimaryCtxReset(0) == (0,)
        driver.cuLibraryUnload(code.handle)
        del kernel, code
        gc.collect()
    """,
    "reset by the runtime API, then drop": """
        assert run(kernel) == 7
        assert runtime.cudaDeviceReset() == (0,)
        del kernel, code
        gc.collect()
    """,
    "reset at the end of the process": """
        assert run(kernel) == 7
        driver.cuDevicePrimaryCtxReset(0)
    """,
    "reset and retain": """
        assert run(kernel) == 7
        reset()
        stream = device.create_stream()
        assert run(kernel) == 7
        assert code.get_kernel("k") == kernel
        del kernel, code
        gc.collect()
    """,
    "a stream": """
        handle = stream.handle
        assert driver.cuStreamDestroy(handle) == (0,)
        assert refused(stream.sync)
        assert refused(stream.record)
        assert refused(lambda: launch(stream, config, kernel, 0))
        assert refused(lambda: device.allocate(64, stream=stream))
        # The driver may give the handle to a new stream.
        more = [device.create_stream() for _ in range(20)]
        stream.close()
        del stream
        gc.collect()
        for stream in more:
            assert run(kernel) == 7
    """,
    "a stream, by the runtime API and an integer": """
        assert runtime.cudaStreamDestroy(int(stream.handle)) == (0,)
        assert refused(stream.sync)
        del stream
        gc.collect()
        stream = device.create_stream()
        assert run(kernel) == 7
    """,
    "a stream with memory": """
        memory = device.allocate(1024, stream=stream)
        other = device.allocate(1024, stream=stream)
        event = stream.record()
        assert driver.cuStreamDestroy(stream.handle) == (0,)
        memory.close()
        del other
        gc.collect()
        event.sync()
        fresh = device.create_stream()
        fresh.wait(event)
        fresh.sync()
    """,
    "an event": """
        event = stream.record()
        assert driver.cuEventDestroy(event.handle) == (0,)
        more = [stream.record() for _ in range(20)]
        assert refused(event.sync)
        assert refused(lambda: stream.wait(event))
        assert refused(lambda: stream.record(event))
        event.close()
        del event
        gc.collect()
        for event in more:
            event.sync()
    """,
    "an event, by the runtime API": """
        event = stream.record()
        assert runtime.cudaEventDestroy(int(event.handle)) == (0,)
        assert refused(event.sync)
    """,
    "streams and events after a reset": """
        event, memory = stream.record(), device.allocate(64, stream=stream)
        reset()
        assert refused(stream.sync)
        assert refused(event.sync)
        fresh = device.create_stream()
        assert refused(lambda: fresh.wait(event))
        del stream, event, memory
        gc.collect()
        stream = fresh
        assert run(kernel) == 7
        stream.record().sync()
    """,
    "streams and events after a reset that nothing follows": """
        event, memory = stream.record(), device.allocate(64, stream=stream)
        assert runtime.cudaDeviceReset() == (0,)
        assert refused(stream.sync)
        del stream, event, memory
        gc.collect()
    """,
    "streams of other packages are not affected": """
        status, handle = driver.cuStreamCreate(0)
        assert status == 0
        assert driver.cuStreamDestroy(handle) == (0,)
        for _ in range(20):
            status, handle = driver.cuStreamCreate(0)
            assert driver.cuStreamDestroy(handle) == (0,)
        assert run(kernel) == 7
    """,
    "the context is destroyed": """
        result = driver.cuCtxCreate(None, 0, 0)
        assert result[0] == 0
        assert run(kernel) == 7
        assert driver.cuCtxDestroy(result[1]) == (0,)
        device.set_current()
        assert run(kernel) == 7
        del kernel, code
        gc.collect()
    """,
}


@pytest.mark.parametrize("case", CASES)
def test_what_the_program_destroys_is_not_destroyed_again(case):
    program = SETUP + textwrap.dedent(CASES[case]) + "\nprint('done')\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-2000:]
