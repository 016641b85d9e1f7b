//! What is done with a library that was found: loading it, after what it needs, or only telling where it is.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::error::{FileDefect, LoadError, LoadErrorKind, SearchOutcome};
use crate::found_via::FoundVia;
use crate::loader::{LibraryHandle, OpenMode};
use crate::platform::Os;
use crate::search::Finder;
use crate::search::engine::{Candidate, Dependent, Rejection, Request, SearchGoal, search};
use crate::search::located::{LoadedLibrary, LocatedLibrary};
use crate::search::probe::Relation;
use crate::search::version;
use crate::table::{self, LIBRARIES, LibraryDescriptor, Origin};

impl Finder<'_> {
    /// Finds the library called `name` and loads it into this process, with every symbol resolved at once and
    /// visible to what is loaded later. What it needs is loaded first, in the CUDA major it needs it in: the
    /// file itself tells.
    ///
    /// Nothing is remembered between calls but which step found what: a library installed after a failed
    /// attempt is found by the next one.
    ///
    /// # Errors
    ///
    /// [`LoadErrorKind::Unknown`] if there is no such row, [`LoadErrorKind::NotAvailable`] if the library does
    /// not exist for the platform, [`LoadErrorKind::NotFound`] if it, or a library it needs, lies in none of the
    /// places, [`LoadErrorKind::Failed`] if a file was found that is broken or that the system's loader refused:
    /// the search then stops, because a broken installation should be seen, not skipped.
    /// [`LoadErrorKind::InvalidSetting`] if an override leads nowhere or `CUPYRITE_CUDA_MAJOR` is no known number.
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

    /// Finds the library called `name` as [`Finder::load`] does, without loading anything: no code of the
    /// library runs. What it needs is not looked for.
    ///
    /// # Errors
    ///
    /// As [`Finder::load`], less what only the system's loader would notice.
    pub fn locate(&self, name: &str) -> Result<LocatedLibrary, LoadError> {
        let library = self.row(name)?;
        let request = Request::any(self, library, self.wanted(library));
        let mut goal = Locate {
            finder: *self,
            library,
        };
        let (mut located, trail) = search(*self, request, &mut goal)?;
        located.searched = trail.finish(self.files, |_, _| Relation::None);
        Ok(located)
    }

    fn row(&self, name: &str) -> Result<&'static LibraryDescriptor, LoadError> {
        table::find_library(name).ok_or_else(|| LoadError::unknown(name, self.platform))
    }

    /// The CUDA major that is asked for; the driver has none.
    fn wanted(&self, library: &LibraryDescriptor) -> Option<u32> {
        match library.origin {
            Origin::Driver => None,
            Origin::Toolkit | Origin::Product => self.environment.major,
        }
    }

    /// The root of the toolkit that the system's CUDA runtime belongs to: the runtime in the process, or else
    /// the one that the system's loader would take. Nothing is loaded for it and no process is started.
    pub fn toolkit_root_by_canary(&self) -> Option<PathBuf> {
        self.toolkit_root(self.environment.major)
    }

    /// The same for one CUDA major.
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

    /// The root of a toolkit of which a file is the CUDA runtime, as it is written or with links followed.
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
            // `/usr/lib64` is no toolkit's.
            (root.is_absolute() && !["/", "/usr"].iter().any(|system| root == Path::new(system))
                || self.platform.is_windows())
            .then(|| root.to_owned())
        };
        root(path).or_else(|| root(&self.files.resolve(path)?))
    }
}

/// What is being loaded for one call.
#[derive(Debug, Default)]
struct LoadSession {
    /// The libraries whose dependencies are being loaded, the one asked for first.
    active: Vec<&'static str>,
    /// Those that were loaded as dependencies, by the names that counted.
    done: Vec<(&'static str, Vec<&'static str>)>,
}

/// How badly a dependency is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DependencyStrength {
    /// The file names it: the loader will not load the one without the other.
    Linked,
    /// The table says so, and the file does not tell.
    Required,
    /// It is loaded if it is there; a broken one is an error.
    Optional,
    /// It is loaded if that works.
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

struct Load<'a, 's> {
    finder: Finder<'a>,
    library: &'static LibraryDescriptor,
    session: &'s mut LoadSession,
}

impl SearchGoal for Load<'_, '_> {
    type Out = LoadedLibrary;

    fn loaded(&mut self, handle: LibraryHandle, path: PathBuf, _: Option<u32>) -> LoadedLibrary {
        let before = self.finder.loader.recorded_found_via(handle);
        LoadedLibrary {
            library: self.library,
            handle,
            path,
            found_via: before.unwrap_or(FoundVia::AlreadyLoaded),
        }
    }

