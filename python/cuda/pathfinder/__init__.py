"""Find NVIDIA's libraries, headers and tools, and load the libraries into this process.

The search is implemented in Rust; the project's documentation describes its order and its environment variables.
Importing this package accesses no other files. Each error lists every searched location, what was found there, and
the command that fixes it.
"""

import os as _os
import sys as _sys
from _thread import RLock as _RLock

from cupyrite import _native
from cupyrite._native import (
    BitcodeLibNotFoundError,
    DynamicLibNotAvailableError,
    DynamicLibNotFoundError,
    DynamicLibUnknownError,
    StaticLibNotFoundError,
    UnsupportedBinaryError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as _record
    from functools import _CacheInfo, _CacheParameters
    from typing import Any, Final, Generic, ParamSpec, TypeVar

    _P = ParamSpec("_P")
    _T = TypeVar("_T")
    _Archive = TypeVar("_Archive", "LocatedBitcodeLib", "LocatedStaticLib")

    class _Memoized(Generic[_P, _T]):
        """A memoized function, like those of `functools.cache`, with parameters known to type checkers."""

        __wrapped__: Callable[_P, _T]
        __name__: str
        __qualname__: str
        hits: int
        cache_clear: Callable[[], None]
        cache_info: Callable[[], _CacheInfo]
        cache_parameters: Callable[[], _CacheParameters]

        def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _T: ...


__version__ = "1.9.1"

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


class UnsupportedArchError(RuntimeError):
    """No CUDA libraries exist for this Python on Windows, such as a 32-bit one.

    Attributes
    ----------
    platform_tag : str
        The value of ``sysconfig.get_platform()``.
    """

    def __init__(self, platform_tag: str) -> None:
        super().__init__(f"no CUDA libraries exist for Python on {platform_tag!r}, only for win-amd64 and win-arm64")
        self.platform_tag = platform_tag

    def __reduce__(self) -> "tuple[Any, ...]":
        return type(self), (self.platform_tag,)


# ----------------------------------------------------------------------------------------------------------------------
# Result classes: data classes that do not import `dataclasses`, which takes longer than the rest of this module.
# `_dataclass` completes them when `dataclasses` inspects them. For type checkers, `_record` is `dataclasses.dataclass`.


class _OnDemand:
    """Class attribute that is computed on first access and then stored."""

    def __init__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, instance: object, owner: "type | None" = None) -> object:
        from ._dataclass import complete

        complete(self.owner)
        return getattr(self.owner, self.name)


