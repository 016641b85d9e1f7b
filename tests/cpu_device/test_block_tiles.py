"""Cooperative groups of several warps in a block, and the shared memory that is reserved for them; on both devices."""

import numpy as np
import pytest
from cuda.bindings import driver

from helpers.device import DeviceArray, Module, check, compute_capability, on_cpu_device, synchronize
from helpers.programs import output

pytestmark = pytest.mark.usefixtures("shared_context")

SIZES = [32, 64, 128, 256, 512]
ROWS = 12


@pytest.fixture(scope="module")
def module(shared_context):
    if compute_capability() < (8, 0):
        pytest.skip("shared memory is reserved from compute capability 8.0 on")
    return Module.from_file("block_tiles.cu", names=[f"tiles<{n}>" for n in SIZES], kind="ptx")


def expected(values, size):
    """The rows of the kernel for the threads of one block."""
    tiles = values.reshape(-1, size)
    count = np.arange(len(tiles))[:, None]
    partner = tiles[:, ::-1]
    # Round r exchanges v + r and v - r.
    rounds = count + 1
    sums = rounds * 4 * partner + 2 * (rounds * (rounds - 1) // 2)
    rows = [
        np.arange(size),
        count,
        tiles.sum(1, keepdims=True),
        tiles.max(1, keepdims=True),
        tiles.cumsum(1),
        tiles[:, -1:],
        (tiles > 95).any(1, keepdims=True),
        (tiles > -40).all(1, keepdims=True),
        partner + count,
        partner - count,
        sums,
        0,
    ]
    return np.stack([np.broadcast_to(row, tiles.shape).reshape(-1) for row in rows])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("threads", [512, 1024])
def test_tiles_of_several_warps(module, size, threads):
    blocks, words = 3, 3000
    rng = np.random.default_rng(size)
    values = rng.integers(-45, 100, blocks * threads).astype(np.int32)
    out = DeviceArray(np.zeros((ROWS, blocks * threads), np.int32))
    module.launch(f"tiles<{size}>", blocks, threads, DeviceArray(values), out, np.int32(words), shared=4 * words)
    synchronize()
    want = np.concatenate([expected(block, size) for block in values.reshape(blocks, -1)], axis=1)
    for row, (have, wanted) in enumerate(zip(out.get(), want)):
        np.testing.assert_array_equal(have, wanted, f"row {row}")


def test_reserved_region_lies_beside_the_own_shared_memory(module):
    dynamic = 400
    out = DeviceArray(np.zeros(9, np.uint32))
    module.launch("region", 1, 32, out, shared=dynamic)
    synchronize()
    begin, end, cap, first, second, total, dynamic_size, static_at, dynamic_at = out.get().tolist()
    device = check(driver.cuDeviceGet(0))
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK
    assert check(driver.cuDeviceGetAttribute(attribute, device)) == 1024
    assert dynamic_size == dynamic and total == 512
    for at, size in [(static_at, 64), (dynamic_at, dynamic)]:
        assert at + size <= begin or at >= end
    if on_cpu_device() or compute_capability() >= (9, 0):
        assert (begin, end, cap, first, second) == (0, 288, 1024, 0, 0)
    size = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
    assert check(driver.cuFuncGetAttribute(size, module.function("region"))) == 64


def test_kernels_with_tiles_can_use_all_shared_memory_of_a_block(module):
    device, name = check(driver.cuDeviceGet(0)), "tiles<128>"
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    dynamic = check(driver.cuDeviceGetAttribute(attribute, device)) - 4096
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    check(driver.cuFuncSetAttribute(module.function(name), attribute, dynamic))
    values = np.arange(128, dtype=np.int32)
    out = DeviceArray(np.zeros((ROWS, 128), np.int32))
    module.launch(name, 1, 128, DeviceArray(values), out, np.int32(dynamic // 4), shared=dynamic)
    synchronize()
    np.testing.assert_array_equal(out.get(), expected(values, 128))


@pytest.mark.cpu
@pytest.mark.parametrize("capability, reserved", [("7.5", 0), ("8.9", 1024), ("9.0", 1024)])
def test_a_block_can_have_all_but_the_reserved_shared_memory_of_a_multiprocessor(cpu_device, capability, reserved):
    code = """if True:
        from cuda.bindings import driver
        from helpers.device import Module, check, synchronize

        check(driver.cuInit(0))
        device = check(driver.cuDeviceGet(0))
        check(driver.cuCtxSetCurrent(check(driver.cuDevicePrimaryCtxRetain(device))))
        name = driver.CUdevice_attribute
        sm, most, reserved = (check(driver.cuDeviceGetAttribute(a, device)) for a in (
            name.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
            name.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
            name.CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK,
        ))
        module = Module(b".version 7.0\\n.target sm_50\\n.address_size 64\\n.visible .entry k() { ret; }")
        dynamic = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        check(driver.cuFuncSetAttribute(module.function("k"), dynamic, most))
        module.launch("k", 1, 32, shared=most)
        synchronize()
        blocks = check(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(module.function("k"), 32, most))
        print(sm - most, reserved, blocks)
    """
    words = output(code, environment={"CUPYRITE_CPU_COMPUTE_CAPABILITY": capability}).split()
    assert words == [str(reserved), str(reserved), "1"]
