"""Green contexts through the driver bindings: rules that were read off an H200 (driver 580), on both devices."""

import pytest
from cuda.bindings import driver

from helpers.device import check
from helpers.programs import python

SM = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
Status = driver.CUresult
IGNORE_COSCHEDULING, MAX_CLUSTER_SIZE = 1, 2
DEFAULT_STREAM, NON_BLOCKING = 1, 1


@pytest.fixture
def device(shared_context):
    return check(driver.cuCtxGetDevice())


@pytest.fixture
def sms(device):
    return check(driver.cuDeviceGetDevResource(device, SM))


def sizes(split):
    """Number of groups, size of the first one, size of what is left (0 without)."""
    groups, number, rest = check(split)
    return int(number), groups[0].sm.smCount, rest.sm.smCount if rest.type == SM else 0


def test_a_query_of_the_null_context_is_refused(shared_context):
    """The current context is not the default."""
    assert driver.cuCtxGetDevResource(0, SM)[0] == Status.CUDA_ERROR_INVALID_CONTEXT
    assert check(driver.cuCtxGetDevResource(check(driver.cuCtxGetCurrent()), SM)).sm.smCount > 0


def test_flags_of_a_split(sms):
    both = IGNORE_COSCHEDULING | MAX_CLUSTER_SIZE
    assert driver.cuDevSmResourceSplitByCount(1, sms, both, 2)[0] == Status.CUDA_ERROR_INVALID_VALUE
    plain = sizes(driver.cuDevSmResourceSplitByCount(1, sms, 0, 1))
    for flags in (MAX_CLUSTER_SIZE, 4):
        assert sizes(driver.cuDevSmResourceSplitByCount(1, sms, flags, 1)) == plain


def test_a_group_can_be_the_whole_device(sms):
    total = sms.sm.smCount
    for flags in (0, IGNORE_COSCHEDULING, MAX_CLUSTER_SIZE):
        assert sizes(driver.cuDevSmResourceSplitByCount(3, sms, flags, total)) == (1, total, 0)
        refused = driver.cuDevSmResourceSplitByCount(3, sms, flags, total + 1)
        assert refused[0] == Status.CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION


def test_green_contexts_need_the_flag_of_their_default_stream(device, sms):
    descriptor = check(driver.cuDevResourceGenerateDesc([sms], 1))
    for flags in (0, 2, 3):
        assert driver.cuGreenCtxCreate(descriptor, device, flags)[0] == Status.CUDA_ERROR_INVALID_VALUE
    check(driver.cuGreenCtxDestroy(check(driver.cuGreenCtxCreate(descriptor, device, DEFAULT_STREAM))))


def test_flags_and_priority_of_a_stream(device, sms):
    descriptor = check(driver.cuDevResourceGenerateDesc([sms], 1))
    green = check(driver.cuGreenCtxCreate(descriptor, device, DEFAULT_STREAM))
    for flags in (0, 2):
        assert driver.cuGreenCtxStreamCreate(green, flags, 0)[0] == Status.CUDA_ERROR_INVALID_VALUE
    # A priority out of range is clamped.
    check(driver.cuStreamDestroy(check(driver.cuGreenCtxStreamCreate(green, NON_BLOCKING, 100))))
    check(driver.cuGreenCtxDestroy(green))


@pytest.mark.cpu
def test_a_device_with_132_multiprocessors_is_split_as_an_h200():
    """Also the alignment of a context with the multiprocessors that a split left over."""
    code = """
from cuda.bindings import driver
from helpers.device import check
SM = driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM
check(driver.cuInit(0))
device = check(driver.cuDeviceGet(0))
check(driver.cuDevicePrimaryCtxRetain(device))
sms = check(driver.cuDeviceGetDevResource(device, SM))
for flags, count in ((0, 8), (0, 9), (0, 121), (0, 132), (1, 8), (2, 8), (4, 8)):
    groups, number, rest = check(driver.cuDevSmResourceSplitByCount(132, sms, flags, count))
    print(flags, count, int(number), groups[0].sm.smCount, rest.sm.smCount if rest.type == SM else 0)
groups, _, rest = check(driver.cuDevSmResourceSplitByCount(2, sms, 0, 8))
for parts in (groups[:1], groups, [groups[0], rest], [rest], [sms]):
    descriptor = check(driver.cuDevResourceGenerateDesc(parts, len(parts)))
    green = check(driver.cuGreenCtxCreate(descriptor, device, 1))
    sm = check(driver.cuGreenCtxGetDevResource(green, SM)).sm
    print(sm.smCount, sm.minSmPartitionSize, sm.smCoscheduledAlignment)
for size in (24, 64, 100, 124, 128):
    groups, _, _ = check(driver.cuDevSmResourceSplitByCount(1, sms, 1, size))
    descriptor = check(driver.cuDevResourceGenerateDesc(groups, 1))
    green = check(driver.cuGreenCtxCreate(descriptor, device, 1))
    own = check(driver.cuGreenCtxGetDevResource(green, SM))
    groups, number, rest = check(driver.cuDevSmResourceSplitByCount(132, own, 0, 8))
    print(own.sm.smCoscheduledAlignment, int(number), groups[0].sm.smCount, rest.sm.smCount if rest.type == SM else 0)
"""
    done = python(code, environment={"CUPYRITE_CPU_THREADS": "132", "CUPYRITE_CPU_COMPUTE_CAPABILITY": "9.0"})
    assert done.stdout.splitlines() == [
        "0 8 15 8 12",
        "0 9 8 16 4",
        "0 121 1 128 4",
        "0 132 1 132 0",
        "1 8 16 8 4",
        "2 8 15 8 12",
        "4 8 15 8 12",
        "8 8 8",
        "16 8 8",
        "124 2 2",
        "116 2 2",
        "132 8 8",
        "2 3 8 0",
        "2 8 8 0",
        # An H200 makes as many groups, but of 2 multiprocessors.
        "2 12 8 4",
        "2 15 8 4",
        "2 16 8 0",
    ]
