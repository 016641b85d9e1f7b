"""The base class of the enums, for `isinstance` checks and subclasses."""

from cupyrite._native import fast_enum

FastEnum, FastEnumMetaclass = fast_enum()
del fast_enum

__all__ = ["FastEnum", "FastEnumMetaclass"]
