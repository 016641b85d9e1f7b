//! Error log messages.

use std::ffi::{c_char, c_void};

use parking_lot::Mutex;

use super::super::Code;
use super::{Session, cu, ok};

/// The calling thread's messages since `iterator`.
fn since(iterator: &mut u32) -> String {
    let mut buffer = vec![0u8; 25600];
    let mut size = buffer.len() as u64;
    ok!("cuLogsDumpToMemory", iterator, &mut buffer[0], &mut size, 0);
    assert_eq!(buffer[size as usize], 0);
    // SAFETY: `gettid` takes no arguments and cannot fail.
    let mine = format!("[{}]", unsafe { libc::gettid() });
    let text = String::from_utf8(buffer[..size as usize].to_vec()).unwrap();
    text.lines()
        .filter(|l| l.contains(&mine))
        .fold(String::new(), |all, l| all + l + "\n")
}

fn now() -> u32 {
    let mut iterator = 0u32;
    ok!("cuLogsCurrent", &mut iterator, 0);
    iterator
}

#[test]
fn refused_launches_name_the_limit() {
    let _s = Session::new();
    let (mut m, mut f) = (0u64, 0u64);
    let text = c".version 8.0\n.target sm_89\n.address_size 64\n.visible .entry k(.param .u32 n) .maxntid 64 { ret; }";
    ok!("cuModuleLoadData", &mut m, text);
    ok!("cuModuleGetFunction", &mut f, m, c"k");
    let n = 1u32;
    let params = [&raw const n as u64];
    let mut at = now();
    let mut refused = |grid: u32, block: u32, shared: u32, params: u64, says: &[&str]| {
        assert_ne!(
            cu!(
                "cuLaunchKernel",
                f,
                grid,
                1,
                1,
                block,
                1,
                1,
                shared,
                0u64,
                params,
                0u64
            ),
            0
        );
        let log = since(&mut at);
        for word in says
            .iter()
            .chain(&["cuLaunchKernel returned CUDA_ERROR_INVALID_VALUE (1)"])
        {
            assert!(log.contains(word), "{word}: {log}");
        }
        assert_eq!(since(&mut at), "", "the iterator moves on");
    };
    let params = params.as_ptr() as u64;
    refused(0, 32, 0, params, &["'k'", "the grid is 0 x 1 x 1"]);
    refused(
        1,
        65,
        0,
        params,
        &["65 threads", "launch bounds allow at most 64"],
    );
    refused(1, 32, 60_000, params, &["60000 bytes", "49152"]);
    refused(1, 32, 0, 0, &["1 parameters"]);
    refused(1, 32, 0, 8, &["kernelParams"]);
}

#[test]
fn success_and_query_results_log_nothing() {
    let s = Session::new();
    let mut at = now();
    let stream = s.stream(0);
    super::busy(stream, 50);
    assert_eq!(cu!("cuStreamQuery", stream), super::NOT_READY);
    ok!("cuStreamSynchronize", stream);
    assert_eq!(since(&mut at), "");
    assert_eq!(
        cu!("cuStreamSynchronize", 0x1234u64),
        Code::INVALID_HANDLE.0
    );
    let log = since(&mut at);
    assert!(log.contains("0x1234") && log.contains("stream"), "{log}");
}

static HEARD: Mutex<Vec<(u64, u32, String)>> = Mutex::new(Vec::new());

unsafe extern "C" fn hear(data: *mut c_void, level: u32, message: *mut c_char, length: usize) {
    // SAFETY: the driver passes a NUL-terminated string.
    let text = unsafe { std::ffi::CStr::from_ptr(message) }
        .to_str()
        .unwrap()
        .to_owned();
    assert_eq!(text.len(), length);
    // Errors of the callback itself are not delivered to callbacks.
    assert_ne!(cu!("cuCtxSynchronize_v2", 77u64), 0);
    HEARD.lock().push((data as u64, level, text));
}

#[test]
fn callbacks_receive_messages() {
    let _s = Session::new();
    let mut handle = 0u64;
    ok!(
        "cuLogsRegisterCallback",
        hear as *const () as u64,
        42u64,
        &mut handle
    );
    assert_eq!(cu!("cuEventQuery", 0xABCDEFu64), Code::INVALID_HANDLE.0);
    ok!("cuLogsUnregisterCallback", handle);
    assert_eq!(cu!("cuEventQuery", 0xABCDEEu64), Code::INVALID_HANDLE.0);
    let heard = HEARD.lock();
    let of_mine = |what: &str| {
        heard
            .iter()
            .filter(|(data, level, text)| *data == 42 && *level == 0 && text.contains(what))
            .count()
    };
    assert_eq!(of_mine("0xabcdef"), 1);
    assert_eq!(of_mine("0xabcdee"), 0);
    assert_eq!(
        cu!("cuLogsUnregisterCallback", handle),
        Code::INVALID_VALUE.0
    );
    assert_eq!(
        cu!("cuLogsRegisterCallback", 0u64, 0u64, 0u64),
        Code::INVALID_VALUE.0
    );
    assert_eq!(
        cu!("cuLogsRegisterCallback", &handle, 0u64, 0u64),
        Code::INVALID_VALUE.0
    );
}

#[test]
fn dumps() {
    let _s = Session::new();
    let at = now();
    assert_eq!(cu!("cuEventQuery", 0x5151u64), Code::INVALID_HANDLE.0);
    let path = std::env::temp_dir().join(format!("cupyrite-logs-{}", std::process::id()));
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    let mut iterator = at;
    ok!("cuLogsDumpToFile", &mut iterator, name.as_c_str(), 0);
    assert!(std::fs::read_to_string(&path).unwrap().contains("0x5151"));
    assert_ne!(iterator, at);
    std::fs::remove_file(&path).unwrap();
    let (mut buffer, mut size) = ([7u8; 16], 16u64);
    let mut iterator = at;
    assert_eq!(
        cu!(
            "cuLogsDumpToMemory",
            &mut iterator,
            &mut buffer,
            &mut size,
            0
        ),
        Code::INVALID_VALUE.0
    );
    assert_eq!((size, iterator), (0, at));
    assert_eq!(
        cu!("cuLogsDumpToMemory", 0u64, 0u64, &mut size, 0),
        Code::INVALID_VALUE.0
    );
    assert_eq!(
        cu!("cuLogsDumpToMemory", 0u64, &mut buffer, 0u64, 0),
        Code::INVALID_VALUE.0
    );
    assert_eq!(
        cu!("cuLogsCurrent", &mut iterator, 1),
        Code::INVALID_VALUE.0
    );
    assert_eq!(cu!("cuLogsCurrent", 0u64, 0), Code::INVALID_VALUE.0);
    assert_eq!(
        cu!("cuLogsDumpToFile", 0u64, c"/nowhere/at/all", 0),
        Code::INVALID_VALUE.0
    );
}
