"""A sound wave in two dimensions by finite differences, and a picture of it.

    python acoustic_wave.py [--output FILE.png] [--size N] [--steps N]

The wave equation on a square grid, fourth order in space and second in time. A pulse starts in the middle of a room
whose right half has half the speed of sound, and meets a wall with two gaps. The picture shows the pressure after the
last step; the PNG is written without an image library.
"""

import argparse

import numpy as np
from cuda.bindings import driver
from sample import Kernels, check, download, run, upload, verify, write_png

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


def simulate(speed, pulse, steps):
    """The pressure after `steps` steps on the device."""
    n = len(pulse)
    kernels = Kernels(SOURCE)
    now, before, medium = upload(pulse), upload(pulse), upload(speed)
    advance, block = kernels["step"], (32, 8)
    grid = (-(-(n - 4) // block[0]), -(-(n - 4) // block[1]))
    for _ in range(steps):
        advance(grid, block, now, before, medium, np.int32(n))
        now, before = before, now
    pressure = download(now, pulse)
    for pointer in (now, before, medium):
        check(driver.cuMemFree(pointer))
    return pressure


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", default="acoustic_wave.png", help="the picture (%(default)s)")
    parser.add_argument("--size", type=int, default=192, help="points a side (%(default)s)")
    parser.add_argument("--steps", type=int, default=240, help="steps in time (%(default)s)")
    options = parser.parse_args()
    if options.size < 64 or options.steps < 1:
        parser.error("at least 64 points a side and one step")
    speed, pulse = room(options.size)
    pressure = simulate(speed, pulse, options.steps)
    reference = on_the_host(speed, pulse, options.steps)
    difference = abs(pressure - reference).max() / abs(reference).max()
    verify(difference < 2e-3, f"the pressure differs from the host's by {difference:.1e} of its maximum")
    write_png(options.output, picture(pressure, speed))
    print(
        f"{options.steps} steps on {options.size} x {options.size} points, {difference:.1e} from the host's result; "
        f"picture: {options.output}"
    )


if __name__ == "__main__":
    run(main)
