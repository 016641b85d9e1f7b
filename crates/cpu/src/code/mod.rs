//! Code as callers hand it over: PTX text, cubins, fat binaries, host objects and archives, and the PTX in them.
//!
//! Belongs here: the formats. Does not belong here: what PTX means (`cupyrite-ptx`), loading it (the engine), how a
//! function of an API reports what is wrong (the driver, [`crate::toolchain`]).
//!
//! The device runs PTX, so machine code counts for the PTX it was made from. That PTX travels with it: a cubin that was
//! made while this device is in use has one section more than the compiler gave it ([`embed_ptx`]), which GPUs and linkers
//! pass over. So it survives a cache on disk, a pickle, a fat binary and the end of the process.

mod archive;
pub(crate) mod elf;
mod embed_ptx;
mod fatbin;

use crate::memory::checked;

pub(crate) use embed_ptx::{attach, attach_reason, wrap};

/// A PTX module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// What messages call it; empty for a module that is alone.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// What code holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// PTX modules that belong together.
    Ptx(Vec<Unit>),
    /// Intermediate code of nvJitLink's, which nvJitLink has to compile.
    Lto(Vec<u8>),
}

/// Why there is no PTX to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The address cannot be read.
    Unreadable,
    /// It is of no known kind, or damaged.
    Invalid(String),
    /// It is code for GPUs only.
    NoPtx(String),
}

impl Problem {
    /// A sentence for a person, without a full stop.
    pub(crate) fn text(&self) -> &str {
        match self {
            Problem::Unreadable => "the image's address cannot be read",
            Problem::Invalid(text) | Problem::NoPtx(text) => text,
        }
    }
}

/// Largest code looked at, in bytes.
pub(crate) const LARGEST: u64 = 1 << 30;

/// Where code is: an address somebody gave without a length, or bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Data<'a> {
    /// Checked at each access.
    Address(u64),
    Slice(&'a [u8]),
}

impl<'a> Data<'a> {
    /// Reads at an offset; `None` where there is nothing to read.
    fn read(self, at: u64, out: &mut [u8]) -> Option<()> {
        match self {
            Data::Address(base) => checked::read_bytes(base.checked_add(at)?, out).ok(),
            Data::Slice(bytes) => {
                let at = usize::try_from(at).ok()?;
                out.copy_from_slice(bytes.get(at..at.checked_add(out.len())?)?);
                Some(())
            }
        }
    }

