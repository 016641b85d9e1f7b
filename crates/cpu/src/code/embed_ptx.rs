//! Cubins with embedded PTX.
//!
//! The section type is in the range that ELF reserves for applications, so linkers neither merge nor copy it and
//! drivers ignore it. Its contents: a magic number, then 64-bit integers, each string after its length: the reason for
//! missing PTX (empty if there is PTX), the number of units, and the name and text of each unit; then, if one of them has a
//! limit of registers, the limit of each unit (zero for none).

use object::elf::SectionType;

use super::{CodeError, CodeSource, Unit, elf};

const NAME: &str = ".cupyrite.ptx";
/// Between `SHT_LOUSER` and `SHT_HIUSER`.
const KIND: SectionType = SectionType(0x8063_7079);
const MAGIC: &[u8; 8] = b"CUPYPTX1";

fn push(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn encode(units: &[Unit], reason: &str) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    push(&mut out, reason);
    out.extend_from_slice(&(units.len() as u64).to_le_bytes());
    for unit in units {
        push(&mut out, &unit.name);
        push(&mut out, &unit.text);
    }
    if units.iter().any(|u| u.max_registers.is_some()) {
        for unit in units {
            let limit = u64::from(unit.max_registers.unwrap_or(0));
            out.extend_from_slice(&limit.to_le_bytes());
        }
    }
    out
}

fn take<'b>(rest: &mut &'b [u8], len: u64) -> Option<&'b [u8]> {
    let (head, tail) = rest.split_at_checked(usize::try_from(len).ok()?)?;
    *rest = tail;
    Some(head)
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(take(rest, 8)?.try_into().ok()?))
}

fn text(rest: &mut &[u8]) -> Option<String> {
    let len = number(rest)?;
    String::from_utf8(take(rest, len)?.to_vec()).ok()
}

fn decode(bytes: &[u8]) -> Option<Result<Vec<Unit>, CodeError>> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let reason = text(&mut rest)?;
    let count = number(&mut rest)?;
    let mut units = Vec::new();
    for _ in 0..count {
        units.push(Unit::new(text(&mut rest)?, text(&mut rest)?));
    }
    if !rest.is_empty() {
        for unit in &mut units {
            let limit = u32::try_from(number(&mut rest)?).ok()?;
            unit.max_registers = Some(limit).filter(|&n| n != 0);
        }
    }
    Some(if reason.is_empty() {
        Ok(units)
    } else {
        Err(CodeError::NoPtx(reason))
    })
}

/// Embeds PTX in a cubin; `None` if `cubin` is not a cubin.
pub(crate) fn attach(cubin: &[u8], units: &[Unit]) -> Option<Vec<u8>> {
    elf::with_section(cubin, NAME, KIND, &encode(units, ""))
}

/// Embeds the reason why this device cannot run a cubin.
pub(crate) fn attach_reason(cubin: &[u8], reason: &str) -> Option<Vec<u8>> {
    elf::with_section(cubin, NAME, KIND, &encode(&[], reason))
}

/// A cubin that contains PTX and no machine code, as created by this device's linker.
pub(crate) fn wrap(units: &[Unit]) -> Vec<u8> {
    let file = elf::empty();
    attach(&file, units).unwrap_or(file)
}

/// The embedded PTX or reason, if there is any.
pub(super) fn embedded(
    data: CodeSource<'_>,
    sections: &[elf::Section],
) -> Option<Result<Vec<Unit>, CodeError>> {
    // The last section takes precedence over earlier ones.
    let section = sections
        .iter()
        .rev()
        .find(|s| s.kind == KIND && s.name == NAME)?;
    let bytes = data.bytes(section.offset, section.size)?;
    Some(decode(&bytes).unwrap_or_else(|| {
        Err(CodeError::Invalid(
            "the PTX embedded in the cubin is corrupted".into(),
        ))
    }))
}
