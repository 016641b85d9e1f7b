//! C signatures and the thunks that call through them.

use crate::ir::{Builtin, Function, LibraryApi, Type};

/// How the ABI passes a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Abi {
    /// An integer or pointer of this many bits.
    Bits(u8),
    Float,
    Double,
    /// A struct by value.
    Struct(String),
}

impl Abi {
    fn of(lib: &LibraryApi, ty: &Type) -> Abi {
        match lib.resolve(ty) {
            Type::Builtin { builtin } => match builtin {
                Builtin::Float => Abi::Float,
                Builtin::Double => Abi::Double,
                other => Abi::Bits((other.size() * 8) as u8),
            },
            Type::Named { name } if lib.record(name).is_some() => Abi::Struct(name.clone()),
            Type::Named { name } if lib.enumeration(name).is_some() => Abi::Bits(32),
            _ => Abi::Bits(64),
        }
    }

    fn tag(&self) -> String {
        match self {
            Abi::Bits(8) => "b".to_owned(),
            Abi::Bits(16) => "h".to_owned(),
            Abi::Bits(32) => "w".to_owned(),
            Abi::Bits(_) => "q".to_owned(),
            Abi::Float => "f".to_owned(),
            Abi::Double => "d".to_owned(),
            Abi::Struct(name) => format!("_{name}_"),
        }
    }

    fn rust(&self) -> String {
        match self {
            Abi::Bits(bits) => format!("u{bits}"),
            Abi::Float => "f32".to_owned(),
            Abi::Double => "f64".to_owned(),
            Abi::Struct(name) => format!("c::{name}"),
        }
    }
}

/// The ABI signature of a C function; functions with the same signature share a thunk.
pub struct Signature {
    params: Vec<Abi>,
    /// Bits of the result; 0 for none.
    ret: u8,
}

/// The ABI signature of a function.
pub fn signature(lib: &LibraryApi, f: &Function) -> Signature {
    Signature {
        params: f.params.iter().map(|p| Abi::of(lib, &p.ty)).collect(),
        ret: match Abi::of(lib, &f.ret) {
            _ if f.ret == Type::Void => 0,
            Abi::Bits(64) => 64,
            // `CUfileError_t`: all supported ABIs return a struct of two 32-bit integers as one word.
            Abi::Struct(name) if lib.record(&name).is_some_and(|r| r.size == 8) => 64,
            _ => 32,
        },
    }
}

impl Signature {
    /// Name of the thunk.
    pub fn name(&self) -> String {
        let tags: String = self.params.iter().map(Abi::tag).collect();
        let ret = match self.ret {
            0 => "v",
            64 => "q",
            _ => "w",
        };
        format!("call_{tags}_{ret}")
            .to_lowercase()
            .replace("__", "_")
    }

    /// The row that declares the thunk: `call_qw_w: (u64, u32) -> i32;`.
    pub fn thunk(&self) -> String {
        let types: Vec<String> = self.params.iter().map(Abi::rust).collect();
        let ret = match self.ret {
            0 => "()",
            64 => "i64",
            _ => "i32",
        };
        format!("{}: ({}) -> {ret};", self.name(), types.join(", "))
    }

    /// The structs that C takes by value.
    pub fn structs(&self) -> impl Iterator<Item = String> {
        self.params.iter().filter_map(|abi| match abi {
            Abi::Struct(name) => Some(name.clone()),
            _ => None,
        })
    }
}
