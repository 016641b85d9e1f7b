"""The interface of `cuda.pathfinder`: functions, memoization, data classes, exceptions, import.

Search results have their own tests; made-up toolkits suffice here.
"""

import ast
import contextlib
import copy
import dataclasses
import functools
import inspect
import itertools
import os
import pathlib
import pickle
import pydoc
import subprocess
import sys
import typing
import weakref

import cuda.pathfinder as pathfinder
import cupyrite
import pytest
from cuda.pathfinder import LoadedDL, LocatedBitcodeLib, LocatedHeaderDir, LocatedStaticLib

from helpers.pathfinder import bare, run, shared_object, touch

PARAMETERS = {
    "load_nvidia_dynamic_lib": "libname",
    "locate_nvidia_header_directory": "libname",
    "find_nvidia_header_directory": "libname",
    "find_nvidia_binary_utility": "utility_name",
    "locate_static_lib": "name",
    "find_static_lib": "name",
    "locate_bitcode_lib": "name",
    "find_bitcode_lib": "name",
}
REMEMBERING = [
    "get_cuda_path_or_home",
    "load_nvidia_dynamic_lib",
    "locate_nvidia_header_directory",
    "find_nvidia_binary_utility",
    "find_static_lib",
    "find_bitcode_lib",
]
# The exception for an unknown name.
UNKNOWN = {
    "load_nvidia_dynamic_lib": pathfinder.DynamicLibUnknownError,
    "locate_nvidia_header_directory": RuntimeError,
    "find_nvidia_header_directory": RuntimeError,
    "find_nvidia_binary_utility": pathfinder.UnsupportedBinaryError,
    "locate_static_lib": ValueError,
    "find_static_lib": ValueError,
    "locate_bitcode_lib": ValueError,
    "find_bitcode_lib": ValueError,
}
A_NAME = {
    "load_nvidia_dynamic_lib": "cudart",
    "locate_nvidia_header_directory": "cudnn",
    "find_nvidia_header_directory": "cudnn",
    "find_nvidia_binary_utility": "nvprof",
    "locate_static_lib": "cudadevrt",
    "find_static_lib": "cudadevrt",
    "locate_bitcode_lib": "nccl_device",
    "find_bitcode_lib": "nccl_device",
}


@pytest.fixture
def forgetful(monkeypatch):
    """Clears the caches before and after, and the variables that influence a search."""
    for name in ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX", "CUDNN_PATH", "NCCL_HOME", "CUPYRITE_CUDA_MAJOR"):
        monkeypatch.delenv(name, raising=False)
    for name in REMEMBERING:
        getattr(pathfinder, name).cache_clear()
    yield monkeypatch
    for name in REMEMBERING:
        getattr(pathfinder, name).cache_clear()


@pytest.fixture
def toolkit(tmp_path):
    """A toolkit of text files. (The test environment may have wheels, so it holds items that no wheel has.)"""
    root = tmp_path / "toolkit"
    touch(root / "bin/nvprof", b"#!/bin/sh\n", 0o755)
    touch(root / "lib/libnccl_device.bc", b"BC")
    touch(root / "include/cudnn.h", b"/* cuDNN */")
    touch(root / "lib64/libcudadevrt.a", b"!<arch>\n")
    return root


# The module -----------------------------------------------------------------------------------------------------------


def test_module_lists_its_names():
    public = {name for name in vars(pathfinder) if not name.startswith("_")}
    assert public == set(pathfinder.__all__)
    assert pathfinder.__version__ == "1.9.1"
    assert pathfinder._find_nvidia_header_directory is pathfinder.find_nvidia_header_directory
    for name in pathfinder.__all__:
        value = getattr(pathfinder, name)
        if callable(value):
            assert value.__module__ == "cuda.pathfinder" and value.__name__ == value.__qualname__ == name
            assert value.__doc__ and value.__doc__ != RuntimeError.__doc__
            assert f"{name}" in pydoc.render_doc(value, renderer=pydoc.plaintext)


