"""The CUDA APIs as Python functions. Each module is imported on its own: ``from cuda.bindings import driver``."""

__version__ = "13.5.0"
