"""Kernels that write their parameters' bytes to memory, for the tests of kernel arguments."""

import ctypes

from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

from helpers.device import check

# Parameter sizes in bytes.
SIZES = (1, 2, 3, 4, 8, 12, 16, 24, 32, 128, 600, 2000)
MANY = 40

_KERNELS = """
template <int N> struct Bytes { unsigned char bytes[N]; };
template <int N> __global__ void echo(unsigned char *out, Bytes<N> value)
{
    for (int i = 0; i < N; i++)
        out[i] = value.bytes[i];
}
template <class T> __device__ unsigned char *put(unsigned char *out, const T &value)
{
    const unsigned char *from = reinterpret_cast<const unsigned char *>(&value);
    for (int i = 0; i < sizeof(T); i++)
        out[i] = from[i];
    return out + sizeof(T);
}
struct Pair { int a; double b; };
extern "C" __global__ void mixed(unsigned char *out, char a, double b, short c, Pair d, float e, long long f, bool g,
                                 unsigned h, const void *i, unsigned short j, unsigned char k)
{
    out = put(put(put(put(put(put(out, a), b), c), d.a), d.b), e);
    put(put(put(put(put(put(out, f), g), h), i), j), k);
}
extern "C" __global__ void nothing() {}
extern "C" __global__ void fill(unsigned *out, unsigned value, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = value;
}
extern "C" __global__ void count(unsigned *n) { atomicAdd(n, 1u); }
extern "C" __global__ void shape(unsigned *out)
{
    extern __shared__ unsigned dynamic[];
    if (threadIdx.x || threadIdx.y || threadIdx.z || blockIdx.x || blockIdx.y || blockIdx.z)
        return;
    unsigned bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    unsigned values[] = {gridDim.x, gridDim.y, gridDim.z, blockDim.x, blockDim.y, blockDim.z, bytes};
    for (int i = 0; i < 7; i++)
        out[i] = values[i];
}
"""


def _many():
    """A kernel of many parameters, of 1, 2, 4 and 8 bytes in turn."""
    types = ("unsigned char", "unsigned short", "unsigned", "unsigned long long")
    parameters = ", ".join(f"{types[i % 4]} p{i}" for i in range(MANY))
    body = " ".join(f"out = put(out, p{i});" for i in range(MANY))
    return f'extern "C" __global__ void many(unsigned char *out, {parameters}) {{ {body} }}\n'


class Echo:
    """The kernels, compiled once, and the buffer that they write to."""

    ROOM = 4096

    def __init__(self):
        self.device = Device(0)
        self.device.set_current()
        self.stream = self.device.create_stream()
        program = Program(_KERNELS + _many(), "c++", ProgramOptions(arch=f"sm_{self.device.arch}", std="c++17"))
        names = [f"echo<{size}>" for size in SIZES]
        self.code = program.compile("cubin", name_expressions=names)
        self.echoes = {size: self.code.get_kernel(name) for size, name in zip(SIZES, names)}
        self.buffer = self.device.allocate(self.ROOM, stream=self.stream)
        self.one = LaunchConfig(grid=1, block=1)

    def kernel(self, name):
        return self.code.get_kernel(name)

    def read(self, count):
        """The first bytes of the buffer, after all queued work."""
        self.stream.sync()
        memory = ctypes.create_string_buffer(count)
        check(driver.cuMemcpyDtoH(ctypes.addressof(memory), int(self.buffer.handle), count))
        return memory.raw

    def clear(self):
        self.stream.sync()
        check(driver.cuMemsetD8(int(self.buffer.handle), 0xA5, self.ROOM))
        check(driver.cuCtxSynchronize())

    def of(self, size, value):
        """The bytes that a kernel with one parameter of `size` bytes receives."""
        self.clear()
        launch(self.stream, self.one, self.echoes[size], self.buffer, value)
        found = self.read(size + 8)
        assert found[size:] == b"\xa5" * 8
        return found[:size]
