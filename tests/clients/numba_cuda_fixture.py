"""A pytest plugin for numba-cuda's tests: the fixture that its package does not hold, and the names of its modules.

pytest finds the tests in a copy, and this imports them from the installed package under their own names, which some of them
compare and pickle.
"""

import importlib

import pytest


@pytest.fixture
def initialize_from_pytest_config(request):
    # Read by `CUDATestCase` when a FileCheck comparison fails.
    request.instance._dump_failed_filechecks = False


class Module(pytest.Module):
    def _getobj(self):
        parts = self.path.relative_to(self.config.rootpath).with_suffix("").parts
        return importlib.import_module(".".join(("numba", "cuda", *parts)))


def pytest_pycollect_makemodule(module_path, parent):
    return Module.from_parent(parent, path=module_path)
