//! Drivers, GPUs, NVRTC and settings.

use super::super::report::Severity;
use super::*;

const GPU: &str = "/sys/bus/pci/devices/0000:01:00.0";

fn with_gpu(case: Case) -> Case {
    case.file(&format!("{GPU}/vendor"), b"0x10de\n")
        .file(&format!("{GPU}/class"), b"0x030200\n")
        // Ignored: the card's audio function and another vendor's display controller.
        .file("/sys/bus/pci/devices/0000:01:00.1/vendor", b"0x10de\n")
        .file("/sys/bus/pci/devices/0000:01:00.1/class", b"0x040300\n")
        .file("/sys/bus/pci/devices/0000:02:00.0/vendor", b"0x8086\n")
        .file("/sys/bus/pci/devices/0000:02:00.0/class", b"0x030000\n")
}

#[test]
fn a_healthy_machine_has_no_problem() {
    let report = healthy().report();
    assert!(report.ok);
    assert_eq!(codes(&report), [""; 0]);
    assert_eq!(report.proof.nvrtc, Some(V13_5));
    assert_eq!(report.proof.stopped_at, None);
    assert!(report.interpreter.is_none() && report.modules.is_empty());
}

#[test]
fn gpus_are_distinguished_from_audio_functions() {
    let report = with_gpu(healthy()).file("/dev/nvidia0", b"").report();
    assert_eq!(report.platform.pci_gpus, ["0000:01:00.0"]);
    assert_eq!(report.platform.device_files, ["/dev/nvidia0"]);
}

#[test]
fn the_kernel_module_version_is_parsed() {
    let text =
        b"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n\
                 GCC version:  gcc version 13.3.0 (Ubuntu)\n";
    let report = healthy().file("/proc/driver/nvidia/version", text).report();
    assert_eq!(report.driver.kernel_module.as_deref(), Some("580.65.06"));
    let garbage = healthy().file("/proc/driver/nvidia/version", b"\xff\xfe NVRM none");
    assert_eq!(garbage.report().driver.kernel_module, None);
}

#[test]
fn a_gpu_without_a_driver_is_a_warning_and_the_cpu_device_still_works() {
    let report = with_gpu(on_cpu()).report();
    assert_eq!(codes(&report), ["gpu-without-driver"]);
    assert!(report.ok);
    let why = &report.problems[0].why;
    assert!(why.contains("0000:01:00.0"), "{why}");
    // No warning if the CPU device was requested.
    let asked = with_gpu(on_cpu()).set("CUPYRITE_DEVICE", "CPU").report();
    assert_eq!(codes(&asked), [""; 0]);
}

#[test]
fn containers_and_wsl_get_the_fix_that_works_there() {
    let container = with_gpu(on_cpu()).file("/.dockerenv", b"").report();
    let fix = commands(&container, "gpu-without-driver");
    assert_eq!(fix[0], "docker run --gpus all ...");
    let wsl = on_cpu()
        .file(
            "/proc/version",
            b"Linux version 5.15.0-microsoft-standard-WSL2",
        )
        .report();
    assert!(wsl.platform.wsl);
    let problem = wsl.problem("gpu-without-driver").expect("it is told");
    assert_eq!(problem.severity, Severity::Note);
    assert!(problem.fix[0].words.contains("Windows"));
}

#[test]
fn gpu_asked_for_without_a_driver() {
    let report = on_cpu()
        .set("CUPYRITE_DEVICE", "gpu")
        .fails(
            Stage::Choose,
            FailureKind::NotFound,
            None,
            "libcuda.so.1 not found",
        )
        .report();
    assert!(!report.ok);
    assert!(commands(&report, "driver-missing").contains(&"export CUPYRITE_DEVICE=cpu".to_owned()));
    assert_eq!(
        report.proof.stopped_at.as_deref(),
        Some("choose the device")
    );
}

