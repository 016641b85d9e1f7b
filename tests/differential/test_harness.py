"""The differential harness: its rules, its reasons, and the last recorded figures."""

import importlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).parent


@pytest.fixture(scope="module")
def harness():
    """Imports modules of the harness."""
    sys.path.insert(0, str(HERE))
    yield importlib.import_module
    sys.path.remove(str(HERE))


def test_every_function_has_a_result_or_a_reason():
    coverage = json.loads((HERE / "coverage.json").read_text())
    assert {"driver", "runtime", "nvrtc", "nvjitlink", "nvvm", "nvfatbin", "nvml", "cufile", "cudla"} <= set(coverage)
    assert {"driver_v2", "nvrtc_v2"} <= set(coverage)
    for module, kinds in coverage.items():
        for kind, figures in kinds.items():
            assert figures["equal"] + len(figures["without"]) == figures["functions"], (module, kind)
            assert all(figures["without"].values()), (module, kind)
            assert figures["differs"] == 0, (module, kind)


def test_coverage_counts_the_functions_of_this_package():
    coverage = json.loads((HERE / "coverage.json").read_text())
    for module, kinds in coverage.items():
        base = module.removesuffix("_v2")
        ours = importlib.import_module(f"cuda.bindings.{'_v2.' if base != module else ''}{base}")
        for figures in kinds.values():
            assert all(hasattr(ours, name) for name in figures["without"]), module


def test_rules_are_valid_patterns(harness):
    for pattern, difference, reason, *test in harness("deliberate").DELIBERATE:
        re.compile(pattern), re.compile(difference)
        assert reason and len(test) < 2 and all(map(callable, test))
    for modules in harness("reasons").REASONS.values():
        for entries in modules.values():
            assert all(re.compile(pattern) and reason for pattern, reason in entries)


STATUS = {"enum": "cuda.bindings.driver.CUresult", "name": "CUDA_SUCCESS", "value": 0}


@pytest.mark.parametrize(
    "peer, ours, verdict",
    [
        ({"value": {"int": 1}}, {"value": {"int": 1}}, "same"),
        ({"value": {"int": 1}}, {"value": {"int": 2}}, "differs"),
        ({"value": {"int": 1}}, {"raises": {"exception": "builtins.TypeError"}}, "differs"),
        ({"value": {"int": 1 << 46}}, {"value": {"int": (1 << 46) + 64}}, "same"),
        (
            {"value": {"tuple": [STATUS, {"int": 5}]}, "volatile": True},
            {"value": {"tuple": [STATUS, {"int": 6}]}},
            "same",
        ),
        (
            {"value": {"tuple": [STATUS, {"int": 5}]}, "volatile": True},
            {"value": {"tuple": [{**STATUS, "value": 1}, {"int": 5}]}},
            "differs",
        ),
        ({"crash": "signal 11"}, {"value": None}, "peer crashes"),
        ({"crash": "signal 11"}, {"crash": "signal 11"}, "differs"),
        (
            {"value": None, "calls": [{"f": "cuInit", "a": ["0"]}]},
            {"value": None, "calls": [{"f": "cuInit", "a": ["0x1"]}]},
            "differs",
        ),
        (
            {"value": None, "calls": [{"f": "f", "a": ["in "]}]},
            {"value": None, "calls": [{"f": "f", "a": ["0"]}]},
            "same",
        ),
        (
            {"value": None, "calls": [{"f": "f", "a": ["out 00ff"]}]},
            {"value": None, "calls": [{"f": "f", "a": ["out 0000"]}]},
            "same",
        ),
        (
            {"value": None, "calls": [{"f": "f", "a": ["in 00ff"]}]},
            {"value": None, "calls": [{"f": "f", "a": ["in 0000"]}]},
            "differs",
        ),
    ],
)
def test_verdicts(harness, peer, ours, verdict):
    assert harness("compare").judge(peer, ours)[0] == verdict


def test_texture_case_matches_its_name(harness):
    cases, kernels = harness("texture_cases"), harness("texture_kernels")
    sources = kernels.modules()
    keys = set()
    for group in cases.GROUPS.values():
        for case in group():
            columns = cases.coordinates(case.coordinates)
            assert len(columns) == len(kernels.COLUMNS) and len({len(c) for c in columns}) == 1
            for kernel in case.kernels:
                assert f" {kernel}(" in sources[kernels.module_of(kernel)]
                assert case.key(kernel) not in keys
                keys.add(case.key(kernel))
    assert len(keys) > 2500


# ----------------------------------------------------------------------------------------------------------
# cuda.core


@pytest.mark.parametrize(
    "peer, ours, verdict",
    [
        ({"value": {"int": 1}}, {"value": {"int": 1}}, "same"),
        ({"value": {"int": 1}}, {"value": {"int": 2}}, "differs"),
        ({"value": None, "warns": ["DeprecationWarning"]}, {"value": None}, "differs"),
        ({"raises": "builtins.TypeError", "text": "a"}, {"raises": "builtins.TypeError", "text": "b"}, "same"),
        ({"raises": "builtins.TypeError", "text": "a"}, {"raises": "builtins.TypeError", "text": " "}, "differs"),
        ({"raises": "builtins.TypeError", "text": "a"}, {"raises": "builtins.ValueError", "text": "a"}, "differs"),
        (
            {"raises": "cuda.core.CUDAError", "text": "a", "status": "X"},
            {"raises": "cuda.core.CUDAError", "text": "a", "status": "Y"},
            "differs",
        ),
        ({"value": None}, {"raises": "builtins.TypeError", "text": "a"}, "differs"),
        ({"crash": "ends with -11", "text": ""}, {"value": None}, "peer crashes"),
        ({"crash": "ends with -11", "text": ""}, {"crash": "ends with -11", "text": ""}, "differs"),
    ],
)
def test_verdicts_of_core(harness, peer, ours, verdict):
    assert harness("core_compare").judge(peer, ours)[0] == verdict


