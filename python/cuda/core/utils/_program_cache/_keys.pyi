"""Keys of program caches."""

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
    """Compute a cache key from all inputs of a compilation."""
