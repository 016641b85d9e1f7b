"""Texture fetches in NumPy, from the formulas of the CUDA C++ Programming Guide's appendix on texture fetching.

Double precision on whole arrays of coordinates; only the weights of linear filtering are rounded, to eight bits of
fraction. Shares no code with the CPU device.
"""

import itertools

import numpy as np

from helpers.arrays import BORDER, CLAMP, MIRROR, WRAP


def component_values(texels, normalized_read):
    """Channels as a fetch returns them: integers of 8 and 16 bits may be normalized to 0..1 or -1..1."""
    if not normalized_read or texels.dtype.kind == "f" or texels.dtype.itemsize > 2:
        return texels.astype(np.float64)
    largest = np.iinfo(texels.dtype).max
    # The most negative integer also maps to -1.
    return np.maximum(texels.astype(np.float64) / largest, -1.0)


def four_components(values):
    """Missing channels are zero."""
    full = np.zeros((*values.shape[:-1], 4))
    full[..., : values.shape[-1]] = values
    return full


def outside(index, length, mode):
    """(texel indices inside the texture, whether the border color replaces them)."""
    inside = (index >= 0) & (index < length)
    if mode == WRAP:
        index = index % length
    elif mode == MIRROR:
        period = index % (2 * length)
        index = np.where(period < length, period, 2 * length - 1 - period)
    return np.clip(index, 0, length - 1), ~inside if mode == BORDER else np.zeros_like(inside)


class Texture:
    """An image of 1 to 3 dimensions, shape ([depth, [height,]] width, channels), as a texture object sees it."""

    def __init__(
        self, texels, address=CLAMP, linear=False, normalized=False, normalized_read=False, border=(0, 0, 0, 0)
    ):
        self.texels = four_components(component_values(texels, normalized_read))
        self.lengths = self.texels.shape[:-1][::-1]
        self.address = [address] * 3
        self.linear, self.normalized = linear, normalized
        # The border has the channels of the texture, normalized like them.
        self.border = np.array(border, np.float64)
        self.border[texels.shape[-1] :] = 0
        if normalized_read and texels.dtype.kind in "iu" and texels.dtype.itemsize <= 2:
            self.border = np.clip(self.border, -1 if texels.dtype.kind == "i" else 0, 1)

    def texel(self, numbers):
        """Texels by index (x, y, z); indices may lie outside."""
        picked, bordered = [], False
        for number, length, mode in zip(numbers, self.lengths, self.address):
            index, beyond = outside(number, length, mode)
            picked.append(index)
            bordered = bordered | beyond
        values = self.texels[tuple(picked[::-1])]
        return np.where(np.asarray(bordered)[..., None], self.border, values)

    def positions(self, coordinates):
        """Coordinates in texels."""
        scale = self.lengths if self.normalized else (1,) * len(self.lengths)
        return [np.asarray(c, np.float64) * n for c, n in zip(coordinates, scale)]

    def fetch(self, *coordinates):
        """tex1D, tex2D or tex3D: four components for each coordinate."""
        positions = self.positions(coordinates)
        if not self.linear:
            return self.texel([np.floor(p).astype(np.int64) for p in positions])
        result = 0.0
        corners = []
        for p in positions:
            # x_B = x - 0.5; i = floor(x_B); alpha = frac(x_B), to the nearest 256th.
            fixed = np.floor((p - 0.5) * 256 + 0.5)
            first = np.floor(fixed / 256)
            alpha = fixed / 256 - first
            corners.append(((first.astype(np.int64), 1 - alpha), (first.astype(np.int64) + 1, alpha)))
        for corner in itertools.product(*corners):
            weight = np.prod([w for _, w in corner], axis=0)
            result = result + weight[..., None] * self.texel([i for i, _ in corner])
        if len(positions) == 1 and self.address[0] == BORDER:
            # Not in the guide, measured on hardware: a single row is an image of height one fetched at y = 0, half of
            # which is border.
            result = (result + self.border) / 2
        return result

    def gather(self, x, y, component):
        """tex2Dgather: one component of the four texels that linear filtering uses, counter-clockwise from the lower
        left.
        """
        i, j = (np.floor(p - 0.5).astype(np.int64) for p in self.positions((x, y)))
        corners = [(i, j + 1), (i + 1, j + 1), (i + 1, j), (i, j)]
        return np.stack([self.texel(c)[..., component] for c in corners], axis=-1)


def cube_face(x, y, z):
    """(face, s, t) of a direction, s and t in 0..1: the guide's table of cubemap faces."""
    x, y, z = (np.asarray(v, np.float64) for v in (x, y, z))
    ax, ay, az = np.abs(x), np.abs(y), np.abs(z)
    by_x = (ax >= ay) & (ax >= az)
    by_y = ~by_x & (ay >= az)
    by_z = ~by_x & ~by_y
    rows = [
        (by_x & (x >= 0), 0, ax, -z, -y),
        (by_x & (x < 0), 1, ax, z, -y),
        (by_y & (y >= 0), 2, ay, x, z),
        (by_y & (y < 0), 3, ay, x, -z),
        (by_z & (z >= 0), 4, az, x, -y),
        (by_z & (z < 0), 5, az, -x, -y),
    ]
    where = [r[0] for r in rows]
    face = np.select(where, [r[1] for r in rows])
    m = np.select(where, [r[2] for r in rows])
    s = np.select(where, [r[3] for r in rows])
    t = np.select(where, [r[4] for r in rows])
    return face, (s / m + 1) / 2, (t / m + 1) / 2


def srgb_to_linear(values):
    """IEC 61966-2-1."""
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
