"""Finding NVIDIA's libraries, headers, tools and archives, and loading the libraries into this process."""

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
    """There are no CUDA libraries for this kind of Python on Windows, such as a 32-bit one.

    Attributes
    ----------
    platform_tag : str
        What ``sysconfig.get_platform()`` calls it.
    """

    platform_tag: str
    def __init__(self, platform_tag: str) -> None: ...

@dataclass
class LoadedDL:
    """A library in this process. It stays there until the process ends.

    Attributes
    ----------
    abs_path : str or None
        Its file; None where that cannot be told.
    was_already_loaded_from_elsewhere : bool
        Whether something else than this package and ``cuda.bindings`` had loaded it.
    found_via : str
        How it was found: ``site-packages``, ``conda``, ``system-search``, ``CUDA_PATH`` (also by ``CUDA_HOME``), the
        name of a variable of the product's own, ``system-ctk-root``, ``override`` (``CUPYRITE_LIB_<NAME>``), or
        ``was-already-loaded-from-elsewhere``.
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
        The folder, without links. A path passed in is made so; an empty one becomes None.
    found_via : str
        How it was found: ``site-packages``, ``conda``, ``CUDA_PATH`` (also by ``CUDA_HOME``), the name of a variable of
        the product's own, ``system-ctk-root``, or ``supported_install_dir``.
    """

    abs_path: str | None
    found_via: str
    def __post_init__(self) -> None: ...

@dataclass(frozen=True)
class LocatedStaticLib:
    """A library to link with.

    Attributes
    ----------
    name : str
        The name it was asked for by, such as ``cudadevrt``.
    abs_path : str
        Its file, without links.
    filename : str
        The last part of that.
    found_via : str
        How it was found: ``site-packages``, ``conda``, or ``CUDA_PATH`` (also by ``CUDA_HOME``).
    """

    name: str
    abs_path: str
    filename: str
    found_via: str

@dataclass(frozen=True)
class LocatedBitcodeLib:
    """A library in LLVM bitcode.

    Attributes
    ----------
    name : str
        The name it was asked for by, such as ``device``.
    abs_path : str
        Its file, without links.
    filename : str
        The last part of that.
    found_via : str
        How it was found: ``site-packages``, ``conda``, or ``CUDA_PATH`` (also by ``CUDA_HOME``).
    """

    name: str
    abs_path: str
    filename: str
    found_via: str

_P = ParamSpec("_P")
_T = TypeVar("_T")

@type_check_only
class _Memoized(Generic[_P, _T]):
    """A function that remembers, as those of `functools.cache`, but with its parameters known to type checkers."""

    __wrapped__: Callable[_P, _T]
    __name__: str
    __qualname__: str
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _T: ...
    def cache_clear(self) -> None: ...
    def cache_info(self) -> _CacheInfo: ...
    def cache_parameters(self) -> _CacheParameters: ...

def _remembers(search: Callable[_P, _T]) -> _Memoized[_P, _T]: ...
@_remembers
def get_cuda_path_or_home() -> str | None:
    """The root of the toolkit that the environment names: ``CUDA_PATH``, or else ``CUDA_HOME``, as it is set.

    Where both are set and lead to different folders, a ``UserWarning`` says so, once.

    Returns
    -------
    str or None
        None where neither is set, or both are empty. Remembered: see ``cache_clear``.
    """

@_remembers
def load_nvidia_dynamic_lib(libname: str) -> LoadedDL:
    """Finds a library and loads it into this process, with what it depends on.

    A library that is in the process already is taken as it is, whoever loaded it. The symbols are visible to all
    that is loaded later (``RTLD_GLOBAL``). Other threads run while this one searches and loads.

    Parameters
    ----------
    libname : str
        The library's name without ``lib`` and ``.so``: ``"nvrtc"``, ``"cublasLt"``, ``"cuda"`` for the driver. Those
        of the toolkit are in ``SUPPORTED_NVIDIA_LIBNAMES``.

    Returns
    -------
    LoadedDL
        The same object for every call with this name.

    Raises
    ------
    DynamicLibUnknownError
        There is no library of this name.
    DynamicLibNotAvailableError
        There is one, but not for this platform.
    DynamicLibNotFoundError
        It is not installed, or a library that it needs is not.
    RuntimeError
        A file was found that does not load.
    """

@_remembers
def locate_nvidia_header_directory(libname: str) -> LocatedHeaderDir | None:
    """Finds the folder to give to a compiler (``-I``) for a library's headers, and says how it was found.

    Parameters
    ----------
    libname : str
        The name of the set of headers: ``"cudart"``, ``"cccl"``, ``"cudnn"``. Those of the toolkit are in
        ``SUPPORTED_HEADERS_CTK``, each with the header that must be in the folder.

    Returns
    -------
    LocatedHeaderDir or None
        None where it is not installed.

    Raises
    ------
    RuntimeError
        There is no set of headers of this name.
    """

def find_nvidia_header_directory(libname: str) -> str | None:
    """Finds the folder to give to a compiler (``-I``) for a library's headers.

    Parameters
    ----------
    libname : str
        As for ``locate_nvidia_header_directory``.

    Returns
    -------
    str or None
        None where it is not installed.

    Raises
    ------
    RuntimeError
        There is no set of headers of this name.
    """

_find_nvidia_header_directory = find_nvidia_header_directory

@_remembers
def find_nvidia_binary_utility(utility_name: str) -> str | None:
    """Finds a command-line tool.

    Parameters
    ----------
    utility_name : str
        Its name, without ``.exe``: ``"nvcc"``, ``"cuobjdump"``. All are in ``SUPPORTED_BINARY_UTILITIES``.

    Returns
    -------
    str or None
        The file; None where it is not installed.

    Raises
    ------
    UnsupportedBinaryError
        There is no tool of this name.
    """

def locate_static_lib(name: str) -> LocatedStaticLib:
    """Finds a static library, and says how it was found.

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
        There is no static library of this name.
    StaticLibNotFoundError
        It is not installed.
    """

@_remembers
def find_static_lib(name: str) -> str:
    """Finds the file of a static library.

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
        There is no static library of this name.
    StaticLibNotFoundError
        It is not installed.
    """

def locate_bitcode_lib(name: str) -> LocatedBitcodeLib:
    """Finds a library in LLVM bitcode, and says how it was found.

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
        There is no bitcode library of this name.
    BitcodeLibNotFoundError
        It is not installed.
    """

@_remembers
def find_bitcode_lib(name: str) -> str:
    """Finds the file of a library in LLVM bitcode.

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
        There is no bitcode library of this name.
    BitcodeLibNotFoundError
        It is not installed.
    """
