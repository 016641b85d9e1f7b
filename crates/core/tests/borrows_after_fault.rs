//! Borrowed host memory while a context fails. A test binary of its own: the context is unusable afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{array, thread};

use cupyrite::graph::{GraphDefinition, InstantiateOptions};
use cupyrite::sys::driver::CUresult;
use cupyrite::{Device, HostBuffer, LaunchConfig, Library};

const LEN: usize = 4096;
const PTX: &str = "\
.version 7.8
.target sm_75
.address_size 64
.visible .entry fails() { trap; }
";

#[test]
fn copies_of_a_scope_are_not_made_after_a_fault_ended_it() {
    let device = Device::new(0).unwrap();
    let [stream, failing] = array::from_fn(|_| device.create_stream().unwrap());
    let library = Library::load(PTX.as_bytes()).unwrap();
    let kernel = library.kernel("fails").unwrap();
    let there = device.buffer_from(&[7u8; LEN]).unwrap();
    let mut back = HostBuffer::filled(LEN, 1u8).unwrap();
    let [started, done] = array::from_fn(|_| Arc::new(AtomicBool::new(false)));
    let definition = GraphDefinition::new().unwrap();
    let (set_started, set_done) = (started.clone(), done.clone());
    let work = move || {
        set_started.store(true, Ordering::SeqCst);
        thread::sleep(Duration::from_millis(300));
        set_done.store(true, Ordering::SeqCst);
    };
    definition.callback(&[], work).unwrap();
    let work = definition
        .instantiate(&InstantiateOptions::default())
        .unwrap();
    let failed = stream.scope(|scope| {
        work.launch(&stream)?;
        scope.download(&there, &mut back)?;
        while !started.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        // SAFETY: the kernel has no parameters and uses no memory.
        unsafe { kernel.launch(&failing, &LaunchConfig::linear(1, 1), &())? };
        assert!(failing.synchronize().is_err());
        Ok(())
    });
    let status = failed.unwrap_err().status();
    assert_eq!(status, Some(CUresult::CUDA_ERROR_LAUNCH_FAILED));
    // The host function is program code, which may still run. The copy behind it is not made any more.
    let at_the_end = back.to_vec();
    while !done.load(Ordering::SeqCst) {
        thread::yield_now();
    }
    thread::sleep(Duration::from_millis(50));
    assert_eq!(back[..], at_the_end);
}
