//! Destruction during captures. One test binary: a global capture affects all threads of a process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use cupyrite::sys::driver::{self, CUdeviceptr, CUgraph, CUresult, CUstreamCaptureMode};
use cupyrite::{
    ContextGuard, Device, DeviceBuffer, Error, HostBuffer, HostMemoryResource, Library, MemoryKind,
    MemoryLocation, MemoryResource, RelaxedCapture, Result, Stream, VirtualMemoryOptions,
    VirtualMemoryResource, pointer_info,
};

const OK: CUresult = CUresult::CUDA_SUCCESS;
const BYTES: usize = 4 << 20;
const PTX: &str = "\
.version 7.8
.target sm_75
.address_size 64
.visible .entry nothing() { ret; }
";

/// A custom resource that frees with a call that captures prohibit.
#[derive(Debug)]
struct Plain;

// SAFETY: the driver returns each allocation once; `deallocate` frees exactly the address it gets.
unsafe impl MemoryResource for Plain {
    fn allocate(&self, bytes: usize, _: &Stream) -> Result<CUdeviceptr> {
        let _entered = Device::current()?.enter()?;
        let mut address = 0;
        // SAFETY: `address` is valid for the result.
        let status = unsafe { driver::cuMemAlloc(&mut address, bytes) };
        assert_eq!(status.unwrap(), OK);
        Ok(address)
    }

    unsafe fn deallocate(&self, address: CUdeviceptr, _: usize, _: &Stream) -> Result<()> {
        let _entered = Device::current()?.enter()?;
        // SAFETY: the caller of `deallocate` upholds its contract.
        match unsafe { driver::cuMemFree(address) }.unwrap() {
            OK => Ok(()),
            status => Err(Error::Driver {
                call: "cuMemFree",
                status,
                log: String::new(),
            }),
        }
    }

    fn device(&self) -> Option<Device> {
        Device::new(0).ok()
    }

    fn is_device_accessible(&self) -> bool {
        true
    }

    fn is_host_accessible(&self) -> bool {
        false
    }
}

fn begin(stream: &Stream) {
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    // SAFETY: `stream` is live.
    let status = unsafe { driver::cuStreamBeginCapture(stream.handle(), mode) };
    assert_eq!(status.unwrap(), OK);
}

/// Ends a capture; returns the driver's status.
fn end(stream: &Stream) -> CUresult {
    let mut graph: CUgraph = std::ptr::null_mut();
    // SAFETY: `stream` is live and `graph` is valid for the result; the graph is destroyed once.
    unsafe {
        let status = driver::cuStreamEndCapture(stream.handle(), &mut graph).unwrap();
        if status == OK {
            assert_eq!(driver::cuGraphDestroy(graph).unwrap(), OK);
        }
        status
    }
}

fn is_there(address: CUdeviceptr) -> bool {
    pointer_info(address).is_ok_and(|info| info.kind != MemoryKind::Unknown)
}

/// Drops a value while `stream` is captured: one in the capturing thread, the next one in another thread.
fn ends<T: Send>(stream: &Stream, make: impl Fn() -> (T, Option<CUdeviceptr>)) {
    for in_thread in [false, true] {
        let (one, address) = make();
        assert!(address.is_none_or(is_there));
        begin(stream);
        if in_thread {
            thread::scope(|scope| {
                scope.spawn(move || drop(one));
            });
        } else {
            drop(one);
        }
        assert_eq!(end(stream), OK, "in another thread: {in_thread}");
        assert!(!address.is_some_and(is_there));
    }
}

/// A stream to capture and another one, with the device's context current. Its lock serialises the tests.
struct Fixture {
    captured: Stream,
    stream: Stream,
    device: Device,
    _entered: ContextGuard,
    _alone: MutexGuard<'static, ()>,
}

impl Fixture {
    fn new() -> Fixture {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let device = Device::new(0).unwrap();
        Fixture {
            captured: device.create_stream().unwrap(),
            stream: device.create_stream().unwrap(),
            device,
            _entered: device.context().unwrap().enter().unwrap(),
            _alone: alone,
        }
    }

    fn ends_of(&self, resource: Arc<dyn MemoryResource>) {
        ends(&self.captured, || {
            let resource = resource.clone();
            let memory = DeviceBuffer::from_resource(resource, BYTES, &self.stream).unwrap();
            let address = memory.address();
            (memory, Some(address))
        });
    }
}

#[test]
fn memory_of_a_device() {
    let place = Fixture::new();
    ends(&place.captured, || {
        let memory = place.device.buffer::<u8>(BYTES).unwrap();
        let address = memory.address();
        (memory, Some(address))
    });
}

#[test]
fn page_locked_memory() {
    let place = Fixture::new();
    place.ends_of(Arc::new(HostMemoryResource));
    ends(&place.captured, || {
        let memory = HostBuffer::filled(BYTES, 1u8).unwrap();
        let address = memory.address();
        (memory, Some(address))
    });
}

#[test]
fn virtual_memory() {
    let place = Fixture::new();
    let options = VirtualMemoryOptions::at(MemoryLocation::Device(0));
    place.ends_of(Arc::new(VirtualMemoryResource::new(options)));
}

#[test]
fn memory_of_a_custom_resource() {
    Fixture::new().ends_of(Arc::new(Plain));
}

#[test]
fn code() {
    let place = Fixture::new();
    ends(&place.captured, || {
        let library = Library::load(PTX.as_bytes()).unwrap();
        let kernel = library.kernel("nothing").unwrap();
        // Also loads the kernel in the current context.
        kernel.function_for_current_context().unwrap();
        ((library, kernel), None)
    });
}

#[test]
fn memory_by_its_address() {
    let place = Fixture::new();
    let mut address = 0;
    // SAFETY: `address` is valid for the result.
    let status = unsafe { driver::cuMemAlloc(&mut address, BYTES) };
    assert_eq!(status.unwrap(), OK);
    begin(&place.captured);
    // SAFETY: this test has just allocated the memory and is its only user.
    unsafe { place.device.free(address, Some(&place.stream)) }.unwrap();
    assert_eq!(end(&place.captured), OK);
    assert!(!is_there(address));
}

#[test]
fn scoped_copies_are_waited_for_during_captures() {
    let place = Fixture::new();
    let (data, there) = (vec![1u8; 64], place.device.buffer::<u8>(64).unwrap());
    begin(&place.captured);
    let copied = place.stream.scope(|scope| scope.upload(&data, &there));
    assert_eq!(end(&place.captured), OK);
    copied.unwrap();
    assert_eq!(there.to_vec().unwrap(), data);
}

#[test]
fn explicit_requests_are_refused_during_captures() {
    let Fixture {
        captured, device, ..
    } = &Fixture::new();
    {
        let _outer = RelaxedCapture::enter();
        drop(RelaxedCapture::enter());
        begin(captured);
        drop(device.buffer::<u8>(BYTES).unwrap());
        assert_eq!(end(captured), OK);
    }
    begin(captured);
    let refused = device.buffer::<u8>(BYTES).unwrap_err();
    let unsupported = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    assert_eq!(refused.status(), Some(unsupported));
    assert_ne!(end(captured), OK);
}