@pytest.mark.parametrize("name", ["get_cuda_path_or_home", *PARAMETERS])
def test_signatures(name):
    function = getattr(pathfinder, name)
    signature = inspect.signature(function)
    assert list(signature.parameters) == ([PARAMETERS[name]] if name in PARAMETERS else [])
    assert all(p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty for p in signature.parameters.values())
    hints = typing.get_type_hints(function)
    assert "return" in hints and all(hints[p] is str for p in signature.parameters)
    assert inspect.isroutine(function) and callable(function)


def test_constants():
    assert type(pathfinder.SUPPORTED_HEADERS_CTK) is dict
    for name in ("NVIDIA_LIBNAMES", "BINARY_UTILITIES", "STATIC_LIBS", "BITCODE_LIBS"):
        value = getattr(pathfinder, f"SUPPORTED_{name}")
        assert type(value) is tuple and len(set(value)) == len(value) and all(type(v) is str for v in value)
    assert {"cudart", "nvrtc", "nvvm", "cublas"} <= set(pathfinder.SUPPORTED_NVIDIA_LIBNAMES)
    assert not {"cuda", "cudnn"} & set(pathfinder.SUPPORTED_NVIDIA_LIBNAMES)
    assert pathfinder.SUPPORTED_HEADERS_CTK["cudart"] == "cuda_runtime.h"


def test_every_listed_name_is_known(forgetful):
    # Found or not: none of them is an unknown name.
    for name in pathfinder.SUPPORTED_HEADERS_CTK:
        found = pathfinder.locate_nvidia_header_directory(name)
        assert found is None or os.path.isfile(os.path.join(found.abs_path, pathfinder.SUPPORTED_HEADERS_CTK[name]))
    for name in pathfinder.SUPPORTED_BINARY_UTILITIES:
        found = pathfinder.find_nvidia_binary_utility(name)
        assert found is None or os.access(found, os.X_OK)
    for name in pathfinder.SUPPORTED_STATIC_LIBS:
        with contextlib.suppress(pathfinder.StaticLibNotFoundError):
            assert os.path.isfile(pathfinder.find_static_lib(name))
    for name in pathfinder.SUPPORTED_BITCODE_LIBS:
        with contextlib.suppress(pathfinder.BitcodeLibNotFoundError):
            assert os.path.isfile(pathfinder.find_bitcode_lib(name))


# Arguments ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize(
    "given", [None, b"nvrtc", 1, 1.5, True, [], {}, ("nvrtc",), object, "x" * 100_000, "naïve\udc80"]
)
def test_non_names_raise(name, given):
    with pytest.raises(UNKNOWN[name]) as caught:
        getattr(pathfinder, name)(given)
    if isinstance(given, str):
        assert not isinstance(caught.value, TypeError)
        assert str(caught.value).startswith("unknown ") and "known:" in str(caught.value)
        return
    # As NVIDIA's exception for an unknown name, and as the more specific one.
    assert isinstance(caught.value, TypeError)
    text = str(caught.value)
    assert text.startswith(f"{name}() argument '{PARAMETERS[name]}' must be a str such as '")
    assert f"not {type(given).__name__} (" in text
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value) and again.args == caught.value.args


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("given", ["", "nope", "NVRTC", "libnvrtc.so.13", "../nvrtc", "nv\0rtc", "nvrtc ", "*"])
def test_unknown_names_raise(name, given):
    with pytest.raises(UNKNOWN[name]) as caught:
        getattr(pathfinder, name)(given)
    assert "known: " in str(caught.value), caught.value
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is type(caught.value) and str(again) == str(caught.value)


def test_unknown_tool_raises():
    for given in ("gcc", "nvcc.exe", b"nvcc", None):
        with pytest.raises(pathfinder.UnsupportedBinaryError) as caught:
            pathfinder.find_nvidia_binary_utility(given)
        assert caught.value.utility == given and isinstance(caught.value, ValueError)


@pytest.mark.parametrize("name", ["get_cuda_path_or_home", *PARAMETERS])
def test_wrong_numbers_of_arguments_raise(name):
    function = getattr(pathfinder, name)
    calls = [((1, 2), {}), ((), {"nothing": 1})]
    calls += [((), {}), (("a",), {PARAMETERS[name]: "b"})] if name in PARAMETERS else [(("a",), {})]
    for args, kwargs in calls:
        with pytest.raises(TypeError, match=f"^{name}\\(\\) "):
            function(*args, **kwargs)


