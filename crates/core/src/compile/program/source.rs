//! Source text, and how it is compiled.

use crate::compile::program::options::ProgramOptions;

/// The language of a [`Program`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SourceKind {
    /// CUDA C++.
    Cxx,
    /// PTX text.
    Ptx,
    /// NVVM IR, as text or as bitcode.
    Nvvm,
}

/// Source code to compile at run time.
///
/// ```no_run
/// # use cupyrite::{CodeKind, Program};
/// let ptx = Program::new(r#"extern "C" __global__ void twice(float *x) { x[threadIdx.x] *= 2; }"#)
///     .arch("compute_80")
///     .build(CodeKind::Ptx)?;
/// # Ok::<(), cupyrite::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Program {
    pub(super) kind: SourceKind,
    pub(super) source: Vec<u8>,
    pub(super) options: ProgramOptions,
    /// Options in the compiler's spelling, after those of `options`.
    pub(super) spelled: Vec<String>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) expressions: Vec<String>,
}

impl Program {
    /// A program from CUDA C++ source text.
    pub fn new(source: impl Into<String>) -> Program {
        Program::of(SourceKind::Cxx, source.into().into_bytes())
    }

    /// A program from PTX text.
    pub fn from_ptx(source: impl Into<String>) -> Program {
        Program::of(SourceKind::Ptx, source.into().into_bytes())
    }

    /// A program from NVVM IR: text, or bitcode.
    pub fn from_nvvm(source: impl Into<Vec<u8>>) -> Program {
        Program::of(SourceKind::Nvvm, source.into())
    }

    fn of(kind: SourceKind, source: Vec<u8>) -> Program {
        Program {
            kind,
            source,
            options: ProgramOptions::default(),
            spelled: Vec::new(),
            headers: Vec::new(),
            expressions: Vec::new(),
        }
    }

    /// The source's language.
    pub fn source_kind(&self) -> SourceKind {
        self.kind
    }

    /// The source.
    pub fn source(&self) -> &[u8] {
        &self.source
    }

    /// Options in the compiler's spelling.
    pub fn spelled(&self) -> &[String] {
        &self.spelled
    }

    /// Headers given as text, by name.
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// The compile options.
    pub fn options(&self) -> &ProgramOptions {
        &self.options
    }

    /// Sets the compile options, replacing earlier ones.
    #[must_use]
    pub fn with_options(mut self, options: ProgramOptions) -> Program {
        self.options = options;
        self
    }

    /// Sets the file name for messages and line information.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Program {
        self.options.name = Some(name.into());
        self
    }

    /// Sets the architecture: `sm_89`, `compute_89`, ...
    #[must_use]
    pub fn arch(mut self, arch: impl Into<String>) -> Program {
        self.options.arch = Some(arch.into());
        self
    }

    /// Adds an option in the compiler's spelling, such as `--use_fast_math`.
    #[must_use]
    pub fn option(mut self, option: impl Into<String>) -> Program {
        self.spelled.push(option.into());
        self
    }

    /// Adds a header as text, for `#include "name"`.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, text: impl Into<String>) -> Program {
        self.headers.push((name.into(), text.into()));
        self
    }

    /// Adds a name expression such as `&scale<float>`; [`ObjectCode::lowered_name`](crate::ObjectCode::lowered_name) returns its mangled name.
    #[must_use]
    pub fn name_expression(mut self, expression: impl Into<String>) -> Program {
        self.expressions.push(expression.into());
        self
    }
}
