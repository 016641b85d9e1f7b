//! Stream-ordered copies, fills and frees by address, and queries of addresses.

use std::ffi::{c_int, c_uint, c_void};

use cupyrite_sys::driver::{
    CUdeviceptr, CUmemcpyAttributes, CUmemcpySrcAccessOrder, CUmemorytype, CUpointer_attribute,
    CUresult,
};

use crate::context::capture_mode::RelaxedCapture;
use crate::context::{Context, ContextGuard, Device};
use crate::error::{Error, Result, driver};
use crate::memory::location::MemoryLocation;
use crate::stream::Stream;
use crate::stream::capture::is_capturing;

/// When a copy may read its source (`CUmemcpySrcAccessOrder`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SourceAccessOrder {
    /// In stream order.
    #[default]
    Stream,
    /// Before the call returns: the source may then be changed or freed, whatever the stream has yet to do.
    DuringApiCall,
    /// At any time until the copy's turn in the stream.
    Any,
}

/// Options of a copy (`CUmemcpyAttributes`); the default is a plain copy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CopyOptions {
    /// When the source may be read.
    pub source_access_order: SourceAccessOrder,
    /// The location of the source.
    pub source_hint: Option<MemoryLocation>,
    /// The location of the destination.
    pub destination_hint: Option<MemoryLocation>,
    /// Whether overlap with kernels matters more than speed (`CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE`).
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

/// Copies between two addresses, device or host, in stream order on `stream`.
///
/// With options it uses `cuMemcpyWithAttributesAsync` or, before CUDA 13.2, `cuMemcpyBatchAsync`. If the driver has
/// neither, or for a default stream, for which neither is defined, it makes a plain copy: all options but
/// [`SourceAccessOrder::DuringApiCall`] are hints and permissions, and that one is honoured by waiting for the stream.
///
/// # Errors
///
/// The driver's error.
///
/// # Safety
///
/// `bytes` bytes are readable at `source` and writable at `destination` until the copy is done. Only work ordered with
/// the stream writes them or reads the destination.
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
    stream.queue(|| {
        if *options != CopyOptions::default() {
            // SAFETY: the caller's contract.
            let done = unsafe { copy_with_attributes(destination, source, bytes, stream, options) };
            if let Some(result) = done {
                return result;
            }
        }
        stream.copy_call(|| {
            // SAFETY: the caller's contract; the handle is live.
            unsafe { driver!(cuMemcpyAsync(destination, source, bytes, stream.handle())) }
        })?;
        if options.source_access_order == SourceAccessOrder::DuringApiCall {
            // SAFETY: the handle is live.
            unsafe { driver!(cuStreamSynchronize(stream.handle()))? };
        }
        Ok(())
    })
}