@pytest.mark.parametrize("name", PARAMETERS)
def test_positional_keyword_and_str_subclass_arguments(name, forgetful, toolkit):
    class Name(str):
        def __eq__(self, other):
            raise RuntimeError("never asked")

        __hash__ = None

    forgetful.setenv("CUDA_PATH", str(toolkit))
    forgetful.setenv("CUDNN_PATH", str(toolkit))
    function, given = getattr(pathfinder, name), A_NAME[name]
    calls = [lambda: function(given), lambda: function(**{PARAMETERS[name]: given}), lambda: function(Name(given))]
    calls += [lambda: functools.partial(function, given)(), lambda: next(map(function, [given]))]
    try:
        first = calls[0]()
    except pathfinder.DynamicLibNotFoundError:
        pytest.skip("needs a CUDA runtime")
    assert first is not None
    for call in calls:
        again = call()
        assert again == first and (again is first or name not in REMEMBERING)


# Memoization ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REMEMBERING)
def test_memoized_functions_have_the_functools_interface(name):
    function = getattr(pathfinder, name)
    model = functools.cache(function.__wrapped__)
    assert function.__wrapped__.__name__ == name and inspect.isfunction(function.__wrapped__)
    assert inspect.unwrap(function) is function.__wrapped__
    assert function.cache_parameters() == model.cache_parameters() == {"maxsize": None, "typed": False}
    function.cache_clear()
    assert function.cache_info() == model.cache_info() == (0, 0, None, 0)
    assert type(function.cache_info()) is type(model.cache_info())
    for attribute in set(functools.WRAPPER_ASSIGNMENTS) - {"__annotate__"} | {"__annotations__"}:
        assert getattr(function, attribute, None) == getattr(model, attribute, None)
    assert pickle.loads(pickle.dumps(function)) is copy.copy(function) is copy.deepcopy(function) is function
    assert weakref.ref(function)() is function and hash(function) is not None
    function.note = "attributes can be added"
    del function.note
    assert name in repr(function)


def test_cache_info_counts(forgetful, toolkit):
    find = pathfinder.find_bitcode_lib
    forgetful.setenv("CUDA_PATH", str(toolkit))
    assert find("nccl_device") == find(name="nccl_device") == find("nccl_device")
    assert find.cache_info() == (2, 1, None, 1)
    for _ in range(2):
        with pytest.raises(ValueError):
            find("nothing")
    assert find.cache_info() == (2, 3, None, 1)
    (toolkit / "lib/libnccl_device.bc").unlink()
    assert find("nccl_device") == str(toolkit / "lib/libnccl_device.bc")
    find.cache_clear()
    assert find.cache_info() == (0, 0, None, 0)
    with pytest.raises(pathfinder.BitcodeLibNotFoundError):
        find("nccl_device")


def test_failures_are_not_memoized(forgetful, tmp_path, toolkit):
    forgetful.setenv("CUDA_PATH", str(tmp_path / "later"))
    forgetful.setenv("CUDNN_PATH", str(tmp_path / "later"))
    assert pathfinder.find_nvidia_binary_utility("nvprof") is None
    if pathfinder.find_nvidia_header_directory("cudnn") is not None:
        pytest.skip("needs a machine without cuDNN's headers")
    assert pathfinder.locate_nvidia_header_directory("cudnn") is None
    with pytest.raises(pathfinder.BitcodeLibNotFoundError):
        pathfinder.find_bitcode_lib("nccl_device")
    toolkit.rename(tmp_path / "later")
    assert pathfinder.find_nvidia_binary_utility("nvprof") == str(tmp_path / "later/bin/nvprof")
    assert pathfinder.find_nvidia_header_directory("cudnn") == str(tmp_path / "later/include")
    assert pathfinder.find_bitcode_lib("nccl_device") == str(tmp_path / "later/lib/libnccl_device.bc")


