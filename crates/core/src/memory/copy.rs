//! Copies and fills of plain addresses in the order of a stream, and what the driver knows of an address.

use std::ffi::{c_int, c_uint, c_void};

use cupyrite_sys::driver::{
    CUdeviceptr, CUmemcpyAttributes, CUmemcpySrcAccessOrder, CUmemorytype, CUpointer_attribute,
    CUresult,
};

use crate::context::device::Device;
use crate::error::{Error, Result, driver};
use crate::memory::location::MemoryLocation;
use crate::memory::raw::is_capturing;
use crate::stream::Stream;

/// When a copy may read its source (`CUmemcpySrcAccessOrder`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SourceAccessOrder {
    /// In the stream's order.
    #[default]
    Stream,
    /// Before the call returns: the source may be changed or freed then, whatever the stream still has to do. What is
    /// in it at the call is what is copied.
    DuringApiCall,
    /// At any time between the call and the copy's turn in the stream.
    Any,
}

/// How a copy is made (`CUmemcpyAttributes`); the default is the plain copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyOptions {
    /// When the source may be read.
    pub source_access_order: SourceAccessOrder,
    /// Where the source is.
    pub source_hint: Option<MemoryLocation>,
    /// Where the destination is.
    pub destination_hint: Option<MemoryLocation>,
    /// Whether the copy should rather run beside kernels than fast (`CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE`).
    pub prefer_overlap_with_compute: bool,
}

impl CopyOptions {
    fn attributes(&self) -> CUmemcpyAttributes {
        type O = CUmemcpySrcAccessOrder;
        CUmemcpyAttributes {
            srcAccessOrder: match self.source_access_order {
                SourceAccessOrder::Stream => O::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM,
                SourceAccessOrder::DuringApiCall => O::CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL,
                SourceAccessOrder::Any => O::CU_MEMCPY_SRC_ACCESS_ORDER_ANY,
            },
            srcLocHint: MemoryLocation::hint_to_raw(self.source_hint),
            dstLocHint: MemoryLocation::hint_to_raw(self.destination_hint),
            flags: c_uint::from(self.prefer_overlap_with_compute),
        }
    }
}

/// Copies between two addresses, device or host, in the order of `stream`.
///
/// With options other than the default ones it takes `cuMemcpyWithAttributesAsync` or, from before CUDA 13.2,
/// `cuMemcpyBatchAsync`. Where the driver has neither, or the stream is one of the default ones, for which neither is
/// defined, it is the plain copy: all options but one are hints and permissions, and that one,
/// [`SourceAccessOrder::DuringApiCall`], is kept by waiting for the stream.
///
/// # Errors
///
/// What the driver says.
///
/// # Safety
///
/// `bytes` bytes can be read at `source` and written at `destination` until the copy is done, and nothing else writes
/// them or reads the destination out of the stream's order.
pub unsafe fn copy_async(
    destination: CUdeviceptr,
    source: CUdeviceptr,
    bytes: usize,
    stream: &Stream,
    options: &CopyOptions,
) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    stream.call(|| {
        if *options != CopyOptions::default() {
            // SAFETY: the caller's promise.
            let done = unsafe { copy_attributed(destination, source, bytes, stream, options) };
            if let Some(result) = done {
                return result;
            }
        }
        // SAFETY: the caller's promise; the handle is live.
        unsafe { driver!(cuMemcpyAsync(destination, source, bytes, stream.handle()))? };
        if options.source_access_order == SourceAccessOrder::DuringApiCall {
            // SAFETY: the handle is live.
            unsafe { driver!(cuStreamSynchronize(stream.handle()))? };
        }
        Ok(())
    })
}

/// The copy by one of the calls that take attributes; `None` where there is no such call for this stream.
///
/// # Safety
///
/// As [`copy_async`].
unsafe fn copy_attributed(
    mut destination: CUdeviceptr,
    mut source: CUdeviceptr,
    mut bytes: usize,
    stream: &Stream,
    options: &CopyOptions,
) -> Option<Result<()>> {
    if is_a_default(stream) {
        return None;
    }
    let mut attributes = options.attributes();
    let mut index = 0usize;
    let handle = stream.handle();
    // SAFETY: the caller's promise for the memory; arrays of one element each, read before the calls return.
    unsafe {
        let one = driver!(cuMemcpyWithAttributesAsync(
            destination,
            source,
            bytes,
            &mut attributes,
            handle
        ));
        available(one)
            .or_else(|| {
                available(driver!(cuMemcpyBatchAsync(
                    &mut destination,
                    &mut source,
                    &mut bytes,
                    1,
                    &mut attributes,
                    &mut index,
                    1,
                    handle
                )))
            })
            .or_else(|| {
                let mut failed = usize::MAX;
                available(driver!(cuMemcpyBatchAsync_cuda12(
                    &mut destination,
                    &mut source,
                    &mut bytes,
                    1,
                    &mut attributes,
                    &mut index,
                    1,
                    &mut failed,
                    handle
                )))
            })
    }
}

