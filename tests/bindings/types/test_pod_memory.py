"""Memory behind the struct classes of nvml, cufile and cudla: buffers, NumPy, owners, lifetimes, threads, exit.

Tests without the mark `ours` hold for NVIDIA's package too.
"""

import ctypes
import gc
import importlib.util
import pickle
import threading
import weakref

import numpy as np
import pytest
from cuda.bindings import cudla, cufile, nvml

from helpers.programs import output
from helpers.threads import run_all

OURS = importlib.util.find_spec("cupyrite") is not None
ours = pytest.mark.skipif(not OURS, reason="behaviour of Cupyrite only")


# ---- buffers and memory of others


def test_buffer_of_one_struct():
    info = nvml.PciInfo()
    info.bus = 3
    view = memoryview(info)
    assert (view.format, view.shape, view.itemsize, view.nbytes, view.readonly) == ("b", (68,), 1, 68, False)
    assert np.frombuffer(info, nvml.pci_info_dtype)["bus"][0] == 3
    view[20] = 7
    assert info.bus == 7


def test_buffer_of_many_structs():
    three = nvml.ProcessInfo(3)
    three.pid = [1, 2, 3]
    view = memoryview(three)
    assert (view.shape, view.strides, view.itemsize, view.nbytes) == ((3,), (24,), 24, 72)
    assert view.format == "T{I:pid:xxxxL:used_gpu_memory:I:gpu_instance_id:I:compute_instance_id:}"
    array = np.asarray(three)
    assert array.dtype == nvml.process_info_dtype
    array["pid"][0] = 8
    assert list(three.pid) == [8, 2, 3]
    assert list(np.asarray(three[::-1])["pid"]) == [3, 2, 8]


@ours
def test_buffer_format_of_every_layout():
    for module in (nvml, cufile, cudla):
        for name in dir(module):
            cls = getattr(module, name)
            if not (isinstance(cls, type) and hasattr(cls, "from_data") and hasattr(cls, "_data")):
                continue
            value = cls(2)
            dtype = value._data.dtype
            assert len(bytes(value)) == 2 * dtype.itemsize
            view = memoryview(value)
            assert view.nbytes == 2 * dtype.itemsize and len(view) == 2
            # Overlapping members have no format: rows of bytes.
            array = np.asarray(value)
            assert array.dtype == dtype or (array.dtype == np.uint8 and array.shape == (2, dtype.itemsize)), name


def test_dtype_of_a_struct():
    dtype = nvml.process_info_dtype
    assert dtype.names == ("pid", "used_gpu_memory", "gpu_instance_id", "compute_instance_id")
    assert [dtype.fields[n][1] for n in dtype.names] == [0, 8, 16, 20] and dtype.itemsize == 24
    assert nvml.process_info_dtype is dtype


def test_from_data():
    array = np.zeros(4, nvml.process_info_dtype)
    many = nvml.ProcessInfo.from_data(array)
    many.pid = 3
    assert list(array["pid"]) == [3] * 4
    array["pid"][1] = 4
    assert many[1].pid == 4
    every_second = nvml.ProcessInfo.from_data(array[::2])
    every_second.pid = [8, 9]
    assert list(array["pid"]) == [8, 4, 9, 3]
    del array
    gc.collect()
    assert list(every_second.pid) == [8, 9]
    one = nvml.PciInfo.from_data(np.zeros(1, nvml.pci_info_dtype))
    one.bus = 1
    assert nvml.PciInfo.from_data(np.zeros((1, 1), nvml.pci_info_dtype)).bus == 0
    frozen = np.zeros(1, nvml.pci_info_dtype)
    frozen.setflags(write=False)
    with pytest.raises(ValueError, match="This PciInfo instance is read-only"):
        nvml.PciInfo.from_data(frozen).bus = 1
    wrong = [
        (nvml.PciInfo, np.zeros(2, nvml.pci_info_dtype), ValueError, "must have a size of 1"),
        (nvml.PciInfo, np.zeros(1, np.uint8), ValueError, "must be of dtype pci_info_dtype"),
        (nvml.PciInfo, [1], TypeError, "must be a NumPy ndarray"),
        (nvml.PciInfo, None, TypeError, "must be a NumPy ndarray"),
        (nvml.ProcessInfo, np.zeros((2, 2), nvml.process_info_dtype), ValueError, "must be 1D"),
        (nvml.ProcessInfo, np.zeros((), nvml.process_info_dtype), ValueError, "must be 1D"),
        (nvml.ProcessInfo, bytes(24), TypeError, "must be a NumPy ndarray"),
    ]
    for cls, data, error, text in wrong:
        with pytest.raises(error, match=text):
            cls.from_data(data)


