//! Behaviour that needs a process of its own: output, exit while kernels run, environment variables.
//!
//! Each test runs this test program again with one of the `child` tests selected. Without the environment variable that
//! names the task, a child test does nothing.

use std::ffi::c_void;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use super::super::{Code, implemented};
use super::kernels::{PTX, function, launch, module};
use super::{NOT_READY, Session, cu, ok};

const TASK: &str = "CUPYRITE_TEST_TASK";

fn child(task: &str, environment: &[(&str, &str)]) -> Output {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "driver::tests::processes::the_child",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(TASK, task)
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

const PRINTING: &str = r#"
.version 8.0
.target sm_89
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 fn, .param .b64 s) .noreturn;
.global .align 1 .b8 format[13] = {118, 97, 108, 117, 101, 32, 37, 100, 32, 37, 103, 10, 0};
.global .align 1 .b8 message[6] = {110, 32, 60, 32, 53, 0};
.visible .entry print(.param .u32 n)
{
    .local .align 8 .b8 args[16];
    .reg .b64 %rd<5>;
    .reg .b32 %r<3>;
    .reg .f64 %fd<2>;
    ld.param.u32 %r1, [n];
    mov.u64 %rd1, args;
    cvta.local.u64 %rd2, %rd1;
    st.local.u32 [args], %r1;
    mov.f64 %fd1, 0d3FF8000000000000;
    st.local.f64 [args+8], %fd1;
    mov.u64 %rd3, format;
    cvta.global.u64 %rd4, %rd3;
    {
    .param .b64 a;
    st.param.b64 [a], %rd4;
    .param .b64 b;
    st.param.b64 [b], %rd2;
    .param .b32 r;
    call.uni (r), vprintf, (a, b);
    ld.param.b32 %r2, [r];
    }
    ret;
}
.visible .entry fails()
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    mov.u64 %rd1, message;
    cvta.global.u64 %rd2, %rd1;
    mov.u32 %r1, 12;
    {
    .param .b64 m;
    st.param.b64 [m], %rd2;
    .param .b64 f;
    st.param.b64 [f], %rd2;
    .param .b32 l;
    st.param.b32 [l], %r1;
    .param .b64 fn;
    st.param.b64 [fn], %rd2;
    .param .b64 s;
    st.param.b64 [s], 1;
    call.uni __assertfail, (m, f, l, fn, s);
    }
    ret;
}
"#;

