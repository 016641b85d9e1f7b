"""`cuda.core.Stream`, the default streams, and the protocol `__cuda_stream__`."""

import copy
import gc
import pickle
import threading
import warnings
import weakref

import pytest
from cuda.bindings import driver, runtime
from cuda.core import (
    LEGACY_DEFAULT_STREAM,
    PER_THREAD_DEFAULT_STREAM,
    Device,
    Event,
    EventOptions,
    Stream,
    StreamOptions,
)
from cuda.core._stream import IsStreamType, Stream_accept, default_stream
from cuda.core._utils.cuda_utils import CUDAError

from helpers.device import check
from helpers.programs import output
from helpers.threads import join_all, run_all

pytestmark = pytest.mark.strict_abi


class Streamlike:
    """An object whose `__cuda_stream__` returns a given value."""

    def __init__(self, answer):
        self.answer = answer

    def __cuda_stream__(self):
        return self.answer


class TestCreation:
    def test_defaults(self, device, stream):
        assert type(stream) is Stream
        assert type(stream.handle) is driver.CUstream
        assert int(stream.handle) != 0
        assert stream.is_nonblocking is True
        assert stream.priority == 0
        assert stream.device is device
        assert stream.context == device.context
        assert stream.is_closed is False
        assert repr(stream) == f"<Stream handle={int(stream.handle):#x} context={int(device.context.handle):#x}>"

    @pytest.mark.parametrize("given", [None, {}, StreamOptions(), {"nonblocking": True}, {"priority": None}])
    def test_default_options(self, device, given):
        with device.create_stream(options=given) as made:
            assert made.is_nonblocking is True

    @pytest.mark.parametrize("blocking", [False, None, "", 0])
    def test_blocking_streams(self, device, blocking):
        with device.create_stream(options=StreamOptions(nonblocking=blocking)) as made:
            assert made.is_nonblocking is False

    def test_priorities(self, device):
        least, greatest = check(driver.cuCtxGetStreamPriorityRange())
        for priority in range(greatest, least + 1):
            with device.create_stream(options={"priority": priority}) as made:
                assert made.priority == priority
        for priority in (greatest - 1, least + 1, 100, -100):
            with pytest.raises(ValueError, match=f"is {priority}; this device has priorities from {greatest}"):
                device.create_stream(options=StreamOptions(priority=priority))

    @pytest.mark.parametrize(
        "given, error",
        [
            (3, TypeError),
            ("x", TypeError),
            (EventOptions(), TypeError),
            ({"foo": 1}, TypeError),
            ({"priority": "a"}, TypeError),
            ({"priority": 1.5}, TypeError),
            ({"priority": 1 << 40}, ValueError),
        ],
    )
    def test_invalid_options_raise(self, device, given, error):
        with pytest.raises(error):
            device.create_stream(options=given)
        with pytest.raises(error):
            Stream(options=given)

    def test_constructor(self, device):
        with Stream() as made:
            assert made.device is device
            made.sync()
        assert made.is_closed
        with Stream(options={"nonblocking": False}) as made:
            assert made.is_nonblocking is False
        for wrong in (1, "x"):
            with pytest.raises(TypeError):
                Stream(wrong)

    def test_constructor_without_a_current_context(self):
        def use():
            with Stream() as made:
                made.sync()
                assert made.device == Device(0)
            return int(check(driver.cuCtxGetCurrent()))

        outcome = []
        thread = threading.Thread(target=lambda: outcome.append(use()))
        run_all([thread])
        assert outcome == [0]

    def test_subclasses(self, device):
        class Mine(Stream):
            """Has an instance dictionary."""

        with Mine() as mine:
            mine.note = 3
            mine.sync()
            assert isinstance(mine, Stream)
            assert Stream_accept(mine) is mine


