//! Pools, buffers and events shared by two processes: the test starts itself as the second one.

use std::os::fd::AsFd;
use std::process::{Command, Stdio};

use cupyrite::sys::driver::CUresult;
use cupyrite::{
    BufferDescriptor, Device, Error, Event, EventOptions, FillPattern, IpcEventHandle,
    MemoryAccess, MemoryPool, PoolKind, PoolOptions,
};

/// Variable with the second process's input: the bytes of the buffer's and the event's descriptors. The pool's file
/// descriptor is its standard input.
const TOLD: &str = "CUPYRITE_TEST_IPC";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn unhex(text: &str) -> [u8; 64] {
    std::array::from_fn(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap())
}

fn second_process(told: &str) {
    let mut parts = told.split(' ');
    let mut bytes = || unhex(parts.next().unwrap());
    let (described, event) = (bytes(), bytes());
    let device = Device::new(0).unwrap();
    let stream = device.create_stream().unwrap();
    let pool = MemoryPool::import(&device, std::io::stdin().as_fd()).unwrap();
    assert!(pool.is_imported() && pool.is_owned());
    let descriptor = BufferDescriptor {
        bytes: described,
        size: 4000,
    };
    let (_entered, context) = device.enter().unwrap();
    let event = Event::open(&context, &IpcEventHandle { bytes: event }, false).unwrap();
    stream.wait(&event).unwrap();
    let buffer = pool.import_buffer(&descriptor, &stream).unwrap();
    let again = pool.import_buffer(&descriptor, &stream).unwrap();
    assert_eq!(buffer.address(), again.address());
    drop(buffer);
    let mut out = vec![0u8; 4000];
    again.read(&mut out, &stream).unwrap();
    assert_eq!(out, [5; 4000]);
    again.fill(FillPattern::U8(6), &stream).unwrap();
    again.close(None).unwrap();
    stream.synchronize().unwrap();
    let larger = BufferDescriptor {
        size: 1 << 40,
        ..descriptor
    };
    let refused = pool.import_buffer(&larger, &stream).unwrap_err();
    assert!(
        matches!(refused, Error::InvalidArgument { .. }),
        "{refused}"
    );
    assert!(pool.allocate(16, &stream).is_err());
    stream.synchronize().unwrap();
}

#[test]
fn a_pool_is_shared_with_another_process() {
    if let Ok(told) = std::env::var(TOLD) {
        return second_process(&told);
    }
    let device = Device::new(0).unwrap();
    let stream = device.create_stream().unwrap();
    let pool = match MemoryPool::new(&device, &PoolOptions::default().shareable(true)) {
        Err(Error::Driver {
            status: CUresult::CUDA_ERROR_NOT_SUPPORTED,
            ..
        }) => return eprintln!("left out: the device's pools cannot be shared"),
        made => made.unwrap(),
    };
    let buffer = pool.allocate(4000, &stream).unwrap();
    buffer.fill(FillPattern::U8(5), &stream).unwrap();
    let options = EventOptions {
        ipc: true,
        ..EventOptions::default()
    };
    let event = stream.record_with(&options).unwrap();
    let told = format!(
        "{} {}",
        hex(&buffer.descriptor().unwrap().bytes),
        hex(&event.ipc_handle().unwrap().bytes)
    );
    let done = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "a_pool_is_shared_with_another_process",
            "--nocapture",
        ])
        .env(TOLD, told)
        .stdin(Stdio::from(pool.export().unwrap()))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{text}");
    let mut out = vec![0u8; 4000];
    buffer.read(&mut out, &stream).unwrap();
    assert_eq!(out, [6; 4000]);
}

#[test]
fn unshareable_pools_are_refused() {
    let device = Device::new(0).unwrap();
    let stream = device.create_stream().unwrap();
    let pool = MemoryPool::new(&device, &PoolOptions::default()).unwrap();
    assert!(pool.export().is_err() && !pool.is_imported());
    let buffer = pool.allocate(16, &stream).unwrap();
    assert!(buffer.descriptor().is_err());
    let nothing = std::fs::File::open("/dev/null").unwrap();
    assert!(MemoryPool::import(&device, nothing.as_fd()).is_err());
}

#[test]
fn host_memory_is_shared_with_another_process() {
    if let Ok(told) = std::env::var(TOLD) {
        let (bytes, size) = (unhex(&told), 64);
        let device = Device::new(0).unwrap();
        let stream = device.create_stream().unwrap();
        let kind = PoolKind::Host(Some(0));
        let pool = MemoryPool::import_with_kind(kind, std::io::stdin().as_fd()).unwrap();
        assert_eq!((pool.kind(), pool.device()), (kind, None));
        // All devices have access by default.
        assert_eq!(pool.access(0).unwrap(), MemoryAccess::ReadWrite);
        let buffer = pool
            .import_buffer(&BufferDescriptor { bytes, size }, &stream)
            .unwrap();
        let mut out = [0u8; 64];
        buffer.read(&mut out, &stream).unwrap();
        assert_eq!(out, [5; 64]);
        buffer.fill(FillPattern::U8(6), &stream).unwrap();
        buffer.close(None).unwrap();
        return stream.synchronize().unwrap();
    }
    let device = Device::new(0).unwrap();
    let stream = device.create_stream().unwrap();
    let options = PoolOptions::default().shareable(true);
    let pool = match MemoryPool::with_kind(PoolKind::Host(Some(0)), &options) {
        Err(Error::Driver { status, .. }) => {
            return eprintln!("left out: {status:?} for a pool of the host");
        }
        made => made.unwrap(),
    };
    let buffer = pool.allocate(64, &stream).unwrap();
    buffer.fill(FillPattern::U8(5), &stream).unwrap();
    stream.synchronize().unwrap();
    let descriptor = buffer.descriptor().unwrap();
    // A process cannot import its own buffer.
    let own = pool.import_buffer(&descriptor, &stream).unwrap_err();
    assert_eq!(own.status(), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    let done = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "host_memory_is_shared_with_another_process"])
        .env(TOLD, hex(&descriptor.bytes))
        .stdin(Stdio::from(pool.export().unwrap()))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success(), "{text}");
    let mut out = [0u8; 64];
    buffer.read(&mut out, &stream).unwrap();
    assert_eq!(out, [6; 64]);
}