def _data_class(cls: "Any" = None, *, frozen: bool = False) -> "Any":
    """Add the methods of a data class; the annotations are the fields. A frozen class is immutable and hashable."""
    if cls is None:
        return lambda cls: _data_class(cls, frozen=frozen)
    names = tuple(cls.__annotations__)

    def __repr__(self: object) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def __eq__(self: object, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __replace__(self: "Any", /, **changes: object) -> "Any":
        from dataclasses import replace

        return replace(self, **changes)

    def __hash__(self: object) -> int:
        return hash(tuple([getattr(self, name) for name in names]))

    def __setattr__(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    cls.__match_args__ = names  # type: ignore[misc]
    methods: list[Any] = [__repr__, __eq__]
    if _sys.version_info >= (3, 13):
        methods.append(__replace__)
    if frozen:
        methods += [__hash__, __setattr__, __delattr__]
    else:
        # As for every mutable class with its own `__eq__`.
        cls.__hash__ = None
    for method in methods:
        method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
        setattr(cls, method.__name__, method)
    for name in ("__dataclass_fields__", "__dataclass_params__"):
        setattr(cls, name, _OnDemand(cls, name))
    return cls


if not TYPE_CHECKING:
    _record = _data_class


@_record
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
    _handle_uint: int  # for dlsym
    found_via: str

    def __init__(
        self, abs_path: str | None, was_already_loaded_from_elsewhere: bool, _handle_uint: int, found_via: str
    ) -> None:
        self.abs_path = abs_path
        self.was_already_loaded_from_elsewhere = was_already_loaded_from_elsewhere
        self._handle_uint = _handle_uint
        self.found_via = found_via


@_record
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

    def __init__(self, abs_path: str | None, found_via: str) -> None:
        self.abs_path = abs_path
        self.found_via = found_via
        self.__post_init__()

    def __post_init__(self) -> None:
        path = self.abs_path
        if path is not None:
            path = _os.fspath(path) if isinstance(path, _os.PathLike) else path
            if not isinstance(path, str):
                given = type(path).__name__
                raise TypeError(f"LocatedHeaderDir() argument 'abs_path' must be a str, a path or None, not {given}")
        self.abs_path = _os.path.realpath(path) if path else None


@_record(frozen=True)
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

    def __init__(self, name: str, abs_path: str, filename: str, found_via: str) -> None:
        vars(self).update(name=name, abs_path=abs_path, filename=filename, found_via=found_via)


@_record(frozen=True)
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

    def __init__(self, name: str, abs_path: str, filename: str, found_via: str) -> None:
        vars(self).update(name=name, abs_path=abs_path, filename=filename, found_via=found_via)


# ----------------------------------------------------------------------------------------------------------------------
# Memoization


def _memoized(search: "Callable[_P, _T]") -> "_Memoized[_P, _T]":
    """Like `functools.cache`, with three differences.

    Concurrent calls with the same name search once and return the same object. None is not cached, because the item
    may be installed before the next call. Positional and keyword calls share an entry.
    """
    values: dict[str | None, object] = {}
    lock = _RLock()  # reentrant: a signal handler may call the function
    misses = 0
    code = search.__code__
    parameter = code.co_varnames[0] if code.co_argcount else None

    def reset_lock() -> None:
        # Another thread may have held the lock at the fork.
        nonlocal lock
        lock = _RLock()

    def miss(*args: "Any", **kwargs: "Any") -> object:
        nonlocal misses
        name = args[0] if args else kwargs.get(parameter) if parameter else None
        if len(args) + len(kwargs) != code.co_argcount or (parameter and not isinstance(name, str)):
            misses += 1
            return search(*args, **kwargs)  # raises
        if parameter and type(name) is not str:
            name = str.__str__(name)
        with lock:
            found = values.get(name)
            if found is not None:
                memoized.hits += 1
                return found
            misses += 1
            found = search(*args, **kwargs)
            if found is not None:
                values[name] = found
            return found

    def cache_clear() -> None:
        """Clear the cache."""
        nonlocal misses
        with lock:
            values.clear()
            memoized.hits = misses = 0

    def cache_info() -> "_CacheInfo":
        """Return (hits, misses, maxsize, currsize), as `functools` does."""
        from functools import cache

        return type(cache(cache_info).cache_info())(memoized.hits, misses, None, len(values))

    def cache_parameters() -> "_CacheParameters":
        """Return the cache parameters, as `functools` does."""
        return {"maxsize": None, "typed": False}  # type: ignore[typeddict-item]  # its type has no None

    if hasattr(_os, "register_at_fork"):
        _os.register_at_fork(after_in_child=reset_lock)
    memoized: _Memoized[_P, _T] = _native.memoize(values, miss)
    for name in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__", "__type_params__"):
        if hasattr(search, name):
            setattr(memoized, name, getattr(search, name))
    memoized.__wrapped__ = search
    memoized.cache_clear, memoized.cache_info = cache_clear, cache_info
    memoized.cache_parameters = cache_parameters
    return memoized


def _checked(function: str, parameter: str, name: object, kind: str) -> str:
    """Return `name` if it is a `str`; otherwise raise the error of an unknown name that is also a `TypeError`."""
    if not isinstance(name, str):
        from . import _errors

        raise getattr(_errors, kind)(function, parameter, name)
    return name


def _warn_if_ambiguous(found_via: str) -> str:
    """Return `found_via`; warn if it is `CUDA_PATH` and `CUDA_HOME` differs."""
    if found_via == "CUDA_PATH":
        get_cuda_path_or_home()
    return found_via


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
    root = _native.find_cuda_path_or_home()
    if root is not None:
        path, home = (_os.environ.get(name) for name in ("CUDA_PATH", "CUDA_HOME"))
        if path and home and _os.path.realpath(path) != _os.path.realpath(home):
            from warnings import warn

            warn(
                "Multiple CUDA environment variables are set but differ:\n"
                f"  CUDA_PATH={path}\n  CUDA_HOME={home}\nUsing CUDA_PATH (highest priority).",
                stacklevel=3,  # past `miss`
            )
    return root


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
    _checked("load_nvidia_dynamic_lib", "libname", libname, "LibraryNameTypeError")
    path, elsewhere, handle, found_via = _native.load_library(libname)
    return LoadedDL(path, elsewhere, handle, _warn_if_ambiguous(found_via))


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
    _checked("locate_nvidia_header_directory", "libname", libname, "HeaderNameTypeError")
    found = _native.find_header_directory(libname)
    return None if found is None else LocatedHeaderDir(found[0], _warn_if_ambiguous(found[1]))


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
    _checked("find_nvidia_header_directory", "libname", libname, "HeaderNameTypeError")
    found = locate_nvidia_header_directory(libname)
    return None if found is None else found.abs_path


# Its former, private name.
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
    _checked("find_nvidia_binary_utility", "utility_name", utility_name, "BinaryNameTypeError")
    found = _native.find_binary(utility_name)
    if found is None:
        return None
    _warn_if_ambiguous(found[1])
    return found[0]


def _archive(cls: "type[_Archive]", name: str, found: "tuple[str, str]") -> "_Archive":
    path, found_via = found
    return cls(str(name), path, path.replace("\\", "/").rpartition("/")[2], _warn_if_ambiguous(found_via))


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
    _checked("locate_static_lib", "name", name, "ArchiveNameTypeError")
    return _archive(LocatedStaticLib, name, _native.find_static_library(name))


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
    _checked("find_static_lib", "name", name, "ArchiveNameTypeError")
    return locate_static_lib(name).abs_path


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
    _checked("locate_bitcode_lib", "name", name, "ArchiveNameTypeError")
    return _archive(LocatedBitcodeLib, name, _native.find_bitcode_library(name))


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
    _checked("find_bitcode_lib", "name", name, "ArchiveNameTypeError")
    return locate_bitcode_lib(name).abs_path


_names = _native.find_names()

SUPPORTED_NVIDIA_LIBNAMES: "Final[tuple[str, ...]]" = _names[0]
"""Names of the libraries of the toolkit that exist for this platform, for ``load_nvidia_dynamic_lib``."""

SUPPORTED_HEADERS_CTK: "Final[dict[str, str]]" = _names[1]
"""Names of the toolkit's sets of headers, each with the header that the folder must have, for ``locate_nvidia_header_directory``."""

SUPPORTED_BINARY_UTILITIES: "Final[tuple[str, ...]]" = _names[2]
"""Names of the tools, for ``find_nvidia_binary_utility``."""

SUPPORTED_STATIC_LIBS: "Final[tuple[str, ...]]" = _names[3]
"""Names of the static libraries that exist for this platform, for ``locate_static_lib``."""

SUPPORTED_BITCODE_LIBS: "Final[tuple[str, ...]]" = _names[4]
"""Names of the libraries in LLVM bitcode that exist for this platform, for ``locate_bitcode_lib``."""

del TYPE_CHECKING
