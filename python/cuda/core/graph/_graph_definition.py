"""Graph definitions and conditions."""

from cupyrite._native.core import GraphCondition, GraphDefinition

__all__ = ["GraphCondition", "GraphDefinition"]