#[test]
fn statuses_of_the_initialisation_are_explained() {
    let fails = |case: Case, status: u32| {
        case.fails(
            Stage::Init,
            FailureKind::Driver,
            Some(status),
            "cuInit failed",
        )
        .report()
    };
    // CUDA_ERROR_NO_DEVICE, hidden by a variable.
    let hidden = fails(healthy().set("CUDA_VISIBLE_DEVICES", ""), 100);
    assert_eq!(
        commands(&hidden, "no-device")[0],
        "unset CUDA_VISIBLE_DEVICES"
    );
    // The same in a container.
    let container = fails(healthy().file("/.dockerenv", b""), 100);
    assert_eq!(
        commands(&container, "no-device")[0],
        "docker run --gpus all ..."
    );
    // CUDA_ERROR_SYSTEM_DRIVER_MISMATCH names both versions.
    let mismatch = fails(
        healthy().file(
            "/proc/driver/nvidia/version",
            b"NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.1.2  x\n",
        ),
        803,
    );
    let why = &mismatch.problem("driver-mismatch").expect("told").why;
    assert!(why.contains("570.1.2"), "{why}");
    // CUDA_ERROR_STUB_LIBRARY.
    assert!(
        fails(healthy(), 34).problem("driver-stub").unwrap().fix[0]
            .words
            .contains("LD_LIBRARY_PATH")
    );
    // CUDA_ERROR_SYSTEM_NOT_READY.
    assert!(commands(&fails(healthy(), 802), "driver-fails")[0].contains("nvidia-fabricmanager"));
    // Every other status, including future ones, has an explain_status and a fix.
    for status in [1, 2, 3, 46, 101, 304, 804, 805, 999, 12345, u32::MAX] {
        let report = fails(healthy(), status);
        assert!(!report.ok);
        let problem = &report.problems[0];
        assert!(!problem.why.is_empty() && problem.fix.len() > 1, "{status}");
    }
}

#[test]
fn settings_of_the_cpu_device_are_reported() {
    let report = on_cpu()
        .set("CUPYRITE_CPU_DEVICES", "none")
        .fails(
            Stage::Init,
            FailureKind::Driver,
            Some(100),
            "cuInit failed: CUDA_ERROR_NO_DEVICE",
        )
        .report();
    assert_eq!(codes(&report), ["cpu-device-fails", "variable-value"]);
}

#[test]
fn a_missing_nvrtc_is_installed_for_the_major_of_the_driver() {
    let missing = |case: Case| {
        case.fails(
            Stage::LoadNvrtc,
            FailureKind::NotFound,
            None,
            "libnvrtc.so.13 not found; searched:\n  wheels: /venv: does not exist\nTo fix it:\n  x",
        )
    };
    let mut case = missing(healthy());
    assert_eq!(
        commands(&case.report(), "nvrtc-missing")[0],
        "pip install nvidia-cuda-nvrtc"
    );
    case.outcome.probe.driver_version = Some(Version {
        major: 12,
        minor: 4,
    });
    let report = case.report();
    assert_eq!(
        commands(&report, "nvrtc-missing")[0],
        "pip install nvidia-cuda-nvrtc-cu12"
    );
    let why = &report.problem("nvrtc-missing").unwrap().why;
    assert!(why.contains("/venv") && !why.contains("To fix it"), "{why}");
    let asked = missing(on_cpu()).set("CUPYRITE_CUDA_MAJOR", "12").report();
    assert!(commands(&asked, "nvrtc-missing")[0].ends_with("-cu12"));
    // The examined interpreter, not the first pip on PATH.
    let mut python_case = missing(healthy());
    python_case.facts.interpreter = python();
    assert_eq!(
        commands(&python_case.report(), "nvrtc-missing")[0],
        "/venv/bin/python -m pip install nvidia-cuda-nvrtc"
    );
    let active = python_case.set("VIRTUAL_ENV", "/venv").report();
    assert_eq!(
        commands(&active, "nvrtc-missing")[0],
        "python -m pip install nvidia-cuda-nvrtc"
    );
}

#[test]
fn a_driver_older_than_nvrtc() {
    // Machine code loads, PTX does not: another minor version.
    let refused = "cuModuleLoadDataEx failed: CUDA_ERROR_UNSUPPORTED_PTX_VERSION";
    let mut case = healthy().fails(Stage::Ptx, FailureKind::Driver, Some(222), refused);
    case.outcome.probe.driver_version = Some(Version {
        major: 13,
        minor: 0,
    });
    let report = case.report();
    assert!(report.ok, "machine code runs");
    assert_eq!(codes(&report), ["driver-older"]);
    assert_eq!(
        commands(&report, "driver-older"),
        ["pip install 'nvidia-cuda-nvrtc==13.0.*'"]
    );
    // Another major version, and nothing loads.
    let mut case = healthy().fails(Stage::Load, FailureKind::Driver, Some(209), refused);
    case.outcome.probe.driver_version = Some(Version {
        major: 12,
        minor: 8,
    });
    let report = case.report();
    assert!(!report.ok);
    assert_eq!(codes(&report), ["driver-older"]);
    let problem = &report.problems[0];
    assert_eq!(problem.severity, Severity::Error);
    assert!(problem.what.contains("12.8") && problem.what.contains("13.5"));
    let fix = commands(&report, "driver-older");
    assert_eq!(fix[0], "pip install 'nvidia-cuda-nvrtc-cu12<=12.8.9999'");
    assert_eq!(fix[1], "export CUPYRITE_CUDA_MAJOR=12");
    // No failure yet, but compatibility is not guaranteed.
    let mut case = healthy();
    case.outcome.probe.driver_version = Some(Version {
        major: 12,
        minor: 8,
    });
    let report = case.report();
    assert_eq!(codes(&report), ["driver-older"]);
    assert!(report.ok);
    // The version is not the cause.
    let case = healthy().fails(Stage::Load, FailureKind::Driver, Some(2), "out of memory");
    assert_eq!(codes(&case.report()), ["load-fails"]);
}

