"""Memory stays flat over many creations; threads; interpreter shutdown with calls in flight."""

import contextlib
import gc
import os
import textwrap
import threading

import pytest
from cuda import pathfinder
from cuda.bindings import cudla, cufile, nvfatbin, nvjitlink, nvml, nvvm

from helpers.memory import resident
from helpers.programs import output
from helpers.threads import run_all

# CUPYRITE_CYCLES=1000000 where time does not matter.
CYCLES = int(os.environ.get("CUPYRITE_CYCLES", "20000"))
STRUCTS = (nvml, cufile, cudla)


def flat(make, cycles=CYCLES):
    """Fails if repeated creation grows memory by 8 bytes per repetition or by 4 MiB in total."""
    for _ in range(min(cycles, 2000)):
        make()
    before = resident()
    for _ in range(cycles):
        make()
    grown = resident() - before
    assert grown < (4 << 20) + 8 * cycles, f"grew by {grown} bytes in {cycles} rounds"


def needs(module):
    try:
        module.version()
    except pathfinder.DynamicLibNotFoundError as error:
        pytest.skip(str(error).splitlines()[0])


def struct_classes():
    for module in STRUCTS:
        for name in sorted(dir(module)):
            kind = getattr(module, name)
            if isinstance(kind, type) and hasattr(kind, "from_ptr"):
                yield pytest.param(kind, id=f"{module.__name__.rpartition('.')[2]}.{name}")


