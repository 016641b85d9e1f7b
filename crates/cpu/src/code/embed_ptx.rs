//! Cubins that carry the PTX they were made from.
//!
//! The section is of a type that the ELF specification leaves to programs, so linkers do not merge or copy it and drivers
//! do not look at it. It begins with a magic number; then numbers of eight bytes, each text after its length: the reason
//! why there is no PTX (empty if there is), the number of units, and of each unit its name and its text.

use super::{Data, Problem, Unit, elf};

const NAME: &str = ".cupyrite.ptx";
/// Between `SHT_LOUSER` and `SHT_HIUSER`.
const KIND: u32 = 0x8063_7079;
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

fn decode(bytes: &[u8]) -> Option<Result<Vec<Unit>, Problem>> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let reason = text(&mut rest)?;
    let count = number(&mut rest)?;
    let mut units = Vec::new();
    for _ in 0..count {
        units.push(Unit {
            name: text(&mut rest)?,
            text: text(&mut rest)?,
        });
    }
    Some(if reason.is_empty() {
        Ok(units)
    } else {
        Err(Problem::NoPtx(reason))
    })
}

/// A cubin with the PTX it was made from; `None` if it is no cubin.
pub(crate) fn attach(cubin: &[u8], units: &[Unit]) -> Option<Vec<u8>> {
    elf::with_section(cubin, NAME, KIND, &encode(units, ""))
}

/// A cubin with the reason why this device cannot run it.
pub(crate) fn attach_reason(cubin: &[u8], reason: &str) -> Option<Vec<u8>> {
    elf::with_section(cubin, NAME, KIND, &encode(&[], reason))
}

/// A cubin that holds PTX and no machine code: what this device's own linker makes.
pub(crate) fn wrap(units: &[Unit]) -> Vec<u8> {
    let file = elf::empty();
    attach(&file, units).unwrap_or(file)
}

/// What a cubin carries, if it carries anything.
pub(super) fn carried(
    data: Data<'_>,
    sections: &[elf::Section],
) -> Option<Result<Vec<Unit>, Problem>> {
    // The last one counts: whoever attached it knew of those before.
    let section = sections
        .iter()
        .rev()
        .find(|s| s.kind == u64::from(KIND) && s.name == NAME)?;
    let bytes = data.bytes(section.offset, section.size)?;
    Some(decode(&bytes).unwrap_or_else(|| {
        Err(Problem::Invalid(
            "the PTX that the cubin carries is damaged".into(),
        ))
    }))
}
