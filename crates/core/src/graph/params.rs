//! Parameters of nodes.

use std::ffi::c_void;

use cupyrite_sys::driver::{
    CUDA_KERNEL_NODE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMCPY3D, CUDA_MEMSET_NODE_PARAMS,
    CUcontext, CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationType, CUmemLocation,
    CUmemLocation_st_anon0, CUmemLocationType, CUmemorytype, CUresult,
};

use crate::context::Device;
use crate::error::{Error, Result};
use crate::graph::condition::{Condition, ConditionalKind};
use crate::memory::FillPattern;
use crate::module::{Kernel, LaunchConfig};

/// What a kernel node launches.
#[derive(Clone, Copy)]
pub struct KernelNodeParams {
    /// The driver's parameters.
    pub(crate) raw: CUDA_KERNEL_NODE_PARAMS,
    /// The launch; the cluster and cooperative launches included.
    pub config: LaunchConfig,
}

impl std::fmt::Debug for KernelNodeParams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelNodeParams")
            .field("kernel", &format_args!("{:#x}", self.kernel_address()))
            .field("config", &self.config)
            .finish()
    }
}

impl KernelNodeParams {
    /// The handle of the kernel: a `CUkernel`, or the `CUfunction` that a capture recorded.
    pub fn kernel_address(&self) -> usize {
        if self.raw.kern.is_null() {
            self.raw.func.addr()
        } else {
            self.raw.kern.addr()
        }
    }

    /// Whether the driver reports a `CUkernel`, and not a `CUfunction`.
    pub fn is_kernel(&self) -> bool {
        !self.raw.kern.is_null()
    }
}

/// The driver's parameters of a launch.
pub(crate) fn kernel_params(
    kernel: &Kernel,
    config: &LaunchConfig,
    params: *mut *mut c_void,
    context: CUcontext,
) -> Result<CUDA_KERNEL_NODE_PARAMS> {
    if config.programmatic_stream_serialization {
        return Err(Error::argument(
            "GraphDefinition::launch",
            "config",
            "has programmatic_stream_serialization, which orders kernels of a stream; a graph orders them by edges",
        ));
    }
    let [grid_x, grid_y, grid_z] = config.blocks()?;
    let [block_x, block_y, block_z] = config.block;
    Ok(CUDA_KERNEL_NODE_PARAMS {
        func: std::ptr::null_mut(),
        gridDimX: grid_x,
        gridDimY: grid_y,
        gridDimZ: grid_z,
        blockDimX: block_x,
        blockDimY: block_y,
        blockDimZ: block_z,
        sharedMemBytes: config.shared_bytes,
        kernelParams: params,
        extra: std::ptr::null_mut(),
        kern: kernel.handle(),
        ctx: context,
    })
}

/// A copy of consecutive bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemcpyParams {
    /// Address of the destination: device, page-locked or managed memory.
    pub destination: CUdeviceptr,
    /// Address of the source.
    pub source: CUdeviceptr,
    /// Number of bytes.
    pub bytes: usize,
}

/// Adds to the driver's `CUDA_ERROR_INVALID_VALUE` which parameter is invalid. What the driver accepts is not checked
/// before, because its limits differ between versions.
#[cold]
fn explain(error: Error, problem: impl FnOnce() -> String) -> Error {
    match error.status() {
        Some(CUresult::CUDA_ERROR_INVALID_VALUE | CUresult::CUDA_ERROR_NOT_SUPPORTED) => {
            error.with_log(&problem())
        }
        _ => error,
    }
}

impl MemcpyParams {
    /// The driver's error with the parameter at fault.
    pub(crate) fn explain(self, error: Error) -> Error {
        explain(error, || {
            if self.bytes == 0 {
                return "argument 'size' is 0; expected 1 byte or more".to_owned();
            }
            format!(
                "arguments 'dst' and 'src' are {:#x} and {:#x}; expected addresses of device, page-locked or managed memory of \
                 {} bytes or more",
                self.destination, self.source, self.bytes
            )
        })
    }

    pub(crate) fn raw(self) -> CUDA_MEMCPY3D {
        CUDA_MEMCPY3D {
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            srcDevice: self.source,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_UNIFIED,
            dstDevice: self.destination,
            WidthInBytes: self.bytes,
            Height: 1,
            Depth: 1,
            ..CUDA_MEMCPY3D::default()
        }
    }

