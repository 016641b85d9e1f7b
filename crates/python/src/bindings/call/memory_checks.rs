//! Checks that memory which C accesses exists: buffers are large enough, addresses are readable.

use crate::bindings::call::words::address;
use crate::bindings::errors;
use crate::bindings::errors::{ExceptionKind, Site};
use crate::cpython::{R, Raised};
use cupyrite_sys::checked;

/// Refuses a buffer smaller than the number of bytes that C accesses.
///
/// # Errors
///
/// `ValueError`.
pub fn check_room(len: Option<usize>, needed: u64, site: Site, size: &str) -> R<()> {
    match len {
        Some(len) if needed > len as u64 => {
            let message = format!(
                "{}: the buffer has {len} bytes, but {size} is {needed}",
                site.prefix()
            );
            Err(errors::raise(ExceptionKind::Value, &message))
        }
        _ => Ok(()),
    }
}

/// As [`check_room`], for rows that are `pitch` bytes apart.
///
/// # Errors
///
/// `ValueError`.
pub fn check_rows(len: Option<usize>, pitch: u64, width: u64, rows: u64, site: Site) -> R<()> {
    let Some(len) = len else {
        return Ok(());
    };
    let needed = match rows {
        0 => Some(0),
        rows => (rows - 1)
            .checked_mul(pitch)
            .and_then(|before| before.checked_add(width)),
    };
    if needed.is_none_or(|needed| needed > len as u64) {
        let message = format!(
            "{}: the buffer has {len} bytes, but {rows} rows of {width} bytes, {pitch} apart, are more",
            site.prefix()
        );
        return Err(errors::raise(ExceptionKind::Value, &message));
    }
    Ok(())
}

/// Refuses an address without `size` readable bytes, and null.
///
/// # Errors
///
/// `ValueError`.
pub fn check_struct(at: u64, size: u64, site: Site) -> R<()> {
    if at == 0 {
        let message = format!(
            "{} must be the address of a struct, not null",
            site.prefix()
        );
        return Err(errors::raise(ExceptionKind::Value, &message));
    }
    check_memory(at, size, site)
}

/// Refuses an address without `size` readable bytes. The library checks null pointers.
///
/// # Errors
///
/// `ValueError`.
pub fn check_memory(at: u64, size: u64, site: Site) -> R<()> {
    let (Ok(start), Ok(len)) = (usize::try_from(at), usize::try_from(size)) else {
        return Err(errors::no_memory());
    };
    if at == 0 || len == 0 || checked::is_readable(start as u64, len) {
        return Ok(());
    }
    Err(no_memory_at(at, size, site))
}

/// `ValueError`: there is no readable memory at an address.
#[cold]
pub fn no_memory_at(at: u64, size: u64, site: Site) -> Raised {
    let message = format!(
        "{}: there is no memory of {size} bytes at the address {at:#x}",
        site.prefix()
    );
    errors::raise(ExceptionKind::Value, &message)
}

/// Refuses an address that is not that of an array of `count` strings. The library checks null pointers.
///
/// # Errors
///
/// `ValueError`.
pub fn check_texts(at: u64, count: u64, site: Site) -> R<()> {
    if at == 0 || count == 0 {
        return Ok(());
    }
    check_memory(at, count.saturating_mul(8), site)?;
    let start = address(at);
    for index in 0..address(count) {
        let mut text = [0u8; 8];
        let found = checked::read_bytes((start + index * 8) as u64, &mut text).is_ok();
        let text = usize::from_le_bytes(text);
        if !found || (text != 0 && !ends(text)) {
            let message = format!(
                "{}: there is no string number {index} at the address {at:#x}",
                site.prefix()
            );
            return Err(errors::raise(ExceptionKind::Value, &message));
        }
    }
    Ok(())
}

/// Whether the memory from `at` to the next nul is readable.
fn ends(mut at: usize) -> bool {
    const PIECE: usize = 256;
    let mut piece = [0u8; PIECE];
    loop {
        // Reads never cross a page boundary: the next page may not be readable.
        let len = PIECE - at % PIECE;
        if checked::read_bytes(at as u64, &mut piece[..len]).is_err() {
            return false;
        }
        if piece[..len].contains(&0) {
            return true;
        }
        match at.checked_add(len) {
            Some(next) => at = next,
            None => return false,
        }
    }
}
