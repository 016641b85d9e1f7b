//! Devices, contexts, streams and events, on the device of this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use cupyrite::{Context, Device, Error, Event, EventOptions, Stream, StreamOptions};

const TIMED: EventOptions = EventOptions {
    timing: true,
    blocking_sync: false,
    ipc: false,
};

fn device() -> Device {
    Device::new(0).expect("a device: the CPU device serves where there is no GPU")
}

fn argument_of(error: &Error) -> &str {
    match error {
        Error::InvalidArgument { parameter, .. } => parameter,
        other => panic!("{other}"),
    }
}

#[test]
fn types_are_send_and_sync() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Device>();
    shared::<Context>();
    shared::<Stream>();
    shared::<Event>();
}

#[test]
fn the_current_context_is_restored() {
    thread::spawn(|| {
        let device = device();
        assert_eq!(Context::current().unwrap(), None);
        assert_eq!(Device::current().unwrap(), device);
        let stream = device.create_stream().unwrap();
        stream.record().unwrap().synchronize().unwrap();
        device.synchronize().unwrap();
        assert_eq!(Context::current().unwrap(), None);
        let (entered, context) = device.enter().unwrap();
        assert_eq!(Context::current().unwrap().as_ref(), Some(&context));
        {
            let again = context.enter().unwrap();
            drop(again);
        }
        assert_eq!(Context::current().unwrap().as_ref(), Some(&context));
        drop(entered);
        assert_eq!(Context::current().unwrap(), None);
        let panicked = std::panic::catch_unwind(|| {
            let _ = device
                .context()
                .unwrap()
                .with_current(|| -> cupyrite::Result<()> { panic!("on purpose") });
        });
        assert!(panicked.is_err());
        assert_eq!(Context::current().unwrap(), None);
        context.push().unwrap();
        assert_eq!(Context::current().unwrap().as_ref(), Some(&context));
        Context::pop().unwrap();
        assert!(Context::pop().is_err());
        context.enter().unwrap().keep_current();
        assert_eq!(Context::current().unwrap(), Some(context));
    })
    .join()
    .unwrap();
}

#[test]
fn devices_are_counted() {
    let all = Device::all().unwrap();
    assert_eq!(all.len(), Device::count().unwrap());
    assert_eq!(all[0], device());
    let error = Device::new(all.len()).unwrap_err();
    assert_eq!(argument_of(&error), "ordinal");
    assert!(device().can_access_peer(device()).is_ok());
    assert!(device().pci_bus_id().unwrap().contains(':'));
}

#[test]
fn priorities_are_those_of_the_device() {
    let device = device();
    let (least, greatest) = Stream::priority_range(device.context().unwrap()).unwrap();
    assert!(greatest <= least);
    let with = |priority| {
        device.create_stream_with(&StreamOptions {
            nonblocking: false,
            priority: Some(priority),
        })
    };
    let stream = with(greatest).unwrap();
    assert_eq!(stream.priority().unwrap(), greatest);
    assert!(!stream.is_nonblocking().unwrap());
    for wrong in [least + 1, greatest - 1] {
        let error = with(wrong).unwrap_err();
        assert_eq!(argument_of(&error), "priority");
        assert!(error.to_string().contains(&format!("is {wrong}")));
    }
}

#[test]
fn default_streams() {
    let (legacy, own) = (Stream::legacy_default(), Stream::per_thread_default());
    assert_ne!(legacy, own);
    assert!(legacy.is_default() && !legacy.is_owned());
    assert_eq!(Stream::default_stream().unwrap(), legacy);
    thread::spawn(move || {
        assert!(legacy.context().is_err(), "no context is current");
        let device = device();
        let _entered = device.enter().unwrap();
        legacy.synchronize().unwrap();
        own.record().unwrap().synchronize().unwrap();
        assert_eq!(legacy.context().unwrap().device(), device);
    })
    .join()
    .unwrap();
}

