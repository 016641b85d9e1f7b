"""nvFatbin through its own library: fat binaries of several architectures, read back by nvJitLink, and invalid
arguments.
"""

import contextlib
import ctypes
import threading

import pytest
from cuda.bindings import nvfatbin, nvjitlink
from cuda.bindings.nvfatbin import Result, nvFatbinError

from helpers.device_code import ALONE, CALLEE, nvrtc_output
from helpers.memory import resident
from helpers.programs import python
from helpers.threads import run_all

MAGIC = b"\x50\xed\x55\xba"


@pytest.fixture
def create():
    """Creates fat binaries and destroys them after the test."""
    made = []

    def make(*options):
        made.append(nvfatbin.create(list(options), len(options)))
        return made[-1]

    yield make
    for handle in made:
        with contextlib.suppress(nvFatbinError):
            nvfatbin.destroy(handle)


def cubin(arch="80"):
    return nvrtc_output(ALONE, "CUBIN", f"-arch=sm_{arch}")


def ptx(arch="80"):
    return nvrtc_output(ALONE, "PTX", f"-arch=compute_{arch}")


def raises(status, function, *arguments):
    with pytest.raises(nvFatbinError) as info:
        function(*arguments)
    error = info.value
    assert error.status == status
    assert error.args == (f"{Result(status).name} ({int(status)})",)
    assert error.log == ""
    return error


def finished(handle):
    buffer = bytearray(nvfatbin.size(handle))
    assert nvfatbin.get(handle, buffer) is None
    return bytes(buffer)


# -------------------------------------------------------------------------------------------------------------
# Function


def test_version():
    major, minor = nvfatbin.version()
    assert major in (12, 13)
    assert minor >= 0


def test_error_strings():
    assert type(nvfatbin.get_error_string(Result.ERROR_ELF_SIZE_MISMATCH)) is str
    assert type(nvfatbin.get_error_string(99)) is str


def test_several_architectures_read_back(create):
    handle = create()
    assert type(handle) is int
    for arch in ("80", "90"):
        data = cubin(arch)
        assert nvfatbin.add_cubin(handle, data, len(data), arch, f"cubin-{arch}") is None
    text = ptx("90")
    nvfatbin.add_ptx(handle, text, len(text), "90", "ptx", "")
    ltoir = nvrtc_output(CALLEE, "LTOIR", "-arch=sm_80", "-rdc=true", "-dlto")
    nvfatbin.add_ltoir(handle, ltoir, len(ltoir), "80", "ltoir", "")
    fatbin = finished(handle)
    assert fatbin.startswith(MAGIC)
    assert len(fatbin) == nvfatbin.size(handle)
    assert nvfatbin.destroy(handle) is None
    for arch in ("80", "90"):
        linker = nvjitlink.create(1, [f"-arch=sm_{arch}"])
        nvjitlink.add_data(linker, nvjitlink.InputType.FATBIN, fatbin, len(fatbin), "fatbin")
        nvjitlink.complete(linker)
        linked = bytearray(nvjitlink.get_linked_cubin_size(linker))
        nvjitlink.get_linked_cubin(linker, linked)
        assert linked.startswith(b"\x7fELF")
        nvjitlink.destroy(linker)


def test_compressed_is_not_larger(create):
    sizes = []
    for options in (["-compress=false"], ["-compress=true"]):
        handle = create(*options)
        data = cubin()
        nvfatbin.add_cubin(handle, data, len(data), "80", "x")
        sizes.append(len(finished(handle)))
    # Some releases leave small inputs uncompressed.
    assert sizes[1] <= sizes[0]


def test_empty_fat_binary(create):
    assert nvfatbin.size(create()) == 16


# -------------------------------------------------------------------------------------------------------------
# Failures


def test_unknown_option_is_refused():
    raises(Result.ERROR_UNRECOGNIZED_OPTION, nvfatbin.create, ["-foo"], 1)


def test_invalid_inputs_are_refused(create):
    data, text = cubin(), ptx()
    raises(Result.ERROR_INVALID_ARCH, nvfatbin.add_cubin, create(), data, len(data), "sm_80", "x")
    raises(Result.ERROR_ELF_ARCH_MISMATCH, nvfatbin.add_cubin, create(), data, len(data), "90", "x")
    raises(Result.ERROR_ELF_SIZE_MISMATCH, nvfatbin.add_cubin, create(), b"garbage", 7, "80", "x")
    raises(Result.ERROR_MISSING_PTX_VERSION, nvfatbin.add_ptx, create(), b"garbage\0", 8, "80", "x", "")
    raises(Result.ERROR_INVALID_NVVM, nvfatbin.add_ltoir, create(), b"garbage", 7, "80", "x", "")
    with pytest.raises(nvFatbinError):
        nvfatbin.add_index(create(), b"garbage", 7, "x")
    with pytest.raises(nvFatbinError):
        nvfatbin.add_reloc(create(), b"garbage", 7)
    # PTX may lack its NUL.
    nvfatbin.add_ptx(create(), text.rstrip(b"\0"), len(text.rstrip(b"\0")), "80", "x", "")


