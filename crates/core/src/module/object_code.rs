//! Compiled code from a program, a linker or a file.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use cupyrite_sys::driver::CUresult;
use cupyrite_sys::loader::{Backend, chosen_backend};
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::module::kernel::Kernel;
use crate::module::library::{self, Library};

use crate::module::signature::Signatures;

/// The format of an [`ObjectCode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CodeKind {
    /// PTX text.
    Ptx,
    /// Machine code of one architecture.
    Cubin,
    /// NVVM IR for optimisation at link time.
    LtoIr,
    /// Code for several architectures.
    Fatbin,
    /// A host object file with device code in it.
    Object,
    /// An archive of host object files with device code in them.
    Library,
}

impl CodeKind {
    /// All of them.
    pub const ALL: [CodeKind; 6] = [
        CodeKind::Ptx,
        CodeKind::Cubin,
        CodeKind::LtoIr,
        CodeKind::Fatbin,
        CodeKind::Object,
        CodeKind::Library,
    ];

    /// The short name: `ptx`, `cubin`, `ltoir`, `fatbin`, `object` or `library`.
    pub const fn name(self) -> &'static str {
        match self {
            CodeKind::Ptx => "ptx",
            CodeKind::Cubin => "cubin",
            CodeKind::LtoIr => "ltoir",
            CodeKind::Fatbin => "fatbin",
            CodeKind::Object => "object",
            CodeKind::Library => "library",
        }
    }

    /// The kind with a short name.
    pub fn from_name(name: &str) -> Option<CodeKind> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether the driver loads it as it is; the others must be linked first.
    pub const fn is_loadable(self) -> bool {
        matches!(self, CodeKind::Ptx | CodeKind::Cubin | CodeKind::Fatbin)
    }
}

impl fmt::Display for CodeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The location of the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CodeSource {
    /// In memory.
    Bytes(Vec<u8>),
    /// In a file, read when the code is needed.
    File(PathBuf),
}

/// Compiled code; cheap to clone. It is loaded once, when a kernel is first looked up, and unloaded with the last
/// clone and the last of its kernels.
///
/// Two values are equal if one is a clone of the other: each loads separately, with variables of its own.
#[derive(Clone, Debug)]
pub struct ObjectCode {
    inner: Arc<ObjectCodeState>,
}

#[derive(Debug)]
struct ObjectCodeState {
    kind: CodeKind,
    code: CodeSource,
    name: String,
    symbols: Vec<(String, String)>,
    log: String,
    library: OnceLock<Library>,
    /// The parameters of its kernels, read with the first kernel.
    signatures: OnceLock<Signatures>,
    /// Held while the code is loaded, so that it is loaded once. Using loaded code does not take it.
    loading: Mutex<()>,
}

// A panic cannot leave it inconsistent: nothing panics while the lock is held.
impl std::panic::RefUnwindSafe for ObjectCodeState {}

impl ObjectCode {
    /// Code in memory: PTX without a terminating NUL, or the bytes of another format.
    pub fn new(kind: CodeKind, code: impl Into<Vec<u8>>) -> ObjectCode {
        Self::of(kind, CodeSource::Bytes(code.into()))
    }

    /// Code in a file, read when it is needed.
    pub fn from_file(kind: CodeKind, path: impl Into<PathBuf>) -> ObjectCode {
        Self::of(kind, CodeSource::File(path.into()))
    }

    fn of(kind: CodeKind, code: CodeSource) -> ObjectCode {
        ObjectCode {
            inner: Arc::new(ObjectCodeState {
                kind,
                code,
                name: String::new(),
                symbols: Vec::new(),
                log: String::new(),
                library: OnceLock::new(),
                signatures: OnceLock::new(),
                loading: Mutex::new(()),
            }),
        }
    }

    /// Mutable access for the builder methods: in place while there is one owner, as right after construction, else in
    /// a copy that loads separately.
    fn parts(&mut self) -> &mut ObjectCodeState {
        if Arc::get_mut(&mut self.inner).is_none() {
            let inner = &self.inner;
            self.inner = Arc::new(ObjectCodeState {
                kind: inner.kind,
                code: inner.code.clone(),
                name: inner.name.clone(),
                symbols: inner.symbols.clone(),
                log: inner.log.clone(),
                library: OnceLock::new(),
                signatures: OnceLock::new(),
                loading: Mutex::new(()),
            });
        }
        Arc::get_mut(&mut self.inner).expect("there is one owner now")
    }

