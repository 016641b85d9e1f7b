"""Translation between the string enumerations of `cuda.core.system.typing` and NVML's numbers."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Mapping as Names
    from enum import StrEnum
    from typing import Any, SupportsInt

__all__ = ["Mapping", "bits"]


class Mapping:
    """One enumeration of strings beside one enumeration of NVML.

    Parameters
    ----------
    words : StrEnum
        The enumeration of this package.
    kind : str
        What a member is, for messages: ``clock type``.
    numbers : str
        Name of NVML's enumeration in `cuda.bindings.nvml`.
    names : dict, optional
        NVML's member names where they differ, by this package's.
    """

    def __init__(self, words: type[StrEnum], kind: str, numbers: str, names: Names[str, str] | None = None) -> None:
        self._words, self._kind, self._numbers, self._names = words, kind, numbers, names or {}
        self._number: dict[str, int] | None = None

    def _table(self) -> dict[str, int]:
        if self._number is None:
            from cuda.bindings import nvml

            numbers = getattr(nvml, self._numbers)
            self._number = {
                word: int(getattr(numbers, self._names.get(name, name)))
                for name, word in self._words.__members__.items()
            }
        return self._number

    def number(self, word: str) -> int:
        """NVML's number of a member, which may be given as its string.

        Raises
        ------
        ValueError
            If there is no such member.
        """
        # Strings only: a number must not be mistaken for a member.
        found = self._table().get(word) if isinstance(word, str) else None
        if found is None:
            allowed = ", ".join(repr(str(member)) for member in self._words)
            raise ValueError(f"{self._kind} is {word!r}; expected one of {allowed}")
        return found

    def word(self, number: SupportsInt, default: StrEnum | None = None) -> Any:
        """The member for NVML's number; `default` if the driver knows more members than this package."""
        number = int(number)
        return next((word for word, value in self._table().items() if value == number), default)

    def words(self, mask: int) -> list[Any]:
        """The members whose bits are set in `mask`."""
        return [word for word, value in self._table().items() if value and mask & value]

    def mask(self, words: str | Iterable[str], name: str) -> int:
        """The bits of a member, or of a list of members.

        Raises
        ------
        TypeError
            If `words` is neither a member nor a list.
        ValueError
            If there is no such member.
        """
        if isinstance(words, str):
            words = [words]
        elif not isinstance(words, list | tuple | set | frozenset):
            kind = self._words.__name__
            raise TypeError(f"{name} is of type {type(words).__name__}; expected {kind}, str, or a list of them")
        mask = 0
        for word in words:
            mask |= self.number(word)
        return mask


def bits(masks: Iterable[SupportsInt]) -> list[int]:
    """The indices of the bits that are set in a sequence of 64-bit masks."""
    return [64 * at + bit for at, mask in enumerate(masks) for bit in range(64) if int(mask) >> bit & 1]
