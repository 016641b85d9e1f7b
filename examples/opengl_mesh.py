"""OpenGL draws what a kernel computed: the vertices stay in one buffer, which both use.

    python opengl_mesh.py --save mesh.png [--size N] [--steps N]

A kernel moves and colours the vertices of a mesh, and OpenGL draws the mesh without a window. Needs the package
moderngl, and EGL: the GPU's, or Mesa's software renderer together with the CPU device. A picture needs Pillow.
"""

import argparse
import pathlib
import sys

import numpy as np
from cuda.core import Device, GraphicsResource, LaunchConfig, Program, launch

SOURCE = r"""
struct Vertex { float x, y, red, green, blue; };

// The vertex in row j and column i of an n x n mesh over the square from -1 to 1, at a moment.
extern "C" __global__ void move(Vertex *mesh, int n, float time)
{
    int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n * n) return;
    float x = 2.0f * (k % n) / (n - 1) - 1, y = 2.0f * (k / n) / (n - 1) - 1;
    float wave = sinf(9 * sqrtf(x * x + y * y) - time);
    mesh[k] = {x * (0.9f + 0.1f * wave), y * (0.9f + 0.1f * wave), 0.5f + 0.5f * wave, 0.5f * (x + 1), 0.5f * (y + 1)};
}
"""

VERTEX_SHADER = """
#version 330
in vec2 place; in vec3 colour; out vec3 shade;
void main() { gl_Position = vec4(place, 0, 1); shade = colour; }
"""

FRAGMENT_SHADER = """
#version 330
in vec3 shade; out vec4 pixel;
void main() { pixel = vec4(shade, 1); }
"""


def skip(reason):
    """Ends with status 77, which test programs count as skipped."""
    print(f"skipped: {reason}")
    sys.exit(77)


def first_device():
    """The first device, made current."""
    try:
        device = Device(0)
        device.set_current()
    except Exception as reason:
        skip(f"no device: {reason}")
    print(f"on {device.name}")
    return device


def verify(holds, what):
    """Ends the program with an error unless the result is right."""
    if not holds:
        sys.exit(f"wrong result: {what}")


def picture_file(path):
    """The argument of --save: a file name whose format Pillow knows, in a folder that exists."""
    try:
        from PIL import Image
    except ImportError:
        raise argparse.ArgumentTypeError("needs Pillow: pip install pillow") from None
    file = pathlib.Path(path)
    if file.suffix.lower() not in Image.registered_extensions():
        raise argparse.ArgumentTypeError(f"{path!r} is not the name of a picture, such as mesh.png")
    if not file.parent.is_dir():
        raise argparse.ArgumentTypeError(f"{path!r}: there is no folder {str(file.parent)!r}")
    return path


def save(path, rgb):
    """Writes an array of height x width x 3 bytes as a picture."""
    from PIL import Image

    Image.fromarray(rgb).save(path)
    print(f"picture: {path}")


def opengl_context(on_gpu):
    """A context of OpenGL without a window: of the GPU, or of the software renderer."""
    try:
        import moderngl

        context = moderngl.create_context(standalone=True, backend="egl", require=450)
    except Exception as reason:
        skip(f"no OpenGL context: {reason}")
    renderer = context.info["GL_RENDERER"]
    if on_gpu != context.info["GL_VENDOR"].startswith("NVIDIA"):
        skip(f"{renderer} is not the CUDA device's OpenGL")
    print(f"OpenGL: {renderer}")
    return context


def expected(n, time):
    """The vertices that the kernel writes: n * n rows of x, y, red, green, blue."""
    y, x = np.meshgrid(*[np.linspace(-1, 1, n)] * 2, indexing="ij")
    wave = np.sin(9 * np.hypot(x, y) - time)
    columns = x * (0.9 + 0.1 * wave), y * (0.9 + 0.1 * wave), 0.5 + 0.5 * wave, 0.5 * (x + 1), 0.5 * (y + 1)
    return np.stack([column.ravel() for column in columns], axis=1)


def triangles(n):
    """Indices of two triangles for each cell of the mesh."""
    corner = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
    cells = np.stack([corner, corner + 1, corner + n, corner + n, corner + 1, corner + n + 1], axis=1)
    return cells.astype(np.uint32)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", metavar="FILE", type=picture_file, help="write the last picture to FILE")
    parser.add_argument("--size", type=int, default=256, help="width and height in pixels (%(default)s)")
    parser.add_argument("--steps", type=int, default=10, help="moments to compute and draw (%(default)s)")
    options = parser.parse_args()
    if options.size < 16 or options.steps < 1:
        parser.error("at least 16 pixels and one step")

    device = first_device()
    gl = opengl_context(on_gpu=not device.name.startswith("CPU"))
    stream = device.create_stream()
    move = Program(SOURCE, "c++").compile("cubin").get_kernel("move")

    n = 65
    mesh = gl.buffer(reserve=n * n * 20)
    shaders = gl.program(vertex_shader=VERTEX_SHADER, fragment_shader=FRAGMENT_SHADER)
    drawing = gl.vertex_array(shaders, [(mesh, "2f 3f", "place", "colour")], gl.buffer(triangles(n)))
    target = gl.simple_framebuffer((options.size, options.size))
    target.use()

    config = LaunchConfig(grid=-(-n * n // 128), block=128)
    with GraphicsResource.from_gl_buffer(mesh.glo, flags="write_discard") as resource:
        for step in range(options.steps):
            with resource.map(stream=stream) as vertices:
                launch(stream, config, move, vertices, np.int32(n), np.float32(0.3 * step))
            # Unmapped: OpenGL may use the buffer, and sees what the kernel wrote.
            target.clear()
            drawing.render()

    right = expected(n, 0.3 * (options.steps - 1))
    found = np.frombuffer(mesh.read(), np.float32).reshape(n * n, 5)
    verify(np.allclose(found, right, atol=1e-4), "the vertices")

    picture = np.frombuffer(target.read(components=3), np.uint8).reshape(options.size, options.size, 3)
    # The vertex in the middle stays there; its colour is that of the pixel.
    middle = picture[options.size // 2, options.size // 2] / 255
    verify(np.allclose(middle, right[n * n // 2, 2:], atol=0.15), f"the colour in the middle, {middle}")
    print(f"drew {options.steps} pictures of {n * n} vertices")
    if options.save:
        save(options.save, picture[::-1])
    print("done: the results are right")


if __name__ == "__main__":
    main()
