"""Methods with the `METH_FASTCALL` convention: arguments, signatures, derived classes, references."""

import gc
import inspect
import sys

import pytest
from cuda.core import Buffer, Device, DeviceMemoryResource, Event, EventOptions, LaunchConfig, Program, launch
from cuda.core.utils import StridedMemoryView

pytestmark = pytest.mark.strict_abi

BYTES = 256


def calls(device, stream, resource):
    """(method, valid arguments, parameter names) of each."""
    return [
        (device.create_event, {"options": EventOptions()}, ["options"]),
        (device.allocate, {"size": BYTES, "stream": stream}, ["size", "stream"]),
        (resource.allocate, {"size": BYTES, "stream": stream}, ["size", "stream"]),
        (resource.allocate(BYTES, stream=stream).close, {"stream": stream}, ["stream"]),
        (device.create_event().close, {}, []),
    ]


def test_positional_and_keyword_arguments(device, stream, resource):
    forms = (
        lambda method, right: method(*right.values()),
        lambda method, right: method(**right),
        # A keyword equal to the parameter's name, but another object.
        lambda method, right: method(**{"".join(list(name)): value for name, value in right.items()}),
    )
    for call in forms:
        made = [call(method, right) for method, right, _ in calls(device, stream, resource)]
        assert [type(it) for it in made] == [Event, Buffer, Buffer, type(None), type(None)]
        assert made[1].size == made[2].size == BYTES


def test_wrong_arguments_raise(device, stream, resource):
    for method, right, names in calls(device, stream, resource):
        with pytest.raises(TypeError, match="at most|takes"):
            method(*right.values(), None)
        with pytest.raises(TypeError, match="nothing_of_that_name"):
            method(**right, nothing_of_that_name=1)
        for name in names:
            with pytest.raises(TypeError, match=f"multiple values for argument '{name}'"):
                method(*right.values(), **{name: right[name]})
    for method in (device.allocate, resource.allocate):
        with pytest.raises(TypeError, match="'size'"):
            method()
        with pytest.raises(TypeError, match="'size'"):
            method(stream=stream)
        with pytest.raises(TypeError, match="'size'"):
            method(None, stream=stream)
        with pytest.raises(TypeError, match="'size'"):
            method(1.5, stream=stream)
        for size in (-1, 2**64):
            with pytest.raises(OverflowError, match="'size'"):
                method(size, stream=stream)
        with pytest.raises(TypeError, match="'stream'"):
            method(BYTES, stream=7)
    buffer = resource.allocate(BYTES, stream=stream)
    with pytest.raises(TypeError, match="'stream'"):
        buffer.close(7)
    assert not buffer.is_closed
    buffer.close(None)
    assert buffer.is_closed
    with pytest.raises(TypeError):
        Buffer.close(7)
    with pytest.raises(TypeError):
        Event.close(7)


def test_signatures_and_docstrings():
    signatures = {
        Device.create_event: "(self, /, options=None)",
        Device.allocate: "(self, /, size, *, stream=None)",
        DeviceMemoryResource.allocate: "(self, /, size, *, stream)",
        Buffer.close: "(self, /, stream=None)",
        Event.close: "(self, /)",
    }
    for method, signature in signatures.items():
        assert str(inspect.signature(method)) == signature
        assert len(inspect.getdoc(method)) > 60


def test_close_with_a_closed_or_another_stream(device, stream, resource):
    buffer = resource.allocate(BYTES, stream=stream)
    other = device.create_stream()
    other.close()
    with pytest.raises(RuntimeError, match="closed"):
        buffer.close(other)
    assert not buffer.is_closed
    buffer.close(device.create_stream())
    assert buffer.is_closed
    buffer.close(other)
    for given in (device.default_stream, stream):
        buffer = resource.allocate(BYTES, stream=device.default_stream)
        buffer.close(given)
        assert buffer.is_closed


def test_derived_classes_inherit_them(device, stream):
    class Counting(DeviceMemoryResource):
        count = 0

        def allocate(self, size, *, stream):
            self.count += 1
            return super().allocate(size, stream=stream)

    resource = Counting(device)
    buffer = resource.allocate(BYTES, stream=stream)
    assert buffer.size == BYTES and buffer.memory_resource is resource
    buffer.close(stream)
    assert resource.count == 1
    assert buffer.is_closed and buffer.handle == 0


def test_references_are_dropped_at_once(device, stream, resource):
    """Not deferred until PyO3's next pass."""
    options = EventOptions()
    gc.collect()

    def references():
        return [sys.getrefcount(one) for one in (resource, stream, options, device)]

    before = references()
    for _ in range(100):
        resource.allocate(BYTES, stream=stream).close(stream)
        resource.allocate(BYTES, stream=stream).close()
        resource.allocate(BYTES, stream=stream).close(device.default_stream)
        device.create_event(options).close()
        with pytest.raises(TypeError):
            resource.allocate(BYTES, stream=stream).close(7)
        with pytest.raises(OverflowError):
            resource.allocate(-1, stream=stream)
    buffer = resource.allocate(BYTES, stream=stream)
    assert references()[0] == before[0] + 1
    buffer.close(stream)
    assert references() == before


def test_refused_calls_leak_no_references(device, stream, resource):
    """References that PyO3 defers would remain until the next call through PyO3."""
    view = StridedMemoryView.from_any_interface
    properties = device.properties
    closed = device.create_event()
    closed.close()
    kernel = Program('extern "C" __global__ void f(int n) {}', "c++").compile("ptx").get_kernel("f")
    one = LaunchConfig(grid=1, block=1)
    buffer = resource.allocate(BYTES, stream=stream)
    refused = [
        lambda: device.create_event(3),
        lambda: device.create_event(nonsense=3),
        lambda: device.create_event(1, 2),
        lambda: device.allocate("3"),
        lambda: device.allocate(-1, stream=stream),
        lambda: resource.allocate(BYTES, stream=3),
        lambda: buffer.close(3),
        lambda: buffer.__dlpack__(stream="x"),
        lambda: buffer.__dlpack__(nonsense=3),
        lambda: view(3, -1),
        lambda: view(),
        lambda: launch(3, one, kernel, 1),
        lambda: launch(stream, 3, kernel, 1),
        lambda: launch(stream, one, kernel, object()),
        lambda: type(properties).warp_size.__get__(3),
    ]

    def one_by_one(times):
        for call in refused:
            for _ in range(times):
                try:
                    call()
                except Exception:
                    continue
                pytest.fail("was not refused")

    one_by_one(50)
    left = []
    # A leaking call leaks at least 400 blocks every time. Python itself keeps attribute names that classes were asked
    # for, up to 4,096: which ones depends on their addresses.
    while not left or (left[-1] >= 350 and len(left) < 20):
        gc.collect()
        before = sys.getallocatedblocks()
        one_by_one(400)
        gc.collect()
        left.append(sys.getallocatedblocks() - before)
    assert left[-1] < 350, left
