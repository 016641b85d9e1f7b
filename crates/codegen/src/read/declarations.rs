//! One translation unit of headers to declarations.
//!
//! The result describes one header set in one configuration; [`crate::read::merge`] joins configurations and CUDA
//! majors into the IR.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use clang::{Clang, Entity, EntityKind, Index, Type as CType, TypeKind};

use crate::ir::{Builtin, Enum, EnumMember, Field, Record, Spelled, Type, TypeName, Typedef};
use crate::read::libclang::{EntityExt, TypeExt, parse};

/// A function declaration.
#[derive(Clone, Debug)]
pub struct Prototype {
    /// Exported symbol (macros already applied by the preprocessor).
    pub symbol: String,
    /// Return type.
    pub ret: Type,
    /// Parameter names and types, arrays decayed.
    pub params: Vec<(String, Type)>,
    /// Header.
    pub header: String,
    /// Canonical C spelling of the function type, for comparisons.
    pub canonical: String,
    /// The result, then the parameters, as spelled.
    pub spelled: Vec<Spelled>,
}

/// An object-like macro: its name and the tokens of its body.
#[derive(Clone, Debug)]
pub struct Macro {
    /// Name.
    pub name: String,
    /// Body.
    pub body: Vec<String>,
}

/// A `PFN_name_vVERSION[_ptds|_ptsz]` typedef.
#[derive(Clone, Debug)]
pub struct Pfn {
    /// `cuMemAlloc`
    pub base: String,
    /// 3020
    pub version: u32,
    /// `""`, `_ptds` or `_ptsz`.
    pub suffix: String,
    /// Canonical C spelling of the function type.
    pub canonical: String,
}

/// The result of one parse.
#[derive(Clone, Debug, Default)]
pub struct Declarations {
    /// Functions by symbol, first declaration each, in order.
    pub functions: Vec<Prototype>,
    /// Records, members before containers.
    pub records: Vec<Record>,
    /// Tags without a definition.
    pub opaques: Vec<String>,
    /// Enums.
    pub enums: Vec<Enum>,
    /// Typedefs.
    pub typedefs: Vec<Typedef>,
    /// Object-like macros.
    pub macros: Vec<Macro>,
    /// Function pointer typedefs of the `*Typedefs.h` headers.
    pub pfns: Vec<Pfn>,
    /// Names of types.
    pub type_names: BTreeMap<String, TypeName>,
}

/// Input of [`read`].
pub struct Request<'a> {
    /// Names to `#include`, in order.
    pub includes: &'a [&'a str],
    /// Include directories, in order.
    pub dirs: &'a [&'a Path],
    /// Macro definitions (`NAME` or `NAME=VALUE`).
    pub defines: &'a [&'a str],
    /// Selects the files whose declarations are kept; the others only supply types such as `size_t`.
    pub wanted: &'a dyn Fn(&str) -> bool,
    /// Folder for the generated source file.
    pub scratch: &'a Path,
    /// CUDA major, for the `majors` fields.
    pub major: u32,
}

