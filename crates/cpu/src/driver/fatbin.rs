//! Images: what a caller hands over as code, and the PTX in it.
//!
//! Text is PTX. A fat binary may hold PTX beside machine code; the PTX is taken. A cubin (ELF) is machine code that this
//! device cannot run, unless it is one that was announced with [`remember_cubin`] together with its PTX.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Mutex;

use super::errors::Code;
use super::queue::lock;
use crate::memory::checked;

/// An image that cannot be used, and what to write into the caller's error log.
pub(super) struct Rejected {
    pub(super) code: Code,
    pub(super) log: String,
}

fn rejected(code: Code, log: impl Into<String>) -> Rejected {
    Rejected {
        code,
        log: log.into(),
    }
}

fn unreadable() -> Rejected {
    rejected(Code::INVALID_VALUE, "the image's address cannot be read")
}

static KNOWN: Mutex<Option<HashMap<(u64, u64), String>>> = Mutex::new(None);

fn fingerprint(bytes: &[u8]) -> (u64, u64) {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    (bytes.len() as u64, hasher.finish())
}

/// Announces that `cubin` was made from `ptx`, so that loading the one runs the other. NVRTC makes both when it compiles
/// for a real architecture; the bindings call this while the CPU device is active.
pub fn remember_cubin(cubin: &[u8], ptx: &str) {
    // Loading sees an address without a length, so only what the file itself says it holds counts.
    let size = elf_size(&|at, out: &mut [u8]| {
        let at = usize::try_from(at).ok()?;
        out.copy_from_slice(cubin.get(at..at.checked_add(out.len())?)?);
        Some(())
    });
    let bytes = size
        .and_then(|n| cubin.get(..usize::try_from(n).ok()?))
        .unwrap_or(cubin);
    lock(&KNOWN)
        .get_or_insert_default()
        .insert(fingerprint(bytes), ptx.trim_end_matches('\0').to_owned());
}

/// Reads at an offset of an image.
type ReadAt<'a> = &'a dyn Fn(u64, &mut [u8]) -> Option<()>;