def test_from_buffer():
    memory = bytearray(68)
    info = nvml.PciInfo.from_buffer(memory)
    info.bus = 0x41
    assert memory[20] == 0x41
    memory[20] = 0x42
    assert info.bus == 0x42
    with pytest.raises(ValueError, match="read-only"):
        nvml.PciInfo.from_buffer(bytes(68)).bus = 1
    for length in (3, 69):
        with pytest.raises(ValueError, match="buffer length must be 68 bytes"):
            nvml.PciInfo.from_buffer(bytearray(length))
    for value in (None, "x", 5):
        with pytest.raises(TypeError, match="bytes-like object is required"):
            nvml.PciInfo.from_buffer(value)
    assert len(nvml.ProcessInfo.from_buffer(bytearray(48))) == 2
    assert len(nvml.ProcessInfo.from_buffer(b"")) == 0
    with pytest.raises(ValueError, match="multiple of element size"):
        nvml.ProcessInfo.from_buffer(bytearray(25))


@ours
def test_viewed_bytearray_cannot_be_resized():
    memory = bytearray(68)
    info = nvml.PciInfo.from_buffer(memory)
    with pytest.raises(BufferError):
        memory.extend(bytes(10**6))
    del info
    gc.collect()
    memory.extend(b"x")


def test_from_ptr():
    memory = ctypes.create_string_buffer(72)
    address = ctypes.addressof(memory)
    copied = nvml.PciInfo.from_ptr(address)
    copied.bus = 7
    assert copied.ptr != address and memory.raw == bytes(72)
    with pytest.raises(ValueError, match="read-only"):
        nvml.PciInfo.from_ptr(address, True).bus = 8

    class Owner:
        pass

    owner = Owner()
    looking = nvml.PciInfo.from_ptr(address, owner=owner)
    looking.bus = 3
    assert looking.ptr == address and memory.raw[20] == 3
    watch = weakref.ref(owner)
    del owner
    gc.collect()
    assert watch() is not None
    del looking
    gc.collect()
    assert watch() is None
    many = nvml.ProcessInfo.from_ptr(address, 3)
    many.pid = [1, 2, 3]
    assert (many.ptr, len(many), memory.raw[24]) == (address, 3, 2)
    with pytest.raises(ValueError, match="read-only"):
        nvml.ProcessInfo.from_ptr(address, size=3, readonly=True).pid = 1
    for ptr, error in ((0, ValueError), (None, TypeError), ("x", TypeError)):
        with pytest.raises(error):
            nvml.PciInfo.from_ptr(ptr)


@ours
def test_from_ptr_refuses_unreadable_memory():
    for address in (8, 4096, 2**63, 2**64 - 8):
        with pytest.raises(ValueError, match="not readable"):
            nvml.PciInfo.from_ptr(address)
        with pytest.raises(ValueError, match="not readable"):
            nvml.ProcessInfo.from_ptr(address, 3)
    with pytest.raises(ValueError, match="not readable"):
        memory = ctypes.create_string_buffer(72)
        nvml.ProcessInfo.from_ptr(ctypes.addressof(memory), 2**40)
    with pytest.raises(OverflowError):
        nvml.PciInfo.from_ptr(-1)
    with pytest.raises(TypeError):
        nvml.PciInfo.from_ptr()