#[test]
fn a_foreign_stream_keeps_its_owner() {
    struct Owner(Stream, Arc<AtomicUsize>);
    impl Drop for Owner {
        fn drop(&mut self) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
    }
    let gone = Arc::new(AtomicUsize::new(0));
    let stream = device().create_stream().unwrap();
    let handle = stream.handle();
    let owner = Owner(stream, gone.clone());
    // SAFETY: `owner` keeps the stream alive.
    let foreign = unsafe { Stream::from_handle_with_owner(handle, owner) };
    assert!(!foreign.is_owned());
    assert_eq!(foreign.context().unwrap().device(), device());
    assert!(foreign.unique_owner().is_some_and(|owner| {
        owner
            .downcast_ref::<Owner>()
            .is_some_and(|owner| owner.0.handle() == handle)
    }));
    let clone = foreign.clone();
    assert!(clone.unique_owner().is_none());
    drop(foreign);
    clone.synchronize().unwrap();
    assert_eq!(gone.load(Ordering::Relaxed), 0);
    drop(clone);
    assert_eq!(gone.load(Ordering::Relaxed), 1);
}

#[test]
fn events_that_cannot_be_timed_are_explained() {
    let device = device();
    let stream = device.create_stream().unwrap();
    let (start, end) = (
        stream.record_with(&TIMED).unwrap(),
        stream.record_with(&TIMED).unwrap(),
    );
    end.synchronize().unwrap();
    assert!(end.milliseconds_since(&start).unwrap() >= 0.0);
    end.elapsed_since(&start).unwrap();
    let plain = device.create_event(&EventOptions::default()).unwrap();
    assert_eq!(
        argument_of(&plain.milliseconds_since(&start).unwrap_err()),
        "self"
    );
    assert_eq!(
        argument_of(&end.milliseconds_since(&plain).unwrap_err()),
        "earlier"
    );
    let fresh = device.create_event(&TIMED).unwrap();
    let error = end.milliseconds_since(&fresh).unwrap_err();
    assert!(error.to_string().contains("never recorded"), "{error}");
    let both = EventOptions { ipc: true, ..TIMED };
    assert_eq!(
        argument_of(&device.create_event(&both).unwrap_err()),
        "options"
    );
    assert_eq!(argument_of(&plain.ipc_handle().unwrap_err()), "self");
}

#[test]
fn errors_begin_with_the_status() {
    // SAFETY: only the CPU device, which validates handles, gets this invalid handle; a GPU driver never sees it.
    let nobody = unsafe { Stream::from_handle(std::ptr::without_provenance_mut(0x7ff0)) };
    if !device().name().unwrap().starts_with("CPU") {
        return;
    }
    let text = nobody.synchronize().unwrap_err().to_string();
    assert!(text.starts_with("CUDA_ERROR_INVALID_HANDLE: "), "{text}");
    assert!(text.contains("(cuStreamSynchronize)"), "{text}");
}

