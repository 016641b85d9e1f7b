"""Core dumps of the CPU device: when they are written, what is in them, and the command that prints them."""

import gzip
import json
import os
import socket
import stat
import subprocess
import sys
import time

import pytest
from cupyrite.coredump import CoreDump, DamagedFile, main

from helpers.device import on_cpu_device
from helpers.programs import python, start

pytestmark = pytest.mark.skipif(not on_cpu_device(), reason="needs the CPU device")

HEAD = r"""
import ctypes
import os
import sys
import time
from cuda.bindings import driver
from helpers.device import check

PTX = b'''
.version 7.0
.target sm_70
.address_size 64
.const .align 4 .b32 limit = 77;
.visible .entry fails(.param .u64 p) {
    .reg .b64 a; .reg .b32 v; .reg .pred q;
    ld.param.u64 a, [p]; mov.u32 v, %tid.x; setp.ne.u32 q, v, 37; @q ret; ld.const.u32 v, [limit]; st.global.u32 [a+8], v; ret;
}
.visible .entry traps(.param .u64 p) { trap; ret; }
.visible .entry spins(.param .u64 p) {
    .reg .b64 a; .reg .b32 v; .reg .pred q; ld.param.u64 a, [p];
L: ld.volatile.global.u32 v, [a]; setp.eq.u32 q, v, 0; @q bra L; ret;
}
'''
driver.cuInit(0)
def prepare(flags=0):
    if flags:
        context = check(driver.cuCtxCreate(None, flags, 0))
    else:
        context = check(driver.cuDevicePrimaryCtxRetain(0))
        check(driver.cuCtxSetCurrent(context))
    return context
def launch(name, address=16):
    module = check(driver.cuModuleLoadData(PTX))
    function = check(driver.cuModuleGetFunction(module, name))
    check(driver.cuLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, 0, ((address,), (ctypes.c_uint64,)), 0))
    return int(driver.cuCtxSynchronize()[0])
"""

FAILS = (
    HEAD
    + "prepare()\ndata = int(check(driver.cuMemAlloc(4096)))\ncheck(driver.cuMemsetD32(data, 0xabcdef01, 1024))\nprint(hex(data), launch(b'fails'), flush=True)"
)
CLEAN = {name: None for name in os.environ if name.startswith("CUDA_")}
ON = {"CUDA_ENABLE_COREDUMP_ON_EXCEPTION": "1"}
KEEP = {**ON, "CUDA_COREDUMP_GENERATION_FLAGS": "skip_abort"}


def run(program, folder, **environment):
    return python(program, environment={**CLEAN, **environment}, cwd=folder)


def files(folder):
    return sorted(os.listdir(folder))


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "cupyrite", "coredump", *map(str, arguments)], capture_output=True, text=True
    )


def test_there_is_no_dump_unless_it_is_asked_for(tmp_path):
    done = run(FAILS, tmp_path)
    assert done.returncode == 0 and done.stdout.endswith(" 700\n")
    assert files(tmp_path) == []
    assert run(FAILS, tmp_path, CUDA_ENABLE_COREDUMP_ON_EXCEPTION="0").returncode == 0
    assert files(tmp_path) == []


def test_a_dump_aborts_the_process_by_default(tmp_path):
    done = run(FAILS, tmp_path, **ON)
    assert done.returncode == -6, done.stderr
    [name] = files(tmp_path)
    _, before, *_, pid = name.removesuffix(".nvcudmp").split("_")
    assert name == f"core_{before}_{socket.gethostname()}_{pid}.nvcudmp"
    assert abs(int(before) - time.time()) < 300 and "skip_abort" in done.stderr
    with CoreDump(tmp_path / name) as dump:
        assert dump.facts["pid"] == int(pid)
    again = tmp_path / "again"
    again.mkdir()
    assert run(FAILS, again, **ON, CUDA_ENABLE_CPU_COREDUMP_ON_EXCEPTION="0").returncode == 0
    assert len(files(again)) == 1


