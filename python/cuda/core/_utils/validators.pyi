"""Checks of enumerations of strings."""

from collections.abc import Iterable
from enum import Enum

__all__ = ["check_str_enum", "format_or_list"]

def format_or_list(values: Iterable[object]) -> str:
    """The values as a choice: ``'a', 'b' or 'c'``."""

def check_str_enum(value: object, enum_class: type[Enum], *, allow_none: bool = False) -> None:
    """Raises ``ValueError`` unless a value is one of an enumeration's."""
