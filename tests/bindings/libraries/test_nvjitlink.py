"""nvJitLink through its own library: successful links, every failure, and invalid arguments."""

import contextlib
import ctypes
import threading

import pytest
from cuda.bindings import nvjitlink
from cuda.bindings.nvjitlink import InputType, Result, nvJitLinkError

from helpers.device_code import ALONE, CALLEE, CALLER, nvrtc_output, or_skip
from helpers.memory import resident
from helpers.programs import python
from helpers.threads import run_all

RELOCATABLE = ("-arch=sm_80", "-rdc=true")
LTO = ("-arch=sm_80", "-rdc=true", "-dlto")


@pytest.fixture
def create():
    """Creates linkers and destroys them after the test."""
    made = []

    def make(*options):
        made.append(nvjitlink.create(len(options), list(options)))
        return made[-1]

    yield make
    for handle in made:
        with contextlib.suppress(nvJitLinkError):
            nvjitlink.destroy(handle)


def add(handle, kind, data, name="input"):
    nvjitlink.add_data(handle, kind, data, len(data), name)


def text(size, get, handle):
    buffer = bytearray(size(handle))
    get(handle, buffer)
    return buffer.rstrip(b"\0").decode()


def output(handle, what):
    buffer = bytearray(getattr(nvjitlink, f"get_linked_{what}_size")(handle))
    assert getattr(nvjitlink, f"get_linked_{what}")(handle, buffer) is None
    return bytes(buffer)


def error_log(handle):
    return text(nvjitlink.get_error_log_size, nvjitlink.get_error_log, handle)


def raises(status, function, *arguments):
    with pytest.raises(nvJitLinkError) as info:
        function(*arguments)
    error = info.value
    assert error.status == status
    assert error.args == (f"{Result(status).name} ({int(status)})",)
    return error


# -------------------------------------------------------------------------------------------------------------
# Function


def test_version():
    major, minor = nvjitlink.version()
    assert type(major) is int
    assert major in (12, 13)
    assert 0 <= minor < 20


def test_two_relocatable_objects_link(create):
    handle = create("-arch=sm_80")
    assert type(handle) is int
    add(handle, InputType.CUBIN, nvrtc_output(CALLER, "CUBIN", *RELOCATABLE), "caller")
    add(handle, InputType.PTX, nvrtc_output(CALLEE, "PTX", *RELOCATABLE), "callee")
    assert nvjitlink.complete(handle) is None
    cubin = output(handle, "cubin")
    assert cubin.startswith(b"\x7fELF")
    assert b"kernel" in cubin
    assert error_log(handle) == ""
    assert nvjitlink.destroy(handle) is None


def test_object_from_a_file_links(create, tmp_path):
    file = tmp_path / "callee.cubin"
    file.write_bytes(nvrtc_output(CALLEE, "CUBIN", *RELOCATABLE))
    for kind in (InputType.CUBIN, InputType.ANY):
        handle = create("-arch=sm_80")
        add(handle, InputType.CUBIN, nvrtc_output(CALLER, "CUBIN", *RELOCATABLE))
        nvjitlink.add_file(handle, kind, str(file))
        nvjitlink.complete(handle)
        assert output(handle, "cubin").startswith(b"\x7fELF")


@pytest.fixture
def lto(create):
    def make(*options):
        handle = create("-arch=sm_80", "-lto", *options)
        add(handle, InputType.LTOIR, nvrtc_output(CALLER, "LTOIR", *LTO), "caller")
        add(handle, InputType.LTOIR, nvrtc_output(CALLEE, "LTOIR", *LTO), "callee")
        nvjitlink.complete(handle)
        return handle

    return make


def test_lto_to_ptx(lto):
    handle = lto("-ptx", "-verbose")
    ptx = output(handle, "ptx").rstrip(b"\0").decode()
    assert ".target sm_80" in ptx
    # The call is inlined: both inputs were compiled together.
    assert ".entry kernel" in ptx
    assert "call" not in ptx
    # Some releases write to the info log, others do not.
    assert type(text(nvjitlink.get_info_log_size, nvjitlink.get_info_log, handle)) is str


def test_lto_to_cubin(lto):
    assert output(lto(), "cubin").startswith(b"\x7fELF")


def test_lto_to_ltoir(lto):
    handle = lto("-kernels-used=kernel")
    size = or_skip(nvjitlink.get_linked_ltoir_size, handle)
    assert len(output(handle, "ltoir")) == size > 100


# -------------------------------------------------------------------------------------------------------------
# Failures


def test_unknown_option_is_refused():
    error = raises(Result.ERROR_UNRECOGNIZED_OPTION, nvjitlink.create, 1, ["-foo"])
    assert error.log == ""


def test_missing_architecture_is_refused():
    raises(Result.ERROR_MISSING_ARCH, nvjitlink.create, 1, ["-lto"])


