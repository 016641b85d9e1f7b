//! The C structures of DLPack (`dlpack.h`, version 1.3), with which array libraries exchange memory.
//!
//! They are plain data of a foreign interface: producers and consumers follow DLPack's rules. Only `version`,
//! `context` and `deleter` of a [`ManagedTensorVersioned`] of another major version may be read.

use std::ffi::{c_char, c_int, c_void};

/// The version of these structures, which are the same in all of version 1.
pub const VERSION: Version = Version { major: 1, minor: 3 };

/// `DLPackVersion`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// Changes with the layout of the structures.
    pub major: u32,
    /// Changes with new kinds of devices and types.
    pub minor: u32,
}

/// `DLDeviceType`, as a number: other libraries may know more kinds.
#[repr(transparent)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceType(pub i32);

impl DeviceType {
    /// Host memory.
    pub const CPU: DeviceType = DeviceType(1);
    /// CUDA device memory.
    pub const CUDA: DeviceType = DeviceType(2);
    /// Page-locked host memory.
    pub const CUDA_HOST: DeviceType = DeviceType(3);
    /// Managed memory.
    pub const CUDA_MANAGED: DeviceType = DeviceType(13);

    /// Whether a CUDA device can access the memory.
    pub fn is_device_accessible(self) -> bool {
        matches!(
            self,
            DeviceType::CUDA | DeviceType::CUDA_HOST | DeviceType::CUDA_MANAGED
        )
    }

    /// Whether the host can access the memory.
    pub fn is_host_accessible(self) -> bool {
        matches!(
            self,
            DeviceType::CPU | DeviceType::CUDA_HOST | DeviceType::CUDA_MANAGED
        )
    }
}

/// `DLDevice`.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DlDevice {
    /// The kind of memory.
    pub kind: DeviceType,
    /// The device number; 0 for memory of no device.
    pub number: i32,
}

/// `DLDataType`: elements in native byte order.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DataType {
    /// `DLDataTypeCode`: one of the constants.
    pub code: u8,
    /// Bits of one lane.
    pub bits: u8,
    /// Lanes per element; 1 except for vector types.
    pub lanes: u16,
}

impl DataType {
    /// Signed integers.
    pub const INT: u8 = 0;
    /// Unsigned integers.
    pub const UINT: u8 = 1;
    /// IEEE floating point.
    pub const FLOAT: u8 = 2;
    /// `bfloat16`.
    pub const BFLOAT: u8 = 4;
    /// Complex numbers: two floats of half the bits.
    pub const COMPLEX: u8 = 5;
    /// Booleans.
    pub const BOOL: u8 = 6;

    /// A type of one lane.
    pub const fn new(code: u8, bits: u8) -> DataType {
        DataType {
            code,
            bits,
            lanes: 1,
        }
    }

    /// Bytes per element; `None` if that is not a whole number.
    pub fn bytes(self) -> Option<usize> {
        let bits = usize::from(self.bits) * usize::from(self.lanes);
        (bits != 0 && bits.is_multiple_of(8)).then_some(bits / 8)
    }
}

/// `DLTensor`.
#[repr(C)]
#[derive(Debug)]
pub struct Tensor {
    /// The address, `byte_offset` bytes before the first element.
    pub data: *mut c_void,
    /// The device of the memory.
    pub device: DlDevice,
    /// The number of dimensions.
    pub ndim: i32,
    /// The element type.
    pub dtype: DataType,
    /// `ndim` extents.
    pub shape: *mut i64,
    /// `ndim` strides, in elements; before version 1.2 null for C order.
    pub strides: *mut i64,
    /// Offset of the first element in bytes.
    pub byte_offset: u64,
}

/// `DLManagedTensor`: before version 1.
#[repr(C)]
#[derive(Debug)]
pub struct ManagedTensor {
    /// The array.
    pub tensor: Tensor,
    /// The producer's context.
    pub context: *mut c_void,
    /// The consumer calls it once, when it is done.
    pub deleter: Option<unsafe extern "C" fn(*mut ManagedTensor)>,
}

