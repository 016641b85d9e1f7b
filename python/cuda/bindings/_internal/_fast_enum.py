"""The base of the enums, for those who test for it or derive from it."""

from cupyrite._native import fast_enum

FastEnum, FastEnumMetaclass = fast_enum()
del fast_enum

__all__ = ["FastEnum", "FastEnumMetaclass"]
