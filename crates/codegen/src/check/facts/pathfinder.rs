//! Compares the tables of `cupyrite-pathfinder` with the manifest of `cuda.pathfinder`, in both directions. Converts
//! the tables to the manifest's form, so that extra entries of either side show.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cupyrite_pathfinder::files::InMemoryFiles;
use cupyrite_pathfinder::table::{
    BINARIES, BITCODE_LIBRARIES, HEADERS, HeaderSet, LIBRARIES, LibraryDescriptor, LinkableFile,
    Origin, STATIC_LIBRARIES,
};
use cupyrite_pathfinder::{Arch, Environment, Finder, FoundVia, Os, Platform, loader};
use serde_json::{Map, Value, json};

/// The sections of the manifest that the tables cover.
const SECTIONS: &[&str] = &[
    "dynamic_libs",
    "headers",
    "binaries",
    "static_libs",
    "bitcode_libs",
    "cuda_root_env_priority",
    "constants",
    "found_via",
];

/// The platform of the manifest.
const RECORDED_ON: Platform = Platform {
    os: Os::Linux,
    arch: Arch::X86_64,
};

/// Whether a manifest describes `cuda.pathfinder`.
pub fn recognises(facts: &Value) -> bool {
    facts["package"] == "cuda-pathfinder"
}

/// The differences between the tables and the manifest, one line each.
///
/// # Errors
///
/// The manifest is for another platform.
pub fn compare(facts: &Value) -> Result<Vec<String>, String> {
    if facts["platform"] != "linux-x86_64" {
        return Err(format!(
            "recorded on {}, expected linux-x86_64",
            facts["platform"]
        ));
    }
    let ours = ours();
    let theirs = theirs(facts);
    let mut out = Vec::new();
    for section in SECTIONS {
        differ(section, &ours[*section], &theirs[*section], &mut out);
    }
    Ok(out)
}

/// The compared sections of the manifest.
fn theirs(facts: &Value) -> Value {
    let mut all: Map<String, Value> = SECTIONS
        .iter()
        .map(|section| ((*section).to_owned(), facts[*section].clone()))
        .collect();
    let constants = &facts["modules"]["cuda.pathfinder"]["constants"];
    all.insert("constants".to_owned(), constants.clone());
    let words: BTreeSet<&str> = facts["found_via_values"]
        .as_object()
        .into_iter()
        .flat_map(Map::values)
        .filter_map(Value::as_array)
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    all.insert("found_via".to_owned(), json!(words));
    Value::Object(all)
}

/// The tables in the manifest's form.
fn ours() -> Value {
    json!({
        "dynamic_libs": rows(LIBRARIES.iter().map(|row| (row.name, library(row)))),
        "headers": rows(HEADERS.iter().map(|row| (row.name, header_set(row)))),
        "binaries": rows(BINARIES.iter().map(|row| (row.name, json!(row.wheel_dirs)))),
        "static_libs": rows(STATIC_LIBRARIES.iter().map(|row| (row.name, static_library(row)))),
        "bitcode_libs": rows(BITCODE_LIBRARIES.iter().map(|row| (row.name, bitcode_library(row)))),
        "cuda_root_env_priority": root_variables(),
        "constants": constants(),
        "found_via": found_via(),
    })
}

fn rows<'a>(rows: impl Iterator<Item = (&'a str, Value)>) -> Value {
    rows.map(|(name, row)| (name.to_owned(), row))
        .collect::<Map<_, _>>()
        .into()
}

/// A descriptor without empty lists and `false`, which the manifest omits.
fn sparse(row: Value) -> Value {
    let Value::Object(row) = row else {
        return row;
    };
    row.into_iter()
        .filter(|(_, value)| *value != json!([]) && *value != json!(false))
        .collect::<Map<_, _>>()
        .into()
}

fn packaged_with(origin: Origin) -> &'static str {
    match origin {
        Origin::Toolkit => "ctk",
        Origin::Driver => "driver",
        Origin::Product => "other",
    }
}

fn library(row: &LibraryDescriptor) -> Value {
    let on_windows = !row.windows_dlls.is_empty();
    let archs = row.windows_archs.iter().filter(|_| on_windows);
    let archs = archs.map(|arch| match arch {
        Arch::X86_64 => "x64",
        Arch::Aarch64 => "arm64",
    });
    sparse(json!({
        "packaged_with": packaged_with(row.origin),
        "linux_sonames": row.linux_sonames,
        "windows_dlls": row.windows_dlls,
        "windows_arch": archs.collect::<Vec<_>>(),
        "site_packages_linux": row.linux_wheel_dirs,
        "anchor_rel_dirs_linux": row.linux_root_dirs,
        "dependencies": row.dependencies,
        "optional_dependencies": row.optional_dependencies,
        "rtld_deepbind": row.deep_bind,
        "add_dll_directory": row.add_dll_directory,
        "ctk_root_canary": if row.canary { vec!["cudart"] } else { Vec::new() },
        "install_root_env_vars_linux": row.root_variables,
        "install_root_env_vars_windows": if on_windows { row.root_variables } else { &[] },
        "install_root_env_rel_dirs_linux": row.linux_variable_dirs,
    }))
}

