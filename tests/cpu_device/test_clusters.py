"""Thread block clusters: NVRTC with cooperative groups, launch attributes, their limits. They need compute capability 9.0.

On the CPU device with its default capability, the last test runs this file in a process with
CUPYRITE_CPU_COMPUTE_CAPABILITY=9.0.
"""

import ctypes
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, ObjectCode, launch
from cuda.core.graph import GraphDefinition

from helpers.device import KERNELS, DeviceArray, Module, check, compile_cuda, compute_capability, include_options
from helpers.programs import python

pytestmark = pytest.mark.usefixtures("shared_context")
needs_clusters = pytest.mark.usefixtures("clusters")

Result = driver.CUresult
Attribute = driver.CUfunction_attribute
CLUSTER = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
REQUIRED = (
    Attribute.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH,
    Attribute.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT,
    Attribute.CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH,
)
NON_PORTABLE = Attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
INVALID = Result.CUDA_ERROR_INVALID_CLUSTER_SIZE

# Stores the blocks of a cluster, whether the launch has clusters, and the number of blocks of the grid.
BODY = """(.param .u64 p) DIRECTIVES {
    .reg .b64 %rd<2>; .reg .b32 %r<2>; .reg .pred %p<2>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %cluster_nctarank; st.global.u32 [%rd1], %r1;
    mov.pred %p1, %is_explicit_cluster; selp.u32 %r1, 1, 0, %p1; st.global.u32 [%rd1+4], %r1;
    mov.u32 %r1, %nctaid.x; st.global.u32 [%rd1+8], %r1;
    ret;
}
"""
DIRECTIVES = {
    "plain": "",
    "two": ".explicitcluster .reqnctapercluster 2, 1, 1",
    "sixteen": ".reqnctapercluster 16, 1, 1",
    "at_most_four": ".maxclusterrank 4",
    "explicit": ".explicitcluster",
}
PTX = ".version 8.0\n.target sm_90\n.address_size 64\n" + "".join(
    f".visible .entry {name}" + BODY.replace("DIRECTIVES", words) for name, words in DIRECTIVES.items()
)


@pytest.fixture(scope="module")
def clusters(shared_context):
    if compute_capability() < (9, 0):
        pytest.skip("needs compute capability 9.0")


@pytest.fixture(scope="module")
def code(clusters):
    """The object code of clusters.cu."""
    cubin, _ = compile_cuda((KERNELS / "clusters.cu").read_text(), options=include_options(), kind="cubin")
    return ObjectCode.from_cubin(cubin)


@pytest.fixture(scope="module")
def stream(clusters):
    device = Device(0)
    device.set_current()
    return device.create_stream()


@pytest.fixture
def module(clusters):
    made = Module(PTX.encode())
    yield made
    made.unload()


@pytest.fixture
def out():
    made = DeviceArray(np.zeros(4, np.uint32))
    yield made
    made.free()


def attribute(dims):
    made = driver.CUlaunchAttribute()
    made.id = CLUSTER
    made.value.clusterDim.x, made.value.clusterDim.y, made.value.clusterDim.z = dims
    return made


def config(grid, cluster=None, block=32, shared=0):
    made = driver.CUlaunchConfig()
    made.gridDimX, made.gridDimY, made.gridDimZ = (*np.atleast_1d(grid).tolist(), 1, 1)[:3]
    made.blockDimX, made.blockDimY, made.blockDimZ = block, 1, 1
    made.sharedMemBytes = shared
    if cluster is not None:
        made.attrs = [attribute((*np.atleast_1d(cluster).tolist(), 1, 1)[:3])]
        made.numAttrs = 1
    return made


def run(module, name, out, grid, cluster=None):
    """What the kernel has stored, or the status of its launch."""
    address = np.asarray(out.address, np.uint64)
    params = np.array([address.ctypes.data], np.uint64)
    (status,) = driver.cuLaunchKernelEx(config(grid, cluster), module.function(name), params, 0)
    if status != Result.CUDA_SUCCESS:
        return status
    check(driver.cuCtxSynchronize())
    return out.get()[:3].tolist()


