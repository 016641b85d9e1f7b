"""Assigning values of wrong types raises an exception that names the attribute, and never crashes.

tests/golden/setters.json lists the assignments that crash the process in NVIDIA's package (golden/record_setters.py
found them).
"""

import importlib
import json

import pytest

from golden import record_setters
from helpers import TESTS
from helpers.programs import python

TABLE = json.loads((TESTS / "golden" / "setters.json").read_text())

# Runs in another process: a crash fails one test and not the run.
SWEEP = """
import importlib, json, sys
from golden import record_setters as r
module = importlib.import_module("cuda.bindings." + {module!r})
kinds, classes, keep = r.kinds(), r.struct_classes(module), []
for class_name, names in json.load(sys.stdin).items():
    cls = classes.get(class_name) or getattr(module, class_name, None)
    for name, wanted in names.items() if cls else ():
        for kind in wanted:
            if kind not in kinds:
                continue
            print(class_name, name, kind, end=" ", flush=True)
            try:
                setattr(r.build(cls, keep), name, kinds[kind]())
            except Exception as e:
                print(type(e).__name__, ascii(str(e)))
            else:
                print("accepted")
"""


def outcomes(module, table):
    """(class, attribute, kind, outcome, message) of each assignment of the table."""
    program = SWEEP.format(module=module)
    done = python(program, input=json.dumps(table), timeout=300)
    lines = [line.split(" ", 4) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"after {lines[-1] if lines else 'nothing'}: {done.returncode} {done.stderr[-2000:]}"
    return [line + [""] * (5 - len(line)) for line in lines]


def importable(module):
    return pytest.importorskip("cuda.bindings." + module)


@pytest.mark.parametrize("module", sorted(TABLE))
def test_assignments_that_crash_elsewhere_raise(module):
    importable(module)
    table = TABLE[module]
    seen = outcomes(module, table)
    classes = {cls for cls, *_ in seen}
    assert classes == set(table), f"not tried: {sorted(set(table) - classes)}"
    wrong = [s for s in seen if s[3] not in ("TypeError", "ValueError", "OverflowError")]
    assert not wrong


@pytest.mark.parametrize("module", ["driver", "nvrtc", "nvml", "cufile", "cudla"])
def test_any_value_for_any_attribute_is_accepted_or_raises(module):
    module_object = importable(module)
    kinds = list(record_setters.kinds())
    table = {
        name: {a: kinds for a in record_setters.attributes(cls)}
        for name, cls in record_setters.struct_classes(module_object).items()
    }
    seen = outcomes(module, table)
    assert len(seen) > 10
    allowed = ("accepted", "TypeError", "ValueError", "OverflowError", "IndexError", "AttributeError")
    assert not [s for s in seen if s[3] not in allowed]
    # The message names the attribute.
    silent = [s for s in seen if s[3] == "TypeError" and s[1] not in s[4]]
    assert not silent


@pytest.mark.parametrize("module", ["nvml", "cufile", "cudla"])
def test_none_is_refused_for_every_attribute(module):
    module_object = importable(module)
    table = {
        name: {a: ["None"] for a in record_setters.attributes(cls)}
        for name, cls in record_setters.struct_classes(module_object).items()
    }
    seen = outcomes(module, table)
    # Attributes without a setter are reported as not writable.
    wrong = [s for s in seen if s[3] != "TypeError" and not (s[3] == "AttributeError" and "not writable" in s[4])]
    assert not wrong


def test_arrays_are_not_handles():
    numpy = pytest.importorskip("numpy")
    driver = importlib.import_module("cuda.bindings.driver")
    params = driver.CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_v2_st()
    with pytest.raises(TypeError, match="extSemArray"):
        params.extSemArray = numpy.zeros(3, numpy.uint8)
    params.extSemArray = [1, 2]
    assert [int(s) for s in params.extSemArray] == [1, 2]
