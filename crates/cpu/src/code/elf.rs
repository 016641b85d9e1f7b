//! 64-bit little-endian ELF files: their size, their sections, and adding a section.
//!
//! Headers are read one at a time through [`CodeSource`], because an image in memory comes without a length and may be
//! hostile; the `object` crate defines their layouts.

use object::LittleEndian as LE;
use object::elf::{
    ELFCLASS64, ELFDATA2LSB, ELFMAG, EM_CUDA, ET_EXEC, EV_CURRENT, FileHeader64, Ident, SHT_NOBITS,
    SHT_NULL, SHT_STRTAB, SectionHeader64, SectionType, SymbolSection,
};
use object::pod::{self, Pod};
use object::{U16, U32, U64};

use super::{CodeSource, MAX_SIZE};

type FileHeader = FileHeader64<LE>;
type SectionHeader = SectionHeader64<LE>;

const FILE_HEADER: u64 = size_of::<FileHeader>() as u64;
const SECTION_HEADER: u64 = size_of::<SectionHeader>() as u64;

/// A section.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) kind: SectionType,
    pub(crate) offset: u64,
    pub(crate) size: u64,
}

fn header<T: Pod>(data: CodeSource<'_>, at: u64) -> Option<T> {
    let bytes = data.bytes(at, size_of::<T>() as u64)?;
    Some(*pod::from_bytes(&bytes).ok()?.0)
}

fn file_header(data: CodeSource<'_>) -> Option<FileHeader> {
    let file: FileHeader = header(data, 0)?;
    let ident = &file.e_ident;
    let supported = ident.magic == ELFMAG
        && ident.class == ELFCLASS64
        && ident.data == ELFDATA2LSB
        && (u64::from(file.e_shentsize.get(LE)) == SECTION_HEADER || file.e_shnum.get(LE) == 0);
    supported.then_some(file)
}

fn section_headers(data: CodeSource<'_>, file: &FileHeader) -> Option<Vec<SectionHeader>> {
    let offset = file.e_shoff.get(LE);
    (0..u64::from(file.e_shnum.get(LE)))
        .map(|i| header(data, offset.checked_add(i * SECTION_HEADER)?))
        .collect()
}

/// Whether the file is for CUDA devices.
pub(crate) fn is_cubin(data: CodeSource<'_>) -> bool {
    header::<FileHeader>(data, 0).is_some_and(|file| file.e_machine.get(LE) == EM_CUDA)
}

/// Size of the file in bytes: the end of its last table or section.
fn size(data: CodeSource<'_>, file: &FileHeader, sections: &[SectionHeader]) -> Option<u64> {
    let programs = u64::from(file.e_phentsize.get(LE)) * u64::from(file.e_phnum.get(LE));
    let table = sections.len() as u64 * SECTION_HEADER;
    let mut end = (file.e_phoff.get(LE).checked_add(programs)?)
        .max(file.e_shoff.get(LE).checked_add(table)?)
        .max(FILE_HEADER);
    for section in sections {
        if section.sh_type.get(LE) != SHT_NOBITS {
            end = end.max((section.sh_offset.get(LE)).checked_add(section.sh_size.get(LE))?);
        }
    }
    // Rejects truncated files.
    data.read(end - 1, &mut [0])?;
    (end <= MAX_SIZE).then_some(end)
}

/// The sections with contents.
pub(crate) fn sections(data: CodeSource<'_>) -> Option<Vec<Section>> {
    let file = file_header(data)?;
    let headers = section_headers(data, &file)?;
    let end = size(data, &file, &headers)?;
    let Some(last) = headers.len().checked_sub(1) else {
        return Some(Vec::new());
    };
    let names = &headers[usize::from(file.e_shstrndx.get(LE).0).min(last)];
    let names = data.bytes(names.sh_offset.get(LE), names.sh_size.get(LE).min(end))?;
    let has_contents = |h: &&SectionHeader| !matches!(h.sh_type.get(LE), SHT_NULL | SHT_NOBITS);
    let section = |h: &SectionHeader| {
        let name = names.get(h.sh_name.get(LE) as usize..).unwrap_or_default();
        Section {
            name: String::from_utf8_lossy(super::until_nul(name)).into_owned(),
            kind: h.sh_type.get(LE),
            offset: h.sh_offset.get(LE),
            size: h.sh_size.get(LE),
        }
    };
    Some(headers.iter().filter(has_contents).map(section).collect())
}