def test_undefined_symbol_is_named_in_the_log(create):
    handle = create("-arch=sm_80")
    add(handle, InputType.CUBIN, nvrtc_output(CALLER, "CUBIN", *RELOCATABLE), "caller")
    with pytest.raises(nvJitLinkError) as info:
        nvjitlink.complete(handle)
    error = info.value
    assert "next" in error.log
    assert error.log == error_log(handle).rstrip()
    assert error.__notes__ == [error.log, "in complete(), which calls nvJitLinkComplete"]
    assert str(error) == f"{Result(error.status).name} ({error.status})"


def test_unsupported_input_is_named_in_the_log(create):
    handle = create("-arch=sm_80")
    error = raises(Result.ERROR_INCORRECT_INPUT_TYPE, nvjitlink.add_data, handle, 99, b"abc", 3, "some-name")
    assert "some-name" in error.log


def test_invalid_inputs_are_refused(create):
    nvrtc_output(ALONE, "CUBIN", "-arch=sm_80")
    ltoir = nvrtc_output(CALLEE, "LTOIR", *LTO)
    raises(Result.ERROR_LTO_NOT_ENABLED, add, create("-arch=sm_80"), InputType.LTOIR, ltoir)
    raises(Result.ERROR_INVALID_INPUT, nvjitlink.add_data, create("-arch=sm_80"), InputType.CUBIN, None, 0, "x")
    raises(Result.ERROR_INVALID_INPUT, nvjitlink.add_file, create("-arch=sm_80"), InputType.CUBIN, "/no/such/file")


def test_input_for_another_architecture_is_refused():
    # In another process: after this failure nvJitLink 13.5 keeps a lock that other threads need.
    code = """
import sys
from cuda.bindings import nvjitlink
from helpers.device_code import CALLEE, nvrtc_output
cubin = nvrtc_output(CALLEE, "CUBIN", "-arch=sm_80", "-rdc=true")
handle = nvjitlink.create(1, ["-arch=sm_90"])
try:
    nvjitlink.add_data(handle, nvjitlink.InputType.CUBIN, cubin, len(cubin), "x")
except nvjitlink.nvJitLinkError as error:
    print(error)
"""
    done = python(code)
    assert (done.stdout, done.returncode) == ("ERROR_INVALID_INPUT (3)\n", 0), done.stderr


def test_calls_in_the_wrong_order_are_refused(create):
    handle = create("-arch=sm_80")
    add(handle, InputType.CUBIN, nvrtc_output(ALONE, "CUBIN", "-arch=sm_80"))
    nvjitlink.complete(handle)
    raises(Result.ERROR_INTERNAL, nvjitlink.complete, handle)
    with pytest.raises(nvJitLinkError):
        nvjitlink.get_linked_ptx_size(handle)


def test_destroyed_handles_are_refused(create):
    handle = create("-arch=sm_80")
    nvjitlink.destroy(handle)
    for wrong in (handle, handle + 8, 0, -1, 1, 4096, 2**63 - 1, -(2**63)):
        for function in (
            nvjitlink.destroy,
            nvjitlink.complete,
            nvjitlink.get_error_log_size,
            nvjitlink.get_linked_cubin_size,
        ):
            error = raises(Result.ERROR_NULL_INPUT, function, wrong)
            assert error.__notes__
        raises(Result.ERROR_NULL_INPUT, nvjitlink.add_data, wrong, InputType.PTX, b"x", 1, "x")
        raises(Result.ERROR_NULL_INPUT, nvjitlink.get_linked_cubin, wrong, bytearray(8))
    # The address may be reused by another handle.
    again = create("-arch=sm_80")
    assert nvjitlink.get_error_log_size(again) >= 0


# -------------------------------------------------------------------------------------------------------------
# Arguments


class Index:
    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


def test_handle_arguments(create):
    handle = create("-arch=sm_80")
    assert nvjitlink.get_error_log_size(Index(handle)) == nvjitlink.get_error_log_size(handle=handle)
    for wrong in (None, "x", b"x", [], 1.0, float(handle), object()):
        with pytest.raises(TypeError, match="'handle'"):
            nvjitlink.get_error_log_size(wrong)
    for wrong in (2**63, 2**64, -(2**63) - 1):
        with pytest.raises(OverflowError, match="'handle'"):
            nvjitlink.get_error_log_size(wrong)


@pytest.mark.parametrize(
    "options, error",
    [
        (None, TypeError),
        ("-arch=sm_80", TypeError),
        (b"-arch=sm_80", TypeError),
        ([None], TypeError),
        ([1], TypeError),
        ((option for option in ["-arch=sm_80"]), TypeError),
        ({"-arch=sm_80"}, TypeError),
        (1.5, TypeError),
        (["-arch=sm_80\0"], ValueError),
        (["-arch=\udc80"], UnicodeEncodeError),
        ([], ValueError),
        (4096, ValueError),
        (-1, ValueError),
        (2**64, OverflowError),
    ],
)
def test_wrong_options_raise(options, error):
    with pytest.raises(error):
        nvjitlink.create(1, options)


