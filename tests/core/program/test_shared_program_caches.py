"""`cupyrite.program_caches`: caches on a Redis server, and in storages that fsspec supports."""

import os
import pickle
import shutil
import subprocess
import time
import uuid

import pytest
from cuda.core import ObjectCode, Program, ProgramOptions
from cuda.core.utils import FileStreamProgramCache, ProgramCacheResource

from helpers import redis_server
from helpers.programs import output, start
from helpers.threads import in_threads

KERNEL = 'extern "C" __global__ void k(int *a) { *a = 1; }'


@pytest.fixture(scope="module")
def server():
    with redis_server.running() as server:
        yield server


@pytest.fixture
def prefix():
    return f"test {uuid.uuid4().hex}:"


@pytest.fixture
def redis_caches(server):
    from cupyrite.program_caches import RedisProgramCache

    return lambda prefix, **options: RedisProgramCache(server.url, prefix=prefix, **options)


@pytest.fixture
def fsspec_caches():
    pytest.importorskip("fsspec")
    from cupyrite.program_caches import FsspecProgramCache

    return FsspecProgramCache


@pytest.fixture(params=["redis", "local", "memory"])
def open_cache(request, tmp_path, prefix):
    """Opens the same storage each time, or another with a name."""
    if request.param == "redis":
        create = request.getfixturevalue("redis_caches")
        return lambda name="", **options: create(prefix + name, **options)
    create = request.getfixturevalue("fsspec_caches")
    root = f"file://{tmp_path}/cache" if request.param == "local" else f"memory://{prefix[5:-1]}"
    return lambda name="", **options: create(root + name, **options)


def compile_ptx(cache, source=KERNEL):
    try:
        program = Program(source, "c++", ProgramOptions(arch="sm_80"))
    except Exception as error:
        pytest.skip(f"needs NVRTC: {error}")
    return program.compile("ptx", cache=cache).code


# ---------------------------------------------------------------------------------------------------------
# All caches


def test_a_cache_can_be_sent_to_another_process(open_cache):
    cache = open_cache(lock_timeout=5)
    cache["key"] = b"code"
    arrived = pickle.loads(pickle.dumps(cache))
    assert type(arrived) is type(cache) and arrived["key"] == b"code"
    assert arrived._lock_timeout == 5 and arrived.hits == 1


def test_a_cache_of_a_redis_client_is_not_pickled(server):
    redis = pytest.importorskip("redis")
    from cupyrite.program_caches import RedisProgramCache

    with pytest.raises(TypeError, match="create it from a URL"):
        pickle.dumps(RedisProgramCache(redis.Redis.from_url(server.url)))


def test_mapping_interface(open_cache, tmp_path):
    cache = open_cache()
    assert isinstance(cache, ProgramCacheResource) and len(cache) == 0
    cache["k"] = b"abc"
    assert cache["k"] == cache[b"k"] == cache[bytearray(b"k")] == open_cache()["k"] == b"abc" and len(cache) == 1
    cache["view"] = memoryview(b"abcdef")[::2]
    cache["code"] = ObjectCode.from_cubin(b"\x7fELF bytes")
    assert (cache["view"], cache["code"]) == (b"ace", b"\x7fELF bytes")
    path = tmp_path / "f.cubin"
    path.write_bytes(b"in a file")
    cache["path"] = ObjectCode.from_cubin(str(path))
    assert cache["path"] == b"in a file"
    cache["k"] = b"new"
    assert cache["k"] == b"new" and len(cache) == 4
    del cache["k"]
    with pytest.raises(KeyError):
        del cache["k"]
    with pytest.raises(KeyError, match="k"):
        cache["k"]
    assert cache.get("k") is None and cache.get("k", b"default") == b"default"
    cache.update({"a": b"1", "b": b"2"})
    with cache as same:
        assert same is cache
    cache.clear()
    assert len(cache) == len(open_cache()) == 0 and cache.get("a") is None
    cache.clear()


