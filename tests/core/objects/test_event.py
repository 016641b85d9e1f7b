"""`cuda.core.Event`: waiting, timing, closing, and events of other processes."""

import copy
import ctypes
import gc
import pickle
import threading
import time
import warnings
import weakref

import pytest
from cuda.bindings import driver
from cuda.core import LEGACY_DEFAULT_STREAM, Event, EventOptions, StreamOptions
from cuda.core._event import IPCEventDescriptor
from cuda.core._utils.cuda_utils import CUDAError

from helpers.device import check, on_cpu_device
from helpers.programs import python
from helpers.threads import join_all

pytestmark = pytest.mark.strict_abi

TIMED = EventOptions(timing_enabled=True)


KEPT = []


def hold(stream, go):
    """Queues a host function that waits for the event `go`."""
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: go.wait(30))
    KEPT.append(function)
    address = ctypes.cast(function, ctypes.c_void_p).value
    check(driver.cuLaunchHostFunc(stream.handle, driver.CUhostFn(address), 0))


class TestObject:
    def test_defaults(self, device):
        event = device.create_event()
        assert type(event) is Event
        assert type(event.handle) is driver.CUevent
        assert (event.is_timing_enabled, event.is_blocking_sync, event.is_ipc_enabled, event.is_closed) == (False,) * 4
        assert event.is_done is True
        event.sync()
        assert event.device is device
        assert event.context == device.context
        assert repr(event) == f"<Event handle={int(event.handle):#x}>"
        assert hash(event) == int(event.handle)

    @pytest.mark.parametrize("given", [None, {}, EventOptions(), {"timing_enabled": None}])
    def test_default_options(self, device, given):
        assert device.create_event(given).is_timing_enabled is False
        assert device.create_event(options=given).is_timing_enabled is False

    def test_options(self, device):
        assert device.create_event({"timing_enabled": True}).is_timing_enabled is True
        assert device.create_event(EventOptions(blocking_sync=True)).is_blocking_sync is True

    @pytest.mark.parametrize("wrong", [3, "x", StreamOptions(), {"foo": 1}, {"timing_enabled": "x"}, [True]])
    def test_invalid_options_raise(self, device, wrong):
        with pytest.raises(TypeError):
            device.create_event(wrong)

    def test_invalid_option_assignments_raise(self, device):
        options = EventOptions()
        options.timing_enabled = "x"
        with pytest.raises(TypeError, match="EventOptions.timing_enabled is 'x'"):
            device.create_event(options)

    def test_direct_construction_raises(self):
        for arguments in ((), (1,), (1, 2)):
            with pytest.raises(RuntimeError, match=r"Stream\.record"):
                Event(*arguments)

    def test_equality(self, device):
        a, b = device.create_event(), device.create_event()
        assert a == a and a != b and a != 3 and a != None and hash(a) != hash(b)  # noqa: E711
        with pytest.raises(TypeError):
            a < b

    def test_copying_and_pickling_raise(self, device):
        event = device.create_event()
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError):
                copied(event)

    def test_attributes_are_read_only(self, device):
        event = device.create_event()
        for name in ("handle", "is_done", "nonsense"):
            with pytest.raises(AttributeError):
                setattr(event, name, 1)

    def test_unreferenced_events_are_destroyed(self, device):
        event = device.create_event()
        reference = weakref.ref(event)
        handle = int(event.handle)
        del event
        assert reference() is None
        if device.name.startswith("CPU"):
            assert driver.cuEventQuery(handle)[0] == driver.CUresult.CUDA_ERROR_INVALID_HANDLE

    def test_many_events(self, device):
        events = [device.create_event() for _ in range(2000)]
        assert len(set(events)) == 2000
        del events
        gc.collect()