def test_concurrent_calls_return_the_same_object(tmp_path):
    shared_object(tmp_path / "site-packages/nvidia/nccl/lib/libnccl.so.2", "libnccl.so.2")
    code = """
        import sys, threading
        from cuda import pathfinder
        sys.setswitchinterval(1e-6)
        for attempt in range(50):
            pathfinder.load_nvidia_dynamic_lib.cache_clear()
            start, got = threading.Barrier(8), []
            def ask():
                start.wait()
                got.append(pathfinder.load_nvidia_dynamic_lib("nccl"))
            threads = [threading.Thread(target=ask) for _ in range(8)]
            [t.start() for t in threads], [t.join() for t in threads]
            assert len(got) == 8 and len(set(map(id, got))) == 1, got
            info = pathfinder.load_nvidia_dynamic_lib.cache_info()
            assert info == (7, 1, None, 1), info
        print(got[0].was_already_loaded_from_elsewhere, got[0].found_via)
    """
    assert run(code, PYTHONPATH=str(tmp_path / "site-packages")) == "False site-packages"


def test_signal_handler_may_search(tmp_path):
    # The interrupted search holds the lock.
    shared_object(tmp_path / "site-packages/nvidia/nccl/lib/libnccl.so.2", "libnccl.so.2")
    code = """
        import signal, sys
        from cuda import pathfinder
        got = []
        def ask(*_):
            got.append(pathfinder.load_nvidia_dynamic_lib("nccl"))
        signal.signal(signal.SIGALRM, ask)
        def trace(frame, event, argument):
            # In the middle of the search, between two lines of it.
            if event == "line" and frame.f_code.co_name == "load_nvidia_dynamic_lib" and not got:
                sys.settrace(None)
                signal.raise_signal(signal.SIGALRM)
            return trace
        sys.settrace(trace)
        print(pathfinder.load_nvidia_dynamic_lib("nccl") == got[0])
    """
    assert run(code, PYTHONPATH=str(tmp_path / "site-packages")) == "True"


def test_gil_is_released_during_a_search(tmp_path):
    # Otherwise a library's initializer that waits for another thread would deadlock.
    source = touch(
        tmp_path / "slow.c",
        rb"""
        #include <unistd.h>
        static int ends[2];
        int go(void) { return write(ends[1], "", 1); }
        __attribute__((constructor)) static void wait_for_go(void) {
            char byte;
            extern int *share_ends(void) __attribute__((weak));
            const char *name = 0; (void)name;
            if (share_ends) { int *shared = share_ends(); ends[0] = shared[0]; ends[1] = shared[1]; }
            if (read(ends[0], &byte, 1) != 1) _exit(3);
        }
        """,
    )
    helper = touch(tmp_path / "ends.c", b"static int ends[2]; int *share_ends(void) { return ends; }")
    folder = tmp_path / "site-packages/nvidia/nccl/lib"
    folder.mkdir(parents=True)
    compilers = [(source, folder / "libnccl.so.2"), (helper, tmp_path / "ends.so")]
    for text, made in compilers:
        command = [os.environ.get("CC", "cc"), "-shared", "-fPIC", f"-Wl,-soname,{made.name}", "-o", made, text]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no C compiler: {error}")
    code = f"""
        import ctypes, os, threading
        ends = (ctypes.c_int * 2)(*os.pipe())
        helper = ctypes.CDLL({str(tmp_path / "ends.so")!r}, ctypes.RTLD_GLOBAL)
        helper.share_ends.restype = ctypes.POINTER(ctypes.c_int)
        shared = helper.share_ends()
        shared[0], shared[1] = ends
        from cuda import pathfinder
        thread = threading.Timer(0.3, lambda: os.write(ends[1], b"x"))
        thread.start()
        print(pathfinder.load_nvidia_dynamic_lib("nccl").found_via)
    """
    assert run(code, PYTHONPATH=str(tmp_path / "site-packages")) == "site-packages"


