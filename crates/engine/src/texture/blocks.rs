//! Block-compressed formats BC1 to BC5 (Direct3D 11 functional specification): blocks of four by four texels with two
//! end points and one index per texel.

/// A 5:6:5 colour as numbers from 0 to 1, widened to eight bits first, as on an H200.
fn rgb565(v: u32) -> [f32; 3] {
    let five = |v: u32| ((v << 3 | v >> 2) & 255) as f32 / 255.0;
    let six = |v: u32| ((v << 2 | v >> 4) & 255) as f32 / 255.0;
    [five(v >> 11 & 31), six(v >> 5 & 63), five(v & 31)]
}

fn mix<const N: usize>(a: [f32; N], b: [f32; N], part: f32, whole: f32) -> [f32; N] {
    std::array::from_fn(|k| ((whole - part) * a[k] + part * b[k]) / whole)
}

/// The colour of a texel in the eight bytes common to BC1, BC2 and BC3. Only BC1 has the mode with three colours and
/// transparent black.
fn colour(block: u64, texel: u32, may_be_transparent: bool) -> [f32; 4] {
    let (c0, c1) = (block as u32 & 0xffff, block as u32 >> 16);
    let (a, b) = (rgb565(c0), rgb565(c1));
    let index = (block >> 32 >> (2 * texel)) & 3;
    let opaque = |[r, g, b]: [f32; 3]| [r, g, b, 1.0];
    match index {
        0 => opaque(a),
        1 => opaque(b),
        _ if c0 > c1 || !may_be_transparent => opaque(mix(a, b, index as f32 - 1.0, 3.0)),
        2 => opaque(mix(a, b, 1.0, 2.0)),
        _ => [0.0; 4],
    }
}

/// One channel in eight bytes: two end points and three index bits per texel.
fn channel(block: u64, texel: u32, signed: bool) -> f32 {
    let (e0, e1) = (block as u8, (block >> 8) as u8);
    let number = |e: u8| {
        if signed {
            (f32::from(e as i8) / 127.0).max(-1.0)
        } else {
            f32::from(e) / 255.0
        }
    };
    let (a, b) = (number(e0), number(e1));
    let index = (block >> 16 >> (3 * texel)) & 7;
    let first_is_greater = if signed { e0 as i8 > e1 as i8 } else { e0 > e1 };
    match index {
        0 => a,
        1 => b,
        _ if first_is_greater => mix([a], [b], index as f32 - 1.0, 7.0)[0],
        6 if signed => -1.0,
        6 => 0.0,
        7 => 1.0,
        _ => mix([a], [b], index as f32 - 1.0, 5.0)[0],
    }
}

/// A texel of a BC1 block.
pub fn bc1(block: u128, texel: u32) -> [f32; 4] {
    colour(block as u64, texel, true)
}

/// A texel of a BC2 block: four bits of alpha, then colour.
pub fn bc2(block: u128, texel: u32) -> [f32; 4] {
    let [r, g, b, _] = colour((block >> 64) as u64, texel, false);
    let alpha = (block as u64 >> (4 * texel) & 15) as f32 / 15.0;
    [r, g, b, alpha]
}

/// A texel of a BC3 block: alpha as in BC4, then colour.
pub fn bc3(block: u128, texel: u32) -> [f32; 4] {
    let [r, g, b, _] = colour((block >> 64) as u64, texel, false);
    [r, g, b, channel(block as u64, texel, false)]
}

/// A texel of a BC4 block.
pub fn bc4(block: u64, texel: u32, signed: bool) -> [f32; 4] {
    [channel(block, texel, signed), 0.0, 0.0, 1.0]
}

/// A texel of a BC5 block.
pub fn bc5(block: u128, texel: u32, signed: bool) -> [f32; 4] {
    let r = channel(block as u64, texel, signed);
    let g = channel((block >> 64) as u64, texel, signed);
    [r, g, 0.0, 1.0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours() {
        // Red and blue, indices 0, 1, 2, 3 in the first four texels.
        let four = 0xE4u64 << 32 | 0x001F << 16 | 0xF800;
        assert_eq!(bc1(four.into(), 0), [1.0, 0.0, 0.0, 1.0]);
        assert_eq!(bc1(four.into(), 1), [0.0, 0.0, 1.0, 1.0]);
        assert_eq!(bc1(four.into(), 2), [2.0 / 3.0, 0.0, 1.0 / 3.0, 1.0]);
        assert_eq!(bc1(four.into(), 3), [1.0 / 3.0, 0.0, 2.0 / 3.0, 1.0]);
        assert_eq!(bc1(four.into(), 4), [1.0, 0.0, 0.0, 1.0]);
        // The smaller end point first: three colours and transparent black.
        let three = 0xE4u64 << 32 | 0xF800 << 16 | 0x001F;
        assert_eq!(bc1(three.into(), 2), [0.5, 0.0, 0.5, 1.0]);
        assert_eq!(bc1(three.into(), 3), [0.0; 4]);
        // BC2 has no such mode, because its alpha is stored: that of texel 3 is 9.
        let bc2_block = u128::from(three) << 64 | 9 << 12;
        assert_eq!(bc2(bc2_block, 3), [2.0 / 3.0, 0.0, 1.0 / 3.0, 9.0 / 15.0]);
    }

    #[test]
    fn channels() {
        // End points 255 and 0; index 2 for texel 0, 7 for texel 1, 1 for texel 15.
        let eight = (2u64 | 7 << 3 | 1 << 45) << 16 | 0x00FF;
        assert_eq!(bc4(eight, 0, false)[0], 6.0 / 7.0);
        assert_eq!(bc4(eight, 1, false)[0], 1.0 / 7.0);
        assert_eq!(bc4(eight, 15, false)[0], 0.0);
        let six = (2u64 | 6 << 3 | 7 << 6) << 16 | 0xFF00;
        assert_eq!(bc4(six, 0, false)[0], 0.2);
        assert_eq!(bc4(six, 1, false)[0], 0.0);
        assert_eq!(bc4(six, 2, false)[0], 1.0);
        // -128 is treated as -127.
        let signed = (6u64 << 3) << 16 | 0x7F80;
        assert_eq!(bc4(signed, 0, true)[0], -1.0);
        assert_eq!(bc4(signed, 1, true)[0], -1.0);
        let both = u128::from(eight) << 64 | u128::from(six);
        assert_eq!(bc5(both, 1, false), [0.0, 1.0 / 7.0, 0.0, 1.0]);
        assert_eq!(bc3(u128::from(eight), 1), [0.0, 0.0, 0.0, 1.0 / 7.0]);
    }
}
