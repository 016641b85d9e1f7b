//! `crates/sys/src/generated/`: C types, constants, symbol tables and callers.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::HEADER;
use crate::ir::{Api, Builtin, Constant, Enum, Function, LibraryApi, Record, StreamMode, Type};
use crate::naming::{loader_variant, short_title, title};

const DIR: &str = "crates/sys/src/generated";

/// Generated files: paths from the repository root and contents.
pub fn generate(api: &Api) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    let mut index = format!("//! C declarations, one module per library.\n//!\n{HEADER}\n\n");
    for lib in &api.libraries {
        let _ = writeln!(index, "pub mod {};", lib.name);
        files.push((
            Path::new(DIR).join(format!("{}.rs", lib.name)),
            library(api, lib),
        ));
    }
    index.push_str("mod layout;\n");
    files.push((Path::new(DIR).join("mod.rs"), index));
    files.push((Path::new(DIR).join("layout.rs"), layout(api)));
    files
}

fn library(api: &Api, lib: &LibraryApi) -> String {
    let mut out = String::new();
    let title = title(lib);
    let versioned = lib.entry_points.iter().any(|e| e.abi_version != 0);
    let entry = if versioned { "EntryPoint, " } else { "" };
    let _ = write!(
        out,
        "//! {title}: C types, constants and functions.\n\
         //!\n\
         {HEADER}\n\
         //!\n\
         //! Meaning, parameters and errors: <{}>.\n\
         //! A name ending in `_cuda12` is CUDA 12's declaration of the name before the suffix, where it differs from\n\
         //! CUDA 13's in signature or layout.\n\n\
         #![allow(missing_docs, non_camel_case_types, non_snake_case, non_upper_case_globals)]\n\
         #![allow(clippy::too_many_arguments, clippy::useless_transmute)]\n\n\
         use std::ffi::*;\n\n\
         use crate::abi::{{{entry}c_enums, c_functions, plain_structs}};\n\
         use crate::loader::{{CudaLibrary, PerThreadVariant, SymbolDescriptor, SymbolSlot, SymbolTable}};\n\n",
        lib.doc_url
    );
    let mut others: Vec<&str> = lib.uses.iter().map(|f| f.library.as_str()).collect();
    others.dedup();
    for other in others {
        let used = lib.uses.iter().filter(|f| f.library == other);
        let names: Vec<&str> = used.map(|f| f.name.as_str()).collect();
        let _ = writeln!(out, "use super::{other}::{{{}}};\n", names.join(", "));
    }
    // The runtime's handles are the driver's types.
    let shared = |o: &String| {
        let earlier = api.libraries.iter().take_while(|l| l.name != lib.name);
        earlier.into_iter().find(|l| l.opaques.contains(o))
    };
    for owner in &api.libraries {
        let ours = (lib.opaques.iter())
            .filter(|o| shared(o).is_some_and(|l| l.name == owner.name))
            .map(String::as_str);
        let ours: Vec<&str> = ours.collect();
        if !ours.is_empty() {
            let _ = writeln!(
                out,
                "pub use super::{}::{{{}}};\n",
                owner.name,
                ours.join(", ")
            );
        }
    }
    for o in lib.opaques.iter().filter(|o| shared(o).is_none()) {
        let _ = write!(
            out,
            "/// Opaque target of a handle.\n#[repr(C)]\n#[derive(Debug)]\npub struct {o} {{\n    _opaque: [u8; 0],\n}}\n\n"
        );
    }
    for t in &lib.typedefs {
        let _ = writeln!(out, "pub type {} = {};", t.name, rust_type(lib, &t.ty));
    }
    out.push('\n');
    out.push_str("c_enums! {\n");
    for e in &lib.enums {
        enumeration(&mut out, e);
    }
    out.push_str("}\n\n");
    for r in &lib.records {
        record(&mut out, lib, r);
    }
    out.push_str("plain_structs! {\n");
    for r in &lib.records {
        let _ = writeln!(out, "    {}", r.name);
    }
    out.push_str("}\n\n");
    for c in &lib.constants {
        constant(&mut out, lib, c);
    }
    functions(&mut out, lib);
    if versioned {
        entry_points(&mut out, lib);
    }
    older_exports(&mut out, lib);
    out
}

