//! The dynamic section of a library file, read before it is loaded: machine, name, dependencies, run path.
//!
//! Reads only the header, the program headers, the dynamic segment and single strings: a few kilobytes of a file of
//! any size. The file may be hostile; offsets outside it are errors.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use object::Endianness;
use object::elf::{self, FileHeader64};
use object::pe;
use object::read::elf::{Dyn, FileHeader, ProgramHeader};
use object::read::{ReadCache, StringTable};

use crate::error::FileDefect;
use crate::files::FileSystem;
use crate::platform::{Arch, Os, Platform};

/// Longest accepted dynamic segment; NVIDIA's libraries have less than one kilobyte.
const DYNAMIC_LIMIT: u64 = 1 << 20;
/// Read size. The header and the program headers are in the first block.
const BLOCK: usize = 4096;

/// The entries of the dynamic section.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct DynamicSection {
    /// `DT_SONAME`.
    pub soname: Option<String>,
    /// `DT_NEEDED`, in order: the dependencies. `None` on Windows, where they are not read.
    pub needed: Option<Vec<String>>,
    /// `DT_RPATH` without `DT_RUNPATH`: folders that also apply to libraries loaded later.
    pub run_path: Option<String>,
}

/// Reads the dynamic section of a regular file. Fails if the file is not a library for `platform`.
pub(crate) fn inspect(
    files: &dyn FileSystem,
    platform: Platform,
    path: &Path,
) -> Result<DynamicSection, FileDefect> {
    let first = files.read(path, 0, BLOCK).map_err(unreadable)?;
    if first.is_empty() {
        return Err(FileDefect::Empty);
    }
    let is_elf = first.starts_with(&elf::ELFMAG);
    match platform.os {
        Os::Linux if is_elf => inspect_elf(files, platform, path, &first),
        Os::Windows if first.starts_with(b"MZ") => {
            inspect_pe(files, platform, path, &first).map(|()| DynamicSection::default())
        }
        Os::Windows if is_elf => Err(FileDefect::NotALibrary("a Linux library")),
        _ => Err(FileDefect::NotALibrary(describe_non_library(&first))),
    }
}

fn unreadable(error: io::Error) -> FileDefect {
    match error.kind() {
        io::ErrorKind::PermissionDenied => FileDefect::Denied(error.to_string()),
        _ => FileDefect::Unreadable(error.to_string()),
    }
}

/// `DT_RPATH` of a program, as [`DynamicSection::run_path`].
pub(crate) fn run_path_of_program(files: &dyn FileSystem, program: &Path) -> Option<String> {
    let first = files.read(program, 0, BLOCK).ok()?;
    dynamic(files, program, &first)?.run_path
}

/// Describes the contents of a file that is not a library.
fn describe_non_library(first: &[u8]) -> &'static str {
    let text = first
        .iter()
        .all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e | 0x80..));
    let has = |part: &[u8]| first.windows(part.len()).any(|window| window == part);
    if first.starts_with(b"version https://git-lfs") {
        "a Git LFS pointer; the file is not fetched"
    } else if first.starts_with(b"!<arch>") {
        "a static library archive"
    } else if first.starts_with(b"MZ") {
        "a Windows library"
    } else if first.starts_with(b"PK\x03\x04") {
        "a zip archive"
    } else if text
        && [&b"GROUP"[..], b"INPUT", b"GNU ld script"]
            .iter()
            .any(|p| has(p))
    {
        "a linker script"
    } else if text {
        "text"
    } else {
        "unrecognized data"
    }
}

fn machine(machine: elf::Machine) -> String {
    match machine {
        elf::EM_X86_64 => "x86-64".to_owned(),
        elf::EM_AARCH64 => "AArch64".to_owned(),
        elf::EM_386 => "32-bit x86".to_owned(),
        elf::EM_ARM => "32-bit ARM".to_owned(),
        elf::EM_PPC64 => "POWER".to_owned(),
        elf::EM_RISCV => "RISC-V".to_owned(),
        other => format!("an unknown machine (e_machine {})", other.0),
    }
}

fn inspect_elf(
    files: &dyn FileSystem,
    platform: Platform,
    path: &Path,
    first: &[u8],
) -> Result<DynamicSection, FileDefect> {
    const CUT: FileDefect = FileDefect::Damaged("its header is truncated");
    let foreign = |found: String| FileDefect::Architecture {
        found,
        wanted: platform,
    };
    let wanted = match platform.arch {
        Arch::X86_64 => elf::EM_X86_64,
        Arch::Aarch64 => elf::EM_AARCH64,
    };
    // Class, byte order, type and machine are at the same offsets in every ELF file.
    let ident = first.get(..20).ok_or(CUT)?;
    let word = |at: usize| match ident[5] {
        2 => u16::from_be_bytes([ident[at], ident[at + 1]]),
        _ => u16::from_le_bytes([ident[at], ident[at + 1]]),
    };
    let (kind, found) = (elf::FileType(word(16)), elf::Machine(word(18)));
    if found != wanted {
        return Err(foreign(machine(found)));
    }
    if ident[4] != elf::ELFCLASS64.0 {
        return Err(foreign(format!("the 32-bit ABI of {}", machine(found))));
    }
    if ident[5] != elf::ELFDATA2LSB.0 {
        return Err(foreign(format!("big-endian {}", machine(found))));
    }
    if kind != elf::ET_DYN {
        return Err(FileDefect::NotALibrary(match kind {
            elf::ET_REL => "an object file",
            elf::ET_EXEC => "an executable",
            elf::ET_CORE => "a core dump",
            _ => "an ELF file of another type",
        }));
    }
    dynamic(files, path, first).ok_or(FileDefect::Damaged(
        "its dynamic segment is truncated or overwritten",
    ))
}

