"""Completes the result classes of this package when `dataclasses` inspects one."""

import dataclasses
from typing import Any


def complete(cls: Any) -> None:
    """Set ``__dataclass_fields__`` and ``__dataclass_params__`` to the values of the decorator."""
    frozen = cls.__hash__ is not None
    fields = [(name, kind) for name, kind in cls.__annotations__.items()]
    like: Any = dataclasses.make_dataclass(cls.__name__, fields, frozen=frozen)
    cls.__dataclass_params__ = like.__dataclass_params__
    cls.__dataclass_fields__ = like.__dataclass_fields__
