//! Calls of the device runtime, executed by a runtime that records them; addresses of kernels.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cupyrite_engine::memory::{AddressSpace, RegionKind};
use cupyrite_engine::{
    DeviceRuntime, FaultKind, Image, KernelMemory, LaunchConfig, LoadErrorKind, RuntimeCall,
    RuntimeFault, RuntimeFunction, launch,
};
use parking_lot::Mutex;

const HEAD: &str = "
.version 8.0
.target sm_89
.address_size 64
.extern .func (.param .b32 r) __cudaCDP2GetDevice(.param .b64 p);
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(
    .param .b64 f, .param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2_ptsz(.param .b64 p, .param .b64 s);
";

const KERNELS: &str = r"
.visible .entry child(.param .u64 p);
.visible .entry other() { ret; }
.visible .global .align 8 .u64 table[2] = {other, child};

.visible .entry parent(.param .u64 out)
{
    .reg .b64 %f, %p, %out;
    .reg .b32 %s;
    ld.param.u64 %out, [out];
    mov.u64 %f, child;
    {
        .param .b64 f, r;
        .param .align 4 .b8 g[12];
        .param .align 4 .b8 b[12];
        .param .b32 s;
        st.param.b64 [f], %f;
        st.param.b32 [g], 2;
        st.param.b32 [g+4], 3;
        st.param.b32 [g+8], 4;
        st.param.b32 [b], 5;
        st.param.b32 [b+4], 6;
        st.param.b32 [b+8], 7;
        st.param.b32 [s], 4294967295;
        call.uni (r), __cudaCDP2GetParameterBufferV2, (f, g, b, s);
        ld.param.b64 %p, [r];
    }
    {
        .param .b64 p, s;
        .param .b32 r;
        st.param.b64 [p], %p;
        st.param.b64 [s], 0;
        call.uni (r), __cudaCDP2LaunchDeviceV2_ptsz, (p, s);
        ld.param.b32 %s, [r];
    }
    st.global.u32 [%out], %s;
    ret;
}

.visible .entry child(.param .u64 p) { ret; }

.visible .entry device_in_local(.param .u64 out)
{
    .local .align 4 .b8 frame[4];
    .reg .b64 %p, %out;
    .reg .b32 %v;
    ld.param.u64 %out, [out];
    mov.u64 %p, frame;
    cvta.local.u64 %p, %p;
    {
        .param .b64 p;
        .param .b32 r;
        st.param.b64 [p], %p;
        call.uni (r), __cudaCDP2GetDevice, (p);
    }
    ld.local.u32 %v, [frame];
    st.global.u32 [%out], %v;
    ret;
}

.visible .entry device_at(.param .u64 out)
{
    .reg .b64 %p;
    ld.param.u64 %p, [out];
    {
        .param .b64 p;
        .param .b32 r;
        st.param.b64 [p], %p;
        call.uni (r), __cudaCDP2GetDevice, (p);
    }
    ret;
}
";

/// Function, whether its null stream is that of the thread, block, thread and arguments of a call.
type Recorded = (RuntimeFunction, bool, u64, u32, Vec<u64>);

/// Records the calls; returns an address for a parameter buffer and 77 otherwise.
#[derive(Default)]
struct Recorder {
    calls: Mutex<Vec<Recorded>>,
    progress: AtomicUsize,
    stops: bool,
}

impl DeviceRuntime for Recorder {
    fn call(
        &self,
        call: &RuntimeCall<'_>,
        memory: &mut dyn KernelMemory,
    ) -> Result<u64, RuntimeFault> {
        let args = call.args.to_vec();
        self.calls.lock().push((
            call.function,
            call.per_thread_stream,
            call.block,
            call.thread,
            args,
        ));
        match call.function {
            RuntimeFunction::GetParameterBufferV2 => Ok(0x1234_5678_9abc),
            RuntimeFunction::GetDevice => {
                memory.write(call.args[0], &5u32.to_le_bytes())?;
                let mut read = [0; 4];
                memory.read(call.args[0], &mut read)?;
                Ok(u32::from_le_bytes(read).into())
            }
            _ => Ok(77),
        }
    }

    fn make_progress(&self) -> bool {
        self.progress.fetch_add(1, Ordering::Relaxed);
        !self.stops
    }
}

fn load(text: &str) -> (Arc<AddressSpace>, Image) {
    let space = Arc::new(AddressSpace::new(1 << 30));
    let image = Image::load(&format!("{HEAD}{text}"), &space).expect("valid PTX");
    (space, image)
}

/// Runs a kernel with one pointer, in blocks of one thread.
fn run(
    image: &Image,
    kernel: &str,
    out: u64,
    grid: u32,
    runtime: Option<&dyn DeviceRuntime>,
) -> Result<(), FaultKind> {
    let kernel = image.kernel(kernel).expect("the kernel");
    assert_eq!(kernel.unsupported(), None);
    let params = out.to_le_bytes();
    let config = LaunchConfig {
        runtime,
        ..LaunchConfig::new([grid, 1, 1], [1, 1, 1], &params)
    };
    launch(&kernel, &config).map_err(|f| f.kind)
}

fn word(space: &AddressSpace) -> u64 {
    space.alloc(4, 4, RegionKind::Global).expect("memory")
}

fn read(at: u64) -> u32 {
    // SAFETY: an allocation of `word` that is not freed.
    unsafe { *(at as *const u32) }
}

#[test]
fn structures_are_passed_word_by_word() {
    let (space, image) = load(KERNELS);
    let (out, recorder) = (word(&space), Recorder::default());
    run(&image, "parent", out, 1, Some(&recorder)).expect("no fault");
    let child = image.kernel("child").expect("child");
    let address = child.address().expect("its address is taken");
    let calls = recorder.calls.into_inner();
    let words = vec![address, 2, 3, 4, 5, 6, 7, 0xffff_ffff];
    assert_eq!(
        calls,
        [
            (RuntimeFunction::GetParameterBufferV2, false, 0, 0, words),
            (
                RuntimeFunction::LaunchDeviceV2,
                true,
                0,
                0,
                vec![0x1234_5678_9abc, 0]
            ),
        ]
    );
    assert_eq!(read(out), 77);
}

#[test]
fn blocks_make_progress_with_what_they_launched() {
    let (space, image) = load(KERNELS);
    let (out, recorder) = (word(&space), Recorder::default());
    run(&image, "parent", out, 100, Some(&recorder)).expect("no fault");
    assert_eq!(recorder.progress.load(Ordering::Relaxed), 100);
    let mut blocks: Vec<u64> = recorder.calls.lock().iter().map(|c| c.2).collect();
    blocks.sort_unstable();
    blocks.dedup();
    assert_eq!(blocks, (0..100).collect::<Vec<u64>>());
    // A runtime can stop the grid, whose launch then has no fault of its own.
    let stopping = Recorder {
        stops: true,
        ..Recorder::default()
    };
    run(&image, "parent", out, 1_000_000, Some(&stopping)).expect("no fault");
    assert!(stopping.progress.load(Ordering::Relaxed) < 1_000_000);
}

#[test]
fn results_are_written_to_any_memory_of_the_thread() {
    let (space, image) = load(KERNELS);
    let (out, recorder) = (word(&space), Recorder::default());
    run(&image, "device_in_local", out, 1, Some(&recorder)).expect("no fault");
    assert_eq!(read(out), 5);
    let recorder = Recorder::default();
    for address in [16, out + 4] {
        let fault = run(&image, "device_at", address, 1, Some(&recorder));
        assert_eq!(fault, Err(FaultKind::IllegalAddress), "{address:#x}");
    }
}

#[test]
fn calls_without_a_runtime_are_faults() {
    let (space, image) = load(KERNELS);
    let fault = run(&image, "device_at", word(&space), 1, None);
    assert_eq!(fault, Err(FaultKind::IllegalInstruction));
    let uses = |name| image.kernel(name).expect(name).uses_device_runtime();
    assert!(uses("parent") && uses("device_at") && !uses("child"));
    let launches = |name| image.kernel(name).expect(name).launches_kernels();
    assert!(launches("parent") && !launches("device_at"));
}

#[test]
fn kernels_are_found_by_their_addresses() {
    let (_space, image) = load(KERNELS);
    let table = image.global("table").expect("the table").addr as *const u64;
    for (n, name) in ["other", "child"].iter().enumerate() {
        // SAFETY: the variable has two elements and lives as long as the image.
        let address = unsafe { *table.add(n) };
        let found = image.kernel_at(address).expect("a kernel");
        assert_eq!(found.name, *name);
        assert_eq!(found.address(), Some(address));
    }
    let (_other_space, again) = load(KERNELS);
    let child = |i: &Image| i.kernel("child").expect("child").address();
    assert_ne!(child(&image), child(&again));
    assert!(image.kernel_at(child(&again).expect("address")).is_none());
    assert_eq!(image.kernel("parent").expect("parent").address(), None);
}

#[test]
fn wrong_signatures_cannot_run() {
    let text = ".version 8.0\n.target sm_89\n.address_size 64\n\
        .extern .func (.param .b32 r) cudaStreamDestroy(.param .align 4 .b8 s[12]);\n\
        .visible .entry k() { .param .align 4 .b8 s[12]; .param .b32 r; call.uni (r), cudaStreamDestroy, (s); ret; }";
    let space = Arc::new(AddressSpace::new(1 << 30));
    let image = Image::load(text, &space).expect("valid PTX");
    let why = image.kernel("k").expect("k").unsupported().expect("why");
    assert!(
        why.contains("cudaStreamDestroy") && why.contains("12 bytes"),
        "{why}"
    );
}

#[test]
fn waiting_for_children_is_refused_when_loading() {
    let text = ".version 8.0\n.target sm_70\n.address_size 64\n\
        .extern .func (.param .b32 r) cudaDeviceSynchronize();\n\
        .visible .entry k() { .param .b32 r; call.uni (r), cudaDeviceSynchronize, (); ret; }";
    let space = Arc::new(AddressSpace::new(1 << 30));
    let error = Image::load(text, &space).expect_err("CDP1");
    assert_eq!(error.kind, LoadErrorKind::UnresolvedSymbol);
    assert!(error.message.contains("cudaStreamTailLaunch"), "{error}");
}