/// Reads the dynamic segment; `None` if an offset lies outside the file.
fn dynamic(files: &dyn FileSystem, path: &Path, first: &[u8]) -> Option<DynamicSection> {
    let data = &ReadCache::new(Reader {
        files,
        path,
        at: 0,
        start: 0,
        block: first.to_owned(),
    });
    let header = FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let segments = header.program_headers(endian, data).ok()?;
    let segment = segments
        .iter()
        .find(|segment| segment.p_type(endian) == elf::PT_DYNAMIC)?;
    if segment.p_filesz(endian) > DYNAMIC_LIMIT {
        return None;
    }
    let entries = segment.dynamic(endian, data).ok()??;
    let entries = || {
        entries
            .iter()
            .take_while(|entry| entry.d_tag(endian) != elf::DT_NULL)
    };
    let value = |tag| {
        let mut entries = entries();
        entries.find_map(|entry| (entry.d_tag(endian) == tag).then(|| entry.d_val(endian)))
    };
    // `DT_STRTAB` is a virtual address; the load segments map it to a file offset.
    let (address, size) = (value(elf::DT_STRTAB)?, value(elf::DT_STRSZ)?);
    let start = segments.iter().find_map(|segment| {
        let offset = address.checked_sub(segment.p_vaddr(endian))?;
        (segment.p_type(endian) == elf::PT_LOAD && offset < segment.p_filesz(endian))
            .then(|| segment.p_offset(endian).checked_add(offset))?
    })?;
    let strings = StringTable::new(data, start, start.checked_add(size)?);
    let text = |offset: u64| {
        let bytes = strings.get(u32::try_from(offset).ok()?).ok()?;
        Some(String::from_utf8_lossy(bytes).into_owned())
    };
    let mut needed = Vec::new();
    for entry in entries().filter(|entry| entry.d_tag(endian) == elf::DT_NEEDED) {
        needed.push(text(entry.d_val(endian))?);
    }
    let optional = |tag| match value(tag) {
        Some(offset) => text(offset).map(Some),
        None => Some(None),
    };
    Some(DynamicSection {
        soname: optional(elf::DT_SONAME)?,
        needed: Some(needed),
        run_path: match value(elf::DT_RUNPATH) {
            Some(_) => None,
            None => optional(elf::DT_RPATH)?,
        },
    })
}

fn inspect_pe(
    files: &dyn FileSystem,
    platform: Platform,
    path: &Path,
    first: &[u8],
) -> Result<(), FileDefect> {
    const CUT: FileDefect = FileDefect::Damaged("its header is truncated");
    // The DOS header holds the offset of the PE header.
    let at = first.get(60..64).ok_or(CUT)?;
    let at = u32::from_le_bytes([at[0], at[1], at[2], at[3]]);
    let bytes = files.read(path, at.into(), 6).map_err(unreadable)?;
    let [b'P', b'E', 0, 0, low, high] = bytes[..] else {
        return Err(CUT);
    };
    let found = pe::Machine(u16::from_le_bytes([low, high]));
    let fits = match platform.arch {
        Arch::X86_64 => found == pe::IMAGE_FILE_MACHINE_AMD64,
        // ARM64EC and ARM64X files contain code that AArch64 processes load.
        Arch::Aarch64 => matches!(
            found,
            pe::IMAGE_FILE_MACHINE_ARM64
                | pe::IMAGE_FILE_MACHINE_ARM64EC
                | pe::IMAGE_FILE_MACHINE_ARM64X
        ),
    };
    if fits {
        return Ok(());
    }
    Err(FileDefect::Architecture {
        found: match found {
            pe::IMAGE_FILE_MACHINE_AMD64 => "x86-64".to_owned(),
            pe::IMAGE_FILE_MACHINE_ARM64 => "AArch64".to_owned(),
            pe::IMAGE_FILE_MACHINE_I386 => "32-bit x86".to_owned(),
            other => format!("an unknown machine (PE machine {:#x})", other.0),
        },
        wanted: platform,
    })
}

