//! Static libraries: `ar` archives of object files.

use super::{CodeError, CodeSource, Content};

/// `!<ar`
pub(super) const MAGIC: u64 = 0x7261_3C21;

/// The member of `libcudadevrt.a`. Its functions are for GPUs; the CPU device has its own versions of those that it
/// supports.
const DEVICE_RUNTIME: &[u8] = b"cuda_device_runtime.o";

/// The PTX of all members that contain device code, except for [`DEVICE_RUNTIME`].
pub(super) fn content(data: CodeSource<'_>, name: &str) -> Result<Content, CodeError> {
    let damaged = || CodeError::Invalid(format!("the library '{name}' is corrupted or truncated"));
    let CodeSource::Slice(bytes) = data else {
        return Err(CodeError::Invalid(
            "the image is a static library; link it before loading it".into(),
        ));
    };
    let mut rest = bytes.strip_prefix(b"!<arch>\n").ok_or_else(damaged)?;
    let mut units = Vec::new();
    let mut long_names: &[u8] = &[];
    while !rest.is_empty() {
        // Name 16, date 12, owner 6, group 6, mode 8, size 10, end marker 2.
        let (header, tail) = rest.split_at_checked(60).ok_or_else(damaged)?;
        let size = std::str::from_utf8(&header[48..58])
            .ok()
            .and_then(|n| n.trim().parse::<usize>().ok())
            .ok_or_else(damaged)?;
        let (member, tail) = tail.split_at_checked(size).ok_or_else(damaged)?;
        let label = match header[..16].trim_ascii_end() {
            // Symbol tables.
            b"/" | b"/SYM64/" => None,
            b"//" => {
                long_names = member;
                None
            }
            [b'/', offset @ ..] => Some(long_name(long_names, offset).ok_or_else(damaged)?),
            name => Some(name.strip_suffix(b"/").unwrap_or(name)),
        };
        if let Some(label) = label
            && label != DEVICE_RUNTIME
            && super::has_device_code(CodeSource::Slice(member))
        {
            let label = String::from_utf8_lossy(label);
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

/// The name at a decimal offset in the table of names that do not fit into a header.
fn long_name<'a>(table: &'a [u8], offset: &[u8]) -> Option<&'a [u8]> {
    let offset = std::str::from_utf8(offset).ok()?.parse::<usize>().ok()?;
    let name = table.get(offset..)?.split(|&b| b == b'\n').next()?;
    Some(name.strip_suffix(b"/").unwrap_or(name))
}