    /// From what the driver reports; `None` for a copy with rows, offsets or arrays.
    pub(crate) fn from_raw(raw: &CUDA_MEMCPY3D) -> Option<MemcpyParams> {
        if raw.Height > 1
            || raw.Depth > 1
            || [raw.srcXInBytes, raw.srcY, raw.srcZ] != [0; 3]
            || [raw.dstXInBytes, raw.dstY, raw.dstZ] != [0; 3]
        {
            return None;
        }
        let address = |kind: CUmemorytype, host: usize, device| match kind {
            CUmemorytype::CU_MEMORYTYPE_ARRAY => None,
            CUmemorytype::CU_MEMORYTYPE_HOST => Some(host as CUdeviceptr),
            _ => Some(device),
        };
        Some(MemcpyParams {
            destination: address(raw.dstMemoryType, raw.dstHost.addr(), raw.dstDevice)?,
            source: address(raw.srcMemoryType, raw.srcHost.addr(), raw.srcDevice)?,
            bytes: raw.WidthInBytes,
        })
    }
}

/// A fill of one or more rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemsetParams {
    /// Address of the first element.
    pub destination: CUdeviceptr,
    /// The element.
    pub value: FillPattern,
    /// Elements per row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Bytes from one row to the next; unused for one row.
    pub pitch: usize,
}

/// The element as a number.
pub(crate) fn pattern_value(pattern: FillPattern) -> u32 {
    match pattern {
        FillPattern::U8(value) => u32::from(value),
        FillPattern::U16(value) => u32::from(value),
        FillPattern::U32(value) => value,
    }
}

impl MemsetParams {
    /// The driver's error with the parameter at fault.
    pub(crate) fn explain(self, error: Error) -> Error {
        explain(error, || {
            let element = self.value.width();
            let row = self.width.saturating_mul(element);
            if self.width == 0 {
                "argument 'width' is 0; expected 1 element or more".to_owned()
            } else if self.height == 0 {
                "argument 'height' is 0; expected 1 row or more".to_owned()
            } else if self.height > 1 && self.pitch < row {
                format!(
                    "argument 'pitch' is {}; expected {row} bytes or more, the size of a row of {} elements of {element} bytes",
                    self.pitch, self.width
                )
            } else if self.height > 1 && !self.pitch.is_multiple_of(element) {
                format!(
                    "argument 'pitch' is {}; expected a multiple of {element}, the size of an element in bytes",
                    self.pitch
                )
            } else if !self.destination.is_multiple_of(element as u64) {
                format!(
                    "argument 'dst' is {:#x}; expected an address aligned to {element} bytes, the size of an element",
                    self.destination
                )
            } else {
                let rows_before = self.height.saturating_sub(1).saturating_mul(self.pitch);
                format!(
                    "argument 'dst' is {:#x}; expected the address of device, page-locked or managed memory of {} bytes or more",
                    self.destination,
                    rows_before.saturating_add(row)
                )
            }
        })
    }

    /// The element as a number.
    pub fn element(self) -> u32 {
        pattern_value(self.value)
    }

    pub(crate) fn raw(self) -> CUDA_MEMSET_NODE_PARAMS {
        CUDA_MEMSET_NODE_PARAMS {
            dst: self.destination,
            pitch: self.pitch,
            value: pattern_value(self.value),
            elementSize: self.value.width() as u32,
            width: self.width,
            height: self.height,
        }
    }

    pub(crate) fn from_raw(raw: &CUDA_MEMSET_NODE_PARAMS) -> MemsetParams {
        MemsetParams {
            destination: raw.dst,
            value: match raw.elementSize {
                1 => FillPattern::U8(raw.value as u8),
                2 => FillPattern::U16(raw.value as u16),
                _ => FillPattern::U32(raw.value),
            },
            width: raw.width,
            height: raw.height,
            pitch: raw.pitch,
        }
    }
}

/// The driver's error for a free node with the parameter at fault.
pub(crate) fn explain_free(address: CUdeviceptr, error: Error) -> Error {
    explain(error, || {
        format!(
            "argument 'dptr' is {address:#x}; expected the address of memory that an allocation node of a graph allocates and \
             no other node of this graph frees"
        )
    })
}

/// Where a graph allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GraphMemoryKind {
    /// Device memory.
    Device,
    /// Page-locked host memory.
    Host,
    /// Managed memory.
    Managed,
}

/// Memory that a graph allocates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllocationParams {
    /// Size in bytes.
    pub bytes: usize,
    /// The device.
    pub device: Device,
    /// The kind of memory.
    pub kind: GraphMemoryKind,
    /// Other devices that may read and write the memory.
    pub peers: Vec<Device>,
    /// The address, which the driver assigns.
    pub address: CUdeviceptr,
}

