"""The thread helpers report which thread failed or hangs."""

import threading

import pytest

from helpers.threads import in_threads, run_all


def test_hanging_threads_are_reported_with_stacks():
    go, raised = threading.Event(), [KeyError("other")]

    def waits_for_nothing():
        go.wait()

    thread = threading.Thread(target=waits_for_nothing, name="the one")
    try:
        with pytest.raises(AssertionError) as error:
            run_all([threading.Thread(target=int), thread], raised, limit=0.2)
    finally:
        go.set()
        thread.join()
    text = str(error.value)
    assert "still running: ['the one']" in text and "KeyError('other')" in text
    assert text.count("waits_for_nothing") >= 2 and f"task {thread.native_id} (the one): S" in text


def test_errors_of_all_threads_are_reported():
    def work(number):
        if number:
            raise [KeyError, ValueError][number - 1](number)

    with pytest.raises((KeyError, ValueError)) as error:
        in_threads(3, work)
    (note,) = error.value.__notes__
    assert {type(error.value).__name__, note.removeprefix("another thread raised ")[:-3]} == {"KeyError", "ValueError"}
