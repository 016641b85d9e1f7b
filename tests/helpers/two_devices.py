"""What the tests in `two_devices` share: fixtures, and kernels whose results show in which order they ran."""

import contextlib
import ctypes
import threading

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import Device, DeviceMemoryResource, DeviceMemoryResourceOptions, LaunchConfig, Program, launch

from helpers.device import callback, check

SOURCE = r"""
__device__ int here = -1;

extern "C" __global__ void step(unsigned *word, unsigned factor, unsigned summand, unsigned microseconds)
{
    unsigned long long now, end = 0;
    unsigned before = *(volatile unsigned *)word;
    do {
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
        if (end == 0) end = now + 1000ull * microseconds;
    } while (now < end);
    *word = before * factor + summand;
}
extern "C" __global__ void where(int *out) { *out = here; }
extern "C" __global__ void dynamic(int *out)
{
    extern __shared__ int shared[];
    shared[0] = 7;
    *out = shared[0];
}
extern "C" __global__ void increment(int *p, int count, int by)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) p[i] += by;
}
extern "C" __global__ void count_blocks(int *sms)
{
    unsigned sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (threadIdx.x == 0) atomicAdd(sms + sm, 1);
}
"""
ONE = LaunchConfig(grid=1, block=1)
both_orders = pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["0-then-1", "1-then-0"])


def has_two_devices():
    """Whether this process has two devices with peer access."""
    devices = Device.get_all_devices()
    return len(devices) > 1 and devices[0].can_access_peer(1) and devices[1].can_access_peer(0)


@pytest.fixture(scope="module")
def devices():
    return Device(0), Device(1)


@pytest.fixture(autouse=True)
def current(devices):
    """Device 0 is current when a test begins. When it ends, both devices are idle."""
    devices[0].set_current()
    yield
    for device in devices:
        device.set_current()
        device.sync()
    devices[0].set_current()


@pytest.fixture
def streams(devices):
    """A stream of each device."""
    made = []
    for device in devices:
        device.set_current()
        made.append(device.create_stream())
    devices[0].set_current()
    yield made
    for stream in made:
        stream.close()


class Words:
    """Unsigned integers in memory of one device. Both devices have access."""

    def __init__(self, pool, stream, *values):
        self.stream, self.count = stream, len(values)
        self.buffer = pool.allocate(4 * len(values), stream=stream)
        self.set(*values)

    def set(self, *values):
        """Writes the values. No other stream may use them."""
        self.buffer.copy_from(np.array(values, np.uint32), stream=self.stream)
        self.stream.sync()

    def get(self):
        """Reads the values. No other stream may write them."""
        out = np.zeros(self.count, np.uint32)
        self.buffer.copy_to(out, stream=self.stream)
        self.stream.sync()
        return out.tolist()


@pytest.fixture
def words(devices):
    """Creates words on a device: `words(device_id, *values)`."""
    made, pools, streams = [], [], []
    for device, other in zip(devices, (1, 0)):
        pools.append(DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 25)))
        pools[-1].peer_accessible_by = [other]
        streams.append(device.create_stream())

    def create(number, *values):
        made.append(Words(pools[number], streams[number], *values))
        return made[-1]

    yield create
    for one in made:
        one.buffer.close()
    for pool, stream in zip(pools, streams):
        stream.sync()
        pool.close()
        stream.close()


@pytest.fixture(scope="module")
def code(devices):
    """One library for both devices."""
    devices[0].set_current()
    return Program(SOURCE, "c++").compile("ptx")


@pytest.fixture
def step(code, streams, words):
    """Queues `word = word * factor + summand`. The kernel is loaded on both devices: loading may wait for all streams."""
    kernel = code.get_kernel("step")

    def queue_step(stream, word, factor, summand, microseconds=0):
        launch(stream, ONE, kernel, word.buffer, *map(ctypes.c_uint32, (factor, summand, microseconds)))

    for number, stream in enumerate(streams):
        queue_step(stream, words(number, 0), 1, 0)
        stream.sync()
    return queue_step


@pytest.fixture
def located(devices, code):
    """On each device, the global variable `here` is the device's number."""
    addresses = []
    for number, device in enumerate(devices):
        device.set_current()
        address, size = check(driver.cuLibraryGetGlobal(code.handle, b"here"))
        assert size == 4
        value = ctypes.c_int32(number)
        check(driver.cuMemcpyHtoD(address, ctypes.addressof(value), 4))
        addresses.append(int(address))
    devices[0].set_current()
    return addresses


def after(value, *steps):
    """The word after steps (factor, summand)."""
    for factor, summand in steps:
        value = (value * factor + summand) & 0xFFFFFFFF
    return value


@contextlib.contextmanager
def held(stream):
    """Work that is queued in the stream inside of the block starts when the block ends, or when the yielded event is set."""
    go = threading.Event()
    _function, address = callback(lambda _: go.wait(30))
    check(driver.cuLaunchHostFunc(stream.handle, driver.CUhostFn(address), 0))
    passed = stream.record()
    try:
        yield go
    finally:
        go.set()
        passed.sync()
