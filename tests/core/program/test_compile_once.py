"""Of the threads and processes that miss a program in a cache at once, one compiles."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import textwrap
import time
import uuid

import pytest
from cuda.core import Program, ProgramOptions
from cuda.core.utils import FileStreamProgramCache, InMemoryProgramCache, ProgramCacheResource

from helpers import redis_server
from helpers.programs import output, start
from helpers.threads import in_a_thread, in_threads

KERNEL = 'extern "C" __global__ void k(int *a) { *a = 1; }'

#: What every process of these tests defines. COUNT makes the compilation as slow as wanted.
COMMON = """
import os, sys, time
import cupyrite._leases
cupyrite._leases.LEASE_SECONDS = 3.0
from cuda.core import Program, ProgramOptions
from cuda.core.utils import FileStreamProgramCache
from cupyrite.program_caches import FsspecProgramCache, RedisProgramCache

KERNEL = 'extern "C" __global__ void k(int *a) { *a = 1; }'

def compile(cache, source=KERNEL):
    return Program(source, "c++", ProgramOptions(arch="sm_80")).compile("ptx", cache=cache).code

def file_cache(path, lock_timeout):
    cache = FileStreamProgramCache(path)
    cache.lock_timeout = lock_timeout
    return cache

def say(text):
    print(text, flush=True)
"""


@pytest.fixture(autouse=True)
def _nvrtc():
    from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

    try:
        load_nvidia_dynamic_lib("nvrtc")
    except DynamicLibNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def redis():
    with redis_server.running() as server:
        yield server


@pytest.fixture(params=["file", "redis", "fsspec"])
def shared(request, tmp_path):
    """A cache that processes share: the Python expression that creates it, with a hole for the timeout."""
    if request.param == "file":
        return f"file_cache({str(tmp_path / 'cache')!r}, lock_timeout=%s)"
    if request.param == "redis":
        server = request.getfixturevalue("redis")
        return f"RedisProgramCache({server.url!r}, prefix='{uuid.uuid4().hex}:', lock_timeout=%s)"
    pytest.importorskip("fsspec")
    return f"FsspecProgramCache('file://{tmp_path / 'cache'}', lock_timeout=%s)"


def compile_ptx(cache, source=KERNEL):
    return Program(source, "c++", ProgramOptions(arch="sm_80")).compile("ptx", cache=cache).code


# ---------------------------------------------------------------------------------------------------------
# Threads


@pytest.mark.parametrize("kind", ["memory", "file", "fsspec"])
def test_threads_compile_once(tmp_path, kind):
    if kind == "memory":
        cache = InMemoryProgramCache()
    elif kind == "file":
        cache = FileStreamProgramCache(tmp_path)
    else:
        pytest.importorskip("fsspec")
        from cupyrite.program_caches import FsspecProgramCache

        cache = FsspecProgramCache(f"memory://{uuid.uuid4().hex}")
    codes = []
    in_threads(16, lambda _: codes.append(compile_ptx(cache)))
    assert len(set(codes)) == 1
    assert (cache.hits, cache.misses) == (15, 1)
    in_threads(4, lambda number: compile_ptx(cache, KERNEL + f"// {number}"))
    assert (cache.hits, cache.misses, len(cache)) == (15, 5, 5)


def test_name_expressions_are_compiled_once():
    cache = InMemoryProgramCache()
    template = "template <typename T> __global__ void t(T *a) { *a = 1; }"

    def compile(_):
        program = Program(template, "c++", ProgramOptions(arch="sm_80"))
        assert program.compile("ptx", ("t<int>",), cache=cache).symbol_mapping == {"t<int>": b"_Z1tIiEvPT_"}

    in_threads(8, compile)
    # A hit reads two entries: the code and the names.
    assert (cache.hits, cache.misses, len(cache)) == (14, 1, 2)


def test_compile_errors_reach_all_threads():
    cache = InMemoryProgramCache()
    errors = []

    def compile(_):
        with pytest.raises(Exception, match="nonsense") as caught:
            compile_ptx(cache, "nonsense")
        errors.append(caught.value)

    in_threads(6, compile)
    assert len(errors) == 6 and (cache.hits, cache.misses, len(cache)) == (0, 6, 0)


class Recording(ProgramCacheResource):
    """A user's cache with a lock that records what happens."""

    def __init__(self):
        self.kept, self.log = {}, []

    def __getitem__(self, key):
        self.log.append("get")
        return self.kept[key]

    def __setitem__(self, key, value):
        self.log.append("set")
        self.kept[key] = bytes(value.code)

    def __delitem__(self, key):
        del self.kept[key]

    def __len__(self):
        return len(self.kept)

    def clear(self):
        self.kept.clear()

    @contextlib.contextmanager
    def compile_lock(self, key):
        assert type(key) is bytes and len(key) == 32
        self.log.append("enter")
        try:
            yield
        except BaseException as error:
            self.log.append(type(error).__name__)
            raise
        else:
            self.log.append("leave")


