//! Struct classes of the modules whose functions raise.
//!
//! The overlay lists the structs that Python exposes: `single` for classes of one struct, `array` for classes of any
//! number, like a NumPy record array. Members become attributes with C's names in snake_case, in C's order. Members
//! that the overlay marks as a count or `hidden` appear only in the NumPy type.

use std::collections::{BTreeMap, HashMap};

use crate::interface::overlay::{MemberOverlay, Overlay, listed};
use crate::interface::raising::enums;
use crate::ir::{
    AttrKind, Builtin, ClassKind, Field, LibraryApi, PyAttr, PyClass, PyModule, Record, Type,
};
use crate::naming;

/// Fills in `LibraryApi::python`, except for the functions, and the library's status.
///
/// # Errors
///
/// A member is covered by neither a rule nor the overlay, or an overlay entry has no counterpart.
pub fn module(lib: &mut LibraryApi, overlay: &Overlay) -> Result<(), String> {
    lib.status_enum = overlay.library.status.clone();
    lib.success = overlay.library.success.clone();
    let classes = classes(lib, overlay)?;
    let enums = enums::enums(lib, overlay)?;
    let (errors, exceptions, mut aliases) = enums::exceptions(lib, overlay, &enums)?;
    for (name, target) in &overlay.aliases {
        aliases.push((name.clone(), target.clone()));
    }
    aliases.sort();
    let mut dtypes: Vec<(String, String)> = classes
        .iter()
        .map(|c| {
            let rule = || format!("{}_dtype", snake(&c.name));
            let name = overlay.types.dtypes.get(&c.name).cloned();
            (name.unwrap_or_else(rule), c.name.clone())
        })
        .collect();
    dtypes.sort();
    lib.python = PyModule {
        name: overlay.library.python.clone(),
        style: overlay.library.style,
        errors: Some(errors),
        exceptions,
        aliases,
        dtypes,
        functions: Vec::new(),
        classes,
        enums,
        constants: enums::constants(lib, overlay)?,
    };
    Ok(())
}

/// `gpuInstanceId` is `gpu_instance_id`, `maxMHz` is `max_m_hz`.
fn snake(camel: &str) -> String {
    naming::snake_case(camel, &[])
}

/// Class names by IR name of the record.
fn class_names(
    lib: &LibraryApi,
    overlay: &Overlay,
) -> Result<HashMap<String, (String, bool)>, String> {
    let rules = &overlay.types;
    let mut out: HashMap<String, (String, bool)> = HashMap::new();
    let exposed =
        (rules.single.iter().map(|n| (n, false))).chain(rules.array.iter().map(|n| (n, true)));
    for (name, array) in exposed {
        let candidates = match rules.c_names.get(name) {
            Some(c) => vec![c.clone()],
            None => vec![
                format!("{}{name}_t", rules.prefix),
                format!("{}{name}", rules.prefix),
            ],
        };
        let record = candidates
            .iter()
            .find_map(|c| record(lib, c))
            .ok_or_else(|| {
                format!(
                    "overlay of {}: class {name}: no C type {}",
                    lib.name,
                    candidates.join(" or ")
                )
            })?;
        if let Some((other, _)) = out.insert(record.name.clone(), (name.clone(), array)) {
            return Err(format!(
                "overlay of {}: {other} and {name} are one C type",
                lib.name
            ));
        }
    }
    for (c, number) in &rules.anonymous {
        let stray = || format!("overlay of {}: anonymous: no {c}", lib.name);
        let r = lib.record(c).ok_or_else(stray)?;
        let (parent, member) = r.parent.as_ref().ok_or_else(stray)?;
        let parent = lib.record(parent).ok_or_else(stray)?;
        let field = parent
            .fields
            .iter()
            .find(|f| f.name == *member)
            .ok_or_else(stray)?;
        let array = matches!(field.ty, Type::Array { .. });
        out.insert(c.clone(), (format!("_py_anon_pod{number}"), array));
    }
    Ok(out)
}