/// `DLManagedTensorVersioned`.
#[repr(C)]
#[derive(Debug)]
pub struct ManagedTensorVersioned {
    /// The producer's version.
    pub version: Version,
    /// The producer's context.
    pub context: *mut c_void,
    /// The consumer calls it once, when it is done.
    pub deleter: Option<unsafe extern "C" fn(*mut ManagedTensorVersioned)>,
    /// [`READ_ONLY`] and others.
    pub flags: u64,
    /// The array.
    pub tensor: Tensor,
}

/// Flag: the memory must not be written.
pub const READ_ONLY: u64 = 1;

/// `DLPackExchangeAPIHeader`.
#[repr(C)]
#[derive(Debug)]
pub struct ExchangeApiHeader {
    /// The version of the functions.
    pub version: Version,
    /// The functions of an older version; null for none.
    pub previous: *mut ExchangeApiHeader,
}

/// The error callback of [`ExchangeApi::allocate`]: its first argument, the name of an exception, a message.
pub type SetError = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char);

/// `DLPackExchangeAPI`: the C functions of an array class, in a capsule in its attribute `__dlpack_c_exchange_api__`.
/// All return 0, or -1 with a Python exception set. None waits for a stream.
#[repr(C)]
#[derive(Debug)]
pub struct ExchangeApi {
    /// The version.
    pub header: ExchangeApiHeader,
    /// Allocates an array like a prototype.
    pub allocate: Option<
        unsafe extern "C" fn(
            *mut Tensor,
            *mut *mut ManagedTensorVersioned,
            *mut c_void,
            Option<SetError>,
        ) -> c_int,
    >,
    /// Exports an array, which lives until the deleter is called.
    pub export:
        Option<unsafe extern "C" fn(*mut c_void, *mut *mut ManagedTensorVersioned) -> c_int>,
    /// Converts an export to a Python object, which then owns it.
    pub import:
        Option<unsafe extern "C" fn(*mut ManagedTensorVersioned, *mut *mut c_void) -> c_int>,
    /// Describes an array while the caller keeps it. May be null.
    pub describe: Option<unsafe extern "C" fn(*mut c_void, *mut Tensor) -> c_int>,
    /// The library's current stream on a device.
    pub current_stream: Option<unsafe extern "C" fn(DeviceType, i32, *mut *mut c_void) -> c_int>,
}

/// The name of the capsule with an [`ExchangeApi`].
pub const EXCHANGE_API: &std::ffi::CStr = c"dlpack_exchange_api";

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// Sizes and offsets as a C compiler has them for `dlpack.h` on a 64-bit machine.
    #[test]
    fn structures_match_the_c_header() {
        assert_eq!(
            (
                size_of::<Tensor>(),
                offset_of!(Tensor, dtype),
                offset_of!(Tensor, byte_offset)
            ),
            (48, 20, 40)
        );
        assert_eq!(
            (
                size_of::<ManagedTensor>(),
                offset_of!(ManagedTensor, context)
            ),
            (64, 48)
        );
        assert_eq!(
            (
                size_of::<ManagedTensorVersioned>(),
                offset_of!(ManagedTensorVersioned, tensor)
            ),
            (80, 32)
        );
        assert_eq!(
            (
                size_of::<ExchangeApi>(),
                offset_of!(ExchangeApi, current_stream)
            ),
            (56, 48)
        );
    }

    #[test]
    fn sizes_of_elements() {
        assert_eq!(DataType::new(DataType::FLOAT, 32).bytes(), Some(4));
        assert_eq!(
            DataType {
                code: 2,
                bits: 32,
                lanes: 4
            }
            .bytes(),
            Some(16)
        );
        assert_eq!(DataType::new(17, 4).bytes(), None);
        assert_eq!(DataType::new(0, 0).bytes(), None);
    }
}
