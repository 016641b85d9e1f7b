//! The setting that asks for dumps of the KIR of kernels. An empty variable counts as unset.

use std::env;
use std::path::PathBuf;

use crate::passes::DUMPS;
use crate::settings::InvalidSetting;

/// What `CUPYRITE_CPU_DUMP` asks for: the KIR of every kernel after a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dump {
    /// The pass.
    pub pass: &'static str,
    /// The folder of the files, `CUPYRITE_CPU_DUMP_FOLDER`; by default `cupyrite-dump` in the working directory.
    pub folder: PathBuf,
}

/// `CUPYRITE_CPU_DUMP`: `kir`, or `kir:` and the name of a pass.
///
/// # Errors
/// The value is another one; the message names the passes.
pub fn requested() -> Result<Option<Dump>, InvalidSetting> {
    const VARIABLE: &str = "CUPYRITE_CPU_DUMP";
    let text = env::var(VARIABLE).unwrap_or_default();
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let pass = match text.strip_prefix("kir") {
        Some("") => DUMPS.last(),
        Some(pass) => DUMPS.iter().find(|d| pass.strip_prefix(':') == Some(d)),
        None => None,
    };
    let Some(pass) = pass else {
        let passes = DUMPS.map(|d| format!("kir:{d}")).join(", ");
        return Err(InvalidSetting::new(format!(
            "{VARIABLE}='{text}': expected kir (after the last pass) or one of {passes}"
        )));
    };
    let folder = env::var_os("CUPYRITE_CPU_DUMP_FOLDER").filter(|f| !f.is_empty());
    let folder = folder.map_or_else(|| PathBuf::from("cupyrite-dump"), PathBuf::from);
    Ok(Some(Dump { pass, folder }))
}