#[test]
fn architectures_that_nvrtc_does_not_know() {
    let words = "nvrtcCompileProgram failed: NVRTC_ERROR_INVALID_OPTION\n\
                 nvrtc: error: invalid value for --gpu-architecture (-arch)";
    let mut case = healthy().fails(Stage::Compile, FailureKind::Nvrtc, None, words);
    case.outcome.probe.devices[0].compute_capability = Version { major: 6, minor: 1 };
    assert_eq!(
        commands(&case.report(), "nvrtc-architecture"),
        ["pip install --upgrade nvidia-cuda-nvrtc-cu12"]
    );
    case.outcome.probe.devices[0].compute_capability = Version {
        major: 14,
        minor: 0,
    };
    assert_eq!(
        commands(&case.report(), "nvrtc-architecture"),
        ["pip install --upgrade nvidia-cuda-nvrtc"]
    );
}

#[test]
fn other_failures_have_their_own_problem() {
    let cases = [
        (Stage::Choose, FailureKind::Broken, "driver-broken"),
        (Stage::Choose, FailureKind::Other, "driver-fails"),
        (Stage::Init, FailureKind::Symbol, "driver-too-old"),
        (Stage::LoadNvrtc, FailureKind::Broken, "nvrtc-broken"),
        (Stage::LoadNvrtc, FailureKind::Setting, "nvrtc-setting"),
        (Stage::LoadNvrtc, FailureKind::Nvrtc, "nvrtc-fails"),
        (Stage::Compile, FailureKind::Nvrtc, "compile-fails"),
        (Stage::Launch, FailureKind::Driver, "launch-fails"),
        (Stage::Launch, FailureKind::Wrong, "result-wrong"),
    ];
    for (stage, kind, code) in cases {
        let report = healthy().fails(stage, kind, None, "words\nmore").report();
        assert_eq!(codes(&report), [code]);
        assert!(!report.ok);
        assert!(!report.problems[0].fix.is_empty(), "{code}");
    }
    let words = "nvrtcCompileProgram failed: NVRTC_ERROR_BUILTIN_OPERATION_FAILURE";
    let case = healthy().fails(Stage::Compile, FailureKind::Nvrtc, None, words);
    assert_eq!(codes(&case.report()), ["nvrtc-incomplete"]);
    let words = "CUPYRITE_DEVICE='gpus': expected auto, gpu or cpu";
    let case = healthy().set("CUPYRITE_DEVICE", "gpus").fails(
        Stage::Choose,
        FailureKind::Setting,
        None,
        words,
    );
    assert_eq!(codes(&case.report()), ["device-setting"]);
    let case = healthy().set("CUPYRITE_DEVISE", "cpu").fails(
        Stage::Choose,
        FailureKind::Setting,
        None,
        "CUPYRITE_DEVISE: Cupyrite has no such environment variable",
    );
    let report = case.report();
    assert_eq!(codes(&report), ["variable-unknown"]);
    assert!(!report.ok);
}

#[test]
fn hangs_and_crashes_name_the_step() {
    let report = healthy().ends(Stage::Init, End::Hung).report();
    assert_eq!(codes(&report), ["hang"]);
    assert_eq!(
        report.proof.hung_at.as_deref(),
        Some("initialise the driver")
    );
    assert!(report.problems[0].what.contains("60 s"));
    let crashed = |how: &str| End::Crashed {
        how: how.to_owned(),
        said: "double free".to_owned(),
    };
    let report = healthy()
        .set("LD_PRELOAD", "/x.so")
        .ends(Stage::LoadNvrtc, crashed("SIGBUS"))
        .report();
    assert_eq!(codes(&report), ["crash"]);
    let problem = &report.problems[0];
    assert!(problem.what.contains("SIGBUS") && problem.why.contains("double free"));
    assert!(commands(&report, "crash")[0].contains("--force-reinstall"));
    assert!(commands(&report, "crash").contains(&"unset LD_PRELOAD".to_owned()));
    let report = healthy().ends(Stage::Init, crashed("SIGINT")).report();
    assert_eq!(codes(&report), ["interrupted"]);
}

