"""Completes the records of this package into data classes, when somebody asks `dataclasses` about one."""

import dataclasses


def complete(cls):
    """Sets ``__dataclass_fields__`` and ``__dataclass_params__`` of a record to what the decorator would have set."""
    frozen = cls.__hash__ is not None
    fields = [(name, kind) for name, kind in cls.__annotations__.items()]
    like = dataclasses.make_dataclass(cls.__name__, fields, frozen=frozen)
    cls.__dataclass_params__ = like.__dataclass_params__
    cls.__dataclass_fields__ = like.__dataclass_fields__