def test_destroyed_handles_are_refused(create):
    handle = create()
    nvfatbin.destroy(handle)
    for wrong in (handle, handle + 16, 0, -1, 4096, 2**63 - 1):
        for function in (nvfatbin.destroy, nvfatbin.size):
            assert raises(Result.ERROR_NULL_POINTER, function, wrong).__notes__
        raises(Result.ERROR_NULL_POINTER, nvfatbin.get, wrong, bytearray(8))
        raises(Result.ERROR_NULL_POINTER, nvfatbin.add_reloc, wrong, b"x", 1)


# -------------------------------------------------------------------------------------------------------------
# Arguments


@pytest.mark.parametrize(
    "options, count, error",
    [
        (None, 0, TypeError),
        ("-64", 1, TypeError),
        ([1], 1, TypeError),
        (["-64"], 2, ValueError),
        (["-64\0"], 1, ValueError),
        (4096, 1, ValueError),
        ([], -1, OverflowError),
        ([], "0", TypeError),
    ],
)
def test_wrong_options_raise(options, count, error):
    with pytest.raises(error):
        nvfatbin.create(options, count)


def test_options_in_other_forms():
    array = (ctypes.c_char_p * 1)(b"-64")
    for options, count in ((["-64"], 1), ((b"-64",), 1), (ctypes.addressof(array), 1), (0, 0), (["-64", "-foo"], 1)):
        handle = nvfatbin.create(options, count)
        assert nvfatbin.size(handle) == 16  # a header without members
        nvfatbin.destroy(handle)


def test_wrong_arguments_raise(create):
    handle, data = create(), cubin()
    for size in (0, len(data) - 1, len(data) + 1):
        with pytest.raises(ValueError, match="'code'"):
            nvfatbin.add_cubin(handle, data, size, "80", "x")
    for code in ("text", 1.5, 8, memoryview(data)[::2]):
        with pytest.raises(ValueError, match="'code'"):
            nvfatbin.add_cubin(handle, code, len(data), "80", "x")
    for arch in (None, b"80", 80):
        with pytest.raises(TypeError, match="'arch'"):
            nvfatbin.add_cubin(handle, data, len(data), arch, "x")
    with pytest.raises(TypeError, match="'identifier'"):
        nvfatbin.add_cubin(handle, data, len(data), "80", None)
    with pytest.raises(TypeError, match="'options_cmd_line'"):
        nvfatbin.add_ptx(handle, ptx(), len(ptx()), "80", "x", None)
    nvfatbin.add_cubin(handle, data, len(data), "80", "x")
    size = nvfatbin.size(handle)
    for buffer in (bytes(size), bytearray(size - 1), bytearray(0), "x", 8, -1):
        with pytest.raises(ValueError, match="'buffer'"):
            nvfatbin.get(handle, buffer)
    larger = bytearray(b"#" * (size + 2))
    nvfatbin.get(handle, larger)
    assert larger.startswith(MAGIC)
    assert larger[size:] == b"##"


# -------------------------------------------------------------------------------------------------------------
# Repetition, threads, exit


def test_repeated_creation_does_not_leak():
    def some(count):
        for _ in range(count):
            nvfatbin.destroy(nvfatbin.create([], 0))

    some(10_000)
    before = resident()
    some(1_000_000)
    assert resident() - before < 4 << 20


def test_threads_with_their_own_handles():
    results, failures = [], []
    data = cubin()

    def work():
        try:
            for _ in range(50):
                handle = nvfatbin.create([], 0)
                nvfatbin.add_cubin(handle, data, len(data), "80", "x")
                results.append(finished(handle))
                nvfatbin.destroy(handle)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work) for _ in range(8)]
    run_all(threads)
    assert not failures
    assert len(results) == 400
    assert len({len(result) for result in results}) == 1


def test_interpreter_exits_during_calls():
    code = """
import threading
from cuda.bindings import nvfatbin
def work():
    while True:
        nvfatbin.destroy(nvfatbin.create([], 0))
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
nvfatbin.create([], 0)
print("end")
"""
    for _ in range(5):
        done = python(code)
        assert (done.stdout, done.returncode) == ("end\n", 0), done.stderr
