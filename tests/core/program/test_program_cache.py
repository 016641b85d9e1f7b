"""Caches of compiled programs: contents, eviction, keys, and sharing between processes."""

import os
import pickle
import stat
import subprocess
import textwrap
import threading
import time

import pytest
from cuda.core import ObjectCode, Program, ProgramOptions
from cuda.core.utils import (
    FileStreamProgramCache,
    InMemoryProgramCache,
    ProgramCacheResource,
    make_program_cache_key,
)

from helpers.programs import output, start
from helpers.threads import run_all

KERNEL = 'extern "C" __global__ void k(int *a) { *a = 1; }'
TEMPLATE = "template <typename T> __global__ void t(T *a) { *a = 1; }"
NVVM = 'target triple = "nvptx64-nvidia-cuda"'
PTX = ".version 8.0\n.target sm_80\n.address_size 64\n"


@pytest.fixture(params=["memory", "file"])
def open_cache(request, tmp_path):
    if request.param == "memory":
        return lambda **options: InMemoryProgramCache(**options)
    return lambda **options: FileStreamProgramCache(tmp_path / "cache", **options)


@pytest.fixture
def nvrtc():
    from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

    try:
        load_nvidia_dynamic_lib("nvrtc")
    except DynamicLibNotFoundError as error:
        pytest.skip(str(error))


def files(directory):
    return sorted(path for path in (directory / "entries").rglob("*") if path.is_file())


# ---------------------------------------------------------------------------------------------------------
# Both caches


def test_mapping_interface(open_cache, tmp_path):
    cache = open_cache()
    assert len(cache) == 0 and not cache
    cache["k"] = b"abc"
    assert cache["k"] == cache[b"k"] == cache[bytearray(b"k")] == b"abc" and len(cache) == 1 and cache
    cache["view"] = memoryview(b"abcd")[1:]
    assert cache["view"] == b"bcd" and type(cache["view"]) is bytes
    cache["strided"] = memoryview(b"abcdef")[::2]
    assert cache["strided"] == b"ace"
    cache["array"] = bytearray(b"xy")
    cache["code"] = ObjectCode.from_cubin(b"\x7fELF bytes")
    assert cache["code"] == b"\x7fELF bytes"
    path = tmp_path / "f.cubin"
    path.write_bytes(b"in a file")
    cache["path"] = ObjectCode.from_cubin(str(path))
    assert cache["path"] == b"in a file"
    vanished = ObjectCode.from_cubin(str(path))
    path.unlink()
    for store in (lambda: cache.__setitem__("gone", vanished), lambda: cache.update({"gone": vanished})):
        with pytest.raises(FileNotFoundError) as caught:
            store()
        assert caught.value.filename == str(path)
    with pytest.raises(IsADirectoryError if os.name == "posix" else PermissionError):
        cache["gone"] = ObjectCode.from_cubin(str(tmp_path))
    assert cache.get("gone") is None
    cache["empty"] = b""
    cache[""] = b"no name"
    assert cache["empty"] == b"" and cache[""] == b"no name"
    cache["k"] = b"new"
    assert cache["k"] == b"new" and len(cache) == 8
    del cache["k"]
    with pytest.raises(KeyError):
        del cache["k"]
    with pytest.raises(KeyError, match="k"):
        cache["k"]
    assert cache.get("k") is None and cache.get("k", b"default") == b"default"
    cache.update({"a": b"1", "b": b"2"})
    cache.update([("a", b"3"), (b"c", b"4")])
    assert (cache["a"], cache["b"], cache["c"]) == (b"3", b"2", b"4")
    with cache as same:
        assert same is cache
    assert cache["a"] == b"3"
    cache.close()
    cache.clear()
    assert len(cache) == 0 and cache.get("a") is None
    cache.clear()


