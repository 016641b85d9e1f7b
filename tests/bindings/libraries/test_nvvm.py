"""NVVM through its own library: IR as text and bitcode to PTX and LTO IR, logs, and invalid arguments."""

import contextlib
import ctypes
import pathlib
import threading

import pytest
from cuda.bindings import nvjitlink, nvvm
from cuda.bindings.nvvm import Result, nvvmError

from helpers.device_code import SINE, STORE_SEVEN, nvvm_ir, or_skip
from helpers.memory import resident
from helpers.programs import python
from helpers.threads import run_all


@pytest.fixture
def program():
    """Creates programs from modules and destroys them after the test."""
    made = []

    def make(*modules):
        made.append(nvvm.create_program())
        for number, module in enumerate(modules):
            nvvm.add_module_to_program(made[-1], module, len(module), f"module-{number}")
        return made[-1]

    yield make
    for handle in made:
        with contextlib.suppress(nvvmError):
            nvvm.destroy_program(handle)


def seven():
    return nvvm_ir(STORE_SEVEN, nvvm.ir_version())


def compiled(handle, *options):
    assert nvvm.compile_program(handle, len(options), list(options)) is None
    buffer = bytearray(nvvm.get_compiled_result_size(handle))
    assert nvvm.get_compiled_result(handle, buffer) is None
    return bytes(buffer)


def log(handle):
    buffer = bytearray(nvvm.get_program_log_size(handle))
    nvvm.get_program_log(handle, buffer)
    assert buffer.endswith(b"\0")
    return buffer[:-1].decode()


def raises(status, function, *arguments):
    with pytest.raises(nvvmError) as info:
        function(*arguments)
    error = info.value
    assert error.status == status
    assert error.args == (f"{Result(status).name} ({int(status)})",)
    return error


# -------------------------------------------------------------------------------------------------------------
# Function


def test_versions():
    assert nvvm.version() >= (2, 0)
    version = nvvm.ir_version()
    assert len(version) == 4
    assert all(type(number) is int for number in version)


def test_llvm_version():
    old = or_skip(nvvm.llvm_version, "compute_80")
    assert type(old) is int
    assert nvvm.llvm_version("compute_100") >= old >= 7


def test_error_strings():
    assert nvvm.get_error_string(Result.ERROR_COMPILATION) == "NVVM_ERROR_COMPILATION"
    assert nvvm.get_error_string(3) == "NVVM_ERROR_IR_VERSION_MISMATCH"
    assert type(nvvm.get_error_string(99)) is str


def test_text_compiles_to_ptx(program):
    handle = program(seven())
    assert type(handle) is int
    assert nvvm.verify_program(handle, 0, []) is None
    ptx = compiled(handle, "-arch=compute_80").rstrip(b"\0").decode()
    assert ".target sm_80" in ptx
    assert ".visible .entry kernel" in ptx
    assert log(handle) == ""
    assert nvvm.destroy_program(handle) is None


def test_text_compiles_to_linkable_lto_ir(program):
    ltoir = compiled(program(seven()), "-arch=compute_80", "-gen-lto")
    assert ltoir[:4] != b"//\n/"
    linker = nvjitlink.create(2, ["-arch=sm_80", "-lto"])
    nvjitlink.add_data(linker, nvjitlink.InputType.LTOIR, ltoir, len(ltoir), "ltoir")
    nvjitlink.complete(linker)
    assert nvjitlink.get_linked_cubin_size(linker) > 500
    nvjitlink.destroy(linker)


def test_libdevice_is_linked(program):
    """A sine: the text calls a function of libdevice, which is bitcode."""
    bitcode = pathlib.Path(libdevice()).read_bytes()
    assert bitcode.startswith(b"BC")
    handle = program(nvvm_ir(SINE, nvvm.ir_version()))
    nvvm.lazy_add_module_to_program(handle, bitcode, len(bitcode), "libdevice")
    ptx = compiled(handle, "-arch=compute_80", "-ftz=1").rstrip(b"\0").decode()
    assert ".entry kernel" in ptx
    # The whole sine is included, and nothing else of libdevice.
    assert "__nv_sin" not in ptx.replace("__internal", "")
    assert len(ptx) < 100_000


