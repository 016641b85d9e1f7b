"""Helpers around the bindings: environment switches, the driver's version, handles as integers.

What else NVIDIA's module of this name offers (PTX versions, NVVM's options) comes with the modules it is about.
"""

import os
import warnings

from cuda.bindings import driver

__all__ = ["envvar_bool", "get_cuda_native_handle", "warn_if_cuda_major_version_mismatch"]

# The CUDA major version whose headers the bindings were generated from.
_HEADERS_MAJOR = 13
_checked = False


def envvar_bool(name: str, default: bool = False) -> bool:
    """Whether the environment variable `name` switches something on.

    Unset or empty is `default`; zero, ``false``, ``no`` and ``off`` in any case are off; anything else is on.
    """
    value = os.environ.get(name, "").strip().lower()
    if not value:
        return default
    try:
        return int(value) != 0
    except ValueError:
        return value not in ("false", "no", "off")


def warn_if_cuda_major_version_mismatch() -> None:
    """Warns, once a process, if the driver is of an older CUDA major version than these bindings.

    Functions that came with the newer major version are missing then; the others work. The environment variable
    ``CUDA_PYTHON_DISABLE_MAJOR_VERSION_WARNING`` switches the warning off. Raises what loading the driver raises, and
    RuntimeError if the driver does not tell its version.
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


def get_cuda_native_handle(obj: object) -> int:
    """The C handle in an object such as `CUstream` or `nvrtcProgram`, as an integer.

    Only classes that stand for pointers qualify; numbers such as `CUdeviceptr` and `CUdevice`, and anything else, raise
    TypeError.
    """
    kind = type(obj)
    if kind.__module__.startswith("cuda.bindings.") and "__index__" in vars(kind) and "__eq__" in vars(kind):
        return int(obj)  # type: ignore[call-overload,no-any-return]
    raise TypeError(f"get_cuda_native_handle() takes a handle of cuda.bindings such as CUstream, not {kind.__name__}")
