//! Compares enums, constants, classes, exceptions, aliases and NumPy types with the manifest.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{differ, keys, names, text};
use crate::interface::raising::structs::{numpy, record};
use crate::ir::{AttrKind, Builtin, ClassKind, LibraryApi, PyClass, PyEnum, Style};

/// An attribute that packages before 13.5 have, and that the overlay keeps for the programs that use it.
const OLDER_ATTRIBUTE: &str = "reserved";

/// Compares everything in a module except its functions.
pub fn compare(lib: &LibraryApi, module: &Value, out: &mut Vec<String>) {
    enums(lib, module, out);
    constants(lib, module, out);
    match lib.python.style {
        Style::Tuple => classes(lib, module, out),
        Style::Raises => {
            buffer_structs(lib, module, out);
            dtypes(lib, module, out);
            exceptions(lib, module, out);
            aliases(lib, module, out);
        }
    }
}

fn enums(lib: &LibraryApi, module: &Value, out: &mut Vec<String>) {
    let ours: BTreeMap<&str, _> = lib
        .python
        .enums
        .iter()
        .map(|e| (e.name.as_str(), e))
        .collect();
    let facts = &module["enums"];
    let what = format!("{} enum", lib.name);
    for name in names(out, &what, ours.keys().copied().collect(), keys(facts)) {
        let mut have: BTreeMap<&str, i64> = ours[name]
            .members
            .iter()
            .map(|(n, v)| (n.as_str(), *v))
            .collect();
        for (alias, target) in &ours[name].aliases {
            have.insert(
                alias,
                have.get(target.as_str()).copied().unwrap_or(i64::MIN),
            );
        }
        let want: BTreeMap<&str, i64> = facts[name]["members"]
            .as_object()
            .map(|o| o.iter().map(|(k, v)| (k.as_str(), whole(v))).collect())
            .unwrap_or_default();
        for (k, v) in &want {
            differ(
                out,
                &format!("{name}.{k}"),
                &format!("{:?}", have.get(k)),
                &format!("{:?}", Some(v)),
            );
        }
        for k in have.keys().filter(|k| !want.contains_key(*k)) {
            out.push(format!("{name}.{k}: not in the facts"));
        }
        let base = text(&facts[name]["base"]).unwrap_or("FastEnum");
        differ(out, &format!("{name} base"), &ours[name].base, base);
        if lib.python.style == Style::Raises {
            second_names(lib, ours[name], &facts[name], out);
        }
    }
}

/// A value as stored in the IR: numbers from 2^63 up as negative 64-bit numbers.
fn whole(v: &Value) -> i64 {
    match (v.as_i64(), v.as_u64()) {
        (Some(v), _) => v,
        (None, Some(v)) => v as i64,
        _ => i64::MIN,
    }
}

fn constants(lib: &LibraryApi, module: &Value, out: &mut Vec<String>) {
    let ours: BTreeMap<&str, i64> = lib
        .python
        .constants
        .iter()
        .map(|c| (c.name.as_str(), c.value))
        .collect();
    let facts = &module["constants"];
    let what = format!("{} constant", lib.name);
    for name in names(out, &what, ours.keys().copied().collect(), keys(facts)) {
        let want = facts[name].as_i64().unwrap_or(i64::MIN);
        differ(out, name, &ours[name].to_string(), &want.to_string());
    }
}