def test_keys_and_values_are_any_bytes(open_cache):
    cache = open_cache()
    keys = [b"", b"\0", b"/", b"..", b"../../x", b"*?[a-z]\\", bytes(range(256)), b"\xff\xfe", b"k" * 100_000, b"\r\n"]
    for number, key in enumerate(keys):
        cache[key] = bytes([number]) * number
    cache["\N{SNOWMAN}"] = b"snowman"
    assert [cache[key] for key in keys] == [bytes([number]) * number for number in range(len(keys))]
    assert cache["\N{SNOWMAN}".encode()] == b"snowman" and len(cache) == len(keys) + 1
    large = os.urandom(5 << 20)
    cache["large"] = large
    assert cache["large"] == large


def test_invalid_arguments_raise(open_cache):
    cache = open_cache()
    for key in (5, None, ("k",), memoryview(b"k")):
        for use in (cache.__getitem__, cache.get, cache.__delitem__, cache.compile_lock):
            with pytest.raises(TypeError, match="key"):
                use(key)
        with pytest.raises(TypeError, match="key"):
            cache[key] = b"x"
    for value in ("text", 5, None, [1]):
        with pytest.raises(TypeError, match="value"):
            cache["k"] = value
    with pytest.raises(TypeError):
        "k" in cache
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="lock_timeout"):
            open_cache(lock_timeout=wrong)
    with pytest.raises(TypeError, match="lock_timeout"):
        open_cache(lock_timeout=None)
    assert len(cache) == 0


def test_lookups_are_counted(open_cache):
    cache = open_cache()
    cache["k"] = b"x"
    cache["k"], cache.get("k"), cache.get("other")
    with pytest.raises(KeyError):
        cache["other"]
    assert (cache.hits, cache.misses) == (2, 2)
    in_threads(8, lambda _: [cache.get("k") for _ in range(20)])
    assert (cache.hits, cache.misses) == (162, 2)


def test_caches_with_other_names_are_independent(open_cache):
    names = ["", "a", "a*", "[a]", "a?", "a\\", "lock:", "a:b:", "^x-z"]
    caches = [open_cache(name) for name in names]
    for name, cache in zip(names, caches):
        cache["key"] = name.encode()
    assert [cache["key"] for cache in caches] == [name.encode() for name in names]
    assert [len(cache) for cache in caches] == [1] * len(names)
    for number, cache in enumerate(caches):
        with cache.compile_lock("another key"):
            cache.clear()
            assert len(cache) == 0
        assert [len(other) for other in caches] == [0] * (number + 1) + [1] * (len(names) - number - 1)


def test_compilations_are_stored(open_cache):
    cache = open_cache()
    first = compile_ptx(cache)
    assert (cache.hits, cache.misses, len(cache)) == (0, 1, 1)
    again = open_cache()
    assert compile_ptx(again) == first and (again.hits, again.misses) == (1, 0)


def test_the_lock_excludes_other_caches_of_the_storage(open_cache):
    first, second = open_cache(), open_cache(lock_timeout=0.4)

    def wait(key):
        began = time.monotonic()
        with second.compile_lock(key):
            return time.monotonic() - began

    with first.compile_lock("key"):
        assert 0.4 <= wait("key") < 10
        assert wait("other") < 0.4
        # It ends as soon as there is an entry.
        second["key"] = b"code"
        assert wait("key") < 0.4
        del second["key"]
    assert wait("key") < 0.4
    lock = second.compile_lock("key")
    for _ in range(2):
        with lock:
            pass


RACE = """
import random, sys
from cupyrite.program_caches import FsspecProgramCache, RedisProgramCache
choose = random.Random(int(sys.argv[2]))
cache = eval(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for turn in range(250):
    key = f"key {choose.randrange(12)}"
    what = choose.randrange(10)
    if what < 5:
        found = cache.get(key)
        assert found is None or found == key[-2:].encode() * 100_000, (key, found[:50])
    elif what < 9:
        cache[key] = key[-2:].encode() * 100_000
    elif turn % 3 == 0:
        cache.clear()
    else:
        try:
            del cache[key]
        except KeyError:
            pass
print("done")
"""


