//! Descriptions of functions: `api/descriptions/*.toml`, one file per library.
//!
//! An entry is a text, or a table: `does` is the text, any other key is a parameter. `like` names a function whose text
//! and parameters the entry takes over where it has none of its own; `more` is appended to the text. `[parameters]` has
//! the notes about parameters that many functions have.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;

use crate::ir::{About, Api, LibraryApi, Param};

/// One file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// Notes about parameters, by name in C.
    #[serde(default)]
    parameters: BTreeMap<String, String>,
    /// The functions, by name in C (in Python, if there is no C function).
    #[serde(default)]
    functions: BTreeMap<String, DescriptionRow>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum DescriptionRow {
    Text(String),
    Table(BTreeMap<String, String>),
}

/// Reads the descriptions into the libraries, those of the second modules included.
///
/// # Errors
///
/// A file cannot be read or is not TOML; a function, parameter or `like` is unknown; a function lacks a description.
pub fn load(api: &mut Api, root: &Path) -> Result<(), String> {
    let mut known = BTreeMap::new();
    for lib in &api.libraries {
        if !lib.in_python() {
            continue;
        }
        let path = root.join(format!("api/descriptions/{}.toml", lib.name));
        let context = |e: String| format!("{}: {e}", path.display());
        let text = std::fs::read_to_string(&path).map_err(|e| context(e.to_string()))?;
        let second = (api.second.iter()).find(|l| l.shares.as_ref() == Some(&lib.name));
        let about = parse(&text, lib, second).map_err(context)?;
        known.insert(lib.name.clone(), about);
    }
    for lib in api.libraries.iter_mut().chain(&mut api.second) {
        let name = lib.c_library().to_owned();
        if let Some(about) = known.get(&name) {
            lib.about.clone_from(about);
        }
    }
    Ok(())
}

fn parse(
    text: &str,
    lib: &LibraryApi,
    second: Option<&LibraryApi>,
) -> Result<BTreeMap<String, About>, String> {
    let file: File = toml::from_str(text).map_err(|e| e.to_string())?;
    let functions = functions(lib, second);
    let mut unused: BTreeSet<&String> = file.parameters.keys().collect();
    let mut errors = Vec::new();
    let mut out = BTreeMap::new();
    for (name, entry) in &file.functions {
        let Some(params) = functions.get(name.as_str()) else {
            errors.push(format!("{name}: unknown function"));
            continue;
        };
        if let DescriptionRow::Table(table) = entry {
            let unknown = (table.keys())
                .filter(|key| !KEYS.contains(&key.as_str()) && !params.contains(&key.as_str()));
            errors.extend(unknown.map(|key| format!("{name}.{key}: unknown parameter")));
        }
        let mut about = match resolve(&file, name, 0) {
            Ok(about) => about,
            Err(e) => {
                errors.push(e);
                continue;
            }
        };
        for (param, note) in &file.parameters {
            if params.contains(&param.as_str()) {
                unused.remove(param);
                let own = about.parameters.entry(param.clone());
                own.or_insert_with(|| note.clone());
            }
        }
        (about.parameters)
            .retain(|param, note| params.contains(&param.as_str()) && !note.is_empty());
        out.insert(name.clone(), about);
    }
    errors.extend(
        unused
            .into_iter()
            .map(|name| format!("parameters.{name}: no described function has it")),
    );
    let missing: Vec<&str> = (functions.keys().copied())
        .filter(|name| !out.contains_key(*name))
        .collect();
    if errors.is_empty() && !missing.is_empty() {
        errors.push(format!("no description of {}", missing.join(", ")));
    }
    if errors.is_empty() {
        Ok(out)
    } else {
        Err(errors.join("; "))
    }
}

/// The keys of a table that are not parameters.
const KEYS: &[&str] = &["does", "like", "more"];