def words(stream, kernel, count, launch_config, dtype=np.uint32):
    """The words that a kernel with one parameter has stored."""
    out = DeviceArray(np.zeros(count, dtype))
    launch(stream, launch_config, kernel, out.address)
    stream.sync()
    found = out.get()
    out.free()
    return found


# ---- cooperative groups


@pytest.mark.parametrize("blocks", [1, 2, 4, 8])
def test_histogram_in_distributed_shared_memory(code, stream, blocks):
    per_block, count = 96, 20000
    values = np.random.default_rng(blocks).integers(0, per_block * blocks, count).astype(np.int32)
    bins, given = DeviceArray(np.zeros(per_block * blocks, np.int32)), DeviceArray(values)
    settings = LaunchConfig(grid=3, cluster=blocks, block=128, shmem_size=4 * per_block)
    arguments = (bins.address, np.int32(per_block), given.address, np.int32(count))
    launch(stream, settings, code.get_kernel("histogram"), *arguments)
    stream.sync()
    np.testing.assert_array_equal(bins.get(), np.bincount(values, minlength=per_block * blocks))
    bins.free()
    given.free()


@pytest.mark.parametrize("cluster", [(2, 1, 1), (1, 2, 2), (4, 2, 1), (1, 1, 1)])
def test_groups_describe_the_cluster(code, stream, cluster):
    threads = 64
    clusters_of_grid = (2, 3, 1)
    grid = tuple(n * c for n, c in zip(clusters_of_grid, cluster, strict=True))
    settings = LaunchConfig(grid=clusters_of_grid, cluster=cluster, block=threads)
    found = words(stream, code.get_kernel("dimensions"), 12 * int(np.prod(grid)), settings)
    blocks = int(np.prod(cluster))
    # The rank of each block, and the x of each rank in each cluster.
    for z, y, x in np.ndindex(*grid[::-1]):
        row = found.reshape(*grid[::-1], 12)[z, y, x].tolist()
        inner = [x % cluster[0], y % cluster[1], z % cluster[2]]
        rank = inner[0] + cluster[0] * (inner[1] + cluster[1] * inner[2])
        following = (rank + 1) % blocks
        there = 1000 * following + x - inner[0] + following % cluster[0]
        expected = [rank, blocks, *cluster, *inner, blocks * threads, rank * threads + threads - 1, there, following]
        assert row == expected, (x, y, z)


def test_dimensions_of_the_code_apply_without_attributes(code, stream):
    found = words(stream, code.get_kernel("fixed_dimensions"), 12 * 4, LaunchConfig(grid=4, block=32)).reshape(4, 12)
    assert found[:, 0].tolist() == [0, 1, 0, 1]
    assert found[:, 1].tolist() == [2] * 4
    assert found[:, 10].tolist() == [1001, 0, 1003, 2]


def test_launches_in_a_graph_definition_have_clusters(code, stream):
    out = DeviceArray(np.zeros(3, np.int32))
    definition = GraphDefinition()
    definition.launch(LaunchConfig(grid=3, cluster=4, block=32), code.get_kernel("sum_of_ranks"), out.address)
    graph = definition.instantiate()
    graph.launch(stream)
    stream.sync()
    assert out.get().tolist() == [32 * 6] * 3
    graph.close()
    out.free()


def test_nodes_of_a_graph_definition_change_their_clusters(module, stream, out):
    definition = GraphDefinition()
    kernel = ObjectCode.from_ptx(PTX.encode()).get_kernel("plain")
    node = definition.launch(LaunchConfig(grid=1, cluster=4, block=32), kernel, out.address)

    def result():
        graph = definition.instantiate()
        graph.launch(stream)
        stream.sync()
        graph.close()
        return out.get()[:3].tolist()

    assert result() == [4, 1, 4]
    # No multiple of the former cluster.
    node.update(config=LaunchConfig(grid=3, cluster=2, block=32))
    assert result() == [2, 1, 6]
    node.update(config=LaunchConfig(grid=5, block=32))
    assert result() == [1, 0, 5]
    node.update(config=LaunchConfig(grid=1, cluster=8, block=32))
    with pytest.raises(Exception, match="(?i)block"):
        node.update(config=LaunchConfig(grid=1, block=4096))
    assert result() == [8, 1, 8]


