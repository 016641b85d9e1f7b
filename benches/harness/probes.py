"""One-line programs that a side runs to describe itself."""

# The device that serves the process: cpu or gpu.
DEVICE = (
    "from cuda.bindings import driver as d; d.cuInit(0); "
    "print('cpu' if d.cuDeviceGetName(256, d.cuDeviceGet(0)[1])[1].startswith(b'CPU') else 'gpu')"
)

# The file of the CUDA runtime in use; nothing for Cupyrite's own.
LIBCUDART = (
    "from cuda.bindings import runtime; runtime.cudaGetDeviceCount(); from cupyrite import _native; "
    "print(_native.library_path('cudart') or '')"
)


def answer(side, program):
    """What the program prints on a side."""
    return side.run("-W", "ignore", "-c", program).strip()
