"""Raises ModuleNotFoundError with the present places of the names: `cuda.core` has no experimental part any more."""

raise ModuleNotFoundError(
    "No module named 'cuda.core.experimental': its names are in cuda.core now, those of graphs in cuda.core.graph, and"
    " StridedMemoryView in cuda.core.utils; write for example `from cuda.core import Device`",
    name=__name__,
)