def test_options_in_other_forms(create):
    class Text(str):
        pass

    array = (ctypes.c_char_p * 2)(b"-arch=sm_80", b"-lto")
    for options in (
        ["-arch=sm_80"],
        ("-arch=sm_80",),
        [b"-arch=sm_80"],
        [Text("-arch=sm_80")],
        ctypes.addressof(array),
    ):
        nvjitlink.destroy(nvjitlink.create(1, options))
    nvjitlink.destroy(nvjitlink.create(1, ["-arch=sm_80", "-not-looked-at"]))
    nvjitlink.destroy(nvjitlink.create(num_options=2, options=ctypes.addressof(array)))
    wild = (ctypes.c_void_p * 1)(77)
    with pytest.raises(ValueError, match="string"):
        nvjitlink.create(1, ctypes.addressof(wild))


@pytest.mark.parametrize(
    "count, error", [(-1, OverflowError), (2**32, OverflowError), ("1", TypeError), (None, TypeError)]
)
def test_wrong_counts_raise(count, error):
    with pytest.raises(error, match="'num_options'"):
        nvjitlink.create(count, ["-arch=sm_80"])


def test_wrong_numbers_of_arguments_raise():
    for arguments in ((), (1,), (1, [], 3)):
        with pytest.raises(TypeError, match="create"):
            nvjitlink.create(*arguments)
    with pytest.raises(TypeError, match="foo"):
        nvjitlink.create(1, [], foo=2)


def test_input_buffers(create):
    ptx = nvrtc_output(CALLEE, "PTX", *RELOCATABLE)
    handle = create("-arch=sm_80")
    storage = ctypes.create_string_buffer(ptx, len(ptx))
    for data in (ptx, bytearray(ptx), memoryview(ptx), storage, ctypes.addressof(storage)):
        nvjitlink.add_data(create("-arch=sm_80"), InputType.PTX, data, len(ptx), "x")
    for data in ("text", [1], 1.5, object(), memoryview(ptx)[::2]):
        with pytest.raises(ValueError, match="'data'"):
            nvjitlink.add_data(handle, InputType.PTX, data, len(ptx), "x")
    for size in (0, len(ptx) - 1, len(ptx) + 1, 10**15):
        with pytest.raises(ValueError, match="size"):
            nvjitlink.add_data(handle, InputType.PTX, ptx, size, "x")
    for address in (8, 4096, -1):
        with pytest.raises(ValueError, match="no memory"):
            nvjitlink.add_data(handle, InputType.PTX, address, 10, "x")
    with pytest.raises(OverflowError, match="'size'"):
        nvjitlink.add_data(handle, InputType.PTX, ptx, -1, "x")
    for name, error in (
        (None, TypeError),
        (b"x", TypeError),
        (5, TypeError),
        ("a\0b", ValueError),
        ("\udc80", UnicodeEncodeError),
    ):
        with pytest.raises(error):
            nvjitlink.add_data(handle, InputType.PTX, ptx, len(ptx), name)


