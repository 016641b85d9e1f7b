"""Repeated calls of `cuda.bindings._v2`: memory stays flat, and arguments keep their reference counts."""

import contextlib
import os
import sys

import numpy as np
import pytest
from cuda.bindings._v2 import driver, nvrtc, runtime

from helpers.memory import assert_flat

ROUNDS = int(os.environ.get("CUPYRITE_CYCLES", "100000"))
SOURCE = b'extern "C" __global__ void k(int *p) { *p = 1; }'


@pytest.fixture(scope="module", autouse=True)
def context():
    driver.init(0)
    made = driver.device_primary_ctx_retain(0)
    driver.ctx_set_current(made)
    yield made
    driver.device_primary_ctx_release_v2(0)


def raising(call, *arguments):
    """A call that raises; reads what the exception offers."""

    def run():
        try:
            call(*arguments)
        except Exception as error:
            return str(error), error.name, error.status, error.function, error.log
        raise AssertionError("no exception")

    return run


def classes(module):
    for name in sorted(dir(module)):
        kind = getattr(module, name)
        if isinstance(kind, type) and hasattr(kind, "from_ptr"):
            yield kind


CALLS = {
    "driver int": lambda: driver.device_get_attribute(driver.DeviceAttribute.WARP_SIZE, 0),
    "driver bytes": lambda: driver.device_get_name(64, 0),
    "driver text": lambda: driver.get_error_name(1),
    "driver tuple": lambda: driver.device_primary_ctx_get_state(0),
    "driver struct": lambda: driver.device_get_uuid_v2(0).bytes,
    "driver memory": lambda: driver.mem_free_v2(driver.mem_alloc_v2(256)),
    "driver event": lambda: driver.event_destroy_v2(driver.event_create(0)),
    "driver status": raising(driver.device_get, 9999),
    "driver log": raising(driver.mem_alloc_v2, 0),
    "nvrtc tuple": nvrtc.version,
    "nvrtc array": lambda: nvrtc.get_supported_archs()[0],
    "nvrtc program": lambda: nvrtc.destroy_program(nvrtc.create_program(SOURCE, b"k.cu", [b"#define A"], [b"a.h"])),
    "nvrtc status": raising(nvrtc.get_ptx_size, 0),
    "runtime int": runtime.get_device,
    "runtime struct": lambda: runtime.pointer_get_attributes(0x1234560).type,
    "runtime memory": lambda: runtime.free(runtime.malloc(256)),
    "runtime event": lambda: runtime.event_destroy(runtime.event_create()),
    "runtime status": raising(runtime.set_device, 9999),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_do_not_leak(name):
    assert_flat(CALLS[name], ROUNDS)


@pytest.mark.parametrize("module", [driver, runtime], ids=["driver", "runtime"])
def test_structs_do_not_leak(module):
    kinds = list(classes(module))
    assert len(kinds) > 50

    def make():
        for kind in kinds:
            it = kind()
            it.ptr
            with contextlib.suppress(TypeError):
                kind.from_ptr(it.ptr, owner=it)

    assert_flat(make, max(ROUNDS // len(kinds), 10))


def test_attributes_of_structs_do_not_leak():
    kinds = [(kind, [n for n in dir(kind) if not n.startswith("_")]) for kind in classes(driver)]

    def make():
        for kind, names in kinds:
            it = kind()
            for name in names:
                with contextlib.suppress(AttributeError, TypeError, ValueError, OverflowError, RuntimeError):
                    value = getattr(it, name)
                    if not callable(value) and name != "ptr":
                        setattr(it, name, value)

    assert_flat(make, max(ROUNDS // 1000, 10))


def test_graph_arrays_do_not_leak():
    graph = driver.graph_create(0)
    node = driver.graph_add_empty_node(graph, None, 0)
    driver.graph_add_empty_node(graph, [node], 1)

    def make():
        list(driver.graph_get_nodes(graph))
        before, after, data = driver.graph_get_edges_v2(graph)
        memoryview(data), before[0], after[-1]

    assert_flat(make, ROUNDS // 10)
    driver.graph_destroy(graph)


def test_arguments_keep_their_reference_counts():
    pointer = driver.mem_alloc_v2(4096)
    data, target, name = np.zeros(1024, np.int32), bytearray(4096), b"no such function, a name of its own"
    uuid, described = driver.Uuid(), driver.ArrayDescriptor_v2()
    program = nvrtc.create_program(SOURCE, b"k.cu")
    options = [b"--no-such-option", "-arch=compute_80"]
    objects = (data, target, name, uuid, described, options, *options)
    before = [sys.getrefcount(it) for it in objects]
    for _ in range(1000):
        driver.memcpy_htod_v2(pointer, data, 4096)
        driver.memcpy_dtoh_v2(target, pointer, 4096)
        for call, arguments in (
            (driver.memcpy_htod_v2, (pointer, data, 8192)),
            (driver.memcpy_htod_v2, (0, data, 4096)),
            (driver.memcpy_htod_v2, (pointer, options, 4096)),
            (driver.memcpy_dtoh_v2, (target, 0, 4096)),
            (driver.array_create_v2, (uuid,)),
            (driver.array_create_v2, (described,)),
            (driver.device_get_by_pci_bus_id, (name,)),
            (nvrtc.compile_program, (0, options)),
            (nvrtc.create_program, (name, options)),
            (runtime.device_get_by_pci_bus_id, (name,)),
            (runtime.memcpy, (pointer, data, 8192, 1)),
        ):
            with pytest.raises((driver.DriverError, nvrtc.NvrtcError, runtime.CudartError, TypeError, ValueError)):
                call(*arguments)
    del call, arguments
    assert [sys.getrefcount(it) for it in objects] == before
    target.extend(b"x")  # No buffer of it is left.
    nvrtc.destroy_program(program)
    driver.mem_free_v2(pointer)
