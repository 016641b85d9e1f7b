//! Result codes: numbers, names and descriptions, and the two entry points that report them.
//!
//! Numbers and names are CUDA's; the descriptions are this project's.

use std::ffi::CStr;

use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::put;
use crate::driver::entry::driver_entry_points;

/// A `CUresult` in this crate's internal results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub u32);

macro_rules! codes {
    ($($value:literal $name:ident $full:literal $text:literal,)*) => {
        #[allow(missing_docs)]
        impl Code { $(pub const $name: Code = Code($value);)* }
        /// Every code, sorted by number.
        static CODES: &[(u32, &CStr, &CStr)] = &[$(($value, $full, $text),)*];
    };
}

codes! {
    0 SUCCESS c"CUDA_SUCCESS" c"no error",
    1 INVALID_VALUE c"CUDA_ERROR_INVALID_VALUE" c"an argument is outside the range of acceptable values",
    2 OUT_OF_MEMORY c"CUDA_ERROR_OUT_OF_MEMORY" c"the device is out of memory",
    3 NOT_INITIALIZED c"CUDA_ERROR_NOT_INITIALIZED" c"the driver is not initialised; call cuInit first",
    4 DEINITIALIZED c"CUDA_ERROR_DEINITIALIZED" c"the driver is shutting down",
    5 PROFILER_DISABLED c"CUDA_ERROR_PROFILER_DISABLED" c"the profiler is disabled",
    6 PROFILER_NOT_INITIALIZED c"CUDA_ERROR_PROFILER_NOT_INITIALIZED" c"the profiler is not initialised",
    7 PROFILER_ALREADY_STARTED c"CUDA_ERROR_PROFILER_ALREADY_STARTED" c"the profiler is already started",
    8 PROFILER_ALREADY_STOPPED c"CUDA_ERROR_PROFILER_ALREADY_STOPPED" c"the profiler is already stopped",
    34 STUB_LIBRARY c"CUDA_ERROR_STUB_LIBRARY" c"a stub library was loaded instead of the driver",
    36 CALL_REQUIRES_NEWER_DRIVER c"CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER" c"the call needs a newer driver",
    46 DEVICE_UNAVAILABLE c"CUDA_ERROR_DEVICE_UNAVAILABLE" c"the device is busy or otherwise unavailable",
    47 MULTICAST_RESOURCE_FULL c"CUDA_ERROR_MULTICAST_RESOURCE_FULL" c"the multicast resources are used up",
    100 NO_DEVICE c"CUDA_ERROR_NO_DEVICE" c"no CUDA device was found",
    101 INVALID_DEVICE c"CUDA_ERROR_INVALID_DEVICE" c"no device has this ordinal",
    102 DEVICE_NOT_LICENSED c"CUDA_ERROR_DEVICE_NOT_LICENSED" c"the device is not licensed",
    200 INVALID_IMAGE c"CUDA_ERROR_INVALID_IMAGE" c"the module image is not valid",
    201 INVALID_CONTEXT c"CUDA_ERROR_INVALID_CONTEXT" c"no context is current, or the context handle is not valid",
    202 CONTEXT_ALREADY_CURRENT c"CUDA_ERROR_CONTEXT_ALREADY_CURRENT" c"the context is already current",
    205 MAP_FAILED c"CUDA_ERROR_MAP_FAILED" c"mapping failed",
    206 UNMAP_FAILED c"CUDA_ERROR_UNMAP_FAILED" c"unmapping failed",
    207 ARRAY_IS_MAPPED c"CUDA_ERROR_ARRAY_IS_MAPPED" c"the array is mapped",
    208 ALREADY_MAPPED c"CUDA_ERROR_ALREADY_MAPPED" c"the resource is already mapped",
    209 NO_BINARY_FOR_GPU c"CUDA_ERROR_NO_BINARY_FOR_GPU" c"the image contains no code for this device",
    210 ALREADY_ACQUIRED c"CUDA_ERROR_ALREADY_ACQUIRED" c"the resource is already acquired",
    211 NOT_MAPPED c"CUDA_ERROR_NOT_MAPPED" c"the resource is not mapped",
    212 NOT_MAPPED_AS_ARRAY c"CUDA_ERROR_NOT_MAPPED_AS_ARRAY" c"the resource is not mapped as an array",
    213 NOT_MAPPED_AS_POINTER c"CUDA_ERROR_NOT_MAPPED_AS_POINTER" c"the resource is not mapped as a pointer",
    214 ECC_UNCORRECTABLE c"CUDA_ERROR_ECC_UNCORRECTABLE" c"an uncorrectable memory error occurred",
    215 UNSUPPORTED_LIMIT c"CUDA_ERROR_UNSUPPORTED_LIMIT" c"the device does not support this limit",
    216 CONTEXT_ALREADY_IN_USE c"CUDA_ERROR_CONTEXT_ALREADY_IN_USE" c"the context is in use by another thread",
    217 PEER_ACCESS_UNSUPPORTED c"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED" c"the devices cannot access each other's memory",
    218 INVALID_PTX c"CUDA_ERROR_INVALID_PTX" c"the PTX could not be compiled",
    219 INVALID_GRAPHICS_CONTEXT c"CUDA_ERROR_INVALID_GRAPHICS_CONTEXT" c"the graphics context is not valid",
    220 NVLINK_UNCORRECTABLE c"CUDA_ERROR_NVLINK_UNCORRECTABLE" c"an uncorrectable link error occurred",
    221 JIT_COMPILER_NOT_FOUND c"CUDA_ERROR_JIT_COMPILER_NOT_FOUND" c"the PTX compiler library was not found",
    222 UNSUPPORTED_PTX_VERSION c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION" c"the PTX ISA version is newer than this device supports",
    223 JIT_COMPILATION_DISABLED c"CUDA_ERROR_JIT_COMPILATION_DISABLED" c"compilation at run time is disabled",
    224 UNSUPPORTED_EXEC_AFFINITY c"CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY" c"the execution affinity is not supported",
    225 UNSUPPORTED_DEVSIDE_SYNC c"CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC" c"the code synchronises on the device, which is not supported",
    226 CONTAINED c"CUDA_ERROR_CONTAINED" c"an error was contained on the device",
    227 INSUFFICIENT_LOADER_VERSION c"CUDA_ERROR_INSUFFICIENT_LOADER_VERSION" c"the loader library is too old",
    300 INVALID_SOURCE c"CUDA_ERROR_INVALID_SOURCE" c"the source is not valid",
    301 FILE_NOT_FOUND c"CUDA_ERROR_FILE_NOT_FOUND" c"the file was not found",
    302 SHARED_OBJECT_SYMBOL_NOT_FOUND c"CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND" c"a symbol of a shared library was not found",
    303 SHARED_OBJECT_INIT_FAILED c"CUDA_ERROR_SHARED_OBJECT_INIT_FAILED" c"a shared library could not be initialised",
    304 OPERATING_SYSTEM c"CUDA_ERROR_OPERATING_SYSTEM" c"an operating system call failed",
    400 INVALID_HANDLE c"CUDA_ERROR_INVALID_HANDLE" c"the handle is not valid",
    401 ILLEGAL_STATE c"CUDA_ERROR_ILLEGAL_STATE" c"the resource is not in the right state for this operation",
    402 LOSSY_QUERY c"CUDA_ERROR_LOSSY_QUERY" c"the query result would lose information",
    500 NOT_FOUND c"CUDA_ERROR_NOT_FOUND" c"the named symbol was not found",
    600 NOT_READY c"CUDA_ERROR_NOT_READY" c"the queried work is still running",
    700 ILLEGAL_ADDRESS c"CUDA_ERROR_ILLEGAL_ADDRESS" c"a kernel accessed an illegal address",
    701 LAUNCH_OUT_OF_RESOURCES c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" c"the launch needs more resources than the device has",
    702 LAUNCH_TIMEOUT c"CUDA_ERROR_LAUNCH_TIMEOUT" c"the kernel was stopped because it ran too long or was interrupted",
    703 LAUNCH_INCOMPATIBLE_TEXTURING c"CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING" c"the launch is incompatible with the texturing mode",
    704 PEER_ACCESS_ALREADY_ENABLED c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED" c"peer access is already enabled",
    705 PEER_ACCESS_NOT_ENABLED c"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED" c"peer access is not enabled",
    708 PRIMARY_CONTEXT_ACTIVE c"CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE" c"the primary context is already active",
    709 CONTEXT_IS_DESTROYED c"CUDA_ERROR_CONTEXT_IS_DESTROYED" c"the context has been destroyed",
    710 ASSERT c"CUDA_ERROR_ASSERT" c"an assertion in a kernel failed",
    711 TOO_MANY_PEERS c"CUDA_ERROR_TOO_MANY_PEERS" c"no more peers can be enabled",
    712 HOST_MEMORY_ALREADY_REGISTERED c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED" c"the memory range is already registered",
    713 HOST_MEMORY_NOT_REGISTERED c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED" c"the memory range is not registered",
    714 HARDWARE_STACK_ERROR c"CUDA_ERROR_HARDWARE_STACK_ERROR" c"a kernel's stack is corrupted or overflowed",
    715 ILLEGAL_INSTRUCTION c"CUDA_ERROR_ILLEGAL_INSTRUCTION" c"a kernel executed an illegal instruction",
    716 MISALIGNED_ADDRESS c"CUDA_ERROR_MISALIGNED_ADDRESS" c"a kernel accessed a misaligned address",
    717 INVALID_ADDRESS_SPACE c"CUDA_ERROR_INVALID_ADDRESS_SPACE" c"a kernel used an address of the wrong state space",
    718 INVALID_PC c"CUDA_ERROR_INVALID_PC" c"the program counter of a kernel is not valid",
    719 LAUNCH_FAILED c"CUDA_ERROR_LAUNCH_FAILED" c"a kernel failed during execution",
    720 COOPERATIVE_LAUNCH_TOO_LARGE c"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE" c"a cooperative launch has more blocks than can be resident",
    721 TENSOR_MEMORY_LEAK c"CUDA_ERROR_TENSOR_MEMORY_LEAK" c"tensor memory was not freed",
    800 NOT_PERMITTED c"CUDA_ERROR_NOT_PERMITTED" c"the operation is not permitted",
    801 NOT_SUPPORTED c"CUDA_ERROR_NOT_SUPPORTED" c"the operation is not supported by this device or driver",
    802 SYSTEM_NOT_READY c"CUDA_ERROR_SYSTEM_NOT_READY" c"the system is not ready",
    803 SYSTEM_DRIVER_MISMATCH c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" c"driver and display driver do not match",
    804 COMPAT_NOT_SUPPORTED_ON_DEVICE c"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE" c"compatibility mode is not supported on this device",
    805 MPS_CONNECTION_FAILED c"CUDA_ERROR_MPS_CONNECTION_FAILED" c"the connection to the MPS server failed",
    806 MPS_RPC_FAILURE c"CUDA_ERROR_MPS_RPC_FAILURE" c"a call to the MPS server failed",
    807 MPS_SERVER_NOT_READY c"CUDA_ERROR_MPS_SERVER_NOT_READY" c"the MPS server is not ready",
    808 MPS_MAX_CLIENTS_REACHED c"CUDA_ERROR_MPS_MAX_CLIENTS_REACHED" c"the MPS server has reached its client limit",
    809 MPS_MAX_CONNECTIONS_REACHED c"CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED" c"the MPS server has reached its connection limit",
    810 MPS_CLIENT_TERMINATED c"CUDA_ERROR_MPS_CLIENT_TERMINATED" c"the MPS client was terminated",
    811 CDP_NOT_SUPPORTED c"CUDA_ERROR_CDP_NOT_SUPPORTED" c"launches from the device are not supported",
    812 CDP_VERSION_MISMATCH c"CUDA_ERROR_CDP_VERSION_MISMATCH" c"launches from the device need another version",
    900 STREAM_CAPTURE_UNSUPPORTED c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED" c"the operation is not permitted while a stream is capturing",
    901 STREAM_CAPTURE_INVALIDATED c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED" c"the capture was invalidated by an earlier error",
    902 STREAM_CAPTURE_MERGE c"CUDA_ERROR_STREAM_CAPTURE_MERGE" c"two captures would have merged",
    903 STREAM_CAPTURE_UNMATCHED c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED" c"the capture did not begin in this stream",
    904 STREAM_CAPTURE_UNJOINED c"CUDA_ERROR_STREAM_CAPTURE_UNJOINED" c"the capture was left with unjoined work",
    905 STREAM_CAPTURE_ISOLATION c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION" c"a dependency would have crossed the capture boundary",
    906 STREAM_CAPTURE_IMPLICIT c"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT" c"the operation would depend on a capturing stream implicitly",
    907 CAPTURED_EVENT c"CUDA_ERROR_CAPTURED_EVENT" c"the event was last recorded in a capturing stream",
    908 STREAM_CAPTURE_WRONG_THREAD c"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD" c"the capture was begun by another thread",
    909 TIMEOUT c"CUDA_ERROR_TIMEOUT" c"the wait timed out",
    910 GRAPH_EXEC_UPDATE_FAILURE c"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE" c"the graph differs too much from the instantiated one",
    911 EXTERNAL_DEVICE c"CUDA_ERROR_EXTERNAL_DEVICE" c"an external device reported an error",
    912 INVALID_CLUSTER_SIZE c"CUDA_ERROR_INVALID_CLUSTER_SIZE" c"the cluster size is not valid for this launch",
    913 FUNCTION_NOT_LOADED c"CUDA_ERROR_FUNCTION_NOT_LOADED" c"the function is not loaded",
    914 INVALID_RESOURCE_TYPE c"CUDA_ERROR_INVALID_RESOURCE_TYPE" c"the resource type is not valid",
    915 INVALID_RESOURCE_CONFIGURATION c"CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION" c"the resource configuration is not valid",
    916 KEY_ROTATION c"CUDA_ERROR_KEY_ROTATION" c"a key is being rotated",
    917 STREAM_DETACHED c"CUDA_ERROR_STREAM_DETACHED" c"the stream is detached",
    918 GRAPH_RECAPTURE_FAILURE c"CUDA_ERROR_GRAPH_RECAPTURE_FAILURE" c"recapturing into the graph failed",
    919 FABRIC_NOT_READY c"CUDA_ERROR_FABRIC_NOT_READY" c"the fabric is not ready",
    999 UNKNOWN c"CUDA_ERROR_UNKNOWN" c"an internal error",
}

fn row(code: u32) -> Option<&'static (u32, &'static CStr, &'static CStr)> {
    CODES
        .binary_search_by_key(&code, |r| r.0)
        .ok()
        .map(|i| &CODES[i])
}

/// The description of a code.
pub(crate) fn description(code: u32) -> Option<&'static str> {
    row(code).and_then(|r| r.2.to_str().ok())
}

impl Code {
    /// The code's name in C.
    pub fn name(self) -> &'static str {
        row(self.0)
            .and_then(|r| r.1.to_str().ok())
            .unwrap_or("an unknown code")
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Writes the address of a static string to `out`, or null.
fn put_static_text(out: u64, text: Option<&'static CStr>) -> Res {
    put(out, text.map_or(0, |t| t.as_ptr() as u64))?;
    text.map(|_| ()).ok_or(Code::INVALID_VALUE)
}

driver_entry_points! { bare;
    fn get_error_name "cuGetErrorName" (error: u32, out: u64) {
        put_static_text(out, row(error).map(|r| r.1))
    }
    fn get_error_string "cuGetErrorString" (error: u32, out: u64) {
        put_static_text(out, row(error).map(|r| r.2))
    }
}
