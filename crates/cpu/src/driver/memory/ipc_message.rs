//! The sealed 64-byte messages by which processes share memory and events.

/// Sixty-four bytes that travel between processes, as words. The last word is a checksum of the others and detects
/// foreign bytes.
pub(crate) type Message = [u64; 8];

/// Fills in the checksum.
pub(crate) fn seal(mut words: Message) -> Message {
    words[7] = sum(&words);
    words
}

/// Whether the checksum matches and the first word is `magic`.
pub(crate) fn is_sealed(words: &Message, magic: u64) -> bool {
    words[0] == magic && words[7] == sum(words)
}

/// FNV-1a over the first seven words.
fn sum(words: &Message) -> u64 {
    let bytes = words[..7].iter().flat_map(|w| w.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The words of sixty-four bytes.
pub(crate) fn words(bytes: &[u8; 64]) -> Message {
    std::array::from_fn(|i| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[8 * i..8 * i + 8]);
        u64::from_le_bytes(word)
    })
}
