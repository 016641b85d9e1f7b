//! Fat binaries: containers of code of several kinds and architectures. `nvcc` compresses their entries.

use std::io::Read;

use super::{CodeError, CodeSource, Content, MAX_SIZE, Unit, until_nul};

pub(super) const MAGIC: u64 = 0xBA55_ED50;
const PTX: u64 = 1;
const CUBIN: u64 = 2;
const LTO: u64 = 8;
/// Flag of entries that are a block of LZ4.
const LZ4: u64 = 0x2000;
/// Flag of entries that are a frame of Zstandard.
const ZSTD: u64 = 0x8000;

struct FatbinEntry {
    kind: u64,
    arch: u64,
    flags: u64,
    start: u64,
    /// Bytes to the next entry.
    len: u64,
    /// Bytes of compressed data, and of what they contain.
    compressed: u64,
    contained: u64,
}

impl FatbinEntry {
    /// The contents, decompressed; `None` if they are damaged.
    fn contents(&self, data: CodeSource<'_>) -> Option<Vec<u8>> {
        if self.flags & (LZ4 | ZSTD) == 0 {
            return data.bytes(self.start, self.len);
        }
        if self.compressed > self.len || self.contained > MAX_SIZE {
            return None;
        }
        let compressed = data.bytes(self.start, self.compressed)?;
        let contained = self.contained as usize;
        let found = if self.flags & LZ4 != 0 {
            lz4_flex::block::decompress(&compressed, contained).ok()?
        } else {
            let mut found = Vec::new();
            let frame = ruzstd::decoding::StreamingDecoder::new(compressed.as_slice()).ok()?;
            frame.take(MAX_SIZE).read_to_end(&mut found).ok()?;
            found
        };
        (found.len() == contained).then_some(found)
    }
}

fn damaged() -> CodeError {
    CodeError::Invalid("the fat binary is corrupted or truncated".into())
}

/// Size of a fat binary including its header; `None` for other data.
pub(super) fn size(data: CodeSource<'_>) -> Option<u64> {
    if data.word::<4>(0)? != MAGIC {
        return None;
    }
    // magic u32, version u16, header size u16, size of the rest u64
    let header = data.word::<2>(6)?;
    header
        .checked_add(data.word::<8>(8)?)
        .filter(|&n| n <= MAX_SIZE)
}

fn entries(data: CodeSource<'_>) -> Option<Vec<FatbinEntry>> {
    let end = size(data)?;
    let mut at = data.word::<2>(6)?.max(16);
    let mut found = Vec::new();
    while at + 64 <= end {
        // kind u16, version u16, header size u32, payload size u64, size of compressed data u32, ..., arch u32 at 28,
        // flags u64 at 40, ..., decompressed size u64 at 56
        let header = data.word::<4>(at + 4)?;
        let len = data.word::<8>(at + 8)?;
        let start = at + header;
        let next = start
            .checked_add(len)
            .filter(|&n| header >= 64 && n <= end)?;
        found.push(FatbinEntry {
            kind: data.word::<2>(at)?,
            arch: data.word::<4>(at + 28)?,
            flags: data.word::<8>(at + 40)?,
            start,
            len,
            compressed: data.word::<4>(at + 16)?,
            contained: data.word::<8>(at + 56)?,
        });
        at = next;
    }
    Some(found)
}

/// The newest PTX, else the PTX embedded in a cubin, else LTO IR.
pub(super) fn content(data: CodeSource<'_>, name: &str) -> Result<Content, CodeError> {
    let entries = entries(data).ok_or_else(damaged)?;
    let of_kind = |kind| entries.iter().filter(move |e| e.kind == kind);
    if let Some(e) = of_kind(PTX).max_by_key(|e| e.arch) {
        let text = e.contents(data).ok_or_else(damaged)?;
        let text = String::from_utf8_lossy(until_nul(&text));
        return Ok(Content::Ptx(vec![Unit::new(name, text)]));
    }
    for e in of_kind(CUBIN) {
        let cubin = e.contents(data).ok_or_else(damaged)?;
        if let Ok(content) = super::content(CodeSource::Slice(&cubin), name) {
            return Ok(content);
        }
    }
    match (of_kind(LTO).next(), data) {
        // nvJitLink accepts the fat binary as is.
        (Some(_), CodeSource::Slice(bytes)) => return Ok(Content::Lto(bytes.to_vec())),
        (Some(_), CodeSource::Address(_)) => {
            return Err(CodeError::NoPtx(
                "the fat binary holds LTO IR, which must be linked before it is loaded; compile it without -dlto".into(),
            ));
        }
        _ => (),
    }
    Err(CodeError::NoPtx(
        "the fat binary holds machine code of GPUs only, which the CPU device cannot run; add PTX to it \
         (-gencode arch=compute_XX,code=compute_XX)"
            .into(),
    ))
}
