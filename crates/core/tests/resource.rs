//! Memory of resources other than device pools, on the device of this process.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cupyrite::managed::{self, Advice};
use cupyrite::sys::driver::{CUdeviceptr, CUresult};
use cupyrite::{
    CopyOptions, Device, DeviceBuffer, Error, FillPattern, HostBuffer, HostMemoryResource,
    MemoryKind, MemoryLocation, MemoryPool, MemoryResource, PoolKind, PoolOptions, Result, Stream,
    VirtualMemoryOptions, VirtualMemoryResource, copy_batch_async, pointer_info,
};

fn device() -> Device {
    Device::new(0).expect("a device: the CPU device serves where there is no GPU")
}

/// The bytes of a buffer.
fn read(buffer: &DeviceBuffer, stream: &Stream) -> Vec<u8> {
    let mut out = vec![0; buffer.size()];
    buffer.read(&mut out, stream).unwrap();
    out
}

fn status(error: &Error) -> Option<CUresult> {
    error.status()
}

/// A custom resource that counts calls and delegates to a pool.
#[derive(Debug)]
struct Counting {
    pool: MemoryPool,
    live: AtomicUsize,
    freed_on: Mutex<Vec<usize>>,
}

// SAFETY: the pool allocates and frees the memory, and upholds the trait's contract.
unsafe impl MemoryResource for Counting {
    fn allocate(&self, bytes: usize, stream: &Stream) -> Result<CUdeviceptr> {
        let address = MemoryResource::allocate(&self.pool, bytes, stream)?;
        self.live.fetch_add(bytes, Ordering::Relaxed);
        Ok(address)
    }

    unsafe fn deallocate(&self, address: CUdeviceptr, bytes: usize, stream: &Stream) -> Result<()> {
        self.live.fetch_sub(bytes, Ordering::Relaxed);
        self.freed_on.lock().unwrap().push(stream.handle() as usize);
        // SAFETY: the caller of `deallocate` upholds its contract.
        unsafe { MemoryResource::deallocate(&self.pool, address, bytes, stream) }
    }

    fn device(&self) -> Option<Device> {
        MemoryPool::device(&self.pool)
    }

    fn is_device_accessible(&self) -> bool {
        true
    }

    fn is_host_accessible(&self) -> bool {
        false
    }
}

#[test]
fn a_custom_resource_can_be_used() {
    let device = device();
    let (stream, other) = (
        device.create_stream().unwrap(),
        device.create_stream().unwrap(),
    );
    let resource = Arc::new(Counting {
        pool: MemoryPool::new(&device, &PoolOptions::default()).unwrap(),
        live: AtomicUsize::new(0),
        freed_on: Mutex::default(),
    });
    let empty = DeviceBuffer::from_resource(resource.clone(), 0, &stream).unwrap();
    assert_eq!((empty.address(), empty.size()), (0, 0));
    let a = DeviceBuffer::from_resource(resource.clone(), 1000, &stream).unwrap();
    let b = DeviceBuffer::from_resource(resource.clone(), 1000, &stream).unwrap();
    assert_eq!(resource.live.load(Ordering::Relaxed), 2000);
    assert!(a.pool().is_none() && a.device().unwrap().ordinal() == 0);
    a.fill(FillPattern::U8(7), &stream).unwrap();
    stream.synchronize().unwrap();
    a.copy_to(&b, &other, &CopyOptions::default()).unwrap();
    drop(a);
    assert_eq!(read(&b, &other), vec![7; 1000]);
    b.close(Some(&other)).unwrap();
    drop(empty);
    assert_eq!(resource.live.load(Ordering::Relaxed), 0);
    let handles = vec![stream.handle() as usize, other.handle() as usize];
    assert_eq!(*resource.freed_on.lock().unwrap(), handles);
    // The buffers held the other references.
    assert_eq!(Arc::strong_count(&resource), 1);
}