def test_sixteen_blocks_need_permission(code, stream):
    kernel = code.get_kernel("sum_of_ranks")
    settings = LaunchConfig(grid=2, cluster=16, block=32)
    check(driver.cuKernelSetAttribute(NON_PORTABLE, 1, int(kernel.handle), 0))
    assert words(stream, kernel, 2, settings, np.int32).tolist() == [32 * 120] * 2
    check(driver.cuKernelSetAttribute(NON_PORTABLE, 0, int(kernel.handle), 0))
    with pytest.raises(Exception, match="(?i)cluster"):
        words(stream, kernel, 2, settings, np.int32)


def test_clusters_of_a_cooperative_launch(code, stream):
    blocks, clusters = 4, 3
    out, stored = DeviceArray(np.zeros(blocks * clusters, np.int32)), DeviceArray(np.zeros(clusters, np.int32))
    settings = LaunchConfig(grid=clusters, cluster=blocks, block=64, is_cooperative=True)
    launch(stream, settings, code.get_kernel("grid_and_clusters"), out.address, stored.address)
    stream.sync()
    sums = np.arange(blocks * clusters).reshape(clusters, blocks).sum(1)
    assert out.get().tolist() == np.repeat(np.roll(sums, -1), blocks).tolist()
    out.free()
    stored.free()


@needs_clusters
def test_an_access_to_a_block_that_has_exited_is_reported():
    program = """
from helpers.device import DeviceArray, KERNELS, check, compile_cuda, include_options
import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, ObjectCode, launch
device = Device(0)
device.set_current()
cubin, _ = compile_cuda((KERNELS / "clusters.cu").read_text(), options=include_options(), kind="cubin")
code, stream, out = ObjectCode.from_cubin(cubin), device.create_stream(), DeviceArray(np.zeros(1, np.int32))
launch(stream, LaunchConfig(grid=1, cluster=2, block=1), code.get_kernel("late"), out.address)
(status,) = driver.cuStreamSynchronize(stream.handle)
print(status.name)
"""
    done = python(program, cwd=pathlib.Path(__file__).parents[1])
    assert done.stdout.split() == ["CUDA_ERROR_LAUNCH_FAILED"], done.stderr
    if "CPU" in Device(0).name:
        assert "the block of rank 1 of the cluster has exited" in done.stderr


# ---- the driver


@needs_clusters
def test_a_launch_chooses_its_clusters(module, out):
    assert run(module, "plain", out, 4) == [1, 0, 4]
    assert run(module, "plain", out, 4, 1) == [1, 1, 4]
    assert run(module, "plain", out, 4, 2) == [2, 1, 4]
    assert run(module, "plain", out, (4, 2), (2, 2)) == [4, 1, 4]
    assert run(module, "plain", out, 4, (0, 0, 0)) == [1, 0, 4]
    for grid, cluster in [(3, 2), (4, (1, 2)), (16, 16), (32, 32), (4, (0, 1, 1)), (64, (64, 64))]:
        assert run(module, "plain", out, grid, cluster) == INVALID, (grid, cluster)


@needs_clusters
def test_scheduling_policies_are_checked(module, out):
    address = np.asarray(out.address, np.uint64)
    params = np.array([address.ctypes.data], np.uint64)
    found = []
    for policy in range(4):
        chosen = driver.CUlaunchAttribute()
        chosen.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE
        # The union's first word; an enum member of Python cannot have the value 3.
        ctypes.c_uint32.from_address(chosen.value.getPtr()).value = policy
        settings = config(4)
        settings.attrs = [attribute((2, 1, 1)), chosen]
        settings.numAttrs = 2
        found += driver.cuLaunchKernelEx(settings, module.function("plain"), params, 0)
    check(driver.cuCtxSynchronize())
    assert found == [Result.CUDA_SUCCESS] * 3 + [Result.CUDA_ERROR_INVALID_VALUE]
    assert out.get()[:3].tolist() == [2, 1, 4]


