//! Calls of the device runtime by kernels: launches of kernels, streams, events, copies and queries (CUDA C++ Programming
//! Guide, "CUDA Dynamic Parallelism").
//!
//! Belongs here: the names and signatures of the functions, and the interface to what executes them. What they do is a
//! matter of the driver.

use crate::fault::FaultKind;

/// A parameter of a function, and the words in which its value is passed to [`DeviceRuntime::call`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RuntimeParameter {
    /// Up to 4 bytes, in one word.
    Int,
    /// 8 bytes, in one word.
    Long,
    /// `dim3`, in three words.
    Dim3,
    /// `cudaPitchedPtr`, in four words.
    PitchedPtr,
    /// `cudaExtent`, in three words.
    Extent,
}

impl RuntimeParameter {
    /// Number of words, and bytes of each.
    pub(crate) fn words(self) -> (u32, u32) {
        match self {
            Self::Int => (1, 4),
            Self::Long => (1, 8),
            Self::Dim3 => (3, 4),
            Self::PitchedPtr => (4, 8),
            Self::Extent => (3, 8),
        }
    }

    /// Whether a parameter of this many bytes can be this one.
    pub(crate) fn has_size(self, bytes: u64) -> bool {
        let (count, each) = self.words();
        match self {
            Self::Int => (1..=4).contains(&bytes),
            _ => bytes == u64::from(count * each),
        }
    }
}

/// Most words of the arguments of a call.
pub const MAX_RUNTIME_WORDS: usize = 10;

macro_rules! runtime_functions {
    ($($name:ident ( $($parameter:ident),* ) $doc:literal)*) => {
        /// A function of the device runtime, without the prefix of its name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum RuntimeFunction {
            $(#[doc = $doc] $name,)*
        }

        impl RuntimeFunction {
            /// All functions.
            #[cfg(test)]
            const ALL: &[RuntimeFunction] = &[$(Self::$name),*];

            fn of(name: &str) -> Option<Self> {
                match name {
                    $(stringify!($name) => Some(Self::$name),)*
                    _ => None,
                }
            }

            pub(crate) fn parameters(self) -> &'static [RuntimeParameter] {
                match self {
                    $(Self::$name => &[$(RuntimeParameter::$parameter),*],)*
                }
            }

            /// The name without a prefix, as in `cudaStreamDestroy` without `cuda`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }
        }
    };
}

runtime_functions! {
    DeviceGetAttribute(Long, Int, Int) "`cudaDeviceGetAttribute(out, attribute, device)`."
    DeviceGetLimit(Long, Int) "`cudaDeviceGetLimit(out, limit)`."
    DeviceGetCacheConfig(Long) "`cudaDeviceGetCacheConfig(out)`."
    DeviceGetSharedMemConfig(Long) "`cudaDeviceGetSharedMemConfig(out)`."
    GetLastError() "`cudaGetLastError()`."
    PeekAtLastError() "`cudaPeekAtLastError()`."
    GetErrorString(Int) "`cudaGetErrorString(error)`."
    GetErrorName(Int) "`cudaGetErrorName(error)`."
    GetDeviceCount(Long) "`cudaGetDeviceCount(out)`."
    GetDevice(Long) "`cudaGetDevice(out)`."
    StreamCreateWithFlags(Long, Int) "`cudaStreamCreateWithFlags(out, flags)`."
    StreamDestroy(Long) "`cudaStreamDestroy(stream)`."
    StreamWaitEvent(Long, Long, Int) "`cudaStreamWaitEvent(stream, event, flags)`."
    EventCreateWithFlags(Long, Int) "`cudaEventCreateWithFlags(out, flags)`."
    EventRecord(Long, Long) "`cudaEventRecord(event, stream)`."
    EventRecordWithFlags(Long, Long, Int) "`cudaEventRecordWithFlags(event, stream, flags)`."
    EventDestroy(Long) "`cudaEventDestroy(event)`."
    FuncGetAttributes(Long, Long) "`cudaFuncGetAttributes(out, function)`."
    Malloc(Long, Long) "`cudaMalloc(out, size)`."
    Free(Long) "`cudaFree(pointer)`."
    MemcpyAsync(Long, Long, Long, Int, Long) "`cudaMemcpyAsync(to, from, bytes, kind, stream)`."
    Memcpy2DAsync(Long, Long, Long, Long, Long, Long, Int, Long)
        "`cudaMemcpy2DAsync(to, pitch, from, pitch, width, height, kind, stream)`."
    Memcpy3DAsync(Long, Long) "`cudaMemcpy3DAsync(parameters, stream)`."
    MemsetAsync(Long, Int, Long, Long) "`cudaMemsetAsync(to, value, bytes, stream)`."
    Memset2DAsync(Long, Long, Int, Long, Long, Long) "`cudaMemset2DAsync(to, pitch, value, width, height, stream)`."
    Memset3DAsync(PitchedPtr, Int, Extent, Long) "`cudaMemset3DAsync(to, value, extent, stream)`."
    RuntimeGetVersion(Long) "`cudaRuntimeGetVersion(out)`."
    GetParameterBuffer(Long, Long) "`cudaGetParameterBuffer(alignment, bytes)`."
    GetParameterBufferV2(Long, Dim3, Dim3, Int) "`cudaGetParameterBufferV2(function, grid, block, shared)`."
    LaunchDevice(Long, Long, Dim3, Dim3, Int, Long)
        "`cudaLaunchDevice(function, parameters, grid, block, shared, stream)`."
    LaunchDeviceV2(Long, Long) "`cudaLaunchDeviceV2(parameters, stream)`."
    OccupancyMaxActiveBlocksPerMultiprocessor(Long, Long, Int, Long)
        "`cudaOccupancyMaxActiveBlocksPerMultiprocessor(out, function, threads, shared)`."
    OccupancyMaxActiveBlocksPerMultiprocessorWithFlags(Long, Long, Int, Long, Int)
        "`cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(out, function, threads, shared, flags)`."
}

