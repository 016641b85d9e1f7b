"""Checks with clear messages."""

from typing import NoReturn

__all__ = ["assert_type", "assert_type_str_or_bytes_like", "raise_code_path_meant_to_be_unreachable"]

def assert_type(obj: object, expected_type: type) -> None:
    """Raises ``TypeError`` unless an object is of a type."""

def assert_type_str_or_bytes_like(obj: object) -> None:
    """Raises ``TypeError`` unless an object is a ``str``, ``bytes`` or ``bytearray``."""

def raise_code_path_meant_to_be_unreachable() -> NoReturn:
    """Raises ``RuntimeError``: for branches that cannot be reached."""