class TestClosed:
    def test_use_after_close_raises(self, device, stream):
        event, other = stream.record(options=TIMED), stream.record(options=TIMED)
        event.close()
        event.close()
        assert event.is_closed is True
        assert int(event.handle) == 0
        assert hash(event) == 0
        assert repr(event) == "<Event handle=0x0>"
        assert event == event and event != other
        for use in (
            event.sync,
            lambda: event.is_done,
            lambda: event.device,
            lambda: event.context,
            lambda: event.is_timing_enabled,
            lambda: event.is_blocking_sync,
            lambda: event.is_ipc_enabled,
            lambda: event.ipc_descriptor,
            lambda: event - other,
            lambda: other - event,
            lambda: stream.record(event),
            lambda: stream.wait(event),
        ):
            with pytest.raises(RuntimeError, match="Event was closed"):
                use()

    def test_event_outlives_its_stream(self, device):
        stream = device.create_stream()
        event = stream.record()
        stream.close()
        del stream
        event.sync()
        assert event.is_done is True
        assert event.device is device

    def test_close_while_threads_use_it(self, device, stream):
        for _ in range(50):
            event = stream.record()
            ready = threading.Barrier(4)
            wrong = []

            def use(event=event, ready=ready, wrong=wrong):
                ready.wait()
                try:
                    while True:
                        event.sync()
                        stream.wait(event)
                except RuntimeError as error:
                    if "was closed" not in str(error):
                        wrong.append(error)

            threads = [threading.Thread(target=use) for _ in range(3)]
            for thread in threads:
                thread.start()
            ready.wait()
            event.close()
            join_all(threads, wrong)
            assert not wrong


class TestTiming:
    def test_elapsed_time(self, device, stream):
        start = stream.record(options=TIMED)
        memory = check(driver.cuMemAlloc(1 << 22))
        check(driver.cuMemsetD8Async(memory, 1, 1 << 22, stream.handle))
        end = stream.record(options=TIMED)
        end.sync()
        elapsed = end - start
        assert type(elapsed) is float
        assert 0 <= elapsed < 60_000
        assert start - start == 0.0
        assert (start - end) <= 0
        check(driver.cuMemFree(memory))

    def test_elapsed_time_in_the_default_stream(self, device):
        a, b = (LEGACY_DEFAULT_STREAM.record(options=TIMED) for _ in range(2))
        b.sync()
        assert b - a >= 0

    def test_augmented_subtraction(self, device, stream):
        a, b = stream.record(options=TIMED), stream.record(options=TIMED)
        b.sync()
        b -= a
        assert type(b) is float

    def test_elapsed_time_requires_timing(self, device, stream):
        timed, plain = stream.record(options=TIMED), stream.record()
        stream.sync()
        with pytest.raises(RuntimeError, match="the later event was made without timing.*timing_enabled=True"):
            plain - timed
        with pytest.raises(RuntimeError, match="the earlier event was made without timing.*timing_enabled=True"):
            timed - plain

    def test_elapsed_time_requires_recorded_events(self, device, stream):
        recorded, fresh = stream.record(options=TIMED), device.create_event(TIMED)
        stream.sync()
        for pair in ((recorded, fresh), (fresh, recorded)):
            with pytest.raises(RuntimeError, match="never recorded"):
                pair[0] - pair[1]

    @pytest.mark.cpu
    def test_elapsed_time_requires_completed_events(self, device, stream):
        """A host function blocks the stream, so that the second event cannot complete."""
        go = threading.Event()
        start = stream.record(options=TIMED)
        stream.sync()
        hold(stream, go)
        end = stream.record(options=TIMED)
        try:
            assert end.is_done is False
            with pytest.raises(RuntimeError, match="the later event is not done"):
                end - start
            with pytest.raises(RuntimeError, match="the earlier event is not done"):
                start - end
        finally:
            go.set()
        end.sync()
        assert end.is_done is True
        assert end - start >= 0

    @pytest.mark.parametrize("other", [3, None, "x", 1.0])
    def test_subtracting_other_types_raises(self, stream, other):
        event = stream.record(options=TIMED)
        with pytest.raises(TypeError):
            event - other
        with pytest.raises(TypeError):
            other - event


class TestWaitingLetsOthersRun:
    @pytest.mark.cpu
    def test_sync_releases_the_gil(self, device, stream):
        go = threading.Event()
        hold(stream, go)
        event = stream.record()
        threading.Timer(0.05, go.set).start()
        began = time.monotonic()
        event.sync()
        assert time.monotonic() - began < 25
        assert event.is_done is True