#[test]
fn the_host_sees_page_locked_memory() {
    let device = device();
    let stream = device.create_stream().unwrap();
    let pool = MemoryPool::with_kind(PoolKind::Host(None), &PoolOptions::default()).unwrap();
    assert_eq!(pool.device(), None);
    assert!(pool.is_host_accessible() && pool.is_device_accessible() && !pool.is_managed());
    let plain = DeviceBuffer::from_resource(Arc::new(HostMemoryResource), 100, &stream).unwrap();
    let pooled = pool.allocate(100, &stream).unwrap();
    stream.synchronize().unwrap();
    for buffer in [plain, pooled] {
        assert_eq!(
            pointer_info(buffer.address()).unwrap().kind,
            MemoryKind::Host
        );
        assert_eq!(buffer.device(), None);
        buffer.fill(FillPattern::U8(9), &stream).unwrap();
        stream.synchronize().unwrap();
        let place = std::ptr::with_exposed_provenance::<u8>(buffer.address() as usize);
        // SAFETY: `place` points to 100 bytes of host memory with no concurrent writer.
        assert_eq!(unsafe { std::slice::from_raw_parts(place, 100) }, [9; 100]);
        buffer.close(None).unwrap();
    }
    // SAFETY: the driver refuses this address.
    let error = unsafe { HostMemoryResource.deallocate(4096, 1, &stream) }.unwrap_err();
    assert_eq!(status(&error), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
}

#[test]
fn advice_on_managed_memory_is_readable() {
    let device = device();
    let stream = device.create_stream().unwrap();
    let kind = PoolKind::Managed(None);
    let pool = match MemoryPool::with_kind(kind, &PoolOptions::default()) {
        Ok(pool) => pool,
        Err(error) if status(&error) == Some(CUresult::CUDA_ERROR_NOT_SUPPORTED) => return,
        Err(error) => panic!("{error}"),
    };
    let limited = MemoryPool::with_kind(kind, &PoolOptions::default().max_size(1));
    assert!(matches!(limited, Err(Error::InvalidArgument { .. })));
    let buffer = pool.allocate(1 << 16, &stream).unwrap();
    stream.synchronize().unwrap();
    let range = (buffer.address(), buffer.size());
    assert!(!managed::is_read_mostly(range).unwrap());
    managed::advise(range, Advice::ReadMostly(true)).unwrap();
    assert!(managed::is_read_mostly(range).unwrap());
    assert_eq!(managed::preferred_location(range).unwrap(), None);
    for place in [MemoryLocation::Device(0), MemoryLocation::Host] {
        managed::advise(range, Advice::PreferredLocation(Some(place))).unwrap();
        assert_eq!(managed::preferred_location(range).unwrap(), Some(place));
        managed::advise(range, Advice::AccessedBy(place, true)).unwrap();
    }
    let both = [MemoryLocation::Device(0), MemoryLocation::Host];
    assert_eq!(managed::accessed_by(range).unwrap(), both);
    managed::advise(range, Advice::AccessedBy(MemoryLocation::Device(0), false)).unwrap();
    assert_eq!(managed::accessed_by(range).unwrap(), [MemoryLocation::Host]);
    managed::advise(range, Advice::PreferredLocation(None)).unwrap();
    assert_eq!(managed::preferred_location(range).unwrap(), None);

    let second = pool.allocate(1 << 16, &stream).unwrap();
    stream.synchronize().unwrap();
    let ranges = [range, (second.address(), second.size()), (0, 0)];
    managed::prefetch_async(&ranges, &[MemoryLocation::Host], &stream).unwrap();
    let host = Some(MemoryLocation::Host);
    stream.synchronize().unwrap();
    assert_eq!(managed::last_prefetch_location(ranges[1]).unwrap(), host);
    let places = [
        MemoryLocation::Device(0),
        MemoryLocation::Host,
        MemoryLocation::Host,
    ];
    // SAFETY: the ranges are not read before they are written.
    unsafe { managed::discard_and_prefetch_async(&ranges, &places, &stream).unwrap() };
    stream.synchronize().unwrap();
    let there = Some(MemoryLocation::Device(0));
    assert_eq!(managed::last_prefetch_location(range).unwrap(), there);
    // SAFETY: the ranges are live managed memory that no work uses.
    unsafe { managed::discard_async(&ranges, &stream).unwrap() };
    let error = managed::prefetch_async(&ranges, &places[..2], &stream).unwrap_err();
    assert!(
        error.to_string().contains("2 places for 3 ranges"),
        "{error}"
    );
}

#[test]
fn a_batch_of_copies_is_one_call() {
    let device = device();
    let stream = device.create_stream().unwrap();
    let pool = MemoryPool::new(&device, &PoolOptions::default()).unwrap();
    let make = |bytes| pool.allocate(bytes, &stream).unwrap();
    let (from, to): (Vec<_>, Vec<_>) = [0, 100, 5000]
        .map(|n| (make(n), make(n)))
        .into_iter()
        .unzip();
    for (value, buffer) in from.iter().enumerate() {
        let pattern = FillPattern::U8(u8::try_from(value).unwrap());
        buffer.fill(pattern, &stream).unwrap();
    }
    let copies: Vec<_> = from
        .iter()
        .zip(&to)
        .map(|(a, b)| (b.address(), a.address(), a.size()))
        .collect();
    let mut overlapped = CopyOptions::default();
    overlapped.prefer_overlap_with_compute = true;
    let each = [CopyOptions::default(), CopyOptions::default(), overlapped];
    // The per-thread default stream belongs to the current context.
    let _entered = device.enter().unwrap();
    for options in [&each[..1], &each[..]] {
        for stream in [&stream, &Stream::per_thread_default()] {
            // SAFETY: source and destination sizes match, and both live until the stream is synchronized.
            unsafe { copy_batch_async(&copies, options, stream).unwrap() };
            stream.synchronize().unwrap();
        }
        assert_eq!(read(&to[1], &stream), vec![1; 100]);
        assert_eq!(read(&to[2], &stream), vec![2; 5000]);
        to[2].fill(FillPattern::U8(0), &stream).unwrap();
    }
    // SAFETY: refused before anything is copied.
    let error = unsafe { copy_batch_async(&copies, &each[..2], &stream) }.unwrap_err();
    assert!(
        error.to_string().contains("2 elements for 3 copies"),
        "{error}"
    );
}

#[test]
fn virtual_memory_grows() {
    let device = device();
    let stream = device.create_stream().unwrap();
    let options = VirtualMemoryOptions::at(MemoryLocation::Device(0));
    let resource = Arc::new(VirtualMemoryResource::new(options));
    let mut buffer = DeviceBuffer::from_resource(resource.clone(), 1, &stream).unwrap();
    let unit = buffer.size();
    assert_eq!(resource.rounded(unit + 1).unwrap(), 2 * unit);
    buffer.fill(FillPattern::U8(1), &stream).unwrap();
    let before = buffer.address();
    assert!(resource.grow(&mut buffer, unit, None).unwrap());
    assert_eq!((buffer.address(), buffer.size()), (before, unit));
    for pieces in 2..5 {
        let before = buffer.address();
        let stayed = resource.grow(&mut buffer, pieces * unit, None).unwrap();
        assert_eq!(stayed, buffer.address() == before);
        assert_eq!(buffer.size(), pieces * unit);
        let contents = read(&buffer, &stream);
        let old = contents
            .iter()
            .take_while(|&&b| b == pieces as u8 - 1)
            .count();
        assert!(old >= (pieces - 1) * unit);
        buffer.fill(FillPattern::U8(pieces as u8), &stream).unwrap();
    }
    let address = buffer.address();
    let error = resource.grow(&mut buffer, 1 << 50, None).unwrap_err();
    assert_eq!(status(&error), Some(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
    assert_eq!(read(&buffer, &stream), vec![4; 4 * unit]);
    let other = VirtualMemoryResource::new(VirtualMemoryOptions::at(MemoryLocation::Device(0)));
    let error = other.grow(&mut buffer, 8 * unit, None).unwrap_err();
    assert_eq!(status(&error), Some(CUresult::CUDA_ERROR_INVALID_VALUE));
    drop(buffer);
    assert!(pointer_info(address).unwrap().kind == MemoryKind::Unknown);
}

#[test]
fn a_scope_waits_for_what_it_borrowed() {
    let device = device();
    let there = device.buffer::<u32>(10_000).unwrap();
    let data: Vec<u32> = (0..10_000).collect();
    let pinned = HostBuffer::from_slice(&data).unwrap();
    for stream in [device.create_stream().unwrap(), Stream::legacy_default()] {
        let mut back = HostBuffer::filled(10_000, 7u32).unwrap();
        let mut plain = vec![0u32; 10_000];
        let said = stream.scope(|scope| {
            scope.upload(&pinned, &there)?;
            scope.download(&there, &mut back)?;
            scope.download(&there, &mut plain)?;
            Ok("done")
        });
        assert_eq!(said.unwrap(), "done");
        assert!(back[..] == data[..] && plain == data);
        let error = stream.scope(|scope| scope.upload(&data[1..], &there));
        assert!(error.unwrap_err().to_string().contains("9999 elements"));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            stream.scope(|scope| -> Result<()> {
                scope.download(&there, &mut plain).unwrap();
                panic!("on the way")
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(plain, data);
    }
    let empty = HostBuffer::<u32>::from_slice(&[]).unwrap();
    assert!(empty.is_empty() && empty.address() == 0);
    assert!(matches!(
        HostBuffer::filled(usize::MAX, 1u32),
        Err(Error::InvalidArgument { .. })
    ));
}
