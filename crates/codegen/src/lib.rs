//! Headers and overlay to the generated files.
//!
//! Belongs here: reading NVIDIA's headers through libclang, joining them with `api/overlay/*.toml`, and the back ends
//! that write `generated/` folders. Does not belong here: anything the published crates need at build or run time.

pub mod backend;
pub mod clang;
pub mod classes;
pub mod facts;
pub mod fetch;
pub mod ir;
pub mod macros;
pub mod merge;
pub mod output;
pub mod overlay;
pub mod python;
pub mod read;

use std::path::{Path, PathBuf};

/// What [`run`] is to do.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Compare with the committed files instead of writing them.
    pub check: bool,
    /// Root of the repository; the current directory if `None`.
    pub root: Option<PathBuf>,
    /// Folder for downloads; `target/codegen` below the root if `None`.
    pub target: Option<PathBuf>,
}

/// Reads the headers and the overlay.
///
/// # Errors
///
/// Packages that cannot be installed, headers that cannot be parsed.
pub fn read_api(root: &Path, target: &Path) -> Result<ir::Api, String> {
    let packages = fetch::packages(&root.join("api/headers.lock"), target)?;
    let clang = clang::Clang::load(&packages.libclang())?;
    let toolkits = [
        merge::Toolkit {
            major: 13,
            dirs: packages.cuda13(),
        },
        merge::Toolkit {
            major: 12,
            dirs: packages.cuda12(),
        },
    ];
    let mut api = ir::Api::default();
    for source in merge::SOURCES {
        let mut lib = merge::library(
            &clang,
            source,
            &toolkits,
            &root.join("api/stubs"),
            &target.join("scratch"),
        )?;
        let overlay = root.join(format!("api/overlay/{}.toml", source.name));
        let overlay = overlay::Overlay::load(&overlay)?;
        python::functions(&mut lib, &overlay)?;
        classes::module(&mut lib, &overlay)?;
        api.libraries.push(lib);
    }
    Ok(api)
}

/// Regenerates everything, or with [`Options::check`] compares.
///
/// # Errors
///
/// What [`read_api`] reports, files that cannot be written, and with `check` the list of files that differ.
pub fn run(options: &Options) -> Result<(), String> {
    let root = options.root.clone().unwrap_or_else(|| PathBuf::from("."));
    let target = options
        .target
        .clone()
        .unwrap_or_else(|| root.join("target/codegen"));
    let api = read_api(&root, &target)?;
    let mut files = backend::sys::generate(&api);
    files.extend(backend::python_functions::generate(&api));
    files.extend(backend::python_types::generate(&api));
    files.extend(backend::stubs::generate(&api));
    let differing = output::emit(&root, files, options.check)?;
    for path in &differing {
        let verb = if options.check { "differs" } else { "wrote" };
        eprintln!("codegen: {verb}: {}", path.display());
    }
    if options.check && !differing.is_empty() {
        return Err(format!(
            "{} generated files are not what the headers and the overlay give; run `cargo xtask codegen`",
            differing.len()
        ));
    }
    Ok(())
}
