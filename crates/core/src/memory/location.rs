//! Memory locations.

use std::ffi::c_int;

use cupyrite_sys::driver::{CUmemLocation, CUmemLocation_st_anon0, CUmemLocationType};

/// A location of memory, actual or preferred (`CUmemLocation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MemoryLocation {
    /// The memory of the device with this ordinal.
    Device(usize),
    /// The host's memory.
    Host,
    /// The memory of this NUMA node of the host.
    HostNuma(i32),
    /// The memory of the NUMA node that the calling thread runs on.
    HostNumaCurrent,
}

impl MemoryLocation {
    /// The driver's representation.
    pub(crate) fn to_raw(self) -> CUmemLocation {
        type T = CUmemLocationType;
        let (kind, id) = match self {
            Self::Device(ordinal) => (
                T::CU_MEM_LOCATION_TYPE_DEVICE,
                // No machine has that many devices; the driver rejects the number.
                c_int::try_from(ordinal).unwrap_or(c_int::MAX),
            ),
            Self::Host => (T::CU_MEM_LOCATION_TYPE_HOST, 0),
            Self::HostNuma(node) => (T::CU_MEM_LOCATION_TYPE_HOST_NUMA, node),
            Self::HostNumaCurrent => (T::CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0),
        };
        CUmemLocation {
            r#type: kind,
            anon0: CUmemLocation_st_anon0 { id },
        }
    }

    /// The driver's representation of an optional location.
    pub(crate) fn hint_to_raw(hint: Option<Self>) -> CUmemLocation {
        hint.map_or(
            CUmemLocation {
                r#type: CUmemLocationType::CU_MEM_LOCATION_TYPE_INVALID,
                anon0: CUmemLocation_st_anon0 { id: 0 },
            },
            Self::to_raw,
        )
    }

    /// The location for the driver's type and id; `None` for no location and for types that this crate does not know.
    pub(crate) fn from_raw(kind: CUmemLocationType, id: c_int) -> Option<Self> {
        type T = CUmemLocationType;
        match kind {
            T::CU_MEM_LOCATION_TYPE_DEVICE => usize::try_from(id).ok().map(Self::Device),
            T::CU_MEM_LOCATION_TYPE_HOST => Some(Self::Host),
            T::CU_MEM_LOCATION_TYPE_HOST_NUMA => Some(Self::HostNuma(id)),
            T::CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT => Some(Self::HostNumaCurrent),
            _ => None,
        }
    }

    /// The representation in entry points before CUDA 12.2: a device, or `CU_DEVICE_CPU`; `None` if they cannot
    /// express it.
    pub(crate) fn as_device(self) -> Option<c_int> {
        const CPU: c_int = -1;
        match self {
            Self::Device(ordinal) => c_int::try_from(ordinal).ok(),
            Self::Host => Some(CPU),
            Self::HostNuma(_) | Self::HostNumaCurrent => None,
        }
    }
}
