//! Object code, kernels and linking, on the device of this process.
//!
//! Tests that compile or link need NVRTC and nvJitLink. Without them they print a message and pass: the libraries are a
//! prerequisite, not the subject of the test.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use cupyrite::sys::driver::CUresult;
use cupyrite::{
    CodeKind, Device, DynamicSharedMemory, Error, FunctionAttribute, Kernel, LaunchConfig, Library,
    Linker, LinkerBackend, LinkerOptions, ObjectCode,
};

/// A function that another module calls, and the kernel that calls it.
const HELPER: &str = "\
.version 7.8
.target sm_75
.address_size 64
.visible .func (.param .b32 r) helper(.param .b32 x)
{
    .reg .f32 %f<3>;
    ld.param.f32 %f1, [x];
    mul.f32 %f2, %f1, %f1;
    st.param.f32 [r], %f2;
    ret;
}
";
const USER: &str = "\
.version 7.8
.target sm_75
.address_size 64
.extern .func (.param .b32 r) helper(.param .b32 x);
.visible .entry square(.param .u64 p)
{
    .reg .f32 %f<3>;
    .reg .b32 %r<2>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    ld.global.f32 %f1, [%rd3];
    {
        .param .b32 a;
        .param .b32 b;
        st.param.f32 [a], %f1;
        call.uni (b), helper, (a);
        ld.param.f32 %f2, [b];
    }
    st.global.f32 [%rd3], %f2;
    ret;
}
";
const SHARED: &str = "\
.version 7.8
.target sm_75
.address_size 64
.extern .shared .align 4 .b8 room[];
.visible .entry sum(.param .u64 p)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd1, %rd1;
    ld.shared.u32 %r1, [room];
    st.global.u32 [%rd1], %r1;
    ret;
}
.visible .entry other() { ret; }
";

fn device() -> Device {
    let device = Device::new(0).expect("a device: the CPU device serves where there is no GPU");
    device
        .context()
        .expect("its context")
        .set_current()
        .expect("is made current");
    device
}

fn shared_kernel() -> Kernel {
    Library::load(SHARED.as_bytes())
        .unwrap()
        .kernel("sum")
        .unwrap()
}

/// Whether nvJitLink is available.
fn has_nvjitlink() -> bool {
    let found = LinkerBackend::choose().unwrap() == LinkerBackend::NvJitLink;
    if !found {
        eprintln!("skipped: there is no nvJitLink");
    }
    found
}

fn parts() -> [ObjectCode; 2] {
    [
        ObjectCode::new(CodeKind::Ptx, HELPER).named("helper"),
        ObjectCode::new(CodeKind::Ptx, USER).named("user"),
    ]
}

#[test]
fn an_object_code_returns_its_parts() {
    let code = ObjectCode::new(CodeKind::Ptx, SHARED)
        .named("shared")
        .with_symbols(vec![("add<int>".into(), "sum".into())])
        .with_log("a warning");
    assert_eq!(
        (code.kind(), code.name(), code.log()),
        (CodeKind::Ptx, "shared", "a warning")
    );
    assert_eq!(code.bytes().unwrap(), SHARED.as_bytes());
    assert_eq!(code.lowered_name("add<int>"), Some("sum"));
    assert_eq!(code, code.clone());
    assert_ne!(
        code,
        code.clone().named("shared"),
        "a changed copy is another code"
    );
    for kind in CodeKind::ALL {
        assert_eq!(CodeKind::from_name(kind.name()), Some(kind));
    }
    assert_eq!(CodeKind::from_name("exe"), None);
}

