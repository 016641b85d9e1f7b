//! Error codes: numbers, names and descriptions, and the entry points that report them.
//!
//! Numbers and names are CUDA's; the descriptions are this project's.

use std::ffi::{CStr, c_char, c_void};

use cupyrite_sys::driver::CUresult;
use cupyrite_sys::loader::{LoadError, LoadErrorKind};

use crate::entry::{EntryPoint, runtime_entry_points};
use crate::thread;

/// A `cudaError_t`; includes success, for a thread's last error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error(pub u32);

/// Result of the runtime's internal functions.
pub(crate) type Res<T = ()> = Result<T, Error>;

macro_rules! codes {
    ($($value:literal $name:ident $full:literal $text:literal,)*) => {
        #[allow(missing_docs)]
        impl Error { $(pub const $name: Error = Error($value);)* }
        /// Every code, sorted by number.
        static CODES: &[(u32, &CStr, &CStr)] = &[$(($value, $full, $text),)*];
    };
}

codes! {
    0 SUCCESS c"cudaSuccess" c"no error",
    1 INVALID_VALUE c"cudaErrorInvalidValue" c"an argument is outside the range of acceptable values",
    2 MEMORY_ALLOCATION c"cudaErrorMemoryAllocation" c"the device is out of memory",
    3 INITIALIZATION_ERROR c"cudaErrorInitializationError" c"the driver could not be initialised, or is unusable in this process",
    4 CUDART_UNLOADING c"cudaErrorCudartUnloading" c"the process is exiting and the driver is shutting down",
    5 PROFILER_DISABLED c"cudaErrorProfilerDisabled" c"the profiler is disabled",
    6 PROFILER_NOT_INITIALIZED c"cudaErrorProfilerNotInitialized" c"the profiler is not initialised",
    7 PROFILER_ALREADY_STARTED c"cudaErrorProfilerAlreadyStarted" c"the profiler is already started",
    8 PROFILER_ALREADY_STOPPED c"cudaErrorProfilerAlreadyStopped" c"the profiler is already stopped",
    9 INVALID_CONFIGURATION c"cudaErrorInvalidConfiguration" c"the launch configuration exceeds the device's resources",
    10 VERSION_TRANSLATION c"cudaErrorVersionTranslation" c"the versions of the call and the runtime are incompatible",
    12 INVALID_PITCH_VALUE c"cudaErrorInvalidPitchValue" c"the pitch is outside the acceptable range",
    13 INVALID_SYMBOL c"cudaErrorInvalidSymbol" c"the symbol name or identifier is not valid",
    16 INVALID_HOST_POINTER c"cudaErrorInvalidHostPointer" c"a host pointer is not valid",
    17 INVALID_DEVICE_POINTER c"cudaErrorInvalidDevicePointer" c"a device pointer is not valid",
    18 INVALID_TEXTURE c"cudaErrorInvalidTexture" c"the texture is not valid",
    19 INVALID_TEXTURE_BINDING c"cudaErrorInvalidTextureBinding" c"the texture is not bound correctly",
    20 INVALID_CHANNEL_DESCRIPTOR c"cudaErrorInvalidChannelDescriptor" c"the channel descriptor is not valid",
    21 INVALID_MEMCPY_DIRECTION c"cudaErrorInvalidMemcpyDirection" c"the copy direction is unknown",
    22 ADDRESS_OF_CONSTANT c"cudaErrorAddressOfConstant" c"the address of a constant was taken",
    23 TEXTURE_FETCH_FAILED c"cudaErrorTextureFetchFailed" c"a texture fetch failed",
    24 TEXTURE_NOT_BOUND c"cudaErrorTextureNotBound" c"no texture is bound for the access",
    25 SYNCHRONIZATION_ERROR c"cudaErrorSynchronizationError" c"a synchronisation failed",
    26 INVALID_FILTER_SETTING c"cudaErrorInvalidFilterSetting" c"a texture of integers cannot be filtered linearly",
    27 INVALID_NORM_SETTING c"cudaErrorInvalidNormSetting" c"a texture of this format cannot be read as normalised floats",
    28 MIXED_DEVICE_EXECUTION c"cudaErrorMixedDeviceExecution" c"device code and emulation code were mixed",
    31 NOT_YET_IMPLEMENTED c"cudaErrorNotYetImplemented" c"the call is not implemented yet",
    32 MEMORY_VALUE_TOO_LARGE c"cudaErrorMemoryValueTooLarge" c"an emulated device pointer exceeded the 32-bit address range",
    34 STUB_LIBRARY c"cudaErrorStubLibrary" c"a stub library was loaded instead of the driver",
    35 INSUFFICIENT_DRIVER c"cudaErrorInsufficientDriver" c"the installed driver is missing or too old for this runtime",
    36 CALL_REQUIRES_NEWER_DRIVER c"cudaErrorCallRequiresNewerDriver" c"the call needs a newer driver",
    37 INVALID_SURFACE c"cudaErrorInvalidSurface" c"the surface is not valid",
    43 DUPLICATE_VARIABLE_NAME c"cudaErrorDuplicateVariableName" c"several global or constant variables share a name",
    44 DUPLICATE_TEXTURE_NAME c"cudaErrorDuplicateTextureName" c"several textures share a name",
    45 DUPLICATE_SURFACE_NAME c"cudaErrorDuplicateSurfaceName" c"several surfaces share a name",
    46 DEVICES_UNAVAILABLE c"cudaErrorDevicesUnavailable" c"the device is busy or otherwise unavailable",
    49 INCOMPATIBLE_DRIVER_CONTEXT c"cudaErrorIncompatibleDriverContext" c"the current driver context is incompatible with the runtime",
    52 MISSING_CONFIGURATION c"cudaErrorMissingConfiguration" c"the kernel was not configured before it was launched",
    53 PRIOR_LAUNCH_FAILURE c"cudaErrorPriorLaunchFailure" c"an earlier launch failed",
    65 LAUNCH_MAX_DEPTH_EXCEEDED c"cudaErrorLaunchMaxDepthExceeded" c"launches from the device are nested too deeply",
    66 LAUNCH_FILE_SCOPED_TEX c"cudaErrorLaunchFileScopedTex" c"a launch from the device uses a texture of file scope",
    67 LAUNCH_FILE_SCOPED_SURF c"cudaErrorLaunchFileScopedSurf" c"a launch from the device uses a surface of file scope",
    68 SYNC_DEPTH_EXCEEDED c"cudaErrorSyncDepthExceeded" c"the device synchronises deeper than the limit allows",
    69 LAUNCH_PENDING_COUNT_EXCEEDED c"cudaErrorLaunchPendingCountExceeded" c"more launches from the device are pending than the limit allows",
    98 INVALID_DEVICE_FUNCTION c"cudaErrorInvalidDeviceFunction" c"the function does not exist, or has no code for the current device",
    100 NO_DEVICE c"cudaErrorNoDevice" c"no CUDA device was found",
    101 INVALID_DEVICE c"cudaErrorInvalidDevice" c"no device has this ordinal",
    102 DEVICE_NOT_LICENSED c"cudaErrorDeviceNotLicensed" c"the device is not licensed",
    103 SOFTWARE_VALIDITY_NOT_ESTABLISHED c"cudaErrorSoftwareValidityNotEstablished" c"the internal startup checks failed",
    127 STARTUP_FAILURE c"cudaErrorStartupFailure" c"the runtime could not start",
    200 INVALID_KERNEL_IMAGE c"cudaErrorInvalidKernelImage" c"the device code is not valid",
    201 DEVICE_UNINITIALIZED c"cudaErrorDeviceUninitialized" c"no valid context is current",
    205 MAP_BUFFER_OBJECT_FAILED c"cudaErrorMapBufferObjectFailed" c"a buffer object could not be mapped",
    206 UNMAP_BUFFER_OBJECT_FAILED c"cudaErrorUnmapBufferObjectFailed" c"a buffer object could not be unmapped",
    207 ARRAY_IS_MAPPED c"cudaErrorArrayIsMapped" c"the array is mapped",
    208 ALREADY_MAPPED c"cudaErrorAlreadyMapped" c"the resource is already mapped",
    209 NO_KERNEL_IMAGE_FOR_DEVICE c"cudaErrorNoKernelImageForDevice" c"the image contains no code for this device",
    210 ALREADY_ACQUIRED c"cudaErrorAlreadyAcquired" c"the resource is already acquired",
    211 NOT_MAPPED c"cudaErrorNotMapped" c"the resource is not mapped",
    212 NOT_MAPPED_AS_ARRAY c"cudaErrorNotMappedAsArray" c"the resource is not mapped as an array",
    213 NOT_MAPPED_AS_POINTER c"cudaErrorNotMappedAsPointer" c"the resource is not mapped as a pointer",
    214 ECC_UNCORRECTABLE c"cudaErrorECCUncorrectable" c"an uncorrectable memory error occurred",
    215 UNSUPPORTED_LIMIT c"cudaErrorUnsupportedLimit" c"the device does not support this limit",
    216 DEVICE_ALREADY_IN_USE c"cudaErrorDeviceAlreadyInUse" c"the device is in use by another thread",
    217 PEER_ACCESS_UNSUPPORTED c"cudaErrorPeerAccessUnsupported" c"the devices cannot access each other's memory",
    218 INVALID_PTX c"cudaErrorInvalidPtx" c"the PTX could not be compiled",
    219 INVALID_GRAPHICS_CONTEXT c"cudaErrorInvalidGraphicsContext" c"the graphics context is not valid",
    220 NVLINK_UNCORRECTABLE c"cudaErrorNvlinkUncorrectable" c"an uncorrectable link error occurred",
    221 JIT_COMPILER_NOT_FOUND c"cudaErrorJitCompilerNotFound" c"the PTX compiler library was not found",
    222 UNSUPPORTED_PTX_VERSION c"cudaErrorUnsupportedPtxVersion" c"the PTX ISA version is newer than this device supports",
    223 JIT_COMPILATION_DISABLED c"cudaErrorJitCompilationDisabled" c"compilation at run time is disabled",
    224 UNSUPPORTED_EXEC_AFFINITY c"cudaErrorUnsupportedExecAffinity" c"the execution affinity is not supported",
    225 UNSUPPORTED_DEV_SIDE_SYNC c"cudaErrorUnsupportedDevSideSync" c"the code synchronises on the device, which is not supported",
    226 CONTAINED c"cudaErrorContained" c"an error was contained on the device",
    227 INSUFFICIENT_LOADER_VERSION c"cudaErrorInsufficientLoaderVersion" c"the loader library is too old",
    300 INVALID_SOURCE c"cudaErrorInvalidSource" c"the source is not valid",
    301 FILE_NOT_FOUND c"cudaErrorFileNotFound" c"the file was not found",
    302 SHARED_OBJECT_SYMBOL_NOT_FOUND c"cudaErrorSharedObjectSymbolNotFound" c"a symbol of a shared library was not found",
    303 SHARED_OBJECT_INIT_FAILED c"cudaErrorSharedObjectInitFailed" c"a shared library could not be initialised",
    304 OPERATING_SYSTEM c"cudaErrorOperatingSystem" c"an operating system call failed",
    400 INVALID_RESOURCE_HANDLE c"cudaErrorInvalidResourceHandle" c"the handle is not valid",
    401 ILLEGAL_STATE c"cudaErrorIllegalState" c"the resource is not in the right state for this operation",
    402 LOSSY_QUERY c"cudaErrorLossyQuery" c"the query result would lose information",
    500 SYMBOL_NOT_FOUND c"cudaErrorSymbolNotFound" c"the named symbol was not found",
    600 NOT_READY c"cudaErrorNotReady" c"the queried work is still running",
    700 ILLEGAL_ADDRESS c"cudaErrorIllegalAddress" c"a kernel accessed an illegal address",
    701 LAUNCH_OUT_OF_RESOURCES c"cudaErrorLaunchOutOfResources" c"the launch needs more resources than the device has",
    702 LAUNCH_TIMEOUT c"cudaErrorLaunchTimeout" c"the kernel was stopped because it ran too long or was interrupted",
    703 LAUNCH_INCOMPATIBLE_TEXTURING c"cudaErrorLaunchIncompatibleTexturing" c"the launch is incompatible with the texturing mode",
    704 PEER_ACCESS_ALREADY_ENABLED c"cudaErrorPeerAccessAlreadyEnabled" c"peer access is already enabled",
    705 PEER_ACCESS_NOT_ENABLED c"cudaErrorPeerAccessNotEnabled" c"peer access is not enabled",
    708 SET_ON_ACTIVE_PROCESS c"cudaErrorSetOnActiveProcess" c"a setting of the device was changed while its context is active",
    709 CONTEXT_IS_DESTROYED c"cudaErrorContextIsDestroyed" c"the context has been destroyed",
    710 ASSERT c"cudaErrorAssert" c"an assertion in a kernel failed",
    711 TOO_MANY_PEERS c"cudaErrorTooManyPeers" c"no more peers can be enabled",
    712 HOST_MEMORY_ALREADY_REGISTERED c"cudaErrorHostMemoryAlreadyRegistered" c"the memory range is already registered",
    713 HOST_MEMORY_NOT_REGISTERED c"cudaErrorHostMemoryNotRegistered" c"the memory range is not registered",
    714 HARDWARE_STACK_ERROR c"cudaErrorHardwareStackError" c"a kernel's stack is corrupted or overflowed",
    715 ILLEGAL_INSTRUCTION c"cudaErrorIllegalInstruction" c"a kernel executed an illegal instruction",
    716 MISALIGNED_ADDRESS c"cudaErrorMisalignedAddress" c"a kernel accessed a misaligned address",
    717 INVALID_ADDRESS_SPACE c"cudaErrorInvalidAddressSpace" c"a kernel used an address of the wrong state space",
    718 INVALID_PC c"cudaErrorInvalidPc" c"the program counter of a kernel is not valid",
    719 LAUNCH_FAILURE c"cudaErrorLaunchFailure" c"a kernel failed during execution",
    720 COOPERATIVE_LAUNCH_TOO_LARGE c"cudaErrorCooperativeLaunchTooLarge" c"a cooperative launch has more blocks than can be resident",
    721 TENSOR_MEMORY_LEAK c"cudaErrorTensorMemoryLeak" c"tensor memory was not freed",
    800 NOT_PERMITTED c"cudaErrorNotPermitted" c"the operation is not permitted",
    801 NOT_SUPPORTED c"cudaErrorNotSupported" c"the operation is not supported by this device or driver",
    802 SYSTEM_NOT_READY c"cudaErrorSystemNotReady" c"the system is not ready",
    803 SYSTEM_DRIVER_MISMATCH c"cudaErrorSystemDriverMismatch" c"driver and display driver do not match",
    804 COMPAT_NOT_SUPPORTED_ON_DEVICE c"cudaErrorCompatNotSupportedOnDevice" c"compatibility mode is not supported on this device",
    805 MPS_CONNECTION_FAILED c"cudaErrorMpsConnectionFailed" c"the connection to the MPS server failed",
    806 MPS_RPC_FAILURE c"cudaErrorMpsRpcFailure" c"a call to the MPS server failed",
    807 MPS_SERVER_NOT_READY c"cudaErrorMpsServerNotReady" c"the MPS server is not ready",
    808 MPS_MAX_CLIENTS_REACHED c"cudaErrorMpsMaxClientsReached" c"the MPS server has reached its client limit",
    809 MPS_MAX_CONNECTIONS_REACHED c"cudaErrorMpsMaxConnectionsReached" c"the MPS server has reached its connection limit",
    810 MPS_CLIENT_TERMINATED c"cudaErrorMpsClientTerminated" c"the MPS client was terminated",
    811 CDP_NOT_SUPPORTED c"cudaErrorCdpNotSupported" c"launches from the device are not supported",
    812 CDP_VERSION_MISMATCH c"cudaErrorCdpVersionMismatch" c"launches from the device need another version",
    900 STREAM_CAPTURE_UNSUPPORTED c"cudaErrorStreamCaptureUnsupported" c"the operation is not permitted while a stream is capturing",
    901 STREAM_CAPTURE_INVALIDATED c"cudaErrorStreamCaptureInvalidated" c"the capture was invalidated by an earlier error",
    902 STREAM_CAPTURE_MERGE c"cudaErrorStreamCaptureMerge" c"two captures would have merged",
    903 STREAM_CAPTURE_UNMATCHED c"cudaErrorStreamCaptureUnmatched" c"the capture did not begin in this stream",
    904 STREAM_CAPTURE_UNJOINED c"cudaErrorStreamCaptureUnjoined" c"the capture was left with unjoined work",
    905 STREAM_CAPTURE_ISOLATION c"cudaErrorStreamCaptureIsolation" c"a dependency would have crossed the capture boundary",
    906 STREAM_CAPTURE_IMPLICIT c"cudaErrorStreamCaptureImplicit" c"the operation would depend on a capturing stream implicitly",
    907 CAPTURED_EVENT c"cudaErrorCapturedEvent" c"the event was last recorded in a capturing stream",
    908 STREAM_CAPTURE_WRONG_THREAD c"cudaErrorStreamCaptureWrongThread" c"the capture was begun by another thread",
    909 TIMEOUT c"cudaErrorTimeout" c"the wait timed out",
    910 GRAPH_EXEC_UPDATE_FAILURE c"cudaErrorGraphExecUpdateFailure" c"the graph differs too much from the instantiated one",
    911 EXTERNAL_DEVICE c"cudaErrorExternalDevice" c"an external device reported an error",
    912 INVALID_CLUSTER_SIZE c"cudaErrorInvalidClusterSize" c"the cluster size is not valid for this launch",
    913 FUNCTION_NOT_LOADED c"cudaErrorFunctionNotLoaded" c"the function is not loaded",
    914 INVALID_RESOURCE_TYPE c"cudaErrorInvalidResourceType" c"the resource type is not valid",
    915 INVALID_RESOURCE_CONFIGURATION c"cudaErrorInvalidResourceConfiguration" c"the resource configuration is not valid",
    917 STREAM_DETACHED c"cudaErrorStreamDetached" c"the stream is detached",
    918 GRAPH_RECAPTURE_FAILURE c"cudaErrorGraphRecaptureFailure" c"recapturing into the graph failed",
    919 FABRIC_NOT_READY c"cudaErrorFabricNotReady" c"the fabric is not ready",
    999 UNKNOWN c"cudaErrorUnknown" c"an internal error",
    10000 API_FAILURE_BASE c"cudaErrorApiFailureBase" c"the first code of an obsolete range",
}

