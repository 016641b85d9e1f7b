"""Helpers: environment switches, driver and PTX versions, handles as integers."""

from __future__ import annotations

import os
import warnings

from cuda.bindings import driver

TYPE_CHECKING = False  # `typing` takes longer to import than this module
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

__all__ = [
    "check_nvvm_compiler_options",
    "envvar_bool",
    "get_cuda_native_handle",
    "get_minimal_required_cuda_ver_from_ptx_ver",
    "get_ptx_ver",
    "warn_if_cuda_major_version_mismatch",
]

# The CUDA major version whose headers the bindings were generated from.
_HEADERS_MAJOR = 13
_checked = False


def envvar_bool(name: str, default: bool = False) -> bool:
    """Return whether the environment variable `name` enables something.

    Unset or empty is `default`; zero, ``false``, ``no`` and ``off`` (case-insensitive) are False; anything else is
    True.
    """
    value = os.environ.get(name, "").strip().lower()
    if not value:
        return default
    try:
        return int(value) != 0
    except ValueError:
        return value not in ("false", "no", "off")


def warn_if_cuda_major_version_mismatch() -> None:
    """Warn once per process if the driver's CUDA major version is older than that of the bindings.

    Functions of the newer major version are then missing; the others work. The environment variable
    ``CUDA_PYTHON_DISABLE_MAJOR_VERSION_WARNING`` disables the warning. Raises the errors of loading the driver, and
    RuntimeError if the driver does not report its version.
    """
    global _checked
    if _checked or envvar_bool("CUDA_PYTHON_DISABLE_MAJOR_VERSION_WARNING"):
        return
    status, version = driver.cuDriverGetVersion()
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"cuDriverGetVersion: {status!r}")
    _checked = True
    major, minor = version // 1000, version % 1000 // 10
    if major < _HEADERS_MAJOR:
        warnings.warn(
            f"cuda.bindings is made for CUDA {_HEADERS_MAJOR}, the installed driver supports CUDA {major}.{minor}: "
            f"functions that are new in CUDA {_HEADERS_MAJOR} are missing. Install a newer driver, or set "
            "CUDA_PYTHON_DISABLE_MAJOR_VERSION_WARNING=1 to silence this.",
            UserWarning,
            stacklevel=2,
        )


# ----------------------------------------------------------------------------------------------------------
# Handles

# The handle classes. `_handle_getters` holds those used so far and registered ones, so that importing this module
# creates no class.
_HANDLES = {
    "cuda.bindings.driver": frozenset(
        """CUarray CUasyncCallbackHandle CUcheckpointOperationHandle CUcontext CUcoredumpCallbackHandle CUdevResourceDesc
        CUeglStreamConnection CUevent CUexternalMemory CUexternalSemaphore CUfunction CUgraph CUgraphDeviceNode
        CUgraphExec CUgraphNode CUgraphicsResource CUgreenCtx CUkernel CUlibrary CUlinkState CUlogsCallbackHandle
        CUmemoryPool CUmipmappedArray CUmodule CUstream CUsurfref CUtexref CUuserObject EGLImageKHR EGLStreamKHR
        EGLSyncKHR""".split()
    ),
    "cuda.bindings.runtime": frozenset(
        """EGLImageKHR EGLStreamKHR EGLSyncKHR cudaArray_const_t cudaArray_t cudaAsyncCallbackHandle_t
        cudaDevResourceDesc_t cudaEglStreamConnection cudaEvent_t cudaExecutionContext_t cudaExternalMemory_t
        cudaExternalSemaphore_t cudaFunction_t cudaGraphDeviceNode_t cudaGraphExec_t cudaGraphNode_t cudaGraph_t
        cudaGraphicsResource_t cudaKernel_t cudaLibrary_t cudaLogsCallbackHandle cudaMemPool_t
        cudaMipmappedArray_const_t cudaMipmappedArray_t cudaStream_t cudaUserObject_t""".split()
    ),
    "cuda.bindings.nvrtc": frozenset(["nvrtcProgram"]),
}


class _Getters(dict):  # type: ignore[type-arg]  # the base is evaluated at run time, without typing
    """Functions that return the C handle of an object, by class; those of the bindings are added on first use."""

    def __missing__(self, kind: type) -> Callable[[Any], int]:
        if kind.__name__ not in _HANDLES.get(kind.__module__, ()):
            raise KeyError(kind)
        self[kind] = int
        return int


_handle_getters: dict[type, Callable[[Any], int]] = _Getters()


def _add_cuda_native_handle_getter(t: type, getter: Callable[[Any], int]) -> None:
    """Register the class `t` with `get_cuda_native_handle`; `getter(object)` returns the handle."""
    _handle_getters[t] = getter