@ours
def test_access_to_unmapped_memory_raises():
    import mmap

    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    address = libc.mmap(None, 4096, 3, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
    one, many = nvml.PciInfo.from_ptr(address, owner=object()), nvml.ProcessInfo.from_ptr(address, 3)
    one.bus, many.pid = 5, [1, 2, 3]
    libc.munmap(address, 4096)
    for f in (
        lambda: one.bus,
        lambda: one.bus_id,
        lambda: setattr(one, "bus", 1),
        lambda: repr(one),
        lambda: one == nvml.PciInfo(),
        lambda: memoryview(one),
        lambda: many.pid,
        lambda: many[0].pid,
        lambda: setattr(many, "pid", 1),
        lambda: pickle.dumps(many),
        lambda: many._data,
    ):
        with pytest.raises(ValueError, match="cannot be|not readable"):
            f()


def test_read_only_applies_to_nested_structs():
    memory = ctypes.create_string_buffer(256)
    info = nvml.ComputeInstanceInfo.from_ptr(ctypes.addressof(memory), True)
    with pytest.raises(ValueError, match="read-only"):
        info.placement.start = 1
    assert memoryview(nvml.PciInfo.from_ptr(ctypes.addressof(memory), True)).readonly


@ours
def test_read_only_applies_to_arrays():
    report = nvml.ConfComputeGpuAttestationReport.from_buffer(
        bytes(nvml.conf_compute_gpu_attestation_report_dtype.itemsize)
    )
    assert not report.nonce.flags.writeable
    many = nvml.ProcessInfo.from_buffer(bytes(72))
    assert not many.pid.flags.writeable and not many[1:]._data.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        many[0] = (1, 2, 3, 4)


@ours
def test_owner_cycles_are_collected():
    class Owner:
        pass

    memory = ctypes.create_string_buffer(72)
    owner = Owner()
    owner.memory = memory
    owner.view = nvml.ProcessInfo.from_ptr(ctypes.addressof(memory), 3, owner=owner)
    owner.part = owner.view[1]
    watch = weakref.ref(owner)
    del owner
    gc.collect()
    assert watch() is None


@ours
def test_long_owner_chains_are_freed():
    output(
        """if True:
        import ctypes
        from cuda.bindings import nvml
        memory = ctypes.create_string_buffer(68)
        address = ctypes.addressof(memory)
        x = nvml.PciInfo()
        for i in range(300_000):
            x = nvml.PciInfo.from_ptr(address, owner=x)
        del x
        x = nvml.PciInfo()
        for i in range(300_000):
            x = nvml.PciInfo.from_buffer(x)
        del x
        x = nvml.ProcessInfo(2)
        for i in range(100_000):
            x = nvml.ProcessInfo.from_data(x._data)
        del x
        """
    )


# ---- NumPy, and without it


@ours
def test_numpy_is_imported_on_demand():
    out = output(
        """if True:
        import sys
        from cuda.bindings import cudla, cufile, nvml
        one, three = nvml.PciInfo(), nvml.ProcessInfo(3)
        one.bus, one.bus_id, three.pid = 1, "x", [1, 2, 3]
        nvml.VgpuTypeIdInfo_v1().vgpu_type_ids = [1]
        report = nvml.ConfComputeGpuAttestationReport()
        report.nonce = bytes(32)
        cudla.Task().output_tensor = [1]
        repr(three), [e.pid for e in three], bytes(three), memoryview(three), three == three[::-1]
        nvml.ComputeInstanceInfo().placement.start = 1
        dir(nvml)
        print("numpy" in sys.modules)
        three.pid
        print("numpy" in sys.modules)
        """
    )
    assert out.split() == ["False", "True"]


@ours
def test_structs_work_without_numpy():
    out = output(
        """if True:
        import sys
        sys.modules["numpy"] = None
        from cuda.bindings import cufile, nvml
        three = nvml.ProcessInfo(3)
        three.pid = [1, 2, 3]
        assert three.pid.tolist() == [1, 2, 3], three.pid
        three.pid[1] = 9
        assert three[1].pid == 9
        assert three[::-1].pid.tolist() == [3, 9, 1]
        assert nvml.ConfComputeGpuAttestationReport().nonce.tolist() == [0] * 32
        assert cufile.PerGpuStats(2).uuid.shape == (2, 16)
        assert nvml.FieldValue(2).value.shape == (2, 8)
        for f in (lambda: nvml.pci_info_dtype, lambda: three._data, lambda: three[[0]], lambda: setattr(nvml.FieldValue(2), "value", 1)):
            try:
                f()
            except ImportError as error:
                assert "numpy" in str(error)
            else:
                raise AssertionError("no ImportError")
        try:
            nvml.PciInfo.from_data([1])
        except TypeError:
            pass
        everything = {}
        exec("from cuda.bindings.nvml import *", everything)
        assert everything["PciInfo"] is nvml.PciInfo and "pci_info_dtype" not in everything
        assert "PciInfo" in vars(nvml) and "pci_info_dtype" in dir(nvml)
        print("fine")
        """
    )
    assert out.strip() == "fine"


# ---- lifetimes


CYCLES = """if True:
    import gc
    from cuda.bindings import cudla, nvml
    from helpers.memory import resident
    def cycles(n):
        {body}
    cycles(20000)
    before = resident()
    cycles({n})
    print(resident() - before)
"""

BODIES = {
    "one": """for i in range(n):
            x = nvml.PciInfo(); x.bus = i; x.bus_id = "abc"; x.bus""",
    "many": """for i in range(n):
            x = nvml.ProcessInfo(3); x.pid = i; x[1].pid; x[::-1]""",
    "nested": """for i in range(n):
            x = nvml.ComputeInstanceInfo(); p = x.placement; p.start = 1; x.placement = p""",
    "pointers": """for i in range(n // 4):
            x = nvml.ProcessDetailList_v1(); x.proc_array = nvml.ProcessDetail_v1(2); x.proc_array
            v = nvml.VgpuTypeIdInfo_v1(); v.vgpu_type_ids = [1, 2, 3]; v.vgpu_type_ids
            t = cudla.Task(); t.output_tensor = [1, 2]; t.output_tensor""",
    "arrays": """for i in range(n // 10):
            x = nvml.ProcessInfo(3); x.pid; x._data; memoryview(x)""",
    "memory": """for i in range(n // 4):
            b = bytearray(68); x = nvml.PciInfo.from_buffer(b); y = nvml.PciInfo.from_ptr(x.ptr, owner=x); y.bus = 1
            repr(y); y == x""",
    "errors": """for i in range(n // 4):
            x = nvml.PciInfo()
            for value in (None, -1):
                try: x.bus = value
                except (TypeError, OverflowError): pass
            try: nvml.PciInfo.from_buffer(b"x")
            except ValueError: pass""",
}


@ours
@pytest.mark.parametrize("kind", sorted(BODIES))
def test_memory_stays_flat(kind):
    grown = int(output(CYCLES.format(body=BODIES[kind], n=1_000_000)))
    assert grown < 4 << 20, f"grew by {grown} bytes in a million rounds"


def test_threads_share_structs():
    shared = nvml.ProcessInfo(64)
    details = nvml.ProcessDetailList_v1()
    failures = []

    def work(seed):
        try:
            for i in range(2000):
                one = nvml.PciInfo()
                one.bus, one.bus_id = i, f"{seed}:{i}"
                assert (one.bus, one.bus_id) == (i, f"{seed}:{i}")
                shared[seed].pid = i
                assert shared[seed].pid == i
                shared.used_gpu_memory = i
                details.proc_array = nvml.ProcessDetail_v1(seed + 1)
                found = details.proc_array
                assert found == [] or 0 < len(found) <= 8
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    run_all(threads, limit=200)
    assert not failures
    assert [e.pid for e in shared[:8]] == [1999] * 8


def test_exit_with_live_views():
    output(
        """if True:
        import numpy
        from cuda.bindings import nvml
        keep = [nvml.ProcessInfo(3) for i in range(100)]
        keep += [k.pid for k in keep] + [k[1] for k in keep] + [memoryview(k) for k in keep]
        cycle = [keep]
        keep.append(cycle)
        """
    )