    /// Sets the name that messages show.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> ObjectCode {
        self.parts().name = name.into();
        self
    }

    /// Sets names for kernels, each with the name in the code: a name expression such as `scale<float>` and its
    /// mangled name, for example.
    #[must_use]
    pub fn with_symbols(mut self, symbols: Vec<(String, String)>) -> ObjectCode {
        self.parts().symbols = symbols;
        self
    }

    /// Sets the compiler's or linker's log.
    #[must_use]
    pub fn with_log(mut self, log: impl Into<String>) -> ObjectCode {
        self.parts().log = log.into();
        self
    }

    /// The format.
    pub fn kind(&self) -> CodeKind {
        self.inner.kind
    }

    /// Its name; may be empty.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The location of the code.
    pub fn code(&self) -> &CodeSource {
        &self.inner.code
    }

    /// The code; reads a file.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the file cannot be read.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>> {
        match &self.inner.code {
            CodeSource::Bytes(bytes) => Ok(Cow::Borrowed(bytes)),
            CodeSource::File(path) => read(path).map(Cow::Owned),
        }
    }

    /// The compiler's or linker's log: warnings, since it succeeded.
    pub fn log(&self) -> &str {
        &self.inner.log
    }

    /// Names for kernels, each with the name in the code.
    pub fn symbols(&self) -> &[(String, String)] {
        &self.inner.symbols
    }

    /// The name in the code of a name expression given before compiling.
    pub fn lowered_name(&self, expression: &str) -> Option<&str> {
        self.inner
            .symbols
            .iter()
            .find(|(e, _)| e == expression)
            .map(|(_, name)| name.as_str())
    }

    /// The loaded library; loads it first if necessary.
    ///
    /// # Errors
    ///
    /// As [`Library::load`]. A failure is not cached: the next call tries again.
    pub fn library(&self) -> Result<&Library> {
        let inner = &*self.inner;
        if let Some(library) = inner.library.get() {
            return Ok(library);
        }
        let _loading = inner.loading.lock();
        if let Some(library) = inner.library.get() {
            return Ok(library);
        }
        let library = match &inner.code {
            CodeSource::Bytes(bytes) => Library::load(bytes)?,
            CodeSource::File(path) => Library::load_file(path)?,
        };
        Ok(inner.library.get_or_init(|| library))
    }

    /// The library, if it is loaded.
    pub fn loaded_library(&self) -> Option<&Library> {
        self.inner.library.get()
    }

    /// A kernel by its name in the code or by one of [`ObjectCode::symbols`]; loads the code if necessary.
    ///
    /// PTX in memory tells what the kernel's parameters accept ([`ParamInfo::kind`](crate::ParamInfo::kind)), and so does a
    /// cubin in memory on the CPU device. Machine code for a GPU does not have the types.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for formats that must be linked first; those of [`Library::load`];
    /// `CUDA_ERROR_NOT_FOUND`, with the existing names, for an unknown name.
    pub fn kernel(&self, name: &str) -> Result<Kernel> {
        const LINK: &str = "must be linked before kernels can be taken from it; only ptx, cubin and fatbin are loaded as \
                            they are";
        let kind = self.kind();
        // A driver that loads code lazily may accept it.
        if !kind.is_loadable() {
            let problem = format!("is {kind}, which {LINK}");
            return Err(Error::argument("ObjectCode::kernel", "self", problem));
        }
        let library = self.library()?;
        let (name, kernel) = match self.lowered_name(name) {
            Some(lowered) => (lowered, library.kernel(lowered)?),
            None => {
                let kernel = library.kernel(name).map_err(|e| self.explain(e, name))?;
                (name, kernel)
            }
        };
        Ok(match self.signatures().get(name) {
            Some(kinds) => kernel.with_kinds(kinds),
            None => kernel,
        })
    }

    /// The parameters of the kernels, as far as the code has their types.
    fn signatures(&self) -> &Signatures {
        self.inner.signatures.get_or_init(|| {
            match (self.kind(), &self.inner.code) {
                (CodeKind::Ptx, CodeSource::Bytes(text)) => Signatures::of_ptx(text),
                (CodeKind::Cubin, CodeSource::Bytes(code))
                    if chosen_backend() == Some(Backend::Cpu) =>
                {
                    Signatures::of_cubin(code)
                }
                // A file may have changed since it was loaded.
                _ => Signatures::default(),
            }
        })
    }

    /// Replaces the names in the error for an unknown name by those that a program passes: of [`ObjectCode::symbols`], and of
    /// the kernels that have none there.
    fn explain(&self, e: Error, name: &str) -> Error {
        let symbols = self.symbols();
        let (Error::Driver { call, status, .. }, false) = (&e, symbols.is_empty()) else {
            return e;
        };
        if *status != CUresult::CUDA_ERROR_NOT_FOUND {
            return e;
        }
        let (call, status) = (*call, *status);
        let mut names = self
            .library()
            .and_then(Library::kernel_names)
            .unwrap_or_default();
        names.retain(|known| symbols.iter().all(|(_, lowered)| lowered != known));
        names.extend(symbols.iter().map(|(expression, _)| expression.clone()));
        let log = library::describe_missing_kernel(name, &names);
        Error::Driver { call, status, log }
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|e| {
        let problem = format!("{}: {e}", path.display());
        Error::argument("ObjectCode::bytes", "path", problem)
    })
}

impl PartialEq for ObjectCode {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}
impl Eq for ObjectCode {}

impl std::hash::Hash for ObjectCode {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.inner).hash(state);
    }
}
