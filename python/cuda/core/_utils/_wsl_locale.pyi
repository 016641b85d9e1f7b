"""The C library's locale of one thread."""

from typing_extensions import Self

__all__ = ["c_locale_guard"]

class c_locale_guard:
    """Within the ``with`` statement the calling thread has the locale ``C``."""

    def __init__(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, exc_type: object, exc: object, traceback: object) -> bool: ...
