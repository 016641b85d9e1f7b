//! Compile options, and their spelling for each compiler.
//!
//! Spellings: NVRTC <https://docs.nvidia.com/cuda/nvrtc/#supported-compile-options>, libNVVM
//! <https://docs.nvidia.com/cuda/libnvvm-api/>.

use std::fmt::Display;
use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::module::object_code::CodeKind;

/// Options for compiling a [`Program`](super::Program). `None`, or an empty list, leaves the compiler's own default.
///
/// ```
/// use cupyrite::ProgramOptions;
/// let options = ProgramOptions { arch: Some("sm_89".into()), fma: Some(false), ..Default::default() };
/// assert_eq!(options.for_nvrtc().unwrap(), ["-arch=sm_89", "--fmad=false"]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramOptions {
    /// The source's file name in messages and line information, and the name of the code that is made.
    pub name: Option<String>,
    /// The architecture: `sm_89` for a device, `compute_89` for PTX that suits all later ones. Without it, that of
    /// the current device.
    pub arch: Option<String>,
    /// Relocatable code, for linking with other code.
    pub relocatable_device_code: Option<bool>,
    /// Whole-program code with unresolved calls into the CUDA device runtime.
    pub extensible_whole_program: Option<bool>,
    /// Debug information; without [`device_code_optimize`](Self::device_code_optimize) no optimisation.
    pub debug: Option<bool>,
    /// Line information.
    pub lineinfo: Option<bool>,
    /// Optimise in spite of debug information; with NVVM IR, `Some(false)` turns optimisation off.
    pub device_code_optimize: Option<bool>,
    /// Options for `ptxas`, one an entry.
    pub ptxas_options: Vec<String>,
    /// The most registers a thread may use.
    pub max_register_count: Option<u32>,
    /// Flush single-precision denormal numbers to zero.
    pub ftz: Option<bool>,
    /// Single-precision square root rounded to nearest, not approximated.
    pub prec_sqrt: Option<bool>,
    /// Single-precision division and reciprocal rounded to nearest, not approximated.
    pub prec_div: Option<bool>,
    /// Contract multiplications and additions.
    pub fma: Option<bool>,
    /// Fast approximations: implies `ftz`, and neither `prec_div` nor `prec_sqrt`.
    pub use_fast_math: Option<bool>,
    /// More aggressive vectorisation.
    pub extra_device_vectorization: Option<bool>,
    /// Compile to LTO IR, to be optimised at link time; there is no other output.
    pub link_time_optimization: Option<bool>,
    /// Run the optimiser before LTO IR is made.
    pub gen_opt_lto: Option<bool>,
    /// Macros: `NAME` (defined as 1) or `NAME=value`.
    pub define_macro: Vec<String>,
    /// Macros to undefine.
    pub undefine_macro: Vec<String>,
    /// Directories to search for headers.
    pub include_path: Vec<String>,
    /// Use the CUDA and CCCL headers bundled with NVRTC, unpacked into [`bundled_headers_directory`].
    pub use_bundled_headers: Option<bool>,
    /// Headers included before the source.
    pub pre_include: Vec<String>,
    /// Do not look for headers in the source's own directory.
    pub no_source_include: Option<bool>,
    /// The language: `c++17`, `c++20`, ...
    pub std: Option<String>,
    /// Built-in `std::move` and `std::forward`.
    pub builtin_move_forward: Option<bool>,
    /// Built-in `std::initializer_list`.
    pub builtin_initializer_list: Option<bool>,
    /// No warnings.
    pub disable_warnings: Option<bool>,
    /// All pointer parameters of kernels are `__restrict__`.
    pub restrict: Option<bool>,
    /// Functions without an execution space are `__device__`.
    pub device_as_default_execution_space: Option<bool>,
    /// Allow `__int128`.
    pub device_int128: Option<bool>,
    /// Report on optimisations of this kind (`inline`).
    pub optimization_info: Option<String>,
    /// No numbers in diagnostics.
    pub no_display_error_number: Option<bool>,
    /// Numbers of diagnostics that are errors.
    pub diag_error: Vec<u32>,
    /// Numbers of diagnostics that are not shown.
    pub diag_suppress: Vec<u32>,
    /// Numbers of diagnostics that are warnings.
    pub diag_warn: Vec<u32>,
    /// Diagnostics without source line and column.
    pub brief_diagnostics: Option<bool>,
    /// A file for a table of the duration of each phase; `-` writes it to the log.
    pub time: Option<String>,
    /// Optimiser threads; 0 for as many as processors.
    pub split_compile: Option<u32>,
    /// Stop after checking the syntax; the code is empty.
    pub fdevice_syntax_only: Option<bool>,
    /// Disable language features to compile faster.
    pub minimal: Option<bool>,
    /// Do not use the compiler's own cache.
    pub no_cache: Option<bool>,
    /// A file for a time trace in JSON.
    pub fdevice_time_trace: Option<String>,
    /// Allow `__float128`.
    pub device_float128: Option<bool>,
    /// Random seed.
    pub frandom_seed: Option<String>,
    /// Compile faster, optimise less: `0`, `min`, `mid` or `max`.
    pub ofast_compile: Option<String>,
    /// Use a matching precompiled header, or create one.
    pub pch: Option<bool>,
    /// Create this precompiled header.
    pub create_pch: Option<String>,
    /// Use this precompiled header.
    pub use_pch: Option<String>,
    /// The directory of precompiled headers.
    pub pch_dir: Option<String>,
    /// Report why a precompiled header was not used.
    pub pch_verbose: Option<bool>,
    /// Report when a precompiled header is created or used.
    pub pch_messages: Option<bool>,
    /// Whether a precompiled header contains template instantiations.
    pub instantiate_templates_in_pch: Option<bool>,
    /// More NVVM IR (text or bitcode) that is compiled with the source, each with a name. For NVVM IR only.
    pub extra_sources: Vec<(String, Vec<u8>)>,
    /// Link CUDA's `libdevice` in. For NVVM IR only.
    pub use_libdevice: Option<bool>,
    /// Debug information as Numba lays it out.
    pub numba_debug: Option<bool>,
}

