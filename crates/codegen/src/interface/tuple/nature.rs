//! What a named C type becomes in Python: an enum, a handle, an integer, a callback or a struct class.

use crate::ir::{Builtin, LibraryApi, Type};

/// The Python counterpart of a named C type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nature {
    /// An enum class.
    Enum,
    /// A handle class.
    Handle,
    /// A class of an integer typedef.
    Integer(Builtin),
    /// A callback class.
    Callback,
    /// A struct class of this size.
    Struct(usize),
}

/// Classifies a typedef, record or enum name.
pub fn nature(lib: &LibraryApi, name: &str) -> Option<Nature> {
    if lib.enumeration(name).is_some() {
        return Some(Nature::Enum);
    }
    if let Some(r) = lib.record(name) {
        return Some(Nature::Struct(r.size));
    }
    let typedef = lib.typedef(name)?;
    match &typedef.ty {
        Type::Builtin { builtin } => Some(Nature::Integer(*builtin)),
        Type::Named { name } => nature(lib, name),
        Type::Pointer { to, .. } => match lib.resolve(to) {
            Type::Function { .. } => Some(Nature::Callback),
            _ => Some(Nature::Handle),
        },
        Type::Function { .. } => Some(Nature::Callback),
        _ => None,
    }
}
