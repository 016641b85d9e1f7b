"""The gallery shows every example with a picture, and its pictures are those that the examples write."""

import pytest

from helpers import gallery


def test_page_is_up_to_date():
    assert gallery.PAGE.read_text() == gallery.page(), "run `python tests/helpers/gallery.py`"


def test_every_picture_is_committed_and_small():
    expected = {gallery.picture(name) for name in gallery.names()}
    assert len(expected) >= 7
    assert {file.name for file in gallery.PICTURES.iterdir()} == expected
    assert max(file.stat().st_size for file in gallery.PICTURES.iterdir()) < 300_000


@pytest.mark.parametrize("name", ["mandelbrot", "game_of_life"])
def test_picture_is_what_the_example_writes(name, tmp_path):
    """The colours of a picture of another device may differ by rounding, or by a pixel's number of steps."""
    image = pytest.importorskip("PIL.Image")
    numpy = pytest.importorskip("numpy")
    assert gallery.make(name, tmp_path)
    with (
        image.open(tmp_path / gallery.picture(name)) as made,
        image.open(gallery.PICTURES / gallery.picture(name)) as committed,
    ):
        assert made.size == committed.size and getattr(made, "n_frames", 1) == getattr(committed, "n_frames", 1)
        pixels = [numpy.asarray(picture.convert("RGB")).astype(int) for picture in (made, committed)]
    assert abs(pixels[0] - pixels[1]).mean() < 3