class TestObject:
    def test_equality(self, device, stream):
        again = Stream.from_handle(stream.handle)
        assert again == stream and hash(again) == hash(stream) and again is not stream
        with device.create_stream() as other:
            assert other != stream
        assert stream != int(stream.handle)
        assert stream != None  # noqa: E711
        with pytest.raises(TypeError):
            stream < stream

    def test_copying_and_pickling_raise(self, stream):
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError):
                copied(stream)

    def test_attributes_are_read_only(self, stream):
        for name in ("handle", "device", "priority", "nonsense"):
            with pytest.raises(AttributeError):
                setattr(stream, name, 1)

    def test_unreferenced_streams_are_destroyed(self, device):
        before = len(gc.get_objects())
        for _ in range(300):
            device.create_stream().record()
        gc.collect()
        assert len(gc.get_objects()) < before + 200
        made = device.create_stream()
        reference = weakref.ref(made)
        handle = int(made.handle)
        del made
        assert reference() is None
        if device.name.startswith("CPU"):
            # A GPU's driver may crash here: it does not validate handles.
            assert driver.cuStreamQuery(handle)[0] == driver.CUresult.CUDA_ERROR_INVALID_HANDLE


class TestClosed:
    def test_use_after_close_raises(self, device, stream):
        event = stream.record()
        stream.close()
        stream.close()
        assert stream.is_closed
        assert int(stream.handle) == 0
        assert hash(stream) == 0
        assert stream == stream
        assert "0x0" in repr(stream)
        other = device.create_stream()
        for use in (
            stream.sync,
            stream.record,
            lambda: stream.record(event),
            lambda: stream.wait(event),
            lambda: stream.wait(other),
            lambda: other.wait(stream),
            lambda: stream.priority,
            lambda: stream.is_nonblocking,
            lambda: stream.device,
            lambda: stream.context,
            stream.__cuda_stream__,
            lambda: device.create_stream(stream),
        ):
            with pytest.raises(RuntimeError, match="Stream was closed"):
                use()
        assert event.is_done is True
        event.sync()
        other.close()

    def test_close_while_threads_wait(self, device):
        """Threads that use the stream while it is closed get an error at worst."""
        for _ in range(20):
            stream = device.create_stream()
            ready = threading.Barrier(4)
            wrong = []

            def use(stream=stream, ready=ready, wrong=wrong):
                ready.wait()
                try:
                    while True:
                        stream.sync()
                        stream.record().sync()
                except RuntimeError as error:
                    if "was closed" not in str(error):
                        wrong.append(error)

            threads = [threading.Thread(target=use) for _ in range(3)]
            for thread in threads:
                thread.start()
            ready.wait()
            stream.close()
            join_all(threads, wrong)
            assert not wrong

    def test_with_statement_closes_after_exceptions(self, device):
        with pytest.raises(KeyError), device.create_stream() as stream:
            raise KeyError
        assert stream.is_closed


class TestWaiting:
    def test_wait_accepts_streams_and_events(self, device, stream):
        other = device.create_stream()
        event = other.record()
        assert stream.wait(event) is None
        assert stream.wait(event_or_stream=event) is None
        stream.wait(other)
        stream.wait(stream)
        stream.wait(LEGACY_DEFAULT_STREAM)
        stream.wait(Streamlike((0, int(other.handle))))
        stream.wait(other.handle)
        stream.wait(device.create_event())
        stream.sync()
        other.close()

    @pytest.mark.parametrize("wrong", [3, None, "x", object()])
    def test_wait_refuses_other_types(self, stream, wrong):
        with pytest.raises(ValueError, match="'event_or_stream'"):
            stream.wait(wrong)

    def test_record(self, stream):
        event = stream.record()
        assert type(event) is Event
        assert event.is_timing_enabled is False
        assert stream.record(event) is event
        assert stream.record(event, EventOptions(timing_enabled=True)) is event
        assert event.is_timing_enabled is False
        assert stream.record(None, {"timing_enabled": True}).is_timing_enabled is True
        assert stream.record(options=EventOptions(blocking_sync=True)).is_blocking_sync is True
        with pytest.raises(TypeError, match="'event'"):
            stream.record(3)
        for wrong in (3, {"foo": 1}, StreamOptions()):
            with pytest.raises(TypeError):
                stream.record(options=wrong)
        event.close()
        with pytest.raises(RuntimeError, match="Event was closed"):
            stream.record(event)
        with pytest.raises(RuntimeError, match="Event was closed"):
            stream.wait(event)

    def test_wait_orders_streams(self, device):
        """A copy in one stream sees the data that another one wrote before the event."""
        a, b = device.create_stream(), device.create_stream()
        size = 1 << 20
        memory = check(driver.cuMemAlloc(size))
        host = bytearray(size)
        for value in (1, 2, 3):
            check(driver.cuMemsetD8Async(memory, value, size, a.handle))
            b.wait(a)
            check(driver.cuMemcpyDtoHAsync(host, memory, size, b.handle))
            a.wait(b)
            b.sync()
            assert bytes(host) == bytes([value]) * size
        a.sync()
        check(driver.cuMemFree(memory))


