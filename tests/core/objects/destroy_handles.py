"""Destroys one kind of handle with one of the bindings, at each time, and uses and drops its owner: see test_destroyed_matrix.py.

python destroy_handles.py KIND BINDINGS
"""

import gc
import sys
import threading
import warnings

import numpy as np
from cuda.bindings import driver, nvrtc, runtime
from cuda.bindings._v2 import driver as v2
from cuda.bindings._v2 import nvrtc as v2_nvrtc
from cuda.core import (
    Device,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    LaunchConfig,
    LegacyPinnedMemoryResource,
    Program,
    ProgramOptions,
    launch,
)
from cuda.core._utils.cuda_utils import CUDAError
from cuda.core.graph import GraphDefinition
from cuda.core.texture import OpaqueArrayOptions, ResourceDescriptor, TextureObjectOptions
from cuda.core.typing import ArrayFormatType

KIND, API = sys.argv[1:]
HOLD = """extern "C" __global__ void hold(volatile int *flag) { while (*flag == 0) {} }
extern "C" __global__ void nothing(void *p) {}"""

device = Device(0)
device.set_current()
stream = device.create_stream()
config = LaunchConfig(grid=1, block=1)
options = ProgramOptions(arch=f"sm_{device.arch}")
held = Program(HOLD, "c++", options).compile("cubin")
hold, nothing = held.get_kernel("hold"), held.get_kernel("nothing")
pinned = LegacyPinnedMemoryResource().allocate(64)
flag = np.from_dlpack(pinned).view(np.int32)
out = device.allocate(64, stream=stream)
host = np.zeros(64, np.uint8)
flag.fill(1)
launch(stream, config, hold, pinned)
out.copy_to(host, stream=stream)
device.sync()


class Kind:
    """A kind of handle. `use` queues work with it in a stream, or only refers to it."""

    # Whether the work in a stream may still run when the handle is destroyed.
    during = True

    def make(self):
        raise NotImplementedError

    def use(self, made, stream):
        raise NotImplementedError

    def handle(self, made):
        return made.handle


class Library(Kind):
    def make(self):
        return Program(HOLD, "c++", options).compile("cubin")

    def use(self, made, stream):
        launch(stream, config, made.get_kernel("nothing"), 0)

    # Unloading code that runs is an error of the program.
    during = False
    destroy = {"driver": driver.cuLibraryUnload, "runtime": runtime.cudaLibraryUnload, "v2": v2.library_unload}


class AStream(Kind):
    def make(self):
        return device.create_stream()

    def use(self, made, stream):
        launch(made, config, nothing, 0)
        made.record()

    destroy = {"driver": driver.cuStreamDestroy, "runtime": runtime.cudaStreamDestroy, "v2": v2.stream_destroy_v2}


class Event(Kind):
    def make(self):
        return device.create_event()

    def use(self, made, stream):
        stream.record(made)
        stream.wait(made)

    destroy = {"driver": driver.cuEventDestroy, "runtime": runtime.cudaEventDestroy, "v2": v2.event_destroy_v2}


class Pool(Kind):
    def make(self):
        return DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 25))

    def use(self, made, stream):
        made.allocate(64, stream=stream).close()

    during = False
    destroy = {"driver": driver.cuMemPoolDestroy, "runtime": runtime.cudaMemPoolDestroy, "v2": v2.mem_pool_destroy}


class Definition(Kind):
    def make(self):
        definition = GraphDefinition()
        definition.launch(config, nothing, 0)
        return definition

    def use(self, made, stream):
        made.instantiate().launch(stream)

    destroy = {"driver": driver.cuGraphDestroy, "runtime": runtime.cudaGraphDestroy, "v2": v2.graph_destroy}


class Graph(Kind):
    def make(self):
        return Definition().make().instantiate()

    def use(self, made, stream):
        made.launch(stream)

    destroy = {
        "driver": driver.cuGraphExecDestroy,
        "runtime": runtime.cudaGraphExecDestroy,
        "v2": v2.graph_exec_destroy,
    }


def array():
    return device.create_opaque_array(OpaqueArrayOptions(shape=(64,), format=ArrayFormatType.UINT8, num_channels=1))


class Array(Kind):
    def make(self):
        return array()

    def use(self, made, stream):
        made.copy_from(host, stream=stream)

    during = False
    destroy = {"driver": driver.cuArrayDestroy, "runtime": runtime.cudaFreeArray, "v2": v2.array_destroy}


