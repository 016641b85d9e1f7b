//! Loads a library that was found, after its dependencies, or only locates it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{FileDefect, LoadError, LoadErrorKind, SearchOutcome};
use crate::found_via::FoundVia;
use crate::loader::{DynamicLoader, LibraryHandle, OpenMode};
use crate::platform::Os;
use crate::search::Finder;
use crate::search::engine::{Candidate, Dependent, Rejection, Request, SearchGoal, search};
use crate::search::located::{LoadedLibrary, LocatedLibrary};
use crate::search::probe::Relation;
use crate::search::version;
use crate::table::{self, LIBRARIES, LibraryDescriptor, Origin};

impl Finder<'_> {
    /// Finds the library called `name` and loads it into this process, with every symbol resolved at once and
    /// visible to libraries loaded later. Its dependencies are loaded first, of the CUDA major that the file
    /// requires.
    ///
    /// A failed attempt is not cached: a library installed afterwards is found by the next call. Only the step that
    /// found a loaded library is recorded.
    ///
    /// # Errors
    ///
    /// [`LoadErrorKind::Unknown`] if the table has no such library, [`LoadErrorKind::NotAvailable`] if the library
    /// does not exist for the platform, [`LoadErrorKind::NotFound`] if it, or a dependency, is in none of the
    /// searched locations, [`LoadErrorKind::Failed`] if a file is broken or the system loader fails to load it: the
    /// search then stops, because skipping it would hide a broken installation. [`LoadErrorKind::InvalidSetting`] if
    /// an override names a missing file or `CUPYRITE_CUDA_MAJOR` is not a known CUDA major.
    pub fn load(&self, name: &str) -> Result<LoadedLibrary, LoadError> {
        let library = self.row(name)?;
        let request = Request::any(self, library, self.wanted(library));
        let mut session = LoadSession::default();
        let loaded = load(*self, request, &mut session)?;
        let LoadedLibrary {
            path, found_via, ..
        } = &loaded;
        log::debug!("{name}: {} ({found_via})", path.display());
        Ok(loaded)
    }

    /// Finds the library called `name` as [`Finder::load`] does, without loading it: no code of the library runs.
    /// Does not search for its dependencies.
    ///
    /// # Errors
    ///
    /// The errors of [`Finder::load`], except for failures that only the system loader detects.
    pub fn locate(&self, name: &str) -> Result<LocatedLibrary, LoadError> {
        let library = self.row(name)?;
        let request = Request::any(self, library, self.wanted(library));
        let mut goal = Locate {
            finder: *self,
            library,
        };
        let (mut located, log) = search(*self, request, &mut goal)?;
        located.searched = log.finish(self.files, |_, _| Relation::None);
        Ok(located)
    }

    fn row(&self, name: &str) -> Result<&'static LibraryDescriptor, LoadError> {
        table::find_library(name).ok_or_else(|| LoadError::unknown(name, self.platform))
    }

    /// The requested CUDA major; the driver has none.
    fn wanted(&self, library: &LibraryDescriptor) -> Option<u32> {
        match library.origin {
            Origin::Driver => None,
            Origin::Toolkit | Origin::Product => self.environment.major,
        }
    }

    /// The root of the toolkit that contains the system's CUDA runtime: the loaded runtime, else the one that the
    /// system loader would take. Loads nothing and starts no process.
    pub fn toolkit_root_by_canary(&self) -> Option<PathBuf> {
        self.toolkit_root(self.environment.major)
    }

    /// As [`Finder::toolkit_root_by_canary`], for one CUDA major.
    pub(crate) fn toolkit_root(&self, major: Option<u32>) -> Option<PathBuf> {
        let cudart = table::find_library("cudart")?;
        Request::any(self, cudart, major)
            .names
            .into_iter()
            .find_map(|(name, _)| {
                let loaded = self.loader.find_loaded(name);
                loaded
                    .and_then(|handle| self.loader.path(handle))
                    .into_iter()
                    .chain(self.loader.resolve(name))
                    .find_map(|path| self.root_around(&path))
            })
    }

    /// The root of the toolkit that contains a CUDA runtime, by its path as given or resolved.
    fn root_around(&self, path: &Path) -> Option<PathBuf> {
        let dirs: Vec<String> = match self.platform.os {
            Os::Linux => {
                let targets = self.platform.targets().iter();
                let targets = targets.map(|target| format!("targets/{target}/lib"));
                targets.chain(["lib64", "lib"].map(str::to_owned)).collect()
            }
            Os::Windows => ["bin/x64", "bin/arm64", "bin"].map(str::to_owned).into(),
        };
        let root = |path: &Path| {
            let folder = path.parent()?;
            let dir = dirs.iter().find(|dir| folder.ends_with(dir))?;
            let root = folder.ancestors().nth(dir.split('/').count())?;
            // `/usr/lib64` is not in a toolkit.
            (root.is_absolute() && !["/", "/usr"].iter().any(|system| root == Path::new(system))
                || self.platform.is_windows())
            .then(|| root.to_owned())
        };
        root(path).or_else(|| root(&self.files.resolve(path)?))
    }
}

