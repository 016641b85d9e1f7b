"""The examples as modules: their benches time what users read."""

import importlib.util
import pathlib

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples"


def load_example(name):
    """The module of an example, for example `load_example("mpi/halo_exchange.py")`."""
    path = EXAMPLES / name
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module
