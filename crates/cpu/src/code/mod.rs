//! Code containers (PTX text, cubins, fat binaries, host objects, archives) and the PTX in them.
//!
//! Belongs here: the formats. Does not belong here: the meaning of PTX (`cupyrite-ptx`), loading it (the engine), error
//! reporting of the APIs (the driver, [`crate::toolchain`]).
//!
//! The device runs PTX, so machine code stands for the PTX it was compiled from. The PTX is embedded in the cubin: a
//! cubin created while this device is in use has an additional section ([`embed_ptx`]) that GPUs and linkers ignore.
//! The PTX thus survives a disk cache, pickling, a fat binary and the end of the process.

mod archive;
pub(crate) mod elf;
mod embed_ptx;
mod fatbin;

use cupyrite_engine::Unit;
use cupyrite_engine::memory::checked;

pub(crate) use embed_ptx::{attach, attach_reason, wrap};

/// Sets the limit of registers of the modules that have none.
pub(crate) fn limit_registers(units: &mut [Unit], limit: Option<u32>) {
    for unit in units {
        unit.max_registers = unit.max_registers.or(limit);
    }
}

/// The limit of registers that nvJitLink's options set: `-maxrregcount=N`.
pub(crate) fn register_limit<'a>(options: impl IntoIterator<Item = &'a [u8]>) -> Option<u32> {
    let mut limit = None;
    let mut options = options.into_iter();
    while let Some(option) = options.next() {
        let option = option.trim_ascii();
        let name = option.strip_prefix(b"--").or(option.strip_prefix(b"-"));
        let Some(rest) = name.and_then(|n| n.strip_prefix(b"maxrregcount")) else {
            continue;
        };
        let value = match rest.strip_prefix(b"=") {
            Some(value) => value,
            None if rest.is_empty() => options.next().unwrap_or_default(),
            None => rest,
        };
        let value = std::str::from_utf8(value.trim_ascii()).ok();
        limit = value.and_then(|v| v.parse().ok()).or(limit);
    }
    // Zero stands for no limit.
    limit.filter(|&n| n != 0)
}

/// The runnable contents of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// PTX modules to be linked together.
    Ptx(Vec<Unit>),
    /// LTO IR, which nvJitLink must compile.
    Lto(Vec<u8>),
}

/// Why code contains no usable PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CodeError {
    /// The address is unreadable.
    Unreadable,
    /// The format is unknown or the contents are corrupted.
    Invalid(String),
    /// The code is for GPUs only.
    NoPtx(String),
}

impl CodeError {
    /// A message without a full stop.
    pub(crate) fn text(&self) -> &str {
        match self {
            CodeError::Unreadable => "the image's address cannot be read",
            CodeError::Invalid(text) | CodeError::NoPtx(text) => text,
        }
    }
}

/// Maximum size of code, in bytes.
pub(crate) const MAX_SIZE: u64 = 1 << 30;

/// The location of code: an address without a length, or bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CodeSource<'a> {
    /// Checked on each access.
    Address(u64),
    Slice(&'a [u8]),
}

impl<'a> CodeSource<'a> {
    /// Reads at an offset; `None` if the range is unreadable.
    fn read(self, at: u64, out: &mut [u8]) -> Option<()> {
        match self {
            CodeSource::Address(base) => checked::read_bytes(base.checked_add(at)?, out).ok(),
            CodeSource::Slice(bytes) => {
                let at = usize::try_from(at).ok()?;
                out.copy_from_slice(bytes.get(at..at.checked_add(out.len())?)?);
                Some(())
            }
        }
    }