def test_a_dump_has_the_fault_the_launch_and_the_memory(tmp_path):
    done = run(FAILS, tmp_path, **KEEP, CUDA_COREDUMP_FILE="c.%h.%p.%q.%%")
    address, status = done.stdout.split()
    address = int(address, 16)
    assert status == "700"
    [name] = files(tmp_path)
    path = tmp_path / name
    with CoreDump(path) as dump:
        facts = dump.facts
        assert name == f"c.{socket.gethostname()}.{facts['pid']}.q.%"
        fault, launch = facts["fault"], facts["launch"]
        assert (fault["name"], fault["thread"], fault["address"]) == ("CUDA_ERROR_ILLEGAL_ADDRESS", [37, 0, 0], 24)
        assert fault["block"] in ([0, 0, 0], [1, 0, 0]) and fault["function"] == "fails"
        assert fault["instruction"] == "st.global.u32" and fault["ptx_line"] > 0
        assert "illegal memory access" in fault["report"]
        assert (launch["kernel"], launch["grid"], launch["block"]) == ("fails", [2, 1, 1], [64, 1, 1])
        assert launch["parameters"] == (16).to_bytes(8, "little").hex()
        assert facts["reason"] == "exception" and facts["device"]["ordinal"] == 0
        assert dump.memory(address + 4, 8) == 0xABCDEF01.to_bytes(4, "little") * 2
        assert dump.memory(address + 4090, 100) == (0xABCDEF01.to_bytes(4, "little") * 2)[2:]
        assert dump.memory(8, 4) is None
        [constant] = [m for m in facts["memory"] if m["kind"] == "const"]
        assert dump.memory(constant["address"], 4) == (77).to_bytes(4, "little")
    text = command(path)
    assert (
        text.returncode == 0
        and "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in text.stdout
        and "thread (37, 0, 0)" in text.stdout
    )
    assert json.loads(command(path, "--json").stdout) == facts
    assert "01 ef cd ab" in command(path, "--memory", hex(address), 16).stdout
    missing = command(path, "--memory", "8")
    assert missing.returncode == 1 and "0x8 is not in the dump" in missing.stderr


@pytest.mark.parametrize("flags, kinds", [
    ("skip_abort,skip_global_memory", {"const"}),
    ("skip_abort,skip_constbank_memory", {"device"}),
    ("skip_abort,skip_global_memory,skip_constbank_memory", set()),
])  # fmt: skip
def test_flags_leave_memory_out(tmp_path, flags, kinds):
    run(FAILS, tmp_path, **ON, CUDA_COREDUMP_GENERATION_FLAGS=flags, CUDA_COREDUMP_FILE="core")
    with CoreDump(tmp_path / "core") as dump:
        assert {m["kind"] for m in dump.facts["memory"]} == kinds
        assert ("parameters" in dump.facts["launch"]) == ("skip_constbank" not in flags)
        assert len(dump.segments) == len(dump.facts["memory"])


def test_a_lightweight_dump_has_no_memory(tmp_path):
    done = run(FAILS, tmp_path, **KEEP, CUDA_ENABLE_LIGHTWEIGHT_COREDUMP="1", CUDA_COREDUMP_FILE="core")
    assert done.returncode == 0
    with CoreDump(tmp_path / "core") as dump:
        assert dump.facts["memory"] == [] and dump.facts["fault"]["status"] == 700
    assert (tmp_path / "core").stat().st_size < 4096


def test_a_dump_can_be_compressed(tmp_path):
    run(FAILS, tmp_path, **ON, CUDA_COREDUMP_GENERATION_FLAGS="skip_abort,gzip_compress", CUDA_COREDUMP_FILE="core")
    assert files(tmp_path) == ["core.gz"]
    with CoreDump(tmp_path / "core.gz") as dump:
        device = [m for m in dump.facts["memory"] if m["kind"] == "device"]
        assert any(dump.memory(m["address"], 4) == 0xABCDEF01.to_bytes(4, "little") for m in device)
    with gzip.open(tmp_path / "core.gz") as file:
        assert file.read(4) == b"\x7fELF"


