"""The runner of the client checks, without clients."""

import pathlib
import subprocess
import sys

import pytest

CLIENTS = pathlib.Path(__file__).resolve().parent.parent / "clients"
sys.path.insert(0, str(CLIENTS))

import client_numba_cuda  # noqa: E402
import run  # noqa: E402

TABLE = {"a": {"cpu": "ci"}, "b": {"cpu": "full"}, "c": {"cpu": ""}}


def script(tmp_path, body):
    """Output and exit status of a script of checks."""
    path = tmp_path / "script.py"
    path.write_text("from checks import Skip, check, finish, need\n" + body + "\nfinish()\n")
    done = subprocess.run(
        [sys.executable, path], env={"PYTHONPATH": str(CLIENTS)}, capture_output=True, text=True, timeout=60
    )
    return done.stdout, done.returncode


def test_each_check_is_a_line_and_the_counts_come_last(tmp_path):
    out, status = script(
        tmp_path,
        "@check\ndef it_works():\n    pass\n@check\ndef it_waits():\n    raise Skip('no such thing')\n"
        "@check\ndef it_breaks():\n    assert 1 == 2, 'unequal'",
    )
    assert out.splitlines() == [
        "ok      it works",
        "skipped it waits: no such thing",
        "FAILED  it breaks: AssertionError: unequal",
        "1 passed, 1 failed, 1 skipped",
    ]
    assert status == 1
    assert run.counts(out) == (1, 1, 1)


def test_a_script_without_checks_fails(tmp_path):
    assert script(tmp_path, "")[1] == 1


def test_a_client_that_is_not_installed_is_skipped_and_a_module_of_ours_is_not(tmp_path):
    out, status = script(tmp_path, "@check\ndef one():\n    need('no_such_client')")
    assert out.startswith("skipped one: no_such_client is not installed") and status == 0
    (tmp_path / "client.py").write_text("import cuda.no_such_module")
    out, status = script(
        tmp_path, f"import sys; sys.path.append({str(tmp_path)!r})\n@check\ndef one():\n    need('client')"
    )
    assert "FAILED  one: ModuleNotFoundError" in out and status == 1


def test_counts_are_the_last_ones():
    assert run.counts("3 passed, 0 failed, 1 skipped\nnoise\n4 passed, 1 failed, 2 skipped\n") == (4, 1, 2)
    assert run.counts("3 passed, 0 failed, 1 skipped and more\n") is None


@pytest.mark.parametrize(
    "names, full, cpu, expected",
    [
        ([], False, True, ["a"]),
        ([], True, True, ["a", "b"]),
        ([], False, False, ["a", "b", "c"]),
        (["c"], False, True, ["c"]),
        (["c", "a"], False, True, ["a", "c"]),
    ],
)
def test_selection(names, full, cpu, expected):
    assert run.selection(TABLE, names, full, cpu) == expected


def test_an_unknown_client_is_refused():
    with pytest.raises(ValueError, match="unknown client 'x'; expected some of: a, b, c"):
        run.selection(TABLE, ["x"], False, True)


def test_a_script_that_dies_has_failed(tmp_path, capsys):
    (tmp_path / "dies.py").write_text("import os; print('5 passed, 0 failed, 0 skipped', flush=True); os.abort()")
    (tmp_path / "silent.py").write_text("")
    for name, expected in (("dies.py", (5, 1, 0)), ("silent.py", (0, 1, 0))):
        found, _ = run.run("x", {"script": str(tmp_path / name)}, sys.executable, None, False)
        assert found == expected
    assert "exit status -6 after its counts" in capsys.readouterr().out


def test_each_client_has_a_script_and_pinned_versions():
    import tomllib

    clients = tomllib.loads((CLIENTS / "clients.toml").read_text())
    for name, client in clients.items():
        assert (CLIENTS / client["script"]).is_file(), name
        assert client["cpu"] in ("ci", "full", ""), name
        assert all("==" in requirement for requirement in client["requirements"]), name
    assert {c["script"] for c in clients.values()} == {path.name for path in CLIENTS.glob("client_*.py")}


def test_results_of_a_report(tmp_path):
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite><testcase classname="tests.a.test_b.C" name="one"/>'
        '<testcase classname="tests.a.test_b.C" name="two"><failure message="bad&#10;worse"/></testcase>'
        '<testcase classname="tests.a.test_b.C" name="two"/>'
        '<testcase classname="tests.a.test_b.C" name="three"><skipped/></testcase></testsuite></testsuites>'
    )
    assert client_numba_cuda.results(report) == {
        "C::one": ("passed", ""),
        "C::two": ("failed", "bad"),
        "C::three": ("skipped", ""),
    }


def test_tests_that_are_left_out_have_reasons():
    for test, reason in client_numba_cuda.left_out().items():
        assert test.count("::") >= 1 and ".py::" in test and reason, test