    /// A little-endian integer of `N` bytes.
    fn word<const N: usize>(self, at: u64) -> Option<u64> {
        let mut bytes = [0u8; N];
        self.read(at, &mut bytes)?;
        Some(bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
    }

    /// Copies a range.
    fn bytes(self, at: u64, len: u64) -> Option<Vec<u8>> {
        if len > MAX_SIZE {
            return None;
        }
        if let CodeSource::Slice(all) = self {
            // Checked before allocating a length from corrupted data.
            let at = usize::try_from(at).ok()?;
            return Some(all.get(at..at.checked_add(len as usize)?)?.to_vec());
        }
        if len > 0 {
            self.read(at.checked_add(len - 1)?, &mut [0])?;
        }
        let mut out = vec![0u8; len as usize];
        self.read(at, &mut out)?;
        Some(out)
    }

    /// The data from an offset on.
    fn from(self, at: u64) -> Option<CodeSource<'a>> {
        Some(match self {
            CodeSource::Address(base) => CodeSource::Address(base.checked_add(at)?),
            CodeSource::Slice(bytes) => CodeSource::Slice(bytes.get(usize::try_from(at).ok()?..)?),
        })
    }

    /// The text up to its NUL or the end of the data.
    fn text(self) -> Option<Vec<u8>> {
        match self {
            CodeSource::Address(base) => checked::read_c_string(base, MAX_SIZE).ok(),
            CodeSource::Slice(bytes) => Some(until_nul(bytes).to_vec()),
        }
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&b| b == 0).next().unwrap_or_default()
}

const ELF: u64 = 0x464C_457F;
const LTO: u64 = 0x7F4E_43ED;
/// The structure that `nvcc` wraps around a fat binary: magic, version, pointer to the data, and a pointer whose meaning
/// depends on the version.
const WRAPPER: u64 = 0x4662_43B1;
/// Version of the wrapper of a program's linked code (`-rdc=true`). Its last pointer is that of a list of fat binaries that
/// ends with a null pointer: those of the translation units, before linking.
const LINKED: u64 = 2;
/// Longest list of translation units.
const MAX_UNITS: u64 = 1 << 20;

/// Whether text starts like PTX: blanks and comments, then a directive.
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

/// Whether bytes are in none of the binary formats.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    let magic = CodeSource::Slice(bytes).word::<4>(0);
    !matches!(
        magic,
        Some(ELF | LTO | WRAPPER | fatbin::MAGIC | archive::MAGIC)
    )
}

/// The contents of the code at `data`; `name` stands for unnamed parts in messages.
///
/// # Errors
/// See [`CodeError`].
pub(crate) fn content(data: CodeSource<'_>, name: &str) -> Result<Content, CodeError> {
    let unit = |text: Vec<u8>| Content::Ptx(vec![Unit::new(name, String::from_utf8_lossy(&text))]);
    match data.word::<4>(0) {
        Some(ELF) => return elf_content(data, name),
        Some(fatbin::MAGIC) => return fatbin::content(data, name),
        Some(WRAPPER) => return wrapped_content(data, name),
        Some(LTO) => {
            return match data {
                CodeSource::Slice(bytes) => Ok(Content::Lto(bytes.to_vec())),
                CodeSource::Address(_) => Err(CodeError::NoPtx(
                    "the image is LTO IR; link it before loading it".into(),
                )),
            };
        }
        Some(archive::MAGIC) => return archive::content(data, name),
        // Fewer than four readable bytes may be text.
        _ => {}
    }
    if matches!(data, CodeSource::Address(0)) {
        return Err(CodeError::Unreadable);
    }
    let text = data.text().ok_or(CodeError::Unreadable)?;
    if looks_like_ptx(&text) {
        return Ok(unit(text));
    }
    Err(CodeError::Invalid(
        "the image is not PTX text, a cubin or a fat binary".into(),
    ))
}

