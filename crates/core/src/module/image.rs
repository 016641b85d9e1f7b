//! Validates device code before it is passed to the driver, which would read past the end of a truncated image.
//!
//! Cubins and objects are ELF files; fat binaries begin with a header that contains their length. Both are passed as
//! an address alone (CUDA driver API, `cuLibraryLoadData`).

fn word<const N: usize>(code: &[u8], at: usize) -> Option<u64> {
    let bytes = code.get(at..at.checked_add(N)?)?;
    Some(bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
}

/// Returns an error for an image whose headers reach past its end.
pub(crate) fn check(code: &[u8]) -> Result<(), String> {
    if code.is_empty() {
        return Err("the image is empty".into());
    }
    let needed = if code.starts_with(b"\x7fELF") {
        elf(code).ok_or_else(|| "the ELF image is corrupted or truncated".to_owned())?
    } else if code.starts_with(&0xBA55_ED50u32.to_le_bytes()) {
        fatbin(code).ok_or_else(|| "the fat binary is corrupted or truncated".to_owned())?
    } else if code.starts_with(&0x4662_43B1u32.to_le_bytes()) {
        // nvcc's wrapper of a fat binary in a program: a pointer leads to the code.
        return Err("the image is a fat binary's wrapper, without the code itself".to_owned());
    } else {
        return Ok(());
    };
    if needed > code.len() as u64 {
        return Err(format!(
            "the image is truncated: it has {} bytes, its headers speak of {needed}",
            code.len()
        ));
    }
    Ok(())
}

/// The architecture of machine code: 90 for `sm_90`; `None` if it is no GPU ELF file.
///
/// It is in the flags of the ELF header: the lowest byte up to CUDA 12, the next byte since CUDA 13, with version 8 of
/// the format (observed in the output of NVRTC 12.9 and 13.x).
pub(crate) fn architecture(code: &[u8]) -> Option<u32> {
    const EM_CUDA: u64 = 190;
    const VERSION: usize = 8;
    if !code.starts_with(b"\x7fELF\x02\x01") || word::<2>(code, 0x12)? != EM_CUDA {
        return None;
    }
    let flags = word::<4>(code, 0x30)?;
    let shift = if *code.get(VERSION)? >= 8 { 8 } else { 0 };
    Some((flags >> shift & 0xFF) as u32)
}

/// The size of a 64-bit little-endian ELF file according to its headers; `None` if the headers are truncated.
fn elf(code: &[u8]) -> Option<u64> {
    if !code.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let table = |at, size_at, count_at| {
        let offset = word::<8>(code, at)?;
        let (size, count) = (word::<2>(code, size_at)?, word::<2>(code, count_at)?);
        Some((offset, size, count))
    };
    let (offset, size, count) = table(0x20, 0x36, 0x38)?;
    let mut end = if count > 0 {
        offset.checked_add(size * count)?
    } else {
        0
    };
    let (offset, size, count) = table(0x28, 0x3A, 0x3C)?;
    if count > 0 {
        end = end.max(offset.checked_add(size * count)?);
    }
    for i in 0..count {
        let header = usize::try_from(offset.checked_add(i * size)?).ok()?;
        const NO_BITS: u64 = 8;
        if word::<4>(code, header.checked_add(4)?)? != NO_BITS {
            let at = word::<8>(code, header.checked_add(0x18)?)?;
            end = end.max(at.checked_add(word::<8>(code, header.checked_add(0x20)?)?)?);
        }
    }
    Some(end.max(0x40))
}

/// The size of a fat binary according to its header.
fn fatbin(code: &[u8]) -> Option<u64> {
    word::<2>(code, 6)?.checked_add(word::<8>(code, 8)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elf_with(section: u64) -> Vec<u8> {
        let mut code = vec![0u8; 0x80];
        code[..6].copy_from_slice(b"\x7fELF\x02\x01");
        code[0x28] = 0x40; // one section header, right behind the file's
        code[0x3A] = 0x40;
        code[0x3C] = 1;
        code[0x58..0x60].copy_from_slice(&0x10u64.to_le_bytes());
        code[0x60..0x68].copy_from_slice(&section.to_le_bytes());
        code
    }

    #[test]
    fn architectures_are_read_in_both_formats() {
        let mut code = elf_with(8);
        assert_eq!(architecture(&code), None);
        code[0x12] = 190;
        code[0x30..0x34].copy_from_slice(&0x0050_0550u32.to_le_bytes());
        code[8] = 7;
        assert_eq!(architecture(&code), Some(80));
        code[0x30..0x34].copy_from_slice(&0x0600_5A04u32.to_le_bytes());
        code[8] = 8;
        assert_eq!(architecture(&code), Some(90));
        for end in 0..0x34 {
            assert_eq!(architecture(&code[..end]), None, "{end}");
        }
    }

    #[test]
    fn truncated_images_are_rejected() {
        assert!(check(b"").is_err());
        assert!(check(b".version 8.0").is_ok());
        assert!(check(&elf_with(0x70)).is_ok());
        assert!(check(&elf_with(0x71)).unwrap_err().contains("128 bytes"));
        assert!(check(&elf_with(u64::MAX)).is_err());
        for end in 4..0x80 {
            assert!(check(&elf_with(8)[..end]).is_err(), "{end}");
        }
        let mut fat = vec![0u8; 16];
        fat[..4].copy_from_slice(&0xBA55_ED50u32.to_le_bytes());
        fat[6] = 16;
        assert!(check(&fat).is_ok());
        fat[8] = 1;
        assert!(check(&fat).is_err());
        for end in 4..16 {
            assert!(check(&fat[..end]).is_err(), "{end}");
        }
    }
}
