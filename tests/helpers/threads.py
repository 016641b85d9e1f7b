"""Work in threads: start, join with a limit, and raise here what a thread raised."""

import faulthandler
import pathlib
import tempfile
import threading
import time

# Seconds after which threads of a test count as hanging: less than any limit of the whole test, whose end shows nothing.
HANG = 45


def stacks():
    """The Python stacks of all threads, and what the system says that each of them does."""
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file=file, all_threads=True)
        file.seek(0)
        lines = [file.read()]
    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    for task in sorted(pathlib.Path("/proc/self/task").glob("*"), key=lambda path: int(path.name)):
        try:
            # After the name, which may hold anything: the state; later the ticks spent in the program and in the system.
            state, *fields = (task / "stat").read_text().rpartition(")")[2].split()
            wchan = (task / "wchan").read_text()
        except OSError:
            continue
        name = names.get(int(task.name), "not of Python")
        lines.append(f"task {task.name} ({name}): {state}, in {wchan}, ticks {fields[10]} + {fields[11]}")
    return "\n".join(lines)


def join_all(threads, errors=(), limit=HANG):
    """Waits until threads end. Where some do not, fails with every thread's stack, and with what the others raised."""
    until = time.monotonic() + limit
    for thread in threads:
        thread.join(max(until - time.monotonic(), 0.01))
    hanging = [thread.name for thread in threads if thread.is_alive()]
    if hanging:
        first = stacks()
        # A second look tells those that run from those that wait.
        time.sleep(1)
        told = f"after {limit} s still running: {hanging}\nraised by others: {list(errors)}"
        raise AssertionError(f"{told}\n{first}\n{stacks()}")


def run_all(threads, errors=(), limit=HANG):
    """Starts threads and waits until they end, as `join_all`."""
    for thread in threads:
        # One that hangs does not keep the process from ending.
        thread.daemon = True
        thread.start()
    join_all(threads, errors, limit)


def in_threads(count, work, limit=HANG):
    """Runs `work(number)` in threads at once. What they raise is raised here, the first with the others as notes."""
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
    """What `work()` returns in a thread of its own; what it raises is raised here."""
    answers = []
    in_threads(1, lambda _: answers.append(work()))
    return answers[0]