# CUDA_PATH and CUDA_HOME ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path, home, expected",
    [
        (None, None, None),
        ("", "", None),
        ("/a", None, "/a"),
        (None, "/b", "/b"),
        ("", "/b", "/b"),
        ("/a/../b/", None, "/a/../b/"),
        ("~/cuda", "", "~/cuda"),
        (" ", "/b", " "),
        ("/b/", "/b", "/b/"),
        ("/na\udcefve", None, "/na\udcefve"),
    ],
)
def test_root_named_by_the_environment(forgetful, recwarn, path, home, expected):
    for name, value in (("CUDA_PATH", path), ("CUDA_HOME", home)):
        if value is not None:
            forgetful.setenv(name, value)
    assert pathfinder.get_cuda_path_or_home() == expected
    assert len(recwarn) == (path == " ")
    forgetful.setenv("CUDA_PATH", "/later")
    assert pathfinder.get_cuda_path_or_home() == ("/later" if expected is None else expected)


def test_two_different_roots_warn_once(forgetful, toolkit, tmp_path):
    forgetful.setenv("CUDA_PATH", str(toolkit))
    forgetful.setenv("CUDA_HOME", str(tmp_path))
    with pytest.warns(UserWarning, match="(?s)CUDA_PATH=.*toolkit.*CUDA_HOME=.*CUDA_PATH") as caught:
        assert pathfinder.find_bitcode_lib("nccl_device") == str(toolkit / "lib/libnccl_device.bc")
        assert pathfinder.find_nvidia_binary_utility("nvprof") == str(toolkit / "bin/nvprof")
        assert pathfinder.get_cuda_path_or_home() == str(toolkit)
    assert len(caught) == 1


def test_two_spellings_of_one_root_do_not_warn(forgetful, recwarn, toolkit, tmp_path):
    (tmp_path / "link").symlink_to(toolkit)
    forgetful.setenv("CUDA_PATH", str(tmp_path / "link"))
    forgetful.setenv("CUDA_HOME", f"{toolkit}/")
    assert pathfinder.get_cuda_path_or_home() == str(tmp_path / "link")
    assert not recwarn.list


# Data classes ---------------------------------------------------------------------------------------------------------

LOADED = LoadedDL("/lib/libcudart.so.13", False, 12345, "system-search")
HEADERS = LocatedHeaderDir("/usr/include", "supported_install_dir")
STATIC = LocatedStaticLib("cudadevrt", "/opt/cuda/lib64/libcudadevrt.a", "libcudadevrt.a", "CUDA_PATH")
BITCODE = LocatedBitcodeLib("device", "/opt/cuda/nvvm/libdevice/libdevice.10.bc", "libdevice.10.bc", "conda")
RECORDS = [LOADED, HEADERS, STATIC, BITCODE]
FROZEN = [STATIC, BITCODE]


def model(cls):
    """The data class that a record is compared with."""
    fields = [(f.name, f.type) for f in dataclasses.fields(cls)]
    return dataclasses.make_dataclass(cls.__name__, fields, frozen=cls in map(type, FROZEN))


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: type(r).__name__)
def test_records_are_data_classes(record):
    cls = type(record)
    like = model(cls)
    values = tuple(getattr(record, f.name) for f in dataclasses.fields(record))
    assert dataclasses.is_dataclass(cls) and dataclasses.is_dataclass(record)
    for f, expected in zip(dataclasses.fields(cls), dataclasses.fields(like), strict=True):
        assert (f.name, f.init, f.repr, f.compare, f.hash) == (expected.name, True, True, True, None)
        assert f.default is f.default_factory is dataclasses.MISSING
    assert repr(cls.__dataclass_params__) == repr(like.__dataclass_params__)
    assert cls.__match_args__ == like.__match_args__
    assert typing.get_type_hints(cls) == cls.__annotations__
    assert list(inspect.signature(cls).parameters) == list(inspect.signature(like).parameters)
    assert repr(record) == repr(like(*values)).replace(like.__qualname__, cls.__name__)
    assert dataclasses.asdict(record) == dataclasses.asdict(like(*values)) == vars(record)
    assert dataclasses.astuple(record) == values
    assert cls(**dataclasses.asdict(record)) == record
    assert (cls.__hash__ is None) == (like.__hash__ is None) == (record not in FROZEN)


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: type(r).__name__)
def test_equality(record):
    cls = type(record)
    same = copy.copy(record)
    assert same == record and not same != record and same is not record
    for field in dataclasses.fields(cls):
        other = "/other" if field.name != "was_already_loaded_from_elsewhere" else True
        changed = dataclasses.replace(record, **{field.name: other})
        assert changed != record and getattr(changed, field.name) == other
        if hasattr(copy, "replace"):
            assert copy.replace(record, **{field.name: other}) == changed
    assert record != dataclasses.astuple(record) and record is not None
    assert record.__eq__(dataclasses.astuple(record)) is NotImplemented
    assert record != type("Derived", (cls,), {})(*dataclasses.astuple(record))
    with pytest.raises(TypeError):
        record < same
    with pytest.raises(TypeError):
        dataclasses.replace(record, nothing=1)


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: type(r).__name__)
def test_copies_and_pickles(record):
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(record, protocol)) == record
    assert copy.deepcopy(record) == record and weakref.ref(record)() is record
    assert type(record).__module__ == "cuda.pathfinder"