/// Copies with the driver call that takes attributes; `None` if no such call accepts this stream.
///
/// # Safety
///
/// Same as [`copy_async`].
unsafe fn copy_with_attributes(
    mut destination: CUdeviceptr,
    mut source: CUdeviceptr,
    mut bytes: usize,
    stream: &Stream,
    options: &CopyOptions,
) -> Option<Result<()>> {
    if has_default_handle(stream) {
        return None;
    }
    let _entered = match enter_context_of(stream) {
        Ok(entered) => entered,
        Err(error) => return Some(Err(error)),
    };
    let mut attributes = options.attributes();
    let mut index = 0usize;
    let handle = stream.handle();
    // SAFETY: the caller's contract for the memory; arrays of one element each, read before the calls return.
    unsafe {
        let one = driver!(cuMemcpyWithAttributesAsync(
            destination,
            source,
            bytes,
            &mut attributes,
            handle
        ));
        if_supported(one)
            .or_else(|| {
                if_supported(driver!(cuMemcpyBatchAsync(
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
                if_supported(driver!(cuMemcpyBatchAsync_cuda12(
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

/// Makes the stream's context current: unlike other copies, batched ones take the context from the thread (driver 580).
fn enter_context_of(stream: &Stream) -> Result<ContextGuard> {
    stream.context()?.enter()
}

/// Whether the handle is that of a default stream: 0 or 1 for the legacy one, 2 for the per-thread one
/// (`CU_STREAM_LEGACY`, `CU_STREAM_PER_THREAD`).
fn has_default_handle(stream: &Stream) -> bool {
    const LAST_DEFAULT: usize = 2;
    stream.handle().addr() <= LAST_DEFAULT
}

/// One of several copies: destination, source, bytes.
pub type CopyRange = (CUdeviceptr, CUdeviceptr, usize);

/// Makes independent copies: all after the work that the stream holds, in any order among themselves. There is one
/// option set for all copies, or one for each.
///
/// Before CUDA 12.8, for default streams and in a captured stream, each copy is a [`copy_async`].
///
/// # Errors
///
/// [`Error::InvalidArgument`] if the number of options does not match; otherwise the driver's error. Some copies may
/// have been queued then.
///
/// # Safety
///
/// As [`copy_async`], for each copy; no destination overlaps another range.
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
    // The driver rejects copies of 0 bytes.
    let copies: Vec<(CopyRange, CopyOptions)> = copies
        .iter()
        .enumerate()
        .filter(|(_, copy)| copy.2 != 0)
        .map(|(i, &copy)| (copy, options[if one { 0 } else { i }]))
        .collect();
    if copies.is_empty() {
        return Ok(());
    }
    if !has_default_handle(stream) && !is_capturing(stream)? {
        // SAFETY: the caller's contract.
        let done = stream.queue(|| match unsafe { copy_batch(&copies, stream) } {
            Some(result) => result.map(|()| true),
            None => Ok(false),
        })?;
        if done {
            return Ok(());
        }
    }
    for ((destination, source, bytes), options) in &copies {
        // SAFETY: the caller's contract.
        unsafe { copy_async(*destination, *source, *bytes, stream, options)? };
    }
    Ok(())
}

/// Copies by the batched call; `None` if the driver has none.
///
/// # Safety
///
/// Same as [`copy_batch_async`].
unsafe fn copy_batch(copies: &[(CopyRange, CopyOptions)], stream: &Stream) -> Option<Result<()>> {
    let _entered = match enter_context_of(stream) {
        Ok(entered) => entered,
        Err(error) => return Some(Err(error)),
    };
    let count = copies.len();
    let mut destinations: Vec<CUdeviceptr> = copies.iter().map(|copy| copy.0.0).collect();
    let mut sources: Vec<CUdeviceptr> = copies.iter().map(|copy| copy.0.1).collect();
    let mut sizes: Vec<usize> = copies.iter().map(|copy| copy.0.2).collect();
    // Attributes apply from their index on.
    let (mut attributes, mut indices): (Vec<CUmemcpyAttributes>, Vec<usize>) = copies
        .iter()
        .enumerate()
        .filter(|&(i, copy)| i == 0 || copies[i - 1].1 != copy.1)
        .map(|(i, copy)| (copy.1.attributes(), i))
        .unzip();
    // SAFETY: the caller guarantees that the memory is valid; the arrays have the lengths passed, and the calls read
    // them before they return.
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
        if_supported(done).or_else(|| {
            let mut failed = usize::MAX;
            if_supported(driver!(cuMemcpyBatchAsync_cuda12(
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

/// `None` for errors that mean that the driver lacks the call.
pub(crate) fn if_supported(result: Result<()>) -> Option<Result<()>> {
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

/// The value of a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FillPattern {
    /// One byte.
    U8(u8),
    /// Two bytes, in host byte order.
    U16(u16),
    /// Four bytes, in host byte order.
    U32(u32),
}

impl FillPattern {
    /// Width in bytes.
    pub fn width(self) -> usize {
        match self {
            FillPattern::U8(_) => 1,
            FillPattern::U16(_) => 2,
            FillPattern::U32(_) => 4,
        }
    }

    /// The pattern with these bytes; `None` unless there are 1, 2 or 4.
    pub fn from_bytes(bytes: &[u8]) -> Option<FillPattern> {
        match *bytes {
            [a] => Some(FillPattern::U8(a)),
            [a, b] => Some(FillPattern::U16(u16::from_ne_bytes([a, b]))),
            [a, b, c, d] => Some(FillPattern::U32(u32::from_ne_bytes([a, b, c, d]))),
            _ => None,
        }
    }
}

/// Fills memory with a pattern, in stream order on `stream`.
///
/// # Errors
///
/// [`Error::InvalidArgument`] if `bytes` or the address is not a multiple of the pattern's width; otherwise the
/// driver's error.
///
/// # Safety
///
/// `bytes` bytes are writable at `address` until the fill is done. Only work ordered with the stream uses them.
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
    // SAFETY: the caller's contract; the handle is live.
    stream.queue(|| unsafe {
        match pattern {
            FillPattern::U8(v) => driver!(cuMemsetD8Async(address, v, count, stream_handle)),
            FillPattern::U16(v) => driver!(cuMemsetD16Async(address, v, count, stream_handle)),
            FillPattern::U32(v) => driver!(cuMemsetD32Async(address, v, count, stream_handle)),
        }
    })
}

/// Frees memory of a pool in stream order, in relaxed capture mode.
///
/// # Safety
///
/// The address is an allocation of a pool, and nothing else frees it.
pub(crate) unsafe fn free_async(address: CUdeviceptr, stream: &Stream) -> Result<()> {
    if let Some(context) = stream.context_if_destroyed() {
        // SAFETY: the caller's contract.
        return unsafe { free_without_stream(address, context) };
    }
    let _relaxed = RelaxedCapture::enter();
    // SAFETY: the caller's contract.
    stream.call(|| unsafe { driver!(owned cuMemFreeAsync(address, stream.handle())) })
}

/// Frees memory of a pool whose stream the program has destroyed: on the legacy default stream of its context, which
/// waits for the stream's work. A reset of the context does not free memory of a pool on a GPU (an H100, driver 580). It
/// does so on the CPU device, which then returns an error.
///
/// # Safety
///
/// Same as [`free_async`].
#[cold]
#[inline(never)]
pub(crate) unsafe fn free_without_stream(address: CUdeviceptr, context: &Context) -> Result<()> {
    let _relaxed = RelaxedCapture::enter();
    // SAFETY: the caller's contract.
    context.with_current(|| unsafe { driver!(owned cuMemFreeAsync(address, std::ptr::null_mut())) })
}

/// The kind of memory at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// Memory unknown to the driver: pageable host memory, or no memory.
    Unknown,
    /// Host memory allocated by or registered with the driver.
    Host,
    /// Device memory.
    Device,
    /// Managed memory, which migrates between host and devices.
    Managed,
}

/// The driver's information about an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointerInfo {
    /// The kind of memory.
    pub kind: MemoryKind,
    /// The ordinal of the device that it was allocated on or registered with; `None` for unknown memory.
    pub device: Option<usize>,
}

/// Queries an address (`cuPointerGetAttributes`).
///
/// # Errors
///
/// The driver's error; an unknown address is not an error.
pub fn pointer_info(address: CUdeviceptr) -> Result<PointerInfo> {
    let (kind, managed, ordinal) = match query_pointer(address) {
        Err(Error::Driver {
            status: CUresult::CUDA_ERROR_INVALID_CONTEXT | CUresult::CUDA_ERROR_NOT_INITIALIZED,
            ..
        }) => match Device::retained().next() {
            // Addresses are the same in all contexts of a process, so any of them will do.
            Some(context) => context.with_current(|| query_pointer(address))?,
            // A driver that was not used knows no memory.
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

/// Memory type, managed flag and device ordinal, as integers.
fn query_pointer(address: CUdeviceptr) -> Result<(c_uint, c_uint, c_int)> {
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
    // SAFETY: the arrays have the length passed; each pointer has its attribute's type.
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
