"""The Mandelbrot set: one thread a pixel.

    python mandelbrot.py --save mandelbrot.png [--center RE IM] [--extent WIDTH]

Neighbouring pixels take different numbers of steps, so that the threads of a warp diverge. The result is compared with
NumPy's, exactly. A picture needs Pillow.
"""

import argparse
import pathlib
import sys

import numpy as np
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

SOURCE = r"""
// One thread a pixel: the number of steps until the orbit of z -> z^2 + c leaves the circle of radius 256, and where.
extern "C" __global__ void escape(double left, double top, double step, int width, int height, int most, int *steps,
                                  float *distance)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= width || row >= height)
        return;
    double a = left + column * step, b = top - row * step, x = 0, y = 0;
    int n = 0;
    while (n < most && x * x + y * y <= 65536) {
        double next = x * x - y * y + a;
        y = 2 * x * y + b;
        x = next;
        n++;
    }
    steps[row * width + column] = n;
    distance[row * width + column] = x * x + y * y;
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
        raise argparse.ArgumentTypeError(f"{path!r} is not the name of a picture, such as mandelbrot.png")
    if not file.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{path!r}: there is no folder {str(file.parent)!r}")
    return path


def save(path, rgb):
    """Writes an array of height x width x 3 bytes as a picture."""
    from PIL import Image

    Image.fromarray(rgb).save(path)
    print(f"picture: {path}")


def on_the_host(a, b, most):
    """The numbers of steps with NumPy, in the same order of operations."""
    x, y, steps = np.zeros_like(a), np.zeros_like(a), np.zeros(a.shape, np.int32)
    for _ in range(most):
        inside = x * x + y * y <= 65536
        following = x * x - y * y + a
        y = np.where(inside, 2 * x * y + b, y)
        x = np.where(inside, following, x)
        steps += inside
    return steps


def picture(steps, distance, most):
    """Colours that change smoothly: the distance says how far the last step went beyond the circle."""
    inside = steps == most
    smooth = steps + 1 - np.log2(np.log(np.maximum(distance, 2.0)) / np.log(256.0))
    phase = 0.75 * np.log(np.maximum(smooth, 1))[..., None] + np.array([0.0, 0.12, 0.28])
    rgb = 255 * (0.5 - 0.5 * np.cos(2 * np.pi * phase))
    rgb[inside] = 0
    return rgb.astype(np.uint8)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", metavar="FILE", type=picture_file, help="write the picture to FILE")
    parser.add_argument("--width", type=int, default=480, help="pixels (%(default)s)")
    parser.add_argument("--height", type=int, default=320, help="pixels (%(default)s)")
    parser.add_argument(
        "--steps", type=int, default=300, help="steps after which a point counts as inside (%(default)s)"
    )
    parser.add_argument("--center", type=float, nargs=2, default=(-0.7436, 0.1318), metavar=("RE", "IM"))
    parser.add_argument("--extent", type=float, default=0.012, help="width of the section (%(default)s)")
    options = parser.parse_args()
    width, height, most = options.width, options.height, options.steps
    if min(width, height, most) < 1 or options.extent <= 0:
        parser.error("width, height, steps and extent must be positive")

    device = first_device()
    stream = device.create_stream()
    # Without fused multiply-add the device rounds as NumPy does.
    escape = Program(SOURCE, "c++", ProgramOptions(fma=False)).compile("cubin").get_kernel("escape")
    step = options.extent / width
    left, top = options.center[0] - step * width / 2, options.center[1] + step * height / 2

    steps, distance = np.empty((height, width), np.int32), np.empty((height, width), np.float32)
    on_device = [device.allocate(array.nbytes, stream=stream) for array in (steps, distance)]
    config = LaunchConfig(grid=(-(-width // 16), -(-height // 16)), block=(16, 16))
    sizes = np.int32(width), np.int32(height), np.int32(most)
    launch(stream, config, escape, left, top, step, *sizes, *on_device)
    on_device[0].copy_to(steps, stream=stream)
    on_device[1].copy_to(distance, stream=stream)
    stream.sync()

    # Every eighth pixel of every eighth row is computed again.
    a, b = np.meshgrid(left + np.arange(0, width, 8) * step, top - np.arange(0, height, 8) * step)
    if not (steps[::8, ::8] == on_the_host(a, b, most)).all():
        sys.exit("wrong result: a pixel has another number of steps on the host")
    print(f"{width} x {height} pixels, {steps.sum(dtype=np.int64)} steps, {(steps == most).mean():.0%} inside")
    if options.save:
        save(options.save, picture(steps, distance, most))
    print("done: the results are right")


if __name__ == "__main__":
    main()