fn header_set(row: &HeaderSet) -> Value {
    let toolkit = row.origin == Origin::Toolkit;
    let mut lists = sparse(json!({
        "include_subdirs": row.linux_subdirs,
        "include_subdirs_windows": row.windows_subdirs,
        "product_root_env_vars": row.root_variables,
        "system_install_dirs": row.linux_system_dirs,
        "system_install_dirs_windows": row.windows_system_dirs,
    }));
    let always = json!({
        "packaged_with": packaged_with(row.origin),
        "header_basename": row.header,
        "available_on_linux": true,
        "available_on_windows": row.on_windows,
        "site_packages_dirs": row.wheel_dirs,
        "anchor_include_rel_dirs": row.root_dirs,
        // Both distinguish toolkit headers from product headers.
        "conda_targets_layout": toolkit,
        "use_ctk_root_canary": toolkit,
        "use_linux_multiarch_include_dir": row.multiarch,
    });
    if let (Value::Object(lists), Value::Object(always)) = (&mut lists, always) {
        lists.extend(always);
    }
    lists
}

fn static_library(row: &LinkableFile) -> Value {
    json!({
        "filename": row.linux_file,
        "site_packages_dirs": row.linux_wheel_dirs,
        "conda_rel_paths": row.conda_dirs,
        "ctk_rel_paths": row.linux_root_dirs,
    })
}

fn bitcode_library(row: &LinkableFile) -> Value {
    // The manifest has one path for conda and toolkits, and one list of wheels for both operating systems.
    let one = |dirs: &[&str]| match dirs {
        [dir] if row.conda_dirs == dirs => json!(dir),
        _ => json!({ "conda": row.conda_dirs, "toolkit": dirs }),
    };
    json!({
        "filename": row.linux_file,
        "available_on_windows": row.windows_file == row.linux_file,
        "rel_path": one(row.linux_root_dirs),
        "site_packages_dirs": row.linux_wheel_dirs,
    })
}

/// The precedence of the toolkit variables in the search.
fn root_variables() -> Value {
    let first = |cuda_path: Option<&str>, cuda_home: Option<&str>| {
        let environment = Environment {
            cuda_path: cuda_path.map(PathBuf::from),
            cuda_home: cuda_home.map(PathBuf::from),
            ..Environment::default()
        };
        let finder = Finder {
            platform: RECORDED_ON,
            environment: &environment,
            files: &InMemoryFiles::new(),
            loader: &loader::SystemLoader,
        };
        finder.cuda_path_or_home()
    };
    let (path, home) = ("CUDA_PATH", "CUDA_HOME");
    match first(Some(path), Some(home)) {
        Some(chosen) if chosen == Path::new(path) && first(None, Some(home)).is_some() => {
            json!([path, home])
        }
        Some(chosen) if chosen == Path::new(home) && first(Some(path), None).is_some() => {
            json!([home, path])
        }
        other => json!(other),
    }
}

fn constants() -> Value {
    let toolkit = |row: &&LibraryDescriptor| {
        row.origin == Origin::Toolkit && !row.names(RECORDED_ON).is_empty()
    };
    let names = LIBRARIES.iter().filter(toolkit).map(|row| row.name);
    let sets = HEADERS
        .iter()
        .filter(|row| row.origin == Origin::Toolkit && row.exists_on(RECORDED_ON));
    let archives = |rows: &[LinkableFile]| rows.iter().map(|row| row.name).collect::<Vec<_>>();
    json!({
        "SUPPORTED_NVIDIA_LIBNAMES": names.collect::<Vec<_>>(),
        "SUPPORTED_HEADERS_CTK": rows(sets.map(|row| (row.name, json!(row.header)))),
        "SUPPORTED_BINARY_UTILITIES": BINARIES.iter().map(|row| row.name).collect::<Vec<_>>(),
        "SUPPORTED_STATIC_LIBS": archives(STATIC_LIBRARIES),
        "SUPPORTED_BITCODE_LIBS": archives(BITCODE_LIBRARIES),
    })
}

/// The names of the search steps, sorted, without `override`, which only this project has.
fn found_via() -> Value {
    let steps = [
        FoundVia::AlreadyLoaded,
        FoundVia::SitePackages,
        FoundVia::Conda,
        FoundVia::System,
        FoundVia::Variable("<env var name>"),
        FoundVia::CudaPath,
        FoundVia::ProgramFiles,
        FoundVia::Canary,
        FoundVia::WellKnown,
        FoundVia::SystemFolder,
    ];
    let words: BTreeSet<String> = steps.iter().map(FoundVia::to_string).collect();
    json!(words)
}

