"""Two galaxies that meet: the attraction of every body by every other one.

    python n_body.py --save n_body.png [--bodies N] [--steps N]

A block reads the bodies tile by tile into shared memory. The first step is compared with NumPy's; over all steps the
energy and the momentum must stay. A picture needs Pillow, a progress bar tqdm.
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
constexpr int BLOCK = 128;

// One step: every body is attracted by every other one. A block reads the bodies tile by tile into shared memory.
// A body is x, y, z and mass; the bodies are read from `now` and written to `next`.
extern "C" __global__ void step(const float4 *now, float4 *next, float4 *velocity, float dt, float softening, int n)
{
    __shared__ float4 tile[BLOCK];
    int i = blockIdx.x * BLOCK + threadIdx.x;
    float4 mine = i < n ? now[i] : make_float4(0, 0, 0, 0);
    float ax = 0, ay = 0, az = 0;
    for (int first = 0; first < n; first += BLOCK) {
        int j = first + threadIdx.x;
        tile[threadIdx.x] = j < n ? now[j] : make_float4(0, 0, 0, 0);
        __syncthreads();
        for (int k = 0; k < BLOCK; k++) {
            float4 other = tile[k];
            float dx = other.x - mine.x, dy = other.y - mine.y, dz = other.z - mine.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening * softening);
            float pull = other.w * inverse * inverse * inverse;
            ax += pull * dx;
            ay += pull * dy;
            az += pull * dz;
        }
        __syncthreads();
    }
    if (i >= n)
        return;
    float4 v = velocity[i];
    v.x += dt * ax;
    v.y += dt * ay;
    v.z += dt * az;
    velocity[i] = v;
    next[i] = make_float4(mine.x + dt * v.x, mine.y + dt * v.y, mine.z + dt * v.z, mine.w);
}
"""
SOFTENING = 0.1
DT = 0.02


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
        raise argparse.ArgumentTypeError(f"{path!r} is not the name of a picture, such as n_body.png")
    if not file.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{path!r}: there is no folder {str(file.parent)!r}")
    return path


def save(path, rgb):
    """Writes an array of height x width x 3 bytes as a picture."""
    from PIL import Image

    Image.fromarray(rgb).save(path)
    print(f"picture: {path}")


def galaxy(random, n, center, drift, tilt):
    """A heavy body, and light ones around it on circles: positions with masses, and velocities."""
    radius = 0.25 + 0.65 * np.sqrt(random.random(n))
    angle = 2 * np.pi * random.random(n)
    position = np.stack([radius * np.cos(angle), radius * np.sin(angle), 0.02 * random.standard_normal(n)], axis=1)
    speed = np.sqrt(radius**2 / (radius**2 + SOFTENING**2) ** 1.5)
    velocity = np.stack([-speed * np.sin(angle), speed * np.cos(angle), np.zeros(n)], axis=1)
    position[0] = velocity[0] = 0
    turn = np.array([[1, 0, 0], [0, np.cos(tilt), -np.sin(tilt)], [0, np.sin(tilt), np.cos(tilt)]])
    mass = np.full((n, 1), 1e-5)
    mass[0] = 1
    bodies = np.hstack([position @ turn.T + center, mass])
    return bodies, np.hstack([velocity @ turn.T + drift, np.zeros((n, 1))])


def attraction(bodies):
    """Acceleration and potential energy of all bodies, with NumPy."""
    acceleration, potential = np.zeros((len(bodies), 3)), 0.0
    # Some rows of the table of all pairs at a time: the whole table does not fit into memory for many bodies.
    for first in range(0, len(bodies), 256):
        some = bodies[first : first + 256]
        away = bodies[None, :, :3] - some[:, None, :3]
        distance = np.sqrt((away**2).sum(axis=2) + SOFTENING**2)
        acceleration[first : first + 256] = np.einsum("ij,ijk->ik", bodies[:, 3] / distance**3, away)
        # Without the pair of each body with itself; every other pair occurs twice.
        potential -= (some[:, 3] @ (bodies[:, 3] / distance).sum(axis=1) - (some[:, 3] ** 2).sum() / SOFTENING) / 2
    return acceleration, potential


