//! sRGB to linear light (IEC 61966-2-1), which CUDA does before filtering.

use std::sync::LazyLock;

/// The linear value of an sRGB one, both from 0 to 1.
pub fn linear(c: f32) -> f32 {
    let c = f64::from(c);
    let l = if c <= 0.04045 {
        c / 12.92
    } else {
        libm::pow((c + 0.055) / 1.055, 2.4)
    };
    l as f32
}

/// The linear values of the 256 stored ones.
pub static LINEAR: LazyLock<[f32; 256]> =
    LazyLock::new(|| std::array::from_fn(|v| linear_of_byte(v as u8)));

fn linear_of_byte(v: u8) -> f32 {
    // Not through a rounded quotient: that would cost the last bit.
    let c = f64::from(v) / 255.0;
    let l = if c <= 0.04045 {
        c / 12.92
    } else {
        libm::pow((c + 0.055) / 1.055, 2.4)
    };
    l as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        assert_eq!(LINEAR[0], 0.0);
        assert_eq!(LINEAR[255], 1.0);
        // 10 is the last value of the straight part: 10 / 255 / 12.92.
        assert_eq!(LINEAR[10], (10.0 / 255.0 / 12.92) as f32);
        // ((188 / 255 + 0.055) / 1.055) ^ 2.4, worked out by hand to seven digits.
        assert!((LINEAR[188] - 0.502_886_5).abs() < 1e-6);
        assert!(LINEAR.windows(2).all(|w| w[0] < w[1]));
    }
}
