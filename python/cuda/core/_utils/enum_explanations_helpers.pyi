"""What the members of an enumeration of statuses mean."""

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["DocstringBackedExplanations", "clean_enum_member_docstring", "get_best_available_explanations"]

def clean_enum_member_docstring(doc: str | None) -> str | None:
    """A docstring as one line of plain text."""

class DocstringBackedExplanations:
    """What members of an enumeration mean."""

    def __init__(self, enum_type: Any) -> None: ...
    def get(self, code: int, default: str | None = None) -> str | None:
        """What the member with this value means."""

def get_best_available_explanations(
    enum_type: Any, fallback: Mapping[int, str] | Callable[[], Mapping[int, str]]
) -> DocstringBackedExplanations | Mapping[int, str]:
    """The explanations of an enumeration's members."""