fn location(kind: CUmemLocationType, id: i32) -> CUmemLocation {
    CUmemLocation {
        r#type: kind,
        anon0: CUmemLocation_st_anon0 { id },
    }
}

fn ordinal(device: Device) -> i32 {
    i32::try_from(device.ordinal()).unwrap_or(i32::MAX)
}

impl AllocationParams {
    /// The driver's error with the parameter at fault.
    pub(crate) fn explain(&self, error: Error) -> Error {
        explain(error, || {
            let kind = match self.kind {
                GraphMemoryKind::Device => None,
                GraphMemoryKind::Host => Some("host"),
                GraphMemoryKind::Managed => Some("managed"),
            };
            if self.bytes == 0 {
                "argument 'size' is 0; expected 1 byte or more".to_owned()
            } else if let Some(kind) = kind {
                format!(
                    "argument 'memory_type' is '{kind}', which this driver does not allocate in graphs; expected 'device'"
                )
            } else if !self.peers.is_empty() {
                let peers: Vec<usize> = self.peers.iter().map(|peer| peer.ordinal()).collect();
                format!(
                    "argument 'peer_access' names the devices {peers:?}; expected devices that can access memory of device {}",
                    self.device.ordinal()
                )
            } else {
                format!(
                    "argument 'device' is {}; expected a device that supports memory pools",
                    self.device.ordinal()
                )
            }
        })
    }

    /// The access rights that the driver's parameters refer to.
    pub(crate) fn access(&self) -> Vec<CUmemAccessDesc> {
        let of = |device: Device| CUmemAccessDesc {
            location: location(
                CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                ordinal(device),
            ),
            flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        self.peers.iter().map(|peer| of(*peer)).collect()
    }

    /// The driver's parameters, which refer to `access`.
    pub(crate) fn raw(&self, access: &[CUmemAccessDesc]) -> CUDA_MEM_ALLOC_NODE_PARAMS {
        let mut raw = CUDA_MEM_ALLOC_NODE_PARAMS::default();
        let (kind, place) = match self.kind {
            GraphMemoryKind::Device => (
                CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
                location(
                    CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                    ordinal(self.device),
                ),
            ),
            GraphMemoryKind::Host => (
                CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
                location(CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST, 0),
            ),
            GraphMemoryKind::Managed => (
                CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED,
                location(
                    CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                    ordinal(self.device),
                ),
            ),
        };
        raw.poolProps.allocType = kind;
        raw.poolProps.location = place;
        raw.bytesize = self.bytes;
        if !access.is_empty() {
            raw.accessDescs = access.as_ptr();
            raw.accessDescCount = access.len();
        }
        raw
    }

    /// From what the driver reports.
    ///
    /// # Safety
    ///
    /// The access rights of `raw` are those of a live node.
    pub(crate) unsafe fn from_raw(raw: &CUDA_MEM_ALLOC_NODE_PARAMS) -> Result<AllocationParams> {
        let place = raw.poolProps.location;
        // SAFETY: every bit pattern is an int.
        let id = |location: &CUmemLocation| usize::try_from(unsafe { location.anon0.id });
        let kind = if raw.poolProps.allocType == CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED
        {
            GraphMemoryKind::Managed
        } else if place.r#type == CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE {
            GraphMemoryKind::Device
        } else {
            GraphMemoryKind::Host
        };
        let device = match kind {
            GraphMemoryKind::Host => Device::current()?,
            _ => Device::new(id(&place).unwrap_or(0))?,
        };
        let mut peers = Vec::new();
        for index in 0..raw.accessDescCount {
            // SAFETY: the driver reports this many access rights, which live as long as the node.
            let access = unsafe { &*raw.accessDescs.add(index) };
            if access.flags == CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE {
                peers.push(Device::new(id(&access.location).unwrap_or(0))?);
            }
        }
        Ok(AllocationParams {
            bytes: raw.bytesize,
            device,
            kind,
            peers,
            address: raw.dptr,
        })
    }
}

/// A conditional node.
#[derive(Debug)]
pub struct ConditionalParams {
    /// What it tests.
    pub condition: Condition,
    /// What it does.
    pub kind: ConditionalKind,
    /// The graphs that it may run.
    pub bodies: Vec<crate::graph::GraphDefinition>,
}