def test_the_lock_of_a_users_cache():
    cache = Recording()
    first = compile_ptx(cache)
    assert cache.log == ["get", "enter", "get", "set", "leave"]
    cache.log.clear()
    assert compile_ptx(cache) == first
    assert cache.log == ["get"]
    cache.log.clear()
    with pytest.raises(Exception, match="nonsense"):
        compile_ptx(cache, "nonsense")
    assert cache.log == ["get", "enter", "get", "NVRTCError"]

    class Stored(Recording):
        """Another process stores the program while this one waits for the lock."""

        def compile_lock(self, key):
            self.kept[key] = b"from another process"
            return super().compile_lock(key)

    cache = Stored()
    assert compile_ptx(cache) == b"from another process"
    assert cache.log == ["get", "enter", "get", "leave"]


def test_a_log_is_written_without_the_lock():
    cache = InMemoryProgramCache()
    cache.lock_timeout = 0
    source = 'extern "C" __global__ void k() { int unused; }'

    class Log:
        def write(self, text):
            assert "unused" in text
            assert compile_ptx(cache, source) and cache.hits == 1

    options = ProgramOptions(arch="sm_80")
    Program(source, "c++", options).compile("ptx", logs=Log(), cache=cache)
    assert (cache.hits, cache.misses) == (1, 1)


def test_failures_of_a_cache_do_not_fail_the_compilation():
    class Failing(Recording):
        def __init__(self, *failing):
            super().__init__()
            self.failing = failing

        def check(self, name):
            if name in self.failing:
                raise ConnectionResetError(104, f"{name} failed")

        def __getitem__(self, key):
            self.check("second get" if "enter" in self.log else "get")
            return super().__getitem__(key)

        def __setitem__(self, key, value):
            self.check("set")
            super().__setitem__(key, value)

        @contextlib.contextmanager
        def compile_lock(self, key):
            self.check("enter")
            with super().compile_lock(key):
                yield
            self.check("leave")

    expected = compile_ptx(None)
    for failing, log in {
        "get": [],
        "enter": ["get"],
        "second get": ["get", "enter", "leave"],
        "set": ["get", "enter", "get", "leave"],
        "leave": ["get", "enter", "get", "set", "leave"],
    }.items():
        cache = Failing(failing)
        with pytest.warns(RuntimeWarning, match=f"{failing} failed") as warnings:
            assert compile_ptx(cache) == expected
        assert len(warnings) == 1 and cache.log == log, failing
        assert warnings[0].filename == __file__

    class Wrong(Recording):
        def compile_lock(self, key):
            raise ZeroDivisionError("wrong")

    with pytest.raises(ZeroDivisionError):
        compile_ptx(Wrong())


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_lock_timeout(kind, tmp_path):
    cache = InMemoryProgramCache() if kind == "memory" else FileStreamProgramCache(tmp_path)
    assert cache.lock_timeout == 60
    for wrong in (-1, float("nan"), float("inf"), 1e300):
        with pytest.raises(ValueError, match="lock_timeout"):
            cache.lock_timeout = wrong
    for wrong in ("1", None, [1]):
        with pytest.raises(TypeError, match="lock_timeout"):
            cache.lock_timeout = wrong
    assert cache.lock_timeout == 60
    cache.lock_timeout = 0.3
    for wrong in (5, None, ("k",)):
        with pytest.raises(TypeError, match="key"):
            cache.compile_lock(wrong)

    def wait(key):
        began = time.monotonic()
        with cache.compile_lock(key):
            return time.monotonic() - began

    with cache.compile_lock("key") as entered:
        assert entered is None
        assert 0.3 <= in_a_thread(lambda: wait(b"key")) < 10
        assert in_a_thread(lambda: wait("other")) < 0.3
    lock = cache.compile_lock("key")
    for _ in range(2):
        with lock:
            pass
        assert wait("key") < 0.3


