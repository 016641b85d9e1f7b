"""Keys of compiled programs."""

from cupyrite._native.core import program_cache_key as _program_cache_key

__all__ = ["make_program_cache_key"]


def make_program_cache_key(
    *, code, code_type, options, target_type, name_expressions=(), extra_digest=None
):
    """A key that changes with everything that compiled code depends on.

    That is the source, the options, the target, the name expressions, the build of the compiler, and the files that the
    source includes from its own directory. :meth:`cuda.core.Program.compile` with ``cache=`` makes keys by itself, and
    reads what `include_path`, `pre_include` and libdevice bring in, too.

    Parameters
    ----------
    code : str or bytes
        The source; bytes for NVVM IR only.
    code_type : str
        ``"c++"``, ``"ptx"`` or ``"nvvm"``.
    options : ProgramOptions
    target_type : str
        ``"ptx"``, ``"cubin"`` or ``"ltoir"``.
    name_expressions : sequence of str or bytes, optional
        In any order; ``"f"`` and ``b"f"`` are not the same.
    extra_digest : bytes-like, optional
        Stands for what else the code depends on. Needed for options that name files: `include_path`, `pre_include`,
        `pch`, `use_pch`, `pch_dir`, `use_libdevice` (NVVM IR), and a `name` with a directory. With it, nothing is read.

    Returns
    -------
    bytes
        32 of them.

    Raises
    ------
    ValueError
        If there can be no key: an option names files and there is no `extra_digest`; the source includes what a macro
        names; or compiling has effects besides the code (`create_pch`, `time`, `fdevice_time_trace`).
    """
    return _program_cache_key(code, code_type, options, target_type, name_expressions, extra_digest)
