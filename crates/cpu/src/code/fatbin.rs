//! Fat binaries: containers of code of several kinds and architectures.

use super::{CodeError, CodeSource, Content, MAX_SIZE, Unit, until_nul};

pub(super) const MAGIC: u64 = 0xBA55_ED50;
const PTX: u64 = 1;
const CUBIN: u64 = 2;
const LTO: u64 = 8;
/// Flags of entries with compressed payloads, one per method.
const COMPRESSED: u64 = 0x2000 | 0x8000;

struct Entry {
    kind: u64,
    arch: u64,
    compressed: bool,
    start: u64,
    len: u64,
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

fn entries(data: CodeSource<'_>) -> Option<Vec<Entry>> {
    let end = size(data)?;
    let mut at = data.word::<2>(6)?.max(16);
    let mut found = Vec::new();
    while at + 64 <= end {
        // kind u16, version u16, header size u32, payload size u64, ..., arch u32 at 28, flags u64 at 40
        let header = data.word::<4>(at + 4)?;
        let len = data.word::<8>(at + 8)?;
        let start = at + header;
        let next = start
            .checked_add(len)
            .filter(|&n| header >= 64 && n <= end)?;
        found.push(Entry {
            kind: data.word::<2>(at)?,
            arch: data.word::<4>(at + 28)?,
            compressed: data.word::<8>(at + 40)? & COMPRESSED != 0,
            start,
            len,
        });
        at = next;
    }
    Some(found)
}

/// The newest uncompressed PTX, else the PTX embedded in a cubin, else LTO IR.
pub(super) fn content(data: CodeSource<'_>, name: &str) -> Result<Content, CodeError> {
    let entries = entries(data).ok_or_else(damaged)?;
    let open = |kind| {
        entries
            .iter()
            .filter(move |e| e.kind == kind && !e.compressed)
    };
    if let Some(e) = open(PTX).max_by_key(|e| e.arch) {
        let text = data.bytes(e.start, e.len).ok_or_else(damaged)?;
        let text = String::from_utf8_lossy(until_nul(&text));
        return Ok(Content::Ptx(vec![Unit::new(name, text)]));
    }
    for e in open(CUBIN) {
        let inner = data.from(e.start).ok_or_else(damaged)?;
        if let Ok(content) = super::content(inner, name) {
            return Ok(content);
        }
    }
    if entries.iter().any(|e| e.kind == PTX) {
        return Err(CodeError::NoPtx(
            "the fat binary's PTX is compressed, which the CPU device does not read; make it without compression \
             (-compress=false, nvcc --no-compress)"
                .into(),
        ));
    }
    // nvJitLink accepts the fat binary as is.
    if let (Some(_), CodeSource::Slice(bytes)) = (entries.iter().find(|e| e.kind == LTO), data) {
        return Ok(Content::Lto(bytes.to_vec()));
    }
    Err(CodeError::NoPtx(
        "the fat binary holds machine code of GPUs only, which the CPU device cannot run; add PTX to it \
         (-gencode arch=compute_XX,code=compute_XX)"
            .into(),
    ))
}
