//! The functions of CUDA 12 that differ from CUDA 13's: parameters, and structures that end earlier.

use cupyrite_sys::runtime::{
    cudaChannelFormatDesc, cudaDeviceProp_cuda12, cudaExternalMemoryHandleDesc_cuda12,
    cudaPointerAttributes_cuda12, cudaResourceDesc_cuda12, cudaResourceType,
    cudaResourceViewDesc_cuda12, cudaTextureDesc,
};

use super::*;

macro_rules! rt12 {
    ($name:literal $(, $arg:expr)* $(,)?) => {
        Error(call_cuda12($name, &[$($arg.word()),*]))
    };
}
macro_rules! ok12 {
    ($name:literal $(, $arg:expr)* $(,)?) => {
        assert_eq!(rt12!($name $(, $arg)*), Error::SUCCESS, $name)
    };
}

/// A structure followed by bytes that a function must neither write nor read as members.
#[repr(C)]
struct Guarded<T> {
    value: T,
    guard: [u8; 512],
}

impl<T: Default> Guarded<T> {
    fn new() -> Guarded<T> {
        Guarded {
            value: T::default(),
            guard: [0xAB; 512],
        }
    }
}

impl<T> Guarded<T> {
    fn check(&self) {
        assert!(self.guard.iter().all(|byte| *byte == 0xAB));
    }
}

#[test]
fn every_exported_name_has_a_function() {
    let (twelve, thirteen): (Vec<_>, Vec<_>) = (
        crate::exports_cuda12().collect(),
        crate::exports().collect(),
    );
    for name in &twelve {
        let name = CString::new(name.as_str()).unwrap();
        assert!(!get_proc_cuda12(&name).is_null(), "{name:?}");
    }
    let has = |names: &[String], name: &str| names.iter().any(|other| other == name);
    for name in [
        "cudaMemAdvise_v2",
        "cudaThreadExit",
        "cudaMemPrefetchAsync_v2_ptsz",
    ] {
        assert!(has(&twelve, name) && !has(&thirteen, name), "{name}");
    }
    for name in [
        "cudaGreenCtxCreate",
        "cudaLaunchHostFunc_v2",
        "cudaMemDiscardBatchAsync_ptsz",
    ] {
        assert!(has(&thirteen, name) && !has(&twelve, name), "{name}");
    }
    for name in [
        "cudaMalloc",
        "cudaGetDeviceProperties",
        "cudaMemAdvise",
        "__cudaRegisterFunction",
    ] {
        assert!(has(&thirteen, name) && has(&twelve, name), "{name}");
    }
    // What is the same in both is one function.
    for name in [c"cudaMalloc", c"cudaLaunchKernel", c"cudaGraphGetEdges_v2"] {
        assert_eq!(get_proc(name), get_proc_cuda12(name));
    }
}

#[test]
fn versions() {
    let mut version = 0i32;
    ok12!("cudaRuntimeGetVersion", &mut version);
    assert_eq!(version, 12090);
    assert_eq!(rt12!("cudaRuntimeGetVersion", 0), Error::INVALID_VALUE);
    // The default of `cudaGetDriverEntryPoint` is the first version with these parameters, which has an index of the failed copy.
    let (mut old, mut new) = (0u64, 0u64);
    let name = c"cuMemcpyBatchAsync";
    ok12!("cudaGetDriverEntryPoint", name, &mut old, 0, 0);
    ok!("cudaGetDriverEntryPoint", name, &mut new, 0, 0);
    assert!(old != 0 && new != 0 && old != new);
}

