//! 64-bit little-endian ELF files: their extent, their sections, and one section more.

use super::{Data, LARGEST};

/// `e_machine` of a cubin.
pub(crate) const CUDA: u64 = 190;
/// `sh_type` of sections without contents in the file.
const NO_BITS: u64 = 8;
const HEADER: u64 = 64;

/// A section.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) kind: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

/// The section table: where it is, how many entries it has, and which of them holds the names.
struct Table {
    offset: u64,
    count: u64,
    names: u64,
}

fn table(data: Data<'_>) -> Option<Table> {
    let mut ident = [0u8; 6];
    data.read(0, &mut ident)?;
    if &ident != b"\x7fELF\x02\x01" {
        return None;
    }
    let entry = data.word::<2>(0x3A)?;
    let found = Table {
        offset: data.word::<8>(0x28)?,
        count: data.word::<2>(0x3C)?,
        names: data.word::<2>(0x3E)?,
    };
    (entry == HEADER || found.count == 0).then_some(found)
}

pub(crate) fn machine(data: Data<'_>) -> Option<u64> {
    data.word::<2>(0x12)
}

/// Bytes of the file: up to the end of its last table or section.
pub(crate) fn size(data: Data<'_>) -> Option<u64> {
    let table = table(data)?;
    let (phoff, phsize, phnum) = (
        data.word::<8>(0x20)?,
        data.word::<2>(0x36)?,
        data.word::<2>(0x38)?,
    );
    let mut end = phoff
        .checked_add(phsize * phnum)?
        .max(table.offset.checked_add(table.count * HEADER)?)
        .max(HEADER);
    for i in 0..table.count {
        let header = table.offset.checked_add(i * HEADER)?;
        if data.word::<4>(header.checked_add(4)?)? != NO_BITS {
            let offset = data.word::<8>(header.checked_add(0x18)?)?;
            end = end.max(offset.checked_add(data.word::<8>(header.checked_add(0x20)?)?)?);
        }
    }
    // A file that was cut off is none.
    data.read(end - 1, &mut [0])?;
    (end <= LARGEST).then_some(end)
}

/// The sections that have contents.
pub(crate) fn sections(data: Data<'_>) -> Option<Vec<Section>> {
    let table = table(data)?;
    let end = size(data)?;
    let header = |i: u64| table.offset.checked_add(i * HEADER);
    let mut found = Vec::new();
    if table.count == 0 {
        return Some(found);
    }
    let names = header(table.names.min(table.count - 1))?;
    let (at, len) = (
        data.word::<8>(names.checked_add(0x18)?)?,
        data.word::<8>(names.checked_add(0x20)?)?,
    );
    let names = data.bytes(at, len.min(end))?;
    for i in 0..table.count {
        let header = header(i)?;
        let kind = data.word::<4>(header.checked_add(4)?)?;
        if kind == NO_BITS || kind == 0 {
            continue;
        }
        let name = data.word::<4>(header)? as usize;
        let name = names.get(name..).map_or(&b""[..], super::until_nul);
        found.push(Section {
            name: String::from_utf8_lossy(name).into_owned(),
            kind,
            offset: data.word::<8>(header.checked_add(0x18)?)?,
            size: data.word::<8>(header.checked_add(0x20)?)?,
        });
    }
    Some(found)
}

fn pad(out: &mut Vec<u8>) -> u64 {
    out.resize(out.len().next_multiple_of(8), 0);
    out.len() as u64
}

/// The file with a section more: nothing in it moves, the enlarged tables stand at its end.
///
/// `None` if it is no such file, or has no room for another section.
pub(crate) fn with_section(file: &[u8], name: &str, kind: u32, contents: &[u8]) -> Option<Vec<u8>> {
    let data = Data::Slice(file);
    let table = table(data)?;
    if table.count == 0 || table.count >= 0xFEFF || table.names >= table.count {
        return None;
    }
    let mut headers = data.bytes(table.offset, table.count * HEADER)?;
    let names_header = (table.names * HEADER) as usize;
    let field = |headers: &[u8], at: usize| {
        Some(u64::from_le_bytes(
            headers.get(at..at + 8)?.try_into().ok()?,
        ))
    };
    let names_at = field(&headers, names_header + 0x18)?;
    let names_size = field(&headers, names_header + 0x20)?;
    let mut names = data.bytes(names_at, names_size)?;
    names.extend_from_slice(name.as_bytes());
    names.push(0);

    let mut out = file.to_vec();
    let names_at = pad(&mut out);
    out.extend_from_slice(&names);
    let contents_at = pad(&mut out);
    out.extend_from_slice(contents);
    let table_at = pad(&mut out);
    headers[names_header + 0x18..][..8].copy_from_slice(&names_at.to_le_bytes());
    headers[names_header + 0x20..][..8].copy_from_slice(&(names.len() as u64).to_le_bytes());
    out.extend_from_slice(&headers);
    out.extend_from_slice(&section_header(
        u32::try_from(names_size).ok()?,
        kind,
        contents_at,
        contents.len() as u64,
    ));
    out[0x28..0x30].copy_from_slice(&table_at.to_le_bytes());
    out[0x3C..0x3E].copy_from_slice(&(table.count as u16 + 1).to_le_bytes());
    Some(out)
}

/// `Elf64_Shdr` of a section that is not part of the program's memory.
fn section_header(name: u32, kind: u32, offset: u64, size: u64) -> [u8; 64] {
    let mut header = [0u8; 64];
    header[0..4].copy_from_slice(&name.to_le_bytes());
    header[4..8].copy_from_slice(&kind.to_le_bytes());
    header[0x18..0x20].copy_from_slice(&offset.to_le_bytes());
    header[0x20..0x28].copy_from_slice(&size.to_le_bytes());
    header[0x30] = 1;
    header
}

/// A file for devices with nothing in it but the names of its sections.
pub(crate) fn empty() -> Vec<u8> {
    let mut file = vec![0u8; 64];
    file[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    // An executable, for a device, in the first version of the format.
    file[0x10] = 2;
    file[0x12] = CUDA as u8;
    file[0x14] = 1;
    file[0x34] = 64;
    let names = b"\0.shstrtab\0";
    file.extend_from_slice(names);
    let table = pad(&mut file);
    file.extend_from_slice(&[0; 64]);
    // A string table.
    file.extend_from_slice(&section_header(1, 3, 64, names.len() as u64));
    file[0x28..0x30].copy_from_slice(&table.to_le_bytes());
    file[0x3A] = 64;
    file[0x3C] = 2;
    file[0x3E] = 1;
    file
}
