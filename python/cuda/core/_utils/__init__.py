"""Helpers shared by the modules of `cuda.core`."""
