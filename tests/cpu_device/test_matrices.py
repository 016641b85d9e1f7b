"""Matrix instructions in every shape and type, compared with results of an H100 bit by bit (tests/golden/matrices.json, see
golden/record_matrices.py).
"""

import json

import pytest

from helpers import TESTS
from helpers.matrix_cases import CASES
from helpers.programs import output

GOLDEN = json.loads((TESTS / "golden" / "matrices.json").read_text())["digests"]


@pytest.fixture(scope="module")
def digests():
    """Those of the CPU device at compute capability 9.0, which has all of the instructions."""
    code = "from helpers.matrix_cases import main; main()"
    environment = {"CUPYRITE_DEVICE": "cpu", "CUPYRITE_CPU_COMPUTE_CAPABILITY": "9.0"}
    return json.loads(output(code, environment=environment))


@pytest.mark.cpu
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_results_match_a_gpu(digests, case):
    assert digests[case.id] == GOLDEN[case.id].split()


@pytest.mark.cpu
def test_every_result_of_the_gpu_is_compared():
    assert {case.id for case in CASES} == set(GOLDEN)