#[test]
fn device_properties() {
    let mut properties = Guarded::<cudaDeviceProp_cuda12>::new();
    ok12!("cudaGetDeviceProperties_v2", &mut properties, 0);
    properties.check();
    let value = properties.value;
    let mut rate = 0i32;
    ok!("cudaDeviceGetAttribute", &mut rate, 13, 0);
    assert_eq!(value.clockRate, rate);
    assert!(value.hostRegisterSupported == 1 && value.name[0] != 0);
    // The first version ends earlier.
    let mut old = cudaDeviceProp_cuda12 {
        hostRegisterSupported: 77,
        ..cudaDeviceProp_cuda12::default()
    };
    ok12!("cudaGetDeviceProperties", &mut old, 0);
    assert_eq!(old.hostRegisterSupported, 77);
    assert_eq!(
        old.reservedSharedMemPerBlock,
        value.reservedSharedMemPerBlock
    );
    assert_eq!((old.name, old.maxGridSize), (value.name, value.maxGridSize));
    assert_eq!(
        rt12!("cudaGetDeviceProperties", &mut old, 99),
        Error::INVALID_DEVICE
    );
    let mut chosen = -1;
    ok12!("cudaChooseDevice", &mut chosen, &value);
    assert_eq!(chosen, 0);
}