/// Whether it is a default stream: the legacy one as 0 and as 1, the per-thread one as 2 (`CU_STREAM_LEGACY`,
/// `CU_STREAM_PER_THREAD`).
fn is_a_default(stream: &Stream) -> bool {
    const LAST_DEFAULT: usize = 2;
    stream.handle().addr() <= LAST_DEFAULT
}

/// One of several copies: destination, source, bytes.
pub type CopyRange = (CUdeviceptr, CUdeviceptr, usize);

/// Makes several copies that are independent of each other, in the order of `stream`: all after what the stream holds, in
/// any order among themselves. `options` are one for all copies, or one for each.
///
/// Where the driver has no such call (before CUDA 12.8), for the default streams and in a stream that is being captured,
/// the copies are made one by one, as [`copy_async`] makes them.
///
/// # Errors
///
/// [`Error::InvalidArgument`] if the number of options does not match; otherwise what the driver says. Some of the copies
/// may have been made then.
///
/// # Safety
///
/// As [`copy_async`], for each of them; no destination overlaps another range.
pub unsafe fn copy_batch_async(
    copies: &[CopyRange],
    options: &[CopyOptions],
    stream: &Stream,
) -> Result<()> {
    if options.len() != 1 && options.len() != copies.len() {
        let problem = format!(
            "has {} elements for {} copies; expected one, or as many",
            options.len(),
            copies.len()
        );
        return Err(Error::argument("copy_batch_async", "options", problem));
    }
    let one = options.len() == 1;
    // The driver refuses copies of nothing.
    let copies: Vec<(CopyRange, CopyOptions)> = copies
        .iter()
        .enumerate()
        .filter(|(_, copy)| copy.2 != 0)
        .map(|(i, &copy)| (copy, options[if one { 0 } else { i }]))
        .collect();
    if copies.is_empty() {
        return Ok(());
    }
    if !is_a_default(stream) && !is_capturing(stream)? {
        // SAFETY: the caller's promise.
        let done = stream.call(|| match unsafe { copy_together(&copies, stream) } {
            Some(result) => result.map(|()| true),
            None => Ok(false),
        })?;
        if done {
            return Ok(());
        }
    }
    for ((destination, source, bytes), options) in &copies {
        // SAFETY: the caller's promise.
        unsafe { copy_async(*destination, *source, *bytes, stream, options)? };
    }
    Ok(())
}

/// Copies by the call that makes several; `None` where the driver has none.
///
/// # Safety
///
/// As [`copy_batch_async`].
unsafe fn copy_together(
    copies: &[(CopyRange, CopyOptions)],
    stream: &Stream,
) -> Option<Result<()>> {
    let count = copies.len();
    let mut destinations: Vec<CUdeviceptr> = copies.iter().map(|copy| copy.0.0).collect();
    let mut sources: Vec<CUdeviceptr> = copies.iter().map(|copy| copy.0.1).collect();
    let mut sizes: Vec<usize> = copies.iter().map(|copy| copy.0.2).collect();
    // Attributes hold from their index on.
    let (mut attributes, mut indices): (Vec<CUmemcpyAttributes>, Vec<usize>) = copies
        .iter()
        .enumerate()
        .filter(|&(i, copy)| i == 0 || copies[i - 1].1 != copy.1)
        .map(|(i, copy)| (copy.1.attributes(), i))
        .unzip();
    // SAFETY: the caller's promise for the memory; arrays of as many elements as the calls are told, which they read before
    // they return.
    unsafe {
        let done = driver!(cuMemcpyBatchAsync(
            destinations.as_mut_ptr(),
            sources.as_mut_ptr(),
            sizes.as_mut_ptr(),
            count,
            attributes.as_mut_ptr(),
            indices.as_mut_ptr(),
            attributes.len(),
            stream.handle()
        ));
        available(done).or_else(|| {
            let mut failed = usize::MAX;
            available(driver!(cuMemcpyBatchAsync_cuda12(
                destinations.as_mut_ptr(),
                sources.as_mut_ptr(),
                sizes.as_mut_ptr(),
                count,
                attributes.as_mut_ptr(),
                indices.as_mut_ptr(),
                attributes.len(),
                &mut failed,
                stream.handle()
            )))
        })
    }
}

/// `None` for the errors that say that the driver does not have a call.
pub(crate) fn available(result: Result<()>) -> Option<Result<()>> {
    match result {
        Err(
            Error::Load(_)
            | Error::Driver {
                status:
                    CUresult::CUDA_ERROR_NOT_SUPPORTED
                    | CUresult::CUDA_ERROR_NOT_FOUND
                    | CUresult::CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER,
                ..
            },
        ) => None,
        result => Some(result),
    }
}

/// What memory is filled with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FillPattern {
    /// One byte.
    U8(u8),
    /// Two bytes, in the order of the host.
    U16(u16),
    /// Four bytes, in the order of the host.
    U32(u32),
}