def test_invalid_arguments_raise(open_cache):
    cache = open_cache()
    for key in (5, None, ("k",), memoryview(b"k")):
        with pytest.raises(TypeError, match="key"):
            cache[key]
        with pytest.raises(TypeError, match="key"):
            cache.get(key)
        with pytest.raises(TypeError, match="key"):
            cache[key] = b"x"
        with pytest.raises(TypeError, match="key"):
            del cache[key]
    for value in ("text", 5, None, [1]):
        with pytest.raises(TypeError, match="value"):
            cache["k"] = value
    with pytest.raises(TypeError):
        "k" in cache
    with pytest.raises(TypeError):
        cache.update(5)
    for size in (0, -1):
        with pytest.raises(ValueError, match="max_size_bytes"):
            open_cache(max_size_bytes=size)
    for size in ("5", 1.5, [5]):
        with pytest.raises(TypeError, match="max_size_bytes"):
            open_cache(max_size_bytes=size)
    assert len(cache) == 0


def test_hits_and_misses_are_counted(open_cache):
    cache = open_cache()
    assert (cache.hits, cache.misses) == (0, 0)
    cache["k"] = b"x"
    cache["k"], cache.get("k"), cache.get("other")
    with pytest.raises(KeyError):
        cache["other"]
    assert (cache.hits, cache.misses) == (2, 2)
    with pytest.raises(AttributeError):
        cache.hits = 0


def test_least_recently_used_entries_are_evicted(open_cache):
    cache = open_cache(max_size_bytes=10)
    cache["a"], cache["b"] = b"12345", b"12345"
    assert len(cache) == 2
    cache["a"]
    cache["c"] = b"1"
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (b"12345", None, b"1")
    cache["big"] = bytes(11)
    assert cache.get("big") is None and cache.get("a") == b"12345"
    cache["a"] = bytes(11)
    assert cache.get("a") is None
    cache["all"] = bytes(10)
    assert len(cache) == 1 and cache["all"] == bytes(10)


def test_threads_share_a_cache(open_cache):
    cache = open_cache(max_size_bytes=5000)
    wrong = []

    def work(number):
        for turn in range(60):
            key = f"{turn % 7}"
            found = cache.get(key)
            if found is not None and found != key.encode() * 100:
                wrong.append(found)
            cache[key] = key.encode() * 100

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    run_all(threads)
    assert not wrong and len(cache) == 7
    assert cache.hits + cache.misses == 240


def test_the_base_class_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        ProgramCacheResource()
    assert issubclass(InMemoryProgramCache, ProgramCacheResource)
    assert FileStreamProgramCache.__bases__ == (ProgramCacheResource,)


# ---------------------------------------------------------------------------------------------------------
# On disk


def test_entries_outlive_the_cache_object(tmp_path):
    FileStreamProgramCache(tmp_path)["k"] = b"abc"
    assert FileStreamProgramCache(str(tmp_path))["k"] == b"abc"


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions")
def test_directories_and_files_are_private(tmp_path):
    old = os.umask(0)
    try:
        cache = FileStreamProgramCache(tmp_path / "new" / "cache")
        cache["k"] = b"abc"
    finally:
        os.umask(old)
    for path in (tmp_path / "new").rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_default_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME" if os.name == "posix" else "LOCALAPPDATA", str(tmp_path))
    FileStreamProgramCache()["k"] = b"abc"
    assert files(tmp_path / "cuda-python" / "program-cache")


def test_unusable_directories_raise(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError) as caught:
        FileStreamProgramCache(tmp_path / "file")
    assert caught.value.filename == str(tmp_path / "file")
    with pytest.raises(NotADirectoryError):
        FileStreamProgramCache(tmp_path / "file" / "below")
    for path in (5, b"bytes"):
        with pytest.raises(TypeError, match="path"):
            FileStreamProgramCache(path)