fn classes(lib: &LibraryApi, module: &Value, out: &mut Vec<String>) {
    let ours: BTreeMap<&str, _> = lib
        .python
        .classes
        .iter()
        .map(|c| (c.name.as_str(), c))
        .collect();
    let facts = &module["classes"];
    let what = format!("{} class", lib.name);
    for name in names(out, &what, ours.keys().copied().collect(), keys(facts)) {
        let (c, fact) = (ours[name], &facts[name]);
        let base = fact["bases"][0].as_str().unwrap_or("-");
        let base = base.strip_prefix("cuda.bindings.").unwrap_or(base);
        differ(
            out,
            &format!("{name} base"),
            c.base.as_deref().unwrap_or("-"),
            base,
        );
        if let Some(size) = fact["sizeof"].as_u64() {
            differ(
                out,
                &format!("{name} size"),
                &c.size.to_string(),
                &size.to_string(),
            );
        }
        if let Some(no_args) = fact["ctor"]["no_args"].as_bool() {
            differ(
                out,
                &format!("{name} without arguments"),
                &c.no_args.to_string(),
                &no_args.to_string(),
            );
        }
        let have: Vec<&str> = c.dunders.iter().map(String::as_str).collect();
        let want: Vec<&str> = fact["dunders"]
            .as_array()
            .map(|d| d.iter().filter_map(text).collect())
            .unwrap_or_default();
        differ(
            out,
            &format!("{name} dunders"),
            &have.join(" "),
            &want.join(" "),
        );
        let mut have: BTreeSet<&str> = c.methods.iter().map(String::as_str).collect();
        if c.base.is_none() && !want.is_empty() {
            have.insert("getPtr");
        }
        names(out, &format!("{name} method"), have, keys(&fact["methods"]));
        let mut attrs: BTreeMap<&str, _> = c.attrs.iter().map(|a| (a.name.as_str(), a)).collect();
        if fact["attrs"][OLDER_ATTRIBUTE].is_null() {
            attrs.remove(OLDER_ATTRIBUTE);
        }
        let what = format!("{name} attribute");
        for a in names(
            out,
            &what,
            attrs.keys().copied().collect(),
            keys(&fact["attrs"]),
        ) {
            let (have, want) = (attrs[a], &fact["attrs"][a]);
            differ(
                out,
                &format!("{name}.{a} settable"),
                &have.settable.to_string(),
                &want["settable"].to_string(),
            );
            if let Some(ty) = text(&want["type"]) {
                differ(out, &format!("{name}.{a} type"), &have.doc_type, ty);
            }
        }
    }
}

/// An object's entries as name and text.
fn table(v: &Value) -> BTreeMap<String, String> {
    let entries = v.as_object().into_iter().flatten();
    let to_text = |v: &Value| text(v).map_or_else(|| v.to_string(), str::to_owned);
    entries.map(|(k, v)| (k.clone(), to_text(v))).collect()
}

fn tables(
    out: &mut Vec<String>,
    what: &str,
    ours: &BTreeMap<String, String>,
    theirs: &BTreeMap<String, String>,
) {
    let have = ours.keys().map(String::as_str).collect();
    let want = theirs.keys().map(String::as_str).collect();
    for name in names(out, what, have, want) {
        differ(out, &format!("{what} {name}"), &ours[name], &theirs[name]);
    }
}

/// Compares aliases and the C enum, which only enums of raising modules have.
fn second_names(lib: &LibraryApi, e: &PyEnum, fact: &Value, out: &mut Vec<String>) {
    let name = format!("{}.{}", lib.python.name, e.name);
    let ours = e.aliases.iter().cloned().collect();
    tables(
        out,
        &format!("{name} alias"),
        &ours,
        &table(&fact["aliases"]),
    );
    let len = fact["len"].as_u64().unwrap_or(0).to_string();
    differ(
        out,
        &format!("{name} len"),
        &e.members.len().to_string(),
        &len,
    );
    let c = |c: Option<&str>| c.unwrap_or("-").to_owned();
    let (ours, theirs) = (c(e.c_type.as_deref()), c(text(&fact["c_type"])));
    differ(out, &format!("{name} C type"), &ours, &theirs);
}

fn merged(module: &Value, public: &str, private: &str) -> BTreeMap<String, Value> {
    let both = [&module[public], &module[private]];
    let entries = both.into_iter().filter_map(Value::as_object).flatten();
    entries.map(|(k, v)| (k.clone(), v.clone())).collect()
}