@pytest.mark.parametrize("record", [LOADED, HEADERS], ids=lambda r: type(r).__name__)
def test_mutable_records(record):
    record = copy.copy(record)
    record.found_via, record.note = "somewhere", "attributes can be added"
    assert record.found_via == "somewhere" and "note" not in repr(record)
    del record.note
    with pytest.raises(TypeError, match="unhashable"):
        hash(record)


@pytest.mark.parametrize("record", FROZEN, ids=lambda r: type(r).__name__)
def test_frozen_records(record):
    assert hash(record) == hash(copy.copy(record)) == hash(dataclasses.astuple(record))
    assert {record: 1}[copy.copy(record)] == 1
    for change in (
        lambda: setattr(record, "name", "x"),
        lambda: setattr(record, "note", "x"),
        lambda: delattr(record, "name"),
        lambda: delattr(record, "note"),
    ):
        with pytest.raises(dataclasses.FrozenInstanceError, match="cannot (assign to|delete) field '(name|note)'"):
            change()
    assert record.name in ("cudadevrt", "device")


def test_pattern_matching():
    match LOADED:
        case LoadedDL(path, False, handle, found_via="system-search"):
            assert (path, handle) == ("/lib/libcudart.so.13", 12345)
        case _:
            pytest.fail("no match")
    match STATIC:
        case LocatedBitcodeLib():
            pytest.fail("wrong class")
        case LocatedStaticLib("cudadevrt", filename=name):
            assert name == "libcudadevrt.a"


def test_derived_classes():
    @dataclasses.dataclass
    class Mine(LoadedDL):
        note: str = ""

    mine = Mine("/a", True, 1, "conda", note="n")
    assert [f.name for f in dataclasses.fields(Mine)][-2:] == ["found_via", "note"]
    assert repr(mine).endswith("found_via='conda', note='n')")

    @dataclasses.dataclass(frozen=True)
    class Frozen(LocatedStaticLib):
        note: str = ""

    frozen = Frozen("a", "/a", "a", "conda", "n")
    assert hash(frozen) == hash(dataclasses.astuple(frozen))
    with pytest.raises(TypeError, match="frozen"):
        dataclasses.dataclass(type("Loose", (LocatedStaticLib,), {}))

    class Plain(LocatedStaticLib):
        pass

    plain = Plain("a", "/a", "a", "conda")
    plain.note = "as with any class derived from a frozen one"
    with pytest.raises(dataclasses.FrozenInstanceError):
        plain.name = "b"
    del plain.note
    assert repr(plain).startswith("test_derived_classes.<locals>.Plain(name='a'")


@pytest.mark.parametrize("cls", [type(r) for r in RECORDS])
def test_number_of_fields(cls):
    count = len(dataclasses.fields(cls))
    for wrong in (count - 1, count + 1):
        with pytest.raises(TypeError, match="argument"):
            cls(*["x"] * wrong)
    with pytest.raises(TypeError, match="nothing"):
        cls(*["x"] * count, nothing=1)


