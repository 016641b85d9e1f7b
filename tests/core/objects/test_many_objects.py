"""Events and buffers in large numbers: options, garbage collection, and concurrent use."""

import gc
import sys
import threading
import weakref

import pytest
from cuda.bindings import driver
from cuda.core import (
    Buffer,
    DeviceMemoryResource,
    Event,
    EventOptions,
    ManagedBuffer,
    ManagedMemoryResource,
    Stream,
)
from cuda.core._utils.cuda_utils import CUDAError

from helpers.threads import run_all

pytestmark = pytest.mark.strict_abi

BYTES = 256


def flags(event):
    return event.is_timing_enabled, event.is_blocking_sync, event.is_ipc_enabled


def test_options_are_read_each_time(device):
    options = EventOptions()
    for timing in (True, False, None, True):
        for blocking in (False, True, None):
            options.timing_enabled = timing
            options.blocking_sync = blocking
            assert flags(device.create_event(options)) == (bool(timing), bool(blocking), False)


def test_options_with_a_modified_dictionary(device):
    options = EventOptions()
    fields = vars(options)
    # In another order.
    fields.clear()
    fields["ipc_enabled"] = False
    fields["blocking_sync"] = True
    fields["timing_enabled"] = True
    assert flags(device.create_event(options)) == (True, True, False)
    # Equal names that are other objects.
    for name in list(fields):
        value = fields.pop(name)
        fields["".join(list(name))] = value
    assert flags(device.create_event(options)) == (True, True, False)
    # An attribute that is not an option.
    fields["unknown"] = True
    assert flags(device.create_event(options)) == (True, True, False)
    del fields["unknown"]
    # Without a field: its default is the class attribute.
    del fields["timing_enabled"]
    assert flags(device.create_event(options)) == (False, True, False)
    fields.clear()
    assert flags(device.create_event(options)) == (False, False, False)
    fields["blocking_sync"] = 1
    with pytest.raises(TypeError, match="blocking_sync"):
        device.create_event(options)
    fields["blocking_sync"] = True
    assert flags(device.create_event(options)) == (False, True, False)


def test_options_with_fields_in_another_order(device):
    # Names in the order in which an instance received them; some instances share a key table with others.
    names = "timing_enabled", "blocking_sync", "ipc_enabled"
    for order in ((0, 1, 2), (2, 1, 0), (1, 2, 0)):
        for chosen in range(2):
            values = {name: name == names[chosen] for name in names}
            bare = EventOptions.__new__(EventOptions)
            for place in order:
                bare.__dict__[names[place]] = values[names[place]]
            whole = EventOptions()
            whole.__dict__ = {names[place]: values[names[place]] for place in order}
            again = EventOptions()
            for place in order:
                del again.__dict__[names[place]]
                again.__dict__[names[place]] = values[names[place]]
            for options in (bare, whole, again):
                for _ in range(3):
                    event = device.create_event(options)
                    assert flags(event) == tuple(values.values())
                    event.close()
    more = EventOptions(blocking_sync=True)
    for number in range(40):
        more.__dict__[f"more{number}"] = True
        assert flags(device.create_event(more)) == (False, True, False)
    one = EventOptions(blocking_sync=True)
    del one.__dict__["blocking_sync"]
    # The class has the default.
    assert flags(device.create_event(one)) == (False, False, False)


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("given", [True, False])
def test_streams_are_destroyed_after_buffers_were_freed_on_them(device, resource, closed, given):
    stream = device.create_stream()
    handle = int(stream.handle)
    buffers = [resource.allocate(BYTES, stream=stream) for _ in range(4)]
    for buffer in buffers[:2]:
        buffer.close(*([stream] if given else []))
    if closed:
        stream.close()
    else:
        forgotten = weakref.ref(stream)
        del stream
        assert forgotten() is None
    # The open buffers keep it.
    assert driver.cuStreamQuery(handle)[0] == driver.CUresult.CUDA_SUCCESS
    for buffer in buffers:
        buffer.close()
    if device.name.startswith("CPU"):
        # A GPU's driver may crash here: it does not validate handles.
        assert driver.cuStreamQuery(handle)[0] == driver.CUresult.CUDA_ERROR_INVALID_HANDLE


