"""A sound wave in two dimensions by finite differences.

    python acoustic_wave.py --save wave.png [--size N] [--steps N]

The wave equation on a square grid, fourth order in space and second in time. A pulse starts in the middle of a room
whose right half has half the speed of sound, and meets a wall with two gaps. The picture shows the pressure after the
last step. A picture needs Pillow, a progress bar tqdm.
"""

import argparse
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
// One step: `next` holds the pressure one step ago and becomes that one step ahead. `speed` is (c dt / dx)^2, zero in
// walls. The two outermost rings stay silent.
extern "C" __global__ void step(const float *now, float *next, const float *speed, int n)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x + 2, y = blockIdx.y * blockDim.y + threadIdx.y + 2;
    if (x >= n - 2 || y >= n - 2)
        return;
    int at = y * n + x;
    float laplacian = -5.0f * now[at]
        + (4.0f / 3.0f) * (now[at - 1] + now[at + 1] + now[at - n] + now[at + n])
        - (1.0f / 12.0f) * (now[at - 2] + now[at + 2] + now[at - 2 * n] + now[at + 2 * n]);
    next[at] = 2.0f * now[at] - next[at] + speed[at] * laplacian;
}
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
        raise argparse.ArgumentTypeError(f"{path!r} is not the name of a picture, such as wave.png")
    if not file.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{path!r}: there is no folder {str(file.parent)!r}")
    return path


def save(path, rgb):
    """Writes an array of height x width x 3 bytes as a picture."""
    from PIL import Image

    Image.fromarray(rgb).save(path)
    print(f"picture: {path}")


def room(n):
    """(c dt / dx)^2 at every point, and the initial pulse."""
    y, x = np.mgrid[0:n, 0:n]
    speed = np.where(x < n // 2, 0.36, 0.09).astype(np.float32)
    wall = abs(x - 5 * n // 8) < max(n // 128, 1)
    for gap in (n // 3, 2 * n // 3):
        wall &= abs(y - gap) > n // 24
    speed[wall] = 0
    away = (x - n // 3) ** 2 + (y - n // 2) ** 2
    pulse = np.exp(-away / (2 * (n / 64) ** 2)).astype(np.float32)
    return speed, pulse


def on_the_host(speed, pulse, steps):
    """The same steps with NumPy."""
    now, before = pulse.astype(np.float64), pulse.astype(np.float64)
    inner = (slice(2, -2), slice(2, -2))

    def shifted(dy, dx):
        n = len(now)
        return now[2 + dy : n - 2 + dy, 2 + dx : n - 2 + dx]

    for _ in range(steps):
        near = shifted(0, -1) + shifted(0, 1) + shifted(-1, 0) + shifted(1, 0)
        far = shifted(0, -2) + shifted(0, 2) + shifted(-2, 0) + shifted(2, 0)
        laplacian = -5 * now[inner] + 4 / 3 * near - far / 12
        after = before
        after[inner] = 2 * now[inner] - before[inner] + speed[inner] * laplacian
        now, before = after, now
    return now


def picture(pressure, speed):
    """RGB of the field: blue below, red above the resting pressure, walls gray."""
    scale = max(float(abs(pressure).max()), 1e-12)
    level = np.sign(pressure) * np.sqrt(abs(pressure) / scale)
    white = np.full(pressure.shape, 255.0)
    red = np.where(level > 0, white, 255 * (1 + level))
    blue = np.where(level < 0, white, 255 * (1 - level))
    green = 255 * (1 - abs(level))
    rgb = np.stack([red, green, blue], axis=-1).astype(np.uint8)
    rgb[speed == 0] = 96
    return rgb


def simulate(device, speed, pulse, steps):
    """The pressure after `steps` steps on the device."""
    n = len(pulse)
    stream = device.create_stream()
    step = Program(SOURCE, "c++").compile("cubin").get_kernel("step")
    now, before, medium = (device.allocate(pulse.nbytes, stream=stream) for _ in range(3))
    for buffer, array in ((now, pulse), (before, pulse), (medium, speed)):
        buffer.copy_from(array, stream=stream)
    config = LaunchConfig(grid=(-(-(n - 4) // 32), -(-(n - 4) // 8)), block=(32, 8))
    for number in tqdm(range(steps), desc="wave", unit="step"):
        launch(stream, config, step, now, before, medium, np.int32(n))
        now, before = before, now
        if number % 50 == 0:
            stream.sync()  # Otherwise the bar shows what is queued, not what is done.
    pressure = np.empty_like(pulse)
    now.copy_to(pressure, stream=stream)
    stream.sync()
    return pressure


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", metavar="FILE", type=picture_file, help="write the picture to FILE")
    parser.add_argument("--size", type=int, default=192, help="points a side (%(default)s)")
    parser.add_argument("--steps", type=int, default=240, help="steps in time (%(default)s)")
    options = parser.parse_args()
    if options.size < 64 or options.steps < 1:
        parser.error("at least 64 points a side and one step")
    device = first_device()
    speed, pulse = room(options.size)
    pressure = simulate(device, speed, pulse, options.steps)
    reference = on_the_host(speed, pulse, options.steps)
    difference = abs(pressure - reference).max() / abs(reference).max()
    if not difference < 2e-3:
        sys.exit(f"wrong result: the pressure differs from the host's by {difference:.1e} of its maximum")
    print(f"{options.steps} steps on {options.size} x {options.size} points, {difference:.1e} from the host's result")
    if options.save:
        save(options.save, picture(pressure, speed))
    print("done: the results are right")


if __name__ == "__main__":
    main()
