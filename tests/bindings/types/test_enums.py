"""FastEnum and the enums built on it."""

import contextlib
import copy
import gc
import json
import pickle
import sys
import threading

import pytest
from cuda.bindings import driver, nvrtc, runtime
from cuda.bindings._internal import _fast_enum
from cuda.bindings._internal._fast_enum import FastEnum, FastEnumMetaclass

from helpers.threads import run_all

pytestmark = pytest.mark.strict_abi

ENUMS = [
    cls
    for module in (driver, runtime, nvrtc)
    for cls in (getattr(module, name) for name in dir(module))
    if isinstance(cls, FastEnumMetaclass)
]
R = driver.CUresult


def test_number_of_enums():
    assert len(ENUMS) == 227


@pytest.mark.parametrize("cls", ENUMS, ids=lambda c: c.__name__)
def test_members_of_every_enum(cls):
    assert repr(cls) == f"<enum '{cls.__name__}'>"
    assert cls.__mro__[1:] == (FastEnum, int, object)
    assert cls.__module__ in ("cuda.bindings.driver", "cuda.bindings.runtime", "cuda.bindings.nvrtc")
    members = list(cls)
    assert len(cls) == len(members) == len(set(members)) > 0
    for name, member in cls.__members__.items():
        assert getattr(cls, name) is member
        assert type(member) is cls and isinstance(member, int)
        assert cls(member.value) is member and cls(member) is member and cls(value=member.value) is member
        assert cls.__members__[member.name] is member
        assert type(member.value) is int and member == member.value and hash(member) == hash(member.value)
        assert repr(member) == str(member) == f"<{cls.__name__}.{member.name}: {member.value}>"
        assert member.value in cls and member in cls
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            assert pickle.loads(pickle.dumps(member, protocol)) is member
        assert copy.copy(member) is member and copy.deepcopy([member])[0] is member
    assert pickle.loads(pickle.dumps(cls)) is cls
    for bad in (123456789, "x", 0.5, None, (), "CUDA_SUCCESS"):
        with pytest.raises(ValueError, match=cls.__name__):
            cls(bad)
    assert "x" not in cls and None not in cls and 123456789 not in cls


def test_lookup_by_call():
    assert R(0) is R.CUDA_SUCCESS and R(True) is R.CUDA_ERROR_INVALID_VALUE and R(1.0) is R(1)
    for bad in ((), (0, 1)):
        with pytest.raises(TypeError):
            R(*bad)
    with pytest.raises(TypeError):
        R(bogus=1)
    with pytest.raises(TypeError):
        R([])
    assert R.__new__(R, 1) is R(1)
    for bad in ((), (int, 1), (5, 1), (R,), (R, 1, 2)):
        with pytest.raises(TypeError):
            R.__new__(*bad)
    with pytest.raises(ValueError):
        FastEnum(1)
    assert list(FastEnum) == [] and len(FastEnum) == 0


def test_aliases_are_the_canonical_member():
    flags = driver.CUctx_flags
    assert flags.CU_CTX_BLOCKING_SYNC is flags.CU_CTX_SCHED_BLOCKING_SYNC
    assert flags.CU_CTX_BLOCKING_SYNC.name == "CU_CTX_SCHED_BLOCKING_SYNC"
    assert "CU_CTX_BLOCKING_SYNC" in flags.__members__
    assert len(flags) == len(flags.__members__) - 1


def test_members_are_ints():
    assert R(1) + 1 == 2 and type(R(1) | R(2)) is int and R(1) < R(2) and not R(0) and R(1) == driver.CUmemorytype(1)
    assert f"{R(1):d}" == "1" and "%d" % R(1) == "1" and f"{R(1)}" == repr(R(1))
    assert json.dumps({"a": R(1)}) == '{"a": 1}'
    assert type(int(R(1))) is int
    assert R(1).to_bytes(2, "little") == b"\1\0"
    assert [10, 20, 30][R(1)] == 20


def test_members_cannot_be_changed():
    for change in (
        lambda: setattr(R, "CUDA_SUCCESS", 5),
        lambda: delattr(R, "CUDA_SUCCESS"),
        lambda: setattr(R.CUDA_SUCCESS, "name", "x"),
        lambda: setattr(R.CUDA_SUCCESS, "_name", "x"),
        lambda: setattr(R.CUDA_SUCCESS, "value", 5),
        lambda: delattr(R.CUDA_SUCCESS, "_name"),
    ):
        with pytest.raises(AttributeError):
            change()
    with pytest.raises(TypeError):
        R.__members__["X"] = 1
    assert R(0).name == "CUDA_SUCCESS"
    with pytest.raises(TypeError):
        R["CUDA_SUCCESS"]


def test_value_without_a_member_has_no_name():
    odd = int.__new__(R, 123456)
    assert repr(odd) == "<CUresult: 123456>" and odd.value == 123456
    with pytest.raises(AttributeError):
        odd.name


def test_derived_enums():
    class A(FastEnum):
        """Mine."""

        X = (1, "the first")
        Y = 2
        Z = 1
        _private = 3
        text = "no member"

        def double(self):
            return 2 * self

    assert list(A) == [A.X, A.Y, A._private] and len(A) == 3
    assert A.Z is A.X and A.X.name == "X" and A.X.__doc__ == "the first" and A.__doc__ == "Mine."
    assert A.Y.double() == 4 and A.text == "no member" and A(2) is A.Y
    assert set(A.__members__) == {"X", "Y", "Z", "_private"}

    class B(A):
        W = 9

    assert list(B) == [B.W] and B.W.double() == 18 and B(9) is B.W
    big = FastEnumMetaclass("big", (FastEnum,), {"HUGE": 1 << 70, "LOW": -1})
    assert big(1 << 70) is big.HUGE and big(-1) is big.LOW
    with pytest.raises(ValueError):

        class C(FastEnum):
            X = (1, "a", "b")

    with pytest.raises(TypeError):
        FastEnumMetaclass("x")
    with pytest.raises(TypeError):

        class D(FastEnum, extra=1):
            X = 1


class Module(FastEnum):
    ONE = 1


def test_pickle_of_a_derived_enum():
    assert pickle.loads(pickle.dumps(Module.ONE)) is Module.ONE


def test_fast_enum_module():
    assert _fast_enum.FastEnum.__module__ == "cuda.bindings._internal._fast_enum"
    assert type(R) is FastEnumMetaclass and issubclass(FastEnumMetaclass, type)


def test_references_do_not_leak():
    before = sys.getrefcount(R(1)), sys.getrefcount(R)
    for _ in range(1000):
        R(1), R(1).name, R(1).value, repr(R(1)), list(R), len(R), 1 in R, pickle.dumps(R(1)), hash(R(1))
        with contextlib.suppress(ValueError):
            R(99999)
    gc.collect()
    after = sys.getrefcount(R(1)), sys.getrefcount(R)
    assert all(abs(a - b) < 5 for a, b in zip(before, after))


def test_concurrent_first_use():
    seen = []

    def work():
        seen.append([id(driver.CUjit_option(i)) for i in range(10)])

    threads = [threading.Thread(target=work) for _ in range(8)]
    run_all(threads)
    assert len(seen) == 8 and all(s == seen[0] for s in seen)