INTERRUPTED = """
import signal, sys, threading, time
from cuda.core.utils import FileStreamProgramCache, InMemoryProgramCache
cache = FileStreamProgramCache(sys.argv[1]) if sys.argv[1:] else InMemoryProgramCache()
held = threading.Event()
def hold():
    with cache.compile_lock("key"):
        held.set()
        time.sleep(60)
threading.Thread(target=hold, daemon=True).start()
held.wait()
threading.Timer(0.3, signal.raise_signal, [signal.SIGINT]).start()
began = time.monotonic()
try:
    with cache.compile_lock("key"):
        print("entered")
except KeyboardInterrupt:
    print("interrupted", time.monotonic() - began < 10)
"""


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_ctrl_c_ends_the_wait(kind, tmp_path):
    assert output(INTERRUPTED, *([tmp_path] if kind == "file" else [])) == "interrupted True\n"


FORKED = """
import os, sys, time
from cuda.core.utils import FileStreamProgramCache, InMemoryProgramCache
memory, file = InMemoryProgramCache(), FileStreamProgramCache(sys.argv[1])
began = time.monotonic()
with memory.compile_lock("key"), file.compile_lock("key"):
    child = os.fork()
    if child == 0:
        # The thread that would release the lock in memory exists in the parent only.
        with memory.compile_lock("key"):
            pass
        sys.stdin.readline()
        os._exit(0 if time.monotonic() - began < 30 else 1)
# The child still has the file open.
with FileStreamProgramCache(sys.argv[1]).compile_lock("key"):
    assert time.monotonic() - began < 30
print("entered", flush=True)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_does_not_keep_locks(tmp_path):
    process = start(FORKED, tmp_path, stdin=subprocess.PIPE)
    with process:
        assert process.stdout.readline() == "entered\n", process.stderr.read()
        process.communicate("go\n", timeout=60)
    assert process.returncode == 0


def test_unusable_lock_files(tmp_path):
    """The cache works, without locks."""
    (tmp_path / "locks").write_text("")
    cache = FileStreamProgramCache(tmp_path)
    in_threads(2, lambda _: compile_ptx(cache))
    assert cache.hits + cache.misses == 2 and len(cache) == 1


READ_ONLY = """
import os, sys, warnings
from cuda.core import Program, ProgramOptions
from cuda.core.utils import FileStreamProgramCache, InMemoryProgramCache
warnings.simplefilter("error")
def compile(source, cache):
    return Program(source, "c++", ProgramOptions(arch="sm_80")).compile("ptx", cache=cache)
# Loads the compiler, whose folder may be root's alone.
compile(sys.argv[2], InMemoryProgramCache())
if os.geteuid() == 0:
    os.seteuid(65534)
cache = FileStreamProgramCache(sys.argv[1])
compile(sys.argv[2], cache)
print(cache.hits, cache.misses)
try:
    compile(sys.argv[2] + "// other", cache)
except RuntimeWarning as warning:
    print("not stored" if "stored" in str(warning) else warning)
"""


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX permissions")
def test_read_only_folder():
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        root = pathlib.Path(folder, "cache")
        compile_ptx(FileStreamProgramCache(root))
        # As that of an older version.
        shutil.rmtree(root / "locks")
        paths = [root, *root.rglob("*")]
        for path in paths:
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            assert output(READ_ONLY, root, KERNEL) == "1 0\nnot stored\n"
        finally:
            for path in paths:
                path.chmod(0o755 if path.is_dir() else 0o644)


# ---------------------------------------------------------------------------------------------------------
# Processes

#: Starts children that have imported everything and begin at once. Prints the sums of their hits and misses.
STORM = """
count, source = int(sys.argv[1]), sys.argv[2]
go, release = os.pipe()
results, report = os.pipe()
children = []
# Imports what caches import, once for all children.
CACHE
for number in range(count):
    child = os.fork()
    if child:
        children.append(child)
        continue
    os.close(release)
    cache = CACHE
    os.read(go, 1)
    code = compile(cache, source)
    os.write(report, b"%d %d %d\\n" % (cache.hits, cache.misses, hash(code)))
    os._exit(0)
os.close(report)
time.sleep(0.2)
began = time.monotonic()
os.close(release)
with open(results) as lines:
    rows = [line.split() for line in lines]
