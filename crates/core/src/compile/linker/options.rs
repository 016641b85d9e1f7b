//! Linker options.

use std::ffi::c_uint;

use cupyrite_sys::driver::{CUjit_cacheMode, CUjit_option, CUjit_target};
use cupyrite_sys::nvjitlink::nvJitLinkResult;

use crate::context::Device;
use crate::error::{Error, Result};

/// Options of a linker; the default is the linker's own.
///
/// An option that the backend does not support is an error. Source: nvJitLink, "Supported Link Options"; CUDA driver
/// API, `CUjit_option`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkerOptions {
    /// The name of the linked code, for messages.
    pub name: String,
    /// The architecture, such as `sm_90`; `None` is that of the current device.
    pub arch: Option<String>,
    /// The largest number of registers per thread.
    pub max_register_count: Option<u32>,
    /// Whether the info log contains the duration of each phase.
    pub time: bool,
    /// Whether the info log contains the resource usage of the kernels.
    pub verbose: bool,
    /// Whether LTO IR is optimised at link time.
    pub link_time_optimization: bool,
    /// Whether the output is PTX, which requires link-time optimisation.
    pub ptx: bool,
    /// 0 to 3.
    pub optimization_level: Option<u32>,
    /// Whether to generate debug information.
    pub debug: bool,
    /// Whether to generate line information.
    pub lineinfo: bool,
    /// Whether denormal numbers are flushed to zero.
    pub ftz: Option<bool>,
    /// Whether single-precision division is rounded correctly.
    pub prec_div: Option<bool>,
    /// Whether the single-precision square root is rounded correctly.
    pub prec_sqrt: Option<bool>,
    /// Whether multiplications and additions are contracted.
    pub fma: Option<bool>,
    /// The kernels to keep, with their dependencies. Empty: all.
    pub kernels_used: Vec<String>,
    /// The variables that the host uses.
    pub variables_used: Vec<String>,
    /// Whether to remove variables that no kernel uses.
    pub optimize_unused_variables: bool,
    /// Options for the assembler of PTX.
    pub ptxas_options: Vec<String>,
    /// Compiler threads, if the code can be split; 0 for as many as cores.
    pub split_compile: Option<u32>,
    /// The same with finer splitting.
    pub split_compile_extended: Option<u32>,
    /// Whether to bypass the driver's cache of compiled code.
    pub no_cache: bool,
}

/// The architecture of the current device in the compilers' spelling: `sm_90`.
fn current_arch() -> Result<String> {
    let cc = Device::current()?.compute_capability()?;
    Ok(format!("sm_{}{}", cc.major, cc.minor))
}

/// Whether machine code of one architecture can be linked into that of another (`sm_90`): the major version is equal
/// and the minor one not newer (CUDA C++ Programming Guide, "Binary Compatibility").
pub(crate) fn fits(code: u32, target: &str) -> bool {
    // nvJitLink judges what cannot be parsed.
    arch_number(target)
        .is_none_or(|(target, _)| code / 10 == target / 10 && code % 10 <= target % 10)
}

/// The number in `sm_90a`, and its suffix. Leading blanks and a plus sign are skipped, as by C's `atoi`.
fn arch_number(arch: &str) -> Option<(u32, &str)> {
    let number = ["sm_", "compute_", "lto_"]
        .iter()
        .find_map(|prefix| arch.strip_prefix(prefix))?;
    let digits = number.trim_start();
    let digits = digits.strip_prefix('+').unwrap_or(digits);
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    Some((digits[..end].parse().ok()?, &digits[end..]))
}

impl LinkerOptions {
    /// The options in nvJitLink's spelling, `-arch=sm_90` first.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an invalid architecture; without one, the driver's error for the current device.
    pub fn nvjitlink_arguments(&self) -> Result<Vec<String>> {
        let arch = match &self.arch {
            Some(arch) => arch.clone(),
            None => current_arch()?,
        };
        if arch_number(&arch).is_some_and(|(number, _)| number < 10) {
            // nvJitLink terminates the process for these.
            return Err(Error::NvJitLink {
                call: "nvJitLinkCreate",
                status: nvJitLinkResult::NVJITLINK_ERROR_UNRECOGNIZED_ARCH,
                log: format!(
                    "there is no architecture {arch:?}; expected something like \"sm_90\""
                ),
            });
        }
        let mut list = vec![format!("-arch={arch}")];
        let number = |text: &str, value: Option<u32>, list: &mut Vec<String>| {
            list.extend(value.map(|n| format!("{text}{n}")));
        };
        let flag = |text: &str, value: bool, list: &mut Vec<String>| {
            list.extend(value.then(|| text.to_owned()));
        };
        let switch = |text: &str, value: Option<bool>, list: &mut Vec<String>| {
            list.extend(value.map(|on| format!("{text}{on}")));
        };
        let each = |text: &str, values: &[String], list: &mut Vec<String>| {
            list.extend(values.iter().map(|value| format!("{text}{value}")));
        };
        number("-maxrregcount=", self.max_register_count, &mut list);
        flag("-time", self.time, &mut list);
        flag("-verbose", self.verbose, &mut list);
        flag("-lto", self.link_time_optimization, &mut list);
        flag("-ptx", self.ptx, &mut list);
        number("-O", self.optimization_level, &mut list);
        flag("-g", self.debug, &mut list);
        flag("-lineinfo", self.lineinfo, &mut list);
        switch("-ftz=", self.ftz, &mut list);
        switch("-prec-div=", self.prec_div, &mut list);
        switch("-prec-sqrt=", self.prec_sqrt, &mut list);
        switch("-fma=", self.fma, &mut list);
        each("-kernels-used=", &self.kernels_used, &mut list);
        each("-variables-used=", &self.variables_used, &mut list);
        flag(
            "-optimize-unused-variables",
            self.optimize_unused_variables,
            &mut list,
        );
        each("-Xptxas=", &self.ptxas_options, &mut list);
        number("-split-compile=", self.split_compile, &mut list);
        number(
            "-split-compile-extended=",
            self.split_compile_extended,
            &mut list,
        );
        flag("-no-cache", self.no_cache, &mut list);
        Ok(list)
    }

