"""Work in threads with a time limit; exceptions raised in a thread are raised in the caller."""

import faulthandler
import pathlib
import tempfile
import threading
import time

# Time limit in seconds for the threads of a test. Shorter than the limit of the test itself, which reports no stacks.
HANG = 45


def stacks():
    """The Python stacks of all threads, and the kernel's state of each."""
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file=file, all_threads=True)
        file.seek(0)
        lines = [file.read()]
    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    for task in sorted(pathlib.Path("/proc/self/task").glob("*"), key=lambda path: int(path.name)):
        try:
            # The name may contain anything; after it come the state and, later, the ticks in user and kernel mode.
            state, *fields = (task / "stat").read_text().rpartition(")")[2].split()
            wchan = (task / "wchan").read_text()
        except OSError:
            continue
        name = names.get(int(task.name), "not of Python")
        lines.append(f"task {task.name} ({name}): {state}, in {wchan}, ticks {fields[10]} + {fields[11]}")
    return "\n".join(lines)


def join_all(threads, errors=(), limit=HANG):
    """Waits for threads to end. If some do not, fails with every thread's stack and the errors of the others."""
    until = time.monotonic() + limit
    for thread in threads:
        thread.join(max(until - time.monotonic(), 0.01))
    hanging = [thread.name for thread in threads if thread.is_alive()]
    if hanging:
        first = stacks()
        # A second sample distinguishes running from waiting threads.
        time.sleep(1)
        reported = f"after {limit} s still running: {hanging}\nraised by others: {list(errors)}"
        raise AssertionError(f"{reported}\n{first}\n{stacks()}")


def run_all(threads, errors=(), limit=HANG):
    """Starts threads and waits for them as `join_all` does."""
    for thread in threads:
        # A hanging thread must not keep the process alive.
        thread.daemon = True
        thread.start()
    join_all(threads, errors, limit)


def in_threads(count, work, limit=HANG):
    """Runs `work(number)` in concurrent threads. Raises the first exception, with the others as notes."""
    errors = []
    start = threading.Barrier(count)

    def run(number):
        try:
            start.wait()
            work(number)
        except BaseException as error:
            errors.append(error)

    run_all([threading.Thread(target=run, args=(n,), name=f"number {n}") for n in range(count)], errors, limit)
    if errors:
        first, *others = errors
        for error in others:
            first.add_note(f"another thread raised {error!r}")
        raise first


def in_a_thread(work):
    """The result of `work()` in a new thread; raises what it raises."""
    answers = []
    in_threads(1, lambda _: answers.append(work()))
    return answers[0]