#[test]
fn code_is_loaded_once_by_all_threads() {
    device();
    let code = ObjectCode::new(CodeKind::Ptx, SHARED)
        .with_symbols(vec![("add<int>".into(), "sum".into())]);
    assert!(code.loaded_library().is_none());
    let barrier = Barrier::new(8);
    let handles: Vec<usize> = thread::scope(|scope| {
        let work = || {
            barrier.wait();
            code.kernel("add<int>").unwrap().handle() as usize
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert!(handles.iter().all(|h| *h == handles[0]));
    let kernel = code.kernel("sum").unwrap();
    drop(code);
    assert_eq!(kernel.params().unwrap().len(), 1);
    // SAFETY: `kernel` is live.
    let again = unsafe { Kernel::from_handle(kernel.handle(), None) }.unwrap();
    drop(kernel);
    assert_eq!((again.name(), again.params().unwrap().len()), ("sum", 1));
    // SAFETY: a null handle is refused before any driver call.
    assert!(unsafe { Kernel::from_handle(std::ptr::null_mut(), None) }.is_err());
}

#[test]
fn unknown_names_list_the_existing_ones() {
    device();
    let code = ObjectCode::new(CodeKind::Ptx, SHARED)
        .with_symbols(vec![("add<int>".into(), "sum".into())]);
    let e = code.kernel("othr").unwrap_err();
    assert_eq!(e.status(), Some(CUresult::CUDA_ERROR_NOT_FOUND));
    let text = e.to_string();
    assert!(
        text.contains("did you mean `other`") && text.contains("add<int>"),
        "{text}"
    );
    assert!(
        ObjectCode::from_file(CodeKind::Cubin, "/nowhere")
            .kernel("k")
            .is_err()
    );
    let e = ObjectCode::new(CodeKind::LtoIr, "x")
        .kernel("k")
        .unwrap_err()
        .to_string();
    assert!(e.contains("must be linked"), "{e}");
}

#[test]
fn attributes_are_queried_per_device() {
    let device = device();
    let kernel = shared_kernel();
    let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    kernel.set_attribute(&device, attribute, 1024).unwrap();
    assert_eq!(kernel.attribute(&device, attribute).unwrap(), 1024);
    assert!(kernel.set_attribute(&device, attribute, -5).is_err());
}

#[test]
fn occupancy_needs_no_current_context() {
    thread::spawn(|| {
        let device = Device::new(0).unwrap();
        let kernel = shared_kernel();
        assert!(kernel.max_active_blocks(&device, 128, 0).unwrap() > 0);
        assert!(kernel.max_active_blocks(&device, 0, 0).is_err());
        let one = kernel.available_dynamic_shared(&device, 1, 128).unwrap();
        assert!(kernel.available_dynamic_shared(&device, 2, 128).unwrap() < one);
        let plain = kernel
            .max_potential_block_size(&device, DynamicSharedMemory::Bytes(0), 0)
            .unwrap();
        assert!(plain.max_block_size > 0 && plain.min_grid_size > 0);
        let asked = AtomicUsize::new(0);
        let mut none = |_threads: u32| {
            asked.fetch_add(1, Ordering::Relaxed);
            0
        };
        let same =
            kernel.max_potential_block_size(&device, DynamicSharedMemory::PerBlock(&mut none), 0);
        assert_eq!(same.unwrap(), plain);
        assert!(asked.load(Ordering::Relaxed) > 0);
    })
    .join()
    .unwrap();
}

#[test]
fn a_panic_in_an_occupancy_callback_is_propagated() {
    let device = device();
    let kernel = shared_kernel();
    let caught = std::panic::catch_unwind(|| {
        let mut fails = |_: u32| -> usize { panic!("asked") };
        kernel.max_potential_block_size(&device, DynamicSharedMemory::PerBlock(&mut fails), 0)
    });
    assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"asked"));
    assert!(
        kernel
            .max_potential_block_size(&device, DynamicSharedMemory::Bytes(0), 0)
            .is_ok()
    );
}

#[test]
fn two_modules_are_linked_and_run() {
    let device = device();
    if !has_nvjitlink() {
        return;
    }
    let options = LinkerOptions {
        name: "both".into(),
        ..LinkerOptions::default()
    };
    let mut linker = Linker::new(&parts(), &options).unwrap();
    assert_eq!(linker.backend(), LinkerBackend::NvJitLink);
    let code = linker.link(CodeKind::Cubin).unwrap();
    assert_eq!((code.kind(), code.name()), (CodeKind::Cubin, "both"));
    let e = linker.link(CodeKind::Cubin).unwrap_err().to_string();
    assert!(e.contains("already"), "{e}");
    drop(linker);
    let kernel = code.kernel("square").unwrap();
    let data = device.buffer_from(&[1.0f32, 2.0, 3.0]).unwrap();
    let stream = device.create_stream().unwrap();
    // SAFETY: each thread reads and writes one element; `data` has as many elements as the launch has threads.
    unsafe { kernel.launch(&stream, &LaunchConfig::linear(1, 3), &(&data,)) }.unwrap();
    stream.synchronize().unwrap();
    assert_eq!(data.to_vec().unwrap(), [1.0, 4.0, 9.0]);
}

#[test]
fn unlinkable_inputs_are_explained() {
    device();
    let none: [ObjectCode; 0] = [];
    assert!(matches!(
        Linker::new(&none, &LinkerOptions::default()),
        Err(Error::InvalidArgument { .. })
    ));
    if !has_nvjitlink() {
        return;
    }
    let [_, user] = parts();
    let mut linker = Linker::new([&user], &LinkerOptions::default()).unwrap();
    let e = linker.link(CodeKind::Cubin).unwrap_err().to_string();
    assert!(e.contains("helper"), "{e}");
    assert!(linker.error_log().contains("helper"));
    assert!(matches!(
        Linker::new([&user], &LinkerOptions::default())
            .unwrap()
            .link(CodeKind::LtoIr),
        Err(Error::InvalidArgument { .. })
    ));
    let options = LinkerOptions {
        arch: Some("sm_1".into()),
        ..LinkerOptions::default()
    };
    assert!(matches!(
        Linker::new([&user], &options),
        Err(Error::NvJitLink { .. })
    ));
}