/// A builder for a list of options.
struct Spelled(Vec<String>);

impl Spelled {
    fn flag(&mut self, given: Option<bool>, spelling: &str) {
        if given == Some(true) {
            self.0.push(spelling.into());
        }
    }

    fn yes_no(&mut self, given: Option<bool>, spelling: &str) {
        if let Some(value) = given {
            self.0.push(format!("{spelling}={value}"));
        }
    }

    fn bit(&mut self, given: Option<bool>, spelling: &str) {
        if let Some(value) = given {
            self.0.push(format!("{spelling}={}", u8::from(value)));
        }
    }

    fn values<T: Display>(&mut self, given: impl IntoIterator<Item = T>, spelling: &str) {
        for value in given {
            self.0.push(format!("{spelling}={value}"));
        }
    }
}

impl ProgramOptions {
    /// The file name of the source: the given one, else `default_program`.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or("default_program")
    }

    fn known_arch(&self) -> Result<&str> {
        self.arch.as_deref().ok_or_else(|| {
            let problem = "is not given; give sm_XY or compute_XY (`default_arch` is that of the current device)";
            Error::argument("ProgramOptions", "arch", problem)
        })
    }

    /// The options in NVRTC's spelling.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] without an architecture, or without a directory for the bundled headers.
    pub fn for_nvrtc(&self) -> Result<Vec<String>> {
        let mut o = Spelled(vec![format!("-arch={}", self.known_arch()?)]);
        o.yes_no(self.relocatable_device_code, "--relocatable-device-code");
        o.flag(self.extensible_whole_program, "--extensible-whole-program");
        o.flag(self.debug, "--device-debug");
        o.flag(self.lineinfo, "--generate-line-info");
        o.flag(self.device_code_optimize, "--dopt=on");
        o.values(&self.ptxas_options, "--ptxas-options");
        o.values(self.max_register_count, "--maxrregcount");
        o.yes_no(self.ftz, "--ftz");
        o.yes_no(self.prec_sqrt, "--prec-sqrt");
        o.yes_no(self.prec_div, "--prec-div");
        o.yes_no(self.fma, "--fmad");
        o.flag(self.use_fast_math, "--use_fast_math");
        o.flag(
            self.extra_device_vectorization,
            "--extra-device-vectorization",
        );
        o.flag(self.link_time_optimization, "--dlink-time-opt");
        o.flag(self.gen_opt_lto, "--gen-opt-lto");
        o.values(&self.define_macro, "--define-macro");
        o.values(&self.undefine_macro, "--undefine-macro");
        if self.use_bundled_headers == Some(true) {
            let directory = bundled_headers_directory()?;
            o.values([directory.display()], "--use-bundled-headers");
        }
        o.values(&self.include_path, "--include-path");
        o.values(&self.pre_include, "--pre-include");
        o.flag(self.no_source_include, "--no-source-include");
        o.values(&self.std, "--std");
        o.yes_no(self.builtin_move_forward, "--builtin-move-forward");
        o.yes_no(self.builtin_initializer_list, "--builtin-initializer-list");
        o.flag(self.disable_warnings, "--disable-warnings");
        o.flag(self.restrict, "--restrict");
        o.flag(
            self.device_as_default_execution_space,
            "--device-as-default-execution-space",
        );
        o.flag(self.device_int128, "--device-int128");
        o.flag(self.device_float128, "--device-float128");
        o.values(&self.optimization_info, "--optimization-info");
        o.flag(self.no_display_error_number, "--no-display-error-number");
        o.values(&self.diag_error, "--diag-error");
        o.values(&self.diag_suppress, "--diag-suppress");
        o.values(&self.diag_warn, "--diag-warn");
        o.yes_no(self.brief_diagnostics, "--brief-diagnostics");
        o.values(&self.time, "--time");
        o.values(self.split_compile, "--split-compile");
        o.flag(self.fdevice_syntax_only, "--fdevice-syntax-only");
        o.flag(self.minimal, "--minimal");
        o.flag(self.no_cache, "--no-cache");
        o.values(&self.fdevice_time_trace, "--fdevice-time-trace");
        o.values(&self.frandom_seed, "--frandom-seed");
        o.values(&self.ofast_compile, "--Ofast-compile");
        o.flag(self.pch, "--pch");
        o.values(&self.create_pch, "--create-pch");
        o.values(&self.use_pch, "--use-pch");
        o.values(&self.pch_dir, "--pch-dir");
        o.yes_no(self.pch_verbose, "--pch-verbose");
        o.yes_no(self.pch_messages, "--pch-messages");
        o.yes_no(
            self.instantiate_templates_in_pch,
            "--instantiate-templates-in-pch",
        );
        o.flag(self.numba_debug, "--numba-debug");
        Ok(o.0)
    }

    /// The options in libNVVM's spelling, for a target.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] naming options without a counterpart in libNVVM; [`Error::InvalidArgument`] without an
    /// architecture.
    pub fn for_nvvm(&self, target: CodeKind) -> Result<Vec<String>> {
        let unknown = self.unknown_to_nvvm();
        if !unknown.is_empty() {
            return Err(Error::Unsupported {
                function: "ProgramOptions::for_nvvm",
                problem: format!("libNVVM has no such options: {}", unknown.join(", ")),
            });
        }
        let arch = self.known_arch()?;
        // libNVVM compiles to PTX or LTO IR, both for a virtual architecture.
        let arch = match arch.strip_prefix("sm_") {
            Some(number) => format!("compute_{number}"),
            None => arch.to_owned(),
        };
        let mut o = Spelled(vec![format!("-arch={arch}")]);
        o.flag(self.debug, "-g");
        o.flag(self.numba_debug, "-numba-debug");
        match self.device_code_optimize {
            Some(true) => o.0.push("-opt=3".into()),
            Some(false) => o.0.push("-opt=0".into()),
            None => {}
        }
        o.bit(self.ftz, "-ftz");
        o.bit(self.prec_sqrt, "-prec-sqrt");
        o.bit(self.prec_div, "-prec-div");
        o.bit(self.fma, "-fma");
        o.flag(Some(target == CodeKind::LtoIr), "-gen-lto");
        Ok(o.0)
    }

    /// The options that affect linking PTX, spelled for comparison (linkers spell them differently).
    pub(crate) fn for_linker(&self) -> Vec<String> {
        let mut o = Spelled(Vec::new());
        o.values(&self.arch, "arch");
        o.yes_no(self.relocatable_device_code, "relocatable_device_code");
        o.yes_no(self.debug, "debug");
        o.yes_no(self.lineinfo, "lineinfo");
        o.yes_no(self.device_code_optimize, "device_code_optimize");
        o.values(&self.ptxas_options, "ptxas_options");
        o.values(self.max_register_count, "max_register_count");
        o.yes_no(self.ftz, "ftz");
        o.yes_no(self.prec_sqrt, "prec_sqrt");
        o.yes_no(self.prec_div, "prec_div");
        o.yes_no(self.fma, "fma");
        o.yes_no(self.link_time_optimization, "link_time_optimization");
        o.values(&self.time, "time");
        o.values(self.split_compile, "split_compile");
        o.yes_no(self.no_cache, "no_cache");
        o.0
    }

    fn unknown_to_nvvm(&self) -> Vec<&'static str> {
        let on = |given: Option<bool>| given == Some(true);
        [
            (
                self.relocatable_device_code.is_some(),
                "relocatable_device_code",
            ),
            (
                on(self.extensible_whole_program),
                "extensible_whole_program",
            ),
            (on(self.lineinfo), "lineinfo"),
            (!self.ptxas_options.is_empty(), "ptxas_options"),
            (self.max_register_count.is_some(), "max_register_count"),
            (on(self.use_fast_math), "use_fast_math"),
            (
                on(self.extra_device_vectorization),
                "extra_device_vectorization",
            ),
            (on(self.gen_opt_lto), "gen_opt_lto"),
            (!self.define_macro.is_empty(), "define_macro"),
            (!self.undefine_macro.is_empty(), "undefine_macro"),
            (!self.include_path.is_empty(), "include_path"),
            (on(self.use_bundled_headers), "use_bundled_headers"),
            (!self.pre_include.is_empty(), "pre_include"),
            (on(self.no_source_include), "no_source_include"),
            (self.std.is_some(), "std"),
            (self.builtin_move_forward.is_some(), "builtin_move_forward"),
            (
                self.builtin_initializer_list.is_some(),
                "builtin_initializer_list",
            ),
            (on(self.disable_warnings), "disable_warnings"),
            (on(self.restrict), "restrict"),
            (
                on(self.device_as_default_execution_space),
                "device_as_default_execution_space",
            ),
            (on(self.device_int128), "device_int128"),
            (self.optimization_info.is_some(), "optimization_info"),
            (on(self.no_display_error_number), "no_display_error_number"),
            (!self.diag_error.is_empty(), "diag_error"),
            (!self.diag_suppress.is_empty(), "diag_suppress"),
            (!self.diag_warn.is_empty(), "diag_warn"),
            (self.brief_diagnostics.is_some(), "brief_diagnostics"),
            (self.time.is_some(), "time"),
            (self.split_compile.is_some(), "split_compile"),
            (on(self.fdevice_syntax_only), "fdevice_syntax_only"),
            (on(self.minimal), "minimal"),
        ]
        .into_iter()
        .filter_map(|(given, name)| given.then_some(name))
        .collect()
    }
}

/// The user's cache directory: `$XDG_CACHE_HOME`, `~/.cache`, or `%LOCALAPPDATA%`; in it, `cuda-python`.
///
/// # Errors
///
/// [`Error::InvalidArgument`] if the environment defines none of them.
pub fn user_cache_directory() -> Result<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = if cfg!(windows) {
        absolute("LOCALAPPDATA")
    } else {
        // The XDG Base Directory Specification requires a relative XDG_CACHE_HOME to be ignored.
        absolute("XDG_CACHE_HOME").or_else(|| std::env::home_dir().map(|home| home.join(".cache")))
    };
    match base {
        Some(base) => Ok(base.join("cuda-python")),
        None => Err(Error::argument(
            "user_cache_directory",
            "environment",
            "names no directory for caches; set XDG_CACHE_HOME, or LOCALAPPDATA on Windows",
        )),
    }
}

/// The directory into which [`ProgramOptions::use_bundled_headers`] unpacks headers.
///
/// # Errors
///
/// Same as [`user_cache_directory`].
pub fn bundled_headers_directory() -> Result<PathBuf> {
    Ok(user_cache_directory()?.join("nvrtc-bundled-headers"))
}
