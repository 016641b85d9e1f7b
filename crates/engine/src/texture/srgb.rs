//! Conversion of sRGB to linear light (IEC 61966-2-1), which CUDA applies before filtering.
//!
//! A GPU uses a table. The table of an H200, read by `tests/differential/textures.py`, holds the exact value rounded to
//! eight significant bits, but no finer than steps of 2^-14; 14 of the 256 entries are rounded the other way.

use std::sync::LazyLock;

/// The stored values that an H200 does not round to the nearest.
const ROUNDED_AWAY: [u8; 14] = [
    32, 33, 65, 66, 68, 70, 97, 184, 186, 249, 250, 251, 252, 253,
];

/// The linear values of the 256 stored ones; each is exactly representable in `binary16`.
pub static LINEAR: LazyLock<[f32; 256]> =
    LazyLock::new(|| std::array::from_fn(|v| linear_of_byte(v as u8)));

fn exact(c: f64) -> f64 {
    if c <= 0.04045 {
        c / 12.92
    } else {
        libm::pow((c + 0.055) / 1.055, 2.4)
    }
}

fn linear_of_byte(v: u8) -> f32 {
    let value = exact(f64::from(v) / 255.0);
    let (_, exponent) = libm::frexp(value);
    let step = libm::exp2(f64::from((exponent - 8).max(-14)));
    let steps = value / step;
    let nearest = libm::round(steps);
    let steps = if ROUNDED_AWAY.contains(&v) {
        libm::floor(steps) + libm::ceil(steps) - nearest
    } else {
        nearest
    };
    (steps * step) as f32
}

/// The stored value nearest to a linear one from 0 to 1, for border colours.
pub fn encode(linear: f32) -> u8 {
    let l = f64::from(linear).clamp(0.0, 1.0);
    let c = if l <= 0.003_130_8 {
        l * 12.92
    } else {
        1.055 * libm::pow(l, 1.0 / 2.4) - 0.055
    };
    libm::round(c * 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(LINEAR[0], 0.0);
        assert_eq!(LINEAR[255], 1.0);
        // Five steps of 2^-14; the exact value 1 / 255 / 12.92 is 4.97 steps.
        assert_eq!(LINEAR[1], 5.0 / 16384.0);
        // 0.502886..., or 128.7 of 256.
        assert_eq!(LINEAR[188], 129.0 / 256.0);
        // One of the entries rounded the other way: 249.2 of 256.
        assert_eq!(LINEAR[252], 250.0 / 256.0);
        assert!(LINEAR.windows(2).all(|w| w[0] < w[1]));
        assert!(
            LINEAR
                .iter()
                .enumerate()
                .all(|(v, &l)| (f64::from(l) - exact(v as f64 / 255.0)).abs()
                    <= (f64::from(l) / 250.0).max(1.0 / 16384.0))
        );
    }

    #[test]
    fn encoding() {
        assert_eq!(encode(0.5), 188);
        assert_eq!(encode(0.0), 0);
        assert_eq!(encode(1.0), 255);
        assert_eq!(encode(f32::NAN), 0);
        for v in 0..=255u8 {
            assert!(encode(LINEAR[usize::from(v)]).abs_diff(v) <= 1, "{v}");
        }
    }
}
