//! Wrappers of the functions that destroy handles: each records the handle and calls the original. Also the functions
//! through which owners destroy their own handles, which record nothing.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use super::{
    OWNED, OwnedKind, active_primary, ending, is_refusal, note_context, noting, undo_context,
};
use cupyrite_sys::driver::{
    self, CUarray, CUdevice, CUevent, CUgraph, CUgraphExec, CUgraphNode, CUlibrary, CUmemoryPool,
    CUmipmappedArray, CUresult, CUstream, CUsurfObject, CUtexObject, Symbol,
};
use cupyrite_sys::loader::{CudaLibrary, LoadError};

/// A function that destroys an object: the address that its wrapper replaced.
pub(super) struct Original(pub(super) AtomicPtr<c_void>);

impl Original {
    pub(super) const fn new() -> Original {
        Original(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// # Safety
    ///
    /// The function takes one pointer and returns an `int`; it was resolved; the caller keeps its contract.
    #[inline(always)]
    pub(super) unsafe fn call<T>(&self, handle: *mut T) -> c_int {
        // SAFETY: the caller's promise.
        unsafe {
            let function: unsafe extern "C" fn(*mut T) -> c_int =
                std::mem::transmute(self.0.load(Ordering::Acquire));
            function(handle)
        }
    }

    /// Records the handle, then makes the program's call.
    ///
    /// # Safety
    ///
    /// The contract of [`Original::call`].
    pub(super) unsafe fn noted(&self, kind: OwnedKind, handle: *mut c_void) -> c_int {
        if !OWNED[kind as usize].load(Ordering::Acquire) {
            // SAFETY: the caller's promise.
            return unsafe { self.call(handle) };
        }
        // SAFETY: the caller's promise.
        noting(kind, handle.addr(), is_refusal, || unsafe {
            self.call(handle)
        })
    }
}

macro_rules! wrappers {
    ($($wrapper:ident $original:ident $kind:ident;)*) => {$(
        static $original: Original = Original::new();

        unsafe extern "C" fn $wrapper(handle: *mut c_void) -> c_int {
            // SAFETY: `wrap` stores the address before it gives out this one; the handle is the caller's promise.
            unsafe { $original.noted(OwnedKind::$kind, handle) }
        }
    )*};
}

wrappers! {
    cu_library_unload CU_LIBRARY_UNLOAD Library;
    cu_stream_destroy CU_STREAM_DESTROY Stream;
    cu_event_destroy CU_EVENT_DESTROY Event;
    cuda_library_unload CUDA_LIBRARY_UNLOAD Library;
    cuda_stream_destroy CUDA_STREAM_DESTROY Stream;
    cuda_event_destroy CUDA_EVENT_DESTROY Event;
    cu_array_destroy CU_ARRAY_DESTROY Array;
    cu_mipmapped_array_destroy CU_MIPMAPPED_ARRAY_DESTROY MipmappedArray;
    cuda_free_array CUDA_FREE_ARRAY Array;
    cuda_free_mipmapped_array CUDA_FREE_MIPMAPPED_ARRAY MipmappedArray;
    cu_graph_destroy CU_GRAPH_DESTROY Graph;
    cu_graph_exec_destroy CU_GRAPH_EXEC_DESTROY GraphExec;
    cu_graph_destroy_node CU_GRAPH_DESTROY_NODE GraphNode;
    cuda_graph_destroy CUDA_GRAPH_DESTROY Graph;
    cuda_graph_exec_destroy CUDA_GRAPH_EXEC_DESTROY GraphExec;
    cuda_graph_destroy_node CUDA_GRAPH_DESTROY_NODE GraphNode;
    cu_mem_pool_destroy CU_MEM_POOL_DESTROY MemoryPool;
    cuda_mem_pool_destroy CUDA_MEM_POOL_DESTROY MemoryPool;
    cu_link_destroy CU_LINK_DESTROY LinkState;
}

/// [`Original::noted`] for a function of a compiler, which takes the address of a handle. Owners call it as well: the
/// record of their own handle affects no other owner.
///
/// # Safety
///
/// The function takes one address and returns an `int` that is 0 only if it has destroyed the object; it was resolved; the
/// caller keeps its contract.
unsafe fn noted_at(original: &Original, kind: OwnedKind, place: *mut *mut c_void) -> c_int {
    // SAFETY: the caller's promise.
    let call = || unsafe { original.call(place) };
    if place.is_null() || !OWNED[kind as usize].load(Ordering::Acquire) {
        return call();
    }
    // SAFETY: the function reads the handle there.
    let handle = unsafe { *place }.addr();
    noting(kind, handle, |status| status != 0, call)
}

macro_rules! indirect_wrappers {
    ($($wrapper:ident $original:ident $kind:ident;)*) => {$(
        static $original: Original = Original::new();

        unsafe extern "C" fn $wrapper(place: *mut *mut c_void) -> c_int {
            // SAFETY: `wrap` stores the original address before it returns this function; the caller upholds the
            // contract of the C function.
            unsafe { noted_at(&$original, OwnedKind::$kind, place) }
        }
    )*};
}

indirect_wrappers! {
    nvrtc_destroy_program NVRTC_DESTROY_PROGRAM NvrtcProgram;
    nvvm_destroy_program NVVM_DESTROY_PROGRAM NvvmProgram;
    nv_jit_link_destroy NV_JIT_LINK_DESTROY JitLink;
}

/// As [`Original::noted`], for a function that takes a 64-bit object instead of a pointer.
///
/// # Safety
///
/// The function takes one 64-bit number and returns an `int`; it was resolved; the caller keeps its contract.
unsafe fn noted_object(original: &Original, kind: OwnedKind, object: u64) -> c_int {
    let call = || {
        // SAFETY: the caller's promise.
        unsafe {
            let function: unsafe extern "C" fn(u64) -> c_int =
                std::mem::transmute(original.0.load(Ordering::Acquire));
            function(object)
        }
    };
    if !OWNED[kind as usize].load(Ordering::Acquire) {
        return call();
    }
    noting(kind, object as usize, is_refusal, call)
}

macro_rules! object_wrappers {
    ($($wrapper:ident $original:ident $kind:ident;)*) => {$(
        static $original: Original = Original::new();

        unsafe extern "C" fn $wrapper(object: u64) -> c_int {
            // SAFETY: `wrap` stores the original address before it returns this function; the caller upholds the
            // contract of the C function.
            unsafe { noted_object(&$original, OwnedKind::$kind, object) }
        }
    )*};
}

object_wrappers! {
    cu_tex_object_destroy CU_TEX_OBJECT_DESTROY Texture;
    cu_surf_object_destroy CU_SURF_OBJECT_DESTROY Surface;
    cuda_destroy_texture_object CUDA_DESTROY_TEXTURE_OBJECT Texture;
    cuda_destroy_surface_object CUDA_DESTROY_SURFACE_OBJECT Surface;
}

static CU_CTX_DESTROY: Original = Original::new();
static CU_PRIMARY_RESET: Original = Original::new();
static CUDA_DEVICE_RESET: Original = Original::new();

// The driver refuses to destroy a primary context, whose objects then stay live.
unsafe extern "C" fn cu_ctx_destroy(context: *mut c_void) -> c_int {
    ending(|| {
        let note = note_context(context.addr());
        // SAFETY: `wrap` stores the original address before it returns this function; the caller upholds the contract
        // of the C function.
        let status = unsafe { CU_CTX_DESTROY.call(context) };
        if is_refusal(status) {
            undo_context(context.addr(), note);
        }
        status
    })
}

unsafe extern "C" fn cu_primary_reset(device: CUdevice) -> c_int {
    ending(|| {
        if let Some(context) = active_primary(device) {
            note_context(context);
        }
        // SAFETY: `cuDevicePrimaryCtxReset` takes a device and returns a status; otherwise as in `wrappers`.
        unsafe {
            let reset: unsafe extern "C" fn(CUdevice) -> c_int =
                std::mem::transmute(CU_PRIMARY_RESET.0.load(Ordering::Acquire));
            reset(device)
        }
    })
}

unsafe extern "C" fn cuda_device_reset() -> c_int {
    ending(|| {
        let mut device: c_int = 0;
        // SAFETY: a valid place for the result.
        let current = unsafe { cupyrite_sys::runtime::cudaGetDevice(&mut device) };
        // The runtime's device numbers are the driver's device handles.
        if current.is_ok_and(|status| status.0 == 0)
            && let Some(context) = active_primary(device)
        {
            note_context(context);
        }
        // SAFETY: `cudaDeviceReset` takes nothing and returns a status; otherwise as in `wrappers`.
        unsafe {
            let reset: unsafe extern "C" fn() -> c_int =
                std::mem::transmute(CUDA_DEVICE_RESET.0.load(Ordering::Acquire));
            reset()
        }
    })
}

/// The address that the symbol table returns for a function: that of its wrapper, if it has one.
pub(crate) fn wrap(library: CudaLibrary, name: &CStr, address: *const c_void) -> *const c_void {
    type Destroy = unsafe extern "C" fn(*mut c_void) -> c_int;
    type DestroyObject = unsafe extern "C" fn(u64) -> c_int;
    type DestroyAt = unsafe extern "C" fn(*mut *mut c_void) -> c_int;
    let (original, wrapper) = match (library, name.to_bytes()) {
        (CudaLibrary::Driver, b"cuLibraryUnload") => (
            &CU_LIBRARY_UNLOAD,
            cu_library_unload as Destroy as *const c_void,
        ),
        (CudaLibrary::Driver, b"cuStreamDestroy") => (
            &CU_STREAM_DESTROY,
            cu_stream_destroy as Destroy as *const c_void,
        ),
        (CudaLibrary::Driver, b"cuEventDestroy") => (
            &CU_EVENT_DESTROY,
            cu_event_destroy as Destroy as *const c_void,
        ),
        (CudaLibrary::Driver, b"cuCtxDestroy") => {
            (&CU_CTX_DESTROY, cu_ctx_destroy as Destroy as *const c_void)
        }
        (CudaLibrary::Driver, b"cuDevicePrimaryCtxReset") => (
            &CU_PRIMARY_RESET,
            cu_primary_reset as unsafe extern "C" fn(CUdevice) -> c_int as *const c_void,
        ),
        (CudaLibrary::Runtime, b"cudaLibraryUnload") => (
            &CUDA_LIBRARY_UNLOAD,
            cuda_library_unload as Destroy as *const c_void,
        ),
        (CudaLibrary::Runtime, b"cudaStreamDestroy") => (
            &CUDA_STREAM_DESTROY,
            cuda_stream_destroy as Destroy as *const c_void,
        ),
        (CudaLibrary::Runtime, b"cudaEventDestroy") => (
            &CUDA_EVENT_DESTROY,
            cuda_event_destroy as Destroy as *const c_void,
        ),
        (CudaLibrary::Runtime, b"cudaDeviceReset") => (
            &CUDA_DEVICE_RESET,
            cuda_device_reset as unsafe extern "C" fn() -> c_int as *const c_void,
        ),
        (CudaLibrary::Driver, b"cuArrayDestroy") => (
            &CU_ARRAY_DESTROY,
            cu_array_destroy as Destroy as *const c_void,
        ),
        (CudaLibrary::Driver, b"cuMipmappedArrayDestroy") => (
            &CU_MIPMAPPED_ARRAY_DESTROY,
            cu_mipmapped_array_destroy as Destroy as *const c_void,
        ),
        (CudaLibrary::Driver, b"cuTexObjectDestroy") => (
            &CU_TEX_OBJECT_DESTROY,
            cu_tex_object_destroy as DestroyObject as *const c_void,
        ),
        (CudaLibrary::Driver, b"cuSurfObjectDestroy") => (
            &CU_SURF_OBJECT_DESTROY,
            cu_surf_object_destroy as DestroyObject as *const c_void,
        ),
        (CudaLibrary::Runtime, b"cudaFreeArray") => (
            &CUDA_FREE_ARRAY,
            cuda_free_array as Destroy as *const c_void,
        ),
        (CudaLibrary::Runtime, b"cudaFreeMipmappedArray") => (
            &CUDA_FREE_MIPMAPPED_ARRAY,
            cuda_free_mipmapped_array as Destroy as *const c_void,
        ),
        (CudaLibrary::Runtime, b"cudaDestroyTextureObject") => (
            &CUDA_DESTROY_TEXTURE_OBJECT,
            cuda_destroy_texture_object as DestroyObject as *const c_void,
        ),
        (CudaLibrary::Runtime, b"cudaDestroySurfaceObject") => (
            &CUDA_DESTROY_SURFACE_OBJECT,
            cuda_destroy_surface_object as DestroyObject as *const c_void,
        ),
        (CudaLibrary::Driver, b"cuGraphDestroy") => (
            &CU_GRAPH_DESTROY,
            cu_graph_destroy as Destroy as *const c_void,
        ),
        (CudaLibrary::Driver, b"cuGraphExecDestroy") => (
            &CU_GRAPH_EXEC_DESTROY,
            cu_graph_exec_destroy as Destroy as *const c_void,
        ),
        (CudaLibrary::Driver, b"cuGraphDestroyNode") => (
            &CU_GRAPH_DESTROY_NODE,
            cu_graph_destroy_node as Destroy as *const c_void,
        ),
        (CudaLibrary::Runtime, b"cudaGraphDestroy") => (
            &CUDA_GRAPH_DESTROY,
            cuda_graph_destroy as Destroy as *const c_void,
        ),
        (CudaLibrary::Runtime, b"cudaGraphExecDestroy") => (
            &CUDA_GRAPH_EXEC_DESTROY,
            cuda_graph_exec_destroy as Destroy as *const c_void,
        ),
        (CudaLibrary::Runtime, b"cudaGraphDestroyNode") => (
            &CUDA_GRAPH_DESTROY_NODE,
            cuda_graph_destroy_node as Destroy as *const c_void,
        ),
        (CudaLibrary::Driver, b"cuMemPoolDestroy") => (
            &CU_MEM_POOL_DESTROY,
            cu_mem_pool_destroy as Destroy as *const c_void,
        ),
        (CudaLibrary::Runtime, b"cudaMemPoolDestroy") => (
            &CUDA_MEM_POOL_DESTROY,
            cuda_mem_pool_destroy as Destroy as *const c_void,
        ),
        (CudaLibrary::Driver, b"cuLinkDestroy") => (
            &CU_LINK_DESTROY,
            cu_link_destroy as Destroy as *const c_void,
        ),
        (CudaLibrary::Nvrtc, b"nvrtcDestroyProgram") => (
            &NVRTC_DESTROY_PROGRAM,
            nvrtc_destroy_program as DestroyAt as *const c_void,
        ),
        (CudaLibrary::Nvvm, b"nvvmDestroyProgram") => (
            &NVVM_DESTROY_PROGRAM,
            nvvm_destroy_program as DestroyAt as *const c_void,
        ),
        (CudaLibrary::NvJitLink, b"nvJitLinkDestroy") => (
            &NV_JIT_LINK_DESTROY,
            nv_jit_link_destroy as DestroyAt as *const c_void,
        ),
        _ => match super::memory::wrapper(library, name) {
            Some(found) => found,
            None => return address,
        },
    };
    original.0.store(address.cast_mut(), Ordering::Release);
    wrapper
}

macro_rules! owners {
    ($($name:ident($handle:ident: $type:ty) $original:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, called by the handle's owner: not recorded.")]
        ///
        /// # Errors
        ///
        /// The driver or the symbol is missing.
        ///
        /// # Safety
        ///
        /// The contract of the driver's function.
        #[allow(non_snake_case)]
        #[inline(always)]
        pub unsafe fn $name($handle: $type) -> Result<CUresult, &'static LoadError> {
            // Resolving the function stores its address.
            driver::TABLE.get(Symbol::$name as usize)?;
            // SAFETY: resolved above; the caller's promise.
            Ok(CUresult(unsafe { $original.call($handle) }.cast_unsigned()))
        }
    )*};
}

owners! {
    cuLibraryUnload(library: CUlibrary) CU_LIBRARY_UNLOAD;
    cuStreamDestroy(stream: CUstream) CU_STREAM_DESTROY;
    cuEventDestroy(event: CUevent) CU_EVENT_DESTROY;
    cuArrayDestroy(array: CUarray) CU_ARRAY_DESTROY;
    cuMipmappedArrayDestroy(mipmapped: CUmipmappedArray) CU_MIPMAPPED_ARRAY_DESTROY;
    cuGraphDestroy(graph: CUgraph) CU_GRAPH_DESTROY;
    cuGraphExecDestroy(graph: CUgraphExec) CU_GRAPH_EXEC_DESTROY;
    cuGraphDestroyNode(node: CUgraphNode) CU_GRAPH_DESTROY_NODE;
    cuMemPoolDestroy(pool: CUmemoryPool) CU_MEM_POOL_DESTROY;
}

macro_rules! object_owners {
    ($($name:ident($object:ident: $type:ty) $original:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, called by the object's owner: not recorded.")]
        ///
        /// # Errors
        ///
        /// The driver or the symbol is missing.
        ///
        /// # Safety
        ///
        /// The contract of the driver's function.
        #[allow(non_snake_case)]
        pub unsafe fn $name($object: $type) -> Result<CUresult, &'static LoadError> {
            // Resolving the function stores its address.
            driver::TABLE.get(Symbol::$name as usize)?;
            // SAFETY: resolved above, with this signature; the caller's promise.
            let status = unsafe {
                let function: unsafe extern "C" fn($type) -> c_int =
                    std::mem::transmute($original.0.load(Ordering::Acquire));
                function($object)
            };
            Ok(CUresult(status.cast_unsigned()))
        }
    )*};
}

object_owners! {
    cuTexObjectDestroy(texture: CUtexObject) CU_TEX_OBJECT_DESTROY;
    cuSurfObjectDestroy(surface: CUsurfObject) CU_SURF_OBJECT_DESTROY;
}
