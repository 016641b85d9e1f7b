"""Finding NVIDIA's libraries, headers, tools and archives, and loading the libraries into this process.

The work is done in Rust; see the project's documentation for the order of the search and the environment variables
that steer it. Importing this package touches no file besides its own. Each error lists every place that was looked
at, what was there, and the command that would help.
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

__version__ = "1.9.0"

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
    """There are no CUDA libraries for this kind of Python on Windows, such as a 32-bit one.

    Attributes
    ----------
    platform_tag : str
        What ``sysconfig.get_platform()`` calls it.
    """

    def __init__(self, platform_tag: str) -> None:
        super().__init__(f"no CUDA libraries exist for Python on {platform_tag!r}, only for win-amd64 and win-arm64")
        self.platform_tag = platform_tag

    def __reduce__(self):
        return type(self), (self.platform_tag,)


# ----------------------------------------------------------------------------------------------------------------------
# What comes back: data classes, except that importing `dataclasses` takes longer than all else here. `_dataclass`
# gives them what that module asks for when it asks.


class _OnDemand:
    """An attribute of a class that is computed when it is first read, and then there."""

    def __set_name__(self, owner, name):
        self.owner, self.name = owner, name

    def __get__(self, instance, owner=None):
        from ._dataclass import complete

        complete(self.owner)
        return getattr(self.owner, self.name)


def _record(cls):
    """Gives a class the methods of a data class; its annotations are the fields."""
    names = tuple(cls.__annotations__)

    def __repr__(self):
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def __eq__(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __replace__(self, /, **changes):
        from dataclasses import replace

        return replace(self, **changes)

    cls.__match_args__ = names
    methods = [__repr__, __eq__]
    if _sys.version_info >= (3, 13):
        methods.append(__replace__)
    for method in methods:
        _adopt(cls, method)
    # As for every class that has its own idea of equality and can be changed.
    cls.__hash__ = None
    return cls


def _frozen(cls):
    """What `_record` does, for a class whose fields never change: it can be a key."""
    names = tuple(cls.__annotations__)

    def __hash__(self):
        return hash(tuple([getattr(self, name) for name in names]))

    def __setattr__(self, name, value):
        if type(self) is cls or name in names:
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self, name):
        if type(self) is cls or name in names:
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    _record(cls)
    for method in (__hash__, __setattr__, __delattr__):
        _adopt(cls, method)
    return cls


def _adopt(cls, method):
    method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
    setattr(cls, method.__name__, method)


@_record
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
    _handle_uint: int  # for dlsym
    found_via: str

    __dataclass_fields__ = _OnDemand()
    __dataclass_params__ = _OnDemand()

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
        The folder, without links. A path passed in is made so; an empty one becomes None.
    found_via : str
        How it was found: ``site-packages``, ``conda``, ``CUDA_PATH`` (also by ``CUDA_HOME``), the name of a variable of
        the product's own, ``system-ctk-root``, or ``supported_install_dir``.
    """

    abs_path: str | None
    found_via: str

    __dataclass_fields__ = _OnDemand()
    __dataclass_params__ = _OnDemand()

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


@_frozen
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

    __dataclass_fields__ = _OnDemand()
    __dataclass_params__ = _OnDemand()

    def __init__(self, name: str, abs_path: str, filename: str, found_via: str) -> None:
        vars(self).update(name=name, abs_path=abs_path, filename=filename, found_via=found_via)


@_frozen
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

    __dataclass_fields__ = _OnDemand()
    __dataclass_params__ = _OnDemand()

    def __init__(self, name: str, abs_path: str, filename: str, found_via: str) -> None:
        vars(self).update(name=name, abs_path=abs_path, filename=filename, found_via=found_via)


# ----------------------------------------------------------------------------------------------------------------------
# Functions that remember


