"""Linking object codes."""

from cupyrite._native.core import Linker, linker_arguments

from ._options import options

__all__ = ["Linker", "LinkerOptions"]


@options
class LinkerOptions:
    """How a :class:`Linker` links; None leaves an option to the linker.

    The driver, which links where nvJitLink is not installed, knows only ``arch``, ``max_register_count``, ``verbose``,
    ``optimization_level``, ``debug``, ``lineinfo`` and ``no_cache``; the others are then a ``ValueError``.

    Attributes
    ----------
    name : str
        The name of what is linked.
    arch : str
        The architecture, such as ``"sm_90"``; that of the current device by default.
    max_register_count : int
        The most registers that a thread may use.
    time : bool
        Whether the times of the phases go to the info log.
    verbose : bool
        Whether what the kernels use goes to the info log.
    link_time_optimization : bool
        Whether LTO IR is optimised together.
    ptx : bool
        Whether PTX can be made; needs ``link_time_optimization``.
    optimization_level : int
        0 to 3.
    debug : bool
        Whether there is debug information.
    lineinfo : bool
        Whether there is line information.
    ftz : bool
        Whether denormal numbers are flushed to zero.
    prec_div : bool
        Whether single-precision division is rounded correctly.
    prec_sqrt : bool
        Whether the single-precision square root is rounded correctly.
    fma : bool
        Whether multiplications and additions become fused ones.
    kernels_used : str or list of str
        The kernels that are used; what only others need is left out.
    variables_used : str or list of str
        The variables that the host uses.
    optimize_unused_variables : bool
        Whether variables that no kernel uses are left out.
    ptxas_options : str or list of str
        Options for the assembler of PTX.
    split_compile : int
        Threads that compile, where the code can be split; 0: as many as there are cores.
    split_compile_extended : int
        The same with a more thorough splitting.
    no_cache : bool
        Whether the driver's cache of compiled code is left alone.
    numba_debug : bool
        Deprecated: no linker knows it.

    See `nvJitLink's options <https://docs.nvidia.com/cuda/nvjitlink/#supported-link-options>`_.
    """

    name: "str | None" = "<default linker>"
    arch: "str | None" = None
    max_register_count: "int | None" = None
    time: "bool | None" = None
    verbose: "bool | None" = None
    link_time_optimization: "bool | None" = None
    ptx: "bool | None" = None
    optimization_level: "int | None" = None
    debug: "bool | None" = None
    lineinfo: "bool | None" = None
    ftz: "bool | None" = None
    prec_div: "bool | None" = None
    prec_sqrt: "bool | None" = None
    fma: "bool | None" = None
    kernels_used: "str | tuple[str] | list[str] | None" = None
    variables_used: "str | tuple[str] | list[str] | None" = None
    optimize_unused_variables: "bool | None" = None
    ptxas_options: "str | tuple[str] | list[str] | None" = None
    split_compile: "int | None" = None
    split_compile_extended: "int | None" = None
    no_cache: "bool | None" = None
    numba_debug: "bool | None" = None

    def as_bytes(self, backend: str = "nvjitlink") -> "list[bytes]":
        """The options as a backend takes them on its command line.

        Parameters
        ----------
        backend : str
            ``"nvjitlink"``, in any case: the driver takes no texts.

        Returns
        -------
        list of bytes
            ``[b"-arch=sm_90", ...]``
        """
        if not isinstance(backend, str):
            raise TypeError(f"as_bytes() argument 'backend' is of type {type(backend).__name__}; expected str")
        if backend.lower() != "nvjitlink":
            raise ValueError(f"as_bytes() argument 'backend' is {backend!r}; expected 'nvjitlink'")
        return linker_arguments(self)
