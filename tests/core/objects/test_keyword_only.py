"""Required keyword-only arguments are named as such when they are missing or passed by position."""

import inspect

import pytest
from cuda.core import (
    Buffer,
    Device,
    DeviceMemoryResource,
    GraphicsResource,
    GraphMemoryResource,
    ManagedMemoryResource,
    MemoryResource,
)
from cuda.core._module import KernelOccupancy


@pytest.fixture(scope="module")
def objects():
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    return {
        "Buffer": device.allocate(64, stream=stream),
        "ManagedBuffer": ManagedMemoryResource().allocate(64, stream=stream),
        "Device": device,
        "MemoryResource": MemoryResource(),
        "DeviceMemoryResource": DeviceMemoryResource(device),
        "GraphMemoryResource": GraphMemoryResource(device),
    }


CASES = [
    ("Buffer", "copy_from", 1, "stream"),
    ("Buffer", "copy_to", 1, "stream"),
    ("Buffer", "fill", 1, "stream"),
    ("ManagedBuffer", "prefetch", 1, "stream"),
    ("ManagedBuffer", "discard", 0, "stream"),
    ("ManagedBuffer", "discard_prefetch", 1, "stream"),
    ("Device", "create_texture_object", 0, "resource"),
    ("Device", "create_surface_object", 0, "resource"),
    ("MemoryResource", "allocate", 1, "stream"),
    ("MemoryResource", "deallocate", 2, "stream"),
    ("DeviceMemoryResource", "deallocate", 2, "stream"),
    ("GraphMemoryResource", "allocate", 1, "stream"),
    ("GraphMemoryResource", "deallocate", 2, "stream"),
]


@pytest.mark.parametrize("kind, method, positional, name", CASES)
def test_missing_arguments(objects, kind, method, positional, name):
    call = getattr(objects[kind], method)
    with pytest.raises(TypeError, match=rf"{method}\(\) missing 1 required keyword-only argument: '{name}'"):
        call(*[1] * positional)
    with pytest.raises(TypeError, match="positional argument"):
        call(*[1] * (positional + 1))
    parameter = inspect.signature(call).parameters[name]
    assert parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty


def test_methods_without_an_object():
    for method in (
        Buffer.from_ipc_descriptor,
        GraphicsResource.map,
        KernelOccupancy.max_active_clusters,
        KernelOccupancy.max_potential_cluster_size,
    ):
        parameter = inspect.signature(method).parameters["stream"]
        assert parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty
    with pytest.raises(TypeError, match="from_ipc_descriptor.. missing 1 required keyword-only argument: 'stream'"):
        Buffer.from_ipc_descriptor(None, None)