/// The record that a name denotes, through typedefs.
pub fn record<'a>(lib: &'a LibraryApi, name: &str) -> Option<&'a Record> {
    let named = Type::Named {
        name: name.to_owned(),
    };
    match lib.resolve(&named) {
        Type::Named { name } => lib.record(name),
        _ => None,
    }
}

/// The Python name of a C struct's class, if the overlay lists it.
pub fn class_of(lib: &LibraryApi, overlay: &Overlay, c_name: &str) -> Option<String> {
    let r = record(lib, c_name)?;
    let names = class_names(lib, overlay).ok()?;
    names.get(&r.name).map(|(name, _)| name.clone())
}

fn classes(lib: &LibraryApi, overlay: &Overlay) -> Result<Vec<PyClass>, String> {
    let names = class_names(lib, overlay)?;
    let mut out = Vec::new();
    let mut errors = Vec::new();
    for r in &lib.records {
        let Some((name, array)) = names.get(&r.name) else {
            continue;
        };
        match class(lib, overlay, &names, r, name, *array) {
            Ok(class) => out.push(class),
            Err(e) => errors.push(format!("{} class {name}: {e}", lib.name)),
        }
    }
    if let Some(stray) = (overlay.classes.keys()).find(|k| out.iter().all(|c| c.name != **k)) {
        errors.push(format!("overlay of {}: no class {stray}", lib.name));
    }
    if errors.is_empty() {
        Ok(out)
    } else {
        Err(errors.join("\n"))
    }
}

/// The additional attributes of an array class.
fn dunders(array: bool) -> Vec<String> {
    let mut all = vec!["__eq__", "__int__", "__repr__", "__setitem__"];
    if array {
        all.extend(["__getitem__", "__len__"]);
        all.sort_unstable();
    }
    all.into_iter().map(str::to_owned).collect()
}

fn class(
    lib: &LibraryApi,
    overlay: &Overlay,
    names: &HashMap<String, (String, bool)>,
    r: &Record,
    name: &str,
    array: bool,
) -> Result<PyClass, String> {
    let empty = BTreeMap::new();
    let entry = overlay.classes.get(name).unwrap_or(&empty);
    let own = members(lib, r);
    if let Some(stray) = (entry.keys()).find(|k| own.iter().all(|(f, _)| f.name != **k)) {
        return Err(format!(
            "the overlay describes {stray}, which is not a member"
        ));
    }
    let counts: Vec<&str> = entry.values().filter_map(|o| o.count.as_deref()).collect();
    let none = MemberOverlay::default();
    let mut attrs = Vec::new();
    for (f, offset) in members(lib, r) {
        let o = entry.get(&f.name).unwrap_or(&none);
        if o.kind.as_deref() == Some("absent") {
            continue;
        }
        let hidden = counts.contains(&f.name.as_str())
            || o.kind.as_deref() == Some("hidden")
            || o.kind.is_none() && listed(&overlay.members.hide, &f.name);
        let member = Member {
            lib,
            names,
            r,
            f,
            o,
            array,
            views: overlay.types.views,
        };
        let (kind, doc_type) = if hidden {
            member.hidden()
        } else {
            member.python_attribute()
        }
        .map_err(|e| format!("{}: {e}", f.name))?;
        let mut python = o.name.clone().unwrap_or_else(|| snake(&f.name));
        if overlay.types.underscored.contains(&python) {
            python.push('_');
        }
        // Array classes return their nested structs, but do not accept them.
        let settable = !(hidden || array && matches!(kind, AttrKind::BufferStructs { .. }));
        attrs.push(PyAttr {
            name: python,
            offset,
            kind,
            settable: o.settable.unwrap_or(settable),
            doc_type,
        });
    }
    Ok(PyClass {
        ones: Vec::new(),
        name: name.to_owned(),
        base: None,
        kind: ClassKind::BufferStruct {
            record: r.name.clone(),
            array,
        },
        size: r.size,
        no_args: true,
        attrs,
        dunders: dunders(array),
        methods: ["from_buffer", "from_data", "from_ptr"]
            .map(str::to_owned)
            .to_vec(),
    })
}