seconds = time.monotonic() - began
assert all(os.waitpid(child, 0)[1] == 0 for child in children)
assert len(rows) == count and len({row[2] for row in rows}) == 1, rows
print(sum(int(row[0]) for row in rows), sum(int(row[1]) for row in rows), round(seconds, 2))
"""

#: Takes some tenths of a second, in which all others begin.
SLOW = """
template <int N> struct S { static __device__ int f(int x) { return x * N + S<N - 1>::f(x ^ N); } };
template <> struct S<0> { static __device__ int f(int x) { return x; } };
extern "C" __global__ void k(int *a) { *a = S<200>::f(*a); }
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_64_processes_compile_once(shared):
    storm = COMMON + STORM.replace("CACHE", shared % 60)
    hits, misses, _ = output(storm, 64, SLOW, environment={"PYTHONHASHSEED": "0"}).split()
    assert (int(hits), int(misses)) == (63, 1)
    hits, misses, _ = output(storm, 2, SLOW, environment={"PYTHONHASHSEED": "0"}).split()
    assert (int(hits), int(misses)) == (2, 0)


#: Compiles, and holds the lock until it reads a line.
HOLDER = """
class Holding(type(CACHE)):
    def __setitem__(self, key, value):
        say("compiled")
        sys.stdin.readline()
        super().__setitem__(key, value)

cache = CACHE
cache.__class__ = Holding
compile(cache)
say("stored")
"""

WAITER = """
class Waiting(type(CACHE)):
    def compile_lock(self, key):
        say("waits")
        return super().compile_lock(key)

cache = CACHE
cache.__class__ = Waiting
compile(cache)
say(f"{cache.hits} {cache.misses}")
"""


@contextlib.contextmanager
def holder_and_waiters(shared, timeout, count=2):
    """A process that has compiled and not yet stored, and others that wait for it."""
    processes = []

    def begin(code):
        text = COMMON + code.replace("CACHE", shared % timeout)
        processes.append(start(text, stdin=subprocess.PIPE))
        return processes[-1]

    def expect(process, line):
        assert process.stdout.readline() == line, process.stderr.read()

    try:
        holder = begin(HOLDER)
        expect(holder, "compiled\n")
        waiters = [begin(WAITER) for _ in range(count)]
        for waiter in waiters:
            expect(waiter, "waits\n")
        yield holder, waiters
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def test_waiters_find_what_the_holder_stores(shared):
    with holder_and_waiters(shared, 60) as (holder, waiters):
        # Longer than the lease: the holder renews it.
        time.sleep(4)
        assert all(waiter.poll() is None for waiter in waiters)
        holder.stdin.write("store\n")
        holder.stdin.flush()
        for waiter in waiters:
            out, err = waiter.communicate(timeout=30)
            assert out == "1 0\n", err
        assert holder.communicate(timeout=30)[0] == "stored\n"


def test_a_killed_holder_delays_others_only_briefly(shared):
    with holder_and_waiters(shared, 60) as (holder, waiters):
        began = time.monotonic()
        holder.kill()
        results = sorted(waiter.communicate(timeout=30)[0] for waiter in waiters)
        assert results == ["0 1\n", "1 0\n"]
        # Of a lease of 3 s, and on a busy machine.
        assert time.monotonic() - began < 20


def test_a_stopped_holder_blocks_until_the_timeout(shared):
    with holder_and_waiters(shared, 1, count=1) as (holder, [waiter]):
        began = time.monotonic()
        holder.send_signal(signal.SIGSTOP)
        assert waiter.communicate(timeout=30)[0] == "0 1\n"
        assert time.monotonic() - began < 20
        # What it stores later is an entry as well, and does no harm.
        holder.send_signal(signal.SIGCONT)
        holder.stdin.write("store\n")
        holder.stdin.flush()
        assert holder.communicate(timeout=30)[0] == "stored\n"
    assert output(COMMON + f"cache = {shared % 60}\ncompile(cache)\nprint(cache.hits, len(cache))") == "1 1\n"


def test_locks_are_released_after_errors(shared):
    code = """
        # Longer than the test.
        cupyrite._leases.LEASE_SECONDS = 60
        began = time.monotonic()
        cache = CACHE
        for _ in range(2):
            try:
                compile(cache, "nonsense")
            except Exception as error:
                assert "nonsense" in str(error), error
        for _ in range(2):
            with CACHE.compile_lock("key"):
                pass
        print(cache.misses, len(cache), time.monotonic() - began < 30)
    """
    text = COMMON + textwrap.dedent(code).replace("CACHE", shared % 60)
    assert output(text) == "2 0 True\n"