def get_cuda_native_handle(obj: Any) -> int:
    """Return the C handle of an object such as `CUstream` or `nvrtcProgram` as an integer.

    Accepts only pointer handles; integers such as `CUdeviceptr` and `CUdevice`, and anything else, raise TypeError.
    """
    try:
        getter = _handle_getters[type(obj)]
    except KeyError:
        kind = type(obj)
        raise TypeError(
            f"get_cuda_native_handle() takes a handle of cuda.bindings such as CUstream, not {kind.__name__}"
        ) from None
    return getter(obj)


# ----------------------------------------------------------------------------------------------------------
# PTX and NVVM

# The first toolkit that supports a PTX version, from the release table of NVIDIA's PTX ISA manual. Consecutive
# versions in consecutive minor releases are one row: (PTX major, first minor), (CUDA major, minor), count.
_PTX_RELEASES = (
    ((1, 0), (1, 0), 2),
    ((1, 2), (2, 0), 3),
    ((2, 0), (3, 0), 3),
    ((2, 3), (4, 0), 1),
    ((3, 0), (4, 1), 1),
    ((3, 1), (5, 0), 1),
    ((3, 2), (5, 5), 1),
    ((4, 0), (6, 0), 1),
    ((4, 1), (6, 5), 1),
    ((4, 2), (7, 0), 1),
    ((4, 3), (7, 5), 1),
    ((5, 0), (8, 0), 1),
    ((6, 0), (9, 0), 3),
    ((6, 3), (10, 0), 3),
    ((7, 0), (11, 0), 9),
    ((8, 0), (12, 0), 6),
    ((8, 6), (12, 7), 3),
    ((9, 0), (13, 0), 6),
)
_CUDA_OF_PTX = {
    f"{major}.{minor + i}": cuda * 1000 + (cuda_minor + i) * 10
    for (major, minor), (cuda, cuda_minor), count in _PTX_RELEASES
    for i in range(count)
}


def get_ptx_ver(ptx: str) -> str:
    """Return the PTX ISA version of PTX source: ``"8.4"``.

    Reads the first ``.version`` directive, which PTX must begin with. Raises ValueError if there is none.
    """
    if not isinstance(ptx, str):
        hint = ": decode it first" if isinstance(ptx, (bytes, bytearray)) else ""
        raise TypeError(f"get_ptx_ver() takes PTX source as a str, not {type(ptx).__name__}{hint}")
    import re  # deferred, because few programs call this function

    found = re.search(r"\.version\s+([0-9]+\.[0-9]+)", ptx)
    if found is None:
        raise ValueError("get_ptx_ver(): the source has no .version directive, so it is no PTX")
    return found[1]


def get_minimal_required_cuda_ver_from_ptx_ver(ptx_version: str) -> int:
    """Return the first CUDA version that supports a PTX ISA version: 12040 for ``"8.4"``, in the format of
    `cuDriverGetVersion`.

    Raises ValueError for a version that is not in NVIDIA's manual or newer than these bindings.
    """
    if not isinstance(ptx_version, str) or ptx_version not in _CUDA_OF_PTX:
        newest = max(_CUDA_OF_PTX, key=_CUDA_OF_PTX.__getitem__)
        raise ValueError(
            f"ptx_version must be a version of the PTX ISA from '1.0' to {newest!r}, as get_ptx_ver() gives it, "
            f"not {ptx_version!r}"
        )
    return _CUDA_OF_PTX[ptx_version]


# A minimal NVVM module: target and IR version, no definitions. https://docs.nvidia.com/cuda/nvvm-ir-spec/
_EMPTY_MODULE = """target triple = "nvptx64-nvidia-cuda"
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-\
v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
!nvvmir.version = !{!0}
!0 = !{i32 %d, i32 %d, i32 %d, i32 %d}
"""


def check_nvvm_compiler_options(options: Sequence[str]) -> bool:
    """Return whether the installed libNVVM supports all `options`, such as ``["-arch=compute_90", "-opt=3"]``.

    Compiles an empty module with them. Raises the errors of loading libNVVM, and nvvmError if the compiler fails for
    another reason.
    """
    from cuda.bindings import nvvm

    if isinstance(options, (str, bytes)):
        raise TypeError("options must be a sequence of strings, not a single one")
    options = list(options)
    source = (_EMPTY_MODULE % nvvm.ir_version()).encode()
    program = nvvm.create_program()
    try:
        nvvm.add_module_to_program(program, source, len(source), "empty")
        nvvm.compile_program(program, len(options), options)
    except nvvm.nvvmError as error:
        if error.status != nvvm.Result.ERROR_INVALID_OPTION:
            raise
        return False
    finally:
        nvvm.destroy_program(program)
    return True
