//! Keys of compiled programs.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::identity;
use super::includes::{self, Included, Search};
use crate::compile::linker::LinkerBackend;
use crate::compile::program::{
    Program, ProgramOptions, SourceKind, check_linker_options, cuda_header_directories,
};
use crate::error::{Error, Result};
use crate::module::object_code::CodeKind;

/// Changes whenever the contents of keys change.
const SCHEMA: &str = "cupyrite program key 1";

/// A name expression, as text or bytes: results are looked up by what was given.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expression {
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// The input of a key. The key depends on everything that affects the code: source, options, target, name expressions,
/// the builds of the compiler and (if it links) of the driver, and the included files.
#[derive(Clone, Debug)]
pub struct KeyRequest<'a> {
    /// The program, with an explicit architecture.
    pub program: &'a Program,
    /// The target format.
    pub target: CodeKind,
    /// In any order; without effect for PTX and NVVM IR.
    pub expressions: &'a [Expression],
    /// A digest of the files that options name. If it is given, no file is read.
    pub extra_digest: Option<&'a [u8]>,
    /// Whether to read files that options name if there is no `extra_digest`; else they are an error.
    pub reads_files: bool,
}

fn refused(what: &str, why: &str) -> Error {
    Error::argument("program cache key", what, why)
}

/// Whether an option in NVRTC's spelling may read or write a file.
fn names_file(option: &str) -> bool {
    let name = option.trim_start().trim_start_matches('-');
    name.starts_with('I')
        || [
            "include",
            "pre-include",
            "use-bundled-headers",
            "options-file",
            "optf",
            "pch",
            "use-pch",
            "create-pch",
            "time",
            "fdevice-time-trace",
        ]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Hashes fields unambiguously: different lists of fields give different bytes.
struct Fields(Sha256);

impl Fields {
    fn add(&mut self, name: &str, value: impl AsRef<[u8]>) {
        for bytes in [name.as_bytes(), value.as_ref()] {
            self.0.update((bytes.len() as u64).to_le_bytes());
            self.0.update(bytes);
        }
    }
}

impl Fields {
    /// Adds the places and versions of installed CUDA headers.
    fn add_headers(&mut self, folders: &[PathBuf]) {
        for folder in folders {
            self.add("CUDA headers", folder.as_os_str().as_encoded_bytes());
            for file in ["cuda.h", "cuda/std/__cccl/version.h"] {
                if let Some(digest) = includes::file_digest(&folder.join(file)) {
                    self.add(file, digest);
                }
            }
        }
    }
}

impl KeyRequest<'_> {
    /// The key.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if there is no key: for options with effects outside of the code (`create_pch`,
    /// `time`, `fdevice_time_trace`), for options that the linker of PTX does not know, for files that must not be read,
    /// and if the included files cannot be determined;
    /// [`Error::Load`] if there is no compiler.
    pub fn key(&self) -> Result<[u8; 32]> {
        let program = self.program;
        let options = program.options();
        let kind = program.source_kind();
        self.check()?;
        let mut fields = Fields(Sha256::new());
        fields.add("schema", SCHEMA);
        fields.add("version", env!("CARGO_PKG_VERSION"));
        fields.add("kind", format!("{kind:?}"));
        fields.add("source", program.source());
        fields.add("target", self.target.name());
        fields.add("name", options.name());
        let spelled = match kind {
            SourceKind::Cxx => options.for_nvrtc()?,
            SourceKind::Nvvm => options.for_nvvm(self.target)?,
            SourceKind::Ptx => options.for_linker(),
        };
        for option in spelled.iter().chain(program.spelled()) {
            fields.add("option", option);
        }
        for (name, text) in program.headers() {
            fields.add("header name", name);
            fields.add("header text", text);
        }
        if kind == SourceKind::Cxx {
            // PTX and NVVM IR have no mangled names: expressions do not affect their code.
            let mut expressions: Vec<&Expression> = self.expressions.iter().collect();
            expressions.sort();
            for expression in expressions {
                match expression {
                    Expression::Text(text) => fields.add("expression", text),
                    Expression::Bytes(bytes) => fields.add("expression bytes", bytes),
                }
            }
        }
        let compiler = match kind {
            SourceKind::Cxx => identity::of_nvrtc()?,
            SourceKind::Nvvm => identity::of_nvvm()?,
            SourceKind::Ptx => linker()?,
        };
        fields.add("compiler", compiler);
        if options.debug == Some(true) || options.lineinfo == Some(true) {
            // Line information contains the absolute path of the source, which depends on the working directory.
            let here = std::env::current_dir().unwrap_or_default();
            fields.add("here", here.as_os_str().as_encoded_bytes());
        }
        if self.target != CodeKind::Ptx {
            // The CPU device needs the PTX beside the machine code; other machine code does not run there.
            let device =
                crate::backend::backend().map_or_else(|_| "none".into(), |b| format!("{b:?}"));
            fields.add("device", device);
        }
        if kind == SourceKind::Nvvm {
            for (name, source) in &options.extra_sources {
                fields.add("extra name", name);
                fields.add("extra source", source);
            }
        }
        if let Some(digest) = self.extra_digest {
            fields.add("extra digest", digest);
            if kind == SourceKind::Cxx && options.use_bundled_headers != Some(true) {
                // The digest is of files that the program names, not of the CUDA headers that are found without it.
                fields.add_headers(&cuda_header_directories());
            }
        } else {
            self.add_files(&mut fields)?;
        }
        Ok(fields.0.finalize().into())
    }

    /// Rejects programs that cannot have a key.
    fn check(&self) -> Result<()> {
        let options = self.program.options();
        let kind = self.program.source_kind();
        if kind != SourceKind::Nvvm && !options.extra_sources.is_empty() {
            return Err(refused("extra_sources", "goes with NVVM IR only"));
        }
        if kind == SourceKind::Ptx {
            // There would be no code to store.
            check_linker_options(self.program)?;
        }
        if kind != SourceKind::Cxx {
            return Ok(());
        }
        let effects = [
            (&options.create_pch, "create_pch"),
            (&options.time, "time"),
            (&options.fdevice_time_trace, "fdevice_time_trace"),
        ];
        for (value, name) in effects {
            if value.is_some() {
                let why = "is set: it writes a file, which a program taken from a cache would not; compile without a cache";
                return Err(refused(name, why));
            }
        }
        if self.extra_digest.is_some() {
            return Ok(());
        }
        if let Some(option) = self.program.spelled().iter().find(|o| names_file(o)) {
            let why = format!(
                "{option:?} may name files; set the field of ProgramOptions, or give an extra_digest"
            );
            return Err(refused("option", &why));
        }
        let why = "is set: precompiled headers cannot be followed to the files they were made of; give a digest of what \
                   they depend on (extra_digest)";
        for (set, name) in [
            (options.pch == Some(true), "pch"),
            (options.use_pch.is_some(), "use_pch"),
            (options.pch_dir.is_some(), "pch_dir"),
        ] {
            if set {
                return Err(refused(name, why));
            }
        }
        if self.reads_files {
            return Ok(());
        }
        let why = "names files whose content is not part of the key; give a digest of what is read (extra_digest)";
        for (set, name) in [
            (!options.include_path.is_empty(), "include_path"),
            (!options.pre_include.is_empty(), "pre_include"),
            (options.name().contains(['/', '\\']), "name"),
        ] {
            if set {
                return Err(refused(name, why));
            }
        }
        Ok(())
    }

    /// The files that the source may include.
    fn included(&self, search: &Search<'_>) -> Result<Included> {
        let before = &self.program.options().pre_include;
        includes::included(self.program.source(), before, search).map_err(|unknown| {
            let why = format!(
                "includes files that cannot be known ({}); give a digest of them (extra_digest)",
                unknown.0
            );
            refused("code", &why)
        })
    }

    /// Adds the files that the compiler reads.
    fn add_files(&self, fields: &mut Fields) -> Result<()> {
        let options = self.program.options();
        match self.program.source_kind() {
            SourceKind::Nvvm if options.use_libdevice == Some(true) => {
                if !self.reads_files {
                    let why = "is set, and what libdevice holds is not part of the key; give a digest of it \
                               (extra_digest)";
                    return Err(refused("use_libdevice", why));
                }
                let path = crate::compile::program::libdevice()?;
                let digest = identity::of_file(&path)
                    .map_err(|e| refused("use_libdevice", &format!("{}: {e}", path.display())))?;
                fields.add("libdevice", digest);
            }
            SourceKind::Cxx => {
                let mut search = search(options, self.program.headers());
                let mut included = self.included(&search)?;
                if included.incomplete && options.use_bundled_headers != Some(true) {
                    // The compilation may be repeated with these.
                    let mut more = cuda_header_directories();
                    more.retain(|folder| !search.directories.contains(folder));
                    if !more.is_empty() {
                        search.directories.extend(more.iter().cloned());
                        match self.included(&search) {
                            Ok(all) => included = all,
                            // Thrust includes names made by macros.
                            Err(_) => fields.add_headers(&more),
                        }
                    }
                }
                if let Some(digest) = included.digest {
                    fields.add("included", digest);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// NVRTC's search path for included files. Headers built into NVRTC are part of its build.
fn search<'a>(options: &ProgramOptions, headers: &'a [(String, String)]) -> Search<'a> {
    let here = std::env::current_dir().unwrap_or_default();
    let name = Path::new(options.name());
    let source = here.join(name.parent().unwrap_or(Path::new("")));
    let directories: Vec<PathBuf> = options
        .include_path
        .iter()
        .map(|directory| here.join(directory))
        .collect();
    Search {
        source: (options.no_source_include != Some(true)).then_some(source),
        directories,
        headers,
    }
}

/// The identity of the linker for PTX.
fn linker() -> Result<String> {
    match LinkerBackend::choose()? {
        LinkerBackend::NvJitLink => Ok(identity::of_nvjitlink()),
        LinkerBackend::Driver => identity::of_driver(),
    }
}
