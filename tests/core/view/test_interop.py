"""Arrays of NumPy, CuPy, PyTorch and JAX viewed by cuda.core, and cuda.core's memory viewed by them, in stream order.

Tests are skipped, with the reason, where a library or device is missing.
"""

import contextlib
import gc

import numpy as np
import pytest
from cuda.core import ManagedMemoryResource, PinnedMemoryResource
from cuda.core.utils import StridedMemoryView, args_viewable_as_strided_memory
from cupyrite import _native

from helpers.array_libraries import LIBRARIES, module
from helpers.device import on_cpu_device

pytestmark = pytest.mark.strict_abi


@pytest.fixture(autouse=True)
def current(device):
    """Other libraries create arrays on the current device, which earlier tests may have changed."""
    device.set_current()


@pytest.fixture(params=list(LIBRARIES))
def library(request, device):
    if request.param in ("cupy", "torch", "jax") and on_cpu_device():
        pytest.skip("other libraries' arrays are on the GPU; this process runs on the CPU device")
    return LIBRARIES[request.param]()


def handle(stream):
    return int(stream.handle)


def seen(view, stream):
    """The elements of a view as a NumPy array, copied in stream order."""
    out = np.zeros(view.shape, view.dtype if view.dtype.kind in "?biufc" else f"u{view._layout.itemsize}")
    target = StridedMemoryView.from_array_interface(out)
    if out.dtype != view.dtype:
        view = view.view(dtype=out.dtype)
    target.copy_from(view, stream, blocking=True)
    return out


def numbers(name, shape=(3, 4)):
    return (
        (np.arange(np.prod(shape, dtype=int)) % 2 if name == "?" else np.arange(np.prod(shape, dtype=int)))
        .reshape(shape)
        .astype(name)
    )


# Their arrays in our views


@pytest.mark.parametrize("name", sorted({name for library in ("numpy",) for name in LIBRARIES[library].types}))
def test_element_types(library, name, stream):
    if name not in library.types:
        pytest.skip(f"{library.name} has no elements of type {name}")
    source = numbers(name)
    array = library.make(source)
    view = StridedMemoryView.from_any_interface(array, handle(stream))
    assert (view.shape, view.dtype, view.size) == ((3, 4), source.dtype, 12)
    assert view.ptr == library.address(array)
    assert view.strides in (None, (4, 1))
    assert view.exporting_obj is array
    assert view.is_device_accessible is library.on_device
    assert view.device_id == (0 if library.on_device else -1)
    assert view.__dlpack_device__()[0] == (2 if library.on_device else 1)
    assert np.array_equal(seen(view, stream), source)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1), (1, 5, 1), (2, 3, 4, 5, 6)])
def test_shapes(library, shape, stream):
    source = numbers("f4", shape)
    array = library.make(source)
    view = StridedMemoryView.from_any_interface(array, handle(stream))
    assert (view.shape, view.size, view.dtype) == (shape, source.size, np.float32)
    assert np.array_equal(seen(view, stream), source)
    if source.size:
        assert view.ptr == library.address(array)
        assert view._layout.is_contiguous_c


CUTS = {
    "step": lambda a: a[::2, 1::3],
    "part": lambda a: a[1:3],
    "column": lambda a: a[:, 2],
    "empty": lambda a: a[3:3, 1:2],
    "reversed": lambda a: a[::-1, ::-2],
    "middle": lambda a: a[2:5, 3:6],
}


# Whether CuPy's arrays are read through their fields, not exported by CuPy.
READS_CUPY = "cupy" in _native.private_layouts()
CUPY_EXPORT = "CuPy exports negative strides as huge positive ones"


@pytest.mark.parametrize("cut", [*CUTS, "transposed", "transposed part"])
def test_strides(library, cut, stream):
    source = numbers("f4", (6, 8))
    if cut == "reversed" and not library.reverses:
        pytest.skip(f"{library.name} has no negative strides")
    if cut == "reversed" and library.name == "cupy" and not READS_CUPY:
        pytest.skip(CUPY_EXPORT)
    array = library.make(source)
    if cut.startswith("transposed"):
        array, source = library.transposed(array), source.T
    if cut in CUTS:
        array, source = CUTS[cut](array), CUTS[cut](source)
    elif cut == "transposed part":
        array, source = array[1:5, 2:4], source[1:5, 2:4]
    view = StridedMemoryView.from_any_interface(array, handle(stream))
    assert view.shape == source.shape
    if source.size:
        strides = view.strides or view._layout.to_dense("C").strides
        assert strides == library.strides(array)
        assert view.ptr == library.address(array)
    assert np.array_equal(seen(view, stream), source)
    # And once more from our view.
    again = StridedMemoryView.from_dlpack(view, handle(stream))
    assert (again.shape, again.ptr) == (view.shape, view.ptr)
    assert np.array_equal(seen(again, stream), source)


