use std::ffi::OsString;
use std::path::PathBuf;

use super::{Outcome, run};
use crate::code::{self, CodeSource, Content};

const PTX: &str = "\
.version 8.0
.target sm_80
.address_size 64
.global .align 4 .b8 table[40];
.const .align 4 .b8 constants[24];
.func (.reg .b32 r) next(.reg .b32 x) {
 bar.sync 2;
 add.s32 r, x, 1;
 ret;
}
.visible .entry k(.param .u64 p) {
 .reg .b32 %r<4>;
 .reg .b64 %rd<4>;
 .shared .align 4 .b8 s[256];
 .local .align 8 .b8 l[64];
 ld.param.u64 %rd1, [p];
 mov.u32 %r1, %tid.x;
 mov.u64 %rd2, l;
 st.local.u32 [%rd2], %r1;
 mov.u64 %rd3, s;
 st.shared.u32 [%rd3], %r1;
 call (%r2), next, (%r1);
 st.global.u32 [%rd1], %r2;
 ret;
}
";

/// Checked by the parser, and refused by the engine.
const CANNOT_RUN: &str = "\
.visible .entry later() {
 .reg .f32 %f<2>; .reg .pred %p<2>;
 mov.f32 %f1, 0f00000000;
 testp.f32 %p1, %f1;
 ret;
}
";

