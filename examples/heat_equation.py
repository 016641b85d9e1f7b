"""The heat equation on a plate: a stencil with tiles in shared memory.

    python heat_equation.py --save heat.png [--size N] [--steps N]

A hot spiral warms a plate with two cold disks. Each step computes every temperature from its four neighbours. The
result is compared with NumPy's, exactly. A picture needs Pillow, a progress bar tqdm.
"""

import argparse
import pathlib
import sys

import numpy as np
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

try:
    from tqdm import tqdm
except ImportError:

    def tqdm(steps, **_options):
        """Without the package tqdm there is no progress bar."""
        return steps


SOURCE = r"""
constexpr int TILE = 16;

// One step of the heat equation. A block loads its tile with a border into shared memory, so that each temperature is
// read from global memory once and not five times. Sources keep their temperature.
extern "C" __global__ void step(const float *now, float *next, const unsigned char *source, float rate, int n)
{
    __shared__ float tile[TILE + 2][TILE + 2];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
    for (int k = threadIdx.y * TILE + threadIdx.x; k < (TILE + 2) * (TILE + 2); k += TILE * TILE) {
        int column = blockIdx.x * TILE + k % (TILE + 2) - 1, row = blockIdx.y * TILE + k / (TILE + 2) - 1;
        // At the edge, the nearest point inside: no heat leaves the plate.
        tile[k / (TILE + 2)][k % (TILE + 2)] = now[min(max(row, 0), n - 1) * n + min(max(column, 0), n - 1)];
    }
    __syncthreads();
    if (x >= n || y >= n)
        return;
    int i = threadIdx.y + 1, j = threadIdx.x + 1;
    float here = tile[i][j];
    float around = (tile[i][j - 1] + tile[i][j + 1]) + (tile[i - 1][j] + tile[i + 1][j]);
    next[y * n + x] = source[y * n + x] ? here : here + rate * (around - 4 * here);
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
        raise argparse.ArgumentTypeError(f"{path!r} is not the name of a picture, such as heat.png")
    if not file.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{path!r}: there is no folder {str(file.parent)!r}")
    return path


def save(path, rgb):
    """Writes an array of height x width x 3 bytes as a picture."""
    from PIL import Image

    Image.fromarray(rgb).save(path)
    print(f"picture: {path}")


def palette(level, *colours):
    """Colours for levels from 0 to 1, interpolated between the given ones: an array of shape (..., 3)."""
    at = np.linspace(0, 1, len(colours))
    channels = [np.interp(level, at, channel) for channel in zip(*colours)]
    return np.stack(channels, axis=-1).astype(np.uint8)


def plate(n):
    """The initial temperatures, from 0 to 1, and which points keep theirs: a hot spiral and two cold disks."""
    y, x = (np.mgrid[0:n, 0:n] + 0.5) / n * 2 - 1
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    turns = (radius * 4 - angle / (2 * np.pi)) % 1
    hot = (turns < 0.09) & (radius < 0.85) & (radius > 0.1)
    cold = (np.hypot(x - 0.8, y - 0.8) < 0.12) | (np.hypot(x + 0.8, y + 0.8) < 0.12)
    temperature = np.where(hot, 1.0, np.where(cold, 0.0, 0.2)).astype(np.float32)
    return temperature, (hot | cold).astype(np.uint8)


def on_the_host(temperature, source, rate, steps):
    """The same steps with NumPy, in the same order of operations."""
    for _ in range(steps):
        wide = np.pad(temperature, 1, mode="edge")
        around = (wide[1:-1, :-2] + wide[1:-1, 2:]) + (wide[:-2, 1:-1] + wide[2:, 1:-1])
        temperature = np.where(source, temperature, temperature + rate * (around - 4 * temperature))
    return temperature


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", metavar="FILE", type=picture_file, help="write the picture to FILE")
    parser.add_argument("--size", type=int, default=256, help="points a side (%(default)s)")
    parser.add_argument("--steps", type=int, default=400, help="steps in time (%(default)s)")
    options = parser.parse_args()
    n, steps = options.size, options.steps
    if n < 16 or steps < 1:
        parser.error("at least 16 points a side and one step")

    device = first_device()
    stream = device.create_stream()
    # Without fused multiply-add the device rounds as NumPy does.
    step = Program(SOURCE, "c++", ProgramOptions(std="c++17", fma=False)).compile("cubin").get_kernel("step")
    temperature, source = plate(n)
    rate = np.float32(0.23)

    # Two buffers change roles: a step reads one and writes the other.
    now, following, sources = (
        device.allocate(array.nbytes, stream=stream) for array in (temperature, temperature, source)
    )
    now.copy_from(temperature, stream=stream)
    sources.copy_from(source, stream=stream)
    config = LaunchConfig(grid=(-(-n // 16), -(-n // 16)), block=(16, 16))
    for number in tqdm(range(steps), desc="heat", unit="step"):
        launch(stream, config, step, now, following, sources, rate, np.int32(n))
        now, following = following, now
        if number % 50 == 0:
            stream.sync()  # Otherwise the bar shows what is queued, not what is done.
    result = np.empty_like(temperature)
    now.copy_to(result, stream=stream)
    stream.sync()

    if not (result == on_the_host(temperature, source, rate, steps)).all():
        sys.exit("wrong result: a temperature differs from the host's")
    print(
        f"{steps} steps on {n} x {n} points; the mean temperature rose from {temperature.mean():.3f} to {result.mean():.3f}"
    )
    if options.save:
        colours = (8, 10, 40), (70, 15, 110), (190, 45, 90), (250, 140, 40), (255, 250, 190)
        save(options.save, palette(np.sqrt(result), *colours))
    print("done: the results are right")


if __name__ == "__main__":
    main()
