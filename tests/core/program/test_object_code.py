"""cuda.core: ObjectCode."""

import copy
import gc
import pathlib
import pickle
import struct
import threading
import weakref

import pytest
from cuda.core import Kernel, ObjectCode, Program
from cuda.core._utils.cuda_utils import CUDAError

from helpers.device import check, compile_cuda, on_cpu_device
from helpers.programs import output, python
from helpers.threads import run_all

pytestmark = pytest.mark.usefixtures("device")

SOURCE = """
extern "C" __global__ void saxpy(float a, const float *x, float *y, size_t n) { }
extern "C" __global__ void copy(const char *from, char *to) { }
template <typename T> __global__ void scale(T *x) { x[threadIdx.x] *= 2; }
__device__ int counter;
"""
NAMES = ("scale<float>", "scale<double>")


@pytest.fixture(scope="module")
def ptx():
    code, lowered = compile_cuda(SOURCE, NAMES)
    return code, {name: lowered[name] for name in NAMES}


@pytest.fixture(scope="module")
def cubin():
    code, lowered = compile_cuda(SOURCE, NAMES, kind="cubin")
    return code, {name: lowered[name] for name in NAMES}


@pytest.mark.parametrize("kind", ["cubin", "ptx", "ltoir", "fatbin", "object", "library"])
def test_every_code_type(kind):
    code = getattr(ObjectCode, f"from_{kind}")(b"bytes", name="n", symbol_mapping={"a": "b"})
    assert (code.code_type, code.code, code.name, code.symbol_mapping) == (kind, b"bytes", "n", {"a": "b"})
    assert type(code.code_type) is str
    bare = getattr(ObjectCode, f"from_{kind}")(b"bytes")
    assert (bare.name, bare.symbol_mapping) == ("", {})


@pytest.mark.parametrize("kind", ["ltoir", "object", "library"])
def test_unlinked_code_has_no_kernels(kind, ptx):
    for content, name in ((b"bytes", "k"), (ptx[0], "saxpy")):
        with pytest.raises(RuntimeError, match=f"{kind}, which must be linked"):
            getattr(ObjectCode, f"from_{kind}")(content).get_kernel(name)


def test_code_from_bytes_paths_and_buffers(ptx, tmp_path):
    code, _ = ptx
    path = tmp_path / "code é.ptx"
    path.write_bytes(code)
    for given in (code, bytearray(code), memoryview(code), str(path), path):
        made = ObjectCode.from_ptx(given)
        assert isinstance(made.get_kernel("saxpy"), Kernel)
        assert made.get_kernel(b"copy") != made.get_kernel("saxpy")
    assert ObjectCode.from_ptx(path).code == str(path)
    assert type(ObjectCode.from_ptx(path).code) is str
    made = ObjectCode.from_ptx(code)
    assert made.code is made.code


def test_buffer_is_copied(ptx):
    given = bytearray(ptx[0])
    made = ObjectCode.from_ptx(given)
    given[:] = b" " * len(given)
    assert made.code == ptx[0]
    made.get_kernel("saxpy")


def test_cubins_load(cubin):
    made = ObjectCode.from_cubin(cubin[0], symbol_mapping=cubin[1])
    assert made.get_kernel("scale<float>").num_arguments == 1


@pytest.mark.parametrize("key", [str, str.encode])
@pytest.mark.parametrize("value", [bytes.decode, bytes])
def test_symbols_as_text_or_bytes(ptx, key, value):
    code, lowered = ptx
    mapping = {key(k): value(v) for k, v in lowered.items()}
    made = ObjectCode.from_ptx(code, symbol_mapping=mapping)
    assert made.symbol_mapping == mapping
    kernel = made.get_kernel("scale<float>")
    assert made.get_kernel(b"scale<float>") == kernel != made.get_kernel("scale<double>")
    assert made.get_kernel(lowered["scale<float>"]) == kernel
    assert made.get_kernel("saxpy").num_arguments == 4


def test_symbol_mapping_is_copied(ptx):
    given = dict(ptx[1])
    made = ObjectCode.from_ptx(ptx[0], symbol_mapping=given)
    given.clear()
    made.symbol_mapping.clear()
    assert made.symbol_mapping == ptx[1]


def test_missing_kernel_error_lists_the_kernels(ptx):
    code, lowered = ptx
    made = ObjectCode.from_ptx(code, symbol_mapping=lowered)
    with pytest.raises(CUDAError, match="CUDA_ERROR_NOT_FOUND") as caught:
        made.get_kernel("saxpi")
    text = str(caught.value)
    assert "did you mean `saxpy`" in text and "copy" in text and "scale<float>" in text
    with pytest.raises(CUDAError, match="scale<double>"):
        made.get_kernel("scale<int>")
    with pytest.raises(CUDAError, match="CUDA_ERROR_NOT_FOUND"):
        made.get_kernel("")
    with pytest.raises(CUDAError, match="CUDA_ERROR_NOT_FOUND"):
        made.get_kernel("é")
    with pytest.raises(ValueError, match="NUL"):
        made.get_kernel("saxpy\0x")