#[test]
fn invalid_variables_are_reported() {
    let case = healthy()
        .file("/cuda/bin/nvcc", b"x")
        .file("/lib/libnvrtc.so.13", b"x");
    let told = |name: &str, value: &str| {
        let case = Case {
            facts: case.facts.clone(),
            files: case.files.clone(),
            variables: BTreeMap::new(),
            outcome: case.outcome.clone(),
        };
        codes(&case.set(name, value).report())
    };
    assert_eq!(told("CUDA_PATH", "/cuda"), [""; 0]);
    assert_eq!(told("CUDA_PATH", ""), [""; 0]);
    assert_eq!(told("CUDA_PATH", "/nowhere"), ["variable-path"]);
    assert_eq!(told("CUDA_PATH", "/cuda/bin/nvcc"), ["variable-path"]);
    assert_eq!(told("CUDA_HOME", "cuda"), ["variable-relative"]);
    assert_eq!(told("CUDNN_PATH", "./x"), ["variable-relative"]);
    assert_eq!(told("CONDA_PREFIX", "/gone"), ["variable-path"]);
    assert_eq!(told("CUPYRITE_LIB_NVRTC", "/lib/libnvrtc.so.13"), [""; 0]);
    assert_eq!(told("CUPYRITE_LIB_NVRTC", "/lib/gone"), ["variable-path"]);
    assert_eq!(told("CUPYRITE_LIB_NVRTX", "/lib"), ["variable-unknown"]);
    assert_eq!(told("CUPYRITE_DEVISE", "cpu"), ["variable-unknown"]);
    assert_eq!(told("CUPYRITE_CUDA_MAJOR", "13.0"), ["variable-value"]);
    assert_eq!(told("CUPYRITE_CPU_THREADS", "0"), ["variable-value"]);
    assert_eq!(told("CUPYRITE_RUNTIME", "own"), [""; 0]);
    assert_eq!(told("CUPYRITE_RUNTIME", " Auto"), [""; 0]);
    assert_eq!(told("CUPYRITE_RUNTIME", "libcudart"), ["variable-value"]);
    assert_eq!(told("CUPYRITE_LINKER", "lld"), ["variable-value"]);
    let per_thread = "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM";
    assert_eq!(told(per_thread, "1"), [""; 0]);
    assert_eq!(told(per_thread, ""), ["variable-value"]);
    assert_eq!(told(per_thread, "yes"), ["variable-value"]);
    assert_eq!(told("HOME", "relative"), [""; 0]);

    let differ = healthy()
        .file("/cuda/x", b"x")
        .file("/other/x", b"x")
        .set("CUDA_PATH", "/cuda")
        .set("CUDA_HOME", "/other");
    assert_eq!(codes(&differ.report()), ["toolkits-differ"]);
    let mut same = healthy().file("/cuda/x", b"x");
    same.files = same.files.link("/other", "/cuda");
    let same = same.set("CUDA_PATH", "/cuda").set("CUDA_HOME", "/other");
    assert_eq!(codes(&same.report()), [""; 0]);
}

#[test]
fn the_closest_name_is_offered() {
    let report = healthy().set("CUPYRITE_DEVCE", "cpu").report();
    assert!(report.problems[0].why.contains("CUPYRITE_DEVICE"));
}

/// The documentation and the doctor list the same variables of the project.
#[test]
fn documented_variables_are_known() {
    let page = include_str!("../../../../docs/environment.md");
    for word in page.split(|c: char| !(c.is_ascii_uppercase() || c == '_')) {
        if !word.starts_with("CUPYRITE_") || word.ends_with('_') {
            continue;
        }
        let report = healthy().set(word, "1").report();
        assert!(report.problem("variable-unknown").is_none(), "{word}");
    }
}

#[test]
fn headers_of_another_version() {
    let mut case = healthy();
    let header = b"/* */\n#define CUDART_VERSION  12080\n";
    let root = "/cuda/include";
    case = case
        .file(&format!("{root}/cuda_runtime.h"), b"x")
        .file(&format!("{root}/cuda_runtime_api.h"), header);
    let environment = Environment {
        cuda_path: Some("/cuda".into()),
        ..Environment::default()
    };
    let finder = Finder {
        platform: Platform::CURRENT,
        environment: &environment,
        files: &case.files,
        loader: &NoLoader,
    };
    let report = judge(&case.facts, &finder, &case.variables, case.outcome.clone());
    let headers = report.headers.iter().find(|item| item.name == "cudart");
    assert_eq!(headers.unwrap().version.as_deref(), Some("12.8"));
    assert_eq!(
        commands(&report, "headers-differ"),
        ["pip install 'nvidia-cuda-runtime==13.5.*'"]
    );
}
