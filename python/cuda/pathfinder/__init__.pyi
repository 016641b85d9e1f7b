"""Find NVIDIA's libraries, headers and tools, and load the libraries into this process."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import _CacheInfo, _CacheParameters
from typing import Final, Generic, ParamSpec, TypeVar, type_check_only

__all__ = [
    "SUPPORTED_BINARY_UTILITIES",
    "SUPPORTED_BITCODE_LIBS",
    "SUPPORTED_HEADERS_CTK",
    "SUPPORTED_NVIDIA_LIBNAMES",
    "SUPPORTED_STATIC_LIBS",
    "BitcodeLibNotFoundError",
    "DynamicLibNotAvailableError",
    "DynamicLibNotFoundError",
    "DynamicLibUnknownError",
    "LoadedDL",
    "LocatedBitcodeLib",
    "LocatedHeaderDir",
    "LocatedStaticLib",
    "StaticLibNotFoundError",
    "UnsupportedArchError",
    "UnsupportedBinaryError",
    "find_bitcode_lib",
    "find_nvidia_binary_utility",
    "find_nvidia_header_directory",
    "find_static_lib",
    "get_cuda_path_or_home",
    "load_nvidia_dynamic_lib",
    "locate_bitcode_lib",
    "locate_nvidia_header_directory",
    "locate_static_lib",
]

__version__: Final[str]

SUPPORTED_NVIDIA_LIBNAMES: Final[tuple[str, ...]]
"""Names of the libraries of the toolkit that exist for this platform, for ``load_nvidia_dynamic_lib``."""
SUPPORTED_HEADERS_CTK: Final[dict[str, str]]
"""Names of the toolkit's sets of headers, each with the header that the folder must have, for ``locate_nvidia_header_directory``."""
SUPPORTED_BINARY_UTILITIES: Final[tuple[str, ...]]
"""Names of the tools, for ``find_nvidia_binary_utility``."""
SUPPORTED_STATIC_LIBS: Final[tuple[str, ...]]
"""Names of the static libraries that exist for this platform, for ``locate_static_lib``."""
SUPPORTED_BITCODE_LIBS: Final[tuple[str, ...]]
"""Names of the libraries in LLVM bitcode that exist for this platform, for ``locate_bitcode_lib``."""

class DynamicLibNotFoundError(RuntimeError):
    """A library could not be found. The message lists every place looked at and what to install."""

class DynamicLibUnknownError(DynamicLibNotFoundError):
    """No library of this name is known."""

class DynamicLibNotAvailableError(DynamicLibNotFoundError):
    """The library exists, but not for this platform."""

class BitcodeLibNotFoundError(RuntimeError):
    """A library in LLVM bitcode could not be found. The message lists every place looked at and what to install."""

class StaticLibNotFoundError(RuntimeError):
    """A static library could not be found. The message lists every place looked at and what to install."""

class UnsupportedBinaryError(ValueError):
    """No tool of this name is known. Its attribute ``utility`` is the name that was asked for."""

    utility: str

class UnsupportedArchError(RuntimeError):
    """No CUDA libraries exist for this Python on Windows, such as a 32-bit one.

    Attributes
    ----------
    platform_tag : str
        The value of ``sysconfig.get_platform()``.
    """

    platform_tag: str
    def __init__(self, platform_tag: str) -> None: ...

@dataclass
class LoadedDL:
    """A loaded library. It stays loaded until the process exits.

    Attributes
    ----------
    abs_path : str or None
        Its file; None if unknown.
    was_already_loaded_from_elsewhere : bool
        Whether it was loaded by something other than this package and ``cuda.bindings``.
    found_via : str
        The search step: ``site-packages``, ``conda``, ``system-search``, ``CUDA_PATH`` (also for ``CUDA_HOME``), the
        name of a product's variable, ``system-ctk-root``, ``override`` (``CUPYRITE_LIB_<NAME>``), or
        ``was-already-loaded-from-elsewhere``.

    Examples
    --------
    >>> import os
    >>> from cuda.pathfinder import load_nvidia_dynamic_lib
    >>> loaded = load_nvidia_dynamic_lib("nvrtc")
    >>> os.path.isfile(loaded.abs_path)
    True
    >>> print(loaded.found_via)
    site-packages...
    """

    abs_path: str | None
    was_already_loaded_from_elsewhere: bool
    _handle_uint: int
    found_via: str

@dataclass
class LocatedHeaderDir:
    """A folder of headers.

    Attributes
    ----------
    abs_path : str or None
        The folder, with links resolved. The constructor resolves its argument; an empty path becomes None.
    found_via : str
        The search step: ``site-packages``, ``conda``, ``CUDA_PATH`` (also for ``CUDA_HOME``), the name of a product's
        variable, ``system-ctk-root``, or ``supported_install_dir``.

    Examples
    --------
    >>> from cuda.pathfinder import LocatedHeaderDir, locate_nvidia_header_directory
    >>> found = locate_nvidia_header_directory("nvrtc")
    >>> found is None or isinstance(found, LocatedHeaderDir)
    True
    """

    abs_path: str | None
    found_via: str
    def __post_init__(self) -> None: ...

