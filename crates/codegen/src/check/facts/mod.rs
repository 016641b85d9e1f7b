//! Compares the IR with an interface manifest (`api/interface`).

pub mod pathfinder;
mod types;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use crate::ir::{Api, LibraryApi, Ret, Style};

/// Reads a manifest.
///
/// # Errors
///
/// The file is missing or is not JSON.
pub fn read(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
}

/// Modules that only Cupyrite has.
const OURS: [&str; 1] = ["cuda.bindings._v2.runtime"];

/// The differences between the IR and the manifest, one line each.
///
/// # Errors
///
/// The manifest lacks one of the libraries.
pub fn compare(api: &Api, facts: &Value, path: &Path) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    for lib in api.in_python() {
        let module = &facts["modules"][&lib.python.name];
        if module.is_null() && OURS.contains(&lib.python.name.as_str()) {
            continue;
        }
        if module.is_null() {
            return Err(format!(
                "{} says nothing about {}",
                path.display(),
                lib.python.name
            ));
        }
        functions(lib, module, &mut out);
        types::compare(lib, module, &mut out);
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

/// Reports the names that only one side has; returns the common ones.
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

/// Functions whose result differs on purpose: NVIDIA's package returns the first character of the firmware version as
/// a number.
const DELIBERATE: [&str; 1] = ["device_get_gsp_firmware_version"];

/// A function of a second version for which the manifest names the first version's symbol.
const OLDER_SYMBOL: &str = "gl_get_devices_v2";

fn functions(lib: &LibraryApi, module: &Value, out: &mut Vec<String>) {
    let raises = lib.python.style == Style::Raises;
    let mut ours: BTreeMap<&str, _> = BTreeMap::new();
    for f in &lib.functions {
        if let Some(python) = &f.python {
            ours.insert(python.name.as_str(), python);
            // Compares the C symbol if the manifest names it.
            if python.name != OLDER_SYMBOL
                && let Some(symbol) = text(&module["functions"][&python.name]["c_symbol"])
            {
                let item = format!("{} symbol", python.name);
                differ(out, &item, &f.symbol, symbol);
            }
        }
    }
    for f in &lib.python.functions {
        ours.insert(f.name.as_str(), f);
    }
    let facts = &module["functions"];
    let mut theirs = keys(facts);
    theirs.remove("sizeof"); // handwritten
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
        let alone = f.ret != Ret::Status && f.hook.is_some();
        let status = (!raises && !alone).then_some(lib.status_enum.as_str());
        let have: Vec<&str> = status
            .into_iter()
            .chain(f.results.iter().map(|r| r.type_name.as_str()))
            .collect();
        let want: Vec<&str> = fact["result"]["types"]
            .as_array()
            .map(|t| t.iter().filter_map(text).collect())
            .unwrap_or_default();
        if raises {
            if !DELIBERATE.contains(&name) {
                differ(
                    out,
                    &format!("{name} results"),
                    &have.join(", "),
                    &want.join(", "),
                );
            }
            continue;
        }
        // Facts recorded without a device contain the documented types.
        let documented = status.into_iter().map(str::to_owned).chain(
            (f.results.iter()).map(|r| r.doc_type.clone().unwrap_or_else(|| r.type_name.clone())),
        );
        let documented: Vec<String> = documented.collect();
        let same = documented.len() == want.len()
            && documented.iter().zip(&want).all(|(have, want)| {
                *want == "Any" || have.trim_end_matches("_t") == want.trim_end_matches("_t")
            });
        if !same {
            differ(
                out,
                &format!("{name} results"),
                &have.join(", "),
                &want.join(", "),
            );
        }
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
            // One entry documents a member of the status enum instead of the enum.
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