def test_invalid_arguments_raise():
    for wrong in (3, None, 1.5, [b"x"]):
        with pytest.raises(TypeError, match="'module'"):
            ObjectCode.from_ptx(wrong)
    for keywords in ({"name": 3}, {"name": None}, {"symbol_mapping": 3}, {"symbol_mapping": [("a", "b")]}):
        with pytest.raises(TypeError):
            ObjectCode.from_ptx(b"x", **keywords)
    with pytest.raises(TypeError, match="symbol_mapping"):
        ObjectCode.from_ptx(b"x", symbol_mapping={"a": 5})
    with pytest.raises(TypeError):
        ObjectCode.from_ptx(b"x", "name")
    for wrong in (5, None, bytearray(b"saxpy")):
        with pytest.raises(TypeError, match="'name'"):
            ObjectCode.from_ptx(b"x").get_kernel(wrong)
    with pytest.raises(RuntimeError, match="from_cubin"):
        ObjectCode()


def test_invalid_code_fails_on_first_use():
    for code in (b"", b"garbage"):
        made = ObjectCode.from_ptx(code)
        assert repr(made) == "<ObjectCode handle=None code_type='ptx'>"
        for _ in range(2):
            if on_cpu_device():  # A GPU's driver loads code lazily.
                with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID"):
                    made.handle
            with pytest.raises(CUDAError, match="CUDA_ERROR_(INVALID|NOT_FOUND)"):
                made.get_kernel("k")
        assert made != ObjectCode.from_ptx(code) and isinstance(hash(made), int)


def test_loader_log_is_in_the_exception(ptx, cpu_device):
    broken = ptx[0].replace(b"ret;", b"nonsense;")
    with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_PTX") as caught:
        # A GPU's driver may compile on first use of the kernel only.
        ObjectCode.from_ptx(broken).get_kernel("saxpy").attributes.num_regs
    if cpu_device:
        assert "nonsense" in str(caught.value)


def test_truncated_images_are_refused(cubin):
    code = cubin[0]
    for end in (5, 40, 63, 64, 200, len(code) // 2, len(code) - 1):
        with pytest.raises(CUDAError, match="CUDA_ERROR_INVALID_IMAGE"):
            ObjectCode.from_cubin(code[:end]).handle
    header = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1 << 20)
    with pytest.raises(CUDAError, match="truncated"):
        ObjectCode.from_fatbin(header).handle
    with pytest.raises(CUDAError, match="wrapper"):
        ObjectCode.from_fatbin(struct.pack("<IIQQ", 0x466243B1, 1, 0, 0)).handle


def test_missing_file_is_named(tmp_path):
    made = ObjectCode.from_cubin(tmp_path / "nowhere.cubin")
    assert made.code == str(tmp_path / "nowhere.cubin")
    with pytest.raises(CUDAError, match="CUDA_ERROR_FILE_NOT_FOUND.*") as caught:
        made.get_kernel("k")
    assert "nowhere.cubin" in str(caught.value)
    with pytest.raises(ValueError, match="NUL"):
        ObjectCode.from_cubin("a\0b").handle


def test_handles(ptx):
    from cuda.bindings import driver

    made = ObjectCode.from_ptx(ptx[0])
    assert "None" in repr(made)
    handle = made.handle
    assert isinstance(handle, driver.CUlibrary) and int(handle) == int(made.handle) != 0
    assert repr(made) == f"<ObjectCode handle={int(handle):#x} code_type='ptx'>"
    module = made.get_module()
    assert isinstance(module, driver.CUmodule)
    check(driver.cuModuleGetFunction(module, b"saxpy"))
    assert check(driver.cuLibraryGetKernel(handle, b"saxpy"))
    address, size = check(driver.cuLibraryGetGlobal(handle, b"counter"))
    assert int(address) and size == 4


def test_thread_without_context(ptx):
    from cuda.bindings import driver

    made, seen = ObjectCode.from_ptx(ptx[0]), []

    def work():
        seen.append(int(check(driver.cuCtxGetCurrent())))
        seen.append(int(made.get_module()))
        seen.append(made.get_kernel("saxpy").num_arguments)

    thread = threading.Thread(target=work)
    run_all([thread])
    assert seen == [0, int(made.get_module()), 4]


def test_equality_and_hash(ptx):
    one, other = ObjectCode.from_ptx(ptx[0]), ObjectCode.from_ptx(ptx[0])
    assert one == one and one != other and one != 3 and hash(one) == hash(one)
    assert len({one, other, one}) == 2
    assert weakref.ref(one)() is one
    for attribute in ("name", "code", "code_type", "handle", "other"):
        with pytest.raises(AttributeError):
            setattr(one, attribute, 1)