/// The export names in a CUDA 12 library of functions whose CUDA 13 name denotes another function there.
fn older_exports(out: &mut String, lib: &LibraryApi) {
    if lib.name != "runtime" {
        return;
    }
    let renamed: Vec<(&Function, &Function)> = (lib.functions.iter())
        .filter_map(|old| Some((lib.function(old.name.strip_suffix("_cuda12")?)?, old)))
        .collect();
    let _ = write!(
        out,
        "\n/// Exported names of CUDA 13 that a CUDA 12 library does not export, or exports for another function, with the name\n\
         /// of the same function there, if any.\n\
         #[rustfmt::skip]\n\
         pub static CUDA12_EXPORTS: [(&CStr, Option<&CStr>); {}] = [\n",
        renamed.len()
    );
    for (new, old) in renamed {
        let params = |f: &Function| f.params.iter().map(|p| p.ty.clone()).collect::<Vec<_>>();
        // If the type names are the same, the layout of one of them changed.
        let same = (lib.entry_points.iter())
            .filter(|e| e.majors.contains(&12) && e.stream == StreamMode::Legacy)
            .filter(|e| e.symbol.starts_with(&format!("{}_v", new.symbol)))
            .filter(|_| !changed_record(lib, old))
            .find(|e| {
                e.params
                    .iter()
                    .map(|(_, ty)| ty.clone())
                    .collect::<Vec<_>>()
                    == params(new)
            });
        let name = match same {
            Some(e) => format!("Some(c\"{}\")", e.symbol),
            None => "None".to_owned(),
        };
        let _ = writeln!(out, "    (c\"{}\", {name}),", new.symbol);
    }
    out.push_str("];\n");
}

/// Whether a function takes a struct whose members moved between the majors.
fn changed_record(lib: &LibraryApi, f: &Function) -> bool {
    f.params.iter().any(|p| {
        let Type::Pointer { to, .. } = &p.ty else {
            return false;
        };
        let Type::Named { name } = &**to else {
            return false;
        };
        match (lib.record(name), lib.record(&format!("{name}_cuda12"))) {
            (Some(new), Some(old)) => (old.fields.iter()).any(|o| {
                !new.fields
                    .iter()
                    .any(|n| n.name == o.name && n.offset == o.offset)
            }),
            _ => false,
        }
    })
}

/// A C name as a Rust identifier.
fn ident(name: &str) -> String {
    const KEYWORDS: &[&str] = &[
        "type", "ref", "mod", "in", "match", "move", "use", "fn", "impl", "box", "where", "loop",
        "final", "priv", "virtual", "yield", "async", "await", "dyn", "gen",
    ];
    if KEYWORDS.contains(&name) {
        format!("r#{name}")
    } else {
        name.to_owned()
    }
}

fn builtin(b: Builtin) -> &'static str {
    match b {
        Builtin::Char => "c_char",
        Builtin::SChar => "c_schar",
        Builtin::UChar => "c_uchar",
        Builtin::Short => "c_short",
        Builtin::UShort => "c_ushort",
        Builtin::Int => "c_int",
        Builtin::UInt => "c_uint",
        Builtin::Long => "c_long",
        Builtin::ULong => "c_ulong",
        Builtin::LongLong => "c_longlong",
        Builtin::ULongLong => "c_ulonglong",
        Builtin::SizeT => "usize",
        Builtin::Float => "f32",
        Builtin::Double => "f64",
        Builtin::Bool => "bool",
    }
}

