//! Dumps of KIR and machine code: the points at which they can be taken, the variables that ask for them, and their files.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

use crate::passes::PASSES;
use crate::settings::InvalidSetting;

/// The points at which KIR can be looked at, in order: before the passes, after each, and with the locations of registers.
pub const POINTS: [&str; PASSES.len() + 2] = {
    let mut names = ["build"; PASSES.len() + 2];
    let mut n = 0;
    while n < PASSES.len() {
        names[n + 1] = PASSES[n].name;
        n += 1;
    }
    names[PASSES.len() + 1] = "register_allocation";
    names
};

/// The point at which machine code is dumped.
pub const CODE: &str = "code";

/// What `CUPYRITE_CPU_DUMP` asks for: the KIR of every kernel at one of [`POINTS`], or machine code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dump {
    /// One of [`POINTS`], or [`CODE`].
    pub point: &'static str,
    /// The folder of the files, `CUPYRITE_CPU_DUMP_FOLDER`; by default `cupyrite-dump` in the working directory.
    pub folder: PathBuf,
}

impl Dump {
    /// Writes the text of a kernel's KIR, or its machine code. An error is only reported on standard error: a folder that cannot be written must not
    /// change what a program does.
    pub(crate) fn write(&self, kernel: &str, contents: &[u8]) {
        let file = self.folder.join(file_name(kernel, self.point));
        let written = fs::create_dir_all(&self.folder).and_then(|()| fs::write(&file, contents));
        if let Err(e) = written {
            eprintln!("cupyrite: cannot write {}: {e}", file.display());
        }
    }
}

/// `CUPYRITE_CPU_DUMP`: `kir`, or `kir:` and the name of a pass, or `code`.
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
    let point = match text.strip_prefix("kir") {
        Some("") => POINTS.last(),
        Some(pass) => POINTS.iter().find(|d| pass.strip_prefix(':') == Some(d)),
        None => (text == CODE).then_some(&CODE),
    };
    let Some(point) = point else {
        let points = POINTS.map(|d| format!("kir:{d}")).join(", ");
        return Err(InvalidSetting::new(format!(
            "{VARIABLE}='{text}': expected code, kir (after the last pass) or one of {points}"
        )));
    };
    let folder = env::var_os("CUPYRITE_CPU_DUMP_FOLDER").filter(|f| !f.is_empty());
    let folder = folder.map_or_else(|| PathBuf::from("cupyrite-dump"), PathBuf::from);
    Ok(Some(Dump { point, folder }))
}

/// The file name of a kernel's dump. The mangled names of C++ can be longer than a file name may be; such a name is cut, and ends
/// in a hash.
fn file_name(kernel: &str, point: &str) -> String {
    const LONGEST: usize = 150;
    let mut name: String = kernel.chars().take(LONGEST).collect();
    if name.len() < kernel.len() {
        let mut hasher = DefaultHasher::new();
        kernel.hash(&mut hasher);
        let _ = write!(name, "-{:016x}", hasher.finish());
    }
    let extension = if point == CODE { "bin" } else { "kir" };
    format!("{name}.{point}.{extension}")
}
