// Included by the build scripts of `libcuda`, `libcudart`, `libcudart12` and `libnvml`.
//
// Generates one exported symbol per entry point: a jump through a table that is filled when the library is loaded. A jump
// leaves registers and stack unchanged, so it fits functions of every signature.

use std::fmt::Write;

/// Writes `entries.rs` and the link arguments of a library with these exported functions. `version` is their symbol
/// version, if they have one.
fn export(soname: &str, version: Option<&str>, mut names: Vec<&str>) {
    names.sort_unstable();
    names.dedup();
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_default();
    let mut asm = String::from(".text\n");
    for (i, name) in names.iter().enumerate() {
        let at = i * 8;
        let jump = match arch.as_str() {
            "x86_64" => format!("jmp qword ptr [rip + cupyrite_entry_table + {at}]"),
            "aarch64" => format!(
                "adrp x16, cupyrite_entry_table + {at}\nldr x16, [x16, #:lo12:cupyrite_entry_table + {at}]\nbr x16"
            ),
            other => panic!("unsupported architecture: {other}"),
        };
        let _ = writeln!(
            asm,
            ".globl {name}\n.type {name}, @function\n{name}:\n{jump}\n.size {name}, . - {name}"
        );
    }
    let size = names.len() * 8;
    let _ = writeln!(
        asm,
        ".bss\n.hidden cupyrite_entry_table\n.globl cupyrite_entry_table\n.balign 8\ncupyrite_entry_table:\n.zero {size}\n.text"
    );
    // These libraries neither panic nor unwind. Without Rust's personality function, the linker drops the standard library's
    // code for backtraces, four fifths of the file.
    let trap = if arch == "x86_64" { "ud2" } else { "brk #1" };
    let _ = writeln!(
        asm,
        ".hidden __wrap_rust_eh_personality\n.globl __wrap_rust_eh_personality\n__wrap_rust_eh_personality:\n{trap}"
    );
    println!("cargo::rustc-cdylib-link-arg=-Wl,--wrap=rust_eh_personality");
    let out = std::path::PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let list = names
        .iter()
        .map(|n| format!("c\"{n}\", "))
        .collect::<String>();
    let rust = format!(
        "std::arch::global_asm!(r#\"\n{asm}\"#);\nstatic NAMES: [&CStr; {n}] = [{list}];\n",
        n = names.len()
    );
    // `rustc` exports `cupyrite_cpu_device`; a version would only change that one.
    let (node, own) = match version {
        Some(version) => (format!("{version} "), ""),
        None => (String::new(), "cupyrite_cpu_device;\n"),
    };
    let script = format!(
        "{node}{{\nglobal:\n{own}{};\nlocal: *;\n}};\n",
        names.join(";\n")
    );
    std::fs::write(out.join("entries.rs"), rust).expect("writing to the build folder");
    let map = out.join("exports.map");
    std::fs::write(&map, script).expect("writing to the build folder");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{soname},-z,nodelete");
    println!(
        "cargo::rustc-cdylib-link-arg=-Wl,--version-script={}",
        map.display()
    );
    println!("cargo::rerun-if-changed=build.rs");
}