def test_damaged_entries_are_misses_and_removed(tmp_path):
    cache = FileStreamProgramCache(tmp_path)
    code = bytes(range(256)) * 8

    def damaged(change):
        cache["k"] = code
        (path,) = files(tmp_path)
        whole = path.read_bytes()
        path.write_bytes(change(whole))
        assert cache.get("k") is None, change(whole)[:20]
        assert not files(tmp_path)

    damaged(lambda whole: whole[:100] + b"\xff" + whole[101:])
    damaged(lambda whole: whole[:-1])
    damaged(lambda whole: whole[: len(whole) // 2])
    damaged(lambda whole: whole + b"x")
    damaged(lambda whole: b"")
    damaged(lambda whole: code)
    # A whole file of another key.
    cache["other"] = b"other code"
    (other,) = files(tmp_path)
    whole = other.read_bytes()
    cache["k"] = code
    (path,) = set(files(tmp_path)) - {other}
    path.write_bytes(whole)
    assert cache.get("k") is None and cache["other"] == b"other code"
    cache["k"] = code
    assert cache["k"] == code


def test_foreign_files_are_not_entries(tmp_path):
    cache = FileStreamProgramCache(tmp_path)
    cache["k"] = b"abc"
    (path,) = files(tmp_path)
    path.unlink()
    path.mkdir()
    assert cache.get("k") is None
    path.rmdir()
    if os.name == "posix":
        target = tmp_path / "secret"
        target.write_bytes(b"x")
        path.symlink_to(target)
        assert cache.get("k") is None and target.read_bytes() == b"x"
        path.unlink()
        os.mkfifo(path)
        assert cache.get("k") is None
        path.unlink()
    stranger = path.with_name("stranger")
    stranger.write_text("not ours")
    assert len(cache) == 0
    cache["k"] = b"abc"
    cache.clear()
    assert stranger.read_text() == "not ours" and len(cache) == 0


def test_removed_directory_is_recreated(tmp_path):
    import shutil

    cache = FileStreamProgramCache(tmp_path / "cache")
    shutil.rmtree(tmp_path / "cache")
    assert cache.get("k") is None and len(cache) == 0
    cache.clear()
    cache["k"] = b"abc"
    assert cache["k"] == b"abc"


def test_leftovers_of_dead_processes_are_removed(tmp_path):
    FileStreamProgramCache(tmp_path)
    old, new = tmp_path / "tmp" / "old", tmp_path / "tmp" / "new"
    for path in (old, new):
        path.write_bytes(b"half an entry")
    past = time.time() - 7200
    os.utime(old, (past, past))
    FileStreamProgramCache(tmp_path)
    assert not old.exists() and new.exists()


RACE = """
import os, sys, random
from cuda.core.utils import FileStreamProgramCache
folder, seed = sys.argv[1], int(sys.argv[2])
choose = random.Random(seed)
cache = FileStreamProgramCache(folder, max_size_bytes=40_000)
print("ready", flush=True)
sys.stdin.readline()
for turn in range(250):
    key = f"key {choose.randrange(12)}"
    what = choose.randrange(10)
    if what < 5:
        found = cache.get(key)
        assert found is None or (len(found) == 6000 and found == key[-2:].encode() * 3000), (key, found)
    elif what < 9:
        cache[key] = key[-2:].encode() * 3000
    elif what < 10 and turn % 3 == 0:
        cache.clear()
    else:
        try:
            del cache[key]
        except KeyError:
            pass
print("done", cache.hits)
"""


def test_concurrent_processes(tmp_path):
    folder = tmp_path / "cache"
    processes = [start(RACE, folder, seed, stdin=subprocess.PIPE) for seed in range(4)]
    for process in processes:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0 and "done" in out, err
    assert not list((folder / "tmp").iterdir())
    assert sum(len(path.read_bytes()) for path in files(folder)) < 40_000 + 10_000


# ---------------------------------------------------------------------------------------------------------
# Keys


def key(code=KERNEL, code_type="c++", target_type="cubin", name_expressions=(), extra_digest=None, **options):
    return make_program_cache_key(
        code=code,
        code_type=code_type,
        options=ProgramOptions(**{"arch": "sm_80", **options}),
        target_type=target_type,
        name_expressions=name_expressions,
        extra_digest=extra_digest,
    )


def test_keys_depend_on_all_inputs(nvrtc):
    same = key()
    assert type(same) is bytes and len(same) == 32
    assert same == key() == key(code_type="C++", target_type="CUBIN") == key(debug=False) == key(include_path=[])
    assert key(name_expressions=("a", "b")) == key(name_expressions=["b", "a"])
    assert key(ptxas_options=("a", "b")) == key(ptxas_options=["a", "b"])
    others = [
        key(KERNEL + " "),
        key(target_type="ptx"),
        key(target_type="ltoir"),
        key(arch="sm_90"),
        key(name="other"),
        key(std="c++17"),
        key(ftz=True),
        key(ftz=False),
        key(debug=True),
        key(define_macro=("A", "B")),
        key(define_macro="A"),
        key(ptxas_options=["a", "b"]),
        key(ptxas_options=["a b"]),
        key(use_bundled_headers=True),
        key(name_expressions=("a",)),
        key(name_expressions=(b"a",)),
        key(name_expressions=("a", "a")),
        key(name_expressions=("a", "b")),
        key(name_expressions=("ab",)),
        key(extra_digest=b""),
        key(extra_digest=b"x"),
        key(include_path="x", extra_digest=b"x"),
        key(PTX, "ptx"),
        key(PTX, "ptx", "ptx"),
        key(PTX, "ptx", max_register_count=32),
    ]
    assert len({same, *others}) == len(others) + 1
    # PTX has no mangled names.
    assert key(PTX, "ptx") == key(PTX, "ptx", name_expressions=("a", b"b"))


def test_false_requests_no_file(nvrtc):
    same = key()
    for option in ("time", "fdevice_time_trace", "create_pch", "use_pch", "pch_dir", "include_path", "pre_include"):
        assert key(**{option: False}) == same, option


DRIVER = """
from cuda.core import Linker, ProgramOptions
from cuda.core.utils import make_program_cache_key
assert Linker.which_backend() == "driver"
def key(**options):
    options = ProgramOptions(arch="sm_80", **options)
    return make_program_cache_key(code="", code_type="ptx", options=options, target_type="cubin")
assert key(max_register_count=32, debug=True, time=False) != key()
for option, value in {"time": "x", "ptxas_options": "-v", "split_compile": 2, "ftz": True}.items():
    try:
        key(**{option: value})
    except ValueError as error:
        assert f"options.{option}" in str(error), error
    else:
        raise SystemExit(option)
"""


def test_the_drivers_linker_gives_no_key_for_options_that_it_lacks():
    """The linker refuses them: there is no code to store. In a process of its own, which selects the linker."""
    output(DRIVER, options=("-W", "ignore"), environment={"CUPYRITE_LINKER": "driver"})


def test_keys_of_nvvm_programs():
    from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

    try:
        load_nvidia_dynamic_lib("nvvm")
    except DynamicLibNotFoundError as error:
        pytest.skip(str(error))
    same = key(NVVM, "nvvm", "ptx")
    assert same == key(NVVM.encode(), "nvvm", "ptx") == key(bytearray(NVVM.encode()), "nvvm", "ptx")
    assert same == key(NVVM, "nvvm", "ptx", name_expressions=("a",))
    assert len({same, key(NVVM, "nvvm", "ltoir"), key(NVVM, "nvvm", "ptx", extra_sources=[("a", "b")])}) == 3
    with pytest.raises(ValueError, match="use_libdevice"):
        key(NVVM, "nvvm", "ptx", use_libdevice=True)
    assert key(NVVM, "nvvm", "ptx", use_libdevice=True, extra_digest=b"x") != same


@pytest.mark.parametrize(
    "options",
    [
        {"include_path": "x"},
        {"pre_include": "x.h"},
        {"pch": True},
        {"use_pch": "x"},
        {"pch_dir": "x"},
        {"name": "a/b.cu"},
        {"name": "./b.cu"},
        {"name": "a\\b.cu"},
    ],
)
def test_options_with_files_need_a_digest(nvrtc, options):
    with pytest.raises(ValueError, match=rf"{next(iter(options))}(.|\n)*extra_digest"):
        key(**options)
    assert key(extra_digest=b"1", **options) != key(extra_digest=b"2", **options)


@pytest.mark.parametrize("option", ["create_pch", "time", "fdevice_time_trace"])
def test_options_with_side_effects_have_no_key(nvrtc, option):
    with pytest.raises(ValueError, match=option):
        key(extra_digest=b"x", **{option: "x"})


def test_invalid_key_arguments_raise(nvrtc):
    for code in (KERNEL.encode(), 5):
        with pytest.raises(TypeError, match="code"):
            key(code)
    for name, value in (("code_type", "foo"), ("code_type", 5), ("target_type", "foo"), ("target_type", "fatbin")):
        with pytest.raises(ValueError, match=name):
            key(**{name: value})
    with pytest.raises(ValueError, match="target_type"):
        key(PTX, "ptx", "ltoir")
    with pytest.raises(TypeError, match="name_expressions"):
        key(name_expressions=(5,))
    with pytest.raises(TypeError, match="extra_digest"):
        key(extra_digest="x")
    with pytest.raises(ValueError, match="extra_sources"):
        key(extra_sources=[("a", "b")])
    with pytest.raises(TypeError, match="options"):
        make_program_cache_key(code=KERNEL, code_type="c++", options={}, target_type="ptx")
    with pytest.raises(TypeError):
        make_program_cache_key(KERNEL, "c++", ProgramOptions(arch="sm_80"), "ptx")


def test_headers_beside_the_source_are_part_of_the_key(nvrtc, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = '#include "h.h"\n' + KERNEL
    without = key(source)
    (tmp_path / "h.h").write_text("#define A 1\n")
    first = key(source)
    (tmp_path / "h.h").write_text("#define A 2\n")
    assert len({without, first, key(source)}) == 3
    (tmp_path / "h.h").write_text("#define A 1\n")
    assert key(source) == first
    (tmp_path / "h.h").write_text("#include NAME\n")
    with pytest.raises(ValueError, match="NAME"):
        key(source)
    assert key(source, extra_digest=b"x")
    assert key(source, no_source_include=True)


# ---------------------------------------------------------------------------------------------------------
# Program.compile(cache=)


class Spy(ProgramCacheResource):
    """A user's cache that records its calls."""

    def __init__(self):
        self.kept, self.asked = {}, []

    def __getitem__(self, key):
        self.asked.append("get")
        return self.kept[key]

    def __setitem__(self, key, value):
        self.asked.append("set")
        self.kept[key] = bytes(value.code) if isinstance(value, ObjectCode) else bytes(value)

    def __delitem__(self, key):
        del self.kept[key]

    def __len__(self):
        return len(self.kept)

    def clear(self):
        self.kept.clear()


def program(source=KERNEL, **options):
    return Program(source, "c++", ProgramOptions(**{"arch": "sm_80", **options}))


def test_compile_with_a_cache(nvrtc, open_cache):
    cache = open_cache()
    first = program(name="some.cu").compile("ptx", cache=cache)
    assert (cache.hits, cache.misses, len(cache)) == (0, 1, 1)
    log = []
    second = program(name="some.cu").compile("ptx", logs=type("Log", (), {"write": log.append})(), cache=cache)
    assert (cache.hits, cache.misses, len(cache)) == (1, 1, 1)
    assert second.code == first.code and second.name == "some.cu" and second.code_type == "ptx" and log == []
    assert second.symbol_mapping == {}
    program(name="other.cu").compile("ptx", cache=cache)
    program(name="some.cu").compile("cubin", cache=cache)
    assert cache.hits == 1 and len(cache) == 3
    with pytest.raises(Exception, match="nonsense"):
        program("nonsense").compile("ptx", cache=cache)
    assert len(cache) == 3


def test_cached_cubin_runs(nvrtc, tmp_path):
    from cuda.core import Device

    Device().set_current()
    script = textwrap.dedent("""
        import sys
        from cuda.core import Device, Program
        from cuda.core.utils import FileStreamProgramCache
        Device().set_current()
        cache = FileStreamProgramCache(sys.argv[1])
        code = Program(sys.argv[2], "c++").compile("cubin", cache=cache)
        code.get_kernel("k")
        print(cache.hits, cache.misses)
    """)
    for right in ("0 1", "1 0"):
        assert output(script, tmp_path, KERNEL).strip() == right


def test_name_expressions_are_cached(nvrtc, open_cache):
    cache = open_cache()
    names = ("t<float>", b"t<int>")
    first = program(TEMPLATE).compile("ptx", names, cache=cache)
    again = program(TEMPLATE).compile("ptx", tuple(reversed(names)), cache=cache)
    assert cache.hits == 2 and cache.misses == 1
    assert again.symbol_mapping == first.symbol_mapping == {"t<float>": b"_Z1tIfEvPT_", b"t<int>": b"_Z1tIiEvPT_"}
    other = program(TEMPLATE).compile("ptx", ("t<int>",), cache=cache)
    assert list(other.symbol_mapping) == ["t<int>"]


def test_changed_header_invalidates_the_entry(nvrtc, open_cache, tmp_path):
    cache = open_cache()
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "deep.h").write_text("#define VALUE 11\n")
    (tmp_path / "two" / "top.h").write_text('#include "deep.h"\n')
    (tmp_path / "before.h").write_text("#define MORE 1\n")
    source = '#include <top.h>\nextern "C" __global__ void k(int *a) { *a = VALUE + MORE; }'

    def compile():
        options = {"include_path": [tmp_path / "one", tmp_path / "two"], "pre_include": str(tmp_path / "before.h")}
        return program(source, **options).compile("ptx", cache=cache).code

    first = compile()
    assert b", 12;" in first and compile() == first and cache.hits == 1
    (tmp_path / "two" / "deep.h").write_text("#define VALUE 22\n")
    assert b", 23;" in compile() and cache.hits == 1
    (tmp_path / "before.h").write_text("#define MORE 3\n")
    assert b", 25;" in compile() and cache.hits == 1
    # A header that shadows another.
    (tmp_path / "one" / "top.h").write_text("#define VALUE 30\n")
    assert b", 33;" in compile() and cache.hits == 1
    compile()
    assert cache.hits == 2


def test_header_changed_during_compilation_is_not_cached(nvrtc, tmp_path):
    (tmp_path / "h.h").write_text("#define VALUE 1\n")
    source = '#include "h.h"\nextern "C" __global__ void k(int *a) { *a = VALUE; }'

    class Changing(Spy):
        def __getitem__(self, key):
            (tmp_path / "h.h").write_text("#define VALUE 2\n")
            raise KeyError(key)

    cache = Changing()
    program(source, include_path=tmp_path).compile("ptx", cache=cache)
    assert cache.asked == [] and len(cache) == 0


def test_programs_without_a_key_are_not_cached(nvrtc, tmp_path):
    cache = Spy()
    for options in ({"use_pch": "x"}, {"pch": True}, {"create_pch": "x"}, {"time": "-"}):
        with pytest.raises(ValueError, match=next(iter(options))):
            program(**options).compile("ptx", cache=cache)
    with pytest.raises(ValueError, match="NAME"):
        program('#define NAME "x"\n#include NAME\n').compile("ptx", cache=cache)
    assert cache.asked == []


def test_other_cache_classes(nvrtc):
    cache = Spy()
    program().compile("ptx", cache=cache)
    program().compile("ptx", cache=cache)
    assert cache.asked == ["get", "set", "get"]
    for wrong in (5, {}, object()):
        with pytest.raises(TypeError, match="cache"):
            program().compile("ptx", cache=wrong)

    class Full(Spy):
        def __setitem__(self, key, value):
            raise OSError(28, "no space left")

    with pytest.warns(RuntimeWarning, match="no space left"):
        assert program().compile("ptx", cache=Full()).code

    class Objects(Spy):
        def __setitem__(self, key, value):
            self.kept[key] = value

    cache = Objects()
    first = program().compile("ptx", cache=cache)
    assert program().compile("ptx", cache=cache).code == first.code

    class Broken(Spy):
        def __getitem__(self, key):
            return "text"

    with pytest.raises(TypeError, match="get"):
        program().compile("ptx", cache=Broken())


def test_a_cache_on_disk_can_be_sent_to_another_process(tmp_path):
    cache = FileStreamProgramCache(tmp_path, max_size_bytes=100)
    cache["key"] = b"code"
    cache.lock_timeout = 5
    arrived = pickle.loads(pickle.dumps(cache))
    assert arrived["key"] == b"code" and arrived.lock_timeout == 5
    arrived["other"] = bytes(98)
    assert len(arrived) == 1