#[test]
fn pointer_attributes_end_with_the_host_pointer() {
    let mut address = 0u64;
    ok!("cudaMalloc", &mut address, 64);
    let mut attributes = Guarded::<cudaPointerAttributes_cuda12>::new();
    ok12!("cudaPointerGetAttributes", &mut attributes, address);
    attributes.check();
    let value = attributes.value;
    assert_eq!((value.r#type.0, value.device), (2, 0));
    assert_eq!(value.devicePointer as u64, address);
    ok!("cudaFree", address);
}

#[test]
fn texture_and_surface_descriptors_end_with_their_union() {
    let mut format = cudaChannelFormatDesc::default();
    (format.x, format.f) = (
        32,
        cupyrite_sys::runtime::cudaChannelFormatKind::cudaChannelFormatKindFloat,
    );
    let mut array = 0u64;
    // With cudaArraySurfaceLoadStore.
    ok!("cudaMallocArray", &mut array, &format, 16, 16, 2);
    let mut resource = Guarded::<cudaResourceDesc_cuda12>::new();
    resource.value.resType = cudaResourceType::cudaResourceTypeArray;
    resource.value.res.array.array = array as *mut _;
    let mut view = Guarded::<cudaResourceViewDesc_cuda12>::new();
    // cudaResViewFormatFloat1
    view.value.format.0 = 0x16;
    (view.value.width, view.value.height) = (16, 16);
    let texture_descriptor = cudaTextureDesc::default();
    let (mut texture, mut surface) = (0u64, 0u64);
    ok12!(
        "cudaCreateTextureObject",
        &mut texture,
        &resource,
        &texture_descriptor,
        &view
    );
    ok12!("cudaCreateSurfaceObject", &mut surface, &resource);
    let mut back = Guarded::<cudaResourceDesc_cuda12>::new();
    ok12!("cudaGetTextureObjectResourceDesc", &mut back, texture);
    back.check();
    // SAFETY: a handle is a number.
    assert_eq!(unsafe { back.value.res.array.array } as u64, array);
    back.value = cudaResourceDesc_cuda12::default();
    ok12!("cudaGetSurfaceObjectResourceDesc", &mut back, surface);
    back.check();
    // SAFETY: a handle is a number.
    assert_eq!(unsafe { back.value.res.array.array } as u64, array);
    let mut view_back = Guarded::<cudaResourceViewDesc_cuda12>::new();
    ok12!(
        "cudaGetTextureObjectResourceViewDesc",
        &mut view_back,
        texture
    );
    view_back.check();
    assert_eq!(
        (view_back.value.width, view_back.value.format.0),
        (16, 0x16)
    );
    for (out, resource, texture) in [(0, 1, 1), (1, 0, 1), (1, 1, 0)] {
        let arguments = [out, resource, texture, 0];
        assert_eq!(
            Error(call_cuda12("cudaCreateTextureObject", &arguments)),
            Error::INVALID_VALUE
        );
    }
    ok!("cudaDestroyTextureObject", texture);
    ok!("cudaDestroySurfaceObject", surface);
    ok!("cudaFreeArray", array);
}

#[test]
fn managed_memory_by_device() {
    let mut address = 0u64;
    ok!("cudaMallocManaged", &mut address, 4096, 1);
    // cudaMemAdviseSetPreferredLocation, and its device as cudaMemRangeAttributePreferredLocation.
    ok12!("cudaMemAdvise", address, 4096, 3, 0);
    let mut device = 7i32;
    ok!("cudaMemRangeGetAttribute", &mut device, 4, 2, address, 4096);
    assert_eq!(device, 0);
    // cudaCpuDeviceId
    ok12!("cudaMemAdvise", address, 4096, 3, -1);
    ok!("cudaMemRangeGetAttribute", &mut device, 4, 2, address, 4096);
    assert_eq!(device, -1);
    assert_eq!(
        rt12!("cudaMemAdvise", address, 4096, 3, 99),
        Error::INVALID_VALUE
    );
    ok12!("cudaMemPrefetchAsync", address, 4096, 0, 0);
    ok12!("cudaMemPrefetchAsync_ptsz", address, 4096, -1, 0);
    assert_eq!(
        rt12!("cudaMemPrefetchAsync", address, 4096, 99, 0),
        Error::INVALID_DEVICE
    );
    // The second versions take a location: type 1 is a device, in the low half.
    ok12!("cudaMemAdvise_v2", address, 4096, 3, 1u64);
    ok12!("cudaMemPrefetchAsync_v2", address, 4096, 1u64, 0, 0);
    ok!("cudaDeviceSynchronize");
    ok!("cudaFree", address);
}

#[test]
fn graphs_without_edge_data() {
    let (mut graph, mut first, mut second) = (0u64, 0u64, 0u64);
    ok!("cudaGraphCreate", &mut graph, 0);
    ok!("cudaGraphAddEmptyNode", &mut first, graph, 0, 0);
    ok!("cudaGraphAddEmptyNode", &mut second, graph, 0, 0);
    ok12!("cudaGraphAddDependencies", graph, &first, &second, 1);
    let (mut from, mut to, mut count) = ([0u64; 2], [0u64; 2], 2usize);
    ok12!("cudaGraphGetEdges", graph, &mut from, &mut to, &mut count);
    assert_eq!((from[0], to[0], count), (first, second, 1));
    ok12!(
        "cudaGraphNodeGetDependencies",
        second,
        &mut from,
        &mut count
    );
    assert_eq!((from[0], count), (first, 1));
    ok12!("cudaGraphNodeGetDependentNodes", first, &mut to, &mut count);
    assert_eq!((to[0], count), (second, 1));
    ok12!(
        "cudaGraphGetEdges_v2",
        graph,
        &mut from,
        &mut to,
        0,
        &mut count
    );
    assert_eq!(count, 1);
    ok12!("cudaGraphRemoveDependencies", graph, &first, &second, 1);
    ok12!("cudaGraphGetEdges", graph, 0, 0, &mut count);
    assert_eq!(count, 0);
    // An empty node, after both others.
    let mut parameters = [0u64; 32];
    parameters[0] = 5;
    let mut third = 0u64;
    ok12!(
        "cudaGraphAddNode",
        &mut third,
        graph,
        &[first, second],
        2,
        &mut parameters
    );
    count = 2;
    ok12!("cudaGraphNodeGetDependencies", third, &mut from, &mut count);
    assert_eq!((from, count), ([first, second], 2));
    ok!("cudaGraphDestroy", graph);
}

#[test]
fn stream_capture() {
    let mut stream = 0u64;
    ok!("cudaStreamCreateWithFlags", &mut stream, 1);
    // In relaxed mode, other tests may allocate meanwhile.
    ok!("cudaStreamBeginCapture", stream, 2);
    let (mut status, mut id) = (0i32, 0u64);
    ok12!("cudaStreamGetCaptureInfo", stream, &mut status, &mut id);
    assert!(status == 1 && id != 0);
    let (mut graph, mut nodes, mut count) = (0u64, 0u64, 9usize);
    let mut second = 0u64;
    ok12!(
        "cudaStreamGetCaptureInfo_v2",
        stream,
        &mut status,
        &mut second,
        &mut graph,
        &mut nodes,
        &mut count
    );
    assert!(graph != 0 && count == 0 && second == id);
    let mut node = 0u64;
    ok!("cudaGraphAddEmptyNode", &mut node, graph, 0, 0);
    // cudaStreamSetCaptureDependencies
    ok12!(
        "cudaStreamUpdateCaptureDependencies",
        stream,
        &mut node,
        1,
        1
    );
    let mut data = 0u64;
    ok12!(
        "cudaStreamGetCaptureInfo_v3",
        stream,
        &mut status,
        &mut id,
        &mut graph,
        &mut nodes,
        &mut data,
        &mut count
    );
    assert_eq!(count, 1);
    ok!("cudaStreamEndCapture", stream, &mut graph);
    ok!("cudaGraphDestroy", graph);
    ok!("cudaStreamDestroy", stream);
}

#[test]
fn batches_report_the_copy_that_failed() {
    let mut stream = 0u64;
    ok!("cudaStreamCreate", &mut stream);
    let (from, mut to) = ([1u32, 2], [0u32; 2]);
    let (froms, tos) = ([&raw const from as u64], [&raw mut to as u64]);
    // One attribute: the source is read in stream order.
    let mut attributes = [0u32; 8];
    attributes[0] = 1;
    let mut failed = 0usize;
    ok12!(
        "cudaMemcpyBatchAsync",
        &tos,
        &froms,
        &[8usize],
        1,
        &attributes,
        &[0usize],
        1,
        &mut failed,
        stream
    );
    ok!("cudaStreamSynchronize", stream);
    assert_eq!(to, from);
    let mut device = 0u64;
    ok!("cudaMalloc", &mut device, 16);
    // The second copy has no bytes in the address space.
    let status = rt12!(
        "cudaMemcpyBatchAsync",
        &[device, device],
        &[froms[0], 0],
        &[8usize, 8],
        2,
        &attributes,
        &[0usize],
        1,
        &mut failed,
        stream
    );
    assert_eq!((status, failed), (Error::INVALID_VALUE, 1));
    ok!("cudaFree", device);
    ok!("cudaStreamDestroy", stream);
}

#[test]
fn events_and_former_names() {
    let (mut start, mut end) = (0u64, 0u64);
    ok!("cudaEventCreate", &mut start);
    ok!("cudaEventCreate", &mut end);
    ok!("cudaEventRecord", start, 0);
    ok!("cudaEventRecord", end, 0);
    ok12!("cudaThreadSynchronize");
    let mut milliseconds = -1f32;
    ok12!("cudaEventElapsedTime", &mut milliseconds, start, end);
    assert!(milliseconds >= 0.0);
    ok12!("cudaEventElapsedTime_v2", &mut milliseconds, start, end);
    assert_eq!(
        rt12!("cudaEventElapsedTime", 0, start, end),
        Error::INVALID_VALUE
    );
    let mut limit = 0usize;
    ok12!("cudaThreadGetLimit", &mut limit, 0);
    ok12!("cudaThreadSetLimit", 0, limit);
    let mut number = 1.1f64;
    ok12!("cudaSetDoubleForDevice", &mut number);
    ok12!("cudaSetDoubleForHost", &mut number);
    assert_eq!(number, 1.1);
    let launch = rt12!("cudaLaunchCooperativeKernelMultiDevice", 0, 0, 0);
    assert_eq!(launch, Error::INVALID_VALUE);
    ok!("cudaEventDestroy", start);
    ok!("cudaEventDestroy", end);
}

#[test]
fn descriptors_of_external_memory_reach_the_function_of_cuda_13() {
    let descriptor = Guarded::<cudaExternalMemoryHandleDesc_cuda12>::new();
    let mut memory = 0u64;
    let old = rt12!("cudaImportExternalMemory", &mut memory, &descriptor);
    let new = rt!("cudaImportExternalMemory", &mut memory, &[0u64; 16]);
    assert_eq!(old, new);
}
