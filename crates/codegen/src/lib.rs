//! Headers and overlay to the generated files.
//!
//! Belongs here: reading NVIDIA's headers through libclang, joining them with `api/overlay/*.toml`, and the back ends
//! that write `generated/` folders. Does not belong here: anything the published crates need at build or run time.

pub mod backend;
pub mod check;
pub mod descriptions;
pub mod interface;
pub mod ir;
pub mod meanings;
pub mod naming;
pub mod output;
pub mod read;

use std::path::{Path, PathBuf};

use check::layout;
use interface::overlay::Overlay;
use interface::{raising, tuple, units};
use read::{fetch, libclang, merge, sources};

/// Options of [`run`].
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Compare with the committed files instead of writing them.
    pub check: bool,
    /// Root of the repository; the current directory if `None`.
    pub root: Option<PathBuf>,
    /// Folder for downloads; `target/codegen` below the root if `None`.
    pub target: Option<PathBuf>,
}

/// The IR, and the header sets that the layout check compiles.
pub struct Description {
    /// Headers and overlay joined.
    pub api: ir::Api,
    /// The headers, one set per library and CUDA major.
    pub headers: Vec<layout::HeaderSet>,
}

/// Reads the headers and the overlay.
///
/// # Errors
///
/// A package cannot be installed, a header cannot be parsed, or the overlay contradicts the headers.
pub fn describe(root: &Path, target: &Path) -> Result<Description, String> {
    let packages = fetch::packages(&root.join("api"), target)?;
    // SAFETY: the generator starts no threads.
    let clang = unsafe { libclang::load(&packages.libclang()) }?;
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
    let stubs = root.join("api/stubs");
    let mut out = Description {
        api: ir::Api::default(),
        headers: Vec::new(),
    };
    for source in sources::SOURCES {
        let scratch = target.join("scratch");
        let read = merge::library(&clang, source, &toolkits, &stubs, &scratch, &out.api)?;
        let mut lib = read.library;
        let overlay = root.join(format!("api/overlay/{}.toml", source.name));
        let overlay = Overlay::load(&overlay)?;
        let plain = lib.clone();
        lib.cython = overlay.cython.clone();
        units::note(&mut lib, &overlay)?;
        match overlay.library.style {
            // A library without a Python module.
            _ if overlay.library.python.is_empty() => {}
            ir::Style::Tuple => {
                tuple::functions::functions(&mut lib, &overlay)?;
                tuple::classes::module(&mut lib, &overlay)?;
            }
            ir::Style::Raises => {
                raising::structs::module(&mut lib, &overlay)?;
                raising::functions::functions(&mut lib, &overlay)?;
            }
        }
        out.api.libraries.push(lib);
        if source.second {
            let made = second(plain, &overlay, root)?;
            out.api.second.push(made);
        }
        for (major, records) in read.records {
            let toolkit = toolkits.iter().find(|t| t.major == major);
            let mut dirs = vec![stubs.clone()];
            dirs.extend(toolkit.into_iter().flat_map(|t| t.dirs.iter().cloned()));
            out.headers.push(layout::HeaderSet {
                name: format!("{}-{major}", source.name),
                includes: source.includes,
                defines: source.all_defines(),
                dirs,
                records,
            });
        }
    }
    descriptions::load(&mut out.api, root)?;
    Ok(out)
}

/// The second Python module over a library: its functions raise. `library` has no Python half yet.
fn second(
    mut library: ir::LibraryApi,
    first: &Overlay,
    root: &Path,
) -> Result<ir::LibraryApi, String> {
    let name = format!("{}_v2", library.name);
    let overlay = root.join(format!("api/overlay/{name}.toml"));
    let mut overlay = Overlay::load(&overlay)?;
    overlay.take_facts(first);
    library.shares = Some(std::mem::replace(&mut library.name, name));
    units::note(&mut library, &overlay)?;
    raising::structs::module(&mut library, &overlay)?;
    raising::functions::functions(&mut library, &overlay)?;
    Ok(library)
}

/// Writes the reference pages into `folder` and returns their number.
///
/// # Errors
///
/// As [`describe`]; a file cannot be read or written; a link has no target.
pub fn reference(root: &Path, target: &Path, folder: &Path) -> Result<usize, String> {
    let description = describe(root, target)?;
    let files = backend::reference::generate(&description.api, root)?;
    std::fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for (name, text) in &files {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(files.len())
}

/// Regenerates everything. With [`Options::check`], compares with the committed files and the C compiler instead.
///
/// # Errors
///
/// As [`describe`]; a file cannot be written; with `check`, the number of files that differ (listed on standard
/// error) or a layout that differs from the C compiler's.
pub fn run(options: &Options) -> Result<(), String> {
    let root = options.root.clone().unwrap_or_else(|| PathBuf::from("."));
    let target = options
        .target
        .clone()
        .unwrap_or_else(|| root.join("target/codegen"));
    let description = describe(&root, &target)?;
    let api = &description.api;
    let mut files = backend::sys::generate(api);
    files.extend(backend::differences::generate(api));
    files.extend(backend::python_functions::generate(api));
    files.extend(backend::python_descriptions::generate(api, &root)?);
    files.extend(backend::python_types::generate(api));
    files.extend(backend::stubs::generate(api));
    files.extend(backend::statuses::generate(api, &root)?);
    files.extend(backend::cython::generate(api)?);
    files.extend(backend::cython_declarations::generate(api)?);
    let differing = output::emit(&root, files, options.check)?;
    for path in &differing {
        let verb = if options.check { "differs" } else { "wrote" };
        eprintln!("codegen: {verb}: {}", path.display());
    }
    if options.check {
        if !differing.is_empty() {
            return Err(format!(
                "{} generated files are out of date; run `cargo xtask codegen`",
                differing.len()
            ));
        }
        layout::check(&description.headers, &target.join("layout"))?;
    }
    Ok(())
}