fn buffer_structs(lib: &LibraryApi, module: &Value, out: &mut Vec<String>) {
    let facts = merged(module, "classes", "private_classes");
    let ours: BTreeMap<&str, &PyClass> = (lib.python.classes.iter())
        .map(|c| (c.name.as_str(), c))
        .collect();
    let what = format!("{} class", lib.name);
    let theirs = facts.keys().map(String::as_str).collect();
    for name in names(out, &what, ours.keys().copied().collect(), theirs) {
        let (c, fact) = (ours[name], &facts[name]);
        let ClassKind::BufferStruct { record: of, array } = &c.kind else {
            out.push(format!("{what} {name}: not a struct"));
            continue;
        };
        // The manifest invents names for nameless structs.
        let c_type = text(&fact["c_type"]).filter(|_| !name.starts_with('_'));
        if let Some(c_type) = c_type {
            let want = record(lib, c_type).map_or("-", |r| &r.name);
            differ(out, &format!("{what} {name} C type"), of, want);
        }
        let empty = Vec::new();
        let params = fact["ctor"]["params"].as_array().unwrap_or(&empty);
        let want = params
            .iter()
            .map(|p| p["name"].to_string() + &p["default"].to_string());
        let have = if *array { "\"size\"\"1\"" } else { "" };
        let item = format!("{what} {name}");
        differ(
            out,
            &format!("{item} parameters"),
            have,
            &want.collect::<String>(),
        );
        for (key, have) in [
            ("picklable", *array),
            ("buffer", true),
            ("unhashable", true),
        ] {
            differ(
                out,
                &format!("{item} {key}"),
                &have.to_string(),
                &fact[key].to_string(),
            );
        }
        let mut have = c.dunders.clone();
        have.sort();
        let want: Vec<String> = (fact["dunders"].as_array().into_iter().flatten())
            .filter_map(|d| text(d).map(str::to_owned))
            .collect();
        differ(
            out,
            &format!("{item} dunders"),
            &have.join(" "),
            &want.join(" "),
        );
        let have: BTreeSet<&str> = c.methods.iter().map(String::as_str).collect();
        names(out, &format!("{item} method"), have, keys(&fact["methods"]));
        attributes(&item, c, &fact["attrs"], out);
    }
}

fn attributes(item: &str, c: &PyClass, facts: &Value, out: &mut Vec<String>) {
    let to_text = c.attrs.iter().filter(|a| {
        !matches!(
            a.kind,
            AttrKind::Hidden { .. } | AttrKind::HiddenStruct { .. }
        )
    });
    let mut ours: BTreeMap<&str, (String, bool)> = to_text
        .map(|a| (a.name.as_str(), (type_name(&a.kind), a.settable)))
        .collect();
    ours.insert("ptr", ("int".to_owned(), false));
    let what = format!("{item} attribute");
    for a in names(out, &what, ours.keys().copied().collect(), keys(facts)) {
        let ((have, settable), fact) = (&ours[a], &facts[a]);
        differ(
            out,
            &format!("{item}.{a} type"),
            have,
            text(&fact["default"]).unwrap_or("-"),
        );
        let want = fact["settable"].to_string();
        differ(
            out,
            &format!("{item}.{a} settable"),
            &settable.to_string(),
            &want,
        );
    }
}

/// Name of the type of an attribute's value on a fresh object.
fn type_name(kind: &AttrKind) -> String {
    match kind {
        AttrKind::Int { .. } | AttrKind::Long { .. } | AttrKind::Address => "int",
        AttrKind::Float { .. } => "float",
        AttrKind::Text | AttrKind::Str { .. } => "str",
        AttrKind::Bytes { len } => return format!("bytes*{len}"),
        AttrKind::Fixed { .. } | AttrKind::Counted { .. } => "ndarray",
        AttrKind::PointerInts { .. } | AttrKind::PointerStructs { .. } => "list",
        AttrKind::PointerSlice { .. } => "_memoryviewslice",
        AttrKind::Nested { .. } => "recarray",
        AttrKind::BufferStruct { class } | AttrKind::BufferStructs { class, .. } => class,
        _ => "-",
    }
    .to_owned()
}

fn number(builtin: Builtin) -> String {
    sized(builtin, builtin.size())
}

fn sized(builtin: Builtin, size: usize) -> String {
    let order = if size == 1 { '|' } else { '<' };
    let kind = numpy(builtin).chars().next().unwrap_or('-');
    format!("{order}{kind}{size}")
}

/// The NumPy type of a class in the manifest's form, with nested types expanded.
fn layout(lib: &LibraryApi, class: &str) -> Value {
    let Some(c) = lib.python.class(class) else {
        return Value::Null;
    };
    let sub = |base: Value, len: usize| match len {
        0 => base,
        n => json!({ "base": base, "shape": [n] }),
    };
    let format = |kind: &AttrKind| match kind {
        AttrKind::Int { builtin } | AttrKind::Float { builtin } => json!(number(*builtin)),
        AttrKind::Long { builtin } => json!(sized(*builtin, 4)),
        AttrKind::Str { len } | AttrKind::Bytes { len } => sub(json!("|i1"), *len),
        AttrKind::Fixed { builtin, len } | AttrKind::Hidden { builtin, len } => {
            sub(json!(number(*builtin)), *len)
        }
        AttrKind::Counted { builtin, max, .. } => sub(json!(number(*builtin)), *max),
        AttrKind::BufferStruct { class } | AttrKind::HiddenStruct { class } => layout(lib, class),
        AttrKind::BufferStructs { class, max, .. } => sub(layout(lib, class), *max),
        AttrKind::Nested { class, len } => sub(layout(lib, class), *len),
        _ => json!("<i8"),
    };
    json!({
        "names": c.attrs.iter().map(|a| &a.name).collect::<Vec<_>>(),
        "formats": c.attrs.iter().map(|a| format(&a.kind)).collect::<Vec<_>>(),
        "offsets": c.attrs.iter().map(|a| a.offset).collect::<Vec<_>>(),
        "itemsize": c.size,
    })
}