/// The Rust spelling of a C type, as used in a struct, a parameter or a typedef.
pub fn rust_type(lib: &LibraryApi, ty: &Type) -> String {
    match ty {
        Type::Void => "()".to_owned(),
        Type::Builtin { builtin: b } => builtin(*b).to_owned(),
        Type::Named { name } => name.clone(),
        Type::Array { of, len } => format!("[{}; {len}]", rust_type(lib, of)),
        Type::Function { .. } => function_type(lib, ty),
        Type::Pointer { to, is_const } => match &**to {
            Type::Function { .. } => format!("Option<{}>", function_type(lib, to)),
            Type::Named { name } if matches!(lib.resolve(to), Type::Function { .. }) => {
                format!("Option<{name}>")
            }
            to => {
                let mutability = if *is_const { "const" } else { "mut" };
                let pointee = match to {
                    Type::Void => "c_void".to_owned(),
                    to => rust_type(lib, to),
                };
                format!("*{mutability} {pointee}")
            }
        },
    }
}

fn function_type(lib: &LibraryApi, ty: &Type) -> String {
    let Type::Function { ret, params } = ty else {
        return rust_type(lib, ty);
    };
    let params: Vec<String> = params.iter().map(|p| rust_type(lib, p)).collect();
    let ret = match &**ret {
        Type::Void => String::new(),
        ret => format!(" -> {}", rust_type(lib, ret)),
    };
    format!("unsafe extern \"C\" fn({}){ret}", params.join(", "))
}

fn enumeration(out: &mut String, e: &Enum) {
    let tag = match &e.tag {
        Some(tag) => format!(" (`enum {tag}`)"),
        None => String::new(),
    };
    let _ = writeln!(out, "    /// C enum `{}`{tag}.", e.name);
    let _ = writeln!(out, "    {}: {} {{", e.name, builtin(e.underlying));
    for m in &e.members {
        let _ = writeln!(out, "        {} = {},", ident(&m.name), m.value);
    }
    out.push_str("    }\n");
}

fn record(out: &mut String, lib: &LibraryApi, r: &Record) {
    let what = if r.union { "union" } else { "struct" };
    match (&r.c_name, &r.parent) {
        (Some(c), _) => {
            let _ = writeln!(out, "/// C type `{c}`, {} bytes.", r.size);
        }
        (None, Some((parent, member))) if member.is_empty() => {
            let _ = writeln!(
                out,
                "/// Nameless {what} in [`{parent}`], {} bytes.",
                r.size
            );
        }
        (None, Some((parent, member))) => {
            let _ = writeln!(
                out,
                "/// The {what} `{member}` of [`{parent}`], {} bytes.",
                r.size
            );
        }
        (None, None) => {}
    }
    let natural = r
        .fields
        .iter()
        .map(|f| align_of(lib, &f.ty))
        .max()
        .unwrap_or(1);
    let align = if r.align > natural {
        format!(", align({})", r.align)
    } else {
        String::new()
    };
    let _ = writeln!(out, "#[repr(C{align})]\n#[derive(Clone, Copy)]");
    let _ = writeln!(out, "pub {what} {} {{", r.name);
    for f in &r.fields {
        let _ = writeln!(
            out,
            "    pub {}: {},",
            ident(&f.name),
            rust_type(lib, &f.ty)
        );
    }
    out.push_str("}\n\n");
}

fn align_of(lib: &LibraryApi, ty: &Type) -> usize {
    match lib.resolve(ty) {
        Type::Builtin { builtin } => builtin.size(),
        Type::Array { of, .. } => align_of(lib, of),
        Type::Named { name } => match lib.record(name) {
            Some(r) => r.align,
            None => 4, // an enum
        },
        _ => 8,
    }
}