def test_bfloat16(library, stream):
    array = library.brain()
    view = StridedMemoryView.from_any_interface(array, handle(stream))
    assert view.shape == (8,) and view._layout.itemsize == 2
    # The upper halves of float32.
    expected = (np.arange(8, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16)
    bits = np.zeros(8, np.uint16)
    target = StridedMemoryView.from_array_interface(bits)
    target.copy_from(view.view(dtype="u2"), stream, blocking=True)
    assert np.array_equal(bits, expected)
    ml_dtypes = module("ml_dtypes")
    assert view.dtype == ml_dtypes.bfloat16


def test_view_keeps_the_array_alive(library, stream):
    array = library.make(numbers("f4", (64, 64)))
    view = StridedMemoryView.from_any_interface(array, handle(stream))
    part = view.view(view._layout[1:3])
    del array, view
    gc.collect()
    # New allocations must not reuse its memory.
    others = [library.make(np.zeros((64, 64), np.float32)) for _ in range(8)]
    assert np.array_equal(seen(part, stream), numbers("f4", (64, 64))[1:3])
    assert len(others) == 8


def test_args_viewable_with_any_library(library, stream):
    @args_viewable_as_strided_memory((0,))
    def total(array, stream):
        view = array.view(handle(stream))
        return array.obj, seen(view, stream).sum()

    array = library.make(numbers("f4"))
    obj, result = total(array, stream)
    assert obj is array and result == 66


def test_all_protocols_agree(library, stream):
    """Views through known classes and through the methods of their objects are equal."""

    class Plain:
        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def __dlpack__(self, **arguments):
            return self.array.__dlpack__(**arguments)

    source = numbers("f4", (6, 8))
    for cut in (lambda a: a, CUTS["step"], CUTS["column"], CUTS["empty"]):
        array = cut(library.make(source))
        if library.name == "jax" and cut(source).size == 0:
            continue
        one = StridedMemoryView.from_any_interface(array, handle(stream))
        two = StridedMemoryView.from_any_interface(Plain(array), handle(stream))
        for name in ("shape", "dtype", "device_id", "is_device_accessible", "readonly", "size"):
            assert getattr(one, name) == getattr(two, name), name
        assert one.__dlpack_device__() == two.__dlpack_device__()
        if one.size:
            assert one.ptr == two.ptr
            assert one._layout.to_dense("C") == two._layout.to_dense("C")
            assert (one.strides or one._layout.to_dense("C").strides) == (
                two.strides or two._layout.to_dense("C").strides
            )


def test_array_interfaces_of_device_arrays(library, stream):
    array = library.make(numbers("f4"))
    if not hasattr(array, "__cuda_array_interface__"):
        pytest.skip(f"an array of {library.name} on the {'device' if library.on_device else 'host'} has none")
    if array.__cuda_array_interface__["version"] < 3:
        # The interface names no stream, so no order can be established. PyTorch's tensors are accepted nevertheless.
        if library.name != "torch":
            with pytest.raises(BufferError, match="version 2; expected 3"):
                StridedMemoryView.from_cuda_array_interface(array, handle(stream))
            return
        stream.device.sync()
    view = StridedMemoryView.from_cuda_array_interface(array, handle(stream))
    assert (view.shape, view.ptr, view.device_id) == ((3, 4), library.address(array), 0)
    assert np.array_equal(seen(view, stream), numbers("f4"))


# Our memory in their arrays


@pytest.mark.parametrize("name", ["i1", "u1", "i4", "f2", "f4", "c8"])
def test_other_libraries_import_our_views(library, name, device, stream):
    if library.on_device and name not in library.types:
        pytest.skip(f"{library.name} has no elements of type {name}")
    source = numbers(name)
    if library.on_device:
        buffer = device.allocate(source.nbytes, stream=stream)
        buffer.copy_from(source, stream=stream)
        view = StridedMemoryView.from_buffer(buffer, (3, 4), dtype=source.dtype)
    else:
        view = StridedMemoryView.from_array_interface(source)
    array = library.take(view)
    assert tuple(array.shape) == (3, 4)
    if library.name != "jax":
        # JAX copies unaligned memory.
        assert library.address(array) == view.ptr
    assert np.array_equal(library.contents(array), source)
    part = view.view(view._layout[1:, ::2])
    if library.name != "jax":
        assert np.array_equal(library.contents(library.take(part)), source[1:, ::2])
    # The memory stays allocated while the array exists.
    if library.on_device:
        buffer.close()
    del view, part
    gc.collect()
    assert np.array_equal(library.contents(array), source)


def test_other_libraries_import_our_buffers(library, device, stream):
    if not library.on_device:
        pytest.skip("device memory cannot be viewed by NumPy")
    buffer = device.allocate(64, stream=stream)
    buffer.fill(3, stream=stream)
    array = library.take(buffer)
    assert tuple(array.shape) == (64,)
    assert (library.contents(array) == 3).all()
    del array
    gc.collect()
    buffer.close()


@pytest.mark.parametrize("kind", [PinnedMemoryResource, ManagedMemoryResource])
def test_numpy_views_shared_memory(kind, device, stream):
    if kind is ManagedMemoryResource and not device.properties.managed_memory:
        pytest.skip("the device has no managed memory")
    try:
        buffer = kind().allocate(48, stream=stream)
    except Exception as error:  # Not every device has pools of this kind.
        pytest.skip(f"no pool of this kind: {error}")
    stream.sync()
    array = np.from_dlpack(buffer).view("f4").reshape(3, 4)
    array[:] = numbers("f4")
    for consumer in (-1, 0, handle(stream)):
        for part in (array, array[::2], array[:, 1]):
            view = StridedMemoryView.from_any_interface(part, consumer)
            assert view.ptr == part.ctypes.data and view.shape == part.shape
            assert np.array_equal(seen(view, stream), part)
    del array, part, view
    gc.collect()
    buffer.close()


@pytest.mark.parametrize("way", ["dlpack", "interface"])
def test_read_only_memory(way, stream):
    source = numbers("f4")
    source.flags.writeable = False
    make = StridedMemoryView.from_dlpack if way == "dlpack" else lambda a, _: StridedMemoryView.from_array_interface(a)
    view = make(source, -1)
    assert view.readonly and not np.from_dlpack(view).flags.writeable
    assert view.__array_interface__["data"] == (source.ctypes.data, True)
    with pytest.raises(ValueError, match="read-only"):
        view.copy_from(StridedMemoryView.from_array_interface(numbers("f4")), stream)


# Stream order


SIZE = 1 << 22
ROUNDS = 40


class CuPyOrder:
    """Slow work on a CuPy stream, and a read of data that another stream wrote."""

    def __init__(self):
        self.cupy = module("cupy")
        self.stream = self.cupy.cuda.Stream(non_blocking=True)
        self.array = self.cupy.zeros(SIZE, self.cupy.float32)
        self.cupy.cuda.Device(0).synchronize()

    def current(self):
        return self.stream

    def work(self, value):
        for number in range(ROUNDS):
            self.array.fill(number + value)

    def last(self, value):
        return ROUNDS - 1 + value

    def read(self, exporter):
        taken = self.cupy.from_dlpack(exporter)
        copied = taken.copy()
        self.stream.synchronize()
        return self.cupy.asnumpy(copied)


class TorchOrder:
    """As above, for PyTorch."""

    def __init__(self):
        self.torch = module("torch")
        if not self.torch.cuda.is_available():
            pytest.skip("this PyTorch has no GPU")
        self.stream = self.torch.cuda.Stream()
        self.array = self.torch.zeros(SIZE, device="cuda")
        self.torch.cuda.synchronize()

    def current(self):
        return self.torch.cuda.stream(self.stream)

    def work(self, value):
        for number in range(ROUNDS):
            self.array.fill_(number + value)

    last = CuPyOrder.last

    def read(self, exporter):
        copied = self.torch.from_dlpack(exporter).clone()
        self.stream.synchronize()
        return copied.cpu().numpy()


ORDERS = {"cupy": CuPyOrder, "torch": TorchOrder}


@pytest.mark.gpu
@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("consumer", ["stream", "default"])
def test_our_stream_waits_for_their_work(name, consumer, device, stream):
    other = ORDERS[name]()
    out = np.zeros(SIZE, np.float32)
    target = StridedMemoryView.from_array_interface(out)
    used = stream if consumer == "stream" else device.default_stream
    for value in range(5):
        with other.current():
            other.work(value)
            view = StridedMemoryView.from_any_interface(other.array, used)
        target.copy_from(view, used, blocking=True)
        assert (out == other.last(value)).all()


@pytest.mark.gpu
@pytest.mark.parametrize("name", ORDERS)
@pytest.mark.parametrize("exporter", ["buffer", "view"])
def test_their_stream_waits_for_our_work(name, exporter, device, stream):
    other = ORDERS[name]()
    buffer = device.allocate(SIZE, stream=stream)
    for value in range(1, 6):
        for number in range(ROUNDS):
            buffer.fill(number, stream=stream)
        buffer.fill(value, stream=stream)
        with other.current():
            given = buffer
            if exporter == "view":
                given = StridedMemoryView.from_buffer(buffer, (SIZE,), dtype="i1")
            read = other.read(given)
        assert (read == value).all()
    buffer.close()


@pytest.mark.gpu
def test_our_stream_waits_for_jax(stream):
    jax = module("jax")
    try:
        device = jax.devices("cuda")[0]
    except RuntimeError:
        pytest.skip("this JAX has no GPU")
    start = jax.device_put(np.ones(SIZE, np.float32), device)
    for value in range(3):
        result = start
        for _ in range(ROUNDS):
            result = result + value
        # Nothing was waited for.
        view = StridedMemoryView.from_any_interface(result, handle(stream))
        assert (seen(view, stream) == 1 + ROUNDS * value).all()


@pytest.mark.gpu
def test_their_memory_as_a_kernel_argument(device, stream):
    from cuda.core import LaunchConfig, Program, launch

    kernel = Program('extern "C" __global__ void twice(float *p) { p[threadIdx.x] *= 2; }', "c++").compile("cubin")
    kernel = kernel.get_kernel("twice")
    done = 0
    for name in ("cupy", "torch"):
        with contextlib.suppress(pytest.skip.Exception):
            library = LIBRARIES[name]()
            array = library.make(numbers("f4", (12,)))
            view = StridedMemoryView.from_any_interface(array, stream)
            launch(stream, LaunchConfig(grid=1, block=12), kernel, view.ptr)
            stream.sync()
            assert np.array_equal(library.contents(array), 2 * numbers("f4", (12,)))
            done += 1
    if not done:
        pytest.skip("neither CuPy nor PyTorch is installed")


@pytest.mark.gpu
def test_managed_memory_of_cupy(stream):
    cupy = module("cupy")
    pointer = cupy.cuda.malloc_managed(48)
    array = cupy.ndarray((3, 4), cupy.float32, memptr=pointer)
    array[:] = cupy.asarray(numbers("f4"))
    view = StridedMemoryView.from_any_interface(array, stream)
    assert view.__dlpack_device__()[0] == array.__dlpack_device__()[0]
    assert view.ptr == array.data.ptr and view.is_device_accessible
    assert np.array_equal(seen(view, stream), numbers("f4"))


def test_cupy_arrays_over_our_memory(device, stream):
    """CuPy's arrays are read through their fields; this works without CuPy's runtime."""
    cupy = module("cupy")
    buffer = device.allocate(4096, stream=stream)
    memory = cupy.cuda.UnownedMemory(int(buffer.handle), 4096, buffer, 0)
    source = numbers("f4", (6, 8))
    for offset in (0, 64):
        buffer.copy_from(np.pad(source.ravel(), (offset // 4, 1024 - 48 - offset // 4)), stream=stream)
        whole = cupy.ndarray((6, 8), cupy.float32, memptr=cupy.cuda.MemoryPointer(memory, offset))
        cuts = {name: cut for name, cut in CUTS.items() if READS_CUPY or name != "reversed"}
        for cut in (*cuts.values(), lambda a: a.T, lambda a: a[2, 3], lambda a: a[None, :, None]):
            array, expected = cut(whole), cut(source)
            view = StridedMemoryView.from_any_interface(array, -1)
            assert view.shape == expected.shape and view.dtype == np.float32 and view.device_id == 0
            assert view.exporting_obj is array and not view.readonly and view.is_device_accessible
            if expected.size:
                assert view.ptr == array.data.ptr
                assert (view.strides or ()) == tuple(stride // 4 for stride in array.strides)
            assert np.array_equal(seen(view, stream), expected)
    for name in ("?", "i1", "u8", "f2", "c16"):
        array = cupy.ndarray((4,), name, memptr=cupy.cuda.MemoryPointer(memory, 0))
        assert StridedMemoryView.from_dlpack(array, -1).dtype == np.dtype(name)

    class Derived(cupy.ndarray):
        pass

    # Subclasses are called, because they may override methods.
    Derived.__dlpack_device__ = lambda self: (99, 0)
    with pytest.raises(BufferError, match="99"):
        StridedMemoryView.from_any_interface(Derived((4,), "f4", memptr=cupy.cuda.MemoryPointer(memory, 0)), -1)
    buffer.close()


def test_lazy_conjugates_of_complex_tensors():
    torch = module("torch")
    tensor = torch.tensor([1 + 2j, 3 - 4j])
    assert np.array_equal(np.from_dlpack(StridedMemoryView.from_any_interface(tensor, -1)), tensor.numpy())
    for method in (StridedMemoryView.from_any_interface, StridedMemoryView.from_dlpack):
        with pytest.raises(BufferError, match="conj"):
            method(tensor.conj(), -1)
    resolved = tensor.conj().resolve_conj()
    assert np.array_equal(np.from_dlpack(StridedMemoryView.from_any_interface(resolved, -1)), resolved.numpy())