impl Error {
    fn row(self) -> Option<&'static (u32, &'static CStr, &'static CStr)> {
        CODES
            .binary_search_by_key(&self.0, |&(value, ..)| value)
            .ok()
            .map(|i| &CODES[i])
    }

    /// The C name; `None` for an unknown code.
    pub fn name(self) -> Option<&'static CStr> {
        self.row().map(|row| row.1)
    }
}

/// The runtime's code for a driver's: the same number if the runtime has it.
impl From<CUresult> for Error {
    fn from(result: CUresult) -> Error {
        let same = Error(result.0);
        if same.row().is_some() {
            same
        } else {
            Error::UNKNOWN
        }
    }
}

impl From<&LoadError> for Error {
    fn from(error: &LoadError) -> Error {
        log::debug!("{error}");
        match error.kind {
            LoadErrorKind::SymbolNotFound => Error::CALL_REQUIRES_NEWER_DRIVER,
            _ => Error::INSUFFICIENT_DRIVER,
        }
    }
}

/// Converts the outcome of a driver call.
pub(crate) fn status(result: Result<CUresult, &'static LoadError>) -> Res {
    match result {
        Ok(CUresult::CUDA_SUCCESS) => Ok(()),
        Ok(code) => Err(code.into()),
        Err(error) => Err(error.into()),
    }
}

const UNRECOGNISED: &CStr = c"unrecognized error code";

/// `cudaGetErrorName`: the name of a code, or a fixed text for an unknown one.
extern "C" fn name(error: u32) -> *const c_char {
    Error(error)
        .row()
        .map_or(UNRECOGNISED, |row| row.1)
        .as_ptr()
}

/// `cudaGetErrorString`: the description of a code.
extern "C" fn string(error: u32) -> *const c_char {
    Error(error)
        .row()
        .map_or(UNRECOGNISED, |row| row.2)
        .as_ptr()
}

runtime_entry_points! { quiet;
    fn get_last_error "cudaGetLastError" () {
        match thread::take_last_error() {
            Error::SUCCESS => Ok(()),
            error => Err(error),
        }
    }
    fn peek_at_last_error "cudaPeekAtLastError" () {
        match thread::last_error() {
            Error::SUCCESS => Ok(()),
            error => Err(error),
        }
    }
    also [
        EntryPoint { name: "cudaGetErrorName", address: name as *const c_void },
        EntryPoint { name: "cudaGetErrorString", address: string as *const c_void },
    ]
}