fn constant(out: &mut String, lib: &LibraryApi, c: &Constant) {
    let (ty, value) = match &c.cast {
        Some(cast) => {
            let pointer = cast.ends_with('*')
                || lib
                    .typedef(cast)
                    .is_some_and(|t| matches!(t.ty, Type::Pointer { .. }));
            let ty = match cast.as_str() {
                "void *" => "*mut c_void",
                "int" => "c_int",
                other => other,
            };
            if pointer {
                (
                    ty.to_owned(),
                    format!("std::ptr::without_provenance_mut({})", c.value),
                )
            } else if lib.enumeration(cast).is_some() {
                (ty.to_owned(), format!("{cast}({})", c.value))
            } else {
                (ty.to_owned(), c.value.to_string())
            }
        }
        None if c.unsigned => ("c_ulonglong".to_owned(), (c.value as u64).to_string()),
        None if c.value < 0 => ("c_int".to_owned(), c.value.to_string()),
        None if c.value <= i64::from(u32::MAX) => ("c_uint".to_owned(), c.value.to_string()),
        None => ("c_ulonglong".to_owned(), c.value.to_string()),
    };
    let _ = writeln!(out, "pub const {}: {ty} = {value};", c.name);
}

fn mode(stream: StreamMode) -> &'static str {
    match stream {
        StreamMode::Legacy => "None",
        StreamMode::Ptds => "Ptds",
        StreamMode::Ptsz => "Ptsz",
    }
}

fn functions(out: &mut String, lib: &LibraryApi) {
    out.push_str(
        "\n/// Index of a function in [`SYMBOLS`].\n#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]\n#[repr(u16)]\npub enum Symbol {\n",
    );
    for f in &lib.functions {
        let _ = writeln!(out, "    {},", f.name);
    }
    let n = lib.functions.len();
    let variant = loader_variant(lib);
    let _ = write!(
        out,
        "}}\n\n/// The functions, by [`Symbol`].\n#[rustfmt::skip]\npub static SYMBOLS: [SymbolDescriptor; {n}] = [\n"
    );
    for f in &lib.functions {
        let stream = lib
            .entry_points
            .iter()
            .find(|e| f.per_thread_symbol.as_ref() == Some(&e.symbol))
            .map_or(StreamMode::Legacy, |e| e.stream);
        let _ = writeln!(
            out,
            "    symbol(c\"{}\", c\"{}\", {}, PerThreadVariant::{}),",
            f.base,
            f.symbol,
            f.abi_version,
            mode(stream)
        );
    }
    let _ = write!(
        out,
        "];\n\n\
         const fn symbol(name: &'static CStr, export: &'static CStr, version: c_int, per_thread: PerThreadVariant) -> SymbolDescriptor {{\n\
         SymbolDescriptor {{ name, export, version, per_thread }}\n}}\n\n\
         static SLOTS: [SymbolSlot; {n}] = [const {{ SymbolSlot::new() }}; {n}];\n\n\
         /// The functions with their cached addresses.\n\
         pub static TABLE: SymbolTable = SymbolTable::new(CudaLibrary::{variant}, &SYMBOLS, &SLOTS);\n\n\
         c_functions! {{ TABLE, Symbol;\n"
    );
    for f in &lib.functions {
        function(out, lib, f);
    }
    out.push_str("}\n");
    if lib.name == "runtime" {
        exclusive_exports(out, lib);
    }
}

/// The exported names that the library of one CUDA major has and that of the other lacks.
fn exclusive_exports(out: &mut String, lib: &LibraryApi) {
    let of = |major: u32| {
        let rows = lib
            .functions
            .iter()
            .filter(move |f| f.majors.contains(&major));
        rows.map(|f| f.symbol.as_str()).collect::<BTreeSet<_>>()
    };
    let (twelve, thirteen) = (of(12), of(13));
    // A library that has a later version of a function has the first one too.
    let has_later = |name: &str| {
        let later = |other: &&str| split_version(other).is_some_and(|base| base == name);
        twelve.iter().any(later)
    };
    let only_twelve = twelve.difference(&thirteen).copied().collect::<Vec<_>>();
    let only_thirteen = thirteen
        .difference(&twelve)
        .copied()
        .filter(|name| !has_later(name))
        .collect::<Vec<_>>();
    for (major, other, names) in [(12, 13, only_twelve), (13, 12, only_thirteen)] {
        let _ = write!(
            out,
            "\n/// Exported names of CUDA {major}'s library that CUDA {other}'s lacks, without the variants for the per-thread\n\
             /// default stream.\npub static ONLY_IN_CUDA{major}: [&CStr; {}] = [\n",
            names.len()
        );
        for name in names {
            let _ = writeln!(out, "    c\"{name}\",");
        }
        out.push_str("];\n");
    }
}