@needs_clusters
def test_directives_limit_the_clusters(module, out):
    assert run(module, "two", out, 4) == [2, 1, 4]
    assert run(module, "two", out, 4, 2) == [2, 1, 4]
    assert run(module, "two", out, 4, (0, 0, 0)) == [2, 1, 4]
    assert run(module, "two", out, 3) == INVALID
    assert run(module, "two", out, 4, 4) == INVALID
    assert run(module, "at_most_four", out, 8, 4) == [4, 1, 8]
    assert run(module, "at_most_four", out, 8, 8) == INVALID
    assert run(module, "explicit", out, 4) == INVALID
    assert run(module, "explicit", out, 4, 1) == [1, 1, 4]
    assert run(module, "sixteen", out, 16) == INVALID
    check(driver.cuFuncSetAttribute(module.function("sixteen"), NON_PORTABLE, 1))
    assert run(module, "sixteen", out, 16) == [16, 1, 16]


@needs_clusters
def test_function_attributes(module, out):
    def get(name, attribute):
        return check(driver.cuFuncGetAttribute(attribute, module.function(name)))

    def put(name, attribute, value):
        (status,) = driver.cuFuncSetAttribute(module.function(name), attribute, value)
        return status

    must = Attribute.CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET
    assert [get(name, must) for name in DIRECTIVES] == [0, 1, 0, 0, 1]
    assert [get("two", a) for a in REQUIRED] == [2, 1, 1]
    assert [get("plain", a) for a in REQUIRED] == [0, 0, 0]
    invalid, success = Result.CUDA_ERROR_INVALID_VALUE, Result.CUDA_SUCCESS
    width, height, depth = REQUIRED
    assert put("plain", must, 1) == invalid
    assert [put("two", width, n) for n in (2, 4, 0, -1)] == [success, invalid, invalid, invalid]
    assert [put("at_most_four", width, n) for n in (4, 100, 0)] == [success, invalid, success]
    assert [put("plain", width, n) for n in (-1, 100, 2)] == [invalid, success, success]
    # One dimension is not enough, unless the launch names all.
    assert run(module, "plain", out, 4) == INVALID
    assert run(module, "plain", out, 4, 2) == [2, 1, 4]
    assert put("plain", height, 1) == put("plain", depth, 1) == success
    assert run(module, "plain", out, 4) == [2, 1, 4]
    assert run(module, "plain", out, 3) == INVALID
    assert run(module, "plain", out, 4, 4) == INVALID


@needs_clusters
def test_occupancy_of_clusters(module):
    def query(function, name, *arguments, **more):
        status, found = function(module.function(name), config(*arguments, **more))
        return found if status == Result.CUDA_SUCCESS else status

    most, active = driver.cuOccupancyMaxPotentialClusterSize, driver.cuOccupancyMaxActiveClusters
    assert query(most, "plain", 48) == query(most, "plain", 48, 4) == query(most, "two", 48) == 8
    assert query(most, "two", 48, 4) == query(most, "explicit", 48) == query(most, "sixteen", 48) == INVALID
    assert query(most, "plain", 48, block=2048) == query(most, "plain", 48, shared=100 << 10) == 0
    assert query(active, "plain", 48) == query(active, "plain", 48, 2, shared=100 << 10) == 0
    assert query(active, "plain", 48, 1) >= query(active, "plain", 48, 2) >= query(active, "plain", 48, 8) > 0
    assert query(active, "two", 48) == query(active, "two", 48, 2) > 0
    assert query(active, "two", 48, 4) == query(active, "plain", 3, 2) == query(active, "plain", 48, 16) == INVALID
    check(driver.cuFuncSetAttribute(module.function("plain"), NON_PORTABLE, 1))
    assert query(most, "plain", 48) == 16
    assert query(active, "plain", 48, 16) > 0