@dataclass(frozen=True)
class LocatedStaticLib:
    """A static library.

    Attributes
    ----------
    name : str
        The requested name, such as ``cudadevrt``.
    abs_path : str
        Its file, with links resolved.
    filename : str
        The last component of ``abs_path``.
    found_via : str
        The search step: ``site-packages``, ``conda``, or ``CUDA_PATH`` (also for ``CUDA_HOME``).

    Examples
    --------
    >>> from cuda.pathfinder import LocatedStaticLib, StaticLibNotFoundError, locate_static_lib
    >>> try:
    ...     assert isinstance(locate_static_lib("cudadevrt"), LocatedStaticLib)
    ... except StaticLibNotFoundError:
    ...     print("cudadevrt is not installed")
    """

    name: str
    abs_path: str
    filename: str
    found_via: str

@dataclass(frozen=True)
class LocatedBitcodeLib:
    """An LLVM bitcode library.

    Attributes
    ----------
    name : str
        The requested name, such as ``device``.
    abs_path : str
        Its file, with links resolved.
    filename : str
        The last component of ``abs_path``.
    found_via : str
        The search step: ``site-packages``, ``conda``, or ``CUDA_PATH`` (also for ``CUDA_HOME``).

    Examples
    --------
    >>> from cuda.pathfinder import BitcodeLibNotFoundError, locate_bitcode_lib
    >>> try:
    ...     found = locate_bitcode_lib("device")
    ...     assert found.name == "device" and found.abs_path.endswith(found.filename)
    ... except BitcodeLibNotFoundError:
    ...     found = None
    """

    name: str
    abs_path: str
    filename: str
    found_via: str

_P = ParamSpec("_P")
_T = TypeVar("_T")

@type_check_only
class _Memoized(Generic[_P, _T]):
    """A memoized function, like those of `functools.cache`, with parameters known to type checkers."""

    __wrapped__: Callable[_P, _T]
    __name__: str
    __qualname__: str
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _T: ...
    def cache_clear(self) -> None: ...
    def cache_info(self) -> _CacheInfo: ...
    def cache_parameters(self) -> _CacheParameters: ...

def _memoized(search: Callable[_P, _T]) -> _Memoized[_P, _T]: ...
@_memoized
def get_cuda_path_or_home() -> str | None:
    """Return ``CUDA_PATH``, or else ``CUDA_HOME``, unchanged.

    Issues a ``UserWarning`` once if both are set to different folders.

    Returns
    -------
    str or None
        None if neither is set, or both are empty. The result is cached; ``cache_clear()`` clears it.

    Examples
    --------
    >>> import os
    >>> from cuda.pathfinder import get_cuda_path_or_home
    >>> folder = get_cuda_path_or_home()
    >>> folder is None or folder in (os.environ.get("CUDA_PATH"), os.environ.get("CUDA_HOME"))
    True
    """

@_memoized
def load_nvidia_dynamic_lib(libname: str) -> LoadedDL:
    """Find a library and load it into this process, after its dependencies.

    A library that is already loaded is used, whoever loaded it. The symbols are visible to libraries loaded later
    (``RTLD_GLOBAL``). Releases the GIL during the search and the load.

    Parameters
    ----------
    libname : str
        The library's name without ``lib`` and ``.so``: ``"nvrtc"``, ``"cublasLt"``, ``"cuda"`` for the driver.
        ``SUPPORTED_NVIDIA_LIBNAMES`` lists those of the toolkit.

    Returns
    -------
    LoadedDL
        The same object for every call with the same name.

    Raises
    ------
    DynamicLibUnknownError
        The name is unknown.
    DynamicLibNotAvailableError
        The library does not exist for this platform.
    DynamicLibNotFoundError
        The library or a dependency is not installed.
    RuntimeError
        A file was found, and failed to load.

    Examples
    --------
    >>> import ctypes
    >>> from cuda.pathfinder import load_nvidia_dynamic_lib
    >>> nvrtc = ctypes.CDLL(load_nvidia_dynamic_lib("nvrtc").abs_path)
    >>> major, minor = ctypes.c_int(), ctypes.c_int()
    >>> nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    0
    >>> major.value >= 12
    True
    """

