//! The format of stored entries: their names, and the line with the checksum that follows the code.
//!
//! Tools that read the code ignore the line: it follows the end of an ELF file and is a comment in PTX. The checksum
//! detects corruption, not tampering.

use sha2::{Digest, Sha256};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The prefix of the last line; its number changes with the format. Entries of other formats count as damaged.
const MARK: &[u8] = b"\n//cupyrite-2 ";
/// Length of the last line: mark, checksum, newline.
pub(super) const LINE: usize = MARK.len() + 16 + 1;

/// The name of an entry: the SHA-256 of its key.
#[derive(Debug)]
pub struct EntryName {
    digits: String,
    /// Ties an entry's checksum to its key.
    seed: u64,
}

impl EntryName {
    /// The name of the entry of a key.
    pub fn of(key: &[u8]) -> EntryName {
        let digest = Sha256::digest(key);
        let mut digits = String::with_capacity(64);
        for byte in digest.iter() {
            for digit in [byte >> 4, byte & 15] {
                digits.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
            }
        }
        let mut seed = [0u8; 8];
        seed.copy_from_slice(&digest[..8]);
        EntryName {
            digits,
            seed: u64::from_le_bytes(seed),
        }
    }

    /// 64 hexadecimal digits.
    pub fn digits(&self) -> &str {
        &self.digits
    }

    /// The last line of an entry with this code.
    pub(super) fn line(&self, code: &[u8]) -> Vec<u8> {
        let mut line = MARK.to_vec();
        line.extend_from_slice(format!("{:016x}\n", xxh3_64_with_seed(code, self.seed)).as_bytes());
        line
    }

    /// The entry with this code: the code and its last line.
    pub fn seal(&self, code: &[u8]) -> Vec<u8> {
        [code, &self.line(code)].concat()
    }

    /// The code of an entry; `None` if the entry is damaged or belongs to another key.
    pub fn unseal(&self, mut entry: Vec<u8>) -> Option<Vec<u8>> {
        let end = entry.len().checked_sub(LINE)?;
        if entry[end..] != self.line(&entry[..end]) {
            return None;
        }
        entry.truncate(end);
        Some(entry)
    }
}