impl RuntimeFunction {
    /// The function that a module declares under this name, and whether the null stream is that of the calling thread
    /// (`--default-stream per-thread`). The compilers prefix the names with `__cudaCDP2`; PTX may use the names of the
    /// CUDA manual.
    pub fn from_name(name: &str) -> Option<(Self, bool)> {
        let rest = name
            .strip_prefix("__cudaCDP2")
            .or_else(|| name.strip_prefix("cuda"))?;
        match rest.strip_suffix("_ptsz") {
            Some(rest) => {
                let function = Self::of(rest)?;
                function.takes_stream().then_some((function, true))
            }
            None => Some((Self::of(rest)?, false)),
        }
    }

    /// Whether the function launches a kernel, a copy or a fill, or prepares a launch.
    pub(crate) fn launches(self) -> bool {
        let prepares = matches!(self, Self::GetParameterBuffer | Self::GetParameterBufferV2);
        let is_event = matches!(
            self,
            Self::StreamWaitEvent | Self::EventRecord | Self::EventRecordWithFlags
        );
        prepares || self.takes_stream() && !is_event
    }

    /// Whether the function has a variant for the stream of the calling thread.
    fn takes_stream(self) -> bool {
        matches!(
            self,
            Self::StreamWaitEvent
                | Self::EventRecord
                | Self::EventRecordWithFlags
                | Self::MemcpyAsync
                | Self::Memcpy2DAsync
                | Self::Memcpy3DAsync
                | Self::MemsetAsync
                | Self::Memset2DAsync
                | Self::Memset3DAsync
                | Self::LaunchDevice
                | Self::LaunchDeviceV2
        )
    }
}

/// A call by one thread.
#[derive(Clone, Copy, Debug)]
pub struct RuntimeCall<'a> {
    /// Function.
    pub function: RuntimeFunction,
    /// Whether the null stream is that of the calling thread.
    pub per_thread_stream: bool,
    /// Index of the calling thread's block in the grid.
    pub block: u64,
    /// Index of the calling thread in its block.
    pub thread: u32,
    /// The arguments. Integers are zero-extended; structures take a word for each member.
    pub args: &'a [u64],
}

/// Why a call stops its kernel.
#[derive(Debug)]
pub enum RuntimeFault {
    /// An access through [`KernelMemory`] was refused.
    Access,
    /// Another fault, with its description.
    Other(FaultKind, String),
}

/// The memory of a calling thread, by generic address. Accesses are checked as those of the thread's instructions.
pub trait KernelMemory {
    /// Reads memory.
    ///
    /// # Errors
    /// [`RuntimeFault::Access`], with which the call must end, for memory that the thread must not read.
    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), RuntimeFault>;

    /// Writes memory.
    ///
    /// # Errors
    /// [`RuntimeFault::Access`], with which the call must end, for memory that the thread must not write.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), RuntimeFault>;

    /// Allocates memory as `malloc` does; zero if the heap is exhausted.
    fn allocate(&mut self, bytes: u64) -> u64;

    /// Frees memory as `free` does. Returns false for an address that is not that of such an allocation.
    fn free(&mut self, address: u64) -> bool;
}

/// Executes the calls of one grid's kernel. Several threads call it concurrently.
pub trait DeviceRuntime: Sync {
    /// Executes a call and returns its result: a `cudaError_t` or an address.
    ///
    /// # Errors
    /// A fault stops the kernel.
    fn call(
        &self,
        call: &RuntimeCall<'_>,
        memory: &mut dyn KernelMemory,
    ) -> Result<u64, RuntimeFault>;

    /// Runs work that the grid has launched. Called when the blocks of a cluster have ended or wait. Returns false if the
    /// grid must stop.
    fn make_progress(&self) -> bool;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_and_the_manual_name_the_same_functions() {
        let launch = (RuntimeFunction::LaunchDeviceV2, false);
        for (name, function) in [
            ("__cudaCDP2LaunchDeviceV2", Some(launch)),
            ("cudaLaunchDeviceV2", Some(launch)),
            ("__cudaCDP2LaunchDeviceV2_ptsz", Some((launch.0, true))),
            ("__cudaCDP2GetLastError_ptsz", None),
            ("LaunchDeviceV2", None),
            ("cudaDeviceSynchronize", None),
            ("cudaCGSynchronize", None),
        ] {
            assert_eq!(RuntimeFunction::from_name(name), function, "{name}");
        }
    }

    #[test]
    fn arguments_fit_into_the_words_of_a_call() {
        for f in RuntimeFunction::ALL {
            let words: u32 = f.parameters().iter().map(|p| p.words().0).sum();
            assert!(words as usize <= MAX_RUNTIME_WORDS, "{f:?}");
            assert_eq!(RuntimeFunction::of(f.name()), Some(*f));
        }
    }
}