class TestOptions:
    def test_options_are_a_data_class(self):
        import dataclasses
        import inspect

        assert repr(EventOptions()) == "EventOptions(timing_enabled=False, blocking_sync=False, ipc_enabled=False)"
        assert EventOptions(True, True, True) == EventOptions(timing_enabled=True, blocking_sync=True, ipc_enabled=True)
        assert dataclasses.replace(EventOptions(), timing_enabled=True).timing_enabled is True
        assert pickle.loads(pickle.dumps(TIMED)) == TIMED
        assert list(inspect.signature(EventOptions).parameters) == ["timing_enabled", "blocking_sync", "ipc_enabled"]
        for wrong in ("x", 1, []):
            with pytest.raises(TypeError, match="EventOptions.timing_enabled"):
                EventOptions(timing_enabled=wrong)
        with pytest.raises(TypeError):
            EventOptions(foo=1)
        with pytest.raises(TypeError):
            hash(EventOptions())

    @pytest.mark.parametrize(
        "former, name",
        [
            ("enable_timing", "timing_enabled"),
            ("busy_waited_sync", "blocking_sync"),
            ("support_ipc", "ipc_enabled"),
        ],
    )
    def test_former_option_names(self, former, name):
        with pytest.warns(DeprecationWarning, match=f"{former}.*{name}") as caught:
            options = EventOptions(**{former: True})
        assert caught[0].filename == __file__
        assert options == EventOptions(**{name: True})
        with pytest.raises(TypeError, match="not both"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            EventOptions(**{former: True, name: True})

    def test_former_attribute_names(self, device):
        event = device.create_event({"blocking_sync": True})
        with pytest.warns(DeprecationWarning, match="is_blocking_sync"):
            assert event.is_sync_busy_waited is True


class TestOtherProcesses:
    def test_ipc_excludes_timing(self, device, stream):
        both = EventOptions(ipc_enabled=True, timing_enabled=True)
        for make in (lambda: device.create_event(both), lambda: stream.record(options=both)):
            with pytest.raises(TypeError, match="ipc_enabled"):
                make()

    def test_event_without_ipc_has_no_descriptor(self, device):
        event = device.create_event()
        with pytest.raises(RuntimeError, match="ipc_enabled"):
            event.ipc_descriptor
        with pytest.warns(DeprecationWarning), pytest.raises(RuntimeError, match="ipc_enabled"):
            event.get_ipc_descriptor()

    def test_descriptors(self):
        with pytest.raises(RuntimeError, match=r"Event\.ipc_descriptor"):
            IPCEventDescriptor()
        with pytest.raises(TypeError, match="IPCEventDescriptor"):
            Event.from_ipc_descriptor(3)
        made = IPCEventDescriptor._restore(bytes(range(64)), True)
        again = pickle.loads(pickle.dumps(made))
        assert again == made and made != 3
        assert made != IPCEventDescriptor._restore(bytes(64), True)
        with pytest.raises(TypeError):
            hash(made)
        with pytest.raises(ValueError, match="64 bytes"):
            IPCEventDescriptor._restore(b"123", False)

    def test_invalid_descriptors_are_refused(self, device):
        if device.properties.ipc_event_supported and not on_cpu_device():
            pytest.skip("a driver need not validate descriptors")
        with pytest.raises(RuntimeError, match="CUDA_ERROR"):
            Event.from_ipc_descriptor(IPCEventDescriptor._restore(bytes(64), False))

    def test_between_processes(self, device, stream):
        options = EventOptions(ipc_enabled=True)
        if not device.properties.ipc_event_supported:
            try:
                event = stream.record(options=options)
            except CUDAError as error:
                assert "CUDA_ERROR_NOT_SUPPORTED" in str(error)
            else:
                with pytest.raises(CUDAError, match="CUDA_ERROR_NOT_SUPPORTED"):
                    event.ipc_descriptor
            return
        event = stream.record(options=options)
        assert event.is_ipc_enabled is True
        program = (
            "import pickle, sys\n"
            "from cuda.core import Device, Event\n"
            "Device(0).set_current()\n"
            "event = Event.from_ipc_descriptor(pickle.load(sys.stdin.buffer))\n"
            "event.sync()\n"
            "print(event.is_done, event.is_ipc_enabled)\n"
        )
        done = python(program, input=pickle.dumps(event.ipc_descriptor), text=False)
        assert done.stdout.decode().split() == ["True", "True"], done.stderr.decode()


def test_other_classes_may_define_the_difference(device, stream):
    class Other:
        def __sub__(self, other):
            return "left"

        def __rsub__(self, other):
            return "right"

    first = stream.record(options=TIMED)
    event = stream.record(options=TIMED)
    stream.sync()
    assert (event - Other(), Other() - event) == ("right", "left")
    changed = event
    changed -= Other()
    assert changed == "right"
    for wrong in (1, None, "x"):
        with pytest.raises(TypeError, match="unsupported operand"):
            event - wrong
        with pytest.raises(TypeError, match="unsupported operand"):
            event -= wrong
    event -= first
    assert isinstance(event, float)
