//! The search for a library: one engine for every row of the table, and for both loading and locating.
//!
//! The engine knows the places and their order. What is done with a file that fits is the [`SearchGoal`]'s business.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::environment::{MAJOR_VARIABLE, PROGRAM_FILES, path_override_variable};
use crate::error::{FileDefect, LoadError, LoadErrorKind, OVERRIDE, SearchOutcome};
use crate::found_via::FoundVia;
use crate::loader::LibraryHandle;
use crate::loader::elf::{self, DynamicInfo};
use crate::search::Finder;
use crate::search::probe::{Probe, Relation, SearchLog, expand, is_absolute, probe_file};
use crate::search::version;
use crate::table::{LibraryDescriptor, Origin, wheel_major};

/// The step that asks the system's loader.
const SYSTEM: &str = "system loader";

/// What is looked for.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The row.
    pub library: &'static LibraryDescriptor,
    /// The file names that count, each with the CUDA major it tells.
    pub names: Vec<(&'static str, Option<u32>)>,
    /// The only CUDA major that counts, if one does.
    pub major: Option<u32>,
    /// The library that needs this one, if it was not asked for itself.
    pub parent: Option<Dependent>,
}

/// A library that needs another one.
#[derive(Debug, Clone)]
pub(crate) struct Dependent {
    /// Its name.
    pub name: &'static str,
    /// The folder it lies in.
    pub folder: PathBuf,
    /// The step that found it.
    pub via: FoundVia,
}

impl Request {
    /// A request for whatever the row names, of one CUDA major or of any.
    pub(crate) fn any(
        finder: &Finder<'_>,
        library: &'static LibraryDescriptor,
        major: Option<u32>,
    ) -> Request {
        Request {
            library,
            names: library.names_for(finder.platform, major).collect(),
            major,
            parent: None,
        }
    }
}

/// A file that may be the library.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// The file.
    pub path: PathBuf,
    /// The step.
    pub via: FoundVia,
    /// The name to open instead of the path, where that is the system's own way to the same file.
    pub by_name: Option<&'static str>,
    /// The CUDA major it is for, if something tells.
    pub major: Option<u32>,
    /// What the file says of itself.
    pub said: DynamicInfo,
}

/// Why a goal does not take a file.
#[derive(Debug)]
pub(crate) enum Rejection {
    /// The loader's message.
    Refused(String),
    /// A library that it needs is not there.
    Dependency(Box<LoadError>),
}

/// What a search is for.
pub(crate) trait SearchGoal {
    /// What comes out of it.
    type Out;
    /// Takes what is in the process already.
    fn loaded(&mut self, handle: LibraryHandle, path: PathBuf, major: Option<u32>) -> Self::Out;
    /// Takes a file that fits.
    fn file(&mut self, candidate: Candidate) -> Result<Self::Out, Rejection>;
    /// Takes what the loader finds for a name where its files are not known: on run paths of the program.
    fn by_name(&mut self, name: &'static str) -> Result<Option<Self::Out>, Rejection>;
}

/// Why a search ends before its last place.
#[derive(Debug)]
enum SearchAbort {
    /// A file is broken, or was refused.
    Failed(PathBuf),
    /// An override leads nowhere.
    InvalidSetting,
    /// A library that a file needs is not there.
    Dependency(Box<LoadError>),
}

type Step<T> = Result<Option<T>, SearchAbort>;

/// Looks for a library at every place, in order, until the goal takes one.
pub(crate) fn search<G: SearchGoal>(
    finder: Finder<'_>,
    request: Request,
    goal: &mut G,
) -> Result<(G::Out, SearchLog), LoadError> {
    let mut search = Search {
        finder,
        request,
        trail: SearchLog::default(),
        refused: None,
        folders: HashMap::new(),
    };
    if search.request.library.names(finder.platform).is_empty() {
        return Err(search.error(LoadErrorKind::NotAvailable, None));
    }
    if let Some(text) = &finder.environment.rejected_major
        && search.request.library.origin != Origin::Driver
    {
        let outcome = SearchOutcome::Refused("no number of a CUDA major".to_owned());
        let place = format!("{MAJOR_VARIABLE}={text}");
        search.trail.note("settings", place, outcome);
        return Err(search.error(LoadErrorKind::InvalidSetting, None));
    }
    if search.request.names.is_empty() {
        let known = search.request.library.majors(finder.platform);
        let known: Vec<String> = known.iter().map(u32::to_string).collect();
        let outcome = SearchOutcome::Refused(format!(
            "{} is known for CUDA {}",
            search.request.library.name,
            known.join(", ")
        ));
        let major = search.request.major.unwrap_or_default();
        let (kind, place) = match search.request.parent {
            None => (
                LoadErrorKind::InvalidSetting,
                format!("{MAJOR_VARIABLE}={major}"),
            ),
            Some(_) => (LoadErrorKind::NotFound, format!("CUDA {major}")),
        };
        search.trail.note("settings", place, outcome);
        return Err(search.error(kind, None));
    }
    match search.run(goal) {
        Ok(Some(out)) => Ok((out, search.trail)),
        Ok(None) => match search.refused.take() {
            None => Err(search.error(LoadErrorKind::NotFound, None)),
            file => Err(search.error(LoadErrorKind::Failed, file)),
        },
        Err(SearchAbort::Failed(file)) => Err(search.error(LoadErrorKind::Failed, Some(file))),
        Err(SearchAbort::InvalidSetting) => Err(search.error(LoadErrorKind::InvalidSetting, None)),
        Err(SearchAbort::Dependency(error)) => Err(*error),
    }
}

struct Search<'a> {
    finder: Finder<'a>,
    request: Request,
    trail: SearchLog,
    /// The first file that the system's loader knows and that does not load. The search goes on after it, as
    /// the loader's own does, but must not end with "not found".
    refused: Option<PathBuf>,
    /// Which folders exist, so that each is asked for once.
    folders: HashMap<PathBuf, bool>,
}

