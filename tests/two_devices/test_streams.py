"""Streams and events of two devices."""

import queue
import threading

import pytest
from cuda.bindings import driver
from cuda.core._utils.cuda_utils import CUDAError

from helpers.device import callback, check
from helpers.threads import in_threads
from helpers.two_devices import after, both_orders, held


@both_orders
@pytest.mark.parametrize("memory", [0, 1])
@pytest.mark.parametrize("by", ["event", "stream"])
def test_a_stream_waits_for_work_of_the_other_device(devices, streams, words, step, order, memory, by):
    first, second = (streams[n] for n in order)
    word = words(memory, 1)
    for device in devices:
        device.set_current()
        word.set(1)
        step(first, word, 3, 1, 10_000)
        event = first.record()
        second.wait(event if by == "event" else first)
        step(second, word, 5, 2)
        second.sync()
        assert event.is_done
        assert word.get() == [after(1, (3, 1), (5, 2))]


@both_orders
def test_events_are_queried_and_awaited_with_either_device_current(devices, streams, order):
    first, second = (streams[n] for n in order)
    with held(first) as go:
        event = first.record()
        second.wait(event)
        later = second.record()
        for device in devices:
            device.set_current()
            assert not event.is_done and not later.is_done
            assert (event.device, later.device) == (first.device, second.device)
            assert (event.context, later.context) == (first.context, second.context)
        threading.Timer(0.05, go.set).start()
        later.sync()
        assert go.is_set()
    for device in devices:
        device.set_current()
        for one in (event, later):
            one.sync()
            assert one.is_done


@both_orders
def test_a_wait_is_for_the_record_before_it(streams, words, step, order):
    """Later records of the event do not change it."""
    first, second = (streams[n] for n in order)
    word = words(order[1], 1)
    event = first.record()
    second.wait(event)
    with held(first):
        assert first.record(event) is event
        step(second, word, 3, 1)
        second.sync()
        assert not event.is_done
    first.sync()
    assert event.is_done
    assert word.get() == [after(1, (3, 1))]


def test_waiting_for_an_event_that_was_never_recorded_has_no_effect(devices, streams, words, step):
    word = words(1, 1)
    streams[1].wait(devices[0].create_event())
    step(streams[1], word, 3, 1)
    streams[1].sync()
    assert word.get() == [after(1, (3, 1))]


@pytest.mark.parametrize("memory", [0, 1])
@pytest.mark.parametrize("events", ["new", "reused"])
def test_a_ring_of_waits_orders_both_devices(devices, streams, words, step, memory, events):
    """The steps do not commute."""
    word, steps, event = words(memory, 1), [], None
    reused = [device.create_event() for device in devices] if events == "reused" else (None, None)
    for hop in range(120):
        devices[hop // 3 % 2].set_current()
        stream = streams[hop % 2]
        if event is not None:
            stream.wait(event)
        steps.append((2 * hop + 3, hop))
        step(stream, word, *steps[-1], microseconds=hop % 5 * 100)
        event = stream.record(reused[hop % 2])
    event.sync()
    assert word.get() == [after(1, *steps)]


def test_threads_with_one_device_each_hand_over_by_events(devices, streams, words, step):
    word = words(0, 1)
    steps = [(2 * hop + 3, hop) for hop in range(60)]
    inbox = [queue.Queue(), queue.Queue()]
    inbox[0].put(devices[1].create_event())

    def work(number):
        devices[number].set_current()
        for hop in range(number, len(steps), 2):
            streams[number].wait(inbox[number].get(timeout=30))
            step(streams[number], word, *steps[hop], microseconds=200)
            inbox[1 - number].put(streams[number].record())

    in_threads(2, work)
    for stream in streams:
        stream.sync()
    assert word.get() == [after(1, *steps)]


def test_elapsed_time_is_of_one_device(devices, streams, words, step):
    word = words(1, 1)
    timed = {"timing_enabled": True}
    zero = streams[0].record(options=timed)
    first = streams[1].record(options=timed)
    step(streams[1], word, 3, 1, 5000)
    last = streams[1].record(options=timed)
    for event in (zero, first, last):
        event.sync()
    for device in devices:
        device.set_current()
        assert last - first >= 4
        for a, b in ((zero, first), (first, zero)):
            with pytest.raises((RuntimeError, CUDAError), match="context"):
                a - b


@both_orders
@pytest.mark.parametrize("options", [None, {"timing_enabled": True}])
def test_an_event_is_not_recorded_in_a_stream_of_the_other_device(devices, streams, words, step, order, options):
    owner, other = order
    event = devices[owner].create_event(options)
    word = words(other, 1)
    for device in devices:
        device.set_current()
        with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_HANDLE"):
            streams[other].record(event)
    assert event.is_done and event.device == devices[owner]
    step(streams[other], word, 3, 1)
    streams[other].sync()
    assert word.get() == [after(1, (3, 1))]
    assert streams[owner].record(event) is event
    streams[other].wait(event)
    streams[other].sync()


@both_orders
def test_streams_and_events_are_closed_while_the_other_device_is_current(devices, words, step, order):
    """Queued work completes, and waits for closed events remain."""
    first, second = (devices[n].create_stream() for n in order)
    word = words(order[0], 1)
    for device in devices:
        device.set_current()
        word.set(1)
        a, b = (devices[n].create_stream() for n in order)
        step(a, word, 3, 1, 5000)
        event = a.record()
        b.wait(event)
        event.close()
        a.close()
        step(b, word, 5, 2, 1000)
        last = b.record()
        b.close()
        assert a.is_closed and b.is_closed and event.is_closed
        for stream in (first, second):
            stream.wait(last)
        last.close()
        step(first, word, 7, 3)
        first.sync()
        second.sync()
        assert word.get() == [after(1, (3, 1), (5, 2), (7, 3))]
    first.close()
    second.close()


@both_orders
def test_host_functions_run_in_the_order_of_waits(devices, streams, words, step, order):
    first, second = (streams[n] for n in order)
    word, called, kept = words(0, 1), [], []

    def append(stream, value):
        function, address = callback(lambda _: called.append(value))
        kept.append(function)
        check(driver.cuLaunchHostFunc(stream.handle, driver.CUhostFn(address), 0))

    for turn in range(5):
        devices[turn % 2].set_current()
        step(first, word, 3, 1, 2000)
        append(first, 2 * turn)
        second.wait(first)
        append(second, 2 * turn + 1)
        first.wait(second)
    first.sync()
    assert called == list(range(10))
