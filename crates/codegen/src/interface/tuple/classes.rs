//! Derives classes, enums and constants of the Python half from the C half and the overlay.

use std::collections::{BTreeMap, HashMap};

use crate::interface::overlay::{MemberOverlay, Overlay, listed};
use crate::interface::tuple::functions::{custom, element, element_name};
use crate::interface::tuple::nature::{Nature, nature};
use crate::ir::{
    AttrKind, Builtin, ClassKind, Element, LibraryApi, PyAttr, PyClass, PyConstant, PyEnum,
    PyModule, Record, Type,
};

/// Fills in `LibraryApi::python` and the library's status.
///
/// # Errors
///
/// A member is covered by neither a rule nor the overlay, or an overlay entry has no counterpart.
pub fn module(lib: &mut LibraryApi, overlay: &Overlay) -> Result<(), String> {
    lib.status_enum = overlay.library.status.clone();
    lib.success = overlay.library.success.clone();
    let names = Names::new(lib, overlay);
    let mut classes = Vec::new();
    let mut used: Vec<&str> = Vec::new();
    let mut errors = Vec::new();
    for r in lib.records.iter().filter(|r| names.is_exposed(r)) {
        let class = names.class_of(r).to_owned();
        let entry = overlay.classes.get_key_value(&class);
        if let Some((key, _)) = entry {
            used.push(key);
        }
        match record_class(lib, overlay, &names, r, &class, entry.map(|(_, e)| e)) {
            Ok(class) => classes.push(class),
            Err(e) => errors.push(format!("class {class}: {e}")),
        }
    }
    if !errors.is_empty() {
        return Err(errors.join("\n"));
    }
    if let Some(stray) = overlay.classes.keys().find(|k| !used.contains(&k.as_str())) {
        return Err(format!("overlay of {}: no class {stray}", lib.name));
    }
    for t in &lib.typedefs {
        let hidden = listed(&overlay.library.hide_types, &t.name)
            || !t.majors.contains(&overlay.library.major)
            || t.name.ends_with("_cuda12")
            || overlay.enum_copies.contains_key(&t.name);
        if !hidden && let Some(class) = typedef_class(lib, overlay, &t.name, &t.ty) {
            classes.push(class);
        }
    }
    if let Some(stray) = overlay
        .bases
        .keys()
        .find(|k| classes.iter().all(|c| c.name != **k))
    {
        return Err(format!("overlay of {}: no class {stray}", lib.name));
    }
    for (name, what) in &overlay.other_classes {
        classes.push(PyClass {
            name: name.clone(),
            base: None,
            kind: ClassKind::Other { what: what.clone() },
            size: 0,
            no_args: true,
            attrs: Vec::new(),
            dunders: Vec::new(),
            methods: Vec::new(),
            ones: Vec::new(),
        });
    }
    lib.python = PyModule {
        style: overlay.library.style,
        name: overlay.library.python.clone(),
        errors: None,
        exceptions: Vec::new(),
        aliases: Vec::new(),
        dtypes: Vec::new(),
        functions: custom(lib, overlay)?,
        classes,
        enums: enums(lib, overlay)?,
        constants: lib
            .constants
            .iter()
            .filter(|c| {
                c.majors.contains(&overlay.library.major)
                    && !listed(&overlay.library.hide_types, &c.name)
            })
            .map(|c| PyConstant {
                name: c.name.clone(),
                value: c.value,
            })
            .collect(),
    };
    Ok(())
}