/// Adds a line for each different value, named by its path.
fn differ(at: &str, ours: &Value, theirs: &Value, out: &mut Vec<String>) {
    if let (Value::Object(ours), Value::Object(theirs)) = (ours, theirs) {
        let keys: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
        for key in keys {
            let at = format!("{at}.{key}");
            match (ours.get(key), theirs.get(key)) {
                (Some(ours), Some(theirs)) => differ(&at, ours, theirs, out),
                (Some(ours), None) => out.push(format!("{at}: not in the facts (have {ours})")),
                (None, theirs) => {
                    let theirs = theirs.unwrap_or(&Value::Null);
                    out.push(format!("{at}: missing (want {theirs})"));
                }
            }
        }
    } else if ours != theirs {
        out.push(format!("{at}: have {ours}, want {theirs}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A manifest generated from the tables.
    fn agreeing() -> Value {
        let mut facts = ours();
        let constants = facts["constants"].take();
        let words = facts["found_via"].take();
        facts["package"] = json!("cuda-pathfinder");
        facts["platform"] = json!("linux-x86_64");
        facts["modules"] = json!({ "cuda.pathfinder": { "constants": constants } });
        facts["found_via_values"] = json!({ "headers": words, "static_bitcode": ["conda"] });
        facts
    }

    fn changed(pointer: &str, value: Value) -> Vec<String> {
        let mut facts = agreeing();
        *facts.pointer_mut(pointer).unwrap() = value;
        compare(&facts).unwrap()
    }

    #[test]
    fn equal_tables_have_no_differences() {
        assert_eq!(compare(&agreeing()), Ok(Vec::new()));
    }

    #[test]
    fn every_kind_of_difference_is_reported_once() {
        let module = "/modules/cuda.pathfinder/constants";
        for (pointer, value, told) in [
            (
                "/dynamic_libs/nvrtc/linux_sonames/0",
                json!("libnvrtc.so.14"),
                "dynamic_libs.nvrtc.linux_sonames: have",
            ),
            (
                "/dynamic_libs/cudnn/dependencies",
                json!([]),
                "dynamic_libs.cudnn.dependencies: have",
            ),
            (
                "/headers/cccl/include_subdirs/0",
                json!("x"),
                "headers.cccl.include_subdirs: have",
            ),
            (
                "/headers/nccl/available_on_windows",
                json!(true),
                "headers.nccl.available_on_windows: have",
            ),
            ("/binaries/nvcc/0", json!("bin"), "binaries.nvcc: have"),
            (
                "/static_libs/cudadevrt/ctk_rel_paths",
                json!(["lib"]),
                "static_libs.cudadevrt.ctk_rel_paths: have",
            ),
            (
                "/bitcode_libs/device/rel_path",
                json!("lib"),
                "bitcode_libs.device.rel_path: have",
            ),
            (
                "/cuda_root_env_priority",
                json!(["CUDA_HOME", "CUDA_PATH"]),
                "cuda_root_env_priority: have",
            ),
            (
                "/found_via_values/headers/0",
                json!("magic"),
                "found_via: have",
            ),
        ] {
            let lines = changed(pointer, value);
            assert_eq!(lines.len(), 1, "{pointer}: {lines:?}");
            assert!(lines[0].starts_with(told), "{pointer}: {lines:?}");
        }
        let order = changed(
            &format!("{module}/SUPPORTED_BITCODE_LIBS"),
            json!(["nccl_device"]),
        );
        assert_eq!(order.len(), 1, "{order:?}");
    }

    #[test]
    fn entries_of_one_side_only_are_reported() {
        let mut facts = agreeing();
        facts["dynamic_libs"]["nvnew"] = json!({ "linux_sonames": ["libnvnew.so.1"] });
        facts["dynamic_libs"]["nvrtc"]["new_key"] = json!(1);
        facts["headers"].as_object_mut().unwrap().remove("cccl");
        let lines = compare(&facts).unwrap();
        let starts = [
            "dynamic_libs.nvnew: missing",
            "dynamic_libs.nvrtc.new_key: missing",
            "headers.cccl: not in the facts",
        ];
        assert_eq!(lines.len(), starts.len(), "{lines:?}");
        for (line, start) in lines.iter().zip(starts) {
            assert!(line.starts_with(start), "{line}");
        }
    }

    #[test]
    fn a_manifest_of_another_platform_is_an_error() {
        let mut facts = agreeing();
        facts["platform"] = json!("win-amd64");
        assert!(compare(&facts).is_err());
        assert!(recognises(&facts) && !recognises(&json!({})));
    }
}