def test_streams_with_the_same_handle_are_distinguished(device, resource):
    stream = device.create_stream()
    handle = int(stream.handle)
    other = Stream.from_handle(handle)
    for _ in range(3):
        # Freed with another stream object than it was allocated with, and the reverse.
        resource.allocate(BYTES, stream=stream).close(other)
        resource.allocate(BYTES, stream=other).close(stream)
    stream.close()
    if device.name.startswith("CPU"):
        assert driver.cuStreamQuery(handle)[0] == driver.CUresult.CUDA_ERROR_INVALID_HANDLE


def test_options_of_a_derived_class(device):
    class Asked(EventOptions):
        requested = 0

        @property
        def timing_enabled(self):
            Asked.requested += 1
            return True

        @timing_enabled.setter
        def timing_enabled(self, value):
            pass

    assert flags(device.create_event(Asked())) == (True, False, False)
    assert Asked.requested


def test_event_gains_other_owners(device, stream):
    """Until then its Python object is the only owner."""
    event = device.create_event(EventOptions(timing_enabled=True, blocking_sync=True))
    handle = int(event.handle)
    assert handle and event.is_done
    assert event.context == device.context and event.device is device
    assert stream.record(event) is event
    assert int(event.handle) == handle and flags(event) == (True, True, False)
    stream.wait(event)
    event.sync()
    later = stream.record(options=EventOptions(timing_enabled=True))
    later.sync()
    assert later - event >= 0
    for one in (event, later):
        one.close()
        assert one.is_closed and int(one.handle) == 0
        one.close()
        for use in (lambda: stream.record(one), lambda: stream.wait(one), one.sync, lambda: one.is_timing_enabled):
            with pytest.raises(RuntimeError, match="closed"):
                use()


def test_objects_are_not_tracked_and_can_be_created_in_callbacks(device, stream, resource):
    for make, cls in (
        (device.create_event, Event),
        (lambda: resource.allocate(BYTES, stream=stream), Buffer),
        (lambda: device.allocate(BYTES, stream=stream), Buffer),
    ):
        made = [make() for _ in range(5)]
        for one in made:
            # Nothing refers back to them, so the collector does not track them.
            assert type(one) is cls and not gc.is_tracked(one) and not one.is_closed
            assert sys.getsizeof(one) == sys.getsizeof(made[0]) and weakref.getweakrefcount(one) == 0
        one = None
        assert len({sys.getrefcount(made[number]) for number in range(5)}) == 1
        assert len({int(one.handle) for one in made}) == 5
        released = []
        watched = [weakref.ref(one, lambda _: released.append(make())) for one in made]
        made.clear()
        assert [ref() for ref in watched] == [None] * 5 and len(released) == 5
        assert all(type(one) is cls for one in released)


def test_classes_do_not_leak(device, stream, resource):
    counts = sys.getrefcount(Event), sys.getrefcount(Buffer)
    for _ in range(50):
        device.create_event()
        resource.allocate(BYTES, stream=stream)
    assert counts == (sys.getrefcount(Event), sys.getrefcount(Buffer))


def makers(device, stream, resource):
    """Ways to create and close events and buffers."""
    yield device.create_event, lambda event: event.close()
    yield lambda: resource.allocate(BYTES, stream=stream), lambda buffer: buffer.close(stream)


def test_objects_are_distinct_and_leak_no_references(device, stream, resource):
    counts = sys.getrefcount(Event), sys.getrefcount(Buffer), sys.getrefcount(resource)
    for make, close in makers(device, stream, resource):
        for number in (1, 2, 40, 3, 100, 1):
            made = [make() for _ in range(number)]
            assert len({id(one) for one in made}) == len({int(one.handle) for one in made}) == number
            assert not any(one.is_closed for one in made)
            assert not any(gc.is_tracked(one) for one in made)
            assert len({sys.getrefcount(one) for one in made[:-1]}) <= 1
            for one in made[::-1]:
                close(one)
            assert all(one.is_closed and int(one.handle) == 0 for one in made)
            del one, made
    # They refer to the resource.
    del make, close
    assert counts == (sys.getrefcount(Event), sys.getrefcount(Buffer), sys.getrefcount(resource))


