//! Kinds of kernel parameters, from PTX.
//!
//! The driver reports sizes and offsets of parameters, not their types. PTX has the types: NVRTC writes `.f32` for a
//! `float`, `.u64` for a pointer, and arrays of `.b8` for structures and half precision. Machine code has none, except the
//! PTX that the CPU device adds to a cubin.

use std::collections::HashMap;
use std::sync::Arc;

/// What a parameter accepts, beside its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
#[non_exhaustive]
pub enum ParamKind {
    /// Any bytes: the type is unknown, a structure or untyped bits.
    #[default]
    Any = 0,
    /// An integer or an address: `.u32`, `.s32`, `.u64`, `.s64`, `.u8`, `.s8`.
    Integer = 1,
    /// A floating point number: `.f32` or `.f64`.
    Float = 2,
}

/// The parameters of each kernel, by its name in the code.
#[derive(Debug, Default)]
pub(crate) struct Signatures(HashMap<Box<[u8]>, Arc<[ParamKind]>>);

/// What the contents of the section begin with in which the CPU device embeds PTX in a cubin.
const EMBEDDED: &[u8] = b"CUPYPTX1";

impl Signatures {
    /// Those of PTX text.
    pub(crate) fn of_ptx(text: &[u8]) -> Signatures {
        const ENTRY: &[u8] = b".entry";
        let mut found: HashMap<Box<[u8]>, Arc<[ParamKind]>> = HashMap::new();
        let mut rest = text;
        while let Some(at) = find(rest, ENTRY) {
            let (before, after) = (&rest[..at], &rest[at + ENTRY.len()..]);
            rest = after;
            if is_in_comment(before) {
                continue;
            }
            let Some((name, kinds)) = entry(after) else {
                continue;
            };
            match found.get(name) {
                // Different text of one name, such as a comment in front of it: nothing is known.
                Some(other) if **other != *kinds => {
                    found.insert(name.into(), Arc::default());
                }
                _ => {
                    found.insert(name.into(), kinds.into());
                }
            }
        }
        Signatures(found)
    }

    /// Those of the PTX that the CPU device has embedded in a cubin; empty for another cubin.
    pub(crate) fn of_cubin(code: &[u8]) -> Signatures {
        match find(code, EMBEDDED) {
            Some(at) => Self::of_ptx(&code[at..]),
            None => Signatures::default(),
        }
    }

    /// The parameters of a kernel; `None` if they are unknown.
    pub(crate) fn get(&self, kernel: &str) -> Option<Arc<[ParamKind]>> {
        self.0.get(kernel.as_bytes()).cloned()
    }
}

/// The first position of `wanted`. PTX may have tens of megabytes.
fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let start = text.as_ptr();
    // SAFETY: both slices have the lengths passed.
    let found = unsafe {
        libc::memmem(
            start.cast(),
            text.len(),
            wanted.as_ptr().cast(),
            wanted.len(),
        )
    };
    (!found.is_null()).then(|| found.addr() - start.addr())
}

/// Whether the text ends in a comment to the end of the line.
fn is_in_comment(text: &[u8]) -> bool {
    let start = text
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1);
    find(&text[start..], b"//").is_some()
}

/// Name and parameters of the kernel whose `.entry` precedes `text`.
fn entry(text: &[u8]) -> Option<(&[u8], Vec<ParamKind>)> {
    let text = skip_space(text);
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'%');
    let len = text.iter().position(|byte| !is_name(byte))?;
    let (name, rest) = text.split_at(len);
    let Some(list) = skip_space(rest).strip_prefix(b"(") else {
        return Some((name, Vec::new()));
    };
    let list = &list[..list.iter().position(|&byte| byte == b')')?];
    let list = without_comments(list);
    if list.trim_ascii().is_empty() {
        return Some((name, Vec::new()));
    }
    Some((
        name,
        list.split(|&byte| byte == b',').map(kind_of).collect(),
    ))
}

fn skip_space(text: &[u8]) -> &[u8] {
    text.trim_ascii_start()
}

fn without_comments(list: &[u8]) -> Vec<u8> {
    let lines = list.split(|&byte| byte == b'\n');
    let kept = lines.map(|line| &line[..find(line, b"//").unwrap_or(line.len())]);
    kept.collect::<Vec<_>>().join(&b'\n')
}

/// The kind of a parameter's declaration, such as `.param .align 8 .b8 p[16]`.
fn kind_of(declaration: &[u8]) -> ParamKind {
    if declaration.contains(&b'[') || find(declaration, b"/*").is_some() {
        return ParamKind::Any;
    }
    // The first words after the state space; `.ptr` and `.align` may follow.
    let words = declaration.split(|byte| byte.is_ascii_whitespace() || *byte == b'.');
    for word in words {
        match word {
            b"f32" | b"f64" => return ParamKind::Float,
            b"u8" | b"s8" | b"u32" | b"s32" | b"u64" | b"s64" => return ParamKind::Integer,
            // A 16-bit integer may carry a half.
            b"u16" | b"s16" | b"b8" | b"b16" | b"b32" | b"b64" | b"b128" => return ParamKind::Any,
            _ => {}
        }
    }
    ParamKind::Any
}

#[cfg(test)]
mod tests {
    use super::ParamKind::{Any, Float, Integer};
    use super::*;

    #[test]
    fn types_are_read_from_ptx() {
        let text = b".version 8.0\n.target sm_80\n.address_size 64\n\
            // .entry noted(.param .f32 p)\n\
            .visible .entry _Z4noneILi1EEvv()\n.maxntid 32 { ret; }\n\
            .visible .entry bare { ret; }\n\
            .weak .entry some(\n\
            \t.param .u64 .ptr .global .align 4 some_param_0,\n\
            \t.param .f32 some_param_1, // .u32\n\
            \t.param .f64 some_param_2,\n\
            \t.param.s32 some_param_3,\n\
            \t.param .align 8 .b8 some_param_4[8],\n\
            \t.param .b32 f32,\n\
            \t.param .u16 half,\n\
            \t.param .u8 flag,\n\
            \t.param .texref image\n) { ret; }\n\
            .entry twice(.param .f32 a) {}\n.entry twice(.param .u32 a) {}\n\
            .entry cut(.param .f32";
        let found = Signatures::of_ptx(text);
        let kinds = |name: &str| found.get(name).map(|kinds| kinds.to_vec());
        assert_eq!(kinds("_Z4noneILi1EEvv"), Some(vec![]));
        assert_eq!(kinds("bare"), Some(vec![]));
        let some = vec![Integer, Float, Float, Integer, Any, Any, Any, Integer, Any];
        assert_eq!(kinds("some"), Some(some));
        assert_eq!(kinds("twice"), Some(vec![]));
        assert_eq!(kinds("noted"), None);
        assert_eq!(kinds("cut"), None);
    }

    #[test]
    fn cubins_have_what_the_cpu_device_embeds() {
        let mut cubin = b"\x7fELF .entry k(.param .u32 a) {}".to_vec();
        assert!(Signatures::of_cubin(&cubin).get("k").is_none());
        cubin.extend_from_slice(b"CUPYPTX1\x08\0.entry k(.param .f32 a) {}");
        let found = Signatures::of_cubin(&cubin).get("k");
        assert_eq!(found.as_deref(), Some(&[Float][..]));
    }
}