def test_output_buffers(create):
    handle = create("-arch=sm_80")
    add(handle, InputType.CUBIN, nvrtc_output(ALONE, "CUBIN", "-arch=sm_80"))
    nvjitlink.complete(handle)
    size = nvjitlink.get_linked_cubin_size(handle)
    storage = ctypes.create_string_buffer(size)
    larger = bytearray(b"x" * (size + 3))
    flat = bytearray(size)
    for buffer in (storage, larger, memoryview(flat).cast("B", (size // 8, 8)), ctypes.addressof(storage)):
        assert nvjitlink.get_linked_cubin(handle, buffer) is None
    assert bytes(storage) == bytes(flat) == bytes(larger[:size])
    assert larger[size:] == b"xxx"
    for wrong in (
        bytes(size),
        memoryview(bytes(size)),
        memoryview(bytearray(2 * size))[::2],
        "x" * size,
        [0] * size,
        1.5,
    ):
        with pytest.raises(ValueError, match="'cubin'"):
            nvjitlink.get_linked_cubin(handle, wrong)
    for short in (0, 1, size - 1):
        with pytest.raises(ValueError, match=str(size)):
            nvjitlink.get_linked_cubin(handle, bytearray(short))
    for address in (8, 4096, -1):
        with pytest.raises(ValueError, match="no memory"):
            nvjitlink.get_linked_cubin(handle, address)
    raises(Result.ERROR_NULL_INPUT, nvjitlink.get_linked_cubin, handle, None)


# -------------------------------------------------------------------------------------------------------------
# Repetition, threads, exit


def test_repeated_creation_does_not_leak():
    def some(count):
        for _ in range(count):
            nvjitlink.destroy(nvjitlink.create(1, ["-arch=sm_80"]))

    some(2000)
    before = resident()
    some(20_000)
    assert resident() - before < 4 << 20


def test_repeated_failures_do_not_leak(create):
    handle = create("-arch=sm_80")

    def some(count):
        for _ in range(count):
            for function, arguments in ((nvjitlink.complete, (0,)), (nvjitlink.get_linked_ptx_size, (4096,))):
                try:
                    function(*arguments)
                except nvJitLinkError as error:
                    assert error.status
            with contextlib.suppress(ValueError):
                nvjitlink.add_data(handle, 2, b"abc", 4, "x")

    some(2000)
    before = resident()
    some(20_000)
    assert resident() - before < 4 << 20


def test_threads_with_their_own_linkers():
    cubins, failures = [], []

    def work():
        try:
            for _ in range(4):
                handle = nvjitlink.create(1, ["-arch=sm_80"])
                add(handle, InputType.CUBIN, nvrtc_output(CALLER, "CUBIN", *RELOCATABLE))
                add(handle, InputType.CUBIN, nvrtc_output(CALLEE, "CUBIN", *RELOCATABLE))
                nvjitlink.complete(handle)
                cubins.append(output(handle, "cubin"))
                nvjitlink.destroy(handle)
        except BaseException as error:
            failures.append(error)
            raise

    nvrtc_output(CALLER, "CUBIN", *RELOCATABLE)
    nvrtc_output(CALLEE, "CUBIN", *RELOCATABLE)
    threads = [threading.Thread(target=work) for _ in range(8)]
    run_all(threads)
    assert not failures
    assert len(cubins) == 32
    assert len({len(cubin) for cubin in cubins}) == 1


def test_threads_with_one_linker():
    """One thread destroys it while the others use it: they get errors.

    In another process, which may crash: nvJitLink keeps state of the thread that created a linker until it has linked,
    so other threads are refused until then.
    """
    code = """
import threading
from cuda.bindings import nvjitlink
from cuda.bindings.nvjitlink import nvJitLinkError
from helpers.device_code import ALONE, nvrtc_output
cubin = nvrtc_output(ALONE, "CUBIN", "-arch=sm_80")
statuses = set()
for turn in range(20):
    handle = nvjitlink.create(1, ["-arch=sm_80"])
    nvjitlink.add_data(handle, nvjitlink.InputType.CUBIN, cubin, len(cubin), "x")
    if turn % 2:
        nvjitlink.complete(handle)
    barrier = threading.Barrier(8)

    def work(number):
        barrier.wait()
        for _ in range(50):
            try:
                if number == 0:
                    nvjitlink.complete(handle)
                elif number == 1:
                    nvjitlink.destroy(handle)
                else:
                    nvjitlink.get_linked_cubin(handle, bytearray(nvjitlink.get_linked_cubin_size(handle)))
            except nvJitLinkError as error:
                statuses.add(int(error.status))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print({int(nvjitlink.Result.ERROR_NULL_INPUT), int(nvjitlink.Result.ERROR_INTERNAL)} <= statuses)
handle = nvjitlink.create(1, ["-arch=sm_80"])
nvjitlink.add_data(handle, nvjitlink.InputType.CUBIN, cubin, len(cubin), "x")
nvjitlink.complete(handle)
print(nvjitlink.get_linked_cubin_size(handle) > 0)
"""
    done = python(code)
    assert (done.stdout, done.returncode) == ("True\nTrue\n", 0), done.stderr


def test_interpreter_exits_during_calls():
    code = """
import threading
from cuda.bindings import nvjitlink
def work():
    while True:
        nvjitlink.destroy(nvjitlink.create(1, ["-arch=sm_80"]))
started = [threading.Thread(target=work, daemon=True) for _ in range(4)]
for thread in started:
    thread.start()
handle = nvjitlink.create(1, ["-arch=sm_80"])
print("end")
"""
    for _ in range(3):
        done = python(code)
        assert (done.stdout, done.returncode) == ("end\n", 0), done.stderr


def test_missing_library_raises():
    code = """
import os
os.environ["CUPYRITE_LIB_NVJITLINK"] = "/no/such/library.so"
from cuda.bindings import nvjitlink
from cuda.pathfinder import DynamicLibNotFoundError
try:
    nvjitlink.version()
except DynamicLibNotFoundError:
    print("not found")
print(int(nvjitlink.Result.SUCCESS), nvjitlink.nvJitLinkError(1))
"""
    done = python(code)
    assert (done.stdout, done.returncode) == ("not found\n0 ERROR_UNRECOGNIZED_OPTION (1)\n", 0), done.stderr