impl FillPattern {
    /// Bytes of the pattern.
    pub fn width(self) -> usize {
        match self {
            FillPattern::U8(_) => 1,
            FillPattern::U16(_) => 2,
            FillPattern::U32(_) => 4,
        }
    }

    /// The pattern that these bytes are; `None` unless there are 1, 2 or 4.
    pub fn from_bytes(bytes: &[u8]) -> Option<FillPattern> {
        match *bytes {
            [a] => Some(FillPattern::U8(a)),
            [a, b] => Some(FillPattern::U16(u16::from_ne_bytes([a, b]))),
            [a, b, c, d] => Some(FillPattern::U32(u32::from_ne_bytes([a, b, c, d]))),
            _ => None,
        }
    }
}

/// Fills memory with a pattern, in the order of `stream`.
///
/// # Errors
///
/// [`Error::InvalidArgument`] if `bytes` or the address is no multiple of the pattern's width; otherwise what the
/// driver says.
///
/// # Safety
///
/// `bytes` bytes can be written at `address` until the fill is done, and nothing else uses them out of the stream's
/// order.
pub unsafe fn fill_async(
    address: CUdeviceptr,
    bytes: usize,
    pattern: FillPattern,
    stream: &Stream,
) -> Result<()> {
    let width = pattern.width();
    if !bytes.is_multiple_of(width) {
        return Err(Error::argument(
            "fill",
            "pattern",
            format!("has {width} bytes, of which the buffer's {bytes} bytes are no multiple"),
        ));
    }
    if !address.is_multiple_of(width as u64) {
        return Err(Error::argument(
            "fill",
            "pattern",
            format!("has {width} bytes, to which the address {address:#x} is not aligned"),
        ));
    }
    if bytes == 0 {
        return Ok(());
    }
    let (count, stream_handle) = (bytes / width, stream.handle());
    // SAFETY: the caller's promise; the handle is live.
    stream.call(|| unsafe {
        match pattern {
            FillPattern::U8(v) => driver!(cuMemsetD8Async(address, v, count, stream_handle)),
            FillPattern::U16(v) => driver!(cuMemsetD16Async(address, v, count, stream_handle)),
            FillPattern::U32(v) => driver!(cuMemsetD32Async(address, v, count, stream_handle)),
        }
    })
}

/// Which kind of memory an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// Memory that the driver knows nothing of: pageable host memory, or no memory at all.
    Unknown,
    /// Host memory that was allocated by the driver or registered with it.
    Host,
    /// Device memory.
    Device,
    /// Managed memory, which moves between host and devices.
    Managed,
}

/// What the driver knows of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointerInfo {
    /// The kind of memory.
    pub kind: MemoryKind,
    /// The ordinal of the device that it was allocated on or registered with; `None` for memory of unknown kind.
    pub device: Option<usize>,
}

/// Asks the driver about an address (`cuPointerGetAttributes`).
///
/// # Errors
///
/// What the driver says; an address that it does not know is no error.
pub fn pointer_info(address: CUdeviceptr) -> Result<PointerInfo> {
    let (kind, managed, ordinal) = match ask(address) {
        Err(Error::Driver {
            status: CUresult::CUDA_ERROR_INVALID_CONTEXT | CUresult::CUDA_ERROR_NOT_INITIALIZED,
            ..
        }) => match Device::retained().next() {
            // Addresses mean the same in all contexts of a process, so any of them will do.
            Some(context) => context.with_current(|| ask(address))?,
            // A driver that was not used yet knows of no memory.
            None => (0, 0, -1),
        },
        answer => answer?,
    };
    let kind = match CUmemorytype(kind) {
        _ if managed != 0 => MemoryKind::Managed,
        CUmemorytype::CU_MEMORYTYPE_HOST => MemoryKind::Host,
        CUmemorytype::CU_MEMORYTYPE_DEVICE => MemoryKind::Device,
        _ => MemoryKind::Unknown,
    };
    Ok(PointerInfo {
        kind,
        device: match kind {
            MemoryKind::Unknown => None,
            _ => usize::try_from(ordinal).ok(),
        },
    })
}

/// Memory type, whether it is managed, and the device's ordinal, as numbers.
fn ask(address: CUdeviceptr) -> Result<(c_uint, c_uint, c_int)> {
    type A = CUpointer_attribute;
    let (mut kind, mut managed, mut ordinal): (c_uint, c_uint, c_int) = (0, 0, -1);
    let mut attributes = [
        A::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        A::CU_POINTER_ATTRIBUTE_IS_MANAGED,
        A::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
    ];
    let mut places: [*mut c_void; 3] = [
        (&raw mut kind).cast(),
        (&raw mut managed).cast(),
        (&raw mut ordinal).cast(),
    ];
    // SAFETY: as many attributes and places as the call is told, each place of its attribute's type.
    unsafe {
        driver!(cuPointerGetAttributes(
            attributes.len() as c_uint,
            attributes.as_mut_ptr(),
            places.as_mut_ptr(),
            address
        ))?
    };
    Ok((kind, managed, ordinal))
}