fn word<const N: usize>(read: ReadAt<'_>, at: u64) -> Option<u64> {
    let mut bytes = [0u8; N];
    read(at, &mut bytes)?;
    Some(bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
}

/// Largest image looked at.
pub(super) const LARGEST: u64 = 1 << 30;

/// Bytes of a 64-bit little-endian ELF file: up to the end of its last table or section.
fn elf_size(read: ReadAt<'_>) -> Option<u64> {
    let mut ident = [0u8; 6];
    read(0, &mut ident)?;
    if &ident != b"\x7fELF\x02\x01" {
        return None;
    }
    let (phoff, shoff) = (word::<8>(read, 0x20)?, word::<8>(read, 0x28)?);
    let (phsize, phnum) = (word::<2>(read, 0x36)?, word::<2>(read, 0x38)?);
    let (shsize, shnum) = (word::<2>(read, 0x3A)?, word::<2>(read, 0x3C)?);
    let mut end = (phoff.checked_add(phsize * phnum)?).max(shoff.checked_add(shsize * shnum)?);
    for i in 0..shnum {
        let header = shoff.checked_add(i * shsize)?;
        const NO_BITS: u64 = 8;
        if word::<4>(read, header.checked_add(4)?)? != NO_BITS {
            let offset = word::<8>(read, header.checked_add(0x18)?)?;
            end = end.max(offset.checked_add(word::<8>(read, header.checked_add(0x20)?)?)?);
        }
    }
    (end <= LARGEST).then_some(end)
}

fn cubin_to_ptx(address: u64) -> Result<String, Rejected> {
    let read = |at: u64, out: &mut [u8]| checked::read_bytes(address.checked_add(at)?, out).ok();
    let size = elf_size(&read)
        .ok_or_else(|| rejected(Code::INVALID_IMAGE, "the ELF image is damaged or truncated"))?;
    let mut bytes = vec![0u8; size as usize];
    checked::read_bytes(address, &mut bytes).map_err(|_| unreadable())?;
    lock(&KNOWN).get_or_insert_default().get(&fingerprint(&bytes)).cloned().ok_or_else(|| {
        rejected(
            Code::NO_BINARY_FOR_GPU,
            "the image is a cubin: machine code of a GPU, which the CPU device cannot run. Load PTX instead (compile \
             with --gpu-architecture=compute_XX), or compile with NVRTC in this process, which makes both",
        )
    })
}

const FATBIN_MAGIC: u64 = 0xBA55_ED50;
/// The structure that `nvcc` puts around a fat binary: magic, version, pointer to the data.
const WRAPPER_MAGIC: u64 = 0x4662_43B1;
const KIND_PTX: u64 = 1;
const KIND_ELF: u64 = 2;
/// Flags of an entry that say its payload is compressed, one for each method.
const COMPRESSED: u64 = 0x2000 | 0x8000;

/// The newest uncompressed PTX of a fat binary; else the PTX of a cubin in it that is known.
fn fatbin_to_ptx(address: u64) -> Result<String, Rejected> {
    let read = |at: u64, out: &mut [u8]| checked::read_bytes(address.checked_add(at)?, out).ok();
    let read: ReadAt<'_> = &read;
    let damaged = || {
        rejected(
            Code::INVALID_IMAGE,
            "the fat binary is damaged or truncated",
        )
    };
    // magic u32, version u16, header size u16, size of what follows u64
    let header = word::<2>(read, 6).ok_or_else(damaged)?;
    let size = word::<8>(read, 8).ok_or_else(damaged)?;
    let end = header
        .checked_add(size)
        .filter(|&n| n <= LARGEST)
        .ok_or_else(damaged)?;
    let mut at = header.max(16);
    let mut best: Option<(u64, u64, u64)> = None;
    let (mut compressed, mut cubins) = (false, Vec::new());
    while at + 64 <= end {
        // kind u16, version u16, header size u32, payload size u64, ..., arch u32 at 28, flags u64 at 40
        let kind = word::<2>(read, at).ok_or_else(damaged)?;
        let entry_header = word::<4>(read, at + 4).ok_or_else(damaged)?;
        let payload = word::<8>(read, at + 8).ok_or_else(damaged)?;
        let arch = word::<4>(read, at + 28).ok_or_else(damaged)?;
        let flags = word::<8>(read, at + 40).ok_or_else(damaged)?;
        let start = at + entry_header;
        let next = start
            .checked_add(payload)
            .filter(|&n| entry_header >= 64 && n <= end)
            .ok_or_else(damaged)?;
        match kind {
            KIND_PTX if flags & COMPRESSED != 0 => compressed = true,
            KIND_PTX if best.is_none_or(|b| arch > b.0) => best = Some((arch, start, payload)),
            KIND_ELF if flags & COMPRESSED == 0 => cubins.push(start),
            _ => {}
        }
        at = next;
    }
    if let Some((_, start, len)) = best {
        let mut text = vec![0u8; len as usize];
        checked::read_bytes(address + start, &mut text).map_err(|_| unreadable())?;
        if let Some(nul) = text.iter().position(|&b| b == 0) {
            text.truncate(nul);
        }
        return Ok(String::from_utf8_lossy(&text).into_owned());
    }
    for start in cubins {
        if let Ok(ptx) = cubin_to_ptx(address + start) {
            return Ok(ptx);
        }
    }
    Err(rejected(
        Code::NO_BINARY_FOR_GPU,
        if compressed {
            "the fat binary's PTX is compressed, which the CPU device does not read; make it with --compress=false"
        } else {
            "the fat binary holds machine code of GPUs only, which the CPU device cannot run; add PTX to it \
             (-gencode arch=compute_XX,code=compute_XX)"
        },
    ))
}

/// Whether text begins like PTX: after blanks and comments, a directive.
fn looks_like_ptx(text: &[u8]) -> bool {
    let mut rest = text;
    loop {
        rest = rest.trim_ascii_start();
        let skip = if rest.starts_with(b"//") {
            rest.iter().position(|&b| b == b'\n')
        } else if rest.starts_with(b"/*") {
            rest.windows(2)
                .skip(2)
                .position(|w| w == b"*/")
                .map(|n| n + 3)
        } else {
            return rest.first() == Some(&b'.');
        };
        match skip {
            Some(n) => rest = &rest[n + 1..],
            None => return true,
        }
    }
}

/// The PTX of the image at `address`, of whatever kind it is.
pub(super) fn ptx_of_image(address: u64) -> Result<String, Rejected> {
    let read = |at: u64, out: &mut [u8]| checked::read_bytes(address.checked_add(at)?, out).ok();
    match word::<4>(&read, 0) {
        Some(0x464C_457F) => return cubin_to_ptx(address),
        Some(FATBIN_MAGIC) => return fatbin_to_ptx(address),
        Some(WRAPPER_MAGIC) => {
            let data = word::<8>(&read, 8).ok_or_else(unreadable)?;
            let inner =
                |at: u64, out: &mut [u8]| checked::read_bytes(data.checked_add(at)?, out).ok();
            return if word::<4>(&inner, 0) == Some(FATBIN_MAGIC) {
                fatbin_to_ptx(data)
            } else {
                Err(rejected(
                    Code::INVALID_IMAGE,
                    "the fat binary's wrapper points to something else",
                ))
            };
        }
        // Fewer than four readable bytes may still be text.
        _ => {}
    }
    if address == 0 {
        return Err(unreadable());
    }
    let text = checked::read_c_string(address, LARGEST).map_err(|_| unreadable())?;
    if !looks_like_ptx(&text) {
        return Err(rejected(
            Code::INVALID_IMAGE,
            "the image is neither PTX text nor a cubin nor a fat binary",
        ));
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fatbin(kind: u16, flags: u64, payload: &[u8]) -> Vec<u8> {
        let mut entry = vec![0u8; 64];
        entry[0..2].copy_from_slice(&kind.to_le_bytes());
        entry[4..8].copy_from_slice(&64u32.to_le_bytes());
        entry[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        entry[28..32].copy_from_slice(&89u32.to_le_bytes());
        entry[40..48].copy_from_slice(&flags.to_le_bytes());
        entry.extend_from_slice(payload);
        let mut file = Vec::new();
        file.extend_from_slice(&(FATBIN_MAGIC as u32).to_le_bytes());
        file.extend_from_slice(&1u16.to_le_bytes());
        file.extend_from_slice(&16u16.to_le_bytes());
        file.extend_from_slice(&(entry.len() as u64).to_le_bytes());
        file.extend_from_slice(&entry);
        file
    }

    fn code(image: &[u8]) -> Option<Code> {
        ptx_of_image(image.as_ptr() as u64).err().map(|r| r.code)
    }

    #[test]
    fn text_fat_binaries_and_garbage() {
        let ptx = b".version 9.0\n.target sm_89\n\0";
        assert_eq!(
            ptx_of_image(ptx.as_ptr() as u64).ok().unwrap(),
            ".version 9.0\n.target sm_89\n"
        );
        assert_eq!(code(b"/* c */ // d\n .version 9.0\0"), None);
        assert_eq!(code(b"hello\0"), Some(Code::INVALID_IMAGE));
        assert_eq!(code(b"\0"), Some(Code::INVALID_IMAGE));
        assert_eq!(
            code(b"\x7fELF\x02\x01\0\0\0\0\0\0\0\0\0\0"),
            Some(Code::INVALID_IMAGE)
        );
        assert_eq!(
            ptx_of_image(5).err().map(|r| r.code),
            Some(Code::INVALID_VALUE)
        );
        assert_eq!(
            ptx_of_image(0).err().map(|r| r.code),
            Some(Code::INVALID_VALUE)
        );
        let f = fatbin(1, 0x11, ptx);
        assert_eq!(
            ptx_of_image(f.as_ptr() as u64).ok().unwrap(),
            ".version 9.0\n.target sm_89\n"
        );
        assert_eq!(code(&fatbin(1, 0x2011, ptx)), Some(Code::NO_BINARY_FOR_GPU));
        assert_eq!(
            code(&fatbin(2, 0x11, b"\x7fELF")),
            Some(Code::NO_BINARY_FOR_GPU)
        );
        let mut broken = fatbin(1, 0, ptx);
        broken[24..32].fill(0xFF);
        assert_eq!(code(&broken), Some(Code::INVALID_IMAGE));
    }

    #[test]
    fn a_cubin_is_known_by_its_contents() {
        // An ELF header with one section header that covers eight bytes.
        let mut elf = vec![0u8; 64 + 8 + 64];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        elf[0x28..0x30].copy_from_slice(&72u64.to_le_bytes());
        elf[0x3A..0x3C].copy_from_slice(&64u16.to_le_bytes());
        elf[0x3C..0x3E].copy_from_slice(&1u16.to_le_bytes());
        elf[72 + 0x18..72 + 0x20].copy_from_slice(&64u64.to_le_bytes());
        elf[72 + 0x20..72 + 0x28].copy_from_slice(&8u64.to_le_bytes());
        assert_eq!(code(&elf), Some(Code::NO_BINARY_FOR_GPU));
        elf[64] = 1;
        let mut padded = elf.clone();
        padded.extend_from_slice(b"padding");
        remember_cubin(&padded, ".version 9.0\0");
        assert_eq!(
            ptx_of_image(elf.as_ptr() as u64).ok().unwrap(),
            ".version 9.0"
        );
    }
}