/// `cudaMemAdvise` of `cudaMemAdvise_v2`.
fn split_version(name: &str) -> Option<&str> {
    let (base, version) = name.rsplit_once("_v")?;
    version.bytes().all(|b| b.is_ascii_digit()).then_some(base)
}

fn function(out: &mut String, lib: &LibraryApi, f: &Function) {
    let title = short_title(lib);
    let exported = if f.symbol == f.name {
        String::new()
    } else {
        format!(" (`{}`)", f.symbol)
    };
    let only = match f.majors.as_slice() {
        [12] => ", CUDA 12 only",
        [13] => ", since CUDA 13",
        _ => "",
    };
    let _ = writeln!(
        out,
        "    /// {title} function `{}`{exported}{only}.",
        f.name
    );
    let params: Vec<String> = f
        .params
        .iter()
        .enumerate()
        .map(|(i, p)| {
            let name = if p.name.is_empty() {
                format!("arg{i}")
            } else {
                ident(&p.name)
            };
            format!("{name}: {}", rust_type(lib, &p.ty))
        })
        .collect();
    let _ = writeln!(
        out,
        "    {} / PFN_{}({}) -> {};",
        f.name,
        f.name,
        params.join(", "),
        rust_type(lib, &f.ret)
    );
}

fn entry_points(out: &mut String, lib: &LibraryApi) {
    let n = lib.entry_points.len();
    let _ = write!(
        out,
        "\n/// Every exported symbol, sorted by base name, stream mode and version: the candidates of `cuGetProcAddress`.\n\
         #[rustfmt::skip]\n\
         pub static ENTRY_POINTS: [EntryPoint; {n}] = [\n"
    );
    for e in &lib.entry_points {
        let _ = writeln!(
            out,
            "    entry(c\"{}\", c\"{}\", {}, PerThreadVariant::{}),",
            e.base,
            e.symbol,
            e.abi_version,
            mode(e.stream)
        );
    }
    out.push_str(
        "];\n\n\
         const fn entry(base: &'static CStr, symbol: &'static CStr, version: c_int, per_thread: PerThreadVariant) -> EntryPoint {\n\
         EntryPoint { base, symbol, version, per_thread }\n}\n",
    );
}

/// Assertions of every layout computed by libclang.
fn layout(api: &Api) -> String {
    let mut out = format!(
        "//! Sizes, alignments and offsets of the C compiler, asserted at compile time.\n//!\n{HEADER}\n\n\
         use std::mem::{{align_of, offset_of, size_of}};\n\n\
         /// Asserts the size and alignment of a type and the offsets of its members.\n\
         macro_rules! layout {{\n\
         ($($ty:ty: $size:literal / $align:literal {{ $($field:ident @ $offset:literal),* }})*) => {{$(\n\
         const _: () = {{\n\
         assert!(size_of::<$ty>() == $size);\n\
         assert!(align_of::<$ty>() == $align);\n\
         $(assert!(offset_of!($ty, $field) == $offset);)*\n\
         }};\n\
         )*}};\n}}\n\n"
    );
    for lib in api.libraries.iter().filter(|l| !l.records.is_empty()) {
        let _ = writeln!(
            out,
            "mod {} {{\n    use super::super::{}::*;\n    use super::*;\n    layout! {{",
            lib.name, lib.name
        );
        for r in &lib.records {
            let fields: Vec<String> = r
                .fields
                .iter()
                .map(|f| format!("{} @ {}", ident(&f.name), f.offset))
                .collect();
            let _ = writeln!(
                out,
                "        {}: {} / {} {{ {} }}",
                r.name,
                r.size,
                r.align,
                fields.join(", ")
            );
        }
        out.push_str("    }\n}\n");
    }
    out
}
