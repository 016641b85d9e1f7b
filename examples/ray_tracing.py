"""A ray tracer: one thread a pixel follows its rays through mirrors.

    python ray_tracing.py --save ray_tracing.png [--width N] [--height N] [--samples N]

C++ with operators, structures and a lambda in the kernel; the scene is a NumPy array of the same structure. What each
pixel shows is compared with NumPy's result. A picture needs Pillow.
"""

import argparse
import pathlib
import sys

import numpy as np
from cuda.core import Device, LaunchConfig, Program, launch

SOURCE = r"""
struct Vector { float x, y, z; };

__device__ Vector operator+(Vector a, Vector b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
__device__ Vector operator-(Vector a, Vector b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
__device__ Vector operator*(float s, Vector a) { return {s * a.x, s * a.y, s * a.z}; }
__device__ float dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
__device__ Vector unit(Vector a) { return rsqrtf(dot(a, a)) * a; }

struct Sphere { Vector center; float radius; Vector colour; float mirror; };

constexpr int NOTHING = -2, FLOOR = -1;

// The nearest object along a ray: a sphere's number, FLOOR (the plane y = 0) or NOTHING.
__device__ int nearest(Vector from, Vector towards, const Sphere *spheres, int count, float &distance)
{
    int found = NOTHING;
    distance = 1e30f;
    if (towards.y < -1e-4f) {
        distance = -from.y / towards.y;
        found = FLOOR;
    }
    for (int i = 0; i < count; i++) {
        Vector away = from - spheres[i].center;
        float b = dot(away, towards), c = dot(away, away) - spheres[i].radius * spheres[i].radius;
        float root = b * b - c;
        if (root <= 0)
            continue;
        float t = -b - sqrtf(root);
        if (t > 1e-3f && t < distance) {
            distance = t;
            found = i;
        }
    }
    return found;
}

__device__ Vector sky(Vector towards)
{
    float up = fmaxf(towards.y, 0.0f);
    return (1 - up) * Vector{0.95f, 0.75f, 0.6f} + up * Vector{0.15f, 0.3f, 0.7f};
}

// The colour that arrives along a ray. Mirrors continue the ray, a few times.
__device__ Vector look(Vector from, Vector towards, const Sphere *spheres, int count)
{
    const Vector light = unit({-0.5f, 0.9f, -0.6f});
    Vector colour = {0, 0, 0};
    float share = 1;
    for (int bounce = 0; bounce < 4 && share > 0.01f; bounce++) {
        float distance;
        int found = nearest(from, towards, spheres, count, distance);
        if (found == NOTHING)
            return colour + share * sky(towards);
        Vector at = from + distance * towards, normal = {0, 1, 0}, paint;
        float mirror = 0.15f;
        if (found == FLOOR) {
            bool dark = ((int)floorf(at.x) + (int)floorf(at.z)) & 1;
            paint = dark ? Vector{0.12f, 0.12f, 0.15f} : Vector{0.85f, 0.85f, 0.8f};
            // The checkers fade into the horizon.
            float fog = expf(-0.03f * distance);
            paint = fog * paint + (1 - fog) * sky({1, 0, 0});
        } else {
            normal = (1 / spheres[found].radius) * (at - spheres[found].center);
            paint = spheres[found].colour;
            mirror = spheres[found].mirror;
        }
        float shadow, bright = fmaxf(dot(normal, light), 0.0f);
        if (bright > 0 && nearest(at + 1e-3f * normal, light, spheres, count, shadow) >= 0)
            bright = 0;
        Vector reflected = towards - 2 * dot(towards, normal) * normal;
        float shine = bright > 0 && found != FLOOR ? powf(fmaxf(dot(reflected, light), 0.0f), 40.0f) : 0;
        Vector lit = (0.25f + 0.85f * bright) * paint + 0.6f * shine * Vector{1, 1, 1};
        colour = colour + share * (1 - mirror) * lit;
        share *= mirror;
        from = at + 1e-3f * normal;
        towards = reflected;
    }
    return colour;
}

// One thread a pixel, `samples` x `samples` rays a pixel. `first` is what the ray through the pixel's center meets.
extern "C" __global__ void render(const Sphere *spheres, int count, int width, int height, int samples, float *rgb,
                                  int *first)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= width || row >= height)
        return;
    const Vector eye = {0, 1.6f, -6};
    auto ray = [&](float x, float y) {
        return unit({(x - width / 2.0f) / height, (height / 2.0f - y) / height - 0.12f, 1.25f});
    };
    float distance;
    first[row * width + column] = nearest(eye, ray(column + 0.5f, row + 0.5f), spheres, count, distance);
    Vector sum = {0, 0, 0};
    for (int i = 0; i < samples * samples; i++)
        sum = sum + look(eye, ray(column + (i % samples + 0.5f) / samples, row + (i / samples + 0.5f) / samples), spheres,
                         count);
    for (int channel = 0; channel < 3; channel++)
        rgb[3 * (row * width + column) + channel] = (&sum.x)[channel] / (samples * samples);
}
"""

