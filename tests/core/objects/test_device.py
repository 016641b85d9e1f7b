"""`cuda.core.Device`, its properties, contexts and `Host`, on either device."""

import copy
import functools
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest
from cuda.bindings import driver
from cuda.core import Context, ContextOptions, Device, Host
from cuda.core._device import DeviceProperties
from cuda.core._utils.cuda_utils import ComputeCapability, CUDAError

from helpers.device import check, on_cpu_device
from helpers.programs import output
from helpers.threads import in_a_thread, run_all


@pytest.fixture
def device():
    """The first device, current; no context is current afterwards."""
    device = Device(0)
    device.set_current()
    yield device
    check(driver.cuCtxSetCurrent(None))


def run_python(program, **environment):
    """The output of a program in another process."""
    return output(program, environment=environment)


class TestSingletons:
    def test_one_object_per_device(self, device):
        assert Device(0) is device
        assert Device(device) is device
        assert Device(None) is Device() is device
        assert Device(device_id=0) is device
        assert Device(np.int64(0)) is device
        assert Device(False) is device

    def test_threads_have_separate_objects(self, device):
        other, same = in_a_thread(lambda: (Device(0), Device(0) is Device(0)))
        assert same
        assert other is not device
        assert other == device and hash(other) == hash(device)
        # It outlives its thread and works in this one.
        assert other.name == device.name
        other.create_stream().close()

    def test_thread_objects_are_destroyed_with_their_thread(self):
        references = [in_a_thread(lambda: weakref.ref(Device(0))) for _ in range(50)]
        gc.collect()
        assert not any(reference() for reference in references)

    def test_access_while_a_thread_ends(self):
        """Values of thread-local storage may use a device while they are destroyed."""
        seen = []

        class Late:
            def __del__(self):
                seen.append(Device(0).name)

        def use(local):
            for name in "abcdefgh":
                setattr(local, name, Late())
            assert Device(0) is Device(0)

        for _ in range(20):
            local = threading.local()
            in_a_thread(functools.partial(use, local))
            del local
        gc.collect()
        assert len(seen) == 160 and len(set(seen)) == 1

    def test_concurrent_creation(self):
        ready = threading.Barrier(8)

        def make():
            ready.wait()
            return len({id(Device(0)) for _ in range(1000)}), Device()

        results = [None] * 8

        def run(index):
            results[index] = make()

        threads = [threading.Thread(target=run, args=(n,)) for n in range(8)]
        run_all(threads)
        assert all(count == 1 for count, _ in results)
        assert len({id(device) for _, device in results}) == 8

    def test_subclasses_return_the_same_objects(self, device):
        class Mine(Device):
            pass

        assert Mine(0) is device

    def test_pickle_and_copies(self, device):
        assert pickle.loads(pickle.dumps(device)) is device
        assert copy.copy(device) is device
        assert copy.deepcopy(device) is device
        assert device.__reduce__() == (Device, (0,))

    @pytest.mark.parametrize(
        "given, error, says",
        [
            (-1, ValueError, "is -1; there"),
            (10**6, ValueError, "is 1000000; there"),
            (1 << 40, OverflowError, "1099511627776"),
            (-(1 << 90), OverflowError, "not a device number"),
            ("0", TypeError, "type str"),
            (0.0, TypeError, "type float"),
            ([], TypeError, "type list"),
            (object(), TypeError, "type object"),
        ],
    )
    def test_invalid_device_ids_raise(self, given, error, says):
        with pytest.raises(error, match="'device_id'") as caught:
            Device(given)
        assert says in str(caught.value)

    def test_exception_from_index_propagates(self):
        class Odd:
            def __index__(self):
                raise KeyError("odd")

        with pytest.raises((TypeError, KeyError)):
            Device(Odd())

    def test_current_device_is_the_default(self, device):
        assert Device() is device
        check(driver.cuCtxSetCurrent(None))
        assert Device() is Device(0)

    def test_get_all_devices(self, device):
        every = Device.get_all_devices()
        assert type(every) is tuple
        assert len(every) == check(driver.cuDeviceGetCount())
        assert every[0] is device
        assert [int(d) for d in every] == [d.device_id for d in every] == list(range(len(every)))


