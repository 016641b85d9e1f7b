"""Conway's game of life, as a film.

    python game_of_life.py --save life.gif [--generations N]

A glider gun shoots at a soup of random cells. Every generation is compared with NumPy's. A film or a picture needs
Pillow, a progress bar tqdm.
"""

import argparse
import itertools
import pathlib
import sys

import numpy as np
from cuda.core import Device, LaunchConfig, Program, launch

try:
    from tqdm import tqdm
except ImportError:

    def tqdm(steps, **_options):
        """Without the package tqdm there is no progress bar."""
        return steps


SOURCE = r"""
// One generation on a torus. `age` counts the generations for which a cell has been alive; 0 is dead.
extern "C" __global__ void generation(const unsigned char *age, unsigned char *next, int width, int height)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height)
        return;
    int neighbours = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            if (dx || dy)
                neighbours += age[(y + dy + height) % height * width + (x + dx + width) % width] != 0;
    int mine = age[y * width + x];
    bool alive = neighbours == 3 || (neighbours == 2 && mine);
    next[y * width + x] = alive ? min(mine + 1, 255) : 0;
}
"""

GLIDER_GUN = """
........................O...........
......................O.O...........
............OO......OO............OO
...........O...O....OO............OO
OO........O.....O...OO..............
OO........O...O.OO....O.O...........
..........O.....O.......O...........
...........O...O....................
............OO......................
"""


def first_device():
    """The first device, made current. Exit status 77 means "skipped" to test programs."""
    try:
        device = Device(0)
        device.set_current()
    except Exception as reason:
        print(f"skipped: no device: {reason}")
        sys.exit(77)
    print(f"on {device.name}")
    return device


def picture_file(path):
    """The argument of --save: a file name whose format Pillow knows, in a folder that exists."""
    try:
        from PIL import Image
    except ImportError:
        raise argparse.ArgumentTypeError("needs Pillow: pip install pillow") from None
    file = pathlib.Path(path)
    if file.suffix.lower() not in Image.registered_extensions():
        raise argparse.ArgumentTypeError(f"{path!r} is not the name of a picture, such as life.gif")
    if not file.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{path!r}: there is no folder {str(file.parent)!r}")
    return path


def world(width, height):
    """A glider gun, and a soup of random cells below it."""
    cells = np.zeros((height, width), np.uint8)
    gun = np.array([[c == "O" for c in line] for line in GLIDER_GUN.split()], np.uint8)
    cells[4 : 4 + gun.shape[0], 4 : 4 + gun.shape[1]] = gun
    soup = cells[height // 2 + height // 8 : height - 4, width // 2 : width - 4]
    soup[:] = np.random.default_rng(5).random(soup.shape) < 0.35
    return cells


def on_the_host(age):
    """The next generation with NumPy."""
    alive = age != 0
    shifts = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx]
    neighbours = sum(np.roll(alive, shift, (0, 1)).astype(int) for shift in shifts)
    lives = (neighbours == 3) | ((neighbours == 2) & alive)
    return np.where(lives, np.minimum(age.astype(int) + 1, 255), 0).astype(np.uint8)


def save(path, generations):
    """Writes the film if the format has films, else the last generation. Cells cool down with their age."""
    from PIL import Image

    colours = np.linspace((255, 240, 150), (40, 90, 170), 256).astype(np.uint8)
    colours[0] = (12, 14, 28)
    frames = []
    for age in generations:
        # The first 32 generations of a cell's life use most of the colours.
        shade = np.where(age > 0, np.minimum(1 + 6.0 * age, 255), 0).astype(np.uint8)
        frame = Image.fromarray(np.kron(shade, np.ones((3, 3), np.uint8)))
        frame.putpalette(colours.tobytes())
        frames.append(frame)
    if pathlib.Path(path).suffix.lower() in (".gif", ".webp"):
        frames[0].save(path, save_all=True, append_images=frames[1:], duration=60, loop=0)
    else:
        frames[-1].convert("RGB").save(path)
    print(f"picture: {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", metavar="FILE", type=picture_file, help="write the film (.gif) or picture to FILE")
    parser.add_argument("--width", type=int, default=160, help="cells (%(default)s)")
    parser.add_argument("--height", type=int, default=100, help="cells (%(default)s)")
    parser.add_argument("--generations", type=int, default=150, help="(%(default)s)")
    options = parser.parse_args()
    width, height = options.width, options.height
    if width < 48 or height < 32 or options.generations < 1:
        parser.error("at least 48 x 32 cells and one generation")

    device = first_device()
    stream = device.create_stream()
    generation = Program(SOURCE, "c++").compile("cubin").get_kernel("generation")
    cells = world(width, height)
    now, following = (device.allocate(cells.nbytes, stream=stream) for _ in range(2))
    now.copy_from(cells, stream=stream)
    config = LaunchConfig(grid=(-(-width // 32), -(-height // 8)), block=(32, 8))

    seen = [cells]
    for _ in tqdm(range(options.generations), desc="life", unit="generation"):
        launch(stream, config, generation, now, following, np.int32(width), np.int32(height))
        now, following = following, now
        seen.append(np.empty_like(cells))
        now.copy_to(seen[-1], stream=stream)
        stream.sync()

    for number, (before, after) in enumerate(itertools.pairwise(seen)):
        if not (after == on_the_host(before)).all():
            sys.exit(f"wrong result: a cell of generation {number + 1}")
    print(f"{options.generations} generations of {width} x {height} cells; {(seen[-1] > 0).sum()} live at the end")
    if options.save:
        save(options.save, seen)
    print("done: the results are right")


if __name__ == "__main__":
    main()