/// Not a test of its own: the tasks of the child processes.
#[test]
fn the_child() {
    let Ok(task) = std::env::var(TASK) else {
        return;
    };
    match task.as_str() {
        "print" => {
            let s = Session::new();
            let (f, stream) = (function(module(PRINTING), "print"), s.stream(0));
            for n in [1u32, 2] {
                assert_eq!(launch(f, 1, 1, stream, &[std::ptr::from_ref(&n) as u64]), 0);
            }
            // Nothing is written before a synchronisation.
            while cu!("cuStreamQuery", stream) == NOT_READY {}
            println!("before");
            ok!("cuStreamSynchronize", stream);
            println!("after");
        }
        "assert" => {
            let _s = Session::new();
            let f = function(module(PRINTING), "fails");
            assert_eq!(launch(f, 1, 1, 0, &[]), 0);
            assert_eq!(cu!("cuCtxSynchronize"), Code::ASSERT.0);
            assert_eq!(cu!("cuCtxSynchronize"), Code::ASSERT.0);
        }
        "fault" => {
            let _s = Session::new();
            let f = function(module(PTX), "store");
            let wild = 64u64;
            assert_eq!(launch(f, 2, 32, 0, &[std::ptr::from_ref(&wild) as u64]), 0);
            assert_eq!(cu!("cuCtxSynchronize"), Code::ILLEGAL_ADDRESS.0);
        }
        "exit" => {
            let s = Session::new();
            let f = function(module(PTX), "forever");
            assert_eq!(launch(f, 64, 64, s.stream(0), &[]), 0);
            std::thread::sleep(Duration::from_millis(30));
            std::process::exit(7);
        }
        "devices" => {
            ok!("cuInit", 0);
            let (mut n, mut a, mut b) = (0i32, 0i32, 0i32);
            ok!("cuDeviceGetCount", &mut n);
            ok!("cuDeviceComputeCapability", &mut a, &mut b, 2);
            let mut total = 0u64;
            ok!("cuDeviceTotalMem_v2", &mut total, 2);
            println!("{n} {a}.{b} {total}");
            let (mut first, mut second, mut can) = (0u64, 0u64, 0i32);
            ok!("cuCtxCreate_v2", &mut first, 0, 0);
            ok!("cuCtxCreate_v2", &mut second, 0, 2);
            ok!("cuDeviceCanAccessPeer", &mut can, 0, 2);
            assert_eq!(can, 1);
            ok!("cuCtxEnablePeerAccess", first, 0);
            assert_eq!(
                cu!("cuCtxEnablePeerAccess", first, 0),
                Code::PEER_ACCESS_ALREADY_ENABLED.0
            );
        }
        "blocking launch" => {
            let s = Session::new();
            let (f, d, stream) = (function(module(PTX), "store"), s.alloc(4), s.stream(1));
            let status = launch_from_host(stream, f, d);
            assert_eq!(status, Code::NOT_PERMITTED.0);
            let mut value = 1u32;
            ok!("cuMemcpyDtoH_v2", &mut value, d, 4);
            assert_eq!(value, 0, "a refused launch ran");
        }
        "no descriptors" => {
            let _s = Session::new();
            println!("\n{}", control_time_without_descriptors().as_millis());
        }
        "bad setting" => assert_eq!(cu!("cuInit", 0), Code::INVALID_VALUE.0),
        "uninitialised" => {
            for name in implemented() {
                let free = [
                    "cuInit",
                    "cuDriverGetVersion",
                    "cuGetError",
                    "cuGetProcAddress",
                    "cuLogs",
                    "cuCoredumpGetAttributeGlobal",
                    "cuCoredumpSetAttributeGlobal",
                ];
                if !free.iter().any(|f| name.starts_with(f)) {
                    assert_eq!(
                        super::call(name, &[0; 12]),
                        Code::NOT_INITIALIZED.0,
                        "{name}"
                    );
                }
            }
        }
        _ => panic!("no such task"),
    }
}

/// The status of a launch of `f`, whose argument is `d`, that a host function of the stream makes.
fn launch_from_host(stream: u64, f: u64, d: u64) -> u32 {
    unsafe extern "C" fn launches(words: *mut c_void) {
        // SAFETY: the caller passes five words that outlive the stream's work.
        let words = unsafe { &mut *words.cast::<[u64; 5]>() };
        let [context, stream, f, d, _] = *words;
        ok!("cuCtxSetCurrent", context);
        words[4] = launch(f, 1, 1, stream, &[std::ptr::from_ref(&d) as u64]).into();
    }
    ok!("cuMemsetD32_v2", d, 0, 1);
    let mut context = 0u64;
    ok!("cuCtxGetCurrent", &mut context);
    let mut words = [context, stream, f, d, u64::MAX];
    ok!(
        "cuLaunchHostFunc",
        stream,
        launches as *const () as u64,
        &mut words
    );
    ok!("cuCtxSynchronize");
    words[4] as u32
}

