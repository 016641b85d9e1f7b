"""Child processes that cannot outlive their test, and waits with a limit."""

import contextlib
import gc
import multiprocessing
import os
import time
import traceback

import numpy as np

# Time limit in seconds for each step of another process.
LIMIT = int(os.environ.get("CUPYRITE_TEST_LIMIT", "60"))


class Bounded:
    """A connection whose `recv` has a time limit."""

    def __init__(self, connection):
        self.connection = connection

    def send(self, value):
        self.connection.send(value)

    def poll(self, timeout=0):
        return self.connection.poll(timeout)

    def recv(self):
        if not self.connection.poll(LIMIT):
            raise TimeoutError(f"the other process sent nothing for {LIMIT} s")
        return self.connection.recv()

    def close(self):
        self.connection.close()


class Pipe:
    """This side's end of a pipe to another process; also transports exceptions raised there."""

    def __init__(self, connection):
        self.connection = Bounded(connection)
        # The expected exit status.
        self.expected = 0

    def send(self, value):
        self.connection.send(value)

    def receive(self):
        failed, value = self.connection.recv()
        assert not failed, value
        return value

    def ask(self, value):
        self.send(value)
        return self.receive()


class _There:
    """The child's end of the pipe."""

    def __init__(self, connection):
        self.connection = connection

    def send(self, value):
        self.connection.send((False, value))

    def receive(self):
        return self.connection.recv()


def _run(target, connection, arguments):
    try:
        target(_There(connection), *arguments)
    except BaseException:
        connection.send((True, traceback.format_exc()))
        raise


@contextlib.contextmanager
def process(target, *arguments, method="spawn"):
    """Runs `target(pipe, *arguments)` in another process; yields this side's end of the pipe.

    On exit the process must end with the status `pipe.expected`; it is killed if it does not end.
    """
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    other = context.Process(target=_run, args=(target, theirs, arguments), daemon=True)
    other.start()
    theirs.close()
    pipe = Pipe(ours)
    pipe.pid = other.pid
    try:
        yield pipe
        other.join(LIMIT)
        assert other.exitcode == pipe.expected
    finally:
        if other.exitcode is None:
            other.kill()
        other.join(LIMIT)
        other.close()
        ours.close()


def open_files():
    """(open descriptors, those of them that are shared memory) of this process."""
    gc.collect()

    def count():
        names = []
        for fd in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                names.append(os.readlink(f"/proc/self/fd/{fd}"))
        return len(names), sum("memfd:cupyrite-" in name for name in names)

    first = count()
    # Another thread may have a file open for a moment.
    time.sleep(0.02)
    return min(first, count())


def shared_files():
    """The number of open shared-memory descriptors of this process."""
    return open_files()[1]


def mappings():
    """The number of shared-memory mappings of this process."""
    with open("/proc/self/maps") as maps:
        return sum("memfd:cupyrite-" in line for line in maps)


def contents(buffer, stream):
    """The bytes of a buffer."""
    out = np.zeros(buffer.size, np.uint8)
    buffer.copy_to(out, stream=stream)
    stream.sync()
    return out


def outcome(use):
    """The value of a call, or the exception's name with the driver status that it carries."""
    try:
        return use()
    except Exception as error:
        text = str(error)
        status = text.split(":")[0] if text.startswith("CUDA_ERROR") else ""
        return " ".join(filter(None, (type(error).__name__, status)))
