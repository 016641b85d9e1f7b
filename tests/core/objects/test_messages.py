"""Messages of refused arguments name the parameter, what was given and what is expected, in terms of Python."""

import os
import re
import subprocess

import pytest
from cuda.core import (
    ContextOptions,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    Linker,
    ObjectCode,
    Program,
    ProgramOptions,
    SMResourceOptions,
    StreamOptions,
    VirtualMemoryResource,
    VirtualMemoryResourceOptions,
)
from cuda.core._utils.cuda_utils import CUDAError
from cuda.core.checkpoint import Process
from cuda.core.graph import GraphDefinition
from cuda.core.texture import MipmappedArrayOptions, OpaqueArrayOptions, ResourceDescriptor

PTX = b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }"
FREE_PID = 2**31 - 1  # Above the largest process id of Linux.


def array(**fields):
    return OpaqueArrayOptions(**{"shape": (8, 8), "format": "float32", "num_channels": 1, **fields})


def peers_of_pool(device, peers):
    DeviceMemoryResource(device, DeviceMemoryResourceOptions()).peer_accessible_by = peers


def linear(device, stream):
    ResourceDescriptor.from_linear(device.allocate(64, stream=stream), format="float32", num_channels=1, size_bytes=6)


REFUSED = {
    "one resource": (
        lambda d, s: d.create_context(ContextOptions(resources=d.resources.sm)),
        "ContextOptions.resources is of type SMResource; expected a sequence of SMResource and WorkqueueResource",
    ),
    "a resource of another type": (
        lambda d, s: d.create_context(ContextOptions(resources=[3])),
        "ContextOptions.resources contains an object of type int; expected SMResource or WorkqueueResource",
    ),
    "split(1)": (
        lambda d, s: d.resources.sm.split(1),
        "SMResource.split() argument 'options' is of type int; expected SMResourceOptions or a dict of its fields",
    ),
    "split(None)": (
        lambda d, s: d.resources.sm.split(None),
        "SMResource.split() argument 'options' is of type NoneType; expected SMResourceOptions or a dict of its fields",
    ),
    "counts of a split": (
        lambda d, s: d.resources.sm.split(SMResourceOptions(count=[100001])),
        "the counts are [100001]; expected multiples of ",
    ),
    "peers of a pool": (
        lambda d, s: peers_of_pool(d, 3),
        "peer_accessible_by is of type int; expected an iterable of Device objects or device numbers",
    ),
    "peers of virtual memory": (
        lambda d, s: VirtualMemoryResource(d, VirtualMemoryResourceOptions(peers=3)),
        "VirtualMemoryResourceOptions.peers is of type int; expected a sequence of Device objects or device numbers",
    ),
    "one of the peers": (
        lambda d, s: VirtualMemoryResource(d, VirtualMemoryResourceOptions(peers=[0, None])),
        "argument 'peers[1]' is of type NoneType; expected an int or a Device",
    ),
    "rights of the peers": (
        lambda d, s: VirtualMemoryResource(d, VirtualMemoryResourceOptions(peer_access=3)),
        'VirtualMemoryResourceOptions.peer_access is 3; expected one of "rw", "r"',
    ),
    "peers of a graph's memory": (
        lambda d, s: GraphDefinition().allocate(64, peer_access=3),
        "argument 'peer_access' is of type int; expected an iterable of Device or int",
    ),
    "name expressions": (
        lambda d, s: Program("", "c++", ProgramOptions(arch="sm_80")).compile("ptx", name_expressions=3),
        "compile() argument 'name_expressions' is of type int; expected a list or tuple of names",
    ),
    "shape": (lambda d, s: d.create_opaque_array(array(shape=8)), "shape is 8; expected a tuple of ints"),
    "faces of a cube": (
        lambda d, s: d.create_opaque_array(array(shape=(8, 7, 6), is_cubemap=True)),
        "OpaqueArray() argument 'shape' is [8, 7, 6]; a cube has (width, width, 6) elements",
    ),
    "layers": (
        lambda d, s: d.create_opaque_array(array(shape=(8,), is_layered=True)),
        "OpaqueArray() argument 'shape' is [8]; the last extent of a layered array counts layers",
    ),
    "largest shape": (
        lambda d, s: d.create_opaque_array(array(shape=(2**30, 4))),
        "the shape is [1073741824, 4]; this device has arrays of this kind up to [",
    ),
    "levels": (
        lambda d, s: d.create_mipmapped_array(
            MipmappedArrayOptions(shape=(8, 8), format="float32", num_channels=1, num_levels=9)
        ),
        "MipmappedArray() argument 'num_levels' is 9; an array of shape [8, 8] has 1 to 4 levels",
    ),
    "bytes of linear memory": (linear, "size_bytes is 6; expected whole elements of 4 bytes, at least one"),
    "priority": (
        lambda d, s: d.create_stream(options=StreamOptions(priority=99)),
        "StreamOptions.priority is 99; this",
    ),
    "process": (lambda d, s: Process(FREE_PID).state, f"pid is {FREE_PID}; there is no such process"),
    "state of a process": (lambda d, s: Process(os.getpid()).unlock(), "is 'running'; expected 'locked'"),
    "no code": (
        lambda d, s: Linker(ObjectCode.from_ptx(PTX), options=3),
        "Linker() argument 'options' is of type int; expected LinkerOptions, a dict of its fields, or None",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_message_names_parameter_value_and_what_is_expected(device, stream, case):
    call, message = REFUSED[case]
    with pytest.raises((TypeError, ValueError, OverflowError, CUDAError)) as caught:
        call(device, stream)
    assert message in str(caught.value)
    assert "::" not in str(caught.value) and not re.search(r"`\w", str(caught.value))


def test_message_for_a_process_without_cuda(device):
    with subprocess.Popen(["sleep", "60"]) as other:
        for call in (Process(other.pid).lock, Process(other.pid).checkpoint, lambda: Process(other.pid).state):
            with pytest.raises(CUDAError) as caught:
                call()
            assert f"pid is {other.pid}; expected a process of the same user that has used CUDA" in str(caught.value)
        other.kill()
