"""Checks of enumerations of strings."""

__all__ = ["check_str_enum", "format_or_list"]


def format_or_list(values):
    """The values as a choice: ``'a', 'b' or 'c'``."""
    shown = [repr(value) for value in values]
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} or {shown[-1]}"


def check_str_enum(value, enum_class, *, allow_none=False):
    """Raises ``ValueError`` unless a value is one of an enumeration's.

    Parameters
    ----------
    value : str
        The value, or a member.
    enum_class : type
        A ``StrEnum``.
    allow_none : bool
        Whether None counts.
    """
    if value is None and allow_none:
        return
    choices = sorted(member.value for member in enum_class)
    if value not in choices:
        raise ValueError(f"{value!r} is no {enum_class.__name__}; expected {format_or_list(choices)}")
