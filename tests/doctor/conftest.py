"""Fixtures of the doctor's tests."""

import pytest

from helpers.doctor import examine


@pytest.fixture(scope="session")
def healthy():
    """The report for this installation on the CPU device, which must succeed."""
    status, report = examine()
    assert status == 0, report["problems"]
    return report