class Texture(Kind):
    def make(self):
        return device.create_texture_object(
            resource=ResourceDescriptor.from_opaque_array(array()), options=TextureObjectOptions()
        )

    def use(self, made, stream):
        launch(stream, config, nothing, made)

    destroy = {
        "driver": driver.cuTexObjectDestroy,
        "runtime": runtime.cudaDestroyTextureObject,
        "v2": v2.tex_object_destroy,
    }


class PoolMemory(Kind):
    def make(self):
        return device.allocate(256, stream=stream)

    def use(self, made, stream):
        launch(stream, config, nothing, made)
        made.fill(0, stream=stream)

    destroy = {"driver": driver.cuMemFree, "runtime": runtime.cudaFree, "v2": v2.mem_free_v2}


class PoolMemoryInStreamOrder(PoolMemory):
    destroy = {
        "driver": lambda handle: driver.cuMemFreeAsync(handle, stream.handle),
        "runtime": lambda handle: runtime.cudaFreeAsync(handle, stream.handle),
        "v2": lambda handle: v2.mem_free_async(handle, int(stream.handle)),
    }


class SliceOfMemory(PoolMemory):
    """The memory of the whole buffer is freed."""

    def make(self):
        whole = device.allocate(512, stream=stream)
        self.wholes[whole[256:].handle] = whole.handle
        return whole[256:]

    def handle(self, made):
        return self.wholes[made.handle]

    wholes: dict = {}


class PinnedMemory(PoolMemory):
    def make(self):
        return LegacyPinnedMemoryResource().allocate(256)

    destroy = {"driver": driver.cuMemFreeHost, "runtime": runtime.cudaFreeHost, "v2": v2.mem_free_host}


class NvrtcProgram(Kind):
    during = False

    def make(self):
        return Program(HOLD, "c++", options)

    def use(self, made, stream):
        made.compile("ptx")

    destroy = {"library": nvrtc.nvrtcDestroyProgram, "v2": v2_nvrtc.destroy_program}


KINDS = {
    "library": Library,
    "stream": AStream,
    "event": Event,
    "pool": Pool,
    "graph definition": Definition,
    "graph": Graph,
    "array": Array,
    "texture": Texture,
    "memory": PoolMemory,
    "memory in stream order": PoolMemoryInStreamOrder,
    "slice": SliceOfMemory,
    "pinned memory": PinnedMemory,
    "NVRTC program": NvrtcProgram,
}
kind = KINDS[KIND]()


def destroy(made):
    done = kind.destroy[API](kind.handle(made))
    assert not isinstance(done, tuple) or int(done[0]) == 0, done


def made_and_used():
    made = kind.make()
    kind.use(made, stream)
    device.sync()
    return made


def use_destroyed(made):
    """A use of a destroyed object raises; the message says that the program destroyed it."""
    try:
        kind.use(made, stream)
    except (CUDAError, RuntimeError) as error:
        assert "by the program" in str(error), error
    else:
        raise AssertionError("the use of a destroyed object succeeded")


def end(made):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if hasattr(made, "close"):
            made.close()
    del made
    gc.collect()


def say(*what):
    print(*what, flush=True)


made = kind.make()
destroy(made)
use_destroyed(made)
end(made)
del made
say("before a use")

if kind.during:
    made = kind.make()
    used = made if KIND == "stream" else stream
    flag[0] = 0
    launch(used, config, hold, pinned)
    kind.use(made, stream)
    # Some calls wait for the work.
    timer = threading.Timer(0.2, flag.fill, (1,))
    timer.start()
    destroy(made)
    timer.join()
    use_destroyed(made)
    end(made)
    del made, used
    device.sync()
say("during a use")

made = made_and_used()
destroy(made)
# The driver may give the handle to another object, which is not the old one.
others = [kind.make() for _ in range(8)]
use_destroyed(made)
end(made)
del made
for other in others:
    kind.use(other, stream)
device.sync()
del others, other
say("after a use")

made = made_and_used()
failed = []


def work(made):
    try:
        device.set_current()
        destroy(made)
        use_destroyed(made)
    except BaseException as error:
        failed.append(error)


thread = threading.Thread(target=work, args=(made,))
thread.start()
thread.join()
assert not failed, failed
owners = [made]
del thread, made
thread = threading.Thread(target=owners.clear)
thread.start()
thread.join()
say("in another thread")

made = made_and_used()
destroy(made)
say("at exit")
