//! Static libraries: `ar` archives of object files.

use super::{CodeError, CodeSource, Content};

/// `!<ar`
pub(super) const MAGIC: u64 = 0x7261_3C21;

/// The PTX of all members that contain device code.
pub(super) fn content(data: CodeSource<'_>, name: &str) -> Result<Content, CodeError> {
    let damaged = || CodeError::Invalid(format!("the library '{name}' is corrupted or truncated"));
    let CodeSource::Slice(bytes) = data else {
        return Err(CodeError::Invalid(
            "the image is a static library; link it before loading it".into(),
        ));
    };
    let mut rest = bytes.strip_prefix(b"!<arch>\n").ok_or_else(damaged)?;
    let mut units = Vec::new();
    while !rest.is_empty() {
        // Name 16, date 12, owner 6, group 6, mode 8, size 10, end marker 2.
        let (header, tail) = rest.split_at_checked(60).ok_or_else(damaged)?;
        let size = std::str::from_utf8(&header[48..58])
            .ok()
            .and_then(|n| n.trim().parse::<usize>().ok())
            .ok_or_else(damaged)?;
        let (member, tail) = tail.split_at_checked(size).ok_or_else(damaged)?;
        let label = String::from_utf8_lossy(&header[..16]);
        let label = label.trim_end().trim_end_matches('/');
        // The names of the symbol table and the long-name table start with a slash.
        if header[0] != b'/' && super::has_device_code(CodeSource::Slice(member)) {
            match super::content(CodeSource::Slice(member), &format!("{name}({label})")) {
                Ok(Content::Ptx(more)) => units.extend(more),
                Ok(Content::Lto(_)) | Err(_) => {
                    return Err(CodeError::NoPtx(format!(
                        "'{label}' in the library '{name}' contains only GPU machine code, which the CPU device cannot run"
                    )));
                }
            }
        }
        // Members start at even offsets.
        rest = tail.get(size % 2..).unwrap_or_default();
    }
    Ok(Content::Ptx(units))
}
