"""Every example, copied alone to an empty folder, runs there and confirms its result, or says why this machine cannot run
it."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from helpers.device import on_cpu_device

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = sorted(p.stem for p in FOLDER.glob("*.py"))
VISUAL = [name for name in EXAMPLES if '"--save"' in (FOLDER / f"{name}.py").read_text()]
SKIPPED = 77


def run(name, *arguments, folder, **more):
    """Runs a copy of the example in the folder."""
    shutil.copy(FOLDER / f"{name}.py", folder)
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **more)
    command = [sys.executable, f"{name}.py", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def confirm(done):
    if done.returncode == SKIPPED:
        assert "skipped: " in done.stdout
        pytest.skip(done.stdout.splitlines()[-1])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("on ") and done.stdout.endswith("done: the results are right\n"), done.stdout


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_alone_confirms_its_result(name, tmp_path):
    two = {"CUPYRITE_CPU_DEVICES": "2"} if name == "peer_to_peer" and on_cpu_device() else {}
    confirm(run(name, folder=tmp_path, **two))
    assert [file.name for file in tmp_path.iterdir()] == [f"{name}.py"], "the example wrote an unrequested file"


@pytest.mark.parametrize("name", VISUAL)
def test_example_saves_a_picture(name, tmp_path):
    image = pytest.importorskip("PIL.Image")
    confirm(run(name, "--save", "picture.png", folder=tmp_path))
    with image.open(tmp_path / "picture.png") as picture:
        width, height = picture.size
        assert min(width, height) >= 128
        colours = picture.convert("RGB").getcolors(width * height)
    assert len(colours) >= 4 and max(count for count, _ in colours) < 0.99 * width * height


def test_there_are_pictures():
    assert len(VISUAL) >= 7


def test_game_of_life_saves_a_film(tmp_path):
    image = pytest.importorskip("PIL.Image")
    confirm(run("game_of_life", "--save", "life.gif", "--generations", "5", folder=tmp_path))
    with image.open(tmp_path / "life.gif") as film:
        assert film.n_frames == 6


@pytest.mark.parametrize("name", VISUAL)
def test_picture_without_pillow_is_refused_before_the_work(name, tmp_path):
    (tmp_path / "PIL.py").write_text("raise ImportError('hidden')")
    done = run(name, "--save", "picture.png", folder=tmp_path)
    assert done.returncode == 2 and not done.stdout, done.stdout
    assert "--save: needs Pillow: pip install pillow" in done.stderr


@pytest.mark.parametrize("file, reason", [("mandelbrot", "not the name of a picture"), ("no/m.png", "no folder 'no'")])
def test_unusable_picture_name_is_refused_before_the_work(file, reason, tmp_path):
    pytest.importorskip("PIL")
    done = run("mandelbrot", "--save", file, folder=tmp_path)
    assert done.returncode == 2 and not done.stdout and reason in done.stderr, done.stdout + done.stderr


def test_simulation_runs_without_tqdm(tmp_path):
    (tmp_path / "tqdm.py").write_text("raise ImportError('hidden')")
    done = run("heat_equation", "--steps", "10", "--size", "33", folder=tmp_path)
    assert done.stdout.endswith("done: the results are right\n") and not done.stderr, done.stdout + done.stderr


@pytest.mark.cpu
@pytest.mark.parametrize("name", EXAMPLES)
def test_example_is_skipped_without_a_device(name, tmp_path):
    done = run(name, folder=tmp_path, CUPYRITE_DEVICE="gpu", CUPYRITE_LIB_CUDA="/no/libcuda.so.1")
    assert done.returncode == SKIPPED and "skipped: no device: " in done.stdout, done.stdout + done.stderr


@pytest.mark.cpu
def test_peer_example_is_skipped_with_one_device(tmp_path):
    done = run("peer_to_peer", folder=tmp_path, CUPYRITE_CPU_DEVICES="1")
    assert done.returncode == SKIPPED and "two devices are needed" in done.stdout, done.stdout + done.stderr


def test_readme_lists_every_example():
    text = (FOLDER / "README.md").read_text()
    for name in EXAMPLES:
        assert f"`{name}.py`" in text, f"{name} is not in examples/README.md"
    assert text.count(".py` |") == len(EXAMPLES), "examples/README.md lists a program that does not exist"