@_memoized
def locate_nvidia_header_directory(libname: str) -> LocatedHeaderDir | None:
    """Find the include folder (``-I``) of a library's headers, and the search step that found it.

    Parameters
    ----------
    libname : str
        The name of the header set: ``"cudart"``, ``"cccl"``, ``"cudnn"``. ``SUPPORTED_HEADERS_CTK`` lists those of
        the toolkit, each with the header that identifies the folder.

    Returns
    -------
    LocatedHeaderDir or None
        None if it is not installed.

    Raises
    ------
    RuntimeError
        The name is unknown.

    Examples
    --------
    >>> import os
    >>> from cuda.pathfinder import locate_nvidia_header_directory
    >>> found = locate_nvidia_header_directory("cudart")
    >>> if found is not None:  # installed
    ...     assert os.path.isfile(os.path.join(found.abs_path, "cuda_runtime.h"))
    """

def find_nvidia_header_directory(libname: str) -> str | None:
    """Find the include folder (``-I``) of a library's headers.

    Parameters
    ----------
    libname : str
        As for ``locate_nvidia_header_directory``.

    Returns
    -------
    str or None
        None if it is not installed.

    Raises
    ------
    RuntimeError
        The name is unknown.

    Examples
    --------
    >>> from cuda.core import ProgramOptions
    >>> from cuda.pathfinder import find_nvidia_header_directory
    >>> options = ProgramOptions(include_path=find_nvidia_header_directory("cudart"))
    """

_find_nvidia_header_directory = find_nvidia_header_directory

@_memoized
def find_nvidia_binary_utility(utility_name: str) -> str | None:
    """Find a command-line tool.

    Parameters
    ----------
    utility_name : str
        The tool's name without ``.exe``: ``"nvcc"``, ``"cuobjdump"``. ``SUPPORTED_BINARY_UTILITIES`` lists all.

    Returns
    -------
    str or None
        The file; None if it is not installed.

    Raises
    ------
    UnsupportedBinaryError
        The name is unknown.

    Examples
    --------
    >>> import subprocess
    >>> from cuda.pathfinder import find_nvidia_binary_utility
    >>> path = find_nvidia_binary_utility("cuobjdump")
    >>> if path is not None:  # installed
    ...     version = subprocess.check_output([path, "--version"], text=True)
    """

def locate_static_lib(name: str) -> LocatedStaticLib:
    """Find a static library, and the search step that found it.

    Parameters
    ----------
    name : str
        The library's name without ``lib`` and ``.a``: one of ``SUPPORTED_STATIC_LIBS``.

    Returns
    -------
    LocatedStaticLib

    Raises
    ------
    ValueError
        The name is unknown.
    StaticLibNotFoundError
        The library is not installed.

    Examples
    --------
    >>> from cuda.pathfinder import StaticLibNotFoundError, locate_static_lib
    >>> try:
    ...     found = locate_static_lib("cudadevrt")
    ...     assert found.abs_path.endswith(found.filename)
    ... except StaticLibNotFoundError:
    ...     found = None
    """

@_memoized
def find_static_lib(name: str) -> str:
    """Find the file of a static library.

    Parameters
    ----------
    name : str
        The library's name without ``lib`` and ``.a``: one of ``SUPPORTED_STATIC_LIBS``.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        The name is unknown.
    StaticLibNotFoundError
        The library is not installed.

    Examples
    --------
    >>> from cuda.pathfinder import StaticLibNotFoundError, find_static_lib
    >>> try:
    ...     path = find_static_lib("cudadevrt")
    ... except StaticLibNotFoundError as error:
    ...     reason = str(error)  # every place looked at, and what to install
    """

def locate_bitcode_lib(name: str) -> LocatedBitcodeLib:
    """Find an LLVM bitcode library, and the search step that found it.

    Parameters
    ----------
    name : str
        One of ``SUPPORTED_BITCODE_LIBS``; ``"device"`` is libdevice.

    Returns
    -------
    LocatedBitcodeLib

    Raises
    ------
    ValueError
        The name is unknown.
    BitcodeLibNotFoundError
        The library is not installed.

    Examples
    --------
    >>> from cuda.pathfinder import BitcodeLibNotFoundError, locate_bitcode_lib
    >>> try:
    ...     found = locate_bitcode_lib("device")
    ...     print(found.filename)
    ... except BitcodeLibNotFoundError:
    ...     print("libdevice.10.bc is not installed")
    libdevice.10.bc...
    """

@_memoized
def find_bitcode_lib(name: str) -> str:
    """Find the file of an LLVM bitcode library.

    Parameters
    ----------
    name : str
        One of ``SUPPORTED_BITCODE_LIBS``; ``"device"`` is libdevice.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        The name is unknown.
    BitcodeLibNotFoundError
        The library is not installed.

    Examples
    --------
    >>> from cuda.pathfinder import BitcodeLibNotFoundError, find_bitcode_lib
    >>> try:
    ...     path = find_bitcode_lib("device")
    ... except BitcodeLibNotFoundError as error:
    ...     reason = str(error)  # every place looked at, and what to install
    """