impl<'a> Search<'a> {
    fn run<G: SearchGoal>(&mut self, goal: &mut G) -> Step<G::Out> {
        if let found @ Some(_) = self.in_process(goal) {
            return Ok(found);
        }
        if let Some(path) = self
            .finder
            .environment
            .overrides
            .get(self.request.library.name)
            && let found @ Some(_) = self.override_path(path, goal)?
        {
            return Ok(found);
        }
        match self.request.library.origin {
            Origin::Toolkit | Origin::Product => self.toolkit(goal),
            Origin::Driver => self.driver(goal),
        }
    }

    fn in_process<G: SearchGoal>(&mut self, goal: &mut G) -> Option<G::Out> {
        for (name, major) in self.request.names.clone() {
            let Some(handle) = self.finder.loader.find_loaded(name) else {
                continue;
            };
            let path = self.finder.loader.path(handle);
            let path = path.unwrap_or_else(|| name.into());
            // What a library needs is taken from the process by its name alone: so does the loader.
            let major = match self.request.parent {
                None => self.major(&path, major, None, &DynamicInfo::default()),
                Some(_) => major,
            };
            if self.request.parent.is_none() && self.is_other_major("process", &path, major) {
                continue;
            }
            return Some(goal.loaded(handle, path, major));
        }
        None
    }