def test_unwritable_paths_are_reported_and_change_nothing_else(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    for name in ("/nonexistent/folder/core", "folder", "fifo", "x" * 300):
        log = tmp_path / "log"
        done = run(FAILS, tmp_path, **KEEP, CUDA_COREDUMP_FILE=name, CUDA_LOG_FILE=str(log))
        assert done.returncode == 0 and done.stdout.endswith(" 700\n")
        assert "cannot be written" in done.stderr and "cannot be written" in log.read_text()
    assert files(tmp_path) == ["fifo", "folder", "log"]
    assert run(FAILS, tmp_path, **ON, CUDA_COREDUMP_FILE="/nonexistent/core").returncode == -6


def test_unknown_flags_are_reported_and_ignored(tmp_path):
    done = run(FAILS, tmp_path, **ON, CUDA_COREDUMP_GENERATION_FLAGS="nonsense,log_only,skip_abort")
    assert done.returncode == 0 and "'nonsense' is ignored" in done.stderr
    assert files(tmp_path) == []


def test_callbacks_run_before_and_after(tmp_path):
    program = (
        HEAD
        + r"""
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_int)
events = []
def record(name):
    def call(data, pid, device):
        inside = driver.cuCoredumpRegisterStartCallback(START, 0)[0]
        events.append((name, data, pid == os.getpid(), device, os.path.exists("core"), int(inside)))
    functions.append(CALLBACK(call))
    return ctypes.cast(functions[-1], ctypes.c_void_p).value
functions = []
START, DONE = record("start"), record("done")
first = check(driver.cuCoredumpRegisterStartCallback(START, 1))
second = check(driver.cuCoredumpRegisterStartCallback(START, 2))
third = check(driver.cuCoredumpRegisterStartCallback(START, 3))
done = check(driver.cuCoredumpRegisterCompleteCallback(DONE, 4))
invalid = driver.CUresult.CUDA_ERROR_INVALID_VALUE
check(driver.cuCoredumpDeregisterStartCallback(second))
assert driver.cuCoredumpDeregisterStartCallback(second)[0] == invalid
assert driver.cuCoredumpDeregisterStartCallback(done)[0] == invalid
assert driver.cuCoredumpDeregisterCompleteCallback(first)[0] == invalid
assert driver.cuCoredumpDeregisterStartCallback(0)[0] == invalid
assert driver.cuCoredumpRegisterStartCallback(0, 0)[0] == invalid
prepare()
assert launch(b"traps") == 719
print(events)
"""
    )
    done = run(program, tmp_path, **KEEP, CUDA_COREDUMP_FILE="core")
    assert done.returncode == 0, done.stderr
    assert eval(done.stdout) == [
        ("start", 1, True, 0, False, 800),
        ("start", 3, True, 0, False, 800),
        ("done", 4, True, 0, True, 800),
    ]


def test_attributes_can_be_set_for_a_context(tmp_path):
    program = (
        HEAD
        + r"""
S = driver.CUcoredumpSettings
prepare()
assert check(driver.cuCoredumpGetAttribute(S.CU_COREDUMP_ENABLE_ON_EXCEPTION)) in (False, 0)
check(driver.cuCoredumpSetAttribute(S.CU_COREDUMP_ENABLE_ON_EXCEPTION, True))
check(driver.cuCoredumpSetAttribute(S.CU_COREDUMP_FILE, b"mine.%p"))
check(driver.cuCoredumpSetAttribute(S.CU_COREDUMP_TRIGGER_HOST, False))
assert check(driver.cuCoredumpGetAttribute(S.CU_COREDUMP_ENABLE_ON_EXCEPTION)) in (True, 1)
assert launch(b"traps") == 719
print(os.getpid())
"""
    )
    done = run(program, tmp_path)
    assert done.returncode == 0, done.stderr
    assert files(tmp_path) == [f"mine.{done.stdout.strip()}"]


def test_the_flags_of_a_context_enable_dumps(tmp_path):
    program = (
        HEAD
        + r"""
prepare(0x20)
assert check(driver.cuCtxGetFlags()) == 0x20
assert launch(b"traps") == 719
"""
    )
    done = run(program, tmp_path, CUDA_COREDUMP_FILE="core", CUDA_COREDUMP_GENERATION_FLAGS="skip_abort")
    assert done.returncode == 0, done.stderr
    assert files(tmp_path) == ["core"]


def test_a_user_triggers_a_dump(tmp_path):
    program = (
        HEAD
        + r"""
prepare()
data = int(check(driver.cuMemAlloc(4)))
check(driver.cuMemsetD32(data, 0, 1))
print(launch(b"spins", data), flush=True)
"""
    )
    environment = {
        **CLEAN,
        "CUDA_ENABLE_USER_TRIGGERED_COREDUMP": "1",
        "CUDA_COREDUMP_PIPE": "pipe.%p",
        "CUDA_COREDUMP_FILE": "core",
        "CUDA_COREDUMP_GENERATION_FLAGS": "skip_abort",
    }
    with start(program, environment=environment, cwd=tmp_path) as process:
        pipe = tmp_path / f"pipe.{process.pid}"
        deadline = time.monotonic() + 60
        while not pipe.exists():
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
        mode = pipe.stat().st_mode
        assert stat.S_ISFIFO(mode) and stat.S_IMODE(mode) == 0o640 & ~_umask()
        time.sleep(0.5)
        pipe.write_text("dump\n")
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out.strip()) == (0, "719"), err
    assert files(tmp_path) == ["core"]
    with CoreDump(tmp_path / "core") as dump:
        assert dump.facts["reason"] == "user" and "fault" not in dump.facts


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_the_pipe_is_removed_at_exit(tmp_path):
    done = run(HEAD + "prepare(0x40)\nprint(os.listdir('.'))", tmp_path)
    assert "corepipe_" in done.stdout and files(tmp_path) == []


def test_damaged_files_are_refused(tmp_path, capsys):
    run(FAILS, tmp_path, **KEEP, CUDA_ENABLE_LIGHTWEIGHT_COREDUMP="1", CUDA_COREDUMP_FILE="core")
    data = (tmp_path / "core").read_bytes()
    path = tmp_path / "other"
    for damaged in (
        b"",
        b"\x7fELF",
        data[:63],
        data[:100],
        data[:-40],
        data.replace(b"CUPYRITE", b"SOMEBODY"),
        b"\x1f\x8b" + data,
        os.urandom(500),
    ):
        path.write_bytes(damaged)
        with pytest.raises(DamagedFile, match="is damaged|is not a core dump"):
            CoreDump(path)
        result = command(path)
        assert result.returncode == 1 and "Traceback" not in result.stderr
    for at in range(0, len(data), 3):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :])
        assert main([str(path)]) in (0, 1)
        assert main([str(path), "--memory", "4096"]) == 1
    capsys.readouterr()
    assert command(tmp_path / "missing").returncode == 1
