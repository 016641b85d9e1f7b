//! What a library is called in each kind of output.

use crate::ir::Library;

/// How people name a library, as the start of a sentence: "NVRTC", "The CUDA driver API".
pub fn title(lib: &Library) -> &'static str {
    match lib.name.as_str() {
        "driver" => "The CUDA driver API",
        "nvrtc" => "NVRTC, the run-time compiler",
        "nvjitlink" => "nvJitLink, the linker of device code",
        "nvvm" => "libNVVM, the compiler of NVVM IR",
        "nvfatbin" => "nvFatbin, the maker of fat binaries",
        "nvml" => "NVML, the management library",
        "cufile" => "cuFile, GPUDirect Storage",
        "cudla" => "cuDLA, the deep learning accelerator",
        _ => "A CUDA library",
    }
}

/// The name alone: "CUDA driver API", "NVRTC".
pub fn short_title(lib: &Library) -> &'static str {
    let title = title(lib).trim_start_matches("The ");
    title.split(',').next().unwrap_or(title)
}

/// The variant of `cupyrite_sys::loader::Library`.
pub fn loader_variant(lib: &Library) -> &'static str {
    match lib.name.as_str() {
        "driver" => "Driver",
        "nvrtc" => "Nvrtc",
        "nvjitlink" => "NvJitLink",
        "nvvm" => "Nvvm",
        "nvfatbin" => "NvFatbin",
        "nvml" => "Nvml",
        "cufile" => "CuFile",
        "cudla" => "Cudla",
        other => panic!("no loader variant for {other}: name it here and in cupyrite_sys::loader"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge::SOURCES;

    #[test]
    fn every_library_has_its_names() {
        let mut seen = std::collections::BTreeSet::new();
        for source in SOURCES {
            let lib = Library {
                name: source.name.to_owned(),
                ..Library::default()
            };
            assert_ne!(title(&lib), "A CUDA library", "{}", source.name);
            assert!(seen.insert(loader_variant(&lib)), "{}", source.name);
            assert!(!short_title(&lib).contains(','));
        }
    }
}