    fn toolkit<G: SearchGoal>(&mut self, goal: &mut G) -> Step<G::Out> {
        if let found @ Some(_) = self.wheels(goal)? {
            return Ok(found);
        }
        let (finder, library) = (self.finder, self.request.library);
        let (platform, env) = (finder.platform, finder.environment);
        let conda = env.conda_prefix.as_deref();
        if let Some(root) = self.trail.root(platform, "conda", "CONDA_PREFIX", conda) {
            let dirs = self.conda_dirs();
            if let found @ Some(_) = self.root("conda", root, &dirs, FoundVia::Conda, goal)? {
                return Ok(found);
            }
        }
        if let found @ Some(_) = self.system(goal)? {
            return Ok(found);
        }
        for variable in library.root_variables {
            let value = env.variable(variable);
            if let Some(root) = self.trail.root(platform, variable, variable, value) {
                let dirs = library.variable_dirs(platform);
                let via = FoundVia::Variable(variable);
                if let found @ Some(_) = self.root(variable, root, &dirs, via, goal)? {
                    return Ok(found);
                }
            }
        }
        for (variable, root) in [("CUDA_PATH", &env.cuda_path), ("CUDA_HOME", &env.cuda_home)] {
            if let Some(root) = self
                .trail
                .root(platform, variable, variable, root.as_deref())
            {
                let (dirs, via) = (self.root_dirs(), FoundVia::CudaPath);
                if let found @ Some(_) = self.root(variable, root, &dirs, via, goal)? {
                    return Ok(found);
                }
            }
        }
        if let found @ Some(_) = self.program_files(goal)? {
            return Ok(found);
        }
        if library.canary {
            let step = "toolkit of the system's CUDA runtime";
            match finder.toolkit_root(self.request.major) {
                Some(root) => {
                    let (dirs, via) = (self.root_dirs(), FoundVia::Canary);
                    if let found @ Some(_) = self.root(step, &root, &dirs, via, goal)? {
                        return Ok(found);
                    }
                }
                None => self.trail.note(step, "cudart", SearchOutcome::NoSuchName),
            }
        }
        for root in &env.toolkit_roots {
            if is_absolute(platform, root) {
                let (dirs, via) = (self.root_dirs(), FoundVia::WellKnown);
                if let found @ Some(_) = self.root("toolkit", root, &dirs, via, goal)? {
                    return Ok(found);
                }
            }
        }
        if let Some(Dependent { folder, via, .. }) = self.request.parent.clone() {
            return self.folders("beside what needs it", &[folder], via, goal);
        }
        Ok(None)
    }

    fn driver<G: SearchGoal>(&mut self, goal: &mut G) -> Step<G::Out> {
        if let found @ Some(_) = self.system(goal)? {
            return Ok(found);
        }
        let dirs = &self.finder.environment.driver_dirs;
        let platform = self.finder.platform;
        let dirs: Vec<PathBuf> = dirs
            .iter()
            .filter(|dir| is_absolute(platform, dir))
            .cloned()
            .collect();
        self.folders("driver folders", &dirs, FoundVia::System, goal)
    }

    fn wheels<G: SearchGoal>(&mut self, goal: &mut G) -> Step<G::Out> {
        const STEP: &str = "wheels";
        let (platform, env) = (self.finder.platform, self.finder.environment);
        if env.site_packages.is_empty() {
            let place = "site-packages or VIRTUAL_ENV";
            self.trail.note(STEP, place, SearchOutcome::NotSet);
            return Ok(None);
        }
        let mut roots = Vec::new();
        for root in &env.site_packages {
            if is_absolute(platform, root) {
                roots.push(root);
            } else {
                self.trail.note_path(STEP, root, SearchOutcome::Relative);
            }
        }
        let dirs = self.request.library.wheel_dirs(platform);
        // The newest major of all roots first: an old wheel in an early root must not hide a new one.
        for (name, major) in self.request.names.clone() {
            for dir in &dirs {
                let of_dir = wheel_major(self.request.library.origin, dir);
                for root in &roots {
                    let folder = root.join(dir);
                    if !self.is_folder(&folder) {
                        continue;
                    }
                    let path = folder.join(name);
                    let via = FoundVia::SitePackages;
                    if let found @ Some(_) = self.candidate(STEP, path, via, major, of_dir, goal)? {
                        return Ok(found);
                    }
                }
            }
        }
        for dir in &dirs {
            for root in &roots {
                self.trail.note_folder(STEP, root.join(dir));
            }
        }
        Ok(None)
    }

    fn program_files<G: SearchGoal>(&mut self, goal: &mut G) -> Step<G::Out> {
        let finder = self.finder;
        let patterns = self.request.library.program_files_dirs(finder.platform);
        if patterns.is_empty() {
            return Ok(None);
        }
        let value = finder.environment.variable(PROGRAM_FILES);
        let step = PROGRAM_FILES;
        let Some(root) = self.trail.root(finder.platform, step, step, value) else {
            return Ok(None);
        };
        let mut folders = Vec::new();
        for pattern in patterns {
            let found = expand(finder.files, root, pattern);
            if found.is_empty() {
                self.trail
                    .note_path(step, &root.join(pattern), SearchOutcome::Absent);
            }
            folders.extend(found);
        }
        self.folders(step, &folders, FoundVia::ProgramFiles, goal)
    }