class TestForeign:
    def test_from_handle(self, stream):
        for handle in (int(stream.handle), stream.handle):
            with Stream.from_handle(handle) as foreign:
                assert foreign == stream
                foreign.sync()
                assert foreign.device is stream.device
                assert foreign.is_nonblocking == stream.is_nonblocking
                assert foreign.priority == stream.priority
            assert foreign.is_closed
        Stream.from_handle(handle=int(stream.handle)).sync()
        stream.sync()

    @pytest.mark.parametrize(
        "handle, error",
        [(None, TypeError), ("x", TypeError), (1.0, TypeError), (-1, OverflowError), (1 << 64, OverflowError)],
    )
    def test_invalid_handles_raise(self, handle, error):
        with pytest.raises(error, match="Stream.from_handle"):
            Stream.from_handle(handle)

    def test_stream_object_is_not_a_handle(self, stream):
        with pytest.raises(TypeError, match="is a Stream"):
            Stream.from_handle(stream)

    def test_handle_destroyed_by_its_owner(self, device):
        raw = check(driver.cuStreamCreate(0))
        foreign = Stream.from_handle(raw)
        assert foreign.is_nonblocking is False
        check(driver.cuStreamDestroy(raw))
        if device.name.startswith("CPU"):
            # A GPU's driver may crash here, as above.
            assert "context=0x0" in repr(foreign)
            for use in (foreign.sync, lambda: foreign.priority, lambda: foreign.device, foreign.record):
                with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_HANDLE"):
                    use()

    def test_null_handle_is_the_default_stream(self, device):
        null = Stream.from_handle(0)
        null.sync()
        null.close()
        assert null.is_closed is False
        assert null.device is device


class TestProtocol:
    def test_our_streams_have_the_protocol(self, stream):
        assert stream.__cuda_stream__() == (0, int(stream.handle))

    def test_foreign_objects_with_the_protocol(self, device, stream):
        address = int(stream.handle)
        for answer in ((0, address), [0, address], (0, stream.handle), (False, address)):
            assert device.create_stream(Streamlike(answer)) == stream
            assert device.create_stream(obj=Streamlike(answer)) == stream
        assert device.create_stream(stream) == stream
        assert device.create_stream(driver.CUstream(address)) == stream
        assert device.create_stream(runtime.cudaStream_t(address)) == stream
        assert device.create_stream(Streamlike((0, 1))) == LEGACY_DEFAULT_STREAM
        assert device.create_stream(Streamlike((0, 2))) == PER_THREAD_DEFAULT_STREAM

    @pytest.mark.parametrize(
        "answer, error, says",
        [
            ((1, 5), RuntimeError, "version 1"),
            (("a", 5), RuntimeError, "version 'a'"),
            ((0,), RuntimeError, "1 values"),
            ((0, 1, 2), RuntimeError, "3 values"),
            (5, RuntimeError, "type int"),
            (None, RuntimeError, "type NoneType"),
            ("ab", RuntimeError, "type str"),
            ((0, "x"), TypeError, "type str"),
            ((0, None), TypeError, "type NoneType"),
            ((0, -1), OverflowError, "64 bits"),
        ],
    )
    def test_invalid_protocol_results_raise(self, device, answer, error, says):
        with pytest.raises(error, match=says):
            device.create_stream(Streamlike(answer))

    def test_exceptions_propagate(self, device):
        class Odd:
            def __cuda_stream__(self):
                raise KeyError("odd")

        with pytest.raises(KeyError, match="odd"):
            device.create_stream(Odd())

    def test_objects_without_the_protocol_raise(self, device):
        for wrong in (3, object(), "x"):
            with pytest.raises(TypeError, match="__cuda_stream__"):
                device.create_stream(wrong)

    def test_handle_and_object_together_raise(self, device, stream):
        with pytest.raises(ValueError, match="not both"):
            device.create_stream(stream, options=StreamOptions())

    def test_protocol_as_an_attribute_is_deprecated(self, device, stream):
        class Attribute:
            __cuda_stream__ = (0, int(stream.handle))

        with pytest.warns(DeprecationWarning, match="should be a method"):
            assert device.create_stream(Attribute()) == stream

    def test_object_is_kept_alive(self, device, stream):
        owner = Streamlike((0, int(stream.handle)))
        reference = weakref.ref(owner)
        foreign = device.create_stream(owner)
        del owner
        gc.collect()
        assert reference() is not None
        foreign.close()
        gc.collect()
        assert reference() is None

    def test_cycle_with_the_object_is_collected(self, device, stream):
        owner = Streamlike((0, int(stream.handle)))
        owner.mine = device.create_stream(owner)
        reference = weakref.ref(owner)
        del owner
        gc.collect()
        assert reference() is None

    def test_accepted_stream_arguments(self, stream):
        assert Stream_accept(stream) is stream
        for wrong in (None, 3, Streamlike((0, 1))):
            with pytest.raises(TypeError, match="expected a Stream"):
                Stream_accept(wrong)
        assert Stream_accept(Streamlike((0, 1)), allow_stream_protocol=True) == LEGACY_DEFAULT_STREAM
        assert Stream_accept(Streamlike((0, 1)), True) == LEGACY_DEFAULT_STREAM

    def test_protocol_class(self, stream):
        assert IsStreamType.__module__ == "cuda.core._stream"
        with pytest.raises(TypeError):
            isinstance(stream, IsStreamType)