class TestAttributes:
    def test_attributes_match_the_driver(self, device):
        handle = check(driver.cuDeviceGet(0))
        assert device.name == check(driver.cuDeviceGetName(256, handle)).rstrip(b"\0").decode()
        assert device.uuid.replace("-", "") == bytes(check(driver.cuDeviceGetUuid(handle)).bytes).hex()
        assert [len(part) for part in device.uuid.split("-")] == [8, 4, 4, 4, 12]
        assert device.total_memory == check(driver.cuDeviceTotalMem(handle))
        assert device.pci_bus_id == check(driver.cuDeviceGetPCIBusId(64, handle)).rstrip(b"\0").decode()
        assert repr(device) == f"<Device 0 ({device.name})>"

    def test_compute_capability(self, device):
        capability = device.compute_capability
        assert type(capability) is ComputeCapability
        assert capability is device.compute_capability
        assert capability == (capability.major, capability.minor)
        assert device.arch == f"{capability.major}{capability.minor}"
        assert pickle.loads(pickle.dumps(capability)) == capability
        assert capability._asdict() == {"major": capability.major, "minor": capability.minor}
        assert capability >= (5, 0)

    def test_attributes_are_read_only(self, device):
        for name in ("name", "uuid", "device_id", "properties", "context", "arch"):
            with pytest.raises(AttributeError):
                setattr(device, name, 1)
        with pytest.raises(AttributeError):
            device.nonsense = 1

    def test_devices_are_neither_ordered_nor_numbers(self, device):
        with pytest.raises(TypeError):
            device < device
        assert device != 0
        assert not device == "x"

    def test_properties_match_the_driver(self, device):
        handle = check(driver.cuDeviceGet(0))
        names = [name for name in dir(DeviceProperties) if not name.startswith("_")]
        assert len(names) == 143
        for name in names:
            attribute = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name.upper()}")
            status, value = driver.cuDeviceGetAttribute(attribute, handle)
            have = getattr(device.properties, name)
            assert type(have) in (bool, int), name
            if int(status) == 0:
                assert have == (bool(value) if type(have) is bool else value), name
            assert getattr(DeviceProperties, name).__doc__, name
        assert device.properties is device.properties
        assert device.properties.warp_size == 32

    def test_properties_are_immutable(self, device):
        with pytest.raises(RuntimeError, match=r"Device\.properties"):
            DeviceProperties()
        with pytest.raises(AttributeError):
            device.properties.warp_size = 3
        with pytest.raises(AttributeError):
            device.properties.nonsense
        with pytest.raises(TypeError):
            DeviceProperties.warp_size.__get__(object())

    def test_peer_access(self, device):
        assert device.can_access_peer(0) is True
        assert device.can_access_peer(device) is True
        for wrong in (-1, 10**6):
            with pytest.raises(ValueError, match="'peer'"):
                device.can_access_peer(wrong)
        for wrong in ("x", None):
            with pytest.raises(TypeError, match="'peer'"):
                device.can_access_peer(wrong)


class TestContexts:
    def test_no_current_context_is_needed(self):
        """A device finds its context itself and does not leave it current."""

        def use():
            device = Device(0)
            stream = device.create_stream()
            event = device.create_event()
            stream.record(event)
            device.sync()
            assert event.is_done
            assert event.context == stream.context == device.context
            return int(check(driver.cuCtxGetCurrent()))

        assert in_a_thread(use) == 0

    def test_set_current(self):
        def use():
            device = Device(0)
            assert device.set_current() is None
            assert int(check(driver.cuCtxGetCurrent())) == int(device.context.handle)
            assert device.set_current() is None
            context = device.context
            assert device.context is context
            former = device.set_current(context)
            assert former == context and former is not context
            check(driver.cuCtxSetCurrent(None))
            assert device.set_current(context) is None
            return True

        assert in_a_thread(use)

    def test_foreign_context(self, device):
        made = check(driver.cuCtxCreate(None, 0, check(driver.cuDeviceGet(0))))
        try:
            assert Device() is device
            assert int(device.context.handle) == int(made)
            stream = device.create_stream()
            event = stream.record()
            assert int(stream.context.handle) == int(event.context.handle) == int(made)
            assert stream.device is device
            mine = device.context
            device.set_current()
            stream_of_primary = device.create_stream()
            assert device.context != mine
            assert device.set_current(mine) == stream_of_primary.context
            assert int(check(driver.cuCtxGetCurrent())) == int(made)
            stream.close()
            event.close()
        finally:
            check(driver.cuCtxDestroy(made))

    @pytest.mark.parametrize("wrong", [5, "x", object()])
    def test_invalid_contexts_raise(self, device, wrong):
        with pytest.raises(TypeError, match="'ctx'"):
            device.set_current(wrong)

    def test_with_statement(self):
        def use():
            device = Device(0)
            with device as entered:
                assert entered is device
                inside = int(check(driver.cuCtxGetCurrent()))
                with Device(0):
                    assert int(check(driver.cuCtxGetCurrent())) == inside
                assert int(check(driver.cuCtxGetCurrent())) == inside
            assert inside == int(device.context.handle)
            with pytest.raises(KeyError), device:
                raise KeyError
            return int(check(driver.cuCtxGetCurrent()))

        assert in_a_thread(use) == 0

    def test_exit_without_enter_raises(self):
        def use():
            with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_CONTEXT"):
                Device(0).__exit__(None, None, None)
            return True

        assert in_a_thread(use)

    def test_context_objects(self, device):
        context = device.context
        assert type(context) is Context
        assert type(context.handle) is driver.CUcontext
        assert context.is_closed is False and context.is_green is False
        assert hash(context) == int(context.handle)
        assert repr(context) == f"<Context handle={int(context.handle):#x} device=0>"
        assert context != 3
        with pytest.raises(RuntimeError, match="current"):
            context.close()
        with pytest.raises(RuntimeError, match="green"):
            context.create_stream()
        with pytest.raises(RuntimeError, match=r"Device\.context"):
            Context()
        for copied in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError):
                copied(context)
        check(driver.cuCtxSetCurrent(None))
        context.close()
        context.close()
        assert context.is_closed
        assert int(context.handle) == 0
        assert "0x0" in repr(context)
        with pytest.raises(RuntimeError, match="Context was closed"):
            device.set_current(context)
        # The device's own context is untouched, and the device finds it again.
        assert device.context != context
        device.create_stream().close()

    def test_green_contexts_need_resources(self, device):
        assert ContextOptions(resources=None).resources is None
        with pytest.raises(TypeError):
            ContextOptions()
        for nothing in (None, ContextOptions(resources=None), ContextOptions(resources=[]), {"resources": ()}):
            with pytest.raises(ValueError, match="resources"):
                device.create_context(nothing)
        for wrong in (3, ContextOptions(resources=[3]), {"resources": 3}, {"foo": 3}):
            with pytest.raises(TypeError):
                device.create_context(wrong)