/// Expands the nested NumPy types that the manifest refers to by name.
fn in_full(facts: &BTreeMap<String, Value>, v: &Value) -> Value {
    match v {
        Value::String(s) => match facts.get(s) {
            Some(named) => in_full(facts, named),
            None => v.clone(),
        },
        Value::Object(o) => {
            let mut o = o.clone();
            if let Some(base) = o.get("base") {
                let full = in_full(facts, base);
                o.insert("base".to_owned(), full);
            }
            if let Some(Value::Array(formats)) = o.get("formats") {
                let full = formats.iter().map(|f| in_full(facts, f)).collect();
                o.insert("formats".to_owned(), Value::Array(full));
            }
            Value::Object(o)
        }
        other => other.clone(),
    }
}

fn dtypes(lib: &LibraryApi, module: &Value, out: &mut Vec<String>) {
    let facts = merged(module, "dtypes", "private_dtypes");
    let ours: BTreeMap<&str, &str> = (lib.python.dtypes.iter())
        .map(|(n, c)| (n.as_str(), c.as_str()))
        .collect();
    let what = format!("{} dtype", lib.name);
    let theirs = facts.keys().map(String::as_str).collect();
    for name in names(out, &what, ours.keys().copied().collect(), theirs) {
        let have = layout(lib, ours[name]).to_string();
        let want = in_full(&facts, &facts[name]).to_string();
        differ(out, &format!("{what} {name}"), &have, &want);
    }
}

fn exceptions(lib: &LibraryApi, module: &Value, out: &mut Vec<String>) {
    let ours = lib.python.exceptions.iter().map(|e| {
        let base = e.base.clone().unwrap_or_else(|| "Exception".to_owned());
        (e.name.clone(), base)
    });
    let facts = module["exceptions"].as_object().into_iter().flatten();
    let theirs = facts.map(|(k, v)| (k.clone(), text(&v["bases"][0]).unwrap_or("-").to_owned()));
    let what = format!("{} exception", lib.name);
    tables(out, &what, &ours.collect(), &theirs.collect());

    let Some(errors) = &lib.python.errors else {
        out.push(format!("{}: no errors", lib.name));
        return;
    };
    let facts = &module["errors"];
    let item = |s: &str| format!("{} errors {s}", lib.name);
    differ(
        out,
        &item("exception"),
        &errors.exception,
        text(&facts["exception"]).unwrap_or("-"),
    );
    differ(
        out,
        &item("status"),
        &errors.status_enum,
        text(&facts["status_enum"]).unwrap_or("-"),
    );
    let unknown = if errors.unknown_is_value_error {
        "ValueError"
    } else {
        &errors.exception
    };
    let want = text(&facts["unknown_status_raises"]).unwrap_or("-");
    differ(out, &item("of unknown statuses"), unknown, want);
    let members = lib
        .python
        .enums
        .iter()
        .filter(|e| e.name == errors.status_enum);
    let ours = members
        .flat_map(|e| &e.members)
        .filter_map(|(name, value)| {
            let (_, class) = errors.by_status.iter().find(|(v, _)| v == value)?;
            Some((name.clone(), class.clone()))
        });
    let mut theirs = table(&facts["map"]);
    theirs.retain(|_, class| class != "null");
    tables(out, &item("of"), &ours.collect(), &theirs);
}

fn aliases(lib: &LibraryApi, module: &Value, out: &mut Vec<String>) {
    let ours = lib.python.aliases.iter().cloned().collect();
    tables(
        out,
        &format!("{} alias", lib.name),
        &ours,
        &table(&module["aliases"]),
    );
}