    /// The options as the driver takes them, each a number.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for options that only nvJitLink knows.
    pub(crate) fn driver_options(&self) -> Result<Vec<(CUjit_option, usize)>> {
        let unknown = [
            ("time", self.time),
            ("link_time_optimization", self.link_time_optimization),
            ("ptx", self.ptx),
            ("ftz", self.ftz.is_some()),
            ("prec_div", self.prec_div.is_some()),
            ("prec_sqrt", self.prec_sqrt.is_some()),
            ("fma", self.fma.is_some()),
            ("kernels_used", !self.kernels_used.is_empty()),
            ("variables_used", !self.variables_used.is_empty()),
            ("optimize_unused_variables", self.optimize_unused_variables),
            ("ptxas_options", !self.ptxas_options.is_empty()),
            ("split_compile", self.split_compile.is_some()),
            (
                "split_compile_extended",
                self.split_compile_extended.is_some(),
            ),
        ];
        for (name, given) in unknown {
            if given {
                let problem = "only nvJitLink has this option, and the driver is linking: install nvJitLink \
                               (pip install nvidia-nvjitlink)";
                return Err(Error::argument(
                    "Linker::new",
                    format!("options.{name}"),
                    problem,
                ));
            }
        }
        let mut list = Vec::new();
        let mut add = |option, value: usize| list.push((option, value));
        if let Some(arch) = &self.arch {
            add(CUjit_option::CU_JIT_TARGET, driver_target(arch)? as usize);
        }
        if let Some(registers) = self.max_register_count {
            add(CUjit_option::CU_JIT_MAX_REGISTERS, registers as usize);
        }
        if self.verbose {
            add(CUjit_option::CU_JIT_LOG_VERBOSE, 1);
        }
        if let Some(level) = self.optimization_level {
            add(CUjit_option::CU_JIT_OPTIMIZATION_LEVEL, level as usize);
        }
        if self.debug {
            add(CUjit_option::CU_JIT_GENERATE_DEBUG_INFO, 1);
        }
        if self.lineinfo {
            add(CUjit_option::CU_JIT_GENERATE_LINE_INFO, 1);
        }
        if self.no_cache {
            let none = CUjit_cacheMode::CU_JIT_CACHE_OPTION_NONE;
            add(CUjit_option::CU_JIT_CACHE_MODE, none.0 as usize);
        }
        Ok(list)
    }
}

/// The driver's number of an architecture.
fn driver_target(arch: &str) -> Result<c_uint> {
    let found = arch_number(arch).and_then(|(number, suffix)| {
        let name = format!("CU_TARGET_COMPUTE_{number}{}", suffix.to_ascii_uppercase());
        CUjit_target::MEMBERS.iter().find(|(n, _)| *n == name)
    });
    match found {
        Some((_, target)) => Ok(target.0),
        None => {
            let problem = format!(
                "is {arch:?}; expected an architecture that the driver knows, such as \"sm_90\""
            );
            Err(Error::argument("Linker::new", "options.arch", problem))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_become_arguments_in_the_order_of_the_fields() {
        let options = LinkerOptions {
            arch: Some("sm_89".into()),
            max_register_count: Some(32),
            time: true,
            ftz: Some(false),
            kernels_used: vec!["a".into(), "b".into()],
            split_compile: Some(0),
            no_cache: true,
            ..LinkerOptions::default()
        };
        assert_eq!(
            options.nvjitlink_arguments().unwrap(),
            [
                "-arch=sm_89",
                "-maxrregcount=32",
                "-time",
                "-ftz=false",
                "-kernels-used=a",
                "-kernels-used=b",
                "-split-compile=0",
                "-no-cache"
            ]
        );
    }

    #[test]
    fn architectures_that_terminate_the_process_are_rejected() {
        for arch in [
            "sm_1",
            "lto_09",
            "compute_9",
            "sm_9a",
            "sm_ 1",
            "sm_+1",
            "sm_0",
        ] {
            let options = LinkerOptions {
                arch: Some(arch.into()),
                ..LinkerOptions::default()
            };
            assert!(options.nvjitlink_arguments().is_err(), "{arch}");
        }
    }

    #[test]
    fn the_driver_knows_fewer_options() {
        let mut options = LinkerOptions {
            arch: Some("sm_90a".into()),
            debug: true,
            ..LinkerOptions::default()
        };
        let list = options.driver_options().unwrap();
        let target = CUjit_target::CU_TARGET_COMPUTE_90A.0 as usize;
        assert_eq!(list[0], (CUjit_option::CU_JIT_TARGET, target));
        assert_eq!(list.len(), 2);
        options.arch = Some("sm_12345".into());
        assert!(options.driver_options().is_err());
        options.arch = None;
        options.split_compile = Some(2);
        let e = options.driver_options().unwrap_err().to_string();
        assert!(e.contains("options.split_compile"), "{e}");
        options.split_compile = None;
        options.time = true;
        let e = options.driver_options().unwrap_err().to_string();
        assert!(e.contains("options.time"), "{e}");
    }
}