/// The members of a record with their offsets, those of nameless inner records included.
fn members<'a>(lib: &'a LibraryApi, r: &'a Record) -> Vec<(&'a Field, usize)> {
    let mut out = Vec::new();
    for f in &r.fields {
        let inner = match &f.ty {
            Type::Named { name } if f.anonymous => lib.record(name),
            _ => None,
        };
        match inner {
            Some(inner) => {
                let within = members(lib, inner).into_iter();
                out.extend(within.map(|(m, offset)| (m, f.offset + offset)));
            }
            None => out.push((f, f.offset)),
        }
    }
    out
}

struct Member<'a> {
    lib: &'a LibraryApi,
    names: &'a HashMap<String, (String, bool)>,
    r: &'a Record,
    f: &'a Field,
    o: &'a MemberOverlay,
    array: bool,
    /// Whether array classes show nested structs as their class.
    views: bool,
}

/// NumPy's name of a C number.
pub fn numpy(builtin: Builtin) -> &'static str {
    match (builtin.is_float(), builtin.size(), builtin.is_signed()) {
        (true, 4, _) => "float32",
        (true, _, _) => "float64",
        (_, 1, true) => "int8",
        (_, 1, false) => "uint8",
        (_, 2, true) => "int16",
        (_, 2, false) => "uint16",
        (_, 4, true) => "int32",
        (_, 4, false) => "uint32",
        (_, _, true) => "int64",
        (_, _, false) => "uint64",
    }
}

