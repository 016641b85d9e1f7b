//! `repr` of struct objects: `PciInfo(domain=0, bus=3, ...)`, with one line for each struct of an array.
//!
//! Works on a copy of the bytes and does not use NumPy.

use pyo3::ffi;

use crate::cpython;
use crate::cpython::errors::guard;
use crate::cpython::{Obj, Owned, R, Raised};
use crate::types::buffer_structs::instance::{BufferStruct, peek};
use crate::types::buffer_structs::values::text;
use crate::types::table;
use crate::types::table::{Count, Field, FieldKind, Prim};
use cupyrite_sys::checked;

/// Maximum number of structs or numbers shown before `...`.
const SHOWN: usize = 8;

/// `tp_repr`
///
/// # Safety
/// Called by the interpreter.
pub unsafe extern "C" fn repr(obj: *mut ffi::PyObject) -> *mut ffi::PyObject {
    guard(|| {
        // SAFETY: the interpreter calls this slot with an instance.
        unsafe { described(obj.cast()).and_then(|text| cpython::from_str(&text)) }
    })
}

unsafe fn described(this: *mut BufferStruct) -> R<String> {
    // SAFETY: the caller passes a live buffer struct.
    unsafe {
        let name = Obj::new(this.cast()).type_short_name();
        let fields = table::class((*this).id()).1.fields;
        let one = |i: usize| -> R<String> {
            let mut bytes = vec![0; (*this).size()];
            peek(this, (*this).at(i), &mut bytes)?;
            Ok(members(fields, &bytes, 0))
        };
        if !(*this).array {
            return Ok(format!("{name}({})", one(0)?));
        }
        let count = (*this).count;
        if count == 1 {
            return Ok(format!("{name}(size=1): {}", one(0)?));
        }
        let mut out = format!("{name}(size={count})");
        for i in 0..count.min(SHOWN) {
            out.push_str(if i == 0 { ":\n" } else { "\n" });
            out.push_str(&format!("    [{i}] {}", one(i)?));
        }
        if count > SHOWN {
            out.push_str("\n    ...");
        }
        Ok(out)
    }
}

fn members(fields: &[Field], bytes: &[u8], depth: usize) -> String {
    let mut parts = Vec::new();
    for field in fields {
        if let FieldKind::Hidden(..) | FieldKind::HiddenStruct(_) = field.kind {
            continue;
        }
        let displayed = member(field, bytes, depth);
        parts.push(format!("{}={displayed}", table::text(field.name)));
    }
    parts.join(", ")
}

fn read(bytes: &[u8], at: usize, len: usize) -> u64 {
    let mut raw = [0u8; 8];
    raw[..len].copy_from_slice(&bytes[at..at + len]);
    u64::from_le_bytes(raw)
}

fn number(bytes: &[u8], at: usize, prim: Prim) -> String {
    let raw = read(bytes, at, prim.size());
    match prim {
        Prim::I8 => (raw as i8).to_string(),
        Prim::I16 => (raw as i16).to_string(),
        Prim::I32 => (raw as i32).to_string(),
        Prim::I64 => (raw as i64).to_string(),
        Prim::F32 => format!("{:?}", f32::from_bits(raw as u32)),
        Prim::F64 => format!("{:?}", f64::from_bits(raw)),
        _ => raw.to_string(),
    }
}

fn numbers(bytes: &[u8], at: usize, prim: Prim, len: usize) -> String {
    let mut parts: Vec<String> = (0..len.min(SHOWN))
        .map(|i| number(bytes, at + i * prim.size(), prim))
        .collect();
    if len > SHOWN {
        parts.push(format!("... {len} in all"));
    }
    format!("[{}]", parts.join(", "))
}

/// The `repr` of text; invalid UTF-8 as an escaped bytes literal.
fn quoted(bytes: &[u8]) -> String {
    match text(bytes) {
        // SAFETY: `text` owns a live `str`.
        Ok(text) => match Owned::take(unsafe { ffi::PyObject_Repr(text.ptr()) }) {
            Ok(repr) => return repr.obj().display(),
            Err(Raised) => cpython::clear(),
        },
        Err(Raised) => cpython::clear(),
    }
    let len = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    format!("b\"{}\"", bytes[..len].escape_ascii())
}

fn member(field: &Field, bytes: &[u8], depth: usize) -> String {
    let at = field.offset as usize;
    let count = |c: Count| read(bytes, c.offset as usize, c.size as usize) as usize;
    match field.kind {
        FieldKind::Int(p) | FieldKind::Long(p) | FieldKind::Float(p) => number(bytes, at, p),
        FieldKind::Str(n) => quoted(&bytes[at..at + n as usize]),
        FieldKind::Bytes(n) => format!("b\"{}\"", bytes[at..at + n as usize].escape_ascii()),
        // `char[]` in struct-array classes, usually text.
        FieldKind::Fixed(Prim::I8, n) => quoted(&bytes[at..at + n as usize]),
        FieldKind::Fixed(p, n) => numbers(bytes, at, p, n as usize),
        FieldKind::Counted(p, max, c) => numbers(bytes, at, p, count(c).min(max as usize)),
        FieldKind::BufferStruct(id) | FieldKind::Records(id, 0) => {
            let class = table::class(id).1;
            if depth > 0 {
                return format!("{}(...)", class.name());
            }
            let inner = members(
                class.fields,
                &bytes[at..at + class.size as usize],
                depth + 1,
            );
            format!("{}({inner})", class.name())
        }
        FieldKind::Records(id, n) => format!("{}(size={n})", table::class(id).1.name()),
        FieldKind::BufferStructs(id, max, c) => {
            let n = c.map_or(max as usize, |c| count(c).min(max as usize));
            format!("{}(size={n})", table::class(id).1.name())
        }
        FieldKind::Text => match read(bytes, at, 8) {
            0 => "''".to_owned(),
            pointer => {
                let mut start = [0; 64];
                if checked::read_bytes(pointer, &mut start).is_ok() {
                    quoted(&start)
                } else {
                    format!("{pointer:#x}")
                }
            }
        },
        FieldKind::PointerInts(prim, c) => {
            let (pointer, n) = (read(bytes, at, 8) as usize, count(c));
            let mut data = vec![0; n.min(SHOWN) * prim.size()];
            if pointer != 0 && checked::read_bytes(pointer as u64, &mut data).is_err() {
                return format!("{pointer:#x}");
            }
            data.resize(n.min(SHOWN) * prim.size(), 0);
            let displayed = if pointer == 0 { 0 } else { n.min(SHOWN) };
            let more = if displayed < n && pointer != 0 {
                format!(" of {n}")
            } else {
                String::new()
            };
            format!("{}{more}", numbers(&data, 0, prim, displayed))
        }
        FieldKind::PointerStructs(id, c) => {
            let n = if read(bytes, at, 8) == 0 { 0 } else { count(c) };
            format!("{}(size={n})", table::class(id).1.name())
        }
        FieldKind::PointerWords(c) => {
            let n = if read(bytes, at, 8) == 0 { 0 } else { count(c) };
            format!("<{n} words>")
        }
        _ => format!("{:#x}", read(bytes, at, 8)),
    }
}
