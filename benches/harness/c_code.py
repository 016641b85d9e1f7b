"""Compiles the C counterparts."""

import os
import shutil
import subprocess
import sys

from harness import HERE


def compiler():
    """The path of the C compiler, or None."""
    return next(filter(None, map(shutil.which, (os.environ.get("CC", "cc"), "cc", "gcc", "clang"))), None)


def compile_c(*words, optimize="-O2"):
    """Runs the C compiler; exits with a message if none is installed."""
    cc = compiler()
    if cc is None:
        sys.exit("a C compiler is needed (cc, gcc or clang on PATH, or CC)")
    subprocess.run([cc, optimize, f"-I{HERE}", *words], check=True)


def build_program(source, folder):
    """Compiles one source file to a program in `folder`; returns its path."""
    program = folder / source.stem
    compile_c("-o", program, source, "-ldl")
    return program


def build_library(source, folder, *words, optimize="-O2"):
    """Compiles one source file to a shared library in `folder`; returns its path."""
    library = folder / f"{source.stem}.so"
    compile_c("-shared", "-fPIC", *words, "-o", library, source, "-ldl", optimize=optimize)
    return library
