"""LaunchConfig, launch and kernel arguments."""

from .devices import COMMON, CURRENT

LAUNCH = (
    CURRENT
    + '''
import array, decimal, enum, fractions
s = d.create_stream()
h = int(s.handle)
source = """
struct S { int a; double b; };
extern "C" __global__ void i1(signed char *o, signed char v) { *o = v; }
extern "C" __global__ void i2(short *o, short v) { *o = v; }
extern "C" __global__ void i4(int *o, int v) { *o = v; }
extern "C" __global__ void i8(long long *o, long long v) { *o = v; }
extern "C" __global__ void f4(float *o, float v) { *o = v; }
extern "C" __global__ void f8(double *o, double v) { *o = v; }
extern "C" __global__ void b1(bool *o, bool v) { *o = v; }
extern "C" __global__ void c8(float2 *o, float2 v) { *o = v; }
extern "C" __global__ void c16(double2 *o, double2 v) { *o = v; }
extern "C" __global__ void st(S *o, S v) { *o = v; }
extern "C" __global__ void pp(void **o, void *v) { *o = v; }
extern "C" __global__ void none() {}
extern "C" __global__ void two(int *o, int a, long long b) { o[0] = a; o[1] = (int)b; }
"""
oc = Program(source, "c++").compile("ptx")
K = {n: oc.get_kernel(n) for n in "i1 i2 i4 i8 f4 f8 b1 c8 c16 st pp none two".split()}
host = Buffer.from_handle(int(driver.cuMemHostAlloc(64, 0)[1]), 64)
raw = (ctypes.c_uint8 * 64).from_address(host.handle)
one = LaunchConfig(grid=1, block=1)
def go(kernel, *args):
    for i in range(64): raw[i] = 0x5A
    launch(s, one, K[kernel], host, *args)
    s.sync()
    return bytes(raw)[:24].hex()
class Struct(ctypes.Structure):
    _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_double)]
record = np.zeros(1, np.dtype([("a", "i4"), ("b", "f8")], align=True))
record["a"], record["b"] = 7, 2.5
class Foreign:
    __cuda_array_interface__ = {"shape": (4,), "typestr": "|u1", "data": (0x1234, False), "version": 3}
class Index:
    def __index__(self): return 5
class Int(int): pass
class Float(float): pass
class E(enum.IntEnum): A = 3
b = d.allocate(16, stream=s)
closed = d.allocate(16, stream=s)
closed.close()
def pointer(*args):
    return go("pp", *args)[:16] == b.handle.to_bytes(8, "little").hex()
'''
)

