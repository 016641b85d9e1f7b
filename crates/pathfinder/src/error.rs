//! Errors of a search: every searched location, and the commands that fix it.

use std::fmt;
use std::path::PathBuf;

use crate::environment::{MAJOR_VARIABLE, path_override_variable};
use crate::platform::Platform;
use crate::table::{LibraryDescriptor, Origin, Packages};

/// The step of the search that takes `CUPYRITE_LIB_<NAME>`.
pub(crate) const OVERRIDE: &str = "override";

/// The location of wheels in a search without site-packages folders.
pub(crate) const WHEELS_WITHOUT_FOLDERS: &str = "site-packages or VIRTUAL_ENV";

/// Locations of one step that a message lists; it counts the rest.
const LOCATIONS_LISTED: usize = 8;

/// Why a library cannot be loaded or located.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LoadErrorKind {
    /// It is in none of the searched locations.
    NotFound,
    /// It was found, and is broken or failed to load.
    Failed,
    /// The table has no library of that name.
    Unknown,
    /// It does not exist for this platform.
    NotAvailable,
    /// An environment variable of this project is invalid: `CUPYRITE_LIB_<NAME>` names a missing file, or
    /// `CUPYRITE_CUDA_MAJOR` is not a known CUDA major.
    InvalidSetting,
}

/// One searched location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchedLocation {
    /// The search step: `wheels`, `conda`, ...
    pub step: &'static str,
    /// A folder, a file, or a name passed to the system loader.
    pub location: String,
    /// The result.
    pub outcome: SearchOutcome,
}

/// The result of searching one location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchOutcome {
    /// The variable that names the location is not set.
    NotSet,
    /// The variable holds a relative path, whose meaning would depend on the working directory.
    Relative,
    /// The folder or file does not exist.
    Absent,
    /// The system loader finds no library of this name.
    NoSuchName,
    /// The folder exists and does not contain the file. Lists files with a similar name.
    Other(Vec<String>),
    /// The file is for another CUDA major than the required one.
    OtherMajor {
        /// The file's CUDA major.
        found: u32,
        /// The required CUDA major.
        wanted: u32,
    },
    /// A file or folder exists and is unusable.
    Broken(FileDefect),
    /// The system loader failed to load the file: its message.
    Refused(String),
}

/// Why a file is unusable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileDefect {
    /// A symbolic link to something that does not exist.
    DanglingLink(PathBuf),
    /// A symbolic link cycle.
    LinkCycle,
    /// This process has no permission to access it: the system's message.
    Denied(String),
    /// Reading failed: the system's message.
    Unreadable(String),
    /// A folder instead of a file.
    Folder,
    /// A file instead of a folder.
    File,
    /// A pipe, a socket or a device. The search does not open it.
    Special,
    /// An empty file.
    Empty,
    /// A tool without execute permission.
    NotExecutable,
    /// Not a library: what the first bytes look like.
    NotALibrary(&'static str),
    /// Truncated or overwritten: the inconsistent part.
    Damaged(&'static str),
    /// Built for another platform.
    Architecture {
        /// The platform it was built for.
        found: String,
        /// The required platform.
        wanted: Platform,
    },
    /// A link-time stub.
    Stub,
}

impl fmt::Display for FileDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileDefect::DanglingLink(target) => write!(
                f,
                "a symbolic link to {}, which does not exist",
                target.display()
            ),
            FileDefect::LinkCycle => f.write_str("a symbolic link cycle"),
            FileDefect::Denied(message) => {
                write!(f, "cannot be accessed ({message})")
            }
            FileDefect::Unreadable(message) => write!(f, "cannot be read ({message})"),
            FileDefect::Folder => f.write_str("a folder, not a file"),
            FileDefect::File => f.write_str("a file, not a folder"),
            FileDefect::Special => f.write_str("a pipe, a socket or a device, not a file"),
            FileDefect::Empty => f.write_str("an empty file"),
            FileDefect::NotExecutable => f.write_str("a file without execute permission"),
            FileDefect::NotALibrary(what) => write!(f, "not a library: {what}"),
            FileDefect::Damaged(what) => write!(f, "a corrupt library: {what}"),
            FileDefect::Architecture { found, wanted } => {
                write!(f, "built for {found}; this process is {wanted}")
            }
            FileDefect::Stub => f.write_str("a link-time stub, which cannot be loaded"),
        }
    }
}

impl fmt::Display for SearchOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SearchOutcome::NotSet => f.write_str("not set"),
            SearchOutcome::Relative => f.write_str("ignored, because it is not an absolute path"),
            SearchOutcome::Absent => f.write_str("does not exist"),
            SearchOutcome::NoSuchName => f.write_str("not found"),
            SearchOutcome::Other(files) if files.is_empty() => f.write_str("does not contain it"),
            SearchOutcome::Other(files) => write!(f, "contains only {}", files.join(", ")),
            SearchOutcome::OtherMajor { found, wanted } => {
                write!(f, "for CUDA {found}; CUDA {wanted} is required")
            }
            SearchOutcome::Broken(fault) => fault.fmt(f),
            SearchOutcome::Refused(message) => f.write_str(message),
        }
    }
}