def test_header_directory_has_its_links_resolved(tmp_path):
    (tmp_path / "real/include").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    for given in (tmp_path / "link/include", f"{tmp_path}/link//include/", f"{tmp_path}/nowhere/../link/./include"):
        assert LocatedHeaderDir(given, "x").abs_path == str(tmp_path / "real/include")
    assert LocatedHeaderDir(None, "x").abs_path is LocatedHeaderDir("", "x").abs_path is None
    assert LocatedHeaderDir("a/b", "x").abs_path == os.path.join(os.getcwd(), "a/b")
    for wrong in (1, b"/usr/include", object()):
        with pytest.raises(TypeError, match="argument 'abs_path' must be a str, a path or None, not"):
            LocatedHeaderDir(wrong, "x")


def test_results_of_searches(forgetful, toolkit):
    forgetful.setenv("CUDA_HOME", str(toolkit))
    forgetful.setenv("CUDNN_PATH", str(toolkit))
    path = str(toolkit / "lib/libnccl_device.bc")
    expected = LocatedBitcodeLib("nccl_device", path, "libnccl_device.bc", "CUDA_PATH")
    assert pathfinder.locate_bitcode_lib("nccl_device") == expected
    found = pathfinder.locate_nvidia_header_directory("cudnn")
    if found.found_via != "site-packages":
        assert found == LocatedHeaderDir(str(toolkit / "include"), "CUDNN_PATH")
        assert pathfinder.find_nvidia_header_directory("cudnn") == found.abs_path
    static = pathfinder.locate_static_lib("cudadevrt")
    assert static.name == "cudadevrt" and static.filename == os.path.basename(static.abs_path) == "libcudadevrt.a"
    assert pathfinder.find_static_lib("cudadevrt") == static.abs_path
    assert type(pathfinder.locate_static_lib(type("Name", (str,), {})("cudadevrt")).name) is str


# Exceptions -----------------------------------------------------------------------------------------------------------

EXCEPTIONS = {
    "DynamicLibNotFoundError": RuntimeError,
    "DynamicLibUnknownError": pathfinder.DynamicLibNotFoundError,
    "DynamicLibNotAvailableError": pathfinder.DynamicLibNotFoundError,
    "BitcodeLibNotFoundError": RuntimeError,
    "StaticLibNotFoundError": RuntimeError,
    "UnsupportedArchError": RuntimeError,
    "UnsupportedBinaryError": ValueError,
}


@pytest.mark.parametrize("name, base", EXCEPTIONS.items())
def test_exception_hierarchy(name, base):
    cls = getattr(pathfinder, name)
    assert cls.__bases__ == (base,) and (cls.__module__, cls.__qualname__) == ("cuda.pathfinder", name)
    error = cls("one")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is cls and again.args == error.args and vars(again) == vars(error)
    with pytest.raises(base):
        raise error

    class Derived(cls):
        pass

    assert isinstance(Derived("two"), cls)


def test_unsupported_interpreter_raises():
    error = pathfinder.UnsupportedArchError("win32")
    assert error.platform_tag == "win32" and "'win32'" in str(error)
    with pytest.raises(TypeError):
        pathfinder.UnsupportedArchError()


def test_missing_library_message(tmp_path):
    code = """
        from cuda import pathfinder
        try:
            pathfinder.load_nvidia_dynamic_lib("cusolverMp")
        except pathfinder.DynamicLibNotFoundError as e:
            assert type(e) is pathfinder.DynamicLibNotFoundError and len(e.args) == 1
            print(e)
    """
    said = run(code, CUDA_PATH=tmp_path / "nowhere", CONDA_PREFIX="relative")
    for words in ("libcusolverMp.so", f"{tmp_path}/nowhere", "CONDA_PREFIX", "pip install", "conda install"):
        assert words in said, said


@pytest.mark.parametrize("content, words", [(b"", "empty"), (b"not a library", "text")])
def test_broken_library_is_not_reported_as_missing(tmp_path, content, words):
    broken = touch(tmp_path / "site-packages/nvidia/nccl/lib/libnccl.so.2", content)
    code = """
        from cuda import pathfinder
        try:
            pathfinder.load_nvidia_dynamic_lib("nccl")
        except RuntimeError as e:
            assert type(e) is RuntimeError and type(e.__cause__) is OSError, repr(e)
            print(e)
    """
    said = run(code, PYTHONPATH=str(tmp_path / "site-packages"))
    assert str(broken) in said and words in said, said