GROUPS = {
    "launch config": (
        CURRENT,
        """
        public(LaunchConfig)
        LaunchConfig()
        LaunchConfig(grid=1)
        LaunchConfig(block=1)
        LaunchConfig(grid=1, block=1), LaunchConfig(1, None, 1)
        LaunchConfig(1, 1)
        LaunchConfig(grid=(1, 2, 3), block=(4, 5, 6), shmem_size=7), LaunchConfig(grid=(1, 2), block=(3,))
        LaunchConfig(grid=[1, 2], block=1)
        LaunchConfig(grid=(1, 2, 3, 4), block=1)
        LaunchConfig(grid=(), block=1)
        LaunchConfig(grid="x", block=1)
        LaunchConfig(grid=("x",), block=1)
        LaunchConfig(grid=1.0, block=1)
        LaunchConfig(grid=(1.0,), block=1)
        LaunchConfig(grid=0, block=1)
        LaunchConfig(grid=(1, 0), block=1)
        LaunchConfig(grid=-1, block=1)
        LaunchConfig(grid=1, block=0)
        LaunchConfig(grid=np.int32(3), block=1)
        LaunchConfig(grid=(np.int32(3),), block=1)
        LaunchConfig(grid=np.array([1, 2]), block=1)
        LaunchConfig(grid=1 << 40, block=1)
        LaunchConfig(grid=True, block=1).grid == (1, 1, 1)
        LaunchConfig(grid=1, block=1, shmem_size="x")
        LaunchConfig(grid=1, block=1, shmem_size=-1)
        LaunchConfig(grid=1, block=1, shmem_size=None).shmem_size
        LaunchConfig(grid=1, block=1, shmem_size=1 << 40)
        LaunchConfig(grid=1, block=1, is_cooperative=True), LaunchConfig(grid=1, block=1, is_cooperative=1).is_cooperative
        LaunchConfig(grid=1, block=1, programmatic_stream_serialization=True)
        LaunchConfig(grid=1, block=1, foo=3)
        LaunchConfig(grid=1, block=1, cooperative_launch=True).is_cooperative
        LaunchConfig(grid=4, cluster=2, block=1)
        c = LaunchConfig(grid=(1, 2), block=3, shmem_size=4)
        c.grid, c.block, c.cluster, c.shmem_size, c.is_cooperative, c.programmatic_stream_serialization
        c == LaunchConfig(grid=(1, 2, 1), block=(3,), shmem_size=4), hash(c) == hash(LaunchConfig(grid=(1, 2), block=3, shmem_size=4)), c == 3
        c == LaunchConfig(grid=1, block=1), c != None
        c < c
        str(c) == repr(c)
        weakref.ref(c)() is c
        c.grid = (5, 6, 7); c.grid
        c.shmem_size = 8; c.is_cooperative = True; c
        c.grid = "x"
        c.foo = 3
        copy.copy(c)
        pickle.dumps(c)
        class Sub(LaunchConfig): pass
        Sub(grid=1, block=1).grid
        """,
    ),
    "launch: numbers": (
        LAUNCH,
        """
        go("i8", 5), go("i8", -5), go("i8", -(1 << 63)), go("i8", (1 << 63) - 1)
        go("i8", 1 << 63)
        go("i8", (1 << 64) - 1)
        go("i8", 1 << 64)
        go("i8", -(1 << 63) - 1)
        go("i4", 5)
        go("i4", -5)
        go("i2", 5)
        go("b1", True), go("b1", False)
        go("f8", 1.5), go("c16", 1 + 2j), go("i8", Int(4)), go("f8", Float(1.5)), go("i8", E.A)
        go("f4", 1.5)
        go("c8", 1 + 2j)
        go("i1", np.int8(-3)), go("i1", np.uint8(250)), go("i2", np.int16(-3)), go("i2", np.uint16(65000))
        go("i4", np.int32(-3)), go("i4", np.uint32(1 << 31)), go("i8", np.int64(-3)), go("i8", np.uint64(1 << 63))
        go("b1", np.bool_(True)), go("f4", np.float32(1.5)), go("f8", np.float64(1.5)), go("i2", np.float16(1.5))
        go("c8", np.complex64(1 + 2j)), go("c16", np.complex128(1 + 2j))
        go("f8", np.longdouble(1.5))
        go("i8", np.datetime64("2020-01-01"))
        go("i8", np.str_("x"))
        go("i1", ctypes.c_int8(-3)), go("i1", ctypes.c_uint8(3)), go("i2", ctypes.c_int16(-3)), go("i2", ctypes.c_uint16(3))
        go("i4", ctypes.c_int32(-3)), go("i4", ctypes.c_uint32(3)), go("i8", ctypes.c_int64(-3)), go("i8", ctypes.c_uint64(3))
        go("i8", ctypes.c_long(3)), go("i8", ctypes.c_size_t(3)), go("i1", ctypes.c_byte(1)), go("b1", ctypes.c_bool(True))
        go("f4", ctypes.c_float(1.5)), go("f8", ctypes.c_double(1.5))
        go("i1", ctypes.c_char(b"a"))
        go("i4", ctypes.c_wchar("a"))
        go("f8", ctypes.c_longdouble(1.5))
        go("f8", fractions.Fraction(1, 2))
        go("f8", decimal.Decimal(1))
        """,
    ),
    "launch: pointers": (
        LAUNCH,
        """
        pointer(b), pointer(b.handle), pointer(np.uint64(b.handle)), pointer(np.intp(b.handle)), pointer(ctypes.c_uint64(b.handle))
        go("pp", 0)
        go("pp", closed)
        go("pp", None)
        go("pp", driver.CUdeviceptr(0x1234))
        pointer(driver.CUdeviceptr(b.handle))
        pointer(ctypes.c_void_p(b.handle))
        go("pp", ctypes.c_void_p(None))
        go("pp", Foreign())
        go("pp", Index())
        go("pp", s)
        go("pp", s.handle)
        go("pp", d)
        go("pp", oc)
        go("pp", K["none"])
        go("pp", np.zeros(4))
        go("pp", np.array(5))
        go("pp", "x")
        go("pp", b"x")
        go("pp", (1,))
        go("pp", [1])
        go("pp", {})
        go("pp", object())
        go("pp", ctypes.c_char_p(b"a"))
        go("pp", array.array("i", [1]))
        go("pp", ctypes.pointer(ctypes.c_int(3)))
        go("pp", ctypes.byref(ctypes.c_int(3)))
        """,
    ),
    "launch: structs": (
        LAUNCH,
        """
        go("st", Struct(7, 2.5)), go("st", record[0]), go("st", np.void(record[0]))
        go("st", record)
        go("st", bytes(16))
        go("st", bytearray(16))
        go("st", (ctypes.c_int * 4)(1, 2, 3, 4))
        """,
    ),
    "launch: call": (
        LAUNCH + "none = K['none']\nshut = d.create_stream()\nshut.close()\n",
        """
        launch(s, one, none)
        launch(stream=s, config=one, kernel=none)
        launch()
        launch(s)
        launch(s, one)
        launch(none, one, s)
        launch(None, one, none)
        launch(3, one, none)
        launch("x", one, none)
        launch(d, one, none)
        launch(h, one, none)
        launch(s.handle, one, none)
        launch(Streamlike((0, h)), one, none)
        launch(Streamlike((1, h)), one, none)
        launch(LEGACY_DEFAULT_STREAM, one, none)
        launch(PER_THREAD_DEFAULT_STREAM, one, none)
        launch(shut, one, none)
        launch(s, None, none)
        launch(s, 3, none)
        launch(s, {"grid": 1, "block": 1}, none)
        launch(s, (1, 1), none)
        launch(s, one, None)
        launch(s, one, 3)
        launch(s, one, oc)
        launch(s, one, none.handle)
        launch(s, one, none, foo=3)
        launch(s, one, Kernel.from_handle(int(none.handle)))
        launch(s, one, none) is None
        launch(s, LaunchConfig(grid=1, block=4096), none)
        launch(s, LaunchConfig(grid=(1, 70000, 1), block=1), none)
        launch(s, LaunchConfig(grid=1, block=1, shmem_size=1 << 20), none)
        launch(s, LaunchConfig(grid=1, block=1, is_cooperative=True), none)
        launch(s, LaunchConfig(grid=1 << 20, block=1, is_cooperative=True), none)
        launch(s, LaunchConfig(grid=1, block=1, programmatic_stream_serialization=True), none)
        launch(s, one, K["two"], host, np.int32(1), 2); s.sync(); bytes(raw)[:8].hex()
        launch(s, one, K["i4"], host)
        launch(s, one, K["i4"])
        s.sync()
        """,
    ),
    "launch: too many arguments": (
        LAUNCH,
        """
        launch(s, one, K["none"], 1)
        launch(s, one, K["i4"], host, np.int32(1), 2)
        s.sync()
        """,
    ),
    "launch: without a context": (
        COMMON,
        """
        LaunchConfig(grid=1, block=1).grid
        from cuda.core._kernel_arg_handler import ParamHolder; ParamHolder((1, 2.0, True)).ptr != 0
        ParamHolder(()).ptr
        ParamHolder([1]).ptr != 0
        p = ParamHolder((77, 2.5)); a = (ctypes.c_void_p * 2).from_address(p.ptr); ctypes.c_longlong.from_address(a[0]).value, ctypes.c_double.from_address(a[1]).value
        ParamHolder()
        ParamHolder((object(),))
        ParamHolder(3)
        """,
    ),
}
