//! Loading and calling, with libraries compiled from C: an nvJitLink with only the old names, and a libNVVM that is
//! too old for a function.
//!
//! Sets environment variables, so this file is a separate process with one test.

use std::path::{Path, PathBuf};
use std::process::Command;

use cupyrite_sys::loader::{self, CudaLibrary, LoadErrorKind};
use cupyrite_sys::{nvjitlink, nvvm};

/// Compiles `source` to a shared library called `name`.
fn compile(folder: &Path, name: &str, source: &str) -> PathBuf {
    let c = folder.join("source.c");
    std::fs::write(&c, source).unwrap();
    let library = folder.join(name);
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let status = Command::new(&cc)
        .args(["-shared", "-fPIC", "-nostdlib", "-o"])
        .arg(&library)
        .arg(&c)
        .arg(format!("-Wl,-soname,{name}"))
        .status()
        .unwrap_or_else(|e| panic!("cannot run the C compiler {cc} ({e}); set CC"));
    assert!(status.success());
    library
}

#[test]
fn old_names_resolve_and_missing_functions_name_the_package() {
    let folder = std::env::temp_dir().join(format!("cupyrite-sys-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let linker = compile(
        &folder,
        "libnvJitLink.so.12",
        "int __nvJitLinkVersion_12_0(unsigned *major, unsigned *minor) { *major = 12; *minor = 1; return 0; }\n",
    );
    let compiler = compile(
        &folder,
        "libnvvm.so.4",
        "int nvvmVersion(int *major, int *minor) { *major = 2; *minor = 0; return 0; }\n",
    );
    // SAFETY: this process has one test and no other thread that reads the environment.
    unsafe {
        std::env::set_var("CUPYRITE_LIB_NVJITLINK", &linker);
        std::env::set_var("CUPYRITE_LIB_NVVM", &compiler);
    }

    assert_eq!(
        loader::library_path(CudaLibrary::NvJitLink),
        None,
        "nothing is loaded before its use"
    );
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both addresses point to integers.
    let status = unsafe { nvjitlink::nvJitLinkVersion(&raw mut major, &raw mut minor) };
    assert_eq!(status, Ok(nvjitlink::nvJitLinkResult::NVJITLINK_SUCCESS));
    assert_eq!((major, minor), (12, 1));
    assert_eq!(
        loader::library_path(CudaLibrary::NvJitLink),
        Some(linker.clone())
    );

    // SAFETY: the function does not exist, so nothing is called.
    let error = unsafe { nvjitlink::nvJitLinkDestroy(std::ptr::null_mut()) }.unwrap_err();
    assert_eq!(error.kind, LoadErrorKind::SymbolNotFound);
    assert_eq!(
        error.to_string(),
        format!(
            "function nvJitLinkDestroy not found in libnvJitLink ({}); \
             pip install --upgrade nvidia-nvjitlink",
            linker.display()
        )
    );

    let (mut major, mut minor) = (0, 0);
    // SAFETY: both addresses point to integers.
    let status = unsafe { nvvm::nvvmVersion(&raw mut major, &raw mut minor) };
    assert_eq!(status.map(|s| s.0), Ok(0));
    assert_eq!((major, minor), (2, 0));
    let arch = c"compute_90".as_ptr();
    // SAFETY: the function does not exist, so nothing is called.
    let error = unsafe { nvvm::nvvmLLVMVersion(arch, &raw mut major) }.unwrap_err();
    assert_eq!(error.library, "nvvm");
    assert!(
        error
            .to_string()
            .ends_with("pip install --upgrade nvidia-nvvm"),
        "{error}"
    );
    let _ = std::fs::remove_dir_all(&folder);
}
