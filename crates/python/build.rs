//! What is known of the interpreter, link arguments, and the examples of the docstrings.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Folder with the examples. A line `@@ NAME` begins the example of an object, which is that object's name in Python.
const EXAMPLES: &str = "doctests";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={EXAMPLES}");
    write_examples();
    // `cfg(Py_GIL_DISABLED)`: `src/core/pin_count.rs`.
    pyo3_build_config::use_pyo3_cfgs();
    // `src/cpython/unwinding.rs` says what for. Where the C library ends threads without unwinding their stacks, nothing is
    // needed.
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux")
        && env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu")
    {
        println!("cargo:rustc-link-arg=-Wl,--wrap=rust_eh_personality");
    }
}

/// Writes the macro `example`, which expands to the section `Examples` of a docstring: `src/docstrings.rs`.
fn write_examples() {
    let mut files: Vec<PathBuf> = fs::read_dir(EXAMPLES)
        .expect("the folder with the examples")
        .map(|entry| entry.expect("an entry of the folder").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    let mut arms = String::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("an example file in UTF-8");
        // A change of a file in the folder does not change the folder.
        println!("cargo:rerun-if-changed={}", file.display());
        let mut examples = text.split("@@ ");
        assert_eq!(
            examples.next(),
            Some(""),
            "{}: begins with `@@ NAME`",
            file.display()
        );
        for example in examples {
            let (name, lines) = example.split_once('\n').expect("lines below `@@ NAME`");
            let section = format!("\nExamples\n--------\n{}", lines.trim_end());
            writeln!(arms, "    ({name:?}) => {{ {section:?} }};").expect("memory");
        }
    }
    let path = Path::new(&env::var_os("OUT_DIR").expect("set by Cargo")).join("examples.rs");
    fs::write(path, format!("macro_rules! example {{\n{arms}}}\n"))
        .expect("the folder is writable");
}
