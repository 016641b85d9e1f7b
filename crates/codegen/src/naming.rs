//! The names of a library in each kind of output.

use crate::ir::LibraryApi;

/// Title of a library, at the start of a sentence: "NVRTC", "The CUDA driver API".
pub fn title(lib: &LibraryApi) -> &'static str {
    match lib.c_library() {
        "driver" => "The CUDA driver API",
        "runtime" => "The CUDA runtime API",
        "nvrtc" => "NVRTC, the run-time compiler",
        "nvjitlink" => "nvJitLink, the device linker",
        "nvvm" => "libNVVM, the compiler of NVVM IR",
        "nvfatbin" => "nvFatbin, the fat binary creator",
        "nvml" => "NVML, the management library",
        "cufile" => "cuFile, GPUDirect Storage",
        "cudla" => "cuDLA, the deep learning accelerator",
        _ => "A CUDA library",
    }
}

/// The name alone: "CUDA driver API", "NVRTC".
pub fn short_title(lib: &LibraryApi) -> &'static str {
    let title = title(lib).trim_start_matches("The ");
    title.split(',').next().unwrap_or(title)
}

/// The variant of `cupyrite_sys::loader::CudaLibrary`.
pub fn loader_variant(lib: &LibraryApi) -> &'static str {
    match lib.c_library() {
        "driver" => "Driver",
        "runtime" => "Runtime",
        "nvrtc" => "Nvrtc",
        "nvjitlink" => "NvJitLink",
        "nvvm" => "Nvvm",
        "nvfatbin" => "NvFatbin",
        "nvml" => "Nvml",
        "cufile" => "CuFile",
        "cudla" => "Cudla",
        other => panic!("no loader variant for {other}: add it here and in cupyrite_sys::loader"),
    }
}

/// The variant of `cupyrite_python`'s `types::module::Module`.
pub fn module_variant(lib: &LibraryApi) -> String {
    let second = if lib.shares.is_some() { "V2" } else { "" };
    format!("{}{second}", loader_variant(lib))
}

/// `getMemoryInfo` as `get_memory_info`. A run of capitals is a word up to its last one (`getPCIInfo`: `get_pci_info`);
/// each of `words` is one word, whatever its spelling.
pub fn snake_case(name: &str, words: &[String]) -> String {
    let mut name = name.to_owned();
    for word in words {
        let (first, rest) = word.split_at(1);
        name = name.replace(word.as_str(), &format!("{first}{}", rest.to_lowercase()));
    }
    let letters: Vec<char> = name.chars().collect();
    let mut out = String::with_capacity(name.len() + 8);
    for (at, c) in letters.iter().enumerate() {
        if c.is_ascii_uppercase() && at > 0 {
            let before = letters[at - 1];
            let starts = letters.get(at + 1).is_some_and(char::is_ascii_lowercase);
            if before.is_ascii_lowercase()
                || before.is_ascii_digit()
                || (before.is_ascii_uppercase() && starts)
            {
                out.push('_');
            }
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::sources::SOURCES;

    #[test]
    fn snake_case_splits_words() {
        let words = ["NvLink".to_owned(), "P2P".to_owned()];
        for (name, want) in [
            ("DeviceGetBAR1MemoryInfo", "device_get_bar1_memory_info"),
            ("DeviceGetNvLinkInfo_v3", "device_get_nvlink_info_v3"),
            ("DeviceGetP2PStatus", "device_get_p2p_status"),
            ("DeviceReadWritePRM_v1", "device_read_write_prm_v1"),
            ("memoryClockMHz", "memory_clock_m_hz"),
            ("IRVersion", "ir_version"),
            ("GetBARSizeInKB", "get_bar_size_in_kb"),
            ("bufPtr_base", "buf_ptr_base"),
        ] {
            assert_eq!(snake_case(name, &words), want);
        }
    }

    #[test]
    fn every_library_has_its_names() {
        let mut seen = std::collections::BTreeSet::new();
        for source in SOURCES {
            let lib = LibraryApi {
                name: source.name.to_owned(),
                ..LibraryApi::default()
            };
            assert_ne!(title(&lib), "A CUDA library", "{}", source.name);
            assert!(seen.insert(loader_variant(&lib)), "{}", source.name);
            assert!(!short_title(&lib).contains(','));
        }
    }
}