/// A folder of a test, deleted at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path =
            std::env::temp_dir().join(format!("cupyrite-ptxas-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn ptxas(words: &[&str]) -> Outcome {
    run(&words.iter().map(OsString::from).collect::<Vec<_>>())
}

/// The PTX of a cubin.
fn texts(cubin: &str) -> Vec<String> {
    let bytes = std::fs::read(cubin).unwrap();
    match code::content(CodeSource::Slice(&bytes), "test") {
        Ok(Content::Ptx(units)) => units.into_iter().map(|u| u.text).collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn cubin_contains_the_ptx_and_verbose_prints_statistics() {
    let folder = Folder::new("verbose");
    let (input, output) = (folder.file("a.ptx", PTX), folder.path("a.cubin"));
    // The command line of Triton.
    let done = ptxas(&[
        "-lineinfo",
        "--fmad=false",
        "-v",
        "--regAllocOptLevel=2",
        "--gpu-name=sm_89",
        &input,
        "-o",
        &output,
    ]);
    assert_eq!(
        (done.status, done.stdout.as_str()),
        (0, ""),
        "{}",
        done.stderr
    );
    assert_eq!(texts(&output), [PTX]);
    let lines: Vec<&str> = done.stderr.lines().collect();
    assert_eq!(
        lines[..4],
        [
            "ptxas info    : 40 bytes gmem, 24 bytes cmem[3]",
            "ptxas info    : Compiling entry function 'k' for 'sm_89'",
            "ptxas info    : Function properties for k",
            // With the parameters of the call.
            "    80 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads",
        ]
    );
    let used = lines[4].strip_prefix("ptxas info    : Used ").unwrap();
    let (registers, rest) = used.split_once(' ').unwrap();
    assert!((10..=255).contains(&registers.parse::<u32>().unwrap()));
    assert_eq!(
        rest,
        "registers, used 3 barriers, 80 bytes cumulative stack size, 256 bytes smem, 360 bytes cmem[0]"
    );
    assert!(lines[5].starts_with("ptxas info    : Compile time = ") && lines.len() == 6);

    let quiet = ptxas(&["-arch=sm_80", &input, "-o", &output]);
    assert_eq!(quiet, Outcome::default());
}

#[test]
fn errors_name_file_and_line() {
    let folder = Folder::new("errors");
    let input = folder.file("bad.ptx", &PTX.replace("add.s32", "add.q32"));
    let output = folder.path("bad.cubin");
    let done = ptxas(&["-arch=sm_80", &input, "-o", &output]);
    assert_eq!(done.status, 255);
    let lines: Vec<&str> = done.stderr.lines().collect();
    let start = format!("ptxas {input}, line 8; error   : ");
    assert!(
        lines[0].starts_with(&start) && lines[0].contains("q32"),
        "{lines:?}"
    );
    assert_eq!(
        lines[1..],
        ["ptxas fatal   : Ptx assembly aborted due to errors"]
    );
    assert!(!std::path::Path::new(&output).exists());
}

#[test]
fn kernels_that_cannot_run_are_errors_unless_others_can() {
    let folder = Folder::new("refused");
    let header = ".version 9.0\n.target sm_90a\n.address_size 64\n";
    let alone = folder.file("alone.ptx", &format!("{header}{CANNOT_RUN}"));
    let rest = PTX.lines().skip(3).collect::<Vec<_>>().join("\n");
    let both = folder.file("both.ptx", &format!("{header}{CANNOT_RUN}{rest}\n"));
    let output = folder.path("out.cubin");
    let done = ptxas(&["-arch=sm_90a", &alone, "-o", &output]);
    assert_eq!(done.status, 255);
    let start = format!("ptxas {alone}, line 7; error   : ");
    assert!(done.stderr.starts_with(&start), "{}", done.stderr);
    assert!(done.stderr.contains("kernel 'later'"));

    let done = ptxas(&["-arch=sm_90a", &both, "-o", &output]);
    assert_eq!(done.status, 0, "{}", done.stderr);
    let start = format!("ptxas {both}, line 7; warning : ");
    assert!(done.stderr.starts_with(&start), "{}", done.stderr);
    assert_eq!(texts(&output).len(), 1);
    assert_eq!(
        ptxas(&["-w", "-arch=sm_90a", &both, "-o", &output]),
        Outcome::default()
    );
    assert_eq!(
        ptxas(&["-Werror", "-arch=sm_90a", &both, "-o", &output]).status,
        255
    );
}

#[test]
fn targets_must_fit_the_architecture() {
    let folder = Folder::new("targets");
    let output = folder.path("out.cubin");
    let module = |target: &str| {
        folder.file(
            &format!("{target}.ptx"),
            &PTX.replace("sm_80", target).replace("8.0", "9.0"),
        )
    };
    let status = |arch: &str, target: &str| {
        ptxas(&[&format!("-arch={arch}"), &module(target), "-o", &output]).status
    };
    for (arch, target, expected) in [
        ("sm_80", "sm_80", 0),
        ("sm_89", "sm_80", 0),
        ("sm_75", "sm_80", 255),
        ("sm_90", "sm_90a", 255),
        ("sm_90a", "sm_90a", 0),
        ("sm_90a", "sm_90", 0),
        ("sm_100a", "sm_90a", 255),
        ("sm_103a", "sm_100f", 0),
        ("sm_120a", "sm_100f", 255),
        ("sm_12", "sm_80", 255),
        ("gfx90a", "sm_80", 255),
    ] {
        assert_eq!(status(arch, target), expected, "{target} for {arch}");
    }
    // A virtual architecture is for parsing only.
    let parsed = folder.path("parsed.cubin");
    assert_eq!(
        ptxas(&["-arch=compute_80", &module("sm_80"), "-o", &parsed]).status,
        0
    );
    assert!(!std::path::Path::new(&parsed).exists());
}

#[test]
fn external_functions_need_relocatable_output() {
    let folder = Folder::new("extern");
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.extern .func other();\n\
                .visible .entry k() { call other; ret; }\n";
    let input = folder.file("a.ptx", text);
    let output = folder.path("a.o");
    let done = ptxas(&["-arch=sm_80", &input, "-o", &output]);
    assert_eq!(done.status, 255);
    assert!(
        done.stderr
            .contains("ptxas fatal   : Unresolved extern function 'other'")
    );
    let done = ptxas(&["-arch=sm_80", "-c", &input, "-o", &output]);
    assert_eq!(done, Outcome::default());
    assert_eq!(texts(&output), [text]);
    // A declaration alone needs no definition.
    let unused = folder.file("b.ptx", &text.replace("call other;", ""));
    assert_eq!(
        ptxas(&["-arch=sm_80", &unused, "-o", &output]),
        Outcome::default()
    );
}

#[test]
fn registers_are_limited() {
    let folder = Folder::new("registers");
    let (input, output) = (folder.file("a.ptx", PTX), folder.path("a.cubin"));
    let done = ptxas(&["-arch=sm_80", "-maxrregcount=40", &input, "-o", &output]);
    assert_eq!(done.status, 0);
    let bytes = std::fs::read(&output).unwrap();
    let Ok(Content::Ptx(units)) = code::content(CodeSource::Slice(&bytes), "test") else {
        panic!("not a cubin with PTX")
    };
    assert_eq!(units[0].max_registers, Some(40));
}

#[test]
fn invalid_command_lines_are_refused() {
    let folder = Folder::new("lines");
    let input = folder.file("a.ptx", PTX);
    let output = folder.path("out");
    for (words, message) in [
        (&["--foo", &input] as &[&str], "Unknown option '-foo'"),
        (
            &["-arch=sm_80", &input, "-o"],
            "argument expected after '-o'",
        ),
        (&["-v=3", &input], "no argument expected after '-v'"),
        (&["--fmad=maybe", &input], "'maybe': expected true or false"),
        (&["-O", "x", &input], "'x': expected a number"),
        (
            &["-maxrregcount=x", &input],
            "Invalid value 'x' for option 'maxrregcount'",
        ),
        (
            &["-arch=sm_80", "/no/such.ptx", "-o", &output],
            "Input file '/no/such.ptx' could not be opened",
        ),
        (
            &["-m", "32", &input],
            "Value '32' is not defined for option 'machine'",
        ),
        (
            &["-optf", "/no/such"],
            "Option file '/no/such' could not be opened",
        ),
        (
            &["-arch=sm_80", &input, "-o", "/no/such/folder/a"],
            "could not be written",
        ),
    ] {
        let done = ptxas(words);
        assert_eq!(done.status, 255, "{words:?}");
        assert!(
            done.stderr.starts_with("ptxas fatal   : ") && done.stderr.contains(message),
            "{words:?}: {}",
            done.stderr
        );
    }
    // Undocumented options, which only concern machine code.
    let done = ptxas(&[
        "--future=1",
        "-arch=sm_80",
        "-O3",
        "--opt-level",
        "1",
        &input,
        "-o",
        &output,
    ]);
    assert_eq!(done.status, 0);
    assert_eq!(
        done.stderr,
        "ptxas warning : Unknown option '-future' has no effect\n"
    );
}

#[test]
fn options_and_modules_come_from_files_and_strings() {
    let folder = Folder::new("sources");
    let output = folder.path("a b.cubin");
    let options = folder.file("options", &format!("-arch=sm_80\n -o '{output}'"));
    assert_eq!(
        ptxas(&["--options-file", &options, "-ias", PTX]),
        Outcome::default()
    );
    assert_eq!(texts(&output), [PTX]);
    let endless = folder.file("endless", &format!("-optf={}", folder.path("endless")));
    assert!(
        ptxas(&["-optf", &endless])
            .stderr
            .contains("nested too deeply")
    );
    // Not text.
    let done = ptxas(&["-arch=sm_80", &output, "-o", &output]);
    assert!(done.status == 255 && done.stderr.contains("is not PTX"));
}

#[test]
fn version_has_the_release_that_programs_search_for() {
    for word in ["--version", "-V"] {
        let done = ptxas(&[word]);
        assert!(done.status == 0 && done.stdout.contains("release 13.5, V13.5.0\n"));
        assert!(done.stdout.contains("Cupyrite"));
    }
    for words in [&["--help"] as &[&str], &["-v"]] {
        let done = ptxas(words);
        assert!(done.status == 0 && done.stdout.contains("--gpu-name"));
    }
}