    /// A little-endian number of `N` bytes.
    fn word<const N: usize>(self, at: u64) -> Option<u64> {
        let mut bytes = [0u8; N];
        self.read(at, &mut bytes)?;
        Some(bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
    }

    /// A part of it.
    fn bytes(self, at: u64, len: u64) -> Option<Vec<u8>> {
        if len > LARGEST {
            return None;
        }
        if let Data::Slice(all) = self {
            // Before memory is set aside for a length that a damaged file claims.
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

    /// What begins at an offset.
    fn from(self, at: u64) -> Option<Data<'a>> {
        Some(match self {
            Data::Address(base) => Data::Address(base.checked_add(at)?),
            Data::Slice(bytes) => Data::Slice(bytes.get(usize::try_from(at).ok()?..)?),
        })
    }

    /// Text up to its NUL; bytes may end without one.
    fn text(self) -> Option<Vec<u8>> {
        match self {
            Data::Address(base) => checked::read_c_string(base, LARGEST).ok(),
            Data::Slice(bytes) => Some(until_nul(bytes).to_vec()),
        }
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|&b| b == 0).next().unwrap_or_default()
}

const ELF: u64 = 0x464C_457F;
const LTO: u64 = 0x7F4E_43ED;
/// The structure that `nvcc` puts around a fat binary: magic, version, pointer to the data.
const WRAPPER: u64 = 0x4662_43B1;

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

/// Whether bytes are none of the binary kinds.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    let magic = Data::Slice(bytes).word::<4>(0);
    !matches!(
        magic,
        Some(ELF | LTO | WRAPPER | fatbin::MAGIC | archive::MAGIC)
    )
}

/// The code at `data`, of whatever kind it is, with `name` for what has no name of its own.
///
/// # Errors
/// See [`Problem`].
pub(crate) fn content(data: Data<'_>, name: &str) -> Result<Content, Problem> {
    let unit = |text: Vec<u8>| {
        Content::Ptx(vec![Unit {
            name: name.to_owned(),
            text: String::from_utf8_lossy(&text).into_owned(),
        }])
    };
    match data.word::<4>(0) {
        Some(ELF) => return elf_content(data, name),
        Some(fatbin::MAGIC) => return fatbin::content(data, name),
        Some(WRAPPER) => {
            let inner = data.word::<8>(8).ok_or(Problem::Unreadable)?;
            let inner = Data::Address(inner);
            return if inner.word::<4>(0) == Some(fatbin::MAGIC) {
                fatbin::content(inner, name)
            } else {
                Err(Problem::Invalid(
                    "the fat binary's wrapper points to something else".into(),
                ))
            };
        }
        Some(LTO) => {
            return match data {
                Data::Slice(bytes) => Ok(Content::Lto(bytes.to_vec())),
                Data::Address(_) => Err(Problem::NoPtx(
                    "the image is LTO IR, which has to be linked before it can be loaded".into(),
                )),
            };
        }
        Some(archive::MAGIC) => return archive::content(data, name),
        // Fewer than four readable bytes may still be text.
        _ => {}
    }
    if matches!(data, Data::Address(0)) {
        return Err(Problem::Unreadable);
    }
    let text = data.text().ok_or(Problem::Unreadable)?;
    if looks_like_ptx(&text) {
        return Ok(unit(text));
    }
    Err(Problem::Invalid(
        "the image is neither PTX text nor a cubin nor a fat binary".into(),
    ))
}

/// A cubin, or a host object with fat binaries in it.
fn elf_content(data: Data<'_>, name: &str) -> Result<Content, Problem> {
    let damaged = || Problem::Invalid("the ELF image is damaged or truncated".into());
    let sections = elf::sections(data).ok_or_else(damaged)?;
    if elf::machine(data) != Some(elf::CUDA) {
        return host_content(data, &sections, name);
    }
    match embed_ptx::carried(data, &sections) {
        Some(found) => found.map(|mut units| {
            for unit in units.iter_mut().filter(|u| u.name.is_empty()) {
                name.clone_into(&mut unit.name);
            }
            Content::Ptx(units)
        }),
        None => Err(Problem::NoPtx(
            "the image is a cubin: machine code of a GPU, which the CPU device cannot run. Load PTX instead (compile \
             with --gpu-architecture=compute_XX), or compile with NVRTC while the CPU device is in use, which puts the \
             PTX into the cubin"
                .into(),
        )),
    }
}

/// Whether a section of a host's object file holds fat binaries: those of relocatable code, or those of whole programs.
fn is_device_code(section: &elf::Section) -> bool {
    matches!(section.name.as_str(), "__nv_relfatbin" | ".nv_fatbin")
}

/// Whether an ELF file has code for devices in it.
fn has_device_code(data: Data<'_>) -> bool {
    elf::machine(data) == Some(elf::CUDA)
        || elf::sections(data).is_some_and(|s| s.iter().any(is_device_code))
}

/// The fat binaries of an object file of the host's, as `nvcc -c` makes them.
fn host_content(data: Data<'_>, sections: &[elf::Section], name: &str) -> Result<Content, Problem> {
    let mut units = Vec::new();
    for section in sections.iter().filter(|s| is_device_code(s)) {
        let mut at = section.offset;
        let end = section.offset.saturating_add(section.size);
        // One after the other, each aligned to eight bytes.
        while let Some(here) = data.from(at).filter(|_| at < end) {
            let Some(size) = fatbin::size(here) else {
                break;
            };
            match fatbin::content(here, name)? {
                Content::Ptx(more) => units.extend(more),
                Content::Lto(_) => {
                    return Err(Problem::NoPtx(format!(
                        "'{name}' is an object file with LTO IR"
                    )));
                }
            }
            at = at.saturating_add(size).next_multiple_of(8);
        }
    }
    if units.is_empty() {
        return Err(Problem::NoPtx(
            "the object file has no code for devices in it".into(),
        ));
    }
    Ok(Content::Ptx(units))
}

/// The PTX at an address that somebody wants loaded.
///
/// # Errors
/// See [`Problem`].
pub(crate) fn units_at(address: u64) -> Result<Vec<Unit>, Problem> {
    match content(Data::Address(address), "")? {
        Content::Ptx(units) => Ok(units),
        Content::Lto(_) => Err(Problem::NoPtx("the image is LTO IR".into())),
    }
}

#[cfg(test)]
mod tests;
