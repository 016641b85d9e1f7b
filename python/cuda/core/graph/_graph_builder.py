"""Graph builders, instantiated graphs and their options."""

from cuda.core.graph._graph_options import GraphCompleteOptions, GraphDebugPrintOptions
from cupyrite._native.core import Graph, GraphBuilder

__all__ = ["Graph", "GraphBuilder", "GraphCompleteOptions", "GraphDebugPrintOptions"]