# The bindings without the Python package --------------------------------------------------------------------------

CATCH = """
        import sys
        from cuda.bindings import {module}
        assert not [m for m in sys.modules if "pathfinder" in m]
        try:
            {module}.{call}
            print("found")
        except RuntimeError as e:
            assert not [m for m in sys.modules if "pathfinder" in m]
            import cuda.pathfinder
            print(isinstance(e, cuda.pathfinder.DynamicLibNotFoundError), type(e).__name__, type(e.__cause__).__name__)
            print(e)
"""
NVRTC, DRIVER = CATCH.format(module="nvrtc", call="nvrtcVersion()"), CATCH.format(module="driver", call="cuInit(0)")


def test_bindings_do_not_import_pathfinder():
    code = """
        import sys
        from cuda.bindings import driver, nvrtc
        driver.cuInit(0)
        try:
            nvrtc.nvrtcVersion()
        except RuntimeError:
            pass
        print([m for m in sys.modules if "pathfinder" in m])
    """
    assert run(code) == "[]"


def test_bindings_raise_the_exceptions_of_pathfinder(tmp_path):
    said = run(NVRTC, CUPYRITE_LIB_NVRTC=tmp_path / "nowhere")
    assert said.startswith("True DynamicLibNotFoundError NoneType") and "CUPYRITE_LIB_NVRTC" in said, said
    said = run(DRIVER, CUPYRITE_LIB_CUDA=tmp_path / "nowhere", CUPYRITE_DEVICE="gpu")
    assert said.startswith("True DynamicLibNotFoundError NoneType") and "CUPYRITE_LIB_CUDA" in said, said


def test_bindings_distinguish_broken_from_missing_libraries(tmp_path):
    broken = touch(tmp_path / "libnvrtc.so.13", b"not a library")
    said = run(NVRTC, CUPYRITE_LIB_NVRTC=broken)
    assert said.startswith("False RuntimeError OSError") and str(broken) in said, said


def test_library_loaded_by_the_bindings_counts_as_our_own():
    code = """
        from cuda.bindings import nvrtc
        from cuda import pathfinder
        try:
            nvrtc.nvrtcVersion()
        except pathfinder.DynamicLibNotFoundError:
            print("no NVRTC")
        else:
            loaded = pathfinder.load_nvidia_dynamic_lib("nvrtc")
            print(loaded.was_already_loaded_from_elsewhere, loaded.found_via)
    """
    root = next((p for p in sys.path if os.path.isdir(os.path.join(p, "nvidia"))), "")
    said = run(code, PYTHONPATH=root)
    if said == "no NVRTC":
        pytest.skip(said)
    assert said == "False site-packages"


@bare
def test_bindings_see_packages_installed_later(tmp_path):
    code = f"""
        import sys
        from cuda.bindings import nvrtc
        def ask():
            try:
                nvrtc.nvrtcVersion()
            except RuntimeError as e:
                print({str(tmp_path)!r} in str(e))
        ask()
        sys.path.append({str(tmp_path / "site-packages")!r})
        ask()
    """
    # A made-up library without symbols: it is found, its functions are not.
    shared_object(tmp_path / "site-packages/nvidia/cu13/lib/libnvrtc.so.13", "libnvrtc.so.13")
    said = run(code, options=["-S"], LD_LIBRARY_PATH="")
    assert said.split() == ["False", "True"], said


def test_native_errors_have_the_docstrings_of_their_stub():
    stub = ast.parse(pathlib.Path(cupyrite.__file__).with_name("_native").joinpath("__init__.pyi").read_text())
    errors = [node for node in stub.body if isinstance(node, ast.ClassDef) and node.name in pathfinder.__all__]
    assert len(errors) == 6
    for node in errors:
        assert ast.get_docstring(node) == inspect.getdoc(getattr(pathfinder, node.name)), node.name


def test_constants_are_described():
    body = ast.parse(pathlib.Path(pathfinder.__file__).read_text()).body
    described = [
        before.target.id
        for before, after in itertools.pairwise(body)
        if isinstance(before, ast.AnnAssign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
    ]
    assert sorted(described) == [name for name in pathfinder.__all__ if name.startswith("SUPPORTED")]
