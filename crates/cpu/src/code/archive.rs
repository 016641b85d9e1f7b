//! Archives of object files (`ar`): libraries.

use super::{Content, Data, Problem};

/// `!<ar`
pub(super) const MAGIC: u64 = 0x7261_3C21;

/// The PTX of all members that have code for devices.
pub(super) fn content(data: Data<'_>, name: &str) -> Result<Content, Problem> {
    let damaged = || Problem::Invalid(format!("the library '{name}' is damaged or truncated"));
    let Data::Slice(bytes) = data else {
        return Err(Problem::Invalid(
            "the image is a library, which has to be linked before it can be loaded".into(),
        ));
    };
    let mut rest = bytes.strip_prefix(b"!<arch>\n").ok_or_else(damaged)?;
    let mut units = Vec::new();
    while !rest.is_empty() {
        // name 16, date 12, owner 6, group 6, mode 8, size 10, end 2
        let (header, tail) = rest.split_at_checked(60).ok_or_else(damaged)?;
        let size = std::str::from_utf8(&header[48..58])
            .ok()
            .and_then(|n| n.trim().parse::<usize>().ok())
            .ok_or_else(damaged)?;
        let (member, tail) = tail.split_at_checked(size).ok_or_else(damaged)?;
        let label = String::from_utf8_lossy(&header[..16]);
        let label = label.trim_end().trim_end_matches('/');
        // The tables of symbols and of long names begin with a slash.
        if header[0] != b'/' && super::has_device_code(Data::Slice(member)) {
            match super::content(Data::Slice(member), &format!("{name}({label})")) {
                Ok(Content::Ptx(more)) => units.extend(more),
                Ok(Content::Lto(_)) | Err(_) => {
                    return Err(Problem::NoPtx(format!(
                        "'{label}' in the library '{name}' holds machine code of GPUs only, which the CPU device cannot run"
                    )));
                }
            }
        }
        // Members begin at even offsets.
        rest = tail.get(size % 2..).unwrap_or_default();
    }
    Ok(Content::Ptx(units))
}
