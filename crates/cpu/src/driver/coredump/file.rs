//! The file of a core dump: an ELF core file of 64 bits, little-endian, for the machine `EM_CUDA`.
//!
//! It has a note of the owner `CUPYRITE` with a JSON text, and a loadable segment for each range of device memory. The
//! blocks of 4 KiB that contain zeros take no room in the file, unless it is compressed.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use cupyrite_engine::memory::{Region, checked};
use flate2::write::GzEncoder;

/// Name of the note's owner, with its NUL and padding.
const OWNER: &[u8; 12] = b"CUPYRITE\0\0\0\0";
/// Type of the note, a JSON text: no number that other owners use.
const NOTE_TYPE: u32 = 0x4355_5059;
/// `ET_CORE`.
const CORE: u16 = 4;
/// `EM_CUDA`.
const MACHINE: u16 = 190;
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
/// Segments that a file can have; a larger number needs an extension of ELF that readers lack.
pub(super) const MOST_SEGMENTS: usize = 0xfff0;
/// Unit of copies.
const STEP: u64 = 1 << 20;
const BLOCK: usize = 4096;

/// Where the bytes go.
enum Sink {
    /// The file, and its length with the zeros that were skipped.
    Plain(File, u64),
    Gzip(Box<GzEncoder<File>>),
}

impl Sink {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Sink::Gzip(to) => to.write_all(bytes),
            Sink::Plain(to, length) => {
                for block in bytes.chunks(BLOCK) {
                    *length += block.len() as u64;
                    if block.iter().all(|b| *b == 0) {
                        to.seek(SeekFrom::Start(*length))?;
                    } else {
                        to.write_all(block)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn finish(self) -> io::Result<u64> {
        match self {
            Sink::Plain(file, length) => {
                file.set_len(length)?;
                Ok(length)
            }
            Sink::Gzip(to) => Ok(to.finish()?.metadata()?.len()),
        }
    }
}

/// Writes a dump with these ranges of memory; returns the size of the file. The caller holds a pin.
///
/// # Errors
/// Those of the file. What was written of it is removed.
pub(super) fn write(
    path: &Path,
    json: &str,
    memory: &[Region],
    compressed: bool,
) -> io::Result<u64> {
    // Opening a pipe would wait for a reader.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::other("it exists and is not a regular file"));
    }
    let file = File::create(path)?;
    let sink = match compressed {
        true => Sink::Gzip(Box::new(GzEncoder::new(file, flate2::Compression::fast()))),
        false => Sink::Plain(file, 0),
    };
    write_all(sink, json, memory).inspect_err(|_| {
        // Nothing more can be done if it fails.
        let _ = std::fs::remove_file(path);
    })
}

fn write_all(mut sink: Sink, json: &str, memory: &[Region]) -> io::Result<u64> {
    let note = note(json);
    let mut at = (HEADER + PROGRAM_HEADER * (memory.len() + 1)) as u64;
    let mut headers = elf_header(memory.len() as u16 + 1);
    headers.extend(program_header(4, at, 0, note.len() as u64));
    at += note.len() as u64;
    for region in memory {
        headers.extend(program_header(1, at, region.base, region.size));
        at += region.size;
    }
    sink.put(&headers)?;
    sink.put(&note)?;
    let mut buffer = vec![0u8; STEP as usize];
    for region in memory {
        for from in (0..region.size).step_by(STEP as usize) {
            let part = &mut buffer[..(region.size - from).min(STEP) as usize];
            // Memory that another thread unmaps in the meantime is zeros.
            if checked::read_bytes(region.base + from, part).is_err() {
                part.fill(0);
            }
            sink.put(part)?;
        }
    }
    sink.finish()
}

fn note(json: &str) -> Vec<u8> {
    let mut note = Vec::new();
    for word in [OWNER.len() as u32 - 3, json.len() as u32, NOTE_TYPE] {
        note.extend(word.to_le_bytes());
    }
    note.extend(OWNER);
    note.extend(json.bytes());
    // Notes and segments begin at multiples of 8.
    note.resize(note.len().next_multiple_of(8), 0);
    note
}

fn elf_header(segments: u16) -> Vec<u8> {
    let mut header = b"\x7fELF\x02\x01\x01".to_vec();
    header.resize(16, 0);
    header.extend(CORE.to_le_bytes());
    header.extend(MACHINE.to_le_bytes());
    header.extend(1u32.to_le_bytes());
    // Entry, program headers, section headers.
    for offset in [0, HEADER as u64, 0] {
        header.extend(offset.to_le_bytes());
    }
    header.extend(0u32.to_le_bytes());
    for half in [HEADER as u16, PROGRAM_HEADER as u16, segments, 64, 0, 0] {
        header.extend(half.to_le_bytes());
    }
    header
}

/// A segment of `size` bytes at an offset in the file; `kind` is 4 for notes and 1 for memory.
fn program_header(kind: u32, offset: u64, address: u64, size: u64) -> Vec<u8> {
    const READ_WRITE: u32 = 6;
    let mut header = kind.to_le_bytes().to_vec();
    header.extend(READ_WRITE.to_le_bytes());
    for word in [offset, address, 0, size, size, 1] {
        header.extend(word.to_le_bytes());
    }
    header
}