/// A library that cannot be found or loaded. `Display` writes every searched location and the advice, on several
/// lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError {
    /// The kind of failure.
    pub kind: LoadErrorKind,
    /// The library's name, such as `nvrtc`.
    pub library: String,
    /// The library's descriptor; `None` for unknown names.
    pub row: Option<&'static LibraryDescriptor>,
    /// The platform of the search.
    pub platform: Platform,
    /// The required CUDA major: requested, or that of [`LoadError::needed_by`].
    pub wanted: Option<u32>,
    /// The CUDA major to install it for: the required one, else the installed one; `None` if unknown.
    pub major: Option<u32>,
    /// The library that depends on this one, if this one was not requested itself.
    pub needed_by: Option<&'static str>,
    /// For [`LoadErrorKind::Failed`]: the file.
    pub file: Option<PathBuf>,
    /// Every searched location, in order.
    pub searched: Vec<SearchedLocation>,
}

impl LoadError {
    pub(crate) fn unknown(name: &str, platform: Platform) -> LoadError {
        LoadError {
            kind: LoadErrorKind::Unknown,
            library: name.to_owned(),
            row: None,
            platform,
            wanted: None,
            major: None,
            needed_by: None,
            file: None,
            searched: Vec::new(),
        }
    }

    /// The file names searched for.
    pub fn names(&self) -> Vec<&'static str> {
        let Some(row) = self.row else {
            return Vec::new();
        };
        row.names_for(self.platform, self.wanted)
            .map(|(name, _)| name)
            .collect()
    }

    /// The commands that fix it, one per line.
    pub fn advice(&self) -> Vec<String> {
        let Some(row) = self.row else {
            return Vec::new();
        };
        let names = self.names();
        let variable = path_override_variable(row.name);
        let mut advice = Vec::new();
        match self.kind {
            LoadErrorKind::Unknown | LoadErrorKind::NotAvailable => return advice,
            LoadErrorKind::InvalidSetting if self.searched.iter().all(|l| l.step != OVERRIDE) => {
                return vec!["set it to a CUDA major version, such as 13, or unset it".into()];
            }
            _ => {}
        }
        if self
            .searched
            .iter()
            .any(|searched| searched.step == OVERRIDE)
        {
            advice.push(format!("correct or unset {variable}"));
        }
        if self.needed_by.is_none() {
            advice.extend(other_major(&self.searched));
        }
        let set = names
            .first()
            .map(|name| format!("or set {variable}=/path/to/{name}"));
        if row.origin == Origin::Driver {
            advice.push(
                "install the NVIDIA driver (in a container: start it with GPU access)".to_owned(),
            );
            advice.extend(set);
            advice.push("or use the embedded CPU device: CUPYRITE_DEVICE=cpu".to_owned());
        } else {
            advice.extend(inactive_environment(&self.searched));
            // pip and conda skip an installed package, even a broken one, unless forced.
            let again = match self.kind {
                LoadErrorKind::Failed => " --force-reinstall",
                _ => "",
            };
            advice.extend(install(&row.packages, self.major, again));
            advice.extend(set);
        }
        advice
    }
}

/// Advice for a program without Python, which searches wheels in the active environment only, if none is active.
fn inactive_environment(searched: &[SearchedLocation]) -> Option<String> {
    let inactive = |searched: &SearchedLocation| {
        searched.location == WHEELS_WITHOUT_FOLDERS && searched.outcome == SearchOutcome::NotSet
    };
    searched.iter().any(inactive).then(|| {
        "wheels are searched in the active virtual environment, and VIRTUAL_ENV is not set: activate the environment that has \
         them, or the one to install into:"
            .to_owned()
    })
}

/// Advice for a file that exists for another CUDA major.
fn other_major(searched: &[SearchedLocation]) -> Option<String> {
    searched.iter().find_map(|searched| match searched.outcome {
        SearchOutcome::OtherMajor { found, .. } => Some(format!(
            "unset {MAJOR_VARIABLE} to use the one for CUDA {found}, or install the other one:"
        )),
        _ => None,
    })
}

