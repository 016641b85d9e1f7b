//! The doctor for `python -m cupyrite`: takes the facts that only the interpreter knows, returns text.

use std::path::PathBuf;
use std::time::Duration;

use cupyrite_doctor::{Facts, Interpreter, Style, examine};
use pyo3::prelude::*;

/// Adds `doctor` to the module.
pub fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(doctor, module)?)
}

/// Examines this machine and this installation.
///
/// `facts` is a dictionary with any of: `implementation`, `version`, `executable`, `prefix` (of the interpreter),
/// `package` and `package_version` (of the running `cupyrite`), `path` (a list of absolute paths), `suffixes` (of
/// modules, in the order in which they are tried), `demo`, `deadline` (seconds). What cannot be used is left out.
///
/// Returns `(ok, ran, hung, text)`: whether the main job can run; whether a kernel ran; whether something hangs in
/// this very process, which should then be left through `os._exit`; and the screen in `width` columns, or JSON if
/// `json` is true.
#[pyfunction]
#[pyo3(signature = (facts, *, json, width, colours))]
fn doctor(
    py: Python<'_>,
    facts: &Bound<'_, PyAny>,
    json: bool,
    width: usize,
    colours: bool,
) -> (bool, bool, bool, String) {
    let text = |name: &str| get::<String>(facts, name);
    let path = |name: &str| get::<PathBuf>(facts, name);
    let default = Facts::default();
    let deadline = get::<f64>(facts, "deadline")
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .unwrap_or(default.deadline);
    let facts = Facts {
        interpreter: Some(Interpreter {
            implementation: text("implementation").unwrap_or_else(|| "Python".to_owned()),
            version: text("version").unwrap_or_else(|| "of an unknown version".to_owned()),
            executable: path("executable"),
            prefix: path("prefix"),
        }),
        package: path("package"),
        package_version: text("package_version"),
        path: list(facts, "path"),
        suffixes: list(facts, "suffixes"),
        demo: get(facts, "demo").unwrap_or(false),
        deadline,
        ..default
    };
    crate::site_packages::refresh(py);
    py.detach(|| {
        let report = examine(&facts);
        let hung = report.proof.hung_at.is_some() && report.proof.in_process;
        let text = if json {
            report.to_json() + "\n"
        } else {
            report.render(Style { width, colours })
        };
        (report.ok, report.proof.ok, hung, text)
    })
}

/// An entry of the dictionary, if it exists and has this type.
fn get<T>(facts: &Bound<'_, PyAny>, name: &str) -> Option<T>
where
    T: for<'a, 'py> FromPyObject<'a, 'py>,
{
    facts.get_item(name).ok()?.extract().ok()
}

/// The elements of a list that have this type.
fn list<T>(facts: &Bound<'_, PyAny>, name: &str) -> Vec<T>
where
    T: for<'a, 'py> FromPyObject<'a, 'py>,
{
    let Ok(entries) = facts.get_item(name) else {
        return Vec::new();
    };
    entries
        .try_iter()
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.extract().ok())
        .collect()
}
