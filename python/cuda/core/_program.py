"""Programs and their options."""

from cuda.core._program_options import ProgramOptions
from cupyrite._native.core import Program

__all__ = ["Program", "ProgramOptions"]