fn enums(lib: &LibraryApi, overlay: &Overlay) -> Result<Vec<PyEnum>, String> {
    let major = overlay.library.major;
    let members = |name: &str| -> Result<Vec<(String, i64)>, String> {
        let e = lib
            .enumeration(name)
            .ok_or_else(|| format!("no enum {name}"))?;
        Ok(e.members
            .iter()
            .filter(|m| m.majors.contains(&major))
            .map(|m| (m.name.clone(), m.value))
            .collect())
    };
    let exposed = lib
        .enums
        .iter()
        .filter(|e| e.majors.contains(&major) && !listed(&overlay.library.hide_types, &e.name));
    let mut out: BTreeMap<String, Vec<(String, i64)>> = BTreeMap::new();
    for e in exposed {
        out.insert(e.name.clone(), members(&e.name)?);
    }
    for (copy, of) in &overlay.enum_copies {
        out.insert(copy.clone(), members(of)?);
    }
    Ok(out
        .into_iter()
        .map(|(name, members)| PyEnum {
            name,
            base: "FastEnum".to_owned(),
            members,
            aliases: Vec::new(),
            c_type: None,
            unsigned: false,
        })
        .collect())
}

/// The records that are classes, with their names. Types of named members without a tag are numbered in declaration
/// order, structs and unions separately. Unnamed members are numbered too but are not classes: their members belong
/// to the enclosing class.
struct Names {
    anonymous: HashMap<String, String>,
    hidden: Vec<String>,
    major: u32,
}

impl Names {
    fn new(lib: &LibraryApi, overlay: &Overlay) -> Names {
        let major = overlay.library.major;
        let mut anonymous = HashMap::new();
        let (mut structs, mut unions) = (0, 0);
        for r in &lib.records {
            if r.parent.is_none() || !r.majors.contains(&major) {
                continue;
            }
            let name = if r.union {
                unions += 1;
                format!("anon_union{}", unions - 1)
            } else {
                structs += 1;
                format!("anon_struct{}", structs - 1)
            };
            anonymous.insert(r.name.clone(), name);
        }
        let hidden = lib
            .records
            .iter()
            .filter(|r| listed(&overlay.library.hide_types, &r.name))
            .map(|r| r.name.clone())
            .collect();
        Names {
            anonymous,
            hidden,
            major,
        }
    }

    fn is_exposed(&self, r: &Record) -> bool {
        let nameless = r
            .parent
            .as_ref()
            .is_some_and(|(_, member)| member.is_empty());
        r.majors.contains(&self.major)
            && !nameless
            && !self.hidden.contains(&r.name)
            && !r.name.ends_with("_cuda12")
    }

    fn class_of<'a>(&'a self, r: &'a Record) -> &'a str {
        self.anonymous.get(&r.name).unwrap_or(&r.name)
    }
}

fn dunders(overlay: &Overlay, name: &str, rule: &[&str]) -> Vec<String> {
    match overlay.dunders.get(name) {
        Some(list) => list.clone(),
        None => rule.iter().map(|d| (*d).to_owned()).collect(),
    }
}

fn record_class(
    lib: &LibraryApi,
    overlay: &Overlay,
    names: &Names,
    r: &Record,
    class: &str,
    entry: Option<&BTreeMap<String, MemberOverlay>>,
) -> Result<PyClass, String> {
    let mut attrs = Vec::new();
    let empty = BTreeMap::new();
    let entry = entry.unwrap_or(&empty);
    collect(lib, overlay, names, r, 0, entry, &mut attrs)?;
    if let Some(stray) = entry.keys().find(|k| {
        attrs.iter().all(|a: &PyAttr| a.name != **k) && entry[*k].kind.as_deref() != Some("hidden")
    }) {
        return Err(format!(
            "the overlay describes {stray}, which is not a member"
        ));
    }
    // The member with the number of elements may follow the list.
    let places: HashMap<String, (usize, usize)> = attrs
        .iter()
        .filter_map(|a| match a.kind {
            AttrKind::Int { builtin } => Some((a.name.clone(), (a.offset, builtin.size()))),
            _ => None,
        })
        .collect();
    for a in &mut attrs {
        if let AttrKind::List {
            count: Some(count),
            count_at,
            ..
        } = &mut a.kind
        {
            *count_at = Some(
                *places
                    .get(count.as_str())
                    .ok_or_else(|| format!("{}: no member {count}", a.name))?,
            );
        }
    }
    attrs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(PyClass {
        name: class.to_owned(),
        base: None,
        kind: ClassKind::Record {
            record: r.name.clone(),
        },
        size: r.size,
        no_args: r.parent.is_none() && !r.nested,
        attrs,
        dunders: dunders(overlay, class, &["__repr__"]),
        methods: overlay.methods.get(class).cloned().unwrap_or_default(),
        ones: if overlay.ones.iter().any(|name| name == class) {
            ones(r)
        } else {
            Vec::new()
        },
    })
}

