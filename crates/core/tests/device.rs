//! The crate on the device of this process; `cargo xtask test` uses the CPU device.
//!
//! Tests that compile need NVRTC. Without it they print a message and pass: the library is a prerequisite, not the
//! subject of the test.

use std::sync::Arc;
use std::thread;

use cupyrite::sys::driver::{self, CUresult};
use cupyrite::{
    CodeKind, Device, Error, Event, EventOptions, FunctionAttribute, LaunchConfig, Library,
    ObjectCode, Program,
};

const PTX: &str = "\
.version 7.8
.target sm_75
.address_size 64
.visible .entry store(.param .u64 p, .param .u32 v)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [p];
    ld.param.u32 %r1, [v];
    cvta.to.global.u64 %rd2, %rd1;
    st.global.u32 [%rd2], %r1;
    ret;
}
";

fn device() -> Device {
    Device::new(0).expect("a device: the CPU device serves where there is no GPU")
}

/// Compiled code, or `None` where NVRTC is not installed.
fn compile(device: &Device, source: &str) -> Option<ObjectCode> {
    match Program::new(source).compile_for(device) {
        Ok(code) => Some(code),
        Err(Error::Load(e)) => {
            eprintln!("skipped: {e}");
            None
        }
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn devices_describe_themselves() {
    let device = device();
    assert!(!device.name().unwrap().is_empty());
    assert!(device.total_memory().unwrap() > 1 << 20);
    assert!(device.compute_capability().unwrap().major >= 5);
    assert_ne!(device.uuid().unwrap(), [0; 16]);
    assert_eq!(Device::all().unwrap().len(), Device::count().unwrap());
}

#[test]
fn a_missing_device_is_named() {
    let e = Device::new(1000).unwrap_err().to_string();
    assert!(e.contains("`ordinal`") && e.contains("1000"), "{e}");
}

#[test]
fn buffers_round_trip() {
    let device = device();
    let data: Vec<f64> = (0..1000).map(f64::from).collect();
    let a = device.buffer_from(&data).unwrap();
    assert_eq!(a.to_vec().unwrap(), data);
    let b = device.buffer_zeroed::<f64>(1000).unwrap();
    assert!(b.to_vec().unwrap().iter().all(|v| *v == 0.0));
    let stream = device.create_stream().unwrap();
    b.copy_from_buffer(&stream, &a).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(b.to_vec().unwrap(), data);
    let empty = device.buffer::<u8>(0).unwrap();
    assert!(empty.is_empty() && empty.to_vec().unwrap().is_empty());
}

#[test]
fn lengths_are_checked() {
    let device = device();
    let a = device.buffer::<u32>(4).unwrap();
    let e = a.copy_from(&[1, 2, 3]).unwrap_err().to_string();
    assert!(
        e.contains("`data`") && e.contains('3') && e.contains('4'),
        "{e}"
    );
    assert!(matches!(
        device.buffer::<u64>(usize::MAX / 4),
        Err(Error::InvalidArgument { .. })
    ));
    let huge = device.buffer::<u8>(1 << 60);
    assert!(matches!(
        huge,
        Err(Error::Driver {
            status: CUresult::CUDA_ERROR_OUT_OF_MEMORY,
            ..
        })
    ));
}

#[test]
fn ptx_text_runs() {
    let device = device();
    let module = Library::load(PTX.as_bytes()).unwrap();
    let kernel = module.kernel("store").unwrap();
    let params = kernel.params().unwrap();
    assert_eq!(
        params
            .iter()
            .map(|p| (p.offset, p.size))
            .collect::<Vec<_>>(),
        [(0, 8), (8, 4)]
    );
    let out = device.buffer_zeroed::<u32>(1).unwrap();
    let stream = device.create_stream().unwrap();
    // SAFETY: the kernel writes one element of `out`.
    unsafe {
        kernel
            .launch(&stream, &LaunchConfig::linear(1, 1), &(&out, 7u32))
            .unwrap()
    };
    // SAFETY: the kernel writes one number at `out`.
    unsafe {
        kernel
            .launch(&stream, &LaunchConfig::linear(1, 1), &(out.as_ptr(), 8u32))
            .unwrap()
    };
    stream.synchronize().unwrap();
    assert_eq!(out.to_vec().unwrap(), [8]);
}

#[test]
fn wrong_arguments_are_named_before_anything_runs() {
    let device = device();
    let kernel = Library::load(PTX.as_bytes())
        .unwrap()
        .kernel("store")
        .unwrap();
    let stream = device.create_stream().unwrap();
    let out = device.buffer_zeroed::<u32>(1).unwrap();
    let config = LaunchConfig::linear(1, 1);
    // SAFETY: never launched: one argument is missing.
    let e = unsafe { kernel.launch(&stream, &config, &(&out,)) }
        .unwrap_err()
        .to_string();
    assert!(e.contains("takes 2"), "{e}");
    // SAFETY: never launched: the second argument has the wrong size.
    let e = unsafe { kernel.launch(&stream, &config, &(&out, 7u64)) }
        .unwrap_err()
        .to_string();
    assert!(e.contains("`args.1`") && e.contains("8 bytes"), "{e}");
}

#[test]
fn broken_ptx_shows_the_loaders_log() {
    let e = Library::load(PTX.replace("ret;", "nonsense;").as_bytes()).unwrap_err();
    let Error::Driver {
        status: CUresult::CUDA_ERROR_INVALID_PTX,
        log,
        ..
    } = &e
    else {
        panic!("{e}")
    };
    assert!(log.contains("nonsense") || log.contains("line"), "{log}");
}

#[test]
fn missing_names_are_reported() {
    let module = Library::load(PTX.as_bytes()).unwrap();
    let e = module.kernel("missing").unwrap_err().to_string();
    assert!(e.contains("missing"), "{e}");
    assert!(
        module
            .global(&device(), "missing")
            .unwrap_err()
            .to_string()
            .contains("missing")
    );
    assert!(module.kernel("a\0b").is_err());
}

#[test]
fn a_kernel_keeps_its_library_loaded() {
    let device = device();
    let kernel = {
        let module = Library::load(PTX.as_bytes()).unwrap();
        module.kernel("store").unwrap()
    };
    let out = device.buffer_zeroed::<u32>(1).unwrap();
    let stream = device.create_stream().unwrap();
    // SAFETY: the kernel writes one element of `out`.
    unsafe {
        kernel
            .launch(&stream, &LaunchConfig::linear(1, 1), &(&out, 3u32))
            .unwrap()
    };
    drop(kernel);
    stream.synchronize().unwrap();
    drop(stream);
    assert_eq!(out.to_vec().unwrap(), [3]);
}

#[test]
fn compiled_code_runs() {
    let device = device();
    let source = r#"
        extern "C" __global__ void saxpy(float a, const float *x, const float *y, float *out, size_t n)
        { size_t i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[i] = a * x[i] + y[i]; }"#;
    let Some(module) = compile(&device, source) else {
        return;
    };
    let kernel = module.kernel("saxpy").unwrap();
    assert!(
        kernel
            .attribute(&device, FunctionAttribute::CU_FUNC_ATTRIBUTE_NUM_REGS)
            .unwrap()
            > 0
    );
    let n = 10_000usize;
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let dx = device.buffer_from(&x).unwrap();
    let out = device.buffer_zeroed::<f32>(n).unwrap();
    let stream = device.create_stream().unwrap();
    let before = stream.record().unwrap();
    // SAFETY: all buffers have `n` elements.
    unsafe {
        kernel
            .launch(
                &stream,
                &LaunchConfig::for_elements(n, 256),
                &(2f32, &dx, &dx, &out, n),
            )
            .unwrap()
    };
    let after = stream.record().unwrap();
    after.synchronize().unwrap();
    assert!(after.is_done().unwrap() && stream.is_done().unwrap());
    assert!(after.elapsed_since(&before).unwrap().as_secs_f64() < 60.0);
    assert_eq!(
        out.to_vec().unwrap(),
        x.iter().map(|v| 3.0 * v).collect::<Vec<_>>()
    );
}

#[test]
fn name_expressions_headers_and_both_kinds_of_code() {
    let device = device();
    let program =
        Program::new("#include \"scale.h\"\ntemplate __global__ void scale<int>(int *, int);")
            .header(
                "scale.h",
                "template <class T> __global__ void scale(T *x, T by) { x[threadIdx.x] *= by; }",
            )
            .name_expression("scale<int>");
    let cc = device.compute_capability().unwrap();
    for (arch, kind) in [("compute", CodeKind::Ptx), ("sm", CodeKind::Cubin)] {
        let code = match program.compile(&format!("{arch}_{}{}", cc.major, cc.minor)) {
            Ok(code) => code,
            Err(Error::Load(e)) => return eprintln!("skipped: {e}"),
            Err(e) => panic!("{e}"),
        };
        assert_eq!(code.kind(), kind);
        let kernel = code
            .kernel(code.lowered_name("scale<int>").unwrap())
            .unwrap();
        let x = device.buffer_from(&[1i32, 2, 3]).unwrap();
        let stream = device.create_stream().unwrap();
        // SAFETY: each of the three threads accesses one of the three elements.
        unsafe {
            kernel
                .launch(&stream, &LaunchConfig::linear(1, 3), &(&x, 5i32))
                .unwrap()
        };
        stream.synchronize().unwrap();
        assert_eq!(x.to_vec().unwrap(), [5, 10, 15]);
    }
}

#[test]
fn compile_errors_carry_the_log() {
    match Program::new("__global__ void k() { undeclared; }")
        .named("mine.cu")
        .compile("compute_75")
    {
        Err(Error::Nvrtc { log, .. }) => assert!(
            log.contains("mine.cu") && log.contains("undeclared"),
            "{log}"
        ),
        Err(Error::Load(e)) => eprintln!("skipped: {e}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn events_order_streams() {
    let device = device();
    let (a, b) = (
        device.create_stream().unwrap(),
        device.create_stream().unwrap(),
    );
    let event = Event::new(device.context().unwrap(), &EventOptions::default()).unwrap();
    event.record(&a).unwrap();
    b.wait(&event).unwrap();
    b.synchronize().unwrap();
    assert!(event.is_done().unwrap());
    assert!(event.elapsed_since(&event).is_err(), "made without timing");
}

#[test]
fn threads_share_everything() {
    let device = device();
    let kernel = Arc::new(
        Library::load(PTX.as_bytes())
            .unwrap()
            .kernel("store")
            .unwrap(),
    );
    let threads: Vec<_> = (0..8u32)
        .map(|k| {
            let (device, kernel) = (device, kernel.clone());
            thread::spawn(move || {
                let stream = device.create_stream().unwrap();
                let out = device.buffer_zeroed::<u32>(1).unwrap();
                for v in 0..50 {
                    // SAFETY: the kernel writes one element of this thread's `out`.
                    unsafe {
                        kernel
                            .launch(&stream, &LaunchConfig::linear(1, 1), &(&out, 100 * k + v))
                            .unwrap()
                    };
                }
                stream.synchronize().unwrap();
                out.to_vec().unwrap()[0]
            })
        })
        .collect();
    for (k, thread) in threads.into_iter().enumerate() {
        assert_eq!(thread.join().unwrap(), 100 * k as u32 + 49);
    }
}

#[test]
fn a_disowned_library_stays_loaded_without_its_owner() {
    let kernels = |library| {
        let mut count = 0;
        // SAFETY: `count` is valid for writes. The CPU device refuses unloaded libraries.
        unsafe { driver::cuLibraryGetKernelCount(&mut count, library) }.unwrap()
    };
    let owned = Library::load(PTX.as_bytes()).unwrap();
    let handle = owned.handle();
    assert_eq!(kernels(handle), CUresult::CUDA_SUCCESS);
    drop(owned);
    assert_ne!(kernels(handle), CUresult::CUDA_SUCCESS);

    let disowned = Library::load(PTX.as_bytes()).unwrap();
    let (handle, clone) = (disowned.handle(), disowned.clone());
    clone.disown();
    drop((disowned, clone));
    assert_eq!(kernels(handle), CUresult::CUDA_SUCCESS);
    // SAFETY: the library is loaded, and has no owner.
    let unloaded = unsafe { driver::cuLibraryUnload(handle) }.unwrap();
    assert_eq!(unloaded, CUresult::CUDA_SUCCESS);
}