def libdevice():
    from cuda import pathfinder

    return pathfinder.find_bitcode_lib("device")


# -------------------------------------------------------------------------------------------------------------
# Failures


def test_log_is_part_of_the_exception(program):
    handle = program(b"garbage")
    error = raises(Result.ERROR_COMPILATION, nvvm.compile_program, handle, 0, [])
    assert "module-0" in error.log
    assert error.log == log(handle)
    assert error.__notes__ == [error.log, "in compile_program(), which calls nvvmCompileProgram"]
    assert str(error) == "ERROR_COMPILATION (9)"
    error = raises(Result.ERROR_INVALID_IR, nvvm.verify_program, handle, 0, [])
    assert error.log


def test_unknown_option_is_named_in_the_log(program):
    error = raises(Result.ERROR_INVALID_OPTION, nvvm.compile_program, program(seven()), 1, ["-foo"])
    assert "-foo" in error.log


def test_program_without_a_module_is_refused(program):
    raises(Result.ERROR_NO_MODULE_IN_PROGRAM, nvvm.compile_program, program(), 0, [])
    assert nvvm.get_compiled_result_size(program(seven())) <= 1


def test_invalid_modules_are_refused(program):
    handle = program()
    # Some releases refuse an empty module at once, others at compilation.
    with pytest.raises(nvvmError) as info:
        nvvm.add_module_to_program(handle, b"", 0, "x")
        nvvm.compile_program(handle, 0, [])
    wanted = (Result.ERROR_INVALID_INPUT, Result.ERROR_COMPILATION, Result.ERROR_IR_VERSION_MISMATCH)
    assert info.value.status in wanted
    for size in (0, 1):
        raises(Result.ERROR_INVALID_INPUT, nvvm.add_module_to_program, program(), None, size, "x")
    raises(Result.ERROR_INVALID_INPUT, nvvm.get_compiled_result, program(), None)


def test_unknown_architecture_is_refused():
    or_skip(nvvm.llvm_version, "compute_80")
    raises(Result.ERROR_INVALID_INPUT, nvvm.llvm_version, "bogus")


def test_destroyed_handles_are_refused(program):
    handle = program()
    nvvm.destroy_program(handle)
    for wrong in (handle, handle + 16, 0, -1, 4096, 2**63 - 1):
        for function in (nvvm.destroy_program, nvvm.get_program_log_size, nvvm.get_compiled_result_size):
            error = raises(Result.ERROR_INVALID_PROGRAM, function, wrong)
            assert error.__notes__
        raises(Result.ERROR_INVALID_PROGRAM, nvvm.compile_program, wrong, 0, [])
        raises(Result.ERROR_INVALID_PROGRAM, nvvm.get_program_log, wrong, bytearray(8))
    # A handle of another library is not a program.
    linker = nvjitlink.create(1, ["-arch=sm_80"])
    raises(Result.ERROR_INVALID_PROGRAM, nvvm.get_program_log_size, linker)
    nvjitlink.destroy(linker)


# -------------------------------------------------------------------------------------------------------------
# Arguments


@pytest.mark.parametrize(
    "count, options, error",
    [
        (0, None, TypeError),
        (1, "-arch=compute_80", TypeError),
        (1, [None], TypeError),
        (1, [5], TypeError),
        (2, ["-arch=compute_80"], ValueError),
        (1, ["-arch=\0"], ValueError),
        (1, 4096, ValueError),
        (2**31, [], OverflowError),
        ("1", [], TypeError),
        (None, [], TypeError),
    ],
)
def test_wrong_options_raise(program, count, options, error):
    handle = program(seven())
    for function in (nvvm.compile_program, nvvm.verify_program):
        with pytest.raises(error):
            function(handle, count, options)


def test_options_in_other_forms(program):
    array = (ctypes.c_char_p * 1)(b"-arch=compute_80")
    for options in (["-arch=compute_80"], (b"-arch=compute_80",), ctypes.addressof(array)):
        nvvm.compile_program(program(seven()), 1, options)
    nvvm.compile_program(program(seven()), 0, 0)
    nvvm.compile_program(program(seven()), 1, ["-arch=compute_80", "-not-looked-at"])
    nvvm.compile_program(program(seven()), 1.0, ["-arch=compute_80"])
    raises(Result.ERROR_INVALID_OPTION, nvvm.compile_program, program(seven()), -1, ["-arch=compute_80"])


