//! Compares the IR with recorded facts about the Python interface (a JSON file given on the command line).

pub mod pathfinder;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::ir::{Api, Library};

/// Reads recorded facts.
///
/// # Errors
///
/// The file is missing or no JSON.
pub fn read(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Differences between the IR and the facts, a line each; empty when everything agrees.
///
/// # Errors
///
/// The facts say nothing about one of the libraries.
pub fn compare(api: &Api, facts: &Value, path: &Path) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    for lib in api.libraries.iter().filter(|l| l.in_python()) {
        let module = &facts["modules"][&lib.python.name];
        if module.is_null() {
            return Err(format!(
                "{} says nothing about {}",
                path.display(),
                lib.python.name
            ));
        }
        functions(lib, module, &mut out);
        enums(lib, module, &mut out);
        constants(lib, module, &mut out);
        classes(lib, module, &mut out);
    }
    Ok(out)
}

fn keys(v: &Value) -> BTreeSet<&str> {
    v.as_object()
        .map(|o| o.keys().map(String::as_str).collect())
        .unwrap_or_default()
}

fn text(v: &Value) -> Option<&str> {
    v.as_str()
}

/// Reports names on one side only, and returns those on both.
fn names<'a>(
    out: &mut Vec<String>,
    what: &str,
    ours: BTreeSet<&'a str>,
    theirs: BTreeSet<&'a str>,
) -> Vec<&'a str> {
    for n in theirs.difference(&ours) {
        out.push(format!("{what} {n}: missing"));
    }
    for n in ours.difference(&theirs) {
        out.push(format!("{what} {n}: not in the facts"));
    }
    ours.intersection(&theirs).copied().collect()
}

fn differ(out: &mut Vec<String>, item: &str, ours: &str, theirs: &str) {
    if ours != theirs {
        out.push(format!("{item}: have {ours}, want {theirs}"));
    }
}

fn functions(lib: &Library, module: &Value, out: &mut Vec<String>) {
    let ours: BTreeMap<&str, _> = lib
        .functions
        .iter()
        .filter_map(|f| Some((f.name.as_str(), f.python.as_ref()?)))
        .collect();
    let facts = &module["functions"];
    let mut theirs = keys(facts);
    theirs.remove("sizeof"); // written by hand
    let what = format!("{} function", lib.name);
    for name in names(out, &what, ours.keys().copied().collect(), theirs) {
        let (f, fact) = (ours[name], &facts[name]);
        let have: Vec<String> = f
            .args
            .iter()
            .map(|a| match &a.default {
                Some(d) => format!("{}={d}", a.name),
                None => a.name.clone(),
            })
            .collect();
        let empty = Vec::new();
        let params = fact["params"].as_array().unwrap_or(&empty);
        let want: Vec<String> = params
            .iter()
            .map(|p| {
                let name = text(&p["name"]).unwrap_or("");
                match &p["default"] {
                    Value::Null => name.to_owned(),
                    Value::String(d) => format!("{name}={d}"),
                    d => format!("{name}={d}"),
                }
            })
            .collect();
        differ(
            out,
            &format!("{name} parameters"),
            &have.join(", "),
            &want.join(", "),
        );
        if have == want {
            for (a, p) in f.args.iter().zip(params) {
                let ours = a.annotation.as_deref().unwrap_or("-");
                let theirs = text(&p["annotation"]).unwrap_or("-");
                differ(
                    out,
                    &format!("{name} annotation of {}", a.name),
                    ours,
                    theirs,
                );
            }
        }
        let have: Vec<&str> = std::iter::once(lib.status_enum.as_str())
            .chain(f.results.iter().map(|r| r.type_name.as_str()))
            .collect();
        let want: Vec<&str> = fact["result"]["types"]
            .as_array()
            .map(|t| t.iter().filter_map(text).collect())
            .unwrap_or_default();
        differ(
            out,
            &format!("{name} results"),
            &have.join(", "),
            &want.join(", "),
        );
        if let Some(want) = fact["result"]["names"].as_array()
            && have.len() == want.len()
        {
            let have: Vec<&str> = std::iter::once("")
                .chain(f.results.iter().map(|r| r.name.as_str()))
                .collect();
            let want: Vec<&str> = want.iter().filter_map(text).collect();
            differ(
                out,
                &format!("{name} result names"),
                &have.join(", "),
                &want.join(", "),
            );
        }
        if have.len() > 1
            && let Some(doc) = fact["result"]["doc"].as_array()
        {
            let have: Vec<&str> = std::iter::once(lib.status_enum.as_str())
                .chain(
                    f.results
                        .iter()
                        .map(|r| r.doc_type.as_deref().unwrap_or(&r.type_name)),
                )
                .collect();
            // One entry documents a member of the status enum rather than the enum.
            let want: Vec<&str> = doc
                .iter()
                .filter_map(text)
                .map(|t| t.split_once('.').map_or(t, |(name, _)| name))
                .collect();
            differ(
                out,
                &format!("{name} documented results"),
                &have.join(", "),
                &want.join(", "),
            );
        }
    }
}

fn enums(lib: &Library, module: &Value, out: &mut Vec<String>) {
    let ours: BTreeMap<&str, _> = lib
        .python
        .enums
        .iter()
        .map(|e| (e.name.as_str(), e))
        .collect();
    let facts = &module["enums"];
    let what = format!("{} enum", lib.name);
    for name in names(out, &what, ours.keys().copied().collect(), keys(facts)) {
        let have: BTreeMap<&str, i64> = ours[name]
            .members
            .iter()
            .map(|(n, v)| (n.as_str(), *v))
            .collect();
        let want: BTreeMap<&str, i64> = facts[name]["members"]
            .as_object()
            .map(|o| {
                o.iter()
                    .map(|(k, v)| (k.as_str(), v.as_i64().unwrap_or(i64::MIN)))
                    .collect()
            })
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
    }
}

fn constants(lib: &Library, module: &Value, out: &mut Vec<String>) {
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

fn classes(lib: &Library, module: &Value, out: &mut Vec<String>) {
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
        let attrs: BTreeMap<&str, _> = c.attrs.iter().map(|a| (a.name.as_str(), a)).collect();
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
