//! Conversion of coordinates to texel indices, one dimension at a time (CUDA Programming Guide, "Texture Fetching").
//!
//! Coordinates are scaled in double precision, where the product of an `f32` and an extent is exact. As on a GPU, a
//! normalised coordinate is first truncated to [`FRACTION`] fractional bits, subnormal numbers count as zero, and the
//! weight is rounded to eight fractional bits.

use super::descriptor::AddressMode;
use super::texel::{LANES, Row};

/// Index of a texel outside the texture, which reads as the border colour.
pub const OUTSIDE: i32 = -1;

/// Addressing of one dimension.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Extent in texels, at least one.
    pub extent: u32,
    /// Whether coordinates are fractions of the extent.
    pub normalized: bool,
    /// Addressing outside the extent.
    pub mode: AddressMode,
    /// Offset in texels.
    pub offset: i32,
}

/// The two texels between which a value is interpolated.
#[derive(Clone, Copy, Debug)]
pub struct InterpolatedTexels {
    /// The lower and the upper texel, or [`OUTSIDE`].
    pub texels: [Row<i32>; 2],
    /// Weight of the upper texel in 256ths.
    pub weight: Row<u32>,
}

/// Fractional bits of a normalised coordinate. Measurements on an H200 show a value from 17 to 21.
const FRACTION: i32 = 21;

/// Larger than any texture, and small enough that sums do not overflow.
const FAR: f64 = (1 << 30) as f64;

impl Axis {
    /// The mode that applies: the periodic modes require normalised coordinates.
    fn effective(&self) -> AddressMode {
        match self.mode {
            AddressMode::Wrap | AddressMode::Mirror if !self.normalized => AddressMode::Clamp,
            mode => mode,
        }
    }

    /// The coordinate in texels, reduced to the period of the mode. NaN counts as zero.
    #[inline(always)]
    fn position(&self, x: f32, mode: AddressMode) -> f64 {
        let x = if x.is_nan() || x.abs() < f32::MIN_POSITIVE {
            0.0
        } else {
            f64::from(x)
        };
        let x = match mode {
            AddressMode::Wrap => x - x.floor(),
            AddressMode::Mirror => x - 2.0 * (x / 2.0).floor(),
            _ => x,
        };
        // Infinity minus infinity is NaN.
        let x = if x.is_nan() { 0.0 } else { x };
        let x = if self.normalized {
            const CUT: f64 = (1u64 << FRACTION) as f64;
            (x * CUT).floor() / CUT * f64::from(self.extent)
        } else {
            x
        };
        x.clamp(-FAR, FAR)
    }

    #[inline(always)]
    fn map(i: i32, n: i32, mode: AddressMode) -> i32 {
        if (i as u32) < n as u32 {
            return i;
        }
        match mode {
            AddressMode::Clamp => i.clamp(0, n - 1),
            AddressMode::Border => OUTSIDE,
            AddressMode::Wrap => i.rem_euclid(n),
            AddressMode::Mirror => {
                // Extents are at most 2^27.
                let i = i.rem_euclid(2 * n);
                if i < n { i } else { 2 * n - 1 - i }
            }
        }
    }

    /// The nearest texels.
    pub fn point(&self, x: &Row<f32>) -> Row<i32> {
        let (n, mode) = (self.extent as i32, self.effective());
        let mut out = [0; LANES];
        for (o, &x) in out.iter_mut().zip(x) {
            let i = self.position(x, mode).floor() as i32;
            *o = Self::map(i + self.offset, n, mode);
        }
        out
    }

    /// The lower of the two texels, before addressing outside the extent is applied, and the weight of the upper one.
    #[inline(always)]
    pub fn split(&self, x: f32) -> (i32, u32) {
        // Half a texel less, rounded to the nearest 256th.
        let fixed = (self.position(x, self.effective()) * 256.0 - 128.0 + 0.5).floor() as i64;
        ((fixed >> 8) as i32 + self.offset, (fixed & 255) as u32)
    }

