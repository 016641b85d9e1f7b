//! Memory pools and stream-ordered buffers, on the device of this process.

use std::thread;

use cupyrite::sys::driver::CUresult;
use cupyrite::{
    CopyOptions, Device, Error, FillPattern, MemoryAccess, MemoryKind, MemoryLocation, MemoryPool,
    PoolAttribute, PoolOptions, SourceAccessOrder, Stream, pointer_info,
};

fn device() -> Device {
    Device::new(0).expect("a device: the CPU device serves where there is no GPU")
}

fn pool(device: &Device) -> MemoryPool {
    MemoryPool::new(device, &PoolOptions::default()).unwrap()
}

fn used(pool: &MemoryPool) -> u64 {
    pool.attribute(PoolAttribute::UsedCurrent).unwrap()
}

#[test]
fn written_data_is_read_back() {
    let device = device();
    let stream = device.create_stream().unwrap();
    let pool = pool(&device);
    let data: Vec<u32> = (0..1000).collect();
    let a = pool.allocate(4000, &stream).unwrap();
    let b = pool.allocate(4000, &stream).unwrap();
    a.write(&data, &stream).unwrap();
    a.copy_to(&b, &stream, &CopyOptions::default()).unwrap();
    let mut out = vec![0u32; 1000];
    b.read(&mut out, &stream).unwrap();
    assert_eq!(out, data);

    let mut careful = CopyOptions::default();
    careful.source_access_order = SourceAccessOrder::DuringApiCall;
    careful.source_hint = Some(MemoryLocation::Device(0));
    careful.prefer_overlap_with_compute = true;
    b.fill(FillPattern::U8(0), &stream).unwrap();
    a.copy_to(&b, &stream, &careful).unwrap();
    b.read(&mut out, &stream).unwrap();
    assert_eq!(out, data);
}

#[test]
fn fills_have_three_widths() {
    let device = device();
    let stream = device.create_stream().unwrap();
    let buffer = pool(&device).allocate(12, &stream).unwrap();
    let mut out = [0u8; 12];
    let patterns: [&[u8]; 3] = [&[7], &[1, 2], &[1, 2, 3, 4]];
    for bytes in patterns {
        let pattern = FillPattern::from_bytes(bytes).unwrap();
        assert_eq!(pattern.width(), bytes.len());
        buffer.fill(pattern, &stream).unwrap();
        buffer.read(&mut out, &stream).unwrap();
        assert_eq!(out.to_vec(), bytes.repeat(12 / bytes.len()));
    }
    assert_eq!(FillPattern::from_bytes(&[1, 2, 3]), None);
    let odd = pool(&device).allocate(7, &stream).unwrap();
    let error = odd.fill(FillPattern::U16(1), &stream).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
}

#[test]
fn sizes_must_match() {
    let device = device();
    let stream = device.create_stream().unwrap();
    let pool = pool(&device);
    let (a, b) = (
        pool.allocate(8, &stream).unwrap(),
        pool.allocate(16, &stream).unwrap(),
    );
    let error = a.copy_to(&b, &stream, &CopyOptions::default()).unwrap_err();
    assert!(error.to_string().contains("16 bytes"), "{error}");
    assert!(a.write(&[0u8; 9], &stream).is_err());
    assert!(a.read(&mut [0u64; 2], &stream).is_err());
}

#[test]
fn zero_sizes_need_no_memory() {
    let device = device();
    let stream = device.create_stream().unwrap();
    let buffer = pool(&device).allocate(0, &stream).unwrap();
    assert_eq!((buffer.address(), buffer.size()), (0, 0));
    buffer.fill(FillPattern::U32(1), &stream).unwrap();
    buffer.write::<u8>(&[], &stream).unwrap();
    buffer.close(None).unwrap();
}

#[test]
fn a_buffer_outlives_its_pool_stream_and_device() {
    let device = device();
    let stream = device.create_stream().unwrap();
    let other = device.create_stream().unwrap();
    let pool = pool(&device);
    let buffer = pool.allocate(64, &stream).unwrap();
    drop(stream);
    buffer.fill(FillPattern::U8(3), &other).unwrap();
    let mut out = [0u8; 64];
    buffer.read(&mut out, &other).unwrap();
    assert_eq!(out, [3; 64]);
    assert_eq!(used(&pool), 64);
    drop(other);
    let handle = pool.handle();
    assert_eq!(buffer.pool().unwrap().handle(), handle);
    drop(pool);
    // In a thread without a current context.
    thread::spawn(move || buffer.close(None).unwrap())
        .join()
        .unwrap();
}

#[test]
fn each_buffer_is_freed_once() {
    let device = device();
    let stream = device.create_stream().unwrap();
    let other = device.create_stream().unwrap();
    let pool = pool(&device);
    for i in 0..100 {
        let mut buffer = pool.allocate(1 << 10, &stream).unwrap();
        match i % 4 {
            0 => drop(buffer),
            1 => buffer.close(Some(&other)).unwrap(),
            2 => buffer.close(None).unwrap(),
            _ => {
                buffer.set_deallocation_stream(&other).unwrap();
                assert_eq!(buffer.stream().handle(), other.handle());
            }
        }
    }
    stream.synchronize().unwrap();
    other.synchronize().unwrap();
    assert_eq!(used(&pool), 0);
}

