"""What captured graphs own: callbacks, kernels, buffers, textures and operands of copies."""

import ctypes
import gc
import weakref

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import LaunchConfig, ObjectCode, Program, ProgramOptions, launch
from cuda.core._utils.cuda_utils import CUDAError
from cuda.core.graph import (
    GraphBuilder,
    GraphDefinition,
)
from cuda.core.texture import OpaqueArrayOptions, ResourceDescriptor, TextureObjectOptions
from cuda.core.utils import copy_batch

from helpers.device import on_cpu_device
from helpers.device_code import library_of


def test_the_graph_owns_its_callbacks(device, stream, released):
    class Callback:
        def __call__(self):
            calls.append(1)

    calls = []
    callback = Callback()
    alive = weakref.ref(callback)
    builder = device.create_graph_builder().begin_building()
    builder.callback(callback)
    graph = builder.end_building().complete()
    builder.close()
    del builder, callback
    gc.collect()
    assert alive() is not None
    graph.launch(stream)
    stream.sync()
    assert calls == [1]
    graph.close()
    released([alive])


def test_the_graph_owns_kernels_and_buffers(device, stream, code, one, released):
    buffer = device.allocate(4, stream=stream)
    source = device.allocate(4, stream=stream)
    source.fill(7, stream=stream)
    alive = weakref.ref(buffer)
    builder = device.create_graph_builder().begin_building()
    buffer.fill(1, stream=builder)
    launch(builder, one, code.get_kernel("twice"), buffer)
    source.copy_to(buffer, stream=builder)
    launch(builder, one, code.get_kernel("twice"), buffer)
    graph = builder.end_building().complete()
    builder.close()
    address = int(buffer.handle)
    buffer.close()
    source.close()
    del buffer, source, builder
    gc.collect()
    assert alive() is not None
    # New allocations must not get the memory.
    others = [device.allocate(4, stream=stream) for _ in range(64)]
    assert address not in [int(other.handle) for other in others]
    for other in others:
        other.fill(0xFF, stream=stream)
    graph.launch(stream)
    stream.sync()
    value = ctypes.c_int32()
    driver.cuMemcpyDtoH(ctypes.addressof(value), address, 4)
    assert value.value == 2 * 0x07070707
    graph.close()
    released([alive])


def _copies(code, count):
    """The kernel `add` of as many libraries, which go away with their kernels; and the handles of the libraries."""
    codes = [ObjectCode.from_cubin(bytes(code.code)) for _ in range(count)]
    return [code.get_kernel("add") for code in codes], list(map(library_of, codes))


def _are_loaded(libraries):
    """Whether the libraries are loaded. A launch alone does not show it: on the CPU device, nodes keep their code."""
    return all(driver.cuLibraryGetKernelCount(library)[0] == 0 for library in libraries)


@pytest.mark.parametrize("split", [False, True])
def test_the_graph_owns_the_kernels_of_launches_with_numbers(device, stream, code, one, numbers, split):
    x = numbers(0, 0)
    address = int(x.buffer.handle)
    kernels, libraries = _copies(code, 3)
    builder = device.create_graph_builder().begin_building()
    branches = builder.split(2) if split else [builder]
    for order in ((0, 0, 1, 2), (1, 1, 0, 2)):
        for number in order:
            for place, branch in enumerate(branches):
                launch(branch, one, kernels[number], address + 4 * place, np.int32(10**number))
    if split:
        builder = GraphBuilder.join(*branches)
    graph = builder.end_building().complete()
    builder.close()
    # Later kernels may get the addresses and handles of these.
    del builder, branches, kernels, branch
    gc.collect()
    assert _are_loaded(libraries)
    others = _copies(code, 8)
    graph.launch(stream)
    assert x.get() == [233, 233 if split else 0]
    del others
    graph.launch(stream)
    assert x.get() == [466, 466 if split else 0]
    graph.close()


def test_the_next_graph_owns_the_same_kernel_as_well(device, stream, code, one, numbers):
    x = numbers(0)
    (kernel,), libraries = _copies(code, 1)
    if on_cpu_device():
        kernels, unused = _copies(code, 1)
        del kernels
        gc.collect()
        assert _are_loaded(libraries) and not _are_loaded(unused)
    graphs = []
    builders = [device.create_graph_builder() for _ in range(2)]
    for value, builder in enumerate(builders):
        builder.begin_building()
        launch(builder, one, kernel, int(x.buffer.handle), value + 1)
        graphs.append(builder.end_building().complete())
        builder.close()
    del kernel, builder, builders
    gc.collect()
    graphs.pop(0).close()
    assert _are_loaded(libraries)
    others = _copies(code, 4)
    graphs[0].launch(stream)
    assert x.get() == [2] and len(others) == 2