/// Offsets of the words of a record's `dim3` members.
fn ones(r: &Record) -> Vec<usize> {
    let three = |at: usize| [at, at + 4, at + 8];
    if r.name == "dim3" {
        return three(0).to_vec();
    }
    let dims =
        (r.fields.iter()).filter(|f| matches!(&f.ty, Type::Named { name } if name == "dim3"));
    dims.flat_map(|f| three(f.offset)).collect()
}

/// The members of a record and of its nameless members.
fn collect(
    lib: &LibraryApi,
    overlay: &Overlay,
    names: &Names,
    r: &Record,
    base: usize,
    entry: &BTreeMap<String, MemberOverlay>,
    attrs: &mut Vec<PyAttr>,
) -> Result<(), String> {
    for f in &r.fields {
        let offset = base + f.offset;
        if f.anonymous {
            let Type::Named { name } = &f.ty else {
                return Err(format!(
                    "{}: a nameless member that is not a record",
                    f.name
                ));
            };
            let inner = lib
                .record(name)
                .ok_or_else(|| format!("no record {name}"))?;
            collect(lib, overlay, names, inner, offset, entry, attrs)?;
            continue;
        }
        let none = MemberOverlay::default();
        let o = entry.get(&f.name).unwrap_or(&none);
        let hidden = match o.kind.as_deref() {
            Some("hidden") => true,
            Some("shown") => false,
            _ => listed(&overlay.members.hide, &f.name),
        };
        if hidden {
            continue;
        }
        let (kind, doc_type) =
            attribute(lib, names, &f.ty, o).map_err(|e| format!("{}: {e}", f.name))?;
        attrs.push(PyAttr {
            name: f.name.clone(),
            offset,
            kind,
            settable: o.settable.unwrap_or(true),
            doc_type,
        });
    }
    Ok(())
}

fn attribute(
    lib: &LibraryApi,
    names: &Names,
    ty: &Type,
    o: &MemberOverlay,
) -> Result<(AttrKind, String), String> {
    match ty {
        Type::Builtin { builtin } if builtin.is_float() => {
            Ok((AttrKind::Float { builtin: *builtin }, "float".to_owned()))
        }
        Type::Builtin { builtin } => {
            let doc = match builtin {
                Builtin::Char | Builtin::SChar | Builtin::UChar => "bytes",
                other => other.c_name(),
            };
            Ok((AttrKind::Int { builtin: *builtin }, doc.to_owned()))
        }
        Type::Named { name } => {
            let kind = match nature(lib, name) {
                Some(Nature::Enum) => AttrKind::Enum { name: name.clone() },
                Some(Nature::Handle) => AttrKind::Handle {
                    class: name.clone(),
                    size: 8,
                },
                Some(Nature::Integer(b)) => AttrKind::Handle {
                    class: name.clone(),
                    size: b.size(),
                },
                Some(Nature::Callback) => AttrKind::Callback {
                    class: name.clone(),
                },
                Some(Nature::Struct(size)) => {
                    let class = match lib.record(name) {
                        Some(r) => names.class_of(r).to_owned(),
                        None => name.clone(),
                    };
                    AttrKind::View { class, size }
                }
                None => return Err(format!("no class {name}")),
            };
            let doc = match &kind {
                AttrKind::View { class, .. } => class.clone(),
                _ => name.clone(),
            };
            Ok((kind, doc))
        }
        Type::Array { len, .. } if o.kind.as_deref() == Some("chars") => {
            Ok((AttrKind::Chars { len: *len }, "bytes".to_owned()))
        }
        Type::Array { of, len } => match &**of {
            Type::Builtin {
                builtin: Builtin::Char | Builtin::SChar | Builtin::UChar,
            } => Ok((AttrKind::Bytes { len: *len }, "bytes".to_owned())),
            of => {
                let of = element(lib, of)?;
                let doc = format!("list[{}]", element_name(&of));
                Ok((AttrKind::Array { of, len: *len }, doc))
            }
        },
        Type::Pointer { to, .. } => pointer(lib, to, o),
        other => Err(format!("a member of type {other:?}")),
    }
}