/// The processor time of this process during half a second in which another process connects to the checkpoint socket,
/// and no descriptor is free.
fn control_time_without_descriptors() -> Duration {
    use std::io::Read;
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixStream};
    // SAFETY: always succeeds.
    let user = unsafe { libc::geteuid() };
    let name = format!("cupyrite-checkpoint-{user}-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(name).unwrap();
    let processor_time = || {
        // SAFETY: plain data that the call fills in.
        let mut time: libc::timespec = unsafe { std::mem::zeroed() };
        // SAFETY: valid for writes.
        unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    // All but one descriptor are taken; the connection takes the last one.
    // SAFETY: duplicates standard input.
    let duplicate = || unsafe { libc::dup(0) };
    let lowest = duplicate();
    let limit = libc::rlimit {
        rlim_cur: lowest as u64 + 1,
        rlim_max: 4096,
    };
    // SAFETY: closes the duplicate; a valid limit.
    unsafe {
        libc::close(lowest);
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit), 0);
    }
    let mut stream = UnixStream::connect_addr(&address).unwrap();
    assert_eq!(duplicate(), -1);
    let before = processor_time();
    std::thread::sleep(Duration::from_millis(500));
    let used = processor_time() - before;
    // With descriptors, the request is served.
    let more = libc::rlimit {
        rlim_cur: 256,
        ..limit
    };
    // SAFETY: a valid limit.
    let status = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const more) };
    assert_eq!(status, 0);
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(answer[..4], Code::INVALID_VALUE.0.to_ne_bytes());
    used
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn printf_output_is_written_on_synchronisation() {
    let out = child("print", &[]);
    let stdout = text(&out.stdout);
    assert!(out.status.success(), "{stdout}{}", text(&out.stderr));
    assert!(
        stdout.contains("before\nvalue 1 1.5\nvalue 2 1.5\nafter\n"),
        "{stdout}"
    );
}

#[test]
fn faults_and_assertions_are_reported_once() {
    let out = child("assert", &[]);
    let stderr = text(&out.stderr);
    assert!(out.status.success(), "{stderr}");
    assert_eq!(stderr.matches("n < 5").count().min(1), 1, "{stderr}");
    assert_eq!(stderr.matches("Assertion").count(), 1, "{stderr}");
    let out = child("fault", &[]);
    let stderr = text(&out.stderr);
    assert!(out.status.success(), "{stderr}");
    assert!(
        stderr.contains("store") && stderr.contains("0x40"),
        "{stderr}"
    );
}

#[test]
fn processes_may_exit_while_kernels_run() {
    let start = Instant::now();
    let out = child("exit", &[]);
    assert_eq!(out.status.code(), Some(7), "{}", text(&out.stderr));
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn blocking_launches_are_refused_in_host_functions() {
    let out = child("blocking launch", &[("CUDA_LAUNCH_BLOCKING", "1")]);
    assert!(out.status.success(), "{}", text(&out.stderr));
}

#[test]
fn the_checkpoint_socket_waits_for_descriptors() {
    let out = child("no descriptors", &[]);
    let stdout = text(&out.stdout);
    assert!(out.status.success(), "{stdout}{}", text(&out.stderr));
    let used = stdout.lines().find_map(|line| line.parse::<u64>().ok());
    assert!(used.is_some_and(|ms| ms < 200), "{stdout}");
}

#[test]
fn environment_variables_configure_devices() {
    let settings = [
        ("CUPYRITE_CPU_DEVICES", "3"),
        ("CUPYRITE_CPU_COMPUTE_CAPABILITY", "7.5"),
        ("CUPYRITE_CPU_MEMORY", "1048576"),
        ("CUPYRITE_CPU_THREADS", ""),
    ];
    let out = child("devices", &settings);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(
        text(&out.stdout).contains("3 7.5 1048576"),
        "{}",
        text(&out.stdout)
    );
    for (name, value) in [
        ("CUPYRITE_CPU_DEVICES", "0"),
        ("CUPYRITE_CPU_DEVICES", "17"),
        ("CUPYRITE_CPU_DEVICES", "many"),
        ("CUPYRITE_CPU_COMPUTE_CAPABILITY", "9"),
        ("CUPYRITE_CPU_COMPUTE_CAPABILITY", "89.1"),
        ("CUPYRITE_CPU_THREADS", "0"),
        ("CUPYRITE_CPU_THREADS", "x"),
        ("CUPYRITE_CPU_MEMORY", "1 GiB"),
    ] {
        let out = child("bad setting", &[(name, value)]);
        assert!(
            out.status.success()
                && text(&out.stderr).contains(&format!("{name}='{value}': expected ")),
            "{name}={value}: {}",
            text(&out.stderr)
        );
    }
}

#[test]
fn calls_before_cu_init_fail() {
    let out = child("uninitialised", &[]);
    assert!(
        out.status.success(),
        "{}{}",
        text(&out.stdout),
        text(&out.stderr)
    );
}