/// The commands that install packages: for pip and for conda, where a package exists.
fn install(packages: &Packages, major: Option<u32>, again: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let pip = match major {
        // Empty where no wheel of CUDA 12 contains it.
        Some(12) => packages.pip_cuda12,
        _ => packages.pip,
    };
    if !pip.is_empty() {
        let other = match major {
            None if !packages.pip_cuda12.is_empty() && packages.pip_cuda12 != pip => {
                format!("    (for CUDA 12: {})", packages.pip_cuda12)
            }
            _ => String::new(),
        };
        lines.push(format!("pip install{again} {pip}{other}"));
    }
    if !packages.conda.is_empty() {
        let version = major.map_or_else(String::new, |major| format!(" cuda-version={major}"));
        lines.push(format!(
            "conda install{again} -c conda-forge {}{version}",
            packages.conda
        ));
    }
    lines
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(row) = self.row else {
            let known: Vec<&str> = crate::LIBRARIES.iter().map(|row| row.name).collect();
            return write!(
                f,
                "unknown library {:?}; known: {}",
                self.library,
                known.join(", ")
            );
        };
        let needed = self
            .needed_by
            .map_or_else(String::new, |parent| format!(", required by {parent},"));
        if self.kind == LoadErrorKind::NotAvailable {
            return write!(
                f,
                "{}{needed} does not exist for {}",
                row.name, self.platform
            );
        }
        let names = self.names().join(" or ");
        match (self.kind, &self.file) {
            (LoadErrorKind::Failed, Some(file)) => {
                write!(f, "{}{needed} found but failed to load", file.display())?;
            }
            (LoadErrorKind::InvalidSetting, _) => write!(f, "invalid setting for {}", row.name)?,
            _ => write!(f, "{names}{needed} not found")?,
        }
        if let (Some(major), None) = (self.wanted, self.needed_by) {
            write!(f, " ({MAJOR_VARIABLE}={major})")?;
        }
        write_searched(f, &self.searched)?;
        write_advice(f, &self.advice())
    }
}

impl std::error::Error for LoadError {}

/// Why headers, a tool, a static library or a bitcode library cannot be located.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FindErrorKind {
    /// The table has no entry of that name.
    Unknown,
    /// It is in none of the searched locations.
    NotFound,
    /// It does not exist for this platform.
    NotAvailable,
    /// `CUPYRITE_CUDA_MAJOR` is not a number.
    InvalidSetting,
}

/// Headers, a tool, a static library or a bitcode library that cannot be located. `Display` writes every searched
/// location and the advice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindError {
    /// The kind of failure.
    pub kind: FindErrorKind,
    /// What is missing: `header set`, `tool`, `static library`, `bitcode library`.
    pub what: &'static str,
    /// The requested name.
    pub name: String,
    /// For [`FindErrorKind::Unknown`]: the known names.
    pub known: Vec<&'static str>,
    /// The platform of the search.
    pub platform: Platform,
    /// The requested or installed CUDA major; `None` if unknown.
    pub major: Option<u32>,
    /// Every searched location, in order.
    pub searched: Vec<SearchedLocation>,
    /// The packages to install.
    pub packages: &'static Packages,
}

impl FindError {
    /// The commands that fix it, one per line.
    pub fn advice(&self) -> Vec<String> {
        match self.kind {
            FindErrorKind::NotFound => {
                let other = other_major(&self.searched).into_iter();
                other
                    .chain(install(self.packages, self.major, ""))
                    .collect()
            }
            FindErrorKind::InvalidSetting => {
                vec!["set it to a CUDA major version, such as 13, or unset it".to_owned()]
            }
            FindErrorKind::Unknown | FindErrorKind::NotAvailable => Vec::new(),
        }
    }
}

impl fmt::Display for FindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FindError { what, name, .. } = self;
        match self.kind {
            FindErrorKind::Unknown => {
                let known = self.known.join(", ");
                return write!(f, "unknown {what} {name:?}; known: {known}");
            }
            FindErrorKind::NotAvailable => {
                return write!(f, "{what} {name:?} does not exist for {}", self.platform);
            }
            FindErrorKind::NotFound => write!(f, "{what} {name:?} not found")?,
            FindErrorKind::InvalidSetting => write!(f, "invalid setting for {what} {name:?}")?,
        }
        write_searched(f, &self.searched)?;
        write_advice(f, &self.advice())
    }
}

impl std::error::Error for FindError {}

/// Writes every searched location. Of many absent locations in one step, writes the first few and a count.
fn write_searched(f: &mut fmt::Formatter<'_>, searched: &[SearchedLocation]) -> fmt::Result {
    if searched.is_empty() {
        return Ok(());
    }
    f.write_str("; searched:")?;
    let same = |a: &SearchedLocation, b: &SearchedLocation| {
        a.step == b.step && a.outcome == SearchOutcome::Absent && b.outcome == SearchOutcome::Absent
    };
    for group in searched.chunk_by(same) {
        let shown = if group.len() > LOCATIONS_LISTED {
            LOCATIONS_LISTED - 1
        } else {
            group.len()
        };
        for searched in &group[..shown] {
            if searched.location == searched.step {
                write!(f, "\n  {}: {}", searched.step, searched.outcome)?;
            } else {
                let SearchedLocation {
                    step,
                    location,
                    outcome,
                } = searched;
                write!(f, "\n  {step}: {location}: {outcome}")?;
            }
        }
        if shown < group.len() {
            let (step, rest) = (group[0].step, group.len() - shown);
            write!(f, "\n  {step}: {rest} more locations: none exists")?;
        }
    }
    Ok(())
}

fn write_advice(f: &mut fmt::Formatter<'_>, advice: &[String]) -> fmt::Result {
    if advice.is_empty() {
        return Ok(());
    }
    f.write_str("\nTo fix it:")?;
    advice.iter().try_for_each(|line| write!(f, "\n  {line}"))
}