def test_buffer_arguments(program):
    handle, module = program(), seven()
    storage = ctypes.create_string_buffer(module, len(module))
    for data in (bytearray(module), memoryview(module), storage, ctypes.addressof(storage)):
        nvvm.add_module_to_program(handle, data, len(module), "x")
    for data, size in (
        (module.decode(), len(module)),
        (module, len(module) - 1),
        (b"abc", 10),
        (b"abc", 0),
        (1.5, 1),
        (8, 10),
    ):
        with pytest.raises(ValueError, match="'buffer'"):
            nvvm.add_module_to_program(handle, data, size, "x")
    for name in (None, b"x", 1):
        with pytest.raises(TypeError, match="'name'"):
            nvvm.add_module_to_program(handle, module, len(module), name)
    for arch in (None, b"compute_80", 80):
        with pytest.raises(TypeError, match="'arch'"):
            nvvm.llvm_version(arch)
    done = program(module)
    ptx = compiled(done, "-arch=compute_80")
    for short in (b"", bytearray(len(ptx) - 1), bytes(len(ptx)), memoryview(bytearray(2 * len(ptx)))[::2], "x", 8, -1):
        with pytest.raises(ValueError, match="'buffer'"):
            nvvm.get_compiled_result(done, short)
    larger = bytearray(b"#" * (len(ptx) + 2))
    nvvm.get_compiled_result(done, larger)
    assert larger == ptx + b"##"


# -------------------------------------------------------------------------------------------------------------
# Repetition, threads, exit


def test_repeated_creation_does_not_leak():
    def some(count):
        for _ in range(count):
            nvvm.destroy_program(nvvm.create_program())

    some(10_000)
    before = resident()
    some(1_000_000)
    assert resident() - before < 4 << 20


def test_repeated_failures_do_not_leak(program):
    handle = program(b"garbage")

    def some(count):
        for _ in range(count):
            try:
                nvvm.destroy_program(4096)
            except nvvmError as error:
                assert error.__notes__
            with contextlib.suppress(ValueError):
                nvvm.get_program_log(handle, bytearray(0))

    some(2000)
    before = resident()
    some(50_000)
    assert resident() - before < 4 << 20


def test_threads_with_their_own_programs():
    results, failures = [], []
    module = seven()

    def work():
        try:
            for _ in range(10):
                handle = nvvm.create_program()
                nvvm.add_module_to_program(handle, module, len(module), "x")
                results.append(compiled(handle, "-arch=compute_80"))
                nvvm.destroy_program(handle)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work) for _ in range(8)]
    run_all(threads)
    assert not failures
    assert len(results) == 80
    assert len(set(results)) == 1


def test_threads_with_one_program():
    """One thread destroys it while the others use it."""
    module, statuses = seven(), set()
    for _ in range(10):
        handle = nvvm.create_program()
        nvvm.add_module_to_program(handle, module, len(module), "x")
        barrier = threading.Barrier(8)

        def work(number):
            barrier.wait()
            for _ in range(20):
                try:
                    if number == 0:
                        nvvm.destroy_program(handle)
                    elif number < 4:
                        nvvm.compile_program(handle, 1, ["-arch=compute_80"])
                    else:
                        nvvm.get_program_log(handle, bytearray(nvvm.get_program_log_size(handle)))
                except nvvmError as error:
                    statuses.add(error.status)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        run_all(threads)
    assert Result.ERROR_INVALID_PROGRAM in statuses


def test_interpreter_exits_during_calls():
    code = f"""
import threading
from cuda.bindings import nvvm
module = {seven()!r}
def work():
    while True:
        handle = nvvm.create_program()
        nvvm.add_module_to_program(handle, module, len(module), "x")
        nvvm.compile_program(handle, 0, [])
        nvvm.destroy_program(handle)
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
nvvm.create_program()
print("end")
"""
    for _ in range(5):
        done = python(code)
        assert (done.stdout, done.returncode) == ("end\n", 0), done.stderr