class TestMemory:
    def test_memory_resource(self, device):
        from cuda.core import DeviceMemoryResource

        resource = device.memory_resource
        assert isinstance(resource, DeviceMemoryResource)
        assert device.memory_resource is resource
        for wrong in (3, None, object()):
            with pytest.raises(TypeError, match="memory_resource"):
                device.memory_resource = wrong
        assert device.memory_resource is resource

    def test_allocate_without_context_and_stream(self):
        def use():
            buffer = Device(0).allocate(1 << 20)
            assert buffer.size == 1 << 20
            buffer.close()
            return int(check(driver.cuCtxGetCurrent()))

        assert in_a_thread(use) == 0

    def test_allocate(self, device):
        stream = device.create_stream()
        for buffer in (
            device.allocate(16, stream=stream),
            device.allocate(16, stream=None),
            device.allocate(16, stream),
            device.allocate(size=16),
        ):
            assert buffer.size == 16
            buffer.close()
        with pytest.raises(TypeError):
            device.allocate()
        with pytest.raises(TypeError):
            device.allocate("4", stream=stream)
        with pytest.raises(OverflowError):
            device.allocate(-1, stream=stream)
        with pytest.raises(OverflowError):
            device.allocate(1 << 70, stream=stream)
        stream.close()

    def test_memory_resource_can_be_replaced(self, device):
        from cuda.core import DeviceMemoryResource

        class Own(DeviceMemoryResource):
            requested = 0

            def allocate(self, size, *, stream):
                Own.requested += 1
                return super().allocate(size, stream=stream)

        former = device.memory_resource
        try:
            device.memory_resource = Own(device)
            device.allocate(4).close()
            assert Own.requested == 1
        finally:
            device.memory_resource = former


class TestHost:
    def test_one_object_per_location(self):
        assert Host() is Host(None) is Host()
        assert Host(3) is Host(numa_id=3)
        assert Host.numa_current() is Host(is_numa_current=True)
        assert len({Host(), Host(3), Host(4), Host.numa_current()}) == 4
        assert in_a_thread(lambda: Host(3)) is Host(3)

    def test_attributes_and_repr(self):
        assert [repr(h) for h in (Host(), Host(3), Host.numa_current())] == [
            "Host()",
            "Host(numa_id=3)",
            "Host.numa_current()",
        ]
        assert (Host().numa_id, Host(3).numa_id, Host.numa_current().numa_id) == (None, 3, None)
        assert Host.numa_current().is_numa_current and not Host(3).is_numa_current

    @pytest.mark.parametrize("host", [Host(), Host(3), Host.numa_current()])
    def test_copies_are_the_same_object(self, host):
        assert pickle.loads(pickle.dumps(host)) is host
        assert copy.copy(host) is host
        assert copy.deepcopy(host) is host
        assert host == host and host != 3

    @pytest.mark.parametrize("wrong", [-1, "x", 1.0, True])
    def test_invalid_numa_nodes_raise(self, wrong):
        with pytest.raises(ValueError, match="numa_id"):
            Host(wrong)

    def test_conflicting_arguments_raise(self):
        with pytest.raises(ValueError, match="both"):
            Host(0, is_numa_current=True)

    def test_instances_are_immutable(self):
        with pytest.raises(AttributeError):
            Host().numa_id = 1
        with pytest.raises(AttributeError):
            Host().other = 1