/// Appends `bytes` at an offset aligned to eight bytes; returns the offset.
fn append(out: &mut Vec<u8>, bytes: &[u8]) -> u64 {
    out.resize(out.len().next_multiple_of(8), 0);
    let at = out.len() as u64;
    out.extend_from_slice(bytes);
    at
}

/// A copy of the file with an additional section. Existing contents keep their offsets; the enlarged tables are
/// appended.
///
/// `None` if it is not such a file or cannot have another section.
pub(crate) fn with_section(
    file: &[u8],
    name: &str,
    kind: SectionType,
    contents: &[u8],
) -> Option<Vec<u8>> {
    /// From `SHN_LORESERVE` on, indices have special meanings.
    const MAX_SECTIONS: u16 = 0xFEFF;
    let data = CodeSource::Slice(file);
    let mut header = file_header(data)?;
    let mut sections = section_headers(data, &header)?;
    let count = header.e_shnum.get(LE);
    let names_section = sections.get_mut(usize::from(header.e_shstrndx.get(LE).0))?;
    if count >= MAX_SECTIONS {
        return None;
    }
    let name_at = names_section.sh_size.get(LE);
    let mut names = data.bytes(names_section.sh_offset.get(LE), name_at)?;
    names.extend_from_slice(name.as_bytes());
    names.push(0);

    let mut out = file.to_vec();
    names_section.sh_offset.set(LE, append(&mut out, &names));
    names_section.sh_size.set(LE, names.len() as u64);
    let contents_at = append(&mut out, contents);
    let size = contents.len() as u64;
    sections.push(section_header(
        u32::try_from(name_at).ok()?,
        kind,
        contents_at,
        size,
    ));
    header
        .e_shoff
        .set(LE, append(&mut out, pod::bytes_of_slice(&sections)));
    header.e_shnum.set(LE, count + 1);
    out[..FILE_HEADER as usize].copy_from_slice(pod::bytes_of(&header));
    Some(out)
}

/// The header of a section that is not loaded.
fn section_header(name: u32, kind: SectionType, offset: u64, size: u64) -> SectionHeader {
    SectionHeader {
        sh_name: U32::new(LE, name),
        sh_type: U32::new(LE, kind),
        sh_flags: U64::default(),
        sh_addr: U64::default(),
        sh_offset: U64::new(LE, offset),
        sh_size: U64::new(LE, size),
        sh_link: U32::default(),
        sh_info: U32::default(),
        sh_addralign: U64::new(LE, u64::from(kind != SHT_NULL)),
        sh_entsize: U64::default(),
    }
}

/// An empty device ELF file that contains only the table of section names.
pub(crate) fn empty() -> Vec<u8> {
    const NAMES: &[u8] = b"\0.shstrtab\0";
    let mut out = vec![0; FILE_HEADER as usize];
    let names_at = append(&mut out, NAMES);
    let sections = [
        section_header(0, SHT_NULL, 0, 0),
        section_header(1, SHT_STRTAB, names_at, NAMES.len() as u64),
    ];
    let header = FileHeader {
        e_ident: Ident {
            magic: ELFMAG,
            class: ELFCLASS64,
            data: ELFDATA2LSB,
            version: EV_CURRENT,
            os_abi: Default::default(),
            abi_version: 0,
            padding: [0; 7],
        },
        e_type: U16::new(LE, ET_EXEC),
        e_machine: U16::new(LE, EM_CUDA),
        e_version: U32::new(LE, EV_CURRENT.0.into()),
        e_entry: U64::default(),
        e_phoff: U64::default(),
        e_shoff: U64::new(LE, append(&mut out, pod::bytes_of_slice(&sections))),
        e_flags: U32::default(),
        e_ehsize: U16::new(LE, FILE_HEADER as u16),
        e_phentsize: U16::default(),
        e_phnum: U16::default(),
        e_shentsize: U16::new(LE, SECTION_HEADER as u16),
        e_shnum: U16::new(LE, sections.len() as u16),
        e_shstrndx: U16::new(LE, SymbolSection(1)),
    };
    out[..FILE_HEADER as usize].copy_from_slice(pod::bytes_of(&header));
    out
}