class TestDefaultStreams:
    def test_default_stream_handles(self):
        assert int(LEGACY_DEFAULT_STREAM.handle) == 1
        assert int(PER_THREAD_DEFAULT_STREAM.handle) == 2
        assert LEGACY_DEFAULT_STREAM.__cuda_stream__() == (0, 1)
        assert LEGACY_DEFAULT_STREAM != PER_THREAD_DEFAULT_STREAM

    def test_default_streams_are_usable(self, device):
        for stream in (LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM):
            stream.sync()
            stream.record().sync()
            assert stream.device is device
            assert stream.context == device.context
            assert stream.is_nonblocking is False
            assert stream.priority == 0

    def test_closing_default_streams_has_no_effect(self, device):
        for stream in (LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM, device.default_stream):
            stream.close()
            assert stream.is_closed is False
            stream.sync()
            with stream:
                pass
            stream.sync()

    def test_environment_selects_the_default_stream(self, device):
        program = """
from cuda.core import Device, LEGACY_DEFAULT_STREAM, PER_THREAD_DEFAULT_STREAM
from cuda.core._stream import default_stream
assert default_stream() is Device().default_stream
print(default_stream() is PER_THREAD_DEFAULT_STREAM, default_stream() is LEGACY_DEFAULT_STREAM)
"""
        name = "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM"
        for value, text in ((None, "False True"), ("0", "False True"), ("1", "True False")):
            assert output(program, environment={name: value}).strip() == text, value
        assert default_stream() is device.default_stream

    def test_default_stream_without_a_context(self):
        def use():
            assert "Stream" in repr(LEGACY_DEFAULT_STREAM)
            with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_CONTEXT"):
                LEGACY_DEFAULT_STREAM.sync()
            with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_CONTEXT"):
                LEGACY_DEFAULT_STREAM.device
            return True

        outcome = []
        thread = threading.Thread(target=lambda: outcome.append(use()))
        run_all([thread])
        assert outcome == [True]


class TestOptions:
    def test_options_are_a_data_class(self):
        import dataclasses

        assert repr(StreamOptions()) == "StreamOptions(nonblocking=True, priority=None)"
        assert StreamOptions(False) == StreamOptions(nonblocking=False)
        assert StreamOptions(nonblocking="x").nonblocking is True
        assert dataclasses.asdict(StreamOptions()) == {"nonblocking": True, "priority": None}
        assert dataclasses.replace(StreamOptions(), priority=3).priority == 3
        assert pickle.loads(pickle.dumps(StreamOptions(priority=-1))) == StreamOptions(priority=-1)
        with pytest.raises(TypeError):
            hash(StreamOptions())
        with pytest.raises(TypeError, match="StreamOptions.priority"):
            StreamOptions(priority="x")
        with pytest.raises(TypeError):
            StreamOptions(foo=1)


def test_ordinary_use_does_not_warn(device):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with device.create_stream(options=StreamOptions()) as stream:
            stream.record(options=EventOptions(timing_enabled=True)).sync()