fn pointer(lib: &LibraryApi, to: &Type, o: &MemberOverlay) -> Result<(AttrKind, String), String> {
    let doc = match to {
        Type::Void | Type::Pointer { .. } => {
            let mut inner = to;
            while let Type::Pointer { to, .. } = inner {
                inner = to;
            }
            match inner {
                Type::Named { name } => name.clone(),
                _ => "Any".to_owned(),
            }
        }
        Type::Builtin {
            builtin: Builtin::Char,
        } => "bytes".to_owned(),
        Type::Builtin { builtin } => builtin.c_name().to_owned(),
        Type::Named { name } => name.clone(),
        other => return Err(format!("a pointer to {other:?}")),
    };
    let kind = match (o.kind.as_deref(), to) {
        (Some("int"), _) => AttrKind::Int {
            builtin: Builtin::ULong,
        },
        (Some("kernel_params"), _) => AttrKind::KernelParams,
        (Some("void"), _) | (None, Type::Void) => AttrKind::VoidPtr,
        (
            None,
            Type::Builtin {
                builtin: Builtin::Char,
            },
        ) => AttrKind::CString,
        (Some("pointer"), to) => match element(lib, to)? {
            Element::Handle { class, size } | Element::Struct { class, size } => {
                AttrKind::PointerTo { class, size }
            }
            other => return Err(format!("a pointer to {other:?}")),
        },
        (Some("list"), to) => AttrKind::List {
            of: element(lib, to)?,
            count: o.count.clone(),
            count_at: None,
        },
        _ => {
            return Err(
                "a pointer needs kind = list, pointer, void, int or kernel_params".to_owned(),
            );
        }
    };
    Ok((kind, doc))
}

fn typedef_class(lib: &LibraryApi, overlay: &Overlay, name: &str, ty: &Type) -> Option<PyClass> {
    let class = |base, kind, size, rule: &[&str]| PyClass {
        name: name.to_owned(),
        base,
        kind,
        size,
        no_args: true,
        attrs: Vec::new(),
        dunders: dunders(overlay, name, rule),
        methods: Vec::new(),
        ones: Vec::new(),
    };
    match nature(lib, name)? {
        Nature::Enum => None,
        Nature::Struct(size) => {
            let Type::Named { name: base } = ty else {
                return None;
            };
            let mut target = base.as_str();
            while let Some(Type::Named { name }) = lib.typedef(target).map(|t| &t.ty) {
                target = name;
            }
            let record = target.to_owned();
            Some(class(
                Some(base.clone()),
                ClassKind::Record { record },
                size,
                &[],
            ))
        }
        // A derived class inherits everything from its base.
        Nature::Handle if overlay.bases.contains_key(name) => Some(class(
            overlay.bases.get(name).cloned(),
            ClassKind::Handle,
            8,
            &[],
        )),
        Nature::Handle => {
            const RULE: &[&str] = &["__eq__", "__hash__", "__index__", "__int__", "__repr__"];
            Some(class(None, ClassKind::Handle, 8, RULE))
        }
        Nature::Integer(builtin) => {
            let size = builtin.size();
            Some(class(
                None,
                ClassKind::Integer { builtin },
                size,
                &["__int__", "__repr__"],
            ))
        }
        Nature::Callback => {
            const RULE: &[&str] = &["__index__", "__int__", "__repr__"];
            Some(class(None, ClassKind::Callback, 8, RULE))
        }
    }
}
