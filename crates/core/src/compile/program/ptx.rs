//! PTX through the linker.

use std::sync::Mutex;

use super::backends::CompilerBackend;
use super::source::Program;
use super::strings::wrong_target;
use crate::compile::linker::options::LinkerOptions;
use crate::compile::linker::{Linker, LinkerBackend};
use crate::error::Result;
use crate::module::object_code::{CodeKind, ObjectCode};

/// The linker's side of a [`Compiler`](super::Compiler).
#[derive(Debug)]
pub(super) struct Ptx {
    /// The linker of `handle`. A linker links once: this one serves the first compilation, the others create their
    /// own.
    first: Mutex<First>,
    handle: usize,
    backend: CompilerBackend,
}

#[derive(Debug)]
struct First {
    linker: Linker,
    used: bool,
}

impl Ptx {
    /// Creates a linker with the PTX, which validates it.
    pub(super) fn new(program: &Program) -> Result<Ptx> {
        let linker = linker(program)?;
        Ok(Ptx {
            handle: linker.handle().addr(),
            backend: match linker.backend() {
                LinkerBackend::NvJitLink => CompilerBackend::NvJitLink,
                LinkerBackend::Driver => CompilerBackend::Driver,
            },
            first: Mutex::new(First {
                linker,
                used: false,
            }),
        })
    }

    pub(super) fn handle(&self) -> usize {
        self.handle
    }

    pub(super) fn backend(&self) -> CompilerBackend {
        self.backend
    }

    pub(super) fn compile(&self, program: &Program, target: CodeKind) -> Result<ObjectCode> {
        if !matches!(target, CodeKind::Ptx | CodeKind::Cubin) {
            return Err(wrong_target(target, "cubin or PTX"));
        }
        // A thread that cannot get the first linker at once creates its own instead of waiting.
        if let Ok(mut first) = self.first.try_lock()
            && !std::mem::replace(&mut first.used, true)
        {
            return first.linker.link(target);
        }
        linker(program)?.link(target)
    }
}

/// Checks that the linker in use knows the options of a program.
///
/// # Errors
///
/// As [`Linker::new`] for an option that the driver does not know.
pub(crate) fn check_options(program: &Program) -> Result<()> {
    match LinkerBackend::choose()? {
        LinkerBackend::NvJitLink => Ok(()),
        LinkerBackend::Driver => linker_options(program).driver_options().map(drop),
    }
}

fn linker_options(program: &Program) -> LinkerOptions {
    let o = &program.options;
    let on = |given: Option<bool>| given == Some(true);
    LinkerOptions {
        name: o.name().to_owned(),
        arch: o.arch.clone(),
        max_register_count: o.max_register_count,
        time: o.time.is_some(),
        link_time_optimization: on(o.link_time_optimization),
        optimization_level: (o.device_code_optimize == Some(false)).then_some(0),
        debug: on(o.debug),
        lineinfo: on(o.lineinfo),
        ftz: o.ftz,
        prec_div: o.prec_div,
        prec_sqrt: o.prec_sqrt,
        fma: o.fma,
        ptxas_options: o.ptxas_options.clone(),
        split_compile: o.split_compile,
        no_cache: on(o.no_cache),
        ..Default::default()
    }
}

fn linker(program: &Program) -> Result<Linker> {
    let name = program.options.name();
    let code = ObjectCode::new(CodeKind::Ptx, program.source.as_slice()).named(name);
    Linker::new([&code], &linker_options(program))
}