    fn file(&mut self, candidate: Candidate) -> Result<LoadedLibrary, Rejection> {
        let missing = self.dependencies(&candidate)?;
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
        match self.open(name.as_ref()) {
            Ok(handle) => Ok(Some(self.opened(handle, name.into(), FoundVia::System))),
            // A bare name in front means that this very file was not found. Otherwise a file was, and it, or
            // something that it needs, does not load. (The words after it are in the user's language.)
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

    /// Loads what the library would open by itself later. Not finding them is no error here: a library with
    /// a run path finds its own, and one without says so when it needs them.
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

    /// Loads what a file needs. What it names and is nowhere is no error yet, because the file's own run path
    /// may lead to it: that is given back, for the case that the file does not load.
    fn dependencies(&mut self, candidate: &Candidate) -> Result<Option<Box<LoadError>>, Rejection> {
        let mut missing = None;
        let finder = self.finder;
        let major = candidate.major.or(finder.environment.major);
        for (library, name, need) in needed(self.library, candidate) {
            let mut request = Request::any(&finder, library, major);
            if let Some(name) = name {
                let mut names = library.names_for(finder.platform, None);
                let of_name = names.find_map(|(one, major)| major.filter(|_| one == name));
                request.names = vec![(name, of_name)];
                // The name is what counts; where it tells a major, the parent's must not contradict it.
                request.major = of_name.or(major);
            }
            if library.origin == Origin::Driver {
                request.major = None;
            }
            let names: Vec<_> = request.names.iter().map(|(name, _)| *name).collect();
            let key = (library.name, names);
            // A cycle ends here: the library is being loaded already.
            if self.session.active.contains(&library.name) || self.session.done.contains(&key) {
                continue;
            }
            request.parent = Some(Dependent {
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
                Err(error) => match (need, error.kind) {
                    (_, LoadErrorKind::NotAvailable) => {}
                    (DependencyStrength::Tried, _)
                    | (DependencyStrength::Optional, LoadErrorKind::NotFound) => {
                        log::debug!("{} without {}: {error}", self.library.name, library.name);
                    }
                    // The loader would come across what blocks: it must not get there.
                    (DependencyStrength::Linked, LoadErrorKind::NotFound) if !blocks(&error) => {
                        missing.get_or_insert(Box::new(error));
                    }
                    _ => return Err(Rejection::Dependency(Box::new(error))),
                },
            }
        }
        Ok(missing)
    }
}

/// Whether a search came across something that must not be opened.
fn blocks(error: &LoadError) -> bool {
    let mut looked = error.searched.iter();
    looked.any(|looked| looked.outcome == SearchOutcome::Broken(FileDefect::Special))
}

/// The libraries of the table that a file needs: what the table says first, in its order, then what else the
/// file names.
fn needed(
    library: &'static LibraryDescriptor,
    candidate: &Candidate,
) -> Vec<(
    &'static LibraryDescriptor,
    Option<&'static str>,
    DependencyStrength,
)> {
    let linked: Vec<(&'static LibraryDescriptor, &'static str)> = candidate
        .said
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
    // A file that names some of what the table says names all that this version of it needs.
    let tells = library
        .dependencies
        .iter()
        .any(|name| name_of(name).is_some());
    let mut all = Vec::new();
    for name in library.dependencies {
        let need = match name_of(name) {
            Some(_) => DependencyStrength::Linked,
            None if tells => DependencyStrength::Tried,
            None => DependencyStrength::Required,
        };
        all.extend(table::find_library(name).map(|row| (row, name_of(name), need)));
    }
    for name in library.optional_dependencies {
        all.extend(
            table::find_library(name).map(|row| (row, name_of(name), DependencyStrength::Optional)),
        );
    }
    for (row, soname) in linked {
        if !all.iter().any(|(known, ..)| known.name == row.name) {
            all.push((row, Some(soname), DependencyStrength::Tried));
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
        let before = self.finder.loader.recorded_found_via(handle);
        self.located(path, before.unwrap_or(FoundVia::AlreadyLoaded), major)
    }

    fn file(&mut self, candidate: Candidate) -> Result<LocatedLibrary, Rejection> {
        Ok(self.located(candidate.path, candidate.via, candidate.major))
    }

    fn by_name(&mut self, _: &'static str) -> Result<Option<LocatedLibrary>, Rejection> {
        Ok(None)
    }
}
