"""cuFile on a GPU in compatibility mode: transfers between files and device memory through the host.

Each test runs in its own process: cuFile reads its settings once, and opening its driver may hang.
"""

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.gpu

BEGIN = """
import ctypes, os, sys
from cuda.bindings import cufile, driver

def check(result):
    status, *values = result
    assert status == 0, status
    return values[0] if values else None

check(driver.cuInit(0))
context = check(driver.cuDevicePrimaryCtxRetain(check(driver.cuDeviceGet(0))))
check(driver.cuCtxSetCurrent(context))
cufile.set_parameter_bool(cufile.BoolConfigParameter.PROPERTIES_ALLOW_COMPAT_MODE, True)
cufile.set_parameter_bool(cufile.BoolConfigParameter.FORCE_COMPAT_MODE, True)
try:
    cufile.driver_open()
except cufile.cuFileError as error:
    print("no driver:", error)
    sys.exit(77)

SIZE = 1 << 20
content = bytes(range(256)) * (SIZE // 256)
first, second = (int(check(driver.cuMemAlloc(SIZE))) for _ in range(2))
check(driver.cuMemcpyHtoD(first, content, SIZE))

def fetch(address, size=SIZE):
    host = bytearray(size)
    check(driver.cuMemcpyDtoH(host, address, size))
    return bytes(host)
"""

FILE = """
fd = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR, 0o600)
descr = cufile.Descr()
descr.type = cufile.FileHandleType.OPAQUE_FD
descr.handle.fd = fd
descr.fs_ops = 0
try:
    handle = cufile.handle_register(descr.ptr)
except cufile.cuFileError as error:
    # cuFile asks udev what lies below the file; containers have none.
    assert error.status in (cufile.OpError.HANDLE_NOT_REGISTERED, cufile.OpError.INVALID_FILE_TYPE), error
    print("no file:", error)
    sys.exit(78)
"""

CLOSE_FILE = """
cufile.handle_deregister(handle)
os.close(fd)
"""

END = """
cufile.driver_close()
print("done")
"""


def run(tmp_path, body, file=True):
    """Runs the body with an open driver and one registered file; skips the test where cuFile does not open."""
    steps = [BEGIN, FILE, textwrap.dedent(body), CLOSE_FILE, END] if file else [BEGIN, textwrap.dedent(body), END]
    try:
        done = subprocess.run(
            [sys.executable, "-c", "".join(steps), tmp_path / "file"],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=tmp_path,
        )
    except subprocess.TimeoutExpired:
        pytest.skip("opening cuFile's driver takes more than a minute on this machine")
    if done.returncode == 77:
        pytest.skip(f"cuFile's driver cannot be opened on this machine: {done.stdout.strip()}")
    if done.returncode == 78:
        pytest.skip(f"cuFile cannot register files on this machine: {done.stdout.strip()}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split()[-1] == "done"
    return done.stdout


def test_write_and_read(tmp_path):
    run(
        tmp_path,
        """
        assert cufile.write(handle, first, SIZE, 0, 0) == SIZE
        with open(sys.argv[1], "rb") as file:
            assert file.read() == content
        assert cufile.read(handle, second, SIZE, 0, 0) == SIZE
        assert fetch(second) == content
        """,
    )


def test_offsets_and_end_of_file(tmp_path):
    run(
        tmp_path,
        """
        with open(sys.argv[1], "wb") as file:
            file.write(content)
        check(driver.cuMemsetD8(second, 0, SIZE))
        assert cufile.read(handle, second, 4096, 8192, 4096) == 4096
        assert fetch(second)[4096:8192] == content[8192:12288]
        assert fetch(second)[:4096] == bytes(4096)
        # Less is there than asked for.
        assert cufile.read(handle, second, SIZE, SIZE - 4096, 0) == 4096
        """,
    )


def test_registered_memory(tmp_path):
    run(
        tmp_path,
        """
        cufile.buf_register(first, SIZE, 0)
        cufile.buf_register(second, SIZE, 0)
        assert cufile.write(handle, first, SIZE, 0, 0) == SIZE
        assert cufile.read(handle, second, SIZE, 0, 0) == SIZE
        assert fetch(second) == content
        cufile.buf_deregister(first)
        cufile.buf_deregister(second)
        """,
    )


def test_asynchronous_transfers(tmp_path):
    run(
        tmp_path,
        """
        stream = check(driver.cuStreamCreate(0))
        words = [ctypes.c_size_t(SIZE), ctypes.c_int64(0), ctypes.c_int64(0), ctypes.c_ssize_t(-7)]
        addresses = [ctypes.addressof(word) for word in words]
        cufile.write_async(handle, first, *addresses, int(stream))
        check(driver.cuStreamSynchronize(stream))
        assert words[3].value == SIZE, words[3]
        words[3].value = -7
        cufile.read_async(handle, second, *addresses, int(stream))
        check(driver.cuStreamSynchronize(stream))
        assert words[3].value == SIZE, words[3]
        assert fetch(second) == content
        """,
    )


def test_batch(tmp_path):
    run(
        tmp_path,
        """
        with open(sys.argv[1], "wb") as file:
            file.write(content)
        batch = cufile.batch_io_set_up(4)
        params = cufile.IOParams(4)
        part = SIZE // 4
        for i in range(4):
            params[i].mode = cufile.BatchMode.BATCH
            params[i].fh = handle
            params[i].opcode = cufile.Opcode.READ
            params[i].cookie = i + 1
            params[i].u.batch.dev_ptr_base = second
            params[i].u.batch.file_offset = i * part
            params[i].u.batch.dev_ptr_offset = i * part
            params[i].u.batch.size_ = part
        cufile.batch_io_submit(batch, 4, params.ptr, 0)
        got = {}
        for _ in range(100):
            events = cufile.IOEvents(4)
            count = ctypes.c_uint(4)
            cufile.batch_io_get_status(batch, 1, ctypes.addressof(count), events.ptr, 0)
            for i in range(count.value):
                assert events[i].status == cufile.Status.COMPLETE, events[i].status
                got[events[i].cookie] = events[i].ret
            if len(got) == 4:
                break
        assert got == {i + 1: part for i in range(4)}, got
        assert fetch(second) == content
        cufile.batch_io_destroy(batch)
        """,
    )


def test_memory_without_a_file(tmp_path):
    out = run(
        tmp_path,
        """
        cufile.buf_register(first, SIZE, 0)
        cufile.buf_deregister(first)
        properties = ctypes.create_string_buffer(4096)
        cufile.driver_get_properties(ctypes.addressof(properties))
        assert any(properties.raw)
        descr = cufile.Descr()
        descr.type = cufile.FileHandleType.OPAQUE_FD
        descr.handle.fd = 9999
        for mistake in (
            lambda: cufile.buf_deregister(first),
            lambda: cufile.handle_register(descr.ptr),
            lambda: cufile.handle_register(cufile.Descr().ptr),
        ):
            try:
                print("no error:", mistake())
            except cufile.cuFileError as error:
                print("error:", error.status)
        """,
        file=False,
    )
    assert out.count("error: ") == 3 and "no error" not in out, out


def test_invalid_calls_with_a_file(tmp_path):
    out = run(
        tmp_path,
        """
        for mistake in (
            lambda: cufile.read(handle, 0, SIZE, 0, 0),
            lambda: cufile.write(handle, first, SIZE, -1, 0),
        ):
            try:
                print("no error:", mistake())
            except (cufile.cuFileError, OSError) as error:
                print("error:", type(error).__name__)
        """,
    )
    assert out.count("error: ") == 2 and "no error" not in out, out
