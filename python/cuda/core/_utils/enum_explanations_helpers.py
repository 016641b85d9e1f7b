"""What the members of an enumeration of statuses mean."""

__all__ = ["DocstringBackedExplanations", "clean_enum_member_docstring", "get_best_available_explanations"]


def clean_enum_member_docstring(doc: "str | None") -> "str | None":
    """A docstring as one line of plain text: without reStructuredText's roles and line breaks."""
    if doc is None:
        return None
    import re

    text = re.sub(r":(?:\w+:)*\w+:`~?\.?([^`<]*?)(?:\s*<[^`]*>)?`", r"\1", doc)
    text = " ".join(text.split())
    # Words that were broken at their hyphens.
    return re.sub(r"(?<=\w)- (?=\w)", "-", text)


class DocstringBackedExplanations:
    """What members of an enumeration mean: their docstrings, or what this package says of the driver's statuses.

    Parameters
    ----------
    enum_type : type
        The enumeration, ``cuda.bindings.driver.CUresult`` for one.
    """

    def __init__(self, enum_type: "Any"):
        self._enum_type = enum_type

    def get(self, code: int, default: "str | None" = None) -> "str | None":
        """What the member with this value means; `default` where that is not known."""
        try:
            member = self._enum_type(code)
        except ValueError:
            return default
        doc = member.__doc__
        if doc is not None and doc != self._enum_type.__doc__:
            return clean_enum_member_docstring(doc)
        if self._enum_type.__name__ in ("CUresult", "cudaError_t"):
            from cupyrite._native.core import _explanation

            meaning = _explanation(int(member))
            if meaning is not None:
                return meaning
        return default


def get_best_available_explanations(
    enum_type: "Any", fallback: "_ExplanationTable | _ExplanationTableLoader"
) -> "DocstringBackedExplanations | _ExplanationTable":
    """The explanations of an enumeration's members. `fallback`, a table or what makes one, is not needed here."""
    return DocstringBackedExplanations(enum_type)