TWO_DEVICES = r"""
import sys, threading
sys.path.insert(0, ".")
from cuda.bindings import driver
from cuda.core import Device, Stream
from helpers.device import check

def current():
    return int(check(driver.cuCtxGetCurrent()))

zero, one = Device.get_all_devices()
assert (zero.device_id, one.device_id) == (0, 1) and zero != one and len({zero, one}) == 2
zero.set_current()
assert Device() is zero
with Device(1):
    assert Device() is one
    assert Stream().device is one
    with zero:
        assert Device() is zero
    one.set_current()
    assert Device() is one
assert Device() is zero and current() == int(zero.context.handle)

# A stream, an event, memory of a device that is not current are that device's.
stream = one.create_stream()
assert stream.device is one and stream.context == one.context != zero.context
event = one.create_event()
assert event.device is one
stream.record(event)
recorded = stream.record()
assert recorded.device is one
recorded.sync()
event.sync()
zero.create_stream().wait(recorded)
buffer = one.allocate(64)
assert buffer.device_id == 1
buffer.close()
one.sync()
assert Device() is zero
assert one.default_stream is zero.default_stream
stream.close()
try:
    zero.set_current(one.context)
except RuntimeError as error:
    assert "of device 1, not of device 0" in str(error), error
else:
    raise AssertionError
former = one.set_current(one.context)
assert former == zero.context
assert Device() is one
assert zero.can_access_peer(one) in (True, False) and zero.can_access_peer(1) == zero.can_access_peer(one)
try:
    Device(2)
except ValueError as error:
    assert "numbers 0 to 1" in str(error), error
else:
    raise AssertionError

# Timing is of one context.
a = zero.create_stream().record(options={"timing_enabled": True})
b = one.create_stream().record(options={"timing_enabled": True})
a.sync(), b.sync()
try:
    b - a
except RuntimeError as error:
    assert "context" in str(error), error
else:
    raise AssertionError
print("fine")
"""


@pytest.mark.cpu
def test_two_devices():
    assert run_python(TWO_DEVICES, CUPYRITE_DEVICE="cpu", CUPYRITE_CPU_DEVICES="2").strip() == "fine"


@pytest.mark.gpu
def test_two_gpus():
    if check(driver.cuDeviceGetCount()) != 2:
        pytest.skip("needs two GPUs")
    assert run_python(TWO_DEVICES).strip() == "fine"


def test_creating_a_device_retains_no_context():
    program = """
from cuda.core import Device
from cuda.bindings import driver
d = Device()
d.name, d.uuid, d.properties.warp_size, d.compute_capability, Device.get_all_devices(), d.can_access_peer(0)
assert driver.cuDevicePrimaryCtxGetState(0)[1:] == (0, 0), driver.cuDevicePrimaryCtxGetState(0)
assert int(driver.cuCtxGetCurrent()[1]) == 0
d.create_stream()
assert driver.cuDevicePrimaryCtxGetState(0)[2] == 1
assert int(driver.cuCtxGetCurrent()[1]) == 0
"""
    run_python(program)


@pytest.mark.cpu
def test_no_devices():
    program = """
from cuda.core import Device
try:
    Device()
except Exception as error:
    print(type(error).__name__, error)
else:
    print("found")
"""
    text = run_python(program, CUPYRITE_DEVICE="gpu", LD_LIBRARY_PATH="")
    if text.strip() == "found":
        pytest.skip("needs a machine without a GPU")
    assert text.startswith("DynamicLibNotFoundError") or "CUDA_ERROR" in text


def test_device_name_matches_the_backend(device):
    assert device.name.startswith("CPU") == on_cpu_device()


ONE_RESOURCE = """
import sys, threading
from cuda.core import Device

sys.setswitchinterval(1e-6)
for _ in range(300):
    made, found, ready = [], [], threading.Barrier(8)

    def find():
        ready.wait()
        found.append(made[0].memory_resource)

    first = threading.Thread(target=lambda: made.append(Device(0)))  # each thread has its own object
    first.start()
    first.join()
    threads = [threading.Thread(target=find) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and all(resource is found[0] for resource in found)
"""


def test_threads_share_one_memory_resource():
    """Threads that request a device's resource concurrently get the same object, without deadlock."""
    output(ONE_RESOURCE)