def test_rules_of_core_have_reasons(harness):
    rules = harness("core_deliberate")
    for groups, lines, difference, reason, *test in (*rules.DELIBERATE, *rules.BELOW, *rules.ON_SOME):
        assert all(map(re.compile, (groups, lines, difference)))
        assert reason and len(test) < 2 and all(map(callable, test))


def test_programs_of_core_are_valid_python(harness):
    core = harness("core")
    names = [name for _, name in core.groups()]
    assert len(names) == len(set(names)) > 50
    for module, name in core.groups():
        setup, lines = importlib.import_module(f"core_cases.{module}").GROUPS[name]
        compile(setup, name, "exec")
        for line in core.split(lines):
            compile(line, name, "exec")


def test_group_is_recorded_despite_failing_lines(tmp_path):
    lines = "1 + 1\nimport os, signal; os.kill(os.getpid(), signal.SIGKILL)\n1 / 0\n2 ** 100\nhex(id(3)), [b'x']\nclass A: pass\nA"
    (tmp_path / "core_cases").mkdir()
    (tmp_path / "core_cases" / "few.py").write_text(f"GROUPS = {{'one of the tests': ('', {lines!r})}}\n")
    shutil.copy(HERE / "core.py", tmp_path)
    subprocess.run([sys.executable, tmp_path / "core.py", "--out", tmp_path / "out.json"], check=True)
    (found,) = json.loads((tmp_path / "out.json").read_text()).values()
    outcomes = list(found.values())
    assert outcomes[0] == {"value": {"int": 2}}
    assert outcomes[1]["crash"] == "ends with -9"
    assert outcomes[2]["raises"] == "builtins.ZeroDivisionError"
    assert outcomes[3] == {"value": {"int": "address"}}
    assert outcomes[4] == {"value": {"tuple": [{"str": "0x#"}, {"list": [{"bytes": "78", "len": 1}]}]}}
    assert outcomes[6] == {"value": {"class": "__main__.A"}}


def test_hanging_group_is_ended(tmp_path):
    groups = {
        "that hangs": ("import time", "1\ntime.sleep(600)\n2"),
        "that dies": ("import os; os._exit(3)", "1"),
        "late": ("", "1"),
    }
    (tmp_path / "core_cases").mkdir()
    (tmp_path / "core_cases" / "few.py").write_text(f"GROUPS = {groups!r}\n")
    shutil.copy(HERE / "core.py", tmp_path)

    def record(*options):
        command = [sys.executable, tmp_path / "core.py", "--jobs", "1", "--out", tmp_path / "out.json", *options]
        subprocess.run(command, check=True, timeout=60, env={**os.environ, "CUPYRITE_DIFFERENTIAL_SECONDS": "5"})
        return json.loads((tmp_path / "out.json").read_text())

    found = record()
    assert found["that hangs"] == {
        "1": {"value": {"int": 1}},
        "time.sleep(600)": {"crash": "no answer in 5 s", "text": ""},
        "2": {"value": {"int": 2}},
    }
    assert found["that dies"]["(setup)"]["crash"] == "ends with 3"
    assert found["late"] == {"1": {"value": {"int": 1}}}
    assert record("--limit", "0")["late"] == {"1": {"crash": "not run in the time given"}}
    assert record("--limit", "1")["that hangs"]["time.sleep(600)"]["crash"] in (
        "no answer in 1 s",
        "not run in the time given",
    )


def test_programs_of_core_name_every_member(harness):
    core = harness("core")
    text = "".join("\n".join(importlib.import_module(f"core_cases.{m}").GROUPS[n]) for m, n in core.groups())
    words = set(re.findall(r"\w+", text))
    package, utils = importlib.import_module("cuda.core"), importlib.import_module("cuda.core.utils")
    kinds = """Device Host Context ContextOptions Stream StreamOptions Event EventOptions Buffer MemoryResource
        DeviceMemoryResource DeviceMemoryResourceOptions Program ProgramOptions Linker LinkerOptions ObjectCode Kernel
        LaunchConfig FileStreamProgramCache InMemoryProgramCache ProgramCacheResource ManagedBuffer ManagedMemoryResource
        ManagedMemoryResourceOptions PinnedMemoryResource PinnedMemoryResourceOptions LegacyPinnedMemoryResource
        VirtualMemoryResource VirtualMemoryResourceOptions GraphMemoryResource StridedMemoryView TensorMapDescriptor
        TensorMapDescriptorOptions DeviceResources SMResource SMResourceOptions WorkqueueResource
        WorkqueueResourceOptions""".split()
    for kind in kinds:
        names = dir(getattr(package, kind, None) or getattr(utils, kind))
        assert [n for n in names if not n.startswith("_") and n not in words] == [], kind