    /// The two texels to interpolate.
    pub fn linear(&self, x: &Row<f32>) -> InterpolatedTexels {
        let (n, mode) = (self.extent as i32, self.effective());
        let mut out = InterpolatedTexels {
            texels: [[0; LANES]; 2],
            weight: [0; LANES],
        };
        for (lane, &x) in x.iter().enumerate() {
            let (i, weight) = self.split(x);
            let (first, second) = (Self::map(i, n, mode), Self::map(i + 1, n, mode));
            out.texels[0][lane] = first;
            out.texels[1][lane] = second;
            // At an edge both texels are the same; their weights must not be rounded separately.
            let same = first == second && matches!(mode, AddressMode::Clamp | AddressMode::Mirror);
            out.weight[lane] = if same { 0 } else { weight };
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(extent: u32, normalized: bool, mode: AddressMode) -> Axis {
        Axis {
            extent,
            normalized,
            mode,
            offset: 0,
        }
    }

    fn points(a: Axis, x: &[f32]) -> Vec<i32> {
        let mut row = [0.0; LANES];
        row[..x.len()].copy_from_slice(x);
        a.point(&row)[..x.len()].to_vec()
    }

    #[test]
    fn nearest() {
        use AddressMode::*;
        let x = [-0.1, 0.0, 0.24, 0.25, 0.99, 1.0, 1.26, 2.3, -1.3];
        assert_eq!(
            points(axis(4, true, Clamp), &x),
            [0, 0, 0, 1, 3, 3, 3, 3, 0]
        );
        assert_eq!(
            points(axis(4, true, Border), &x),
            [-1, 0, 0, 1, 3, -1, -1, -1, -1]
        );
        assert_eq!(points(axis(4, true, Wrap), &x), [3, 0, 0, 1, 3, 0, 1, 1, 2]);
        assert_eq!(
            points(axis(4, true, Mirror), &x),
            [0, 0, 0, 1, 3, 3, 2, 1, 2]
        );
        // Without normalised coordinates, the periodic modes clamp.
        for mode in [Clamp, Wrap, Mirror] {
            let a = axis(4, false, mode);
            assert_eq!(points(a, &[-3.0, 0.5, 3.99, 4.0, 9.0]), [0, 0, 3, 3, 3]);
        }
        let strange = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, -1e-30];
        for mode in [Clamp, Border, Wrap, Mirror] {
            for normalized in [false, true] {
                let got = points(axis(7, normalized, mode), &strange);
                assert!(got.iter().all(|i| (-1..7).contains(i)), "{mode:?} {got:?}");
                assert!(mode == Border || !got.contains(&OUTSIDE));
            }
        }
        assert_eq!(points(axis(7, true, Clamp), &strange), [0, 6, 0, 6, 0]);
    }

    #[test]
    fn between() {
        use AddressMode::*;
        let pair = |mode, normalized, x: f32| {
            let b = axis(4, normalized, mode).linear(&[x; LANES]);
            (b.texels[0][9], b.texels[1][9], b.weight[9])
        };
        assert_eq!(pair(Clamp, false, 1.5), (1, 2, 0));
        assert_eq!(pair(Clamp, false, 1.75), (1, 2, 64));
        assert_eq!(pair(Clamp, false, 0.25), (0, 0, 0));
        assert_eq!(pair(Clamp, false, 3.75), (3, 3, 0));
        assert_eq!(pair(Border, false, 0.25), (-1, 0, 192));
        assert_eq!(pair(Border, false, 3.75), (3, -1, 64));
        assert_eq!(pair(Wrap, true, 0.0), (3, 0, 128));
        assert_eq!(pair(Wrap, true, 1.0), (3, 0, 128));
        assert_eq!(pair(Wrap, true, 0.9375), (3, 0, 64));
        assert_eq!(pair(Mirror, true, 1.0), (3, 3, 0));
        assert_eq!(pair(Mirror, true, 2.0), (0, 0, 0));
        // Mirrored, texels 4 and 5 are 3 and 2.
        assert_eq!(pair(Mirror, true, 1.125), (3, 2, 0));
        assert_eq!(pair(Mirror, true, 1.25), (3, 2, 128));
        // Weights are rounded to the nearest 256th: 1.5 + 1/1024 rounds to 0, 1.5 + 3/1024 to 1.
        assert_eq!(pair(Clamp, false, 1.5 + 1.0 / 1024.0), (1, 2, 0));
        assert_eq!(pair(Clamp, false, 1.5 + 3.0 / 1024.0), (1, 2, 1));
        assert_eq!(pair(Clamp, false, 1.5 - 1.0 / 2048.0), (1, 2, 0));
    }

    #[test]
    fn offsets() {
        let a = Axis {
            offset: -2,
            ..axis(4, true, AddressMode::Wrap)
        };
        assert_eq!(a.point(&[0.3; LANES])[0], 3);
        assert_eq!(a.linear(&[0.5; LANES]).texels, [[3; LANES], [0; LANES]]);
    }
}
