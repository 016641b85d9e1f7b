"""Waits for conditions, with a deadline."""

import pathlib
import time

# Time limit of a wait in seconds.
LIMIT = 30


def until(condition, limit=LIMIT, pause=0.005):
    """Waits until `condition()` is true, and returns its value. Fails after `limit` seconds."""
    end = time.monotonic() + limit
    while not (value := condition()):
        assert time.monotonic() < end, f"after {limit} s still not: {condition}"
        time.sleep(pause)
    return value


def until_blocked(thread, process="self", limit=LIMIT, samples=5):
    """Waits until a thread waits in the kernel, or has ended. `thread` is its native id; that of a main thread is its process's.

    A thread that waits for a lock or a device is asleep in consecutive samples. A running one is asleep in a single sample at
    most, as while it reads a file.
    """
    file = pathlib.Path("/proc", str(process), "task", str(thread), "stat")
    asleep = 0
    end = time.monotonic() + limit
    while asleep < samples:
        try:
            # The name before may contain anything.
            state = file.read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        asleep = asleep + 1 if state == "S" else 0
        assert time.monotonic() < end, f"thread {thread} of process {process} still runs after {limit} s"
        time.sleep(0.01)