/// A file as a stream, buffered in blocks.
struct Reader<'a> {
    files: &'a dyn FileSystem,
    path: &'a Path,
    at: u64,
    /// File offset of the block.
    start: u64,
    block: Vec<u8>,
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let in_block = |at: u64, start: u64, block: &[u8]| {
            let offset = usize::try_from(at.checked_sub(start)?).ok()?;
            (offset < block.len()).then_some(offset)
        };
        let offset = match in_block(self.at, self.start, &self.block) {
            Some(offset) => offset,
            None => {
                self.block = self
                    .files
                    .read(self.path, self.at, buffer.len().max(BLOCK))?;
                self.start = self.at;
                0
            }
        };
        let bytes = &self.block[offset..];
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Reader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let length = || match self.files.entry(self.path) {
            crate::files::FileEntry::File(length) => Ok(length),
            _ => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => length()?.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{HostFiles, InMemoryFiles};

    const LINUX: Platform = Platform {
        os: Os::Linux,
        arch: Arch::X86_64,
    };
    const ARM: Platform = Platform {
        arch: Arch::Aarch64,
        ..LINUX
    };
    const WINDOWS: Platform = Platform {
        os: Os::Windows,
        ..LINUX
    };

    fn of(platform: Platform, bytes: &[u8]) -> Result<DynamicSection, FileDefect> {
        let files = InMemoryFiles::new().file("/x", bytes);
        inspect(&files, platform, Path::new("/x"))
    }

    /// The test program itself: a dynamic ELF file that depends on libc.
    fn test_program() -> (std::path::PathBuf, Vec<u8>) {
        let path = std::env::current_exe().expect("the test has an executable");
        let bytes = std::fs::read(&path).expect("it is readable");
        (path, bytes)
    }

    #[test]
    fn a_real_file() {
        let (path, bytes) = test_program();
        let here = Platform::CURRENT;
        let said = inspect(&HostFiles, here, &path).expect("it is valid");
        let needed = said.needed.clone().expect("it is an ELF file");
        assert!(needed.iter().any(|name| name == "libc.so.6"), "{needed:?}");
        assert_eq!(of(here, &bytes), Ok(said));
    }

    #[test]
    fn truncation_at_any_offset_is_an_error_or_harmless() {
        let (_, bytes) = test_program();
        let whole = of(Platform::CURRENT, &bytes);
        for length in (0..4096).chain((4096..bytes.len()).step_by(bytes.len() / 200)) {
            let cut = of(Platform::CURRENT, &bytes[..length]);
            assert!(cut == whole || cut.is_err(), "{length}: {cut:?}");
        }
        assert_eq!(of(Platform::CURRENT, &[]), Err(FileDefect::Empty));
    }

    #[test]
    fn overwriting_any_byte_does_not_panic() {
        let (_, bytes) = test_program();
        // The header and the program headers hold every offset.
        let mut bytes = bytes;
        for at in 0..1024 {
            let old = bytes[at];
            for new in [0, 0xff] {
                bytes[at] = new;
                let _ = of(Platform::CURRENT, &bytes);
            }
            bytes[at] = old;
        }
    }

    #[test]
    fn foreign_machines_and_non_libraries_are_rejected() {
        let mut header = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        header.extend([3, 0, 183, 0]);
        let arm = of(LINUX, &header).unwrap_err();
        assert_eq!(
            arm.to_string(),
            "built for AArch64; this process is Linux on x86-64"
        );
        header[18] = 62;
        assert!(
            of(ARM, &header)
                .unwrap_err()
                .to_string()
                .starts_with("built for x86-64;")
        );
        header[4] = 1;
        let x32 = of(LINUX, &header).unwrap_err().to_string();
        assert!(
            x32.starts_with("built for the 32-bit ABI of x86-64;"),
            "{x32}"
        );
        header[18] = 3;
        assert!(
            of(LINUX, &header)
                .unwrap_err()
                .to_string()
                .starts_with("built for 32-bit x86;")
        );
        header[4] = 2;
        header[18] = 62;
        header[16] = 1;
        let object = FileDefect::NotALibrary("an object file");
        assert_eq!(of(LINUX, &header), Err(object));
        let elf = FileDefect::NotALibrary("a Linux library");
        assert_eq!(of(WINDOWS, &header), Err(elf));
        for (bytes, what) in [
            (
                &b"version https://git-lfs.github.com/spec/v1\n"[..],
                "Git LFS",
            ),
            (
                b"/* GNU ld script */\nGROUP ( libx.so.1 )\n",
                "linker script",
            ),
            (b"INPUT(libx.so.1)", "linker script"),
            (b"!<arch>\n", "static library"),
            (b"MZ\x90\0", "a Windows library"),
            (b"not here", "text"),
            (b"\0\x01\x02", "unrecognized data"),
        ] {
            let text = of(LINUX, bytes).unwrap_err().to_string();
            assert!(text.contains(what), "{text}");
        }
    }

    #[test]
    fn windows() {
        let mut dll = b"MZ".to_vec();
        dll.resize(60, 0);
        dll.extend([64, 0, 0, 0]);
        dll.extend(b"PE\0\0\x64\x86");
        assert_eq!(of(WINDOWS, &dll), Ok(DynamicSection::default()));
        let arm = Platform {
            arch: Arch::Aarch64,
            ..WINDOWS
        };
        let text = of(arm, &dll).unwrap_err().to_string();
        assert_eq!(text, "built for x86-64; this process is Windows on AArch64");
        for length in 1..dll.len() {
            assert!(of(WINDOWS, &dll[..length]).is_err());
        }
    }
}
