"""Random kernels with control flow, compared with results of an H100 (tests/golden/random_programs.json, see
golden/record_random_programs.py).
"""

import json

import pytest

from helpers import TESTS
from helpers.random_programs import BATCH, digests, fold, version

pytestmark = [pytest.mark.cpu, pytest.mark.usefixtures("shared_context")]

GOLDEN = json.loads((TESTS / "golden" / "random_programs.json").read_text())
# Of one test.
PART = 250


def differing(first):
    """The seeds from `first` on whose results are not those of the GPU."""
    recorded = GOLDEN["kernels"][first : first + PART]
    found = digests(range(first, first + len(recorded)))
    return [first + i for i, value in enumerate(found) if f"{value:08x}" != recorded[i]]


@pytest.mark.parametrize("first", range(0, 1000, PART))
def test_results_match_a_gpu(first):
    assert differing(first) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, len(GOLDEN["kernels"]), PART))
def test_results_of_more_kernels_match_a_gpu(first):
    assert differing(first) == []


@pytest.mark.slow
def test_batches_match_a_gpu():
    first = len(GOLDEN["kernels"])
    # Every fortieth: all of them take minutes (golden/record_random_programs.py --compare).
    for i, recorded in list(enumerate(GOLDEN["batches"]))[::40]:
        seed = first + i * BATCH
        assert f"{fold(digests(range(seed, seed + BATCH))):08x}" == recorded, f"seeds {seed} to {seed + BATCH - 1}"


def test_kernels_are_the_recorded_ones():
    """The recorded digests belong to one version of the generator."""
    assert version() == GOLDEN["version"]
