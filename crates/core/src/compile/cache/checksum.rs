//! A checksum against damage: not against people, who could as well write another program into the file.

/// Odd constants, from the fractional digits of the square roots of 2, 3, 5 and 7.
const FACTORS: [u64; 4] = [
    0x6A09_E667_F3BC_C909,
    0xBB67_AE85_84CA_A73B,
    0x3C6E_F372_FE94_F82B,
    0xA54F_F53A_5F1D_36F1,
];

/// A checksum of `seed` and `bytes`.
///
/// Four lanes take eight bytes each in turn. A step is a bijection of the lane's state for any word, and of the word for
/// any state, so a change within one word always changes the result. It takes a fraction of what SHA-256 takes.
pub(super) fn checksum(seed: u64, bytes: &[u8]) -> u64 {
    let mut lanes = FACTORS.map(|factor| factor ^ seed);
    let step =
        |lane: u64, word: u64, factor: u64| (lane ^ word).wrapping_mul(factor).rotate_left(31);
    let (blocks, rest) = bytes.as_chunks::<32>();
    for block in blocks {
        let (words, _) = block.as_chunks::<8>();
        for (at, lane) in lanes.iter_mut().enumerate() {
            *lane = step(*lane, u64::from_le_bytes(words[at]), FACTORS[at]);
        }
    }
    for (at, word) in rest.chunks(8).enumerate() {
        let mut padded = [0u8; 8];
        padded[..word.len()].copy_from_slice(word);
        lanes[at] = step(lanes[at], u64::from_le_bytes(padded), FACTORS[at]);
    }
    // The length tells padding from zeros.
    let mut sum = bytes.len() as u64;
    for (lane, factor) in lanes.into_iter().zip(FACTORS) {
        sum = step(sum, lane, factor);
        sum ^= sum >> 29;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::checksum;

    #[test]
    fn every_bit_counts() {
        let bytes: Vec<u8> = (0..100u8).map(|b| b.wrapping_mul(37)).collect();
        let right = checksum(1, &bytes);
        for at in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[at / 8] ^= 1 << (at % 8);
            assert_ne!(checksum(1, &changed), right, "bit {at}");
        }
        for length in 0..bytes.len() {
            assert_ne!(checksum(1, &bytes[..length]), right, "{length} bytes");
        }
        assert_ne!(checksum(2, &bytes), right);
        assert_ne!(checksum(1, &[0; 31]), checksum(1, &[0; 32]));
    }
}