impl Member<'_> {
    /// A number's C type; enums are `int`.
    fn number(&self, ty: &Type) -> Option<Builtin> {
        match self.lib.resolve(ty) {
            Type::Builtin { builtin } => Some(*builtin),
            Type::Named { name } if self.lib.enumeration(name).is_some() => Some(Builtin::Int),
            _ => None,
        }
    }

    /// A struct's class, and whether it is an array class.
    fn class(&self, ty: &Type) -> Result<Option<(String, bool)>, String> {
        let Type::Named { name } = self.lib.resolve(ty) else {
            return Ok(None);
        };
        if self.lib.record(name).is_none() {
            return Ok(None);
        }
        match self.names.get(name) {
            Some(found) => Ok(Some(found.clone())),
            None => Err(format!(
                "the struct {name} has no class: list it in [types]"
            )),
        }
    }

    /// Offset and size of the member with the number of elements.
    fn count(&self) -> Result<Option<(usize, usize)>, String> {
        let Some(name) = &self.o.count else {
            return Ok(None);
        };
        let f = self.r.fields.iter().find(|f| f.name == *name);
        f.map(|f| Some((f.offset, f.size)))
            .ok_or_else(|| format!("count = {name:?} is not a member"))
    }

    fn hidden(&self) -> Result<(AttrKind, String), String> {
        let (of, len) = match self.lib.resolve(&self.f.ty) {
            Type::Array { of, len } => (&**of, *len),
            _ => (&self.f.ty, 0),
        };
        if let (Some((class, _)), 0) = (self.class(of)?, len) {
            return Ok((
                AttrKind::HiddenStruct {
                    class: class.clone(),
                },
                class,
            ));
        }
        let builtin = match self.lib.resolve(of) {
            Type::Pointer { .. } => Builtin::LongLong,
            _ => self.number(of).ok_or("only numbers can be hidden")?,
        };
        Ok((AttrKind::Hidden { builtin, len }, numpy(builtin).to_owned()))
    }

    fn python_attribute(&self) -> Result<(AttrKind, String), String> {
        if self.f.bits.is_some() {
            return Err("a bit-field".to_owned());
        }
        let ty = self.lib.resolve(&self.f.ty);
        if let Some(builtin) = self.number(ty) {
            return Ok(if builtin.is_float() {
                (AttrKind::Float { builtin }, "float".to_owned())
            } else if self.o.kind.as_deref() == Some("long") {
                (AttrKind::Long { builtin }, "int".to_owned())
            } else {
                (AttrKind::Int { builtin }, "int".to_owned())
            });
        }
        if let Some((class, _)) = self.class(ty)? {
            return Ok(if self.array && !self.views {
                let doc = format!("record array of {class}");
                (AttrKind::Nested { class, len: 0 }, doc)
            } else {
                (
                    AttrKind::BufferStruct {
                        class: class.clone(),
                    },
                    class,
                )
            });
        }
        match ty {
            Type::Array { of, len } => self.inside(of, *len),
            Type::Pointer { to, .. } => self.pointer(to),
            other => Err(format!("a member of type {other:?}")),
        }
    }

    /// An array within the struct.
    fn inside(&self, of: &Type, len: usize) -> Result<(AttrKind, String), String> {
        let count_at = self.count()?;
        if let Some((class, _)) = self.class(of)? {
            return Ok(if self.array && count_at.is_none() {
                let doc = format!("record array of {class}");
                (AttrKind::Nested { class, len }, doc)
            } else {
                let doc = class.clone();
                (
                    AttrKind::BufferStructs {
                        class,
                        max: len,
                        count_at,
                    },
                    doc,
                )
            });
        }
        let builtin = self
            .number(of)
            .ok_or_else(|| format!("an array of {of:?}"))?;
        if builtin == Builtin::Char && self.o.kind.as_deref() == Some("bytes") {
            return Ok((AttrKind::Bytes { len }, "bytes".to_owned()));
        }
        if builtin == Builtin::Char && !self.array {
            return Ok((AttrKind::Str { len }, "str".to_owned()));
        }
        let doc = format!("ndarray of {}", numpy(builtin));
        Ok(match count_at {
            Some(count_at) => (
                AttrKind::Counted {
                    builtin,
                    max: len,
                    count_at,
                },
                doc,
            ),
            None => (AttrKind::Fixed { builtin, len }, doc),
        })
    }

    fn pointer(&self, to: &Type) -> Result<(AttrKind, String), String> {
        let Some(count_at) = self.count()? else {
            let text = matches!(
                to,
                Type::Builtin {
                    builtin: Builtin::Char
                }
            ) && !self.array;
            return Ok(if text {
                (AttrKind::Text, "str".to_owned())
            } else {
                (AttrKind::Address, "int".to_owned())
            });
        };
        if self.array {
            return Err("the class of an array cannot own what a pointer points to".to_owned());
        }
        if let Some((class, _)) = self.class(to)? {
            let doc = class.clone();
            return Ok((AttrKind::PointerStructs { class, count_at }, doc));
        }
        if let Some(builtin) = self.number(to) {
            let doc = format!("ndarray of {}", numpy(builtin));
            return Ok((AttrKind::PointerInts { builtin, count_at }, doc));
        }
        match self.lib.resolve(to) {
            Type::Pointer { .. } => Ok((
                AttrKind::PointerSlice { count_at },
                "array of addresses".to_owned(),
            )),
            other => Err(format!("a counted pointer to {other:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snake_case() {
        for (camel, want) in [
            ("gpuInstanceId", "gpu_instance_id"),
            ("clockOffsetMHz", "clock_offset_m_hz"),
            ("bar1Free", "bar1_free"),
            ("DlaSWVersion", "dla_sw_version"),
            ("vgpuSchedDataWithARR", "vgpu_sched_data_with_arr"),
            ("FBCSessionInfo", "fbc_session_info"),
            (
                "PwrModelMetricsDlppm1xPerf",
                "pwr_model_metrics_dlppm1x_perf",
            ),
            ("ProcessUtilizationInfo_v1", "process_utilization_info_v1"),
            ("busId", "bus_id"),
        ] {
            assert_eq!(snake(camel), want);
        }
    }
}