    /// Folders below a root that may hold the library.
    fn root<G: SearchGoal>(
        &mut self,
        step: &'static str,
        root: &Path,
        dirs: &[impl AsRef<Path>],
        via: FoundVia,
        goal: &mut G,
    ) -> Step<G::Out> {
        if !self.is_folder(root) {
            self.trail.note_folder(step, root);
            return Ok(None);
        }
        let mut folders = Vec::new();
        for dir in dirs {
            let folder = root.join(dir);
            // Links in folders are followed, those of the files are not: the result names the toolkit that is
            // meant, and the library as programs know it.
            let real = match self.is_folder(&folder) {
                true => self.finder.files.resolve(&folder),
                false => None,
            };
            let folder = real.unwrap_or(folder);
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        self.folders(step, &folders, via, goal)
    }

    /// Folders that may hold the library, the best name first.
    fn folders<G: SearchGoal>(
        &mut self,
        step: &'static str,
        folders: &[PathBuf],
        via: FoundVia,
        goal: &mut G,
    ) -> Step<G::Out> {
        for (name, major) in self.request.names.clone() {
            for folder in folders {
                if self.is_folder(folder)
                    && let found @ Some(_) =
                        self.candidate(step, folder.join(name), via, major, None, goal)?
                {
                    return Ok(found);
                }
            }
        }
        for folder in folders {
            self.trail.note_folder(step, folder);
        }
        Ok(None)
    }

    /// One place. A file that cannot be the library ends the search: a broken installation must be seen.
    fn candidate<G: SearchGoal>(
        &mut self,
        step: &'static str,
        path: PathBuf,
        via: FoundVia,
        of_name: Option<u32>,
        of_dir: Option<u32>,
        goal: &mut G,
    ) -> Step<G::Out> {
        match probe_file(self.finder.files, &path) {
            Probe::Absent => return Ok(None),
            Probe::FileDefect(fault) => {
                self.trail
                    .note_path(step, &path, SearchOutcome::Broken(fault));
                return Ok(None);
            }
            Probe::File => {}
        }
        let said = match elf::inspect(self.finder.files, self.finder.platform, &path) {
            Ok(said) => said,
            Err(fault) => {
                self.trail
                    .note_path(step, &path, SearchOutcome::Broken(fault));
                return Err(SearchAbort::Failed(path));
            }
        };
        let major = self.major(&path, of_name, of_dir, &said);
        if self.is_other_major(step, &path, major) {
            return Ok(None);
        }
        let candidate = Candidate {
            path: path.clone(),
            via,
            by_name: None,
            major,
            said,
        };
        match goal.file(candidate) {
            Ok(out) => Ok(Some(out)),
            Err(Rejection::Refused(message)) => {
                self.trail
                    .note_path(step, &path, SearchOutcome::Refused(message));
                Err(SearchAbort::Failed(path))
            }
            Err(Rejection::Dependency(error)) => Err(SearchAbort::Dependency(error)),
        }
    }

    /// A file, or a folder that holds the library, named by the user: nothing else is tried after it.
    fn override_path<G: SearchGoal>(&mut self, path: &'a Path, goal: &mut G) -> Step<G::Out> {
        let finder = self.finder;
        let place = format!(
            "{}={}",
            path_override_variable(self.request.library.name),
            path.display()
        );
        if !is_absolute(finder.platform, path) {
            self.trail.note(OVERRIDE, place, SearchOutcome::Relative);
            return Err(SearchAbort::InvalidSetting);
        }
        let via = FoundVia::Override;
        match probe_file(finder.files, path) {
            Probe::File => {}
            Probe::Absent => {
                self.trail.note(OVERRIDE, place, SearchOutcome::Absent);
                return Err(SearchAbort::InvalidSetting);
            }
            Probe::FileDefect(FileDefect::Folder) => {
                return match self.folders(OVERRIDE, &[path.to_owned()], via, goal)? {
                    None => Err(SearchAbort::InvalidSetting),
                    found => Ok(found),
                };
            }
            Probe::FileDefect(fault) => {
                self.trail
                    .note(OVERRIDE, place, SearchOutcome::Broken(fault));
                return Err(SearchAbort::InvalidSetting);
            }
        }
        let said = match elf::inspect(finder.files, finder.platform, path) {
            Ok(said) => said,
            Err(fault) => {
                self.trail
                    .note(OVERRIDE, place, SearchOutcome::Broken(fault));
                return Err(SearchAbort::Failed(path.to_owned()));
            }
        };
        // What another library needs must have the very name it needs: an override for one CUDA major does
        // not help a library of another.
        let own = said.soname.as_deref();
        if self.request.parent.is_some()
            && own.is_some_and(|own| self.request.names.iter().all(|(name, _)| *name != own))
        {
            let outcome = SearchOutcome::Refused(format!("is {}", own.unwrap_or_default()));
            self.trail.note(OVERRIDE, place, outcome);
            return Ok(None);
        }
        let names = self.request.library.names(finder.platform);
        let majors = self.request.library.majors(finder.platform);
        let of_name = names
            .iter()
            .position(|name| Some(*name) == own || Some(OsStr::new(name)) == path.file_name())
            .and_then(|index| majors.get(index).copied());
        let major = self.major(path, of_name, None, &said);
        let candidate = Candidate {
            path: path.to_owned(),
            via,
            by_name: None,
            major,
            said,
        };
        match goal.file(candidate) {
            Ok(out) => Ok(Some(out)),
            Err(Rejection::Refused(message)) => {
                self.trail
                    .note(OVERRIDE, place, SearchOutcome::Refused(message));
                Err(SearchAbort::Failed(path.to_owned()))
            }
            Err(Rejection::Dependency(error)) => Err(SearchAbort::Dependency(error)),
        }
    }

    /// The system's own search (`LD_LIBRARY_PATH`, `ld.so.conf`, the default folders), name by name. What it
    /// passes over is passed over here too; a file that it refuses ends its search for that name only.
    fn system<G: SearchGoal>(&mut self, goal: &mut G) -> Step<G::Out> {
        for (name, of_name) in self.request.names.clone() {
            if let found @ Some(_) = self.system_name(name, of_name, goal)? {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn system_name<G: SearchGoal>(
        &mut self,
        name: &'static str,
        of_name: Option<u32>,
        goal: &mut G,
    ) -> Step<G::Out> {
        let (finder, via) = (self.finder, FoundVia::System);
        let paths = finder.loader.resolve(name);
        if paths.is_empty() {
            return match goal.by_name(name) {
                Ok(Some(out)) => Ok(Some(out)),
                Ok(None) => {
                    self.trail.note(SYSTEM, name, SearchOutcome::NoSuchName);
                    Ok(None)
                }
                Err(Rejection::Refused(message)) => {
                    self.trail
                        .note(SYSTEM, name, SearchOutcome::Refused(message));
                    self.refused.get_or_insert(name.into());
                    Ok(None)
                }
                Err(Rejection::Dependency(error)) => Err(SearchAbort::Dependency(error)),
            };
        }
        for (index, path) in paths.into_iter().enumerate() {
            let fault = if self.is_stub(&path) {
                Some(FileDefect::Stub)
            } else {
                match probe_file(finder.files, &path) {
                    Probe::File => None,
                    Probe::Absent => continue,
                    Probe::FileDefect(fault) => Some(fault),
                }
            };
            if let Some(fault) = fault {
                self.trail
                    .note_path(SYSTEM, &path, SearchOutcome::Broken(fault));
                continue;
            }
            let said = match elf::inspect(finder.files, finder.platform, &path) {
                Ok(said) => said,
                Err(fault) => {
                    let foreign = matches!(fault, FileDefect::Architecture { .. });
                    self.trail
                        .note_path(SYSTEM, &path, SearchOutcome::Broken(fault));
                    if foreign {
                        continue;
                    }
                    self.refused.get_or_insert(path);
                    return Ok(None);
                }
            };
            let major = self.major(&path, of_name, None, &said);
            if self.is_other_major(SYSTEM, &path, major) {
                continue;
            }
            let candidate = Candidate {
                path: path.clone(),
                via,
                // The first one is what the loader itself would take.
                by_name: (index == 0).then_some(name),
                major,
                said,
            };
            match goal.file(candidate) {
                Ok(out) => return Ok(Some(out)),
                Err(Rejection::Refused(message)) => {
                    self.trail
                        .note_path(SYSTEM, &path, SearchOutcome::Refused(message));
                    self.refused.get_or_insert(path);
                    return Ok(None);
                }
                Err(Rejection::Dependency(error)) => return Err(SearchAbort::Dependency(error)),
            }
        }
        Ok(None)
    }

    /// Whether a file is one of a toolkit's stubs, which are for linking and fail every call.
    fn is_stub(&self, path: &Path) -> bool {
        let below_stubs = |path: &Path| {
            path.parent()
                .is_some_and(|folder| folder.components().any(|part| part.as_os_str() == "stubs"))
        };
        below_stubs(path)
            || self.request.library.origin == Origin::Driver
                && self
                    .finder
                    .files
                    .resolve(path)
                    .is_some_and(|path| below_stubs(&path))
    }

    fn is_folder(&mut self, folder: &Path) -> bool {
        if let Some(known) = self.folders.get(folder) {
            return *known;
        }
        let is = self.finder.files.entry(folder) == crate::files::FileEntry::Folder;
        self.folders.insert(folder.to_owned(), is);
        is
    }

    fn major(
        &self,
        path: &Path,
        of_name: Option<u32>,
        of_dir: Option<u32>,
        said: &DynamicInfo,
    ) -> Option<u32> {
        if self.request.library.origin == Origin::Driver {
            return None;
        }
        of_name
            .or(of_dir)
            .or_else(|| version::major_of_needed(said))
            .or_else(|| {
                // Where nothing depends on it, the file system is not asked.
                let library = self.request.library;
                if self.request.major.is_none() && library.dependencies.is_empty() {
                    return None;
                }
                version::major_of_place(&self.finder, library, path)
            })
    }

    /// Whether a file is for another CUDA major than the one that counts; if so, notes it.
    fn is_other_major(&mut self, step: &'static str, path: &Path, major: Option<u32>) -> bool {
        match (major, self.request.major) {
            (Some(found), Some(wanted)) if found != wanted => {
                let outcome = SearchOutcome::OtherMajor { found, wanted };
                self.trail.note_path(step, path, outcome);
                true
            }
            _ => false,
        }
    }

    /// Folders of the library below the root of a toolkit.
    fn root_dirs(&self) -> Vec<String> {
        let platform = self.finder.platform;
        let dirs = self.request.library.root_dirs(platform);
        let mut all: Vec<String> = dirs.iter().map(|dir| (*dir).to_owned()).collect();
        if !platform.is_windows() && dirs.contains(&"lib") {
            let targets = platform.targets().iter();
            all.extend(targets.map(|target| format!("targets/{target}/lib")));
        }
        all
    }

    /// Folders of the library below a conda environment, which knows `lib` alone where a toolkit has more.
    fn conda_dirs(&self) -> Vec<String> {
        let dirs = self.root_dirs().into_iter();
        if self.finder.platform.is_windows() {
            return dirs.map(|dir| format!("Library/{dir}")).collect();
        }
        dirs.filter(|dir| dir != "lib64" && !dir.starts_with("extras/"))
            .collect()
    }

    fn error(self, kind: LoadErrorKind, file: Option<PathBuf>) -> LoadError {
        let Request {
            library,
            names,
            major,
            parent,
        } = self.request;
        let platform = self.finder.platform;
        let majors = library.majors(platform);
        let all = library.names(platform);
        let stem = all.first().map_or("", |name| stem(name));
        let looked = self.trail.finish(self.finder.files, |_, file| {
            let file = file.to_string_lossy();
            if names.iter().any(|(name, _)| *name == file) {
                return Relation::None;
            }
            let other = all.iter().position(|name| *name == file);
            match (other.and_then(|index| majors.get(index)), major) {
                (Some(found), Some(wanted)) => Relation::OtherMajor(*found, wanted),
                _ if file.starts_with(stem) => Relation::Similar,
                _ => Relation::None,
            }
        });
        LoadError {
            kind,
            library: library.name.to_owned(),
            row: Some(library),
            platform,
            wanted: major,
            major: major.or_else(|| version::installed_major(&self.finder)),
            needed_by: parent.map(|parent| parent.name),
            file,
            searched: looked,
        }
    }
}

/// What names of the same library begin with: `libnvrtc.so`, `cudart64_`.
fn stem(name: &str) -> &str {
    match name.find(".so") {
        Some(at) => &name[..at + 3],
        None => match name.find(['_', '.']) {
            Some(at) => &name[..=at],
            None => name,
        },
    }
}
