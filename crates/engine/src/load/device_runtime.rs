//! Functions of the device runtime that are PTX: modules that declare one of them are linked with it.

use cupyrite_ptx::ir::Module;
use cupyrite_ptx::link;

use super::error::LoadError;
use super::parse::parse;

/// The functions, by the names that modules declare.
const PTX: &str = include_str!("device_runtime.ptx");
const NAMES: [&str; 5] = [
    "cudaCGGetIntrinsicHandle",
    "cudaCGGetRank",
    "cudaCGGetSize",
    "cudaCGSynchronize",
    "cudaCGSynchronizeGrid",
];

/// Whether the device runtime has a function of this name.
pub fn provides(name: &str) -> bool {
    NAMES.contains(&name)
}

/// Whether one of the modules declares a function of the device runtime that none of them defines.
pub fn needed<'a>(modules: impl IntoIterator<Item = &'a Module> + Clone) -> bool {
    let declared = modules
        .clone()
        .into_iter()
        .flat_map(|m| &m.functions)
        .filter(|f| f.body.is_none() && provides(&f.name));
    let defined = |name: &str| {
        let mut functions = modules.clone().into_iter().flat_map(|m| &m.functions);
        functions.any(|f| f.body.is_some() && f.name == name)
    };
    declared.into_iter().any(|f| !defined(&f.name))
}

/// Whether this is the PTX of `libcudadevrt`, which `nvcc` adds to programs. It calls system functions of GPUs; the device
/// has functions of its own for those that modules call.
pub fn is_of_gpu(ptx: &str) -> bool {
    ptx.contains(".extern .func")
        && ptx.contains("__cuda_syscall_")
        && ptx.contains("cudaCGSynchronize")
}

/// Why the device has no function of this name, if that is known.
pub fn reason(name: &str) -> Option<&'static str> {
    let synchronizes = matches!(
        name,
        "cudaDeviceSynchronize" | "__cudaDeviceSynchronizeDeprecationAvoidance"
    );
    synchronizes.then_some(
        "device code cannot wait for kernels that it launched (only the dynamic parallelism of CUDA 11, CDP1, could); launch \
         what follows into cudaStreamTailLaunch, or from the host",
    )
}

/// The functions, as an input of the linker.
pub fn input() -> Result<link::Input, LoadError> {
    const NAME: &str = "device runtime";
    Ok(link::Input {
        name: NAME.into(),
        module: parse(PTX, NAME)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_device_runtime_of_gpus_is_recognised() {
        assert!(!is_of_gpu(PTX));
        assert!(is_of_gpu(
            ".extern .func __cuda_syscall_CGS_sync\n();\n.visible .func cudaCGSynchronize() { ret; }"
        ));
    }

    #[test]
    fn the_names_are_those_of_the_functions() {
        let mut names: Vec<_> = input()
            .expect("valid PTX")
            .module
            .functions
            .into_iter()
            .map(|f| f.name)
            .collect();
        names.sort_unstable();
        assert_eq!(names, NAMES);
    }
}
