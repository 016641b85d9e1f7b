//! Programs and their compilers. Tests whose compiler (NVRTC or libNVVM) is not installed print a message and pass.

use cupyrite::{
    CodeKind, CompilerBackend, Error, ObjectCode, PchStatus, Program, ProgramOptions, Result,
};

const KERNEL: &str = r#"extern "C" __global__ void k(int *a) { *a = 1; }"#;
const TEMPLATE: &str = "template <typename T> __global__ void t(T *a) { *a = 1; }";
const NVVM: &str = r#"
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
define void @NAME() {
entry:
  ret void
}
!nvvm.annotations = !{!0}
!0 = !{void ()* @NAME, !"kernel", i32 1}
!nvvmir.version = !{!1}
!1 = !{i32 2, i32 0, i32 3, i32 1}
"#;

fn options(arch: &str) -> ProgramOptions {
    ProgramOptions {
        arch: Some(arch.into()),
        ..Default::default()
    }
}

/// The result, or `None` where the compiler is not installed.
fn installed<T>(result: Result<T>) -> Option<Result<T>> {
    match result {
        Err(Error::Load(e)) => {
            eprintln!("skipped: {e}");
            None
        }
        other => Some(other),
    }
}

fn bytes(code: &ObjectCode) -> Vec<u8> {
    code.bytes().unwrap().into_owned()
}

fn text(code: &ObjectCode) -> String {
    String::from_utf8(bytes(code)).unwrap()
}

#[test]
fn options_follow_the_order_of_the_fields() {
    let all = ProgramOptions {
        debug: Some(true),
        lineinfo: Some(false),
        relocatable_device_code: Some(false),
        device_code_optimize: Some(true),
        max_register_count: Some(32),
        define_macro: vec!["A".into(), "B=2".into()],
        include_path: vec!["x".into(), "y".into()],
        diag_suppress: vec![177, 20],
        ftz: Some(true),
        ..options("sm_80")
    };
    let spelled = all.for_nvrtc().unwrap();
    let right = [
        "-arch=sm_80",
        "--relocatable-device-code=false",
        "--device-debug",
        "--dopt=on",
        "--maxrregcount=32",
        "--ftz=true",
        "--define-macro=A",
        "--define-macro=B=2",
        "--include-path=x",
        "--include-path=y",
        "--diag-suppress=177",
        "--diag-suppress=20",
    ];
    assert_eq!(spelled, right);
    let error = all.for_nvvm(CodeKind::Ptx).unwrap_err();
    assert!(matches!(error, Error::Unsupported { .. }));
    let text = error.to_string();
    assert!(
        text.contains("relocatable_device_code") && !text.contains("debug"),
        "{text}"
    );
    let some = ProgramOptions {
        debug: Some(true),
        device_code_optimize: Some(false),
        prec_div: Some(false),
        ..options("sm_80")
    };
    let right = [
        "-arch=compute_80",
        "-g",
        "-opt=0",
        "-prec-div=0",
        "-gen-lto",
    ];
    assert_eq!(some.for_nvvm(CodeKind::LtoIr).unwrap(), right);
    let error = ProgramOptions::default().for_nvrtc().unwrap_err();
    assert!(error.to_string().contains("`arch`"));
}

#[test]
fn one_program_compiles_repeatedly() {
    let program = Program::new(TEMPLATE).with_options(options("sm_80"));
    let Some(compiler) = installed(program.clone().compiler()) else {
        return;
    };
    let compiler = compiler.unwrap();
    assert_eq!(compiler.backend(), CompilerBackend::Nvrtc);
    let handle = compiler.handle();
    for expression in ["t<float>", "t<double>", "t<float>"] {
        for kind in [CodeKind::Ptx, CodeKind::Cubin, CodeKind::LtoIr] {
            let code = compiler.compile(kind, &[expression.to_owned()]).unwrap();
            assert_eq!(code.kind(), kind);
            assert_eq!(code.name(), "default_program");
            assert!(!bytes(&code).is_empty());
            let name = code.lowered_name(expression).unwrap();
            assert!(name.starts_with("_Z1tI"), "{name}");
            assert_eq!(code.lowered_name("t<int>"), None);
        }
    }
    let plain = compiler.compile(CodeKind::Ptx, &[]).unwrap();
    assert!(!text(&plain).contains(".entry") && text(&plain).ends_with('\0'));
    let built = program.build(CodeKind::Ptx).unwrap();
    assert_eq!(text(&built) + "\0", text(&plain));
    assert_eq!((compiler.handle(), compiler.pch_status()), (handle, None));
}

#[test]
fn threads_compile_one_program() {
    let program = Program::new(TEMPLATE).with_options(options("sm_80"));
    let Some(compiler) = installed(program.clone().compiler()) else {
        return;
    };
    let compiler = compiler.unwrap();
    std::thread::scope(|scope| {
        for expression in ["t<int>", "t<float>", "t<char>"] {
            let compiler = &compiler;
            scope.spawn(move || {
                let code = compiler.compile(CodeKind::Ptx, &[expression.to_owned()]);
                let code = code.unwrap();
                assert!(
                    text(&code).contains(code.lowered_name(expression).unwrap()),
                    "{expression}"
                );
            });
        }
    });
}