def energy(bodies, velocity):
    """Kinetic and potential energy. A step uses velocities half a step later than the positions before it."""
    acceleration, potential = attraction(bodies)
    halfway = velocity[:, :3] + acceleration * (DT / 2)
    return (bodies[:, 3] * (halfway**2).sum(axis=1)).sum() / 2 + potential


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", metavar="FILE", type=picture_file, help="write the picture to FILE")
    parser.add_argument("--bodies", type=int, default=768, help="(%(default)s)")
    parser.add_argument("--steps", type=int, default=250, help="steps in time (%(default)s)")
    options = parser.parse_args()
    if options.bodies < 4 or options.steps < 1:
        parser.error("at least 4 bodies and one step")

    random = np.random.default_rng(7)
    half = options.bodies // 2
    first = galaxy(random, half, (-1.1, -0.45, 0), (0.33, -0.25, 0), 0.5)
    second = galaxy(random, options.bodies - half, (1.1, 0.45, 0), (-0.33, 0.25, 0), -0.9)
    bodies, velocity = (np.vstack(pair).astype(np.float32) for pair in zip(first, second))
    n = len(bodies)

    device = first_device()
    stream = device.create_stream()
    step = Program(SOURCE, "c++", {"std": "c++17"}).compile("cubin").get_kernel("step")
    now, following, speeds = (device.allocate(bodies.nbytes, stream=stream) for _ in range(3))
    now.copy_from(bodies, stream=stream)
    speeds.copy_from(velocity, stream=stream)
    config = LaunchConfig(grid=-(-n // 128), block=128)

    before = energy(bodies.astype(float), velocity.astype(float))
    found, found_velocity = np.empty_like(bodies), np.empty_like(velocity)
    exposure = np.zeros((2, 360, 540))
    for number in tqdm(range(options.steps), desc="galaxies", unit="step"):
        launch(stream, config, step, now, following, speeds, np.float32(DT), np.float32(SOFTENING), np.int32(n))
        now, following = following, now
        now.copy_to(found, stream=stream)
        speeds.copy_to(found_velocity, stream=stream)
        stream.sync()
        if number == 0:
            right = velocity[:, :3] + DT * attraction(bodies.astype(float))[0]
            if not np.allclose(found_velocity[:, :3], right, atol=1e-4):
                sys.exit("wrong result: a velocity after the first step")
        # The picture is a long exposure of each galaxy: later steps are brighter.
        exposure *= 0.985
        for plate, seen in zip(exposure, (found[:half], found[half:])):
            plate += np.histogram2d(-seen[:, 1], seen[:, 0], plate.shape, [(-1.6, 1.6), (-2.4, 2.4)])[0]

    after = energy(found.astype(float), found_velocity.astype(float))
    momentum = abs((found[:, 3:] * found_velocity[:, :3]).sum(axis=0)).max()
    start = abs((bodies[:, 3:] * velocity[:, :3]).sum(axis=0)).max()
    if abs(momentum - start) > 1e-4:
        sys.exit(f"wrong result: the momentum changed from {start:.1e} to {momentum:.1e}")
    if abs(after - before) > 0.02 * abs(before):
        sys.exit(f"wrong result: the energy changed from {before:.4f} to {after:.4f}")
    print(f"{options.steps} steps of {n} bodies; the energy changed by {abs(after / before - 1):.1e}")
    if options.save:
        light = np.log1p(3 * exposure)[..., None] * np.array([[[[150, 60, 25]]], [[[25, 80, 160]]]])
        save(options.save, np.clip(light.sum(axis=0) + np.array([5, 5, 14]), 0, 255).astype(np.uint8))
    print("done: the results are right")


if __name__ == "__main__":
    main()