@pytest.mark.parametrize("kind", ["redis", "local"])
def test_concurrent_processes(kind, request, tmp_path, prefix):
    if kind == "redis":
        expression = f"RedisProgramCache({request.getfixturevalue('server').url!r}, prefix={prefix!r})"
    else:
        pytest.importorskip("fsspec")
        expression = f"FsspecProgramCache('file://{tmp_path}/cache')"
    processes = [start(RACE, expression, seed, stdin=subprocess.PIPE) for seed in range(3)]
    for process in processes:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0 and "done" in out, err
    assert not list(tmp_path.glob("cache/tmp/*"))


@pytest.mark.parametrize("name", ["redis", "fsspec"])
def test_a_missing_package_is_named_with_its_extra(name):
    code = f"""
        import sys
        sys.modules[{name!r}] = None
        from cupyrite import program_caches
        create = program_caches.{name.capitalize()}ProgramCache
        try:
            create("memory://x")
        except ImportError as error:
            print(error)
    """
    assert f"pip install 'cupyrite[{name}]'" in output(code)


def test_the_packages_are_imported_when_they_are_used():
    code = "import sys, cupyrite.program_caches; print({'redis', 'fsspec'} & set(sys.modules))"
    assert output(code) == "set()\n"


def test_examples_of_the_docstrings(server, fsspec_caches):
    import doctest

    from cupyrite import program_caches

    results = doctest.testmod(program_caches)
    assert results.failed == 0 and results.attempted >= 5


# ---------------------------------------------------------------------------------------------------------
# Redis


def test_a_damaged_redis_entry_is_a_miss_and_removed(redis_caches, server, prefix):
    cache = redis_caches(prefix)
    code = bytes(range(256)) * 4

    def only_key():
        (key,) = server.client.keys(prefix.encode() + b"*")
        return key

    for change in (
        lambda whole: whole[:100] + b"\xff" + whole[101:],
        lambda whole: whole[:-1],
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole + b"x",
        lambda whole: b"",
        lambda whole: code,
    ):
        cache["k"] = code
        whole = server.client.get(only_key())
        server.client.set(only_key(), change(whole))
        assert cache.get("k") is None
        assert server.client.keys(prefix.encode() + b"*") == []
    # A whole entry of another key.
    cache["other"] = code
    entry = server.client.get(only_key())
    cache["k"] = code
    for key in server.client.keys(prefix.encode() + b"*"):
        server.client.set(key, entry)
    assert cache.get("k") is None and cache["other"] == code


def test_a_value_of_another_type_is_an_os_error(redis_caches, server, prefix):
    cache = redis_caches(prefix)
    cache["k"] = b"code"
    (key,) = server.client.keys(prefix.encode() + b"*")
    server.client.delete(key)
    server.client.lpush(key, "x")
    with pytest.raises(OSError, match="WRONGTYPE"):
        cache["k"]


def test_other_keys_of_the_server_remain(redis_caches, server, prefix):
    cache = redis_caches(prefix)
    others = [f"{prefix}{'z' * 64}", f"{prefix}{'0' * 63}", f"{prefix}{'0' * 65}", "x" * 64, f"x{prefix}{'0' * 64}"]
    for other in others:
        server.client.set(other, "mine")
    for number in range(1200):
        cache[str(number)] = b"code"
    assert len(cache) == 1200
    cache.clear()
    assert len(cache) == 0 and all(server.client.get(other) == b"mine" for other in others)
    server.client.delete(*others)


def test_entries_expire(redis_caches, server, prefix):
    lasting, short = redis_caches(prefix), redis_caches(prefix, expire_seconds=0.3)
    lasting["lasting"] = short["short"] = b"code"
    assert lasting["short"] == b"code"
    time.sleep(0.4)
    assert lasting.get("short") is None and short["lasting"] == b"code"
    hour = redis_caches(prefix, expire_seconds=3600)
    hour["hour"] = b"code"
    ends = sorted(server.client.ttl(key) for key in server.client.keys(prefix.encode() + b"*"))
    assert ends[0] == -1 and 3590 < ends[1] <= 3600
    for wrong in (0, -1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="expire_seconds"):
            redis_caches(prefix, expire_seconds=wrong)


