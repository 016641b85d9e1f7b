//! The search itself: one engine for every row of the table.

use std::path::{Path, PathBuf};

use crate::Finder;
use crate::dl::{Handle, Loader, Mode};
use crate::environment::{Environment, override_variable};
use crate::error::{LoadError, LoadErrorKind, Looked, OVERRIDE, Outcome};
use crate::found::{FoundVia, Loaded};
use crate::platform::Platform;
use crate::table::{self, Library, Origin};

const TOOLKIT_DIRS: &[&str] = &["lib64", "lib", "targets/x86_64-linux/lib"];
const CONDA_DIRS: &[&str] = &["lib", "targets/x86_64-linux/lib"];

impl Finder<'_> {
    /// Finds the library called `name` and loads it into this process.
    ///
    /// # Errors
    ///
    /// [`LoadErrorKind::Unknown`] if there is no such row, [`LoadErrorKind::NotFound`] if it lies in none of the
    /// places, [`LoadErrorKind::Failed`] if a file was found and the system's loader refused it: the search then
    /// stops, because a broken installation should be seen, not skipped.
    pub fn load(&self, name: &str) -> Result<Loaded, LoadError> {
        let library =
            table::library(name).ok_or_else(|| LoadError::unknown(name, self.platform))?;
        search(library, self.environment, self.loader)
    }
}

/// Runs the search for one library.
///
/// # Errors
///
/// See [`crate::load`].
pub fn search(
    library: &'static Library,
    environment: &Environment,
    loader: &dyn Loader,
) -> Result<Loaded, LoadError> {
    let mut search = Search {
        library,
        loader,
        looked: Vec::new(),
    };
    match search.run(environment) {
        Ok(Some(loaded)) => {
            log::debug!(
                "{}: {} ({})",
                library.name,
                loaded.path.display(),
                loaded.found_via
            );
            Ok(loaded)
        }
        Ok(None) => Err(search.error(LoadErrorKind::NotFound, None)),
        Err(file) => Err(search.error(LoadErrorKind::Failed, Some(file))),
    }
}

struct Search<'a> {
    library: &'static Library,
    loader: &'a dyn Loader,
    looked: Vec<Looked>,
}

/// `Err` is a file that was found and refused.
type Step = Result<Option<Loaded>, PathBuf>;