#[test]
fn pools_have_limits_and_attributes() {
    let device = device();
    let stream = device.create_stream().unwrap();
    let small = MemoryPool::new(&device, &PoolOptions::default().max_size(64 << 20)).unwrap();
    assert!(small.is_owned());
    let error = small.allocate(1 << 30, &stream).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Driver {
                status: CUresult::CUDA_ERROR_OUT_OF_MEMORY,
                ..
            }
        ),
        "{error}"
    );
    small
        .set_attribute(PoolAttribute::ReleaseThreshold, 1 << 20)
        .unwrap();
    assert_eq!(
        small.attribute(PoolAttribute::ReleaseThreshold).unwrap(),
        1 << 20
    );
    small
        .set_attribute(PoolAttribute::ReuseAllowOpportunistic, 0)
        .unwrap();
    assert_eq!(
        small
            .attribute(PoolAttribute::ReuseAllowOpportunistic)
            .unwrap(),
        0
    );
    let flag = PoolAttribute::ReuseAllowOpportunistic;
    assert!(small.set_attribute(flag, 2).is_err());
    small.allocate(1 << 20, &stream).unwrap();
    stream.synchronize().unwrap();
    assert!(small.attribute(PoolAttribute::UsedHigh).unwrap() >= 1 << 20);
    small.set_attribute(PoolAttribute::UsedHigh, 0).unwrap();
    assert_eq!(small.attribute(PoolAttribute::UsedHigh).unwrap(), 0);
    small.trim_to(0).unwrap();
    assert_eq!(small.access(0).unwrap(), MemoryAccess::ReadWrite);
    small.set_access(&[]).unwrap();

    let current = MemoryPool::current(&device).unwrap();
    assert!(!current.is_owned() && current != small);
    assert_eq!(current, MemoryPool::default_for(&device).unwrap());
    assert_eq!(current.device().unwrap().ordinal(), 0);
}

#[test]
fn the_driver_knows_its_addresses() {
    let device = device();
    let stream = device.create_stream().unwrap();
    let buffer = pool(&device).allocate(64, &stream).unwrap();
    let info = pointer_info(buffer.address()).unwrap();
    assert_eq!((info.kind, info.device), (MemoryKind::Device, Some(0)));
    let local = 0u8;
    let info = pointer_info(&raw const local as u64).unwrap();
    assert_eq!((info.kind, info.device), (MemoryKind::Unknown, None));
}

#[test]
fn threads_share_a_pool() {
    let device = device();
    let pool = pool(&device);
    thread::scope(|scope| {
        for k in 0..4u8 {
            let (pool, device) = (&pool, &device);
            scope.spawn(move || {
                let stream = device.create_stream().unwrap();
                for _ in 0..100 {
                    let buffer = pool.allocate(256, &stream).unwrap();
                    buffer.fill(FillPattern::U8(k), &stream).unwrap();
                    let mut out = [0u8; 256];
                    buffer.read(&mut out, &stream).unwrap();
                    assert_eq!(out, [k; 256]);
                }
                stream.synchronize().unwrap();
            });
        }
    });
    assert_eq!(used(&pool), 0);
}

#[test]
fn memory_with_one_owned_stream_is_simple() {
    let device = device();
    let stream = device.create_stream().unwrap();
    let pool = pool(&device);
    let mut simple = pool.allocate(64, &stream).unwrap();
    assert!(simple.is_simple());
    // SAFETY: `is_simple` was just checked.
    let memory = unsafe { simple.into_simple() };
    assert_ne!(used(&pool), 0);
    memory.free().unwrap();
    stream.synchronize().unwrap();
    assert_eq!(used(&pool), 0);

    // Simple memory keeps its pool and its stream alive.
    let pool_alone = MemoryPool::new(&device, &PoolOptions::default()).unwrap();
    let stream_alone = device.create_stream().unwrap();
    let mut kept = pool_alone.into_buffer(64, stream_alone).unwrap();
    assert!(kept.is_simple());
    // SAFETY: `is_simple` was just checked.
    unsafe { kept.into_simple() }.free().unwrap();

    let mut shared = pool.allocate(64, &stream).unwrap();
    shared.record_stream(&stream);
    assert!(shared.is_simple());
    shared.record_stream(&device.create_stream().unwrap());
    assert!(!shared.is_simple());
    shared.close(None).unwrap();

    let mut moved = pool.allocate(64, &stream).unwrap();
    moved
        .set_deallocation_stream(&device.create_stream().unwrap())
        .unwrap();
    assert!(!moved.is_simple());
    moved.close(None).unwrap();

    for other in [Stream::legacy_default(), Stream::per_thread_default()] {
        let mut of_default = pool.allocate(64, &other).unwrap();
        assert!(!of_default.is_simple());
        of_default.close(None).unwrap();
    }
    let mut none = pool.allocate(0, &stream).unwrap();
    assert!(!none.is_simple());
    none.close(None).unwrap();
    device.synchronize().unwrap();
    assert_eq!(used(&pool), 0);
}
