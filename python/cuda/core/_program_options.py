"""Options of programs."""

from __future__ import annotations

from cuda.core._options import options
from cupyrite._native.core import prepare_program_options as _prepare
from cupyrite._native.core import program_options_as_bytes as _as_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from cuda.core.typing import CompilerBackendType, ObjectCodeFormatType

__all__ = ["ProgramOptions"]


@options
class ProgramOptions:
    """Options of a :class:`Program`. ``None`` selects the compiler's default.

    Types and values are checked when an instance is created and again when it is used. `define_macro` is checked only
    when it is used; its error is a ``RuntimeError``.

    Attributes
    ----------
    name : str, optional
        File name of the source in diagnostics and line information, and name of the resulting :class:`ObjectCode`.
        Default: ``"default_program"``.
    arch : str, optional
        Target architecture: ``sm_XY`` for a device, ``compute_XY`` for forward-compatible PTX. Default: that of the
        current device.
    relocatable_device_code : bool, optional
        Generate relocatable device code.
    extensible_whole_program : bool, optional
        Generate whole-program code with unresolved calls into the CUDA device runtime.
    debug : bool, optional
        Generate debug information; disables optimization unless `device_code_optimize` is set.
    lineinfo : bool, optional
        Generate line information.
    device_code_optimize : bool, optional
        Optimize even with `debug`. For NVVM IR, False disables optimization.
    ptxas_options : str | list[str] | tuple[str], optional
        Options for ``ptxas``, such as ``["-v", "-O2"]``.
    max_register_count : int, optional
        Maximum number of registers per thread.
    ftz : bool, optional
        Flush single-precision denormal numbers to zero.
    prec_sqrt : bool, optional
        Use IEEE-compliant single-precision square root (True) or an approximation.
    prec_div : bool, optional
        Use IEEE-compliant single-precision division and reciprocal (True) or approximations.
    fma : bool, optional
        Contract multiplications and additions into fused multiply-adds.
    use_fast_math : bool, optional
        Use fast math: enables `ftz` and disables `prec_sqrt` and `prec_div`.
    extra_device_vectorization : bool, optional
        Vectorize more aggressively.
    link_time_optimization : bool, optional
        Generate LTO IR for link-time optimization; the only target is then ``"ltoir"``.
    gen_opt_lto : bool, optional
        Run the optimizer before generating LTO IR.
    define_macro : str | tuple[str, str] | list[str | tuple[str, str]], optional
        Macro definitions: ``"NAME"`` (defined as 1), ``"NAME=value"``, ``("NAME", "value")``, or a list of these.
    undefine_macro : str | list[str] | tuple[str], optional
        Macros to undefine.
    include_path : str | list[str] | tuple[str], optional
        Include directories, in search order.
    use_bundled_headers : bool, optional
        Use the CUDA and CCCL headers bundled with NVRTC, unpacked once into the user's cache directory.
    pre_include : str | list[str] | tuple[str], optional
        Headers to include before the source.
    no_source_include : bool, optional
        Do not search the directory of the source (that of `name`) for headers.
    std : str, optional
        Language standard: ``"c++11"``, ``"c++17"``, ``"c++20"``, ...
    builtin_move_forward : bool, optional
        Provide built-in ``std::move`` and ``std::forward``.
    builtin_initializer_list : bool, optional
        Provide built-in ``std::initializer_list``.
    disable_warnings : bool, optional
        Suppress warnings.
    restrict : bool, optional
        Treat all kernel pointer parameters as ``__restrict__``.
    device_as_default_execution_space : bool, optional
        Treat functions without an execution space as ``__device__``.
    device_int128 : bool, optional
        Allow ``__int128``.
    optimization_info : str, optional
        Kind of optimizations to report: ``"inline"``.
    no_display_error_number : bool, optional
        Omit diagnostic numbers.
    diag_error : int | list[int] | tuple[int], optional
        Diagnostics to report as errors.
    diag_suppress : int | list[int] | tuple[int], optional
        Diagnostics to suppress.
    diag_warn : int | list[int] | tuple[int], optional
        Diagnostics to report as warnings.
    brief_diagnostics : bool, optional
        Omit source lines from diagnostics.
    time : str, optional
        CSV file for the duration of each phase; ``"-"`` writes to the log.
    split_compile : int, optional
        Number of optimizer threads; 0: one per processor.
    fdevice_syntax_only : bool, optional
        Check the syntax only; the resulting code is empty.
    minimal : bool, optional
        Omit language features to compile faster.
    no_cache : bool, optional
        Do not use the compiler's own cache.
    fdevice_time_trace : str, optional
        JSON file for a time trace.
    device_float128 : bool, optional
        Allow ``__float128``.
    frandom_seed : str, optional
        Seed for generated names.
    ofast_compile : str, optional
        Trade optimization for compile time: ``"0"``, ``"min"``, ``"mid"`` or ``"max"``.
    pch : bool, optional
        Automatically use or create a precompiled header. Precompiled headers require CUDA 12.8.
    create_pch : str, optional
        File name of a precompiled header to create.
    use_pch : str, optional
        File name of a precompiled header to use.
    pch_dir : str, optional
        Directory of precompiled headers.
    pch_verbose : bool, optional
        Report why a precompiled header was not used.
    pch_messages : bool, optional
        Report when a precompiled header is created or used.
    instantiate_templates_in_pch : bool, optional
        Instantiate templates in precompiled headers.
    extra_sources : list[tuple[str, str | bytes | bytearray]] | tuple[tuple[str, str | bytes | bytearray], ...], optional
        Further NVVM IR modules to compile with the program: ``[(name, source), ...]``; each source is text (str or bytes)
        or bitcode (bytes or bytearray). NVVM IR only.
    use_libdevice : bool, optional
        Link libdevice. NVVM IR only.
    numba_debug : bool, optional
        Generate debug information in the layout that Numba expects. Requires a recent compiler; ignored with a warning
        for PTX programs.

    See https://docs.nvidia.com/cuda/nvrtc/#supported-compile-options

    Examples
    --------
    >>> from cuda.core import Device, Program, ProgramOptions
    >>> Device().set_current()
    >>> options = ProgramOptions(std="c++17", define_macro=("N", "4"), use_fast_math=True)
    >>> source = 'extern "C" __global__ void fill(int *x) { x[threadIdx.x] = N; }'
    >>> code = Program(source, "c++", options).compile("cubin")
    """

    # Where programs import it from.
    __module__ = "cuda.core._program"

    name: str | None = "default_program"
    arch: str | None = None
    relocatable_device_code: bool | None = None
    extensible_whole_program: bool | None = None
    debug: bool | None = None
    lineinfo: bool | None = None
    device_code_optimize: bool | None = None
    ptxas_options: str | list[str] | tuple[str, ...] | None = None
    max_register_count: int | None = None
    ftz: bool | None = None
    prec_sqrt: bool | None = None
    prec_div: bool | None = None
    fma: bool | None = None
    use_fast_math: bool | None = None
    extra_device_vectorization: bool | None = None
    link_time_optimization: bool | None = None
    gen_opt_lto: bool | None = None
    define_macro: str | tuple[str, str] | list[str] | list[tuple[str, str]] | list[str | tuple[str, str]] | None = None
    undefine_macro: str | list[str] | tuple[str, ...] | None = None
    include_path: (
        str | PathLike[str] | list[str | PathLike[str]] | list[str] | tuple[str | PathLike[str], ...] | None
    ) = None
    use_bundled_headers: bool | None = None
    pre_include: (
        str | PathLike[str] | list[str | PathLike[str]] | list[str] | tuple[str | PathLike[str], ...] | None
    ) = None
    no_source_include: bool | None = None
    std: str | None = None
    builtin_move_forward: bool | None = None
    builtin_initializer_list: bool | None = None
    disable_warnings: bool | None = None
    restrict: bool | None = None
    device_as_default_execution_space: bool | None = None
    device_int128: bool | None = None
    optimization_info: str | None = None
    no_display_error_number: bool | None = None
    diag_error: int | list[int] | tuple[int, ...] | None = None
    diag_suppress: int | list[int] | tuple[int, ...] | None = None
    diag_warn: int | list[int] | tuple[int, ...] | None = None
    brief_diagnostics: bool | None = None
    time: str | PathLike[str] | None = None
    split_compile: int | None = None
    fdevice_syntax_only: bool | None = None
    minimal: bool | None = None
    no_cache: bool | None = None
    fdevice_time_trace: str | PathLike[str] | None = None
    device_float128: bool | None = None
    frandom_seed: str | None = None
    ofast_compile: str | None = None
    pch: bool | None = None
    create_pch: str | PathLike[str] | None = None
    use_pch: str | PathLike[str] | None = None
    pch_dir: str | PathLike[str] | None = None
    pch_verbose: bool | None = None
    pch_messages: bool | None = None
    instantiate_templates_in_pch: bool | None = None
    extra_sources: Sequence[tuple[str, str | bytes | bytearray]] | None = None
    use_libdevice: bool | None = None
    numba_debug: bool | None = None

    def __post_init__(self) -> None:
        _prepare(self)

    def as_bytes(
        self, backend: CompilerBackendType | str, target_type: ObjectCodeFormatType | str | None = None
    ) -> list[bytes]:
        """The options as command-line arguments of a compiler.

        Parameters
        ----------
        backend : str or CompilerBackendType
            ``"nvrtc"`` or ``"nvvm"``, case-insensitive.
        target_type : str or ObjectCodeFormatType, optional
            Target of the compilation; ``"ltoir"`` adds an option for libNVVM.

        Returns
        -------
        list of bytes

        Raises
        ------
        ValueError
            `backend` has another value.
        CUDAError
            libNVVM does not support an option that is set.

        Examples
        --------
        >>> from cuda.core import ProgramOptions
        >>> ProgramOptions(arch="sm_90", std="c++17", lineinfo=True).as_bytes("nvrtc")
        [b'-arch=sm_90', b'--generate-line-info', b'--std=c++17']
        """
        return _as_bytes(self, backend, target_type)

    def __repr__(self) -> str:
        return f"ProgramOptions(name={self.name!r}, arch={self.arch!r})"