impl Search<'_> {
    fn run(&mut self, env: &Environment) -> Step {
        for soname in self.library.names(Platform::CURRENT) {
            if let Some(handle) = self.loader.loaded(soname) {
                return Ok(Some(self.loaded(
                    handle,
                    soname.into(),
                    FoundVia::AlreadyLoaded,
                )));
            }
        }
        if let Some(path) = env.overrides.get(self.library.name) {
            return self.override_path(path);
        }
        match self.library.origin {
            Origin::Toolkit | Origin::Product => self.toolkit(env),
            Origin::Driver => self.driver(env),
        }
    }

    fn toolkit(&mut self, env: &Environment) -> Step {
        if env.site_packages.is_empty() {
            self.note(
                "wheels",
                "site-packages or VIRTUAL_ENV".into(),
                Outcome::NotSet,
            );
        }
        // The newest major of all roots first: an old wheel in an early root must not hide a new one.
        for dir in self.library.wheel_dirs(Platform::CURRENT) {
            for root in &env.site_packages {
                if let found @ Some(_) =
                    self.folder("wheels", &root.join(dir), FoundVia::SitePackages)?
                {
                    return Ok(found);
                }
            }
        }
        let conda = env.conda_prefix.as_deref();
        if let found @ Some(_) =
            self.root("conda", "CONDA_PREFIX", conda, CONDA_DIRS, FoundVia::Conda)?
        {
            return Ok(found);
        }
        if let found @ Some(_) = self.system()? {
            return Ok(found);
        }
        for (variable, root) in [("CUDA_PATH", &env.cuda_path), ("CUDA_HOME", &env.cuda_home)] {
            if let found @ Some(_) = self.root(
                variable,
                variable,
                root.as_deref(),
                TOOLKIT_DIRS,
                FoundVia::CudaPath,
            )? {
                return Ok(found);
            }
        }
        for root in &env.toolkit_roots {
            if let found @ Some(_) =
                self.root("toolkit", "", Some(root), TOOLKIT_DIRS, FoundVia::WellKnown)?
            {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn driver(&mut self, env: &Environment) -> Step {
        if let found @ Some(_) = self.system()? {
            return Ok(found);
        }
        for dir in &env.driver_dirs {
            if let found @ Some(_) = self.folder("driver folders", dir, FoundVia::WellKnown)? {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// A file, or a folder that holds the library, named by the user: nothing else is tried after it.
    fn override_path(&mut self, path: &Path) -> Step {
        let step = OVERRIDE;
        if path.is_dir() {
            return self.folder(step, path, FoundVia::Override);
        }
        if !path.exists() {
            let place = format!(
                "{}={}",
                override_variable(self.library.name),
                path.display()
            );
            self.note(step, place, Outcome::Absent);
            return Ok(None);
        }
        self.file(step, path, FoundVia::Override).map(Some)
    }

    /// The usual sub-folders of an installation root.
    fn root(
        &mut self,
        step: &'static str,
        variable: &'static str,
        root: Option<&Path>,
        dirs: &[&str],
        via: FoundVia,
    ) -> Step {
        let Some(root) = root else {
            self.note(step, variable.into(), Outcome::NotSet);
            return Ok(None);
        };
        if !root.is_dir() {
            self.note(step, root.display().to_string(), Outcome::Absent);
            return Ok(None);
        }
        for dir in dirs {
            if let found @ Some(_) = self.folder(step, &root.join(dir), via)? {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn folder(&mut self, step: &'static str, dir: &Path, via: FoundVia) -> Step {
        if !dir.is_dir() {
            self.note(step, dir.display().to_string(), Outcome::Absent);
            return Ok(None);
        }
        for soname in self.library.names(Platform::CURRENT) {
            let path = dir.join(soname);
            if path.exists() {
                return self.file(step, &path, via).map(Some);
            }
        }
        let similar = files_starting_with(dir, &format!("lib{}.", self.library.name));
        self.note(
            step,
            dir.display().to_string(),
            Outcome::Other(names(&similar)),
        );
        Ok(None)
    }

    fn file(&mut self, step: &'static str, path: &Path, via: FoundVia) -> Result<Loaded, PathBuf> {
        match self.loader.open(path.as_os_str(), Mode::default()) {
            Ok(handle) => {
                self.open_companions(path);
                Ok(self.loaded(handle, path.to_owned(), via))
            }
            Err(message) => {
                self.note(step, path.display().to_string(), Outcome::Refused(message));
                Err(path.to_owned())
            }
        }
    }

    /// The system's loader, with its own search (`LD_LIBRARY_PATH`, `ld.so.conf`, run paths).
    fn system(&mut self) -> Step {
        for soname in self.library.names(Platform::CURRENT) {
            match self.loader.open(soname.as_ref(), Mode::default()) {
                Ok(handle) => {
                    let loaded = self.loaded(handle, soname.into(), FoundVia::System);
                    self.open_companions(&loaded.path);
                    return Ok(Some(loaded));
                }
                Err(message) => {
                    // "libX: cannot open shared object file: No such file or directory" means that the
                    // name is unknown only where X is the name asked for: a dependency may be missing too.
                    let unknown = message.starts_with(&format!("{soname}: cannot open"));
                    let place = (*soname).to_owned();
                    if unknown {
                        self.note("system loader", place, Outcome::NoSuchName);
                    } else {
                        self.note("system loader", place, Outcome::Refused(message));
                        return Err(soname.into());
                    }
                }
            }
        }
        Ok(None)
    }

    /// Loads what the library would open by itself later. Not finding them is no error here: a library with
    /// a run path finds its own, and one without says so when it needs them.
    fn open_companions(&self, path: &Path) {
        let Some(dir) = path.parent() else { return };
        for prefix in self.library.companions {
            let mut files = files_starting_with(dir, prefix);
            files.dedup_by_key(|file| file.canonicalize().unwrap_or_else(|_| file.clone()));
            // Several versions side by side mean a system folder, and there the library's own search works.
            if files.len() > 1 {
                continue;
            }
            for file in files {
                if let Err(message) = self.loader.open(file.as_os_str(), Mode::default()) {
                    log::debug!("{}: {message}", file.display());
                }
            }
        }
    }

    fn loaded(&self, handle: Handle, fallback: PathBuf, found_via: FoundVia) -> Loaded {
        Loaded {
            library: self.library,
            handle,
            path: self.loader.path(handle).unwrap_or(fallback),
            found_via,
        }
    }

    fn note(&mut self, step: &'static str, place: String, outcome: Outcome) {
        self.looked.push(Looked {
            step,
            place,
            outcome,
        });
    }

    fn error(self, kind: LoadErrorKind, file: Option<PathBuf>) -> LoadError {
        LoadError {
            kind,
            library: self.library.name.to_owned(),
            row: Some(self.library),
            platform: Platform::CURRENT,
            major: None,
            needed_by: None,
            file,
            looked: self.looked,
        }
    }
}

/// Files of a folder whose name begins with `prefix`, sorted.
fn files_starting_with(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix))
        .map(|entry| entry.path())
        .collect();
    files.sort();
    files
}

fn names(files: &[PathBuf]) -> Vec<String> {
    files
        .iter()
        .filter_map(|path| path.file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}