@needs_clusters
def test_kernel_nodes_have_clusters(module, out):
    def node(name, grid):
        graph = check(driver.cuGraphCreate(0))
        params = driver.CUDA_KERNEL_NODE_PARAMS()
        params.func = module.function(name)
        params.gridDimX, params.gridDimY, params.gridDimZ = grid, 1, 1
        params.blockDimX, params.blockDimY, params.blockDimZ = 32, 1, 1
        params.kernelParams = ((out.address,), (ctypes.c_void_p,))
        return graph, *driver.cuGraphAddKernelNode(graph, [], 0, params)

    def result(graph):
        made = check(driver.cuGraphInstantiate(graph, 0))
        check(driver.cuGraphLaunch(made, 0))
        check(driver.cuCtxSynchronize())
        check(driver.cuGraphExecDestroy(made))
        return out.get()[:3].tolist()

    def get(node):
        dims = check(driver.cuGraphKernelNodeGetAttribute(node, CLUSTER)).clusterDim
        return dims.x, dims.y, dims.z

    graph, status, plain = node("plain", 4)
    assert status == Result.CUDA_SUCCESS
    assert get(plain) == (0, 0, 0) and result(graph) == [1, 0, 4]
    for dims, expected in [
        ((2, 1, 1), [2, 1, 4]),
        ((1, 1, 1), [1, 1, 4]),
        ((0, 0, 0), [1, 0, 4]),
        ((4, 1, 1), [4, 1, 4]),
    ]:
        check(driver.cuGraphKernelNodeSetAttribute(plain, CLUSTER, attribute(dims).value))
        assert get(plain) == dims and result(graph) == expected
    for dims in [(3, 1, 1), (0, 1, 1), (16, 1, 1)]:
        assert driver.cuGraphKernelNodeSetAttribute(plain, CLUSTER, attribute(dims).value) == (INVALID,)
        assert get(plain) == (4, 1, 1)
    check(driver.cuGraphDestroy(graph))
    graph, status, two = node("two", 4)
    assert get(two) == (0, 0, 0) and result(graph) == [2, 1, 4]
    check(driver.cuGraphDestroy(graph))
    graph, status, _ = node("two", 3)
    assert status == INVALID
    check(driver.cuGraphDestroy(graph))


@needs_clusters
def test_captured_launches_have_clusters(module, out, stream):
    handle = driver.CUstream(int(stream.handle))
    address = np.asarray(out.address, np.uint64)
    params = np.array([address.ctypes.data], np.uint64)
    check(driver.cuStreamBeginCapture(handle, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
    settings = config(4, 2)
    settings.hStream = handle
    check(driver.cuLaunchKernelEx(settings, module.function("plain"), params, 0))
    graph = check(driver.cuStreamEndCapture(handle))
    made = check(driver.cuGraphInstantiate(graph, 0))
    check(driver.cuGraphLaunch(made, handle))
    check(driver.cuStreamSynchronize(handle))
    assert out.get()[:3].tolist() == [2, 1, 4]
    check(driver.cuGraphExecDestroy(made))
    check(driver.cuGraphDestroy(graph))


def test_device_attribute_tells_whether_there_are_clusters(shared_context):
    name = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH
    found = check(driver.cuDeviceGetAttribute(name, check(driver.cuDeviceGet(0))))
    assert found == (compute_capability() >= (9, 0))


@pytest.mark.cpu
def test_clusters_with_compute_capability_9(shared_context):
    """The other tests of this file, in a process whose device has compute capability 9.0."""
    if compute_capability() >= (9, 0):
        pytest.skip("the tests run in this process")
    others = ["-k", "not with_compute_capability_9"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, *others]
    environment = dict(os.environ, CUPYRITE_CPU_COMPUTE_CAPABILITY="9.0")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout and "skipped" not in done.stdout
