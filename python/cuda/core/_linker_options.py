"""Options of linkers."""

from __future__ import annotations

from cuda.core._options import options
from cupyrite._native.core import linker_arguments

__all__ = ["LinkerOptions"]


@options
class LinkerOptions:
    """Options of a :class:`Linker`; None selects the linker's default.

    The driver links when nvJitLink is not installed. It supports only ``arch``, ``max_register_count``, ``verbose``,
    ``optimization_level``, ``debug``, ``lineinfo`` and ``no_cache``; other options raise ``ValueError``.

    Attributes
    ----------
    name : str
        Name of the linked object code.
    arch : str
        Target architecture, such as ``"sm_90"``. Default: that of the current device.
    max_register_count : int
        Maximum number of registers per thread.
    time : bool
        Write the duration of each phase to the info log.
    verbose : bool
        Write the resource usage of each kernel to the info log.
    link_time_optimization : bool
        Perform link-time optimization of LTO IR.
    ptx : bool
        Allow PTX as the link target; requires ``link_time_optimization``.
    optimization_level : int
        Optimization level, 0 to 3.
    debug : bool
        Generate debug information.
    lineinfo : bool
        Generate line information.
    ftz : bool
        Flush denormal numbers to zero.
    prec_div : bool
        Use IEEE-compliant single-precision division.
    prec_sqrt : bool
        Use IEEE-compliant single-precision square root.
    fma : bool
        Contract multiplications and additions into fused multiply-adds.
    kernels_used : str or list of str
        Kernels in use; code that only other kernels need is removed.
    variables_used : str or list of str
        Variables that the host uses.
    optimize_unused_variables : bool
        Remove variables that no kernel uses.
    ptxas_options : str or list of str
        Options for ``ptxas``.
    split_compile : int
        Maximum number of threads for split compilation; 0: one per core.
    split_compile_extended : int
        Maximum number of threads for extended split compilation.
    no_cache : bool
        Do not use the driver's compute cache.
    numba_debug : bool
        Deprecated and without effect: no linker supports it.

    See the `nvJitLink options <https://docs.nvidia.com/cuda/nvjitlink/#supported-link-options>`_.

    Examples
    --------
    >>> from cuda.core import Device, Linker, LinkerOptions, Program
    >>> Device().set_current()
    >>> code = Program('extern "C" __global__ void nothing() {}', "c++").compile("ptx")
    >>> linker = Linker(code, options=LinkerOptions(name="program", max_register_count=32))
    >>> linker.link("cubin").name
    'program'
    """

    # Where programs import it from.
    __module__ = "cuda.core._linker"

    name: str | None = "<default linker>"
    arch: str | None = None
    max_register_count: int | None = None
    time: bool | None = None
    verbose: bool | None = None
    link_time_optimization: bool | None = None
    ptx: bool | None = None
    optimization_level: int | None = None
    debug: bool | None = None
    lineinfo: bool | None = None
    ftz: bool | None = None
    prec_div: bool | None = None
    prec_sqrt: bool | None = None
    fma: bool | None = None
    kernels_used: str | tuple[str, ...] | list[str] | None = None
    variables_used: str | tuple[str, ...] | list[str] | None = None
    optimize_unused_variables: bool | None = None
    ptxas_options: str | tuple[str, ...] | list[str] | None = None
    split_compile: int | None = None
    split_compile_extended: int | None = None
    no_cache: bool | None = None
    numba_debug: bool | None = None

    def as_bytes(self, backend: str = "nvjitlink") -> list[bytes]:
        """The options as command-line arguments of a backend.

        Parameters
        ----------
        backend : str
            ``"nvjitlink"``, case-insensitive; the driver takes no command-line arguments.

        Returns
        -------
        list of bytes
            ``[b"-arch=sm_90", ...]``

        Examples
        --------
        >>> from cuda.core import LinkerOptions
        >>> LinkerOptions(arch="sm_90", lineinfo=True).as_bytes("nvjitlink")
        [b'-arch=sm_90', b'-lineinfo']
        """
        if not isinstance(backend, str):
            raise TypeError(f"as_bytes() argument 'backend' is of type {type(backend).__name__}; expected str")
        if backend.lower() != "nvjitlink":
            raise ValueError(f"as_bytes() argument 'backend' is {backend!r}; expected 'nvjitlink'")
        return linker_arguments(self)