def _remembers(search):
    """As `functools.cache`, with three differences.

    Threads that ask for the same thing at the same time get the same object, found once. What was not found is not
    remembered: it may have been installed by the next call. It does not matter whether a name is given by keyword.
    """
    values = {}
    lock = _RLock()  # A signal handler may ask for the same thing.
    misses = 0
    code = search.__code__
    parameter = code.co_varnames[0] if code.co_argcount else None

    def fork():
        # Another thread may have been searching when this process was forked off.
        nonlocal lock
        lock = _RLock()

    def miss(*args, **kwargs):
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

    def cache_clear():
        """Forgets everything."""
        nonlocal misses
        with lock:
            values.clear()
            memoized.hits = misses = 0

    def cache_info():
        """(hits, misses, maxsize, currsize), as `functools` gives it."""
        from functools import cache

        return type(cache(cache_info).cache_info())(memoized.hits, misses, None, len(values))

    def cache_parameters():
        """How `functools` would describe this cache."""
        return {"maxsize": None, "typed": False}

    if hasattr(_os, "register_at_fork"):
        _os.register_at_fork(after_in_child=fork)
    memoized = _native.memoize(values, miss)
    for name in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__", "__type_params__"):
        if hasattr(search, name):
            setattr(memoized, name, getattr(search, name))
    memoized.__wrapped__ = search
    memoized.cache_clear, memoized.cache_info = cache_clear, cache_info
    memoized.cache_parameters = cache_parameters
    return memoized


def _checked(function, parameter, name, kind):
    """`name` if it is a `str`; for anything else the error of an unknown name, which is also a `TypeError`."""
    if not isinstance(name, str):
        from . import _errors

        raise getattr(_errors, kind)(function, parameter, name)
    return name


def _told(found_via):
    """`found_via`, after a warning where it was one of two variables that disagree."""
    if found_via == "CUDA_PATH":
        get_cuda_path_or_home()
    return found_via


@_remembers
def get_cuda_path_or_home() -> str | None:
    """The root of the toolkit that the environment names: ``CUDA_PATH``, or else ``CUDA_HOME``, as it is set.

    Where both are set and lead to different folders, a ``UserWarning`` says so, once.

    Returns
    -------
    str or None
        None where neither is set, or both are empty. Remembered: see ``cache_clear``.
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
    _checked("load_nvidia_dynamic_lib", "libname", libname, "LibraryNameTypeError")
    path, elsewhere, handle, found_via = _native.load_library(libname)
    return LoadedDL(path, elsewhere, handle, _told(found_via))


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
    _checked("locate_nvidia_header_directory", "libname", libname, "HeaderNameTypeError")
    found = _native.find_header_directory(libname)
    return None if found is None else LocatedHeaderDir(found[0], _told(found[1]))


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
    _checked("find_nvidia_header_directory", "libname", libname, "HeaderNameTypeError")
    found = locate_nvidia_header_directory(libname)
    return None if found is None else found.abs_path


# The name it had before it was public.
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
    _checked("find_nvidia_binary_utility", "utility_name", utility_name, "BinaryNameTypeError")
    found = _native.find_binary(utility_name)
    if found is None:
        return None
    _told(found[1])
    return found[0]


def _archive(cls, name, found):
    path, found_via = found
    return cls(str(name), path, path.replace("\\", "/").rpartition("/")[2], _told(found_via))


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
    _checked("locate_static_lib", "name", name, "ArchiveNameTypeError")
    return _archive(LocatedStaticLib, name, _native.find_static_library(name))


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
    _checked("find_static_lib", "name", name, "ArchiveNameTypeError")
    return locate_static_lib(name).abs_path


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
    _checked("locate_bitcode_lib", "name", name, "ArchiveNameTypeError")
    return _archive(LocatedBitcodeLib, name, _native.find_bitcode_library(name))


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
    _checked("find_bitcode_lib", "name", name, "ArchiveNameTypeError")
    return locate_bitcode_lib(name).abs_path


(
    SUPPORTED_NVIDIA_LIBNAMES,
    SUPPORTED_HEADERS_CTK,
    SUPPORTED_BINARY_UTILITIES,
    SUPPORTED_STATIC_LIBS,
    SUPPORTED_BITCODE_LIBS,
) = _native.find_names()
