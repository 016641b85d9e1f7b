"""Keys of program caches."""

from __future__ import annotations

from cupyrite._native.core import program_cache_key as _program_cache_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from cuda.core._program import ProgramOptions
    from typing_extensions import Buffer

__all__ = ["make_program_cache_key"]


def make_program_cache_key(
    *,
    code: str | bytes | bytearray,
    code_type: str,
    options: ProgramOptions,
    target_type: str,
    name_expressions: Sequence[str | bytes] = (),
    extra_digest: Buffer | None = None,
) -> bytes:
    """Compute a cache key from all inputs of a compilation.

    The inputs are the source, the options, the target, the name expressions, the compiler build, and the files that the
    source includes from its own directory. :meth:`cuda.core.Program.compile` with ``cache=`` computes its own key, which
    also covers the contents of `include_path`, `pre_include` and libdevice.

    Parameters
    ----------
    code : str or bytes
        Source code; bytes for NVVM IR only.
    code_type : str
        ``"c++"``, ``"ptx"`` or ``"nvvm"``.
    options : ProgramOptions
    target_type : str
        ``"ptx"``, ``"cubin"`` or ``"ltoir"``.
    name_expressions : sequence of str or bytes, optional
        In any order; ``"f"`` and ``b"f"`` are different expressions.
    extra_digest : bytes-like, optional
        Digest of all further inputs. Required for options that name files: `include_path`, `pre_include`, `pch`,
        `use_pch`, `pch_dir`, `use_libdevice` (NVVM IR), and a `name` with a directory. If given, no file is read.

    Returns
    -------
    bytes
        A digest of 32 bytes.

    Raises
    ------
    ValueError
        No key can be computed: an option names files and `extra_digest` is missing; an ``#include`` is given by a macro;
        or compiling has side effects (`create_pch`, `time`, `fdevice_time_trace`).

    Examples
    --------
    >>> from cuda.core import ProgramOptions
    >>> from cuda.core.utils import make_program_cache_key
    >>> arguments = dict(
    ...     code='extern "C" __global__ void nothing() {}',
    ...     code_type="c++",
    ...     options=ProgramOptions(arch="sm_90"),
    ...     target_type="cubin",
    ... )
    >>> key = make_program_cache_key(**arguments)
    >>> len(key)
    32
    >>> key == make_program_cache_key(**arguments | {"target_type": "ptx"})
    False
    """
    return _program_cache_key(code, code_type, options, target_type, name_expressions, extra_digest)