def test_clients(server, prefix):
    import redis
    from cupyrite.program_caches import RedisProgramCache

    cache = RedisProgramCache(server.client, prefix=prefix)
    cache["k"] = b"code"
    cache.close()
    assert server.client.ping() and RedisProgramCache(server.url, prefix=prefix)["k"] == b"code"
    with pytest.raises(ValueError, match="decode_responses=False"):
        RedisProgramCache(redis.Redis.from_url(server.url, decode_responses=True))
    with pytest.raises(TypeError, match="client_or_url"):
        RedisProgramCache(redis.asyncio.Redis.from_url(server.url))
    with pytest.raises(TypeError, match="client_or_url"):
        RedisProgramCache(None)
    with pytest.raises(TypeError, match="prefix"):
        RedisProgramCache(server.url, prefix=b"x")
    with pytest.raises(ValueError):
        RedisProgramCache("cache.example")


def test_a_program_is_compiled_without_its_server():
    expected = compile_ptx(None)
    with redis_server.running() as server:
        from cupyrite.program_caches import RedisProgramCache

        cache = RedisProgramCache(server.url)
        compile_ptx(cache)
        server.stop()
        began = time.monotonic()
        with pytest.warns(RuntimeWarning, match="Redis") as caught:
            assert compile_ptx(cache) == expected
        assert len(caught) == 1 and caught[0].filename == __file__ and time.monotonic() - began < 10
        with cache.compile_lock("key"):
            pass
        for use in (cache.__len__, cache.clear, lambda: cache["k"], lambda: cache.__setitem__("k", b"code")):
            with pytest.raises(ConnectionError, match="Redis"):
                use()


def test_a_server_that_stops_during_a_compilation():
    expected = compile_ptx(None)
    with redis_server.running() as server:
        from cupyrite.program_caches import RedisProgramCache

        class Stopping(RedisProgramCache):
            def __setitem__(self, key, value):
                server.stop()
                super().__setitem__(key, value)

        with pytest.warns(RuntimeWarning, match="stored") as caught:
            assert compile_ptx(Stopping(server.url)) == expected
        assert len(caught) == 1


def test_a_server_that_does_not_answer(monkeypatch):
    import signal

    from cupyrite import program_caches

    monkeypatch.setattr(program_caches, "_REDIS_TIMEOUT", 0.3)
    with redis_server.running() as server:
        cache = program_caches.RedisProgramCache(server.url)
        os.kill(server.process.pid, signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            cache["k"]
        assert time.monotonic() - began < 10


# ---------------------------------------------------------------------------------------------------------
# fsspec


def entries(folder):
    return sorted(path for path in (folder / "entries").rglob("*") if path.is_file())


def test_a_damaged_file_is_a_miss_and_removed(fsspec_caches, tmp_path):
    cache = fsspec_caches(f"file://{tmp_path}")
    code = bytes(range(256)) * 4
    for change in (
        lambda whole: whole[:100] + b"\xff" + whole[101:],
        lambda whole: whole[:-1],
        lambda whole: whole + b"x",
        lambda whole: b"",
        lambda whole: code,
    ):
        cache["k"] = code
        (path,) = entries(tmp_path)
        path.write_bytes(change(path.read_bytes()))
        assert cache.get("k") is None and entries(tmp_path) == []
    cache["k"] = code
    (path,) = entries(tmp_path)
    path.unlink()
    path.mkdir()
    assert cache.get("k") is None


def test_a_local_folder_is_that_of_the_file_cache(fsspec_caches, tmp_path):
    here, there = fsspec_caches(f"file://{tmp_path}"), FileStreamProgramCache(tmp_path)
    here["a"], there["b"] = b"1", b"2"
    assert (there["a"], here["b"], len(here), len(there)) == (b"1", b"2", 2, 2)
    del here["b"]
    assert there.get("b") is None
    there.clear()
    assert len(here) == 0


def test_a_local_entry_appears_at_once(fsspec_caches, tmp_path, monkeypatch):
    cache = fsspec_caches(f"file://{tmp_path}")
    cache["k"] = b"old"
    written = cache._filesystem.pipe_file

    def interrupted(path, value, **more):
        written(path, value[:5], **more)
        assert cache["k"] == b"old"
        raise OSError(28, "no space left")

    monkeypatch.setattr(cache._filesystem, "pipe_file", interrupted)
    with pytest.raises(OSError, match="no space left"):
        cache["k"] = b"new code"
    assert cache["k"] == b"old" and not list((tmp_path / "tmp").iterdir())


def test_clear_removes_what_killed_processes_left(fsspec_caches, tmp_path):
    cache = fsspec_caches(f"file://{tmp_path}")
    past = time.time() - 7200
    for folder in ("tmp", "leases"):
        for name, old in (("old", True), ("new", False)):
            path = tmp_path / folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"x")
            if old:
                os.utime(path, (past, past))
    cache.clear()
    assert sorted(path.name for path in tmp_path.glob("*/*")) == ["new", "new"]