/// Parses the headers.
///
/// # Errors
///
/// libclang's diagnostics, or an unsupported construct.
pub fn read(clang: &Clang, request: &Request<'_>) -> Result<Declarations, String> {
    let text: String = request
        .includes
        .iter()
        .map(|i| format!("#include <{i}>\n"))
        .collect();
    std::fs::create_dir_all(request.scratch).map_err(|e| e.to_string())?;
    // A unique name, so that concurrent runs do not interfere.
    let main = request
        .scratch
        .join(format!("unit-{}.h", std::process::id()));
    std::fs::write(&main, text).map_err(|e| format!("{}: {e}", main.display()))?;
    let mut args = vec![
        "-xc".to_owned(),
        "-std=c11".to_owned(),
        "-nostdinc".to_owned(),
        "--target=x86_64-unknown-linux-gnu".to_owned(),
    ];
    args.extend(
        request
            .dirs
            .iter()
            .map(|d| format!("-isystem{}", d.display())),
    );
    args.extend(request.defines.iter().map(|d| format!("-D{d}")));
    let index = Index::new(clang, false, false);
    let unit = parse(&index, &main, &args);
    // A leftover file is harmless.
    let _ = std::fs::remove_file(&main);
    let unit = unit?;
    let cursors = unit.get_entity().get_children();
    let mut reader = Reader {
        major: request.major,
        out: Declarations::default(),
        enum_names: HashMap::new(),
        nameless: Vec::new(),
        defined: Default::default(),
    };
    reader.name_types(&cursors);
    let mut functions: BTreeMap<String, ()> = BTreeMap::new();
    for c in &cursors {
        let file = c.file_name();
        let is_typedefs = file.ends_with("Typedefs.h");
        if !is_typedefs && !(request.wanted)(&file) {
            continue;
        }
        match c.get_kind() {
            EntityKind::MacroDefinition if !is_typedefs && !c.is_function_like_macro() => {
                let mut tokens = c.tokens();
                if !tokens.is_empty() {
                    tokens.remove(0);
                }
                reader.out.macros.push(Macro {
                    name: c.name(),
                    body: tokens,
                });
            }
            EntityKind::FunctionDecl if !c.is_static() => {
                let name = c.name();
                if functions.insert(name, ()).is_none() {
                    let f = reader.function(c, &file)?;
                    reader.out.functions.push(f);
                }
            }
            EntityKind::TypedefDecl if is_typedefs => reader.pfn(c),
            EntityKind::TypedefDecl => {
                reader.note_name(c, "", &file);
                reader.typedef(c)?;
            }
            EntityKind::StructDecl | EntityKind::UnionDecl => {
                let union = c.get_kind() == EntityKind::UnionDecl;
                reader.note_name(c, if union { "union " } else { "struct " }, &file);
                reader.record(c)?;
            }
            EntityKind::EnumDecl => {
                reader.note_name(c, "enum ", &file);
                reader.enumeration(c)?;
            }
            _ => {}
        }
    }
    let defined = &reader.defined;
    reader.out.opaques.retain(|o| !defined.contains(o));
    Ok(reader.out)
}

struct Reader<'u> {
    major: u32,
    out: Declarations,
    /// Enum tag to the typedef that names it.
    enum_names: HashMap<String, String>,
    /// Nameless records and their assigned names.
    nameless: Vec<(Entity<'u>, String)>,
    defined: std::collections::BTreeSet<String>,
}

/// libclang spells a nameless declaration as `struct (unnamed at ...)`.
fn is_nameless(name: &str) -> bool {
    name.is_empty() || name.contains(['(', ' '])
}