#[test]
fn unsupported_targets_are_errors() {
    let build = |options, kind| installed(Program::new(KERNEL).with_options(options).build(kind));
    let Some(made) = build(options("sm_80"), CodeKind::LtoIr) else {
        return;
    };
    assert!(!bytes(&made.unwrap()).is_empty());
    let error = build(options("compute_80"), CodeKind::Cubin).unwrap();
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("compute_80") && error.contains("cubin"),
        "{error}"
    );
    let lto = ProgramOptions {
        link_time_optimization: Some(true),
        ..options("sm_80")
    };
    let error = build(lto.clone(), CodeKind::Ptx).unwrap().unwrap_err();
    assert!(error.to_string().contains("link_time_optimization"));
    assert!(build(lto, CodeKind::LtoIr).unwrap().is_ok());
    let syntax = ProgramOptions {
        fdevice_syntax_only: Some(true),
        ..options("sm_80")
    };
    let checked = build(syntax, CodeKind::Ptx).unwrap().unwrap();
    assert!(!text(&checked).contains(".entry"));
    let extra = ProgramOptions {
        extra_sources: vec![("m".into(), b"x".to_vec())],
        ..options("sm_80")
    };
    let error = build(extra, CodeKind::Ptx).unwrap().unwrap_err();
    assert!(error.to_string().contains("extra_sources"));
}

#[test]
fn errors_have_the_name_and_the_log() {
    let program = Program::new("nonsense")
        .with_options(options("sm_80"))
        .named("some.cu");
    let Some(made) = installed(program.build(CodeKind::Ptx)) else {
        return;
    };
    let Err(Error::Nvrtc { call, log, .. }) = made else {
        panic!("compiled")
    };
    assert_eq!(call, "nvrtcCompileProgram");
    assert!(log.contains("some.cu(1)"), "{log}");
    let error = Program::new("a\0b")
        .with_options(options("sm_80"))
        .build(CodeKind::Ptx);
    assert!(error.unwrap_err().to_string().contains("NUL at byte 1"));
    let warned = Program::new("#warning careful\n").with_options(options("sm_80"));
    let log = warned.build(CodeKind::Ptx).unwrap().log().to_owned();
    assert!(log.contains("careful") && !log.contains('\0'), "{log}");
}

#[test]
fn a_precompiled_header_is_created_and_used() {
    let directory = std::env::temp_dir().join(format!("cupyrite-pch-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(
        directory.join("h.h"),
        "__device__ int header() { return 7; }\n",
    )
    .unwrap();
    let header = directory.join("h.pch").to_string_lossy().into_owned();
    let source = "#include <h.h>\nextern \"C\" __global__ void k(int *a) { *a = header(); }";
    let with = |pch: ProgramOptions| {
        let options = ProgramOptions {
            include_path: vec![directory.to_string_lossy().into_owned()],
            ..pch
        };
        let compiler = installed(Program::new(source).with_options(options).compiler())?;
        let compiler = compiler.unwrap();
        assert_eq!(compiler.pch_status(), None);
        let made = compiler.compile(CodeKind::Ptx, &[]);
        Some((made, compiler.pch_status()))
    };
    let create = ProgramOptions {
        create_pch: Some(header.clone()),
        ..options("sm_80")
    };
    if let Some((made, status)) = with(create) {
        made.unwrap();
        assert_eq!(status, Some(PchStatus::Created));
        assert!(std::fs::metadata(&header).unwrap().len() > 0);
        let used = ProgramOptions {
            use_pch: Some(header),
            ..options("sm_80")
        };
        let (made, status) = with(used).unwrap();
        assert!(text(&made.unwrap()).contains(".entry k"));
        assert_eq!(status, None);
        let missing = ProgramOptions {
            create_pch: Some("/nonexistent/directory/h.pch".into()),
            ..options("sm_80")
        };
        let (made, status) = with(missing).unwrap();
        assert!(matches!(made, Err(Error::Nvrtc { .. })) && status.is_none());
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn nvvm_ir_compiles_with_more_modules() {
    let program = Program::from_nvvm(NVVM.replace("NAME", "one")).with_options(ProgramOptions {
        extra_sources: vec![("second".into(), NVVM.replace("NAME", "two").into())],
        ..options("sm_80")
    });
    let Some(compiler) = installed(program.clone().compiler()) else {
        return;
    };
    let compiler = compiler.unwrap();
    assert_eq!(compiler.backend(), CompilerBackend::Nvvm);
    assert_ne!(compiler.handle(), 0);
    for _ in 0..2 {
        let code = compiler.compile(CodeKind::Ptx, &[]).unwrap();
        assert!(text(&code).contains(".entry one") && text(&code).contains(".entry two"));
        assert!(!bytes(&compiler.compile(CodeKind::LtoIr, &[]).unwrap()).is_empty());
    }
    let error = compiler.compile(CodeKind::Cubin, &[]).unwrap_err();
    assert!(error.to_string().contains("cubin"));
    let bad = Program::from_nvvm("nonsense").with_options(options("sm_80"));
    let Err(Error::Nvvm { log, .. }) = bad.named("some.ll").build(CodeKind::Ptx) else {
        panic!("compiled")
    };
    assert!(log.contains("some.ll"), "{log}");
}
