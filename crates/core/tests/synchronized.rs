//! Whether a wait would have an effect. A test binary of its own: launches and frees of other tests count.

use cupyrite::{Device, LaunchConfig, Library, MemoryPool};

const PTX: &str = "\
.version 7.8
.target sm_75
.address_size 64
.visible .entry nothing() { ret; }
";

#[test]
fn a_wait_has_an_effect_after_launches_and_frees() {
    let device = Device::new(0).unwrap();
    let stream = device.create_stream().unwrap();
    let kernel = Library::load(PTX.as_bytes())
        .unwrap()
        .kernel("nothing")
        .unwrap();
    let event = stream.record().unwrap();
    assert!(!stream.is_synchronized().unwrap(), "never waited");
    stream.synchronize().unwrap();
    event.synchronize().unwrap();
    for _ in 0..2 {
        assert!(stream.is_synchronized().unwrap());
        assert!(event.is_synchronized().unwrap());
    }

    // The kernel may print, which a wait flushes.
    // SAFETY: the kernel has no parameters and uses no memory.
    unsafe { kernel.launch(&stream, &LaunchConfig::linear(1, 1), &()) }.unwrap();
    while !stream.is_done().unwrap() {
        std::thread::yield_now();
    }
    assert!(!stream.is_synchronized().unwrap());
    assert!(
        !event.is_synchronized().unwrap(),
        "it may stand for any work"
    );
    stream.synchronize().unwrap();
    assert!(stream.is_synchronized().unwrap());
    assert!(!event.is_synchronized().unwrap());

    // The driver releases freed memory of a pool at a wait.
    let pool = MemoryPool::current(&device).unwrap();
    drop(pool.allocate(1 << 20, &stream).unwrap());
    assert!(!stream.is_synchronized().unwrap());
    stream.synchronize().unwrap();
    assert!(stream.is_synchronized().unwrap());

    // Its own work counts, too.
    let slow = stream.record().unwrap();
    assert!(!slow.is_synchronized().unwrap());
}