/// The contents of the fat binary that a wrapper points to. That of linked code is machine code: the units that it was linked
/// from have the PTX.
fn wrapped_content(wrapper: CodeSource<'_>, name: &str) -> Result<Content, CodeError> {
    let fat_binary = |address: u64| {
        let inner = CodeSource::Address(address);
        if inner.word::<4>(0) == Some(fatbin::MAGIC) {
            fatbin::content(inner, name)
        } else {
            Err(CodeError::Invalid(
                "the fat binary's wrapper does not point to a fat binary".into(),
            ))
        }
    };
    let pointer = |at| wrapper.word::<8>(at).ok_or(CodeError::Unreadable);
    let linked = fat_binary(pointer(8)?);
    if linked.is_ok() || wrapper.word::<4>(4) != Some(LINKED) {
        return linked;
    }
    let list = CodeSource::Address(pointer(16)?);
    let mut units = Vec::new();
    for i in 0..MAX_UNITS {
        let address = list.word::<8>(8 * i).ok_or(CodeError::Unreadable)?;
        if address == 0 {
            break;
        }
        // LTO IR at an address is an error.
        if let Content::Ptx(more) = fat_binary(address)? {
            units.extend(more);
        }
    }
    if units.is_empty() {
        return linked;
    }
    Ok(Content::Ptx(units))
}

/// The contents of a cubin, or of a host object with embedded fat binaries.
fn elf_content(data: CodeSource<'_>, name: &str) -> Result<Content, CodeError> {
    let damaged = || CodeError::Invalid("the ELF image is corrupted or truncated".into());
    let sections = elf::sections(data).ok_or_else(damaged)?;
    if !elf::is_cubin(data) {
        return host_content(data, &sections, name);
    }
    match embed_ptx::embedded(data, &sections) {
        Some(found) => found.map(|mut units| {
            for unit in units.iter_mut().filter(|u| u.name.is_empty()) {
                name.clone_into(&mut unit.name);
            }
            Content::Ptx(units)
        }),
        None => Err(CodeError::NoPtx(
            "the image is a cubin: machine code of a GPU, which the CPU device cannot run. Load PTX instead (compile \
             with --gpu-architecture=compute_XX), or compile with NVRTC while the CPU device is in use, which puts the \
             PTX into the cubin"
                .into(),
        )),
    }
}

/// Whether a host object's section contains fat binaries, of relocatable code or of whole programs.
fn is_device_code(section: &elf::Section) -> bool {
    matches!(section.name.as_str(), "__nv_relfatbin" | ".nv_fatbin")
}

/// Whether an ELF file contains device code.
fn has_device_code(data: CodeSource<'_>) -> bool {
    elf::is_cubin(data) || elf::sections(data).is_some_and(|s| s.iter().any(is_device_code))
}

/// The contents of a host object's fat binaries, as created by `nvcc -c`.
fn host_content(
    data: CodeSource<'_>,
    sections: &[elf::Section],
    name: &str,
) -> Result<Content, CodeError> {
    let mut units = Vec::new();
    for section in sections.iter().filter(|s| is_device_code(s)) {
        let mut at = section.offset;
        let end = section.offset.saturating_add(section.size);
        // Consecutive fat binaries, each aligned to eight bytes.
        while let Some(here) = data.from(at).filter(|_| at < end) {
            let Some(size) = fatbin::size(here) else {
                break;
            };
            match fatbin::content(here, name)? {
                Content::Ptx(more) => units.extend(more),
                Content::Lto(_) => {
                    return Err(CodeError::NoPtx(format!(
                        "'{name}' is an object file with LTO IR"
                    )));
                }
            }
            at = at.saturating_add(size).next_multiple_of(8);
        }
    }
    if units.is_empty() {
        return Err(CodeError::NoPtx(
            "the object file contains no device code".into(),
        ));
    }
    Ok(Content::Ptx(units))
}

/// The PTX at an address.
///
/// # Errors
/// See [`CodeError`].
pub(crate) fn units_at(address: u64) -> Result<Vec<Unit>, CodeError> {
    match content(CodeSource::Address(address), "")? {
        Content::Ptx(units) => Ok(units),
        Content::Lto(_) => Err(CodeError::NoPtx("the image is LTO IR".into())),
    }
}

#[cfg(test)]
mod tests;