def test_pickling(ptx, tmp_path):
    code, lowered = ptx
    made = ObjectCode.from_ptx(code, name="n", symbol_mapping=lowered)
    for again in (pickle.loads(pickle.dumps(made)), copy.copy(made), copy.deepcopy(made)):
        assert (again.code, again.name, again.code_type) == (code, "n", "ptx")
        assert again.symbol_mapping == made.symbol_mapping and again != made
        assert again.get_kernel("scale<float>").num_arguments == 1
    path = tmp_path / "k.ptx"
    path.write_bytes(code)
    again = pickle.loads(pickle.dumps(ObjectCode.from_ptx(path)))
    assert again.code == str(path) and again.get_kernel("copy").num_arguments == 2


def test_pickle_loads_in_another_process(cubin):
    pickled = pickle.dumps(ObjectCode.from_cubin(cubin[0], symbol_mapping=cubin[1]))
    script = "import pickle, sys; c = pickle.load(sys.stdin.buffer); print(c.get_kernel('scale<double>').num_arguments)"
    done = python(script, input=pickled, text=False)
    assert done.stdout.strip() == b"1", done.stderr.decode()


def test_kernels_outlive_their_code_object(ptx):
    kernel = ObjectCode.from_ptx(ptx[0]).get_kernel("saxpy")
    gc.collect()
    assert kernel.num_arguments == 4
    assert kernel.attributes.max_threads_per_block > 0


def test_concurrent_loads_load_once(ptx):
    made = ObjectCode.from_ptx(ptx[0])
    barrier, seen = threading.Barrier(8), []

    def work():
        barrier.wait()
        seen.append((int(made.handle), int(made.get_kernel("saxpy").handle)))

    threads = [threading.Thread(target=work) for _ in range(8)]
    run_all(threads)
    assert len(seen) == 8 and len(set(seen)) == 1


def test_subclasses(ptx):
    class Mine(ObjectCode):
        pass

    assert type(Mine.from_ptx(ptx[0])) is ObjectCode


def test_object_code_does_not_leak(ptx):
    import resource

    def rounds(n):
        for _ in range(n):
            made = ObjectCode.from_ptx(ptx[0])
            made.get_kernel("saxpy").num_arguments
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = rounds(50)
    assert rounds(200) - before < 30_000


CHILD = """
import os, pickle, sys
from cuda.core import ObjectCode
code = ObjectCode.from_ptx(open(sys.argv[1], "rb").read())
kernel = code.get_kernel("saxpy")
kernel.attributes.num_regs
if sys.argv[2] == "fork":
    pid = os.fork()
    if pid == 0:
        del kernel, code
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    assert code.get_kernel("copy").num_arguments == 2
elif sys.argv[2] == "cycle":
    class Keep: pass
    keep = Keep(); keep.self = keep; keep.code, keep.kernel = code, kernel
elif sys.argv[2] == "builtins":
    import builtins
    builtins.kept = code, kernel, kernel.attributes, kernel.occupancy
else:
    raise SystemExit(0)
print("ok")
"""


@pytest.mark.parametrize("how", ["fork", "cycle", "builtins"])
def test_process_exit(ptx, tmp_path, how):
    path = pathlib.Path(tmp_path) / "k.ptx"
    path.write_bytes(ptx[0])
    done = python(CHILD, path, how, options=("-X", "dev", "-W", "ignore"))
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "ok", ""), done.stderr


WAITING = """
import ctypes, sys, time
from cuda.bindings import driver
from cuda.core import Device, ObjectCode
device = Device(0)
device.set_current()
code = ObjectCode.from_ptx(open(sys.argv[1], "rb").read())
kernel = code.get_kernel("saxpy")
driver.cuKernelGetFunction(kernel.handle)
stream = device.create_stream()
seen = []
def work(_):
    time.sleep(0.2)
    seen.append(1)
callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(work)
driver.cuLaunchHostFunc(stream.handle, driver.CUhostFn(ctypes.cast(callback, ctypes.c_void_p).value), 0)
del kernel, code
stream.sync()
print("ok", len(seen))
"""


def test_unloading_releases_the_gil(ptx, tmp_path):
    path = pathlib.Path(tmp_path) / "k.ptx"
    path.write_bytes(ptx[0])
    assert output(WAITING, path, timeout=60).strip() == "ok 1"


@pytest.mark.parametrize(
    "text, expressions, name, expected",
    [
        ("__global__ void f(int *p) {}", (), "f", 'add extern "C"'),
        ("template <class T> __global__ void f(T *p) {}", (), "f", 'name_expressions=["f<...>"]'),
        ("template <class T> __global__ void f(T *p) {}", ("f<int>",), "f<float>", 'name_expressions=["f<float>"]'),
        ("template <class T> __global__ void f(T *p) {}", ("f<int>",), "f", "did you mean `f<int>`?"),
    ],
)
def test_an_error_about_a_kernel_says_how_its_name_differs(text, expressions, name, expected):
    made = Program(text, "c++").compile("ptx", name_expressions=expressions)
    with pytest.raises(CUDAError) as refused:
        made.get_kernel(name)
    assert expected in str(refused.value)
    # The names of the code and of the mapping are one list.
    assert str(refused.value).count("has no kernel") == 1 >= str(refused.value).count("It has:")