/// The text and the own notes of a function, with those of the function that it is like.
fn resolve(file: &File, name: &str, depth: usize) -> Result<About, String> {
    let entry = (file.functions.get(name)).ok_or_else(|| format!("like = {name:?}: unknown"))?;
    let table = match entry {
        DescriptionRow::Text(does) => {
            return Ok(About {
                does: does.clone(),
                parameters: BTreeMap::new(),
            });
        }
        DescriptionRow::Table(table) => table,
    };
    if depth > 4 {
        return Err(format!("{name}: `like` leads in a circle"));
    }
    let mut about = match table.get("like") {
        Some(other) => resolve(file, other, depth + 1)?,
        None => About::default(),
    };
    if let Some(does) = table.get("does") {
        about.does.clone_from(does);
    }
    if let Some(more) = table.get("more") {
        about.does = format!("{} {more}", about.does);
    }
    if about.does.is_empty() {
        return Err(format!("{name}: neither `does` nor `like`"));
    }
    for (param, note) in table
        .iter()
        .filter(|(key, _)| !KEYS.contains(&key.as_str()))
    {
        about.parameters.insert(param.clone(), note.clone());
    }
    Ok(about)
}

/// The functions of the library's modules with their parameters. A function as CUDA 12 declares it is described by its
/// successor.
fn functions<'a>(
    lib: &'a LibraryApi,
    second: Option<&'a LibraryApi>,
) -> BTreeMap<&'a str, Vec<&'a str>> {
    let mut out: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let c = std::iter::once(lib)
        .chain(second)
        .flat_map(|l| &l.functions)
        .filter(|f| f.python.is_some());
    for f in c {
        let name = f.name.strip_suffix("_cuda12").unwrap_or(&f.name);
        let params = f.params.iter().map(|p: &Param| p.name.as_str());
        out.entry(name).or_default().extend(params);
    }
    for python in &lib.python.functions {
        let args = python.args.iter().map(|a| a.name.as_str());
        out.entry(&python.name).or_default().extend(args);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Function, Gil, PyFunction, Ret, Role, Type};

    fn library() -> LibraryApi {
        let python = PyFunction {
            name: String::new(),
            args: Vec::new(),
            results: Vec::new(),
            gil: Gil::Release,
            hook: None,
            ret: Ret::Status,
            sizing: None,
            requests: Vec::new(),
            interruptible: false,
        };
        let function = |name: &str, params: &[&str]| Function {
            name: name.into(),
            base: name.into(),
            symbol: name.into(),
            abi_version: 0,
            per_thread_symbol: None,
            per_thread_abi_version: 0,
            header: String::new(),
            majors: vec![13],
            ret: Type::Void,
            params: (params.iter())
                .map(|p| Param {
                    name: (*p).into(),
                    ty: Type::Void,
                    role: Role::Null,
                })
                .collect(),
            python: Some(python.clone()),
        };
        LibraryApi {
            name: "driver".into(),
            functions: vec![
                function("xCopy", &["dst", "stream"]),
                function("xCopyAsync", &["dst", "stream"]),
            ],
            ..LibraryApi::default()
        }
    }

    #[test]
    fn an_entry_extends_the_one_it_is_like() {
        let text = r#"
            [parameters]
            stream = "a stream"
            [functions]
            xCopy = { does = "Copies.", dst = "target" }
            xCopyAsync = { like = "xCopy", more = "Returns early." }
        "#;
        let about = parse(text, &library(), None).unwrap();
        let copied = &about["xCopyAsync"];
        assert_eq!(copied.does, "Copies. Returns early.");
        assert_eq!(copied.parameters["dst"], "target");
        assert_eq!(copied.parameters["stream"], "a stream");
    }

    #[test]
    fn unknown_and_missing_names_are_errors() {
        let error = |text: &str| parse(text, &library(), None).unwrap_err();
        assert_eq!(
            error("[functions]\nxOther = \"a\""),
            "xOther: unknown function"
        );
        assert_eq!(
            error("[functions]\nxCopy = { does = \"a\", src = \"b\" }"),
            "xCopy.src: unknown parameter"
        );
        assert_eq!(
            error("[functions]\nxCopy = \"a\""),
            "no description of xCopyAsync"
        );
        assert_eq!(
            error("[functions]\nxCopy = { like = \"xCopy\" }"),
            "xCopy: `like` leads in a circle"
        );
        let both = "[functions]\nxCopy = \"a\"\nxCopyAsync = \"b\"\n[parameters]\nsize = \"c\"";
        assert_eq!(error(both), "parameters.size: no described function has it");
    }
}
