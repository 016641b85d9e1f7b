"""Every example runs in a process of its own and confirms its result, or says why this machine cannot run it."""

import os
import pathlib
import struct
import subprocess
import sys
import zlib

import pytest

from helpers.device import on_cpu_device

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = sorted(p.stem for p in FOLDER.glob("*.py") if p.stem != "sample")
SKIPPED = 77


def run(name, *arguments, folder, **more):
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **more)
    command = [sys.executable, str(FOLDER / f"{name}.py"), *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_confirms_its_result(name, tmp_path):
    two = {"CUPYRITE_CPU_DEVICES": "2"} if name == "peer_to_peer" and on_cpu_device() else {}
    done = run(name, folder=tmp_path, **two)
    if done.returncode == SKIPPED:
        assert "skipped: " in done.stdout
        pytest.skip(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("on ") and done.stdout.endswith("done: the results are right\n"), done.stdout


@pytest.mark.cpu
def test_peer_example_is_skipped_with_one_device(tmp_path):
    done = run("peer_to_peer", folder=tmp_path, CUPYRITE_CPU_DEVICES="1")
    assert done.returncode == SKIPPED and "two devices are needed" in done.stdout, done.stdout + done.stderr


def test_acoustic_wave_writes_a_valid_png(tmp_path):
    picture = tmp_path / "wave.png"
    done = run("acoustic_wave", "--output", str(picture), "--size", "64", "--steps", "20", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    data = picture.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(data):
        (length,) = struct.unpack(">I", data[at : at + 4])
        kind, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + body)
        chunks[kind] = body
        at += 12 + length
    assert struct.unpack(">II", chunks[b"IHDR"][:8]) == (64, 64)
    pixels = zlib.decompress(chunks[b"IDAT"])
    assert len(pixels) == 64 * (1 + 3 * 64) and len(set(pixels)) > 16


def test_readme_lists_every_example():
    text = (FOLDER / "README.md").read_text()
    for name in EXAMPLES:
        assert f"`{name}.py`" in text, f"{name} is not in examples/README.md"
