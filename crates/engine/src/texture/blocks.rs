//! Block-compressed formats (Direct3D 11 functional specification): blocks of four by four texels. BC1 to BC5 have two end
//! points and one index per texel, and are decoded here in the precision of a GPU; `bcdec_rs` decodes BC6H and BC7.

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

/// Decoder of BC6H. It keeps the last block, because neighbouring lanes read the same one.
pub struct Bc6h {
    signed: bool,
    alpha: f32,
    block: Option<u128>,
    /// Three `binary16` numbers per texel.
    texels: [u16; 48],
}

impl Bc6h {
    /// A decoder of `CU_AD_FORMAT_BC6H_SF16` (`signed`) or `CU_AD_FORMAT_BC6H_UF16`.
    pub fn new(signed: bool, alpha: f32) -> Self {
        Self {
            signed,
            alpha,
            block: None,
            texels: [0; 48],
        }
    }

    /// A texel of a block.
    pub fn texel(&mut self, block: u128, texel: u32) -> [f32; 4] {
        if self.block != Some(block) {
            bcdec_rs::bc6h_half(&block.to_le_bytes(), &mut self.texels, 12, self.signed);
            self.block = Some(block);
        }
        let at = 3 * (texel as usize & 15);
        let number = |k: usize| half::f16::from_bits(self.texels[at + k]).to_f32();
        [number(0), number(1), number(2), self.alpha]
    }
}

/// Decoder of BC7. It keeps the last block, because neighbouring lanes read the same one.
pub struct Bc7 {
    block: Option<u128>,
    texels: [u8; 64],
}

impl Bc7 {
    /// A decoder.
    pub fn new() -> Self {
        Self {
            block: None,
            texels: [0; 64],
        }
    }

    /// A texel of a block.
    pub fn texel(&mut self, block: u128, texel: u32) -> [f32; 4] {
        if self.block != Some(block) {
            bcdec_rs::bc7(&block.to_le_bytes(), &mut self.texels, 16);
            self.block = Some(block);
        }
        let at = 4 * (texel as usize & 15);
        std::array::from_fn(|k| f32::from(self.texels[at + k]) / 255.0)
    }
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

    /// Pseudo-random numbers (xorshift64).
    fn numbers(seed: u64) -> impl FnMut() -> u64 {
        let mut x = seed.wrapping_mul(2_654_435_761);
        move || {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            x
        }
    }

    /// 256 blocks whose lowest `bits` bits are `low`.
    fn random_blocks(seed: u64, low: u128, bits: u32) -> impl Iterator<Item = u128> {
        let mut next = numbers(seed);
        (0..256).map(move |_| {
            let v = u128::from(next());
            let v = v | u128::from(next()) << 64;
            (v >> bits << bits) | low
        })
    }

    /// The first half of the SHA-256 of all decoded texels.
    fn digest(
        blocks: impl Iterator<Item = u128>,
        mut decode: impl FnMut(u128, u32) -> [f32; 4],
    ) -> String {
        use sha2::Digest;
        let mut hash = sha2::Sha256::new();
        for block in blocks {
            for texel in 0..16 {
                for v in decode(block, texel) {
                    hash.update(v.to_bits().to_le_bytes());
                }
            }
        }
        hash.finalize()
            .iter()
            .take(12)
            .map(|b| format!("{b:02x}"))
            .collect()
    }

    /// Compares with the texels that an H100 (driver 580) has fetched, by mode.
    #[test]
    fn bc7_has_the_texels_of_a_gpu() {
        for (mode, want) in [
            (0, "e6bcc0bc052fa4680536eeae"),
            (1, "f8eeb8486ed17bad139ba42a"),
            (2, "738e32a3324d9a846212bab4"),
            (3, "5603a8b167cfc413e4f7d911"),
            (4, "94b5c71270a9f79bf4bd4f42"),
            (5, "eb768488267b1edbf75312f4"),
            (6, "81a40b9a67393f257a34c788"),
            (7, "328b5cddf1b660ec012ded9d"),
            (8, "de2f256064a0af797747c2b9"),
        ] {
            let (low, bits) = if mode < 8 {
                (1 << mode, mode + 1)
            } else {
                (0, 8)
            };
            let mut decoder = Bc7::new();
            let got = digest(random_blocks(100 + u64::from(mode), low, bits), |b, t| {
                decoder.texel(b, t)
            });
            assert_eq!(got, want, "mode {mode}");
        }
    }

    /// Compares with the texels that an H100 (driver 580) has fetched, by mode and sign.
    #[test]
    fn bc6h_has_the_texels_of_a_gpu() {
        for (mode, unsigned, signed) in [
            (0, "08ceac836250745aa77146ad", "f33d14d59f87eefc4d7d1d0e"),
            (1, "2f8e83ac24db3338dbcbcf95", "93915b9bb625f7bff82ab021"),
            (2, "1aa1ed693578680877c5cb12", "1c3a7114449e1ad379b3ba7e"),
            (6, "496c5edb12948ea9a8cb6fe3", "9ded6c55f44cca14d3d7a02d"),
            (10, "17ae5a33800cd5e3032a9c11", "68f210d24f5c81dc7785f28d"),
            (14, "58b9873f1c785bae86e69eae", "30778af7a4691cbd0a6ae46e"),
            (18, "8435d4ae56e2f0445f31a24b", "5ec0190a614ed7ef5a7b97f4"),
            (22, "90643a1a776fc9047b41bd04", "2eaaf570f46d380574db56f6"),
            (26, "5eeed549172268d2a4bfd026", "09f204f9f44386e6a70b8504"),
            (30, "d69a240dbb4fbbd89d9dc53c", "7a3d8dad272930e2a3fff53b"),
            (3, "5691c08f5ce4369cae6bbcfd", "28a774d252a6f62927f688dd"),
            (7, "30775dbaae0302b933b8fe59", "c36539822c750d2b3b18ba5d"),
            (11, "262079e3b27c67b9936ad2ab", "5fbf59c327b2f144b4a59e89"),
            (15, "b43cb52e4d51c8bbd3ee0085", "6ddd0421c20cd31683284de8"),
            (19, "49b4d9e4c5be5d006f048cce", "49b4d9e4c5be5d006f048cce"),
            (23, "49b4d9e4c5be5d006f048cce", "49b4d9e4c5be5d006f048cce"),
            (27, "49b4d9e4c5be5d006f048cce", "49b4d9e4c5be5d006f048cce"),
            (31, "49b4d9e4c5be5d006f048cce", "49b4d9e4c5be5d006f048cce"),
        ] {
            let bits = if mode < 2 { 2 } else { 5 };
            for (sign, want) in [(false, unsigned), (true, signed)] {
                let mut decoder = Bc6h::new(sign, 1.0);
                let blocks = random_blocks(200 + mode, u128::from(mode), bits);
                assert_eq!(
                    digest(blocks, |b, t| decoder.texel(b, t)),
                    want,
                    "mode {mode} {sign}"
                );
            }
        }
    }
}