def test_a_lease_of_a_killed_holder_is_taken_over(fsspec_caches, monkeypatch):
    from cupyrite import _leases

    monkeypatch.setattr(_leases, "LEASE_SECONDS", 0.5)
    root = f"memory://{uuid.uuid4().hex}"
    cache = fsspec_caches(root)
    lock = cache.compile_lock("key")
    # Holds it without renewals.
    assert lock.try_acquire() is True
    other = fsspec_caches(root)
    began = time.monotonic()
    with other.compile_lock("key"):
        assert 0.5 <= time.monotonic() - began < 10
        # The first holder is not dead after all: it neither renews nor releases the lock of the second.
        assert lock.renew() is False
        lock.release()
        third = fsspec_caches(root).compile_lock("key")
        assert third.try_acquire() is False
    assert third.try_acquire() is True
    third.release()


def test_a_storage_without_exclusive_creation_has_no_locks(fsspec_caches, monkeypatch):
    cache = fsspec_caches(f"memory://{uuid.uuid4().hex}")
    for error in (NotImplementedError("mode"), TypeError("pipe_file() got an unexpected keyword argument 'mode'")):
        create = cache._filesystem.pipe_file

        def pipe_file(path, value, mode=None, error=error, create=create):
            if mode:
                raise error
            create(path, value)

        with monkeypatch.context() as patch:
            patch.setattr(cache._filesystem, "pipe_file", pipe_file)
            began = time.monotonic()
            with cache.compile_lock("key"):
                cache["key"] = b"code"
            assert time.monotonic() - began < 10 and cache["key"] == b"code"


def test_errors_of_a_file_system_are_os_errors(fsspec_caches, monkeypatch):
    class HttpError(Exception):
        pass

    def fail(*arguments, **more):
        raise HttpError("403 forbidden")

    cache = fsspec_caches(f"memory://{uuid.uuid4().hex}")
    expected = compile_ptx(None)
    monkeypatch.setattr(cache._filesystem, "cat_file", fail)
    monkeypatch.setattr(cache._filesystem, "pipe_file", fail)
    with pytest.raises(OSError, match="403"):
        cache["k"]
    with pytest.raises(OSError, match="403"):
        cache["k"] = b"code"
    with pytest.warns(RuntimeWarning, match="HttpError: 403 forbidden") as caught:
        assert compile_ptx(cache) == expected
    assert len(caught) == 1


def test_urls(fsspec_caches, tmp_path):
    with pytest.raises(ValueError):
        fsspec_caches("nonsense://x")
    with pytest.raises(TypeError, match="url"):
        fsspec_caches(tmp_path)
    with pytest.raises(TypeError):
        fsspec_caches("memory://x", "options")
    cache = fsspec_caches(str(tmp_path / "a b%20?"), storage_options={"auto_mkdir": False})
    cache["k"] = b"code"
    assert entries(tmp_path / "a b%20?") and cache["k"] == b"code"
    shutil.rmtree(tmp_path / "a b%20?")
    assert cache.get("k") is None and len(cache) == 0
    cache["k"] = b"code"
    assert len(cache) == 1