@pytest.mark.parametrize("kind", list(struct_classes()))
def test_structs_and_their_attributes_do_not_leak(kind):
    names = [n for n in dir(kind) if not n.startswith("_") and not callable(getattr(kind, n, None))]

    def make():
        it = kind()
        for name in names:
            value = getattr(it, name)
            with contextlib.suppress(AttributeError, TypeError, ValueError, OverflowError):
                setattr(it, name, value)

    flat(make, max(CYCLES // 100, 100))
    flat(kind, CYCLES)


def test_views_keep_their_parents_alive():
    for make, path in ((nvml.ComputeInstanceInfo, "placement"), (nvml.VgpuPgpuMetadata, "host_supported_vgpu_range")):
        view = getattr(make(), path)
        gc.collect()
        bytes(memoryview(view))
    array = nvml.ProcessInfo(4)
    part = array[2]
    part.pid = 7
    del array
    gc.collect()
    assert part.pid == 7


def test_nvvm_programs_do_not_leak():
    needs(nvvm)
    flat(lambda: nvvm.destroy_program(nvvm.create_program()), CYCLES // 10)


def test_linkers_do_not_leak():
    needs(nvjitlink)
    flat(lambda: nvjitlink.destroy(nvjitlink.create(1, ["-arch=sm_80"])), CYCLES // 10)


def test_fat_binaries_do_not_leak():
    needs(nvfatbin)
    flat(lambda: nvfatbin.destroy(nvfatbin.create([], 0)), CYCLES // 10)


def test_errors_do_not_leak():
    def fail():
        with contextlib.suppress(nvvm.nvvmError):
            nvvm.destroy_program(12345)

    needs(nvvm)
    flat(fail)
    flat(lambda: (nvml.NvmlError(3), cufile.cuFileError(5011, 2), cudla.CudlaError(1)))


def test_device_queries_do_not_leak():
    try:
        nvml.init_v2()
    except pathfinder.DynamicLibNotFoundError as error:
        pytest.skip(str(error).splitlines()[0])
    try:
        device = nvml.device_get_handle_by_index_v2(0)

        def ask():
            nvml.device_get_name(device)
            nvml.device_get_memory_info_v2(device)
            nvml.device_get_pci_info_v3(device)
            nvml.device_get_compute_running_processes_v3(device)

        # Milliseconds a call on a GPU that many processes share.
        flat(ask, CYCLES // 100)
    finally:
        nvml.shutdown()


def test_eight_threads_use_every_module():
    """They create, read, change and drop objects, and make calls that need no hardware."""
    kinds = [p.values[0] for p in struct_classes()]
    failed, shared = [], nvml.ProcessInfo(16)

    def work(number):
        try:
            for turn in range(40):
                for kind in kinds[number % 3 :: 3]:
                    it = kind()
                    repr(it), int(it), it == kind()
                shared[number].pid = turn
                assert nvml.Return(3) is nvml.Return.ERROR_NOT_SUPPORTED and int(cudla.Status.SUCCESS) == 0
                for call in (
                    lambda: nvvm.destroy_program(1),
                    lambda: nvjitlink.destroy(1),
                    lambda: nvfatbin.destroy(1),
                ):
                    with contextlib.suppress(
                        nvvm.nvvmError,
                        nvjitlink.nvJitLinkError,
                        nvfatbin.nvFatbinError,
                        pathfinder.DynamicLibNotFoundError,
                    ):
                        call()
                try:
                    program = nvvm.create_program()
                    nvvm.destroy_program(program)
                except pathfinder.DynamicLibNotFoundError:
                    pass
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    run_all(threads, limit=200)
    assert not failed
    assert all(shared[n].pid == 39 for n in range(8))


END = """
import threading, time
from cuda.bindings import cudla, cufile, nvml, nvvm
from cuda import pathfinder
def work():
    while True:
        nvml.ProcessInfo(8).pid, cufile.IOParams(2), cudla.Task(), repr(nvml.PciInfo())
        try:
            nvvm.destroy_program(nvvm.create_program())
        except pathfinder.DynamicLibNotFoundError:
            pass
for _ in range(8):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
kept = nvml.ComputeInstanceInfo().placement, nvml.ProcessInfo(4)[1:3]
{end}
"""


@pytest.mark.parametrize(
    "end",
    [
        "",
        "raise SystemExit(0)",
        "import os; os._exit(0)",
        "import atexit; atexit.register(lambda: (nvml.PciInfo(), kept))",
    ],
)
def test_interpreter_exits_with_calls_in_flight(end):
    for _ in range(3):
        output(textwrap.dedent(END).format(end=end), timeout=60)


# Python code that the module calls while the interpreter shuts down; it never returns.
CUT = {
    "an import": "nvml.ProcessInfo(2).pid",
    "an argument": "driver.cuInit(Waits())",
    "an attribute": "setattr(nvml.PciInfo(), 'bus', Waits())",
    "a list": "setattr(nvml.ProcessInfo(2), 'pid', [Waits(), 1])",
    "a handle": "driver.CUdeviceptr(Waits())",
    "a destructor": "nvml.PciInfo.from_buffer(Buffer(1000))",
}
CUT_SCRIPT = """
import sys, threading, time
from cuda.bindings import driver, nvml
class Waits:
    def __index__(self):
        import numpy
    __int__ = __float__ = __hash__ = __eq__ = __len__ = __iter__ = __getitem__ = __index__
    def __getattr__(self, name):
        import numpy
class Buffer(bytearray):
    __del__ = Waits.__index__
class Slow:
    def __del__(self):  # the interpreter is ending, and lets others run
        for _ in range(100):
            time.sleep(0.001)
sys.began = None
thread = threading.Thread(target=lambda: {what}, daemon=True)
thread.start()
while sys.began is not thread and thread.is_alive():
    time.sleep(0.001)
print(sys.began is thread)
sys.kept = Slow()
"""


@pytest.mark.parametrize("what", CUT)
def test_thread_unwinding_at_shutdown_does_not_abort(what, tmp_path):
    """CPython before 3.14 unwinds the stack of a thread that takes the GIL during shutdown; in Rust frames that would
    abort the process.
    """
    (tmp_path / "numpy.py").write_text(
        "import sys, threading, time\nsys.began = threading.current_thread()\nwhile True: time.sleep(0.0001)\n"
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    script = CUT_SCRIPT.replace("{what}", CUT[what])
    assert output(script, timeout=60, environment={"PYTHONPATH": path}) == "True\n"