#[test]
fn thousands_of_streams_are_created_and_destroyed() {
    let device = device();
    let stream = device.create_stream().unwrap();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let stream = stream.clone();
            thread::spawn(move || {
                for _ in 0..1000 {
                    let event = device.create_event(&EventOptions::default()).unwrap();
                    event.record(&stream).unwrap();
                    let other = device.create_stream().unwrap();
                    other.wait(&event).unwrap();
                    other.wait_for_stream(&stream).unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    stream.synchronize().unwrap();
}

#[test]
fn a_default_stream_can_be_bound_to_a_device() {
    thread::spawn(|| {
        let device = device();
        let own = device.create_stream().unwrap();
        assert_eq!(own.on_device(device), own);
        assert_eq!(own.default_device(), None);
        for stream in [Stream::legacy_default(), Stream::per_thread_default()] {
            let bound = stream.on_device(device);
            assert!(bound.is_default() && bound != stream && bound == stream.on_device(device));
            assert_eq!(bound.handle(), stream.handle());
            assert_eq!(
                (bound.default_device(), stream.default_device()),
                (Some(device), None)
            );
            // No context is current on this thread: only the bound stream has one.
            assert!(stream.context().is_err());
            assert_eq!(bound.context().unwrap().device(), device);
            let event = bound.record().unwrap();
            own.wait(&event).unwrap();
            own.wait_for_stream(&bound).unwrap();
            bound.wait_for_stream(&own).unwrap();
            bound.synchronize().unwrap();
            assert!(bound.is_done().unwrap());
            assert_eq!(Context::current().unwrap(), None);
        }
    })
    .join()
    .unwrap();
}

#[test]
fn exactly_one_clone_is_the_last() {
    let device = device();
    for _ in 0..50 {
        let stream = device.create_stream().unwrap();
        let event = stream.record().unwrap();
        let last = AtomicUsize::new(0);
        let ready = std::sync::Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                let (stream, event) = (stream.clone(), event.clone());
                let (last, ready) = (&last, &ready);
                scope.spawn(move || {
                    ready.wait();
                    last.fetch_add(
                        usize::from(stream.into_unique().is_some()),
                        Ordering::Relaxed,
                    );
                    last.fetch_add(
                        usize::from(event.into_unique().is_some()),
                        Ordering::Relaxed,
                    );
                });
            }
            drop((stream, event));
        });
        // At most one clone of each handle is the last; zero if the clones of this thread were.
        assert!(last.load(Ordering::Relaxed) <= 2);
    }
    let (stream, other) = (
        device.create_stream().unwrap(),
        device.create_stream().unwrap(),
    );
    let clone = stream.clone();
    assert!(clone.into_unique().is_none());
    stream.synchronize().unwrap();
    let handle = stream.handle();
    assert!(stream.into_unique().is_some());
    assert_ne!(handle, other.handle());
    // Borrowed and default streams never become unique: they destroy nothing.
    // SAFETY: `other` is live.
    let foreign = unsafe { Stream::from_handle(other.handle()) };
    assert!(foreign.into_unique().is_none());
    assert!(Stream::legacy_default().into_unique().is_none());
    other.synchronize().unwrap();
    let event = other.record().unwrap();
    let clone = event.clone();
    assert!(clone.into_unique().is_none());
    assert!(event.into_unique().is_some());
}

/// Work that lasts until the flag is set.
fn hold(stream: &Stream) -> Arc<AtomicUsize> {
    unsafe extern "C" fn wait(flag: *mut std::ffi::c_void) {
        // SAFETY: `hold` passes this; the test keeps the flag until the work is done.
        let flag = unsafe { &*flag.cast::<AtomicUsize>() };
        while flag.load(Ordering::Acquire) == 0 {
            thread::yield_now();
        }
    }
    let flag = Arc::new(AtomicUsize::new(0));
    let place = Arc::as_ptr(&flag).cast_mut().cast();
    // SAFETY: the stream is live; see `wait`.
    let queued =
        unsafe { cupyrite::sys::driver::cuLaunchHostFunc(stream.handle(), Some(wait), place) };
    assert_eq!(queued.unwrap().0, 0);
    flag
}

#[test]
fn a_condition_ends_a_wait_and_leaves_the_work_alone() {
    let device = device();
    let stream = device.create_stream().unwrap();
    let never = &mut || panic!("asked although the work is done");
    assert!(stream.synchronize_unless(never).unwrap());
    let flag = hold(&stream);
    let event = stream.record().unwrap();
    let blocking = EventOptions {
        blocking_sync: true,
        ..EventOptions::default()
    };
    let blocking = stream.record_with(&blocking).unwrap();
    let start = std::time::Instant::now();
    let asked = AtomicUsize::new(0);
    let third = &mut || asked.fetch_add(1, Ordering::Relaxed) % 3 == 2;
    assert!(!stream.synchronize_unless(third).unwrap());
    assert!(!event.synchronize_unless(third).unwrap());
    assert!(!blocking.synchronize_unless(third).unwrap());
    assert!(!device.synchronize_unless(third).unwrap());
    assert_eq!(asked.load(Ordering::Relaxed), 12);
    assert!(start.elapsed().as_secs() < 10);
    assert!(!stream.is_done().unwrap());
    flag.store(1, Ordering::Release);
    let no = &mut || false;
    assert!(stream.synchronize_unless(no).unwrap());
    assert!(event.synchronize_unless(no).unwrap());
    assert!(blocking.synchronize_unless(no).unwrap());
    assert!(device.synchronize_unless(no).unwrap());
    assert!(device.synchronize_unless(never).unwrap());
}
