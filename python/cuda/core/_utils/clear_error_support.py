"""Checks with clear messages."""

__all__ = ["assert_type", "assert_type_str_or_bytes_like", "raise_code_path_meant_to_be_unreachable"]


def assert_type(obj: object, expected_type: type) -> None:
    """Raises ``TypeError`` unless an object is of a type."""
    if not isinstance(obj, expected_type):
        raise TypeError(f"expected {expected_type.__name__}, got {type(obj).__name__}")


def assert_type_str_or_bytes_like(obj: object) -> None:
    """Raises ``TypeError`` unless an object is a ``str``, ``bytes`` or ``bytearray``."""
    if not isinstance(obj, (str, bytes, bytearray)):
        raise TypeError(f"expected str, bytes or bytearray, got {type(obj).__name__}")


def raise_code_path_meant_to_be_unreachable() -> "NoReturn":
    """Raises ``RuntimeError``: for branches that cannot be reached."""
    raise RuntimeError("a branch was reached that cannot be reached; please report this")
