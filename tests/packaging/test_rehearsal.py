"""The rehearsal of a release, on made-up artifacts. `cargo xtask release --dry-run` runs it on real ones."""

import re
import sys
import urllib.error
import urllib.request

import cupyrite
import pytest

from helpers import TESTS

ROOT = TESTS.parent
if not (ROOT / "distributions").is_dir():
    pytest.skip("needs the whole repository", allow_module_level=True)
sys.path.insert(0, str(ROOT / "distributions"))

import assemble  # noqa: E402
import rehearsal  # noqa: E402
import stand_in  # noqa: E402


@pytest.fixture
def artifacts(tmp_path):
    """Made-up artifacts under the names of the real ones."""
    folder = tmp_path / "dist"
    assemble.build_stand_ins(folder)
    name = f"cupyrite-{cupyrite.__version__}"
    stand_in.write_wheel(folder / f"{name}-cp311-abi3-manylinux_2_28_x86_64.whl", {}, f"{name}.dist-info")
    (folder / f"{name}.tar.gz").write_bytes(b"")
    return folder


def test_the_index_serves_what_pip_asks_for(artifacts, tmp_path):
    files = sorted(artifacts.iterdir())
    rehearsal.write_index(files, tmp_path / "index")
    with rehearsal.served(tmp_path / "index") as address:
        for file in files:
            name = rehearsal.normalized(file.name.split("-")[0])
            page = urllib.request.urlopen(f"{address}{name}/").read().decode()
            (link,) = [link for link in re.findall(r'href="([^"]+)"', page) if file.name.replace("+", "%2B") in link]
            target, _, digest = link.partition("#sha256=")
            assert urllib.request.urlopen(f"{address}{name}/{target}").read() == file.read_bytes()
            assert len(digest) == 64
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"{address}numpy/")


def test_missing_artifacts_are_named(artifacts, tmp_path):
    assert len(rehearsal.Rehearsal(tmp_path, artifacts).artifacts()) == 6
    next(artifacts.glob("cuda_core-*")).unlink()
    with pytest.raises(rehearsal.Failed, match="expected a wheel of each distribution"):
        rehearsal.Rehearsal(tmp_path, artifacts).artifacts()


def test_a_failure_fails_the_rehearsal_and_a_gap_does_not(artifacts, tmp_path, capsys):
    def fail():
        raise rehearsal.Failed("broken\nwith details")

    def skip():
        raise rehearsal.Gap("no solver")

    tried = rehearsal.Rehearsal(tmp_path, artifacts)
    assert tried.step("a", "here", lambda: "done") and not tried.step("b", "there", skip)
    assert tried.run(only=()) is True
    assert not tried.step("c", "everywhere", fail)
    assert tried.run(only=()) is False
    table = tried.table()
    assert "ok: done" in table and "gap: no solver" in table and "FAILED: broken\n" in f"{table}\n"
    assert "with details" in capsys.readouterr().out


def test_the_exit_status_tells(tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    words = ["--work", str(tmp_path / "work"), "--artifacts", str(tmp_path / "empty"), "--only", "check"]
    assert rehearsal.main(words) == 1
    assert "rehearsal FAILED" in capsys.readouterr().out


def test_interpreters_are_those_that_the_wheel_supports(monkeypatch, tmp_path):
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\necho cpython 3 9 1 0\n")
    threads = tmp_path / "python-t"
    threads.write_text("#!/bin/sh\necho cpython 3 14 0 1\n")
    for path in (old, threads):
        path.chmod(0o755)
    found = rehearsal.interpreters([old, threads, tmp_path / "missing", sys.executable])
    assert list(found) == [".".join(map(str, sys.version_info[:3]))]
    with pytest.raises(rehearsal.Failed, match="--python INTERPRETER"):
        rehearsal.interpreters([old])
