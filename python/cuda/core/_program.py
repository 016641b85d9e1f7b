"""`Program` and its options."""

from cupyrite._native.core import Program
from cupyrite._native.core import prepare_program_options as _prepare
from cupyrite._native.core import program_options_as_bytes as _as_bytes

from cuda.core._options import options as _options

__all__ = ["Program", "ProgramOptions"]


@_options
class ProgramOptions:
    """What a :class:`Program` is compiled with. ``None`` leaves the compiler's own default.

    Wrong types and values are refused when an instance is made, and again when it is used; `define_macro`, whose
    error is a ``RuntimeError``, only then.

    Attributes
    ----------
    name : str, optional
        File name of the source in messages and line information, and name of the :class:`ObjectCode` that is made.
        Default: ``"default_program"``.
    arch : str, optional
        Architecture: ``sm_XY`` for a device, ``compute_XY`` for PTX that suits all later ones. Default: that of the
        current device.
    relocatable_device_code : bool, optional
        Make code that can be linked with other code.
    extensible_whole_program : bool, optional
        Make whole-program code that leaves calls into the CUDA device runtime open.
    debug : bool, optional
        Make debug information; without `device_code_optimize`, do not optimise.
    lineinfo : bool, optional
        Make line information.
    device_code_optimize : bool, optional
        Optimise in spite of `debug`. For NVVM IR, False turns optimisation off.
    ptxas_options : str | list[str] | tuple[str], optional
        Options for ``ptxas``, such as ``["-v", "-O2"]``.
    max_register_count : int, optional
        The most registers that a thread may use.
    ftz : bool, optional
        Flush single-precision denormal numbers to zero.
    prec_sqrt : bool, optional
        Round single-precision square roots to nearest (True) or approximate them.
    prec_div : bool, optional
        Round single-precision divisions and reciprocals to nearest (True) or approximate them.
    fma : bool, optional
        Contract multiplications and additions to fused multiply-adds.
    use_fast_math : bool, optional
        Approximate: implies `ftz`, and neither `prec_sqrt` nor `prec_div`.
    extra_device_vectorization : bool, optional
        Vectorise more.
    link_time_optimization : bool, optional
        Make LTO IR, which is optimised when it is linked. Nothing but ``"ltoir"`` comes out then.
    gen_opt_lto : bool, optional
        Run the optimiser before LTO IR is made.
    define_macro : str | tuple[str, str] | list[str | tuple[str, str]] | tuple[str | tuple[str, str], ...], optional
        Macros: ``"NAME"`` (defined as 1), ``"NAME=value"``, ``("NAME", "value")``, or a list of these.
    undefine_macro : str | list[str] | tuple[str], optional
        Macros that are not to be defined.
    include_path : str | list[str] | tuple[str], optional
        Directories in which headers are looked for, in this order.
    use_bundled_headers : bool, optional
        Use the CUDA and CCCL headers that NVRTC brings, unpacked once into the user's cache directory.
    pre_include : str | list[str] | tuple[str], optional
        Headers to include before the source.
    no_source_include : bool, optional
        Do not look for headers in the directory of the source (that of `name`).
    std : str, optional
        Language: ``"c++11"``, ``"c++17"``, ``"c++20"``, ...
    builtin_move_forward : bool, optional
        Have ``std::move`` and ``std::forward`` built in.
    builtin_initializer_list : bool, optional
        Have ``std::initializer_list`` built in.
    disable_warnings : bool, optional
        Do not warn.
    restrict : bool, optional
        Take all pointer parameters of kernels for ``__restrict__``.
    device_as_default_execution_space : bool, optional
        Take what has no execution space for ``__device__``.
    device_int128 : bool, optional
        Allow ``__int128``.
    optimization_info : str, optional
        Report optimisations of this kind: ``"inline"``.
    no_display_error_number : bool, optional
        Leave the numbers of diagnostics out.
    diag_error : int | list[int] | tuple[int], optional
        Numbers of diagnostics that are errors.
    diag_suppress : int | list[int] | tuple[int], optional
        Numbers of diagnostics that are not shown.
    diag_warn : int | list[int] | tuple[int], optional
        Numbers of diagnostics that are warnings.
    brief_diagnostics : bool, optional
        Leave source lines out of diagnostics.
    time : str, optional
        File for a table (CSV) of the time of each phase; ``"-"`` writes it to the log.
    split_compile : int, optional
        Number of threads that optimise; 0 is as many as there are processors.
    fdevice_syntax_only : bool, optional
        Stop after checking the syntax; the code that comes out is empty.
    minimal : bool, optional
        Leave language features out, to compile faster.
    no_cache : bool, optional
        Do not use the cache of the compiler itself.
    fdevice_time_trace : str, optional
        File for a time trace (JSON).
    device_float128 : bool, optional
        Allow ``__float128``.
    frandom_seed : str, optional
        Seed of what is otherwise random.
    ofast_compile : str, optional
        Compile faster and optimise less: ``"0"``, ``"min"``, ``"mid"`` or ``"max"``.
    pch : bool, optional
        Use a precompiled header that fits, or make one. (Precompiled headers: CUDA 12.8 and later.)
    create_pch : str, optional
        File of a precompiled header to make.
    use_pch : str, optional
        File of a precompiled header to use.
    pch_dir : str, optional
        Directory of precompiled headers.
    pch_verbose : bool, optional
        Say why a precompiled header was not used.
    pch_messages : bool, optional
        Say when a precompiled header is made or used.
    instantiate_templates_in_pch : bool, optional
        Keep instances of templates in precompiled headers.
    extra_sources : list[tuple[str, str | bytes | bytearray]] | tuple[tuple[str, str | bytes | bytearray], ...], optional
        More NVVM IR that is compiled with the program: ``[(name, source), ...]``, each source text (str or bytes) or
        bitcode (bytes, bytearray). For NVVM IR only.
    use_libdevice : bool, optional
        Link CUDA's libdevice. For NVVM IR only.
    numba_debug : bool, optional
        Lay debug information out as Numba expects it. Only newer compilers know it; PTX programs warn and ignore it.

    Meaning of each: https://docs.nvidia.com/cuda/nvrtc/#supported-compile-options
    """

    name: "str | None" = "default_program"
    arch: "str | None" = None
    relocatable_device_code: "bool | None" = None
    extensible_whole_program: "bool | None" = None
    debug: "bool | None" = None
    lineinfo: "bool | None" = None
    device_code_optimize: "bool | None" = None
    ptxas_options: "str | list[str] | tuple[str] | None" = None
    max_register_count: "int | None" = None
    ftz: "bool | None" = None
    prec_sqrt: "bool | None" = None
    prec_div: "bool | None" = None
    fma: "bool | None" = None
    use_fast_math: "bool | None" = None
    extra_device_vectorization: "bool | None" = None
    link_time_optimization: "bool | None" = None
    gen_opt_lto: "bool | None" = None
    define_macro: "str | tuple[str, str] | list[str | tuple[str, str]] | tuple[str | tuple[str, str], ...] | None" = None
    undefine_macro: "str | list[str] | tuple[str] | None" = None
    include_path: "str | list[str] | tuple[str] | None" = None
    use_bundled_headers: "bool | None" = None
    pre_include: "str | list[str] | tuple[str] | None" = None
    no_source_include: "bool | None" = None
    std: "str | None" = None
    builtin_move_forward: "bool | None" = None
    builtin_initializer_list: "bool | None" = None
    disable_warnings: "bool | None" = None
    restrict: "bool | None" = None
    device_as_default_execution_space: "bool | None" = None
    device_int128: "bool | None" = None
    optimization_info: "str | None" = None
    no_display_error_number: "bool | None" = None
    diag_error: "int | list[int] | tuple[int] | None" = None
    diag_suppress: "int | list[int] | tuple[int] | None" = None
    diag_warn: "int | list[int] | tuple[int] | None" = None
    brief_diagnostics: "bool | None" = None
    time: "str | None" = None
    split_compile: "int | None" = None
    fdevice_syntax_only: "bool | None" = None
    minimal: "bool | None" = None
    no_cache: "bool | None" = None
    fdevice_time_trace: "str | None" = None
    device_float128: "bool | None" = None
    frandom_seed: "str | None" = None
    ofast_compile: "str | None" = None
    pch: "bool | None" = None
    create_pch: "str | None" = None
    use_pch: "str | None" = None
    pch_dir: "str | None" = None
    pch_verbose: "bool | None" = None
    pch_messages: "bool | None" = None
    instantiate_templates_in_pch: "bool | None" = None
    extra_sources: "list[tuple[str, str | bytes | bytearray]] | tuple[tuple[str, str | bytes | bytearray], ...] | None" = None
    use_libdevice: "bool | None" = None
    numba_debug: "bool | None" = None

    def __post_init__(self):
        _prepare(self)

    def as_bytes(self, backend, target_type=None):
        """The options as a compiler takes them.

        Parameters
        ----------
        backend : str or CompilerBackendType
            ``"nvrtc"`` or ``"nvvm"``, in any case.
        target_type : str or ObjectCodeFormatType, optional
            What is to be made; ``"ltoir"`` adds an option for libNVVM.

        Returns
        -------
        list of bytes

        Raises
        ------
        ValueError
            If `backend` is another.
        CUDAError
            If libNVVM has no counterpart of an option that is set.
        """
        return _as_bytes(self, backend, target_type)

    def __repr__(self):
        return f"ProgramOptions(name={self.name!r}, arch={self.arch!r})"