def test_updates_with_numbers_own_the_last_kernel(device, stream, code, one, numbers):
    x = numbers(0)
    address = int(x.buffer.handle)
    kernels, libraries = _copies(code, 3)
    definition = GraphDefinition()
    node = definition.launch(one, code.get_kernel("add"), address, 1)
    graph = definition.instantiate()
    view = graph[node]
    expected = 0
    for number in (0, 0, 1, 0, 2, 2, 1):
        view.update(config=one, kernel=kernels[number], args=(address, 10**number))
        graph.launch(stream)
        expected += 10**number
    # Updates drop what completed launches have used.
    stream.sync()
    # Numbers after a buffer, and the other way round.
    view.update(config=one, kernel=kernels[1], args=(x.buffer, 1000))
    view.update(config=one, kernel=kernels[1], args=[address, 2000])
    view.update(config=one, kernel=kernels[1], args=(x.buffer, np.int32(3000)))
    with pytest.raises(TypeError, match="1 was given"):
        view.update(config=one, kernel=kernels[2], args=(address,))
    del kernels
    gc.collect()
    assert _are_loaded(libraries[1:2])
    others = _copies(code, 6)
    graph.launch(stream)
    assert x.get() == [expected + 3000] and len(others) == 2


def test_the_graph_owns_operands_of_batched_copies(device, stream):
    source, destination = device.allocate(4, stream=stream), device.allocate(4, stream=stream)
    source.fill(5, stream=stream)
    alive = [weakref.ref(source), weakref.ref(destination)]
    address = int(destination.handle)
    builder = device.create_graph_builder().begin_building()
    try:
        copy_batch(builder, [source], [destination])
    except CUDAError as error:
        builder.close()
        pytest.skip(f"the driver does not record batched copies: {error}")
    graph = builder.end_building().complete()
    builder.close()
    source.close()
    destination.close()
    del source, destination, builder
    gc.collect()
    assert None not in [reference() for reference in alive]
    others = [device.allocate(4, stream=stream) for _ in range(64)]
    for other in others:
        other.fill(0xFF, stream=stream)
    graph.launch(stream)
    stream.sync()
    value = ctypes.c_int32()
    driver.cuMemcpyDtoH(ctypes.addressof(value), address, 4)
    assert value.value == 0x05050505
    graph.close()


SAMPLING = """
extern "C" __global__ void read(cudaTextureObject_t t, float *out) { out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x); }
extern "C" __global__ void write(cudaSurfaceObject_t s) { surf2Dwrite((float)threadIdx.x, s, threadIdx.x * 4, 0); }
"""


def test_the_graph_owns_textures_and_surfaces(device, stream):
    code = Program(SAMPLING, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin")
    config = LaunchConfig(grid=1, block=8)
    values = np.arange(8, dtype=np.float32)
    buffer = device.allocate(32, stream=stream)
    buffer.copy_from(values, stream=stream)
    out = device.allocate(32, stream=stream)
    texture = device.create_texture_object(
        resource=ResourceDescriptor.from_linear(buffer, format="float32", num_channels=1),
        options=TextureObjectOptions(read_mode="element_type", normalized_coords=False),
    )
    array = device.create_opaque_array(OpaqueArrayOptions((8, 1), "float32", 1, True))
    surface = device.create_surface_object(resource=ResourceDescriptor.from_opaque_array(array))
    builder = device.create_graph_builder().begin_building()
    launch(builder, config, code.get_kernel("read"), texture, out)
    launch(builder, config, code.get_kernel("write"), surface)
    graph = builder.end_building().complete()
    builder.close()
    address = int(buffer.handle)
    texture.close()
    surface.close()
    buffer.close()
    others = [device.allocate(32, stream=stream) for _ in range(64)]
    assert address not in [int(other.handle) for other in others]
    for other in others:
        other.fill(0xFF, stream=stream)
    graph.launch(stream)
    back, written = np.zeros(8, np.float32), np.zeros(8, np.float32)
    out.copy_to(back, stream=stream)
    array.copy_to(written, stream=stream)
    stream.sync()
    assert back.tolist() == written.tolist() == values.tolist()
    graph.close()