/// The libraries one call loads.
#[derive(Debug, Default)]
struct LoadSession {
    /// The libraries whose dependencies are being loaded, the requested one first.
    active: Vec<&'static str>,
    /// The loaded dependencies, with the accepted names.
    done: Vec<(&'static str, Vec<&'static str>)>,
}

/// How a missing dependency is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DependencyKind {
    /// The file names it: the loader fails without it, unless the file's run path leads to it.
    Linked,
    /// The table lists it, and the file names no dependency of the table.
    Required,
    /// Loaded if found; a broken one is an error.
    Optional,
    /// Loaded if that succeeds.
    Tried,
}

fn load(
    finder: Finder<'_>,
    request: Request,
    session: &mut LoadSession,
) -> Result<LoadedLibrary, LoadError> {
    let library = request.library;
    session.active.push(library.name);
    let mut goal = Load {
        finder,
        library,
        session,
    };
    let result = search(finder, request, &mut goal).map(|(loaded, _)| loaded);
    session.active.pop();
    result
}

/// Number of libraries that threads are opening and have not recorded yet.
static OPENING: AtomicUsize = AtomicUsize::new(0);

/// A library that this thread is opening.
struct Opening;

impl Opening {
    fn begin() -> Self {
        OPENING.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        OPENING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The step that found a loaded library, if this crate has loaded it. Another thread may have opened it and not recorded the
/// step yet. The wait has a bound, because code of a library that is being opened may load another one.
fn recorded_found_via(loader: &dyn DynamicLoader, handle: LibraryHandle) -> Option<FoundVia> {
    const MOST_YIELDS: u32 = 10_000;
    for _ in 0..MOST_YIELDS {
        // In this order: a library leaves the count after it has been recorded.
        let opening = OPENING.load(Ordering::SeqCst) > 0;
        let recorded = loader.recorded_found_via(handle);
        if recorded.is_some() || !opening {
            return recorded;
        }
        std::thread::yield_now();
    }
    None
}

struct Load<'a, 's> {
    finder: Finder<'a>,
    library: &'static LibraryDescriptor,
    session: &'s mut LoadSession,
}

impl SearchGoal for Load<'_, '_> {
    type Out = LoadedLibrary;

    fn loaded(&mut self, handle: LibraryHandle, path: PathBuf, _: Option<u32>) -> LoadedLibrary {
        let before = recorded_found_via(self.finder.loader, handle);
        LoadedLibrary {
            library: self.library,
            handle,
            path,
            found_via: before.unwrap_or(FoundVia::AlreadyLoaded),
        }
    }

    fn file(&mut self, candidate: Candidate) -> Result<LoadedLibrary, Rejection> {
        let missing = self.dependencies(&candidate)?;
        let _opening = Opening::begin();
        let name = candidate.by_name.map(OsStr::new);
        match self.open(name.unwrap_or(candidate.path.as_os_str())) {
            Ok(handle) => Ok(self.opened(handle, candidate.path, candidate.via)),
            Err(message) => Err(match missing {
                Some(error) => Rejection::Dependency(error),
                None => Rejection::Refused(message),
            }),
        }
    }

    fn by_name(&mut self, name: &'static str) -> Result<Option<LoadedLibrary>, Rejection> {
        let _opening = Opening::begin();
        match self.open(name.as_ref()) {
            Ok(handle) => Ok(Some(self.opened(handle, name.into(), FoundVia::System))),
            // A message that begins with the bare name means that this file was not found. Otherwise a file was
            // found, and it or a dependency failed to load. (The rest of the message is localized.)
            Err(message) if message.starts_with(&format!("{name}: ")) => Ok(None),
            Err(message) => Err(Rejection::Refused(message)),
        }
    }
}

impl Load<'_, '_> {
    fn open(&self, path: &OsStr) -> Result<LibraryHandle, String> {
        let mode = OpenMode {
            deep_bind: self.library.deep_bind,
            add_folder: self.library.add_dll_directory,
        };
        self.finder.loader.open(path, mode)
    }

    fn opened(&self, handle: LibraryHandle, path: PathBuf, found_via: FoundVia) -> LoadedLibrary {
        let loader = self.finder.loader;
        loader.record_found_via(handle, found_via);
        let path = loader.path(handle).unwrap_or(path);
        self.open_companions(&path);
        LoadedLibrary {
            library: self.library,
            handle,
            path,
            found_via,
        }
    }

    /// Loads the companions that the library opens itself later. A missing one is not an error: a library with a run
    /// path finds its own, and one without reports the failure when it needs them.
    fn open_companions(&self, path: &Path) {
        if self.finder.platform.is_windows() {
            return;
        }
        for prefix in self.library.companions {
            let Some(file) = version::companion(&self.finder, path, prefix) else {
                log::debug!("no {prefix}* that fits beside {}", path.display());
                continue;
            };
            match self
                .finder
                .loader
                .open(file.as_os_str(), OpenMode::default())
            {
                Ok(_) => {}
                Err(message) => log::warn!("{} does not load: {message}", file.display()),
            }
        }
    }

    /// Loads the dependencies of a file. A missing one that the file names is returned, not raised, because the
    /// file's run path may lead to it; it becomes the error if the file fails to load.
    fn dependencies(&mut self, candidate: &Candidate) -> Result<Option<Box<LoadError>>, Rejection> {
        let mut missing = None;
        let finder = self.finder;
        let major = candidate.major.or(finder.environment.major);
        for (library, name, kind) in needed(self.library, candidate) {
            let mut request = Request::any(&finder, library, major);
            if let Some(name) = name {
                let mut names = library.names_for(finder.platform, None);
                let of_name = names.find_map(|(one, major)| major.filter(|_| one == name));
                request.names = vec![(name, of_name)];
                // The name is decisive; its CUDA major, if it implies one, overrides the dependent's.
                request.major = of_name.or(major);
            }
            if library.origin == Origin::Driver {
                request.major = None;
            }
            let names: Vec<_> = request.names.iter().map(|(name, _)| *name).collect();
            let key = (library.name, names);
            // A dependency cycle: the library is being loaded already.
            if self.session.active.contains(&library.name) || self.session.done.contains(&key) {
                continue;
            }
            request.dependent = Some(Dependent {
                name: self.library.name,
                folder: candidate
                    .path
                    .parent()
                    .map(Path::to_owned)
                    .unwrap_or_default(),
                via: candidate.via,
            });
            match load(finder, request, self.session) {
                Ok(_) => self.session.done.push(key),
                Err(error) => match (kind, error.kind) {
                    (_, LoadErrorKind::NotAvailable) => {}
                    (DependencyKind::Tried, _)
                    | (DependencyKind::Optional, LoadErrorKind::NotFound) => {
                        log::debug!("{} without {}: {error}", self.library.name, library.name);
                    }
                    // The loader would open a pipe or device, and block.
                    (DependencyKind::Linked, LoadErrorKind::NotFound) if !blocks(&error) => {
                        missing.get_or_insert(Box::new(error));
                    }
                    _ => return Err(Rejection::Dependency(Box::new(error))),
                },
            }
        }
        Ok(missing)
    }
}

/// Whether a search found a pipe, socket or device.
fn blocks(error: &LoadError) -> bool {
    error
        .searched
        .iter()
        .any(|location| location.outcome == SearchOutcome::Broken(FileDefect::Special))
}

/// The dependencies of a file that are in the table: first those that the table lists, in its order, then others that
/// the file names.
fn needed(
    library: &'static LibraryDescriptor,
    candidate: &Candidate,
) -> Vec<(
    &'static LibraryDescriptor,
    Option<&'static str>,
    DependencyKind,
)> {
    let linked: Vec<(&'static LibraryDescriptor, &'static str)> = candidate
        .dynamic
        .needed
        .iter()
        .flatten()
        .filter_map(|needed| {
            LIBRARIES.iter().find_map(|row| {
                let name = row.linux_sonames.iter().find(|name| *name == needed)?;
                Some((row, *name))
            })
        })
        .filter(|(row, _)| row.name != library.name)
        .collect();
    let name_of = |name: &str| {
        let mut linked = linked.iter();
        linked.find_map(|(row, soname)| (row.name == name).then_some(*soname))
    };
    // A file that names one dependency of the table names all that its version has.
    let tells = library
        .dependencies
        .iter()
        .any(|name| name_of(name).is_some());
    let mut all = Vec::new();
    for name in library.dependencies {
        let kind = match name_of(name) {
            Some(_) => DependencyKind::Linked,
            None if tells => DependencyKind::Tried,
            None => DependencyKind::Required,
        };
        all.extend(table::find_library(name).map(|row| (row, name_of(name), kind)));
    }
    for name in library.optional_dependencies {
        all.extend(
            table::find_library(name).map(|row| (row, name_of(name), DependencyKind::Optional)),
        );
    }
    for (row, soname) in linked {
        if !all.iter().any(|(known, ..)| known.name == row.name) {
            all.push((row, Some(soname), DependencyKind::Tried));
        }
    }
    all
}

struct Locate<'a> {
    finder: Finder<'a>,
    library: &'static LibraryDescriptor,
}

impl Locate<'_> {
    fn located(&self, path: PathBuf, found_via: FoundVia, major: Option<u32>) -> LocatedLibrary {
        let major = match self.library.origin {
            Origin::Driver => None,
            _ => major.or_else(|| version::major_of_place(&self.finder, self.library, &path)),
        };
        let version = version::version(&self.finder, self.library, &path, major);
        LocatedLibrary {
            library: self.library,
            path,
            found_via,
            major,
            version,
            searched: Vec::new(),
        }
    }
}

impl SearchGoal for Locate<'_> {
    type Out = LocatedLibrary;

    fn loaded(
        &mut self,
        handle: LibraryHandle,
        path: PathBuf,
        major: Option<u32>,
    ) -> LocatedLibrary {
        let before = recorded_found_via(self.finder.loader, handle);
        self.located(path, before.unwrap_or(FoundVia::AlreadyLoaded), major)
    }

    fn file(&mut self, candidate: Candidate) -> Result<LocatedLibrary, Rejection> {
        Ok(self.located(candidate.path, candidate.via, candidate.major))
    }

    fn by_name(&mut self, _: &'static str) -> Result<Option<LocatedLibrary>, Rejection> {
        Ok(None)
    }
}