# As `struct Sphere` above.
SPHERE = np.dtype(
    [("center", np.float32, 3), ("radius", np.float32), ("colour", np.float32, 3), ("mirror", np.float32)]
)


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
        raise argparse.ArgumentTypeError(f"{path!r} is not the name of a picture, such as ray_tracing.png")
    if not file.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{path!r}: there is no folder {str(file.parent)!r}")
    return path


def save(path, rgb):
    """Writes an array of height x width x 3 bytes as a picture."""
    from PIL import Image

    Image.fromarray(rgb).save(path)
    print(f"picture: {path}")


def scene():
    """Three large spheres, and a ring of small ones."""
    spheres = [((0, 1, 0), 1.0, (0.9, 0.9, 0.95), 0.8)]
    spheres += [((-2.3, 0.8, 0.8), 0.8, (0.85, 0.2, 0.15), 0.2), ((2.3, 0.8, 0.8), 0.8, (0.15, 0.35, 0.8), 0.25)]
    for k in range(10):
        angle = 2 * np.pi * k / 10 + 0.3
        colour = 0.5 + 0.45 * np.cos(2 * np.pi * (k / 10 + np.array([0, 1 / 3, 2 / 3])))
        spheres.append(((1.9 * np.cos(angle), 0.3, 1.9 * np.sin(angle) - 0.6), 0.3, colour, 0.1))
    return np.array([(center, radius, tuple(colour), mirror) for center, radius, colour, mirror in spheres], SPHERE)


def first_hits(spheres, width, height):
    """What the rays through the centers of the pixels meet, with NumPy."""
    y, x = np.mgrid[0:height, 0:width] + 0.5
    rays = np.stack([(x - width / 2) / height, (height / 2 - y) / height - 0.12, np.full_like(x, 1.25)], axis=-1)
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    eye = np.array([0, 1.6, -6])
    with np.errstate(divide="ignore", invalid="ignore"):
        distances = [np.full(x.shape, 1e30), np.where(rays[..., 1] < -1e-4, -eye[1] / rays[..., 1], np.inf)]
        for sphere in spheres:
            away = eye - sphere["center"]
            b = rays @ away
            root = b * b - (away @ away - sphere["radius"] ** 2)
            distances.append(np.where(root > 0, -b - np.sqrt(root), np.inf))
    return np.argmin(distances, axis=0) - 2


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", metavar="FILE", type=picture_file, help="write the picture to FILE")
    parser.add_argument("--width", type=int, default=480, help="pixels (%(default)s)")
    parser.add_argument("--height", type=int, default=300, help="pixels (%(default)s)")
    parser.add_argument("--samples", type=int, default=2, help="rays across and down a pixel (%(default)s)")
    options = parser.parse_args()
    width, height = options.width, options.height
    if min(width, height, options.samples) < 1:
        parser.error("width, height and samples must be positive")

    device = first_device()
    stream = device.create_stream()
    render = Program(SOURCE, "c++", {"std": "c++17"}).compile("cubin").get_kernel("render")
    spheres = scene()
    rgb, first = np.empty((height, width, 3), np.float32), np.empty((height, width), np.int32)
    inputs, colours, hits = (device.allocate(array.nbytes, stream=stream) for array in (spheres, rgb, first))
    inputs.copy_from(spheres, stream=stream)
    config = LaunchConfig(grid=(-(-width // 16), -(-height // 8)), block=(16, 8))
    sizes = [np.int32(number) for number in (len(spheres), width, height, options.samples)]
    launch(stream, config, render, inputs, *sizes, colours, hits)
    colours.copy_to(rgb, stream=stream)
    hits.copy_to(first, stream=stream)
    stream.sync()

    # A ray that touches an edge may round to either side.
    differing = (first != first_hits(spheres, width, height)).mean()
    if differing > 1e-3 or not np.isfinite(rgb).all():
        sys.exit(f"wrong result: {differing:.2%} of the pixels show another object than on the host")
    print(f"{width * height * options.samples**2} rays; {(first >= 0).mean():.0%} of the picture are spheres")
    if options.save:
        save(options.save, (255 * np.clip(rgb, 0, 1) ** (1 / 2.2)).astype(np.uint8))
    print("done: the results are right")


if __name__ == "__main__":
    main()