class Remembering(DeviceMemoryResource):
    """A resource with attributes, which may refer to its buffers."""


def test_buffers_in_possible_cycles_are_tracked(device, stream, resource):
    remembering = Remembering(device)
    for _ in range(3):
        for number in (1, 5, 40):
            of_both = [one.allocate(BYTES, stream=stream) for one in (resource, remembering) * number]
            assert [gc.is_tracked(one) for one in of_both] == [False, True] * number
            for one in of_both[number:] + of_both[:number]:
                one.close(stream)
            del one, of_both
    gc.collect()
    used = resource.attributes.used_mem_current
    for closed in (False, True, False):
        remembering = Remembering(device)
        remembering.kept = [remembering.allocate(BYTES, stream=stream) for _ in range(20)]
        watched = [weakref.ref(one) for one in (remembering, *remembering.kept)]
        if closed:
            for one in remembering.kept:
                one.close()
            del one
        del remembering
        gc.collect()
        assert not any(ref() for ref in watched)
    device.sync()
    assert resource.attributes.used_mem_current == used


def test_no_state_of_a_previous_object_remains(device, stream, resource):
    for make, close in makers(device, stream, resource):
        for _ in range(3):
            one = make()
            released = []
            watched = [weakref.ref(one), weakref.ref(one, released.append)]
            weakref.finalize(one, released.append, "finalized")
            close(one)
            del one
            assert [ref() for ref in watched] == [None, None]
            assert len(released) == 2 and watched[1] in released and "finalized" in released
            one = make()
            assert weakref.getweakrefcount(one) == 0 and not one.is_closed
            assert weakref.ref(one)() is one and watched[0]() is None
    timed = device.create_event(EventOptions(timing_enabled=True))
    stream.record(timed).sync()
    timed.close()
    del timed
    plain = device.create_event()
    assert flags(plain) == (False, False, False) and plain.is_done
    first = resource.allocate(BYTES, stream=stream)
    first.fill(1, stream=device.create_stream())
    first.set_deallocation_stream(device.create_stream())
    assert first.device_id == 0 and first.owner is None and first.__dlpack_device__()
    first.close()
    del first
    second = resource.allocate(2 * BYTES, stream=stream)
    assert second.size == 2 * BYTES and second.memory_resource is resource and second.owner is None
    owner = object()
    third = Buffer.from_handle(int(second.handle), BYTES, owner=owner)
    assert third.owner is owner and third.memory_resource is None and third.size == BYTES
    third.close()
    del third
    assert sys.getrefcount(owner) == 2
    assert resource.allocate(BYTES, stream=stream).owner is None


class OtherBuffer(Buffer):
    __slots__ = ()


class OtherEvent(Event):
    __slots__ = ()


def test_objects_with_a_changed_class_are_destroyed_as_that_class(device, stream, resource):
    """Objects can be assigned a class without additions, and back."""
    for (make, close), cls, base in zip(makers(device, stream, resource), (OtherEvent, OtherBuffer), (Event, Buffer)):
        count = sys.getrefcount(cls)
        for _ in range(3):
            closed, left, back = make(), make(), make()
            for one in (closed, left, back):
                one.__class__ = cls
                assert type(one) is cls and not one.is_closed
            assert sys.getrefcount(cls) == count + 3
            close(closed)
            back.__class__ = base
            close(back)
            del one, closed, left, back
            assert sys.getrefcount(cls) == count
            again = make()
            assert type(again) is base and not again.is_closed
            close(again)


def test_managed_buffers_are_destroyed_as_their_class(device, stream):
    try:
        managed = ManagedMemoryResource()
    except CUDAError as error:
        pytest.skip(str(error))
    for _ in range(3):
        one = managed.allocate(BYTES, stream=stream)
        assert type(one) is ManagedBuffer
        one.close(stream)
        del one
        assert type(managed.allocate(BYTES, stream=stream)) is ManagedBuffer