impl<'u> Reader<'u> {
    fn name_types(&mut self, cursors: &[Entity<'u>]) {
        for c in cursors
            .iter()
            .filter(|c| c.get_kind() == EntityKind::TypedefDecl)
        {
            let ty = c.typedef_underlying().without_elaboration();
            if ty.get_kind() == TypeKind::Enum {
                let tag = ty.declaration().name();
                self.enum_names.entry(tag).or_insert_with(|| c.name());
            }
            if ty.get_kind() == TypeKind::Record && is_nameless(&ty.declaration().name()) {
                self.nameless.push((ty.declaration(), c.name()));
            }
        }
    }

    fn record_name(&self, c: &Entity<'u>) -> Option<String> {
        if let Some((_, name)) = self.nameless.iter().find(|(n, _)| n == c) {
            return Some(name.clone());
        }
        let name = c.name();
        (!is_nameless(&name)).then_some(name)
    }

    /// Records the name of a typedef or tag. A typedef takes precedence over a tag of the same name.
    fn note_name(&mut self, c: &Entity<'u>, keyword: &str, header: &str) {
        let name = c.name();
        if is_nameless(&name) || !keyword.is_empty() && self.out.type_names.contains_key(&name) {
            return;
        }
        let declared = TypeName {
            c_name: format!("{keyword}{name}"),
            header: header.to_owned(),
        };
        self.out.type_names.insert(name, declared);
    }

    /// The type as spelled. `suffix` has what the caller read already.
    fn spelled(&self, ty: CType<'u>, suffix: &str) -> Result<Spelled, String> {
        let suffix = match ty.is_const_qualified() {
            true => format!("const {suffix}"),
            false => suffix.to_owned(),
        };
        let name = match ty.get_kind() {
            TypeKind::Pointer => return self.spelled(ty.pointee(), &format!("*{suffix}")),
            TypeKind::ConstantArray | TypeKind::IncompleteArray => {
                return self.spelled(ty.element(), &format!("*{suffix}"));
            }
            TypeKind::Elaborated | TypeKind::Typedef | TypeKind::Record | TypeKind::Enum => {
                ty.without_elaboration().declaration().name()
            }
            TypeKind::Void => "void".to_owned(),
            _ => match self.ty(ty)? {
                Type::Builtin { builtin } => builtin.c_name().to_owned(),
                _ => ty.spelling(),
            },
        };
        Ok(Spelled { name, suffix })
    }

    fn ty(&self, ty: CType<'u>) -> Result<Type, String> {
        let builtin = |builtin| Ok(Type::Builtin { builtin });
        match ty.get_kind() {
            TypeKind::Void => Ok(Type::Void),
            TypeKind::Bool => builtin(Builtin::Bool),
            TypeKind::CharS | TypeKind::CharU => builtin(Builtin::Char),
            TypeKind::SChar => builtin(Builtin::SChar),
            TypeKind::UChar => builtin(Builtin::UChar),
            TypeKind::Short => builtin(Builtin::Short),
            TypeKind::UShort => builtin(Builtin::UShort),
            TypeKind::Int => builtin(Builtin::Int),
            TypeKind::UInt => builtin(Builtin::UInt),
            TypeKind::Long => builtin(Builtin::Long),
            TypeKind::ULong => builtin(Builtin::ULong),
            TypeKind::LongLong => builtin(Builtin::LongLong),
            TypeKind::ULongLong => builtin(Builtin::ULongLong),
            TypeKind::Float => builtin(Builtin::Float),
            TypeKind::Double => builtin(Builtin::Double),
            TypeKind::Elaborated => self.ty(ty.without_elaboration()),
            TypeKind::Typedef => {
                let name = ty.declaration().name();
                let standard = match name.as_str() {
                    "size_t" => Some(Builtin::SizeT),
                    "int8_t" => Some(Builtin::SChar),
                    "uint8_t" => Some(Builtin::UChar),
                    "int16_t" => Some(Builtin::Short),
                    "uint16_t" => Some(Builtin::UShort),
                    "int32_t" => Some(Builtin::Int),
                    "uint32_t" => Some(Builtin::UInt),
                    "int64_t" => Some(Builtin::Long),
                    "uint64_t" => Some(Builtin::ULong),
                    "ssize_t" | "off_t" => Some(Builtin::Long),
                    "loff_t" => Some(Builtin::LongLong),
                    _ => None,
                };
                match standard {
                    Some(b) => builtin(b),
                    None => Ok(Type::Named { name }),
                }
            }
            TypeKind::Record => {
                let c = ty.declaration();
                let name = self
                    .record_name(&c)
                    .ok_or_else(|| format!("nameless record {}", ty.spelling()))?;
                Ok(Type::Named { name })
            }
            TypeKind::Enum => {
                let tag = ty.declaration().name();
                Ok(Type::Named {
                    name: self.enum_names.get(&tag).cloned().unwrap_or(tag),
                })
            }
            TypeKind::Pointer => {
                let to = ty.pointee();
                Ok(Type::Pointer {
                    is_const: to.is_const_qualified(),
                    to: Box::new(self.ty(to)?),
                })
            }
            TypeKind::ConstantArray => {
                let of = ty.element();
                Ok(Type::Array {
                    of: Box::new(self.ty(of)?),
                    len: ty.get_size().unwrap_or(0),
                })
            }
            TypeKind::IncompleteArray => {
                let of = ty.element();
                Ok(Type::Array {
                    of: Box::new(self.ty(of)?),
                    len: 0,
                })
            }
            TypeKind::FunctionPrototype | TypeKind::FunctionNoPrototype => {
                let ret = ty
                    .get_result_type()
                    .ok_or("a function type without a result")?;
                let params = ty.get_argument_types().unwrap_or_default();
                Ok(Type::Function {
                    ret: Box::new(self.ty(ret)?),
                    params: params
                        .into_iter()
                        .map(|p| self.ty(p))
                        .collect::<Result<_, _>>()?,
                })
            }
            // Parenthesized and attributed types are "unexposed"; their canonical form is equivalent here.
            other => {
                let canonical = ty.get_canonical_type();
                if canonical.get_kind() == other {
                    Err(format!("type kind {other:?}: {}", ty.spelling()))
                } else {
                    self.ty(canonical)
                }
            }
        }
    }

    fn function(&mut self, c: &Entity<'u>, header: &str) -> Result<Prototype, String> {
        let ty = c.ty();
        let ret = ty.get_result_type().ok_or("a function without a result")?;
        let mut params = Vec::new();
        let mut spelled = vec![self.spelled(ret, "")?];
        for a in c.get_arguments().unwrap_or_default() {
            spelled.push(self.spelled(a.ty(), "")?);
            self.note_opaques(&a.ty());
            let ty = match (self.ty(a.ty())?, a.ty().get_kind()) {
                (Type::Array { of, .. }, _) => Type::Pointer {
                    is_const: a.ty().element().is_const_qualified(),
                    to: of,
                },
                (ty, _) => ty,
            };
            params.push((a.name(), ty));
        }
        Ok(Prototype {
            symbol: c.name(),
            ret: self.ty(ret)?,
            params,
            header: header.to_owned(),
            canonical: c.ty().get_canonical_type().spelling(),
            spelled,
        })
    }

    fn pfn(&mut self, c: &Entity<'u>) {
        let name = c.name();
        let Some(rest) = name.strip_prefix("PFN_") else {
            return;
        };
        let (rest, suffix) = ["_ptds", "_ptsz"]
            .into_iter()
            .find_map(|s| rest.strip_suffix(s).map(|r| (r, s)))
            .unwrap_or((rest, ""));
        let Some((base, version)) = rest.rsplit_once("_v") else {
            return; // PFN_x without a version is an alias of the newest
        };
        if let Ok(version) = version.parse() {
            self.out.pfns.push(Pfn {
                base: base.to_owned(),
                version,
                suffix: suffix.to_owned(),
                canonical: c.ty().get_canonical_type().pointee().spelling(),
            });
        }
    }

    fn typedef(&mut self, c: &Entity<'u>) -> Result<(), String> {
        let name = c.name();
        let under = c.typedef_underlying().without_elaboration();
        match under.get_kind() {
            TypeKind::Enum => {
                let tag = under.declaration().name();
                if self.enum_names.get(&tag) == Some(&name) {
                    return Ok(()); // the enum takes this name itself
                }
            }
            TypeKind::Record
                if self.record_name(&under.declaration()).as_deref() == Some(&name) =>
            {
                return Ok(());
            }
            _ => {}
        }
        let ty = self.ty(under)?;
        self.note_opaques(&under);
        if !self.out.typedefs.iter().any(|t| t.name == name) {
            self.out.typedefs.push(Typedef {
                name,
                ty,
                majors: vec![self.major],
            });
        }
        Ok(())
    }

    /// Records the tags of incomplete structs that a typedef points to.
    fn note_opaques(&mut self, ty: &CType<'u>) {
        let mut ty = ty.get_canonical_type();
        while ty.get_kind() == TypeKind::Pointer {
            ty = ty.pointee().get_canonical_type();
        }
        if ty.get_kind() == TypeKind::Record && ty.size().is_none() {
            let name = ty.declaration().name();
            if !is_nameless(&name) && !self.out.opaques.contains(&name) {
                self.out.opaques.push(name);
            }
        }
    }

    fn record(&mut self, c: &Entity<'u>) -> Result<(), String> {
        if !c.is_definition() {
            let name = c.name();
            if !is_nameless(&name) && !self.out.opaques.contains(&name) {
                self.out.opaques.push(name);
            }
            return Ok(());
        }
        match self.record_name(c) {
            Some(name) => self.define(c, &name, None, false),
            None => Ok(()), // a nameless member, defined with its container
        }
    }

    fn define(
        &mut self,
        c: &Entity<'u>,
        name: &str,
        parent: Option<(String, String)>,
        nested: bool,
    ) -> Result<(), String> {
        if !self.defined.insert(name.to_owned()) {
            return Ok(());
        }
        let header = c.file_name();
        let ty = c.ty();
        let mut fields = Vec::new();
        let mut anonymous = 0;
        for f in ty.get_fields().unwrap_or_default() {
            let mut inner = f.ty();
            while inner.get_kind() == TypeKind::ConstantArray {
                inner = inner.element();
            }
            inner = inner.without_elaboration();
            let nameless_field = is_nameless(&f.name());
            let field_name = if nameless_field {
                anonymous += 1;
                format!("anon{}", anonymous - 1)
            } else {
                f.name()
            };
            if inner.get_kind() == TypeKind::Record {
                let d = inner.declaration();
                match self.record_name(&d) {
                    None => {
                        let inner_name = format!("{name}_{field_name}");
                        self.nameless.push((d, inner_name.clone()));
                        let member = if nameless_field {
                            String::new()
                        } else {
                            field_name.clone()
                        };
                        self.define(&d, &inner_name, Some((name.to_owned(), member)), false)?;
                    }
                    // In C, a tagged record defined inside another one has file scope.
                    Some(tag) if d.is_definition() => self.define(&d, &tag, None, true)?,
                    Some(_) => {}
                }
            }
            let bits = f.get_bit_field_width().map(|w| (f.field_offset_bits(), w));
            let size = f.ty().size().unwrap_or(0);
            let offset = match bits {
                Some((at, _)) => at / 8 / size.max(1) * size.max(1),
                None => f.field_offset_bits() / 8,
            };
            fields.push(Field {
                name: field_name,
                anonymous: nameless_field,
                ty: self.ty(f.ty())?,
                offset,
                size,
                bits,
            });
        }
        let c_name = parent.is_none().then(|| {
            let tag = c.name();
            let keyword = if c.get_kind() == EntityKind::UnionDecl {
                "union"
            } else {
                "struct"
            };
            // `typedef struct {..} X;` has no tag, but libclang names it X. Attributes may precede a tag.
            let mut head = c.tokens().into_iter().take_while(|t| t != "{");
            let tagged = !is_nameless(&tag) && head.any(|t| t == tag);
            if tagged {
                format!("{keyword} {tag}")
            } else {
                name.to_owned()
            }
        });
        self.out.records.push(Record {
            name: name.to_owned(),
            c_name,
            union: c.get_kind() == EntityKind::UnionDecl,
            size: ty.size().unwrap_or(0),
            align: ty.get_alignof().unwrap_or(1),
            fields,
            parent,
            nested,
            header,
            majors: vec![self.major],
        });
        Ok(())
    }

    fn enumeration(&mut self, c: &Entity<'u>) -> Result<(), String> {
        if !c.is_definition() {
            return Ok(());
        }
        let tag = c.name();
        let name = self.enum_names.get(&tag).cloned().unwrap_or(tag.clone());
        let underlying = match self.ty(c
            .get_enum_underlying_type()
            .ok_or("an enum without a type")?)?
        {
            Type::Builtin { builtin } => builtin,
            other => return Err(format!("enum {name} of type {other:?}")),
        };
        let value = |m: &Entity<'_>| m.get_enum_constant_value().map_or(0, |(signed, _)| signed);
        let members = c
            .get_children()
            .into_iter()
            .filter(|m| m.get_kind() == EntityKind::EnumConstantDecl)
            .map(|m| EnumMember {
                name: m.name(),
                value: match underlying {
                    // libclang sign-extends: 0x80000000 is not negative in an unsigned enum.
                    Builtin::UInt => i64::from(value(&m) as u32),
                    _ => value(&m),
                },
                majors: vec![self.major],
                value_cuda12: None,
            })
            .collect();
        let tag = (tag != name && !is_nameless(&tag)).then_some(tag);
        if !self.out.enums.iter().any(|e| e.name == name) {
            self.out.enums.push(Enum {
                name,
                tag,
                underlying,
                members,
                majors: vec![self.major],
            });
        }
        Ok(())
    }
}