def test_objects_destroyed_in_other_threads_and_by_the_collector(device, stream, resource):
    used = resource.attributes.used_mem_current
    failed = []

    def work():
        try:
            device.set_current()
            mine = device.create_stream()
            for number in range(300):
                event, buffer = device.create_event(), resource.allocate(BYTES, stream=mine)
                assert not event.is_closed and not buffer.is_closed and buffer.size == BYTES
                if number % 2:
                    event.close()
                    buffer.close(mine)
                if number % 3 == 0:
                    cycle = [event, buffer]
                    cycle.append(cycle)
                    del cycle
            mine.sync()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    run_all(threads)
    assert not failed
    gc.collect()
    device.sync()
    assert resource.attributes.used_mem_current == used


def test_collection_during_allocation(device, stream, resource):
    """The collector visits objects as soon as they are allocated."""
    before = gc.get_threshold()
    gc.set_threshold(1)
    try:
        kept = []
        for number in range(200):
            event, buffer = device.create_event(), resource.allocate(BYTES, stream=stream)
            # Garbage that only the collector finds, with a buffer and an event.
            cycle = [device.create_event(), device.allocate(BYTES, stream=stream)]
            cycle.append(cycle)
            if number % 3:
                event.close()
                buffer.close(stream)
            kept.append((event, buffer))
        assert sum(event.is_closed for event, _ in kept) == sum(buffer.is_closed for _, buffer in kept) == 133
    finally:
        gc.set_threshold(*before)
        gc.collect()


def test_failures_do_not_leak(device, stream, resource):
    gc.collect()
    before = sys.getrefcount(resource), sys.getrefcount(stream), resource.attributes.used_mem_current
    for _ in range(10):
        with pytest.raises(CUDAError, match="OUT_OF_MEMORY|INVALID_VALUE"):
            resource.allocate(1 << 60, stream=stream)
        with pytest.raises(CUDAError, match="OUT_OF_MEMORY|INVALID_VALUE"):
            device.allocate(1 << 60, stream=stream)
    stream.sync()
    assert before == (sys.getrefcount(resource), sys.getrefcount(stream), resource.attributes.used_mem_current)
    resource.close()
    with pytest.raises(RuntimeError, match="closed"):
        resource.allocate(BYTES, stream=stream)


def test_threads_use_and_close_the_same_event(device, stream):
    """Each use succeeds or raises because the event is closed."""
    count, reported = 4, []
    barrier = threading.Barrier(count, timeout=60)
    events = []

    def work(number):
        device.set_current()
        mine = device.create_stream()
        for turn in range(60):
            if number == 0:
                events.append(device.create_event(EventOptions(timing_enabled=bool(turn % 2))))
            barrier.wait()
            event = events[turn]
            try:
                if number == turn % count:
                    event.close()
                elif number % 2:
                    mine.record(event)
                    event.sync()
                else:
                    assert event.is_timing_enabled == bool(turn % 2)
                    mine.wait(event)
            except RuntimeError as error:
                reported.append(str(error))
            barrier.wait()
        mine.sync()

    failed = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:
            barrier.abort()
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    run_all(threads)
    assert not failed
    assert all("closed" in text for text in reported)
    assert all(event.is_closed for event in events) and len(events) == 60


def test_threads_close_the_same_buffer(device, stream, resource):
    used = resource.attributes.used_mem_current
    count = 4
    barrier = threading.Barrier(count, timeout=60)
    buffers = [resource.allocate(BYTES, stream=stream) for _ in range(60)]
    failed = []

    def work(number):
        try:
            device.set_current()
            mine = device.create_stream()
            for buffer in buffers:
                barrier.wait()
                try:
                    buffer.fill(number, stream=mine)
                except RuntimeError as error:
                    assert "closed" in str(error)
                buffer.close(*([], [stream], [mine], [None])[number])
                assert buffer.is_closed
        except BaseException as error:
            barrier.abort()
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    run_all(threads)
    assert not failed
    device.sync()
    assert resource.attributes.used_mem_current == used


def test_resource_is_replaced_during_its_destruction(device):
    """Its destructor may set and request the device's resource."""
    former, seen = device.memory_resource, []

    class Ending(DeviceMemoryResource):
        def __del__(self):
            seen.append(device.memory_resource)
            device.memory_resource = former

    device.memory_resource = Ending(device)
    second = DeviceMemoryResource(device)
    device.memory_resource = second
    assert seen == [second] and device.memory_resource is former
