//! Copies between arrays and linear memory.

use cupyrite_sys::driver::{CUDA_MEMCPY3D_st, CUdeviceptr, CUmemorytype};

use crate::array::layout::StridedLayout;
use crate::error::{Error, Result, driver};
use crate::memory::device_copy::DeviceCopy;
use crate::stream::Stream;
use crate::stream::lending::copy_and_wait;
use crate::texture::array::OpaqueArray;

/// Linear memory with the elements of an array: rows at a pitch, slices at a distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PitchedMemory {
    /// Address of the first element.
    pub address: CUdeviceptr,
    /// Bytes between the starts of rows.
    pub row_pitch: usize,
    /// Bytes between the starts of slices, layers or faces.
    pub slice_pitch: usize,
    /// Whether it is host memory that the driver may not know.
    pub on_host: bool,
}

impl PitchedMemory {
    /// Memory without gaps that holds all elements of `array`.
    pub fn dense(array: &OpaqueArray, address: CUdeviceptr, on_host: bool) -> PitchedMemory {
        let [width, rows, _] = array.options().extents();
        let row_pitch = width * array.options().element_bytes();
        PitchedMemory {
            address,
            row_pitch,
            slice_pitch: row_pitch * rows,
            on_host,
        }
    }

    /// Memory of a strided array at `base`, whose elements in C order are those of `array`: contiguous rows at one pitch,
    /// and slices at one distance. The array's axes need not be those of `array`, and contiguous memory may be larger.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a size that does not fit, and for a layout without contiguous rows.
    pub fn strided(
        array: &OpaqueArray,
        base: CUdeviceptr,
        layout: &StridedLayout,
        on_host: bool,
    ) -> Result<PitchedMemory> {
        let [width, rows, slices] = array.options().extents();
        let row = width * array.options().element_bytes();
        let address = base.wrapping_add_signed(layout.offset_in_bytes());
        let size = layout.volume().unsigned_abs() as usize * layout.item_size();
        let dense = PitchedMemory::dense(array, address, on_host);
        let argument_error =
            |problem: String| Error::argument("OpaqueArray::copy", "memory", problem);
        if size < row * rows * slices {
            return Err(argument_error(format!(
                "has {size} bytes; the array has {}",
                row * rows * slices
            )));
        }
        if layout.is_contiguous_c() {
            return Ok(dense);
        }
        if size != row * rows * slices {
            return Err(argument_error(format!(
                "is not contiguous and has {size} bytes; expected exactly the array's {}",
                row * rows * slices
            )));
        }
        let (run, outer) = contiguous_run(layout);
        let pitches = match outer[..] {
            _ if !run.is_multiple_of(row) => None,
            // Whole slices.
            [(count, stride)] if run == row * rows && count == slices => Some((row, stride)),
            // Rows at one pitch throughout.
            [(count, stride)] if run == row && count == rows * slices => {
                Some((stride, stride * rows))
            }
            [(count, distance), (inner, stride)]
                if run == row && count == slices && inner == rows =>
            {
                Some((stride, distance))
            }
            _ => None,
        };
        match pitches {
            Some((row_pitch, slice_pitch)) => Ok(PitchedMemory {
                row_pitch,
                slice_pitch,
                ..dense
            }),
            None => Err(argument_error(format!(
                "has the shape {:?} and strides of {:?} bytes; expected contiguous rows of {row} bytes, {rows} rows at one \
                 pitch, and {slices} slices at one distance",
                layout.shape(),
                layout.strides_in_bytes()
            ))),
        }
    }
}

/// Bytes of the contiguous runs of a layout, and the counts and distances of the axes around them, outermost first.
/// Axes that continue each other are one. No axes, if a distance is not positive.
fn contiguous_run(layout: &StridedLayout) -> (usize, Vec<(usize, usize)>) {
    let mut run = layout.item_size();
    let mut outer: Vec<(usize, usize)> = Vec::new();
    let axes = layout.shape().iter().zip(layout.strides_in_bytes()).rev();
    for (&extent, stride) in axes.filter(|&(&extent, _)| extent != 1) {
        let (Ok(extent), Ok(stride)) = (usize::try_from(extent), usize::try_from(stride)) else {
            return (run, Vec::new());
        };
        match outer.last_mut() {
            None if stride == run => run *= extent,
            Some((count, distance)) if distance.checked_mul(*count) == Some(stride) => {
                *count *= extent;
            }
            _ => outer.push((extent, stride)),
        }
    }
    outer.reverse();
    (run, outer)
}

/// Direction of a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    ToArray,
    FromArray,
}

impl OpaqueArray {
    /// Queues a copy of all elements of the array from `source`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for pitches that are smaller than a row; otherwise the driver's error. Source:
    /// `cuMemcpy3DAsync`.
    ///
    /// # Safety
    ///
    /// The memory is readable until the copy is done, and only work ordered with the stream writes it. The array lives
    /// until then: destroying it waits for the copy.
    pub unsafe fn copy_from_raw(&self, source: PitchedMemory, stream: &Stream) -> Result<()> {
        // SAFETY: the caller's contract.
        unsafe { self.copy(source, Direction::ToArray, stream) }
    }

    /// Queues a copy of all elements of the array to `destination`.
    ///
    /// # Errors
    ///
    /// Same as [`OpaqueArray::copy_from_raw`].
    ///
    /// # Safety
    ///
    /// The memory is writable until the copy is done, and only work ordered with the stream uses it.
    pub unsafe fn copy_to_raw(&self, destination: PitchedMemory, stream: &Stream) -> Result<()> {
        // SAFETY: the caller's contract.
        unsafe { self.copy(destination, Direction::FromArray, stream) }
    }

    /// # Safety
    ///
    /// As [`OpaqueArray::copy_from_raw`].
    unsafe fn copy(
        &self,
        memory: PitchedMemory,
        direction: Direction,
        stream: &Stream,
    ) -> Result<()> {
        self.check_live()?;
        let [width, rows, slices] = self.options().extents();
        let row = width * self.options().element_bytes();
        if rows > 1 && memory.row_pitch < row || slices > 1 && memory.slice_pitch < row {
            return Err(Error::argument(
                "OpaqueArray::copy",
                "memory",
                format!(
                    "has rows at {} bytes and slices at {} bytes; a row of the array has {row} bytes",
                    memory.row_pitch, memory.slice_pitch
                ),
            ));
        }
        // With one row the pitch is free, and the distance of slices becomes that of rows.
        let pitch = match (rows, slices) {
            (1, 1) => row,
            (1, _) => memory.slice_pitch,
            _ => memory.row_pitch,
        };
        let whole = slices == 1
            || memory.slice_pitch.is_multiple_of(pitch) && memory.slice_pitch >= pitch * rows;
        let (count, depth) = if whole { (1, slices) } else { (slices, 1) };
        for first in 0..count {
            let address = memory
                .address
                .wrapping_add((first * memory.slice_pitch) as u64);
            let height = if whole && slices > 1 {
                memory.slice_pitch / pitch
            } else {
                rows
            };
            let copy = self.request(
                address,
                memory.on_host,
                (pitch, height),
                (first, depth),
                direction,
            );
            stream.queue_copy(|| {
                // SAFETY: the caller's contract for the memory; the array is live; read before the call returns.
                unsafe { driver!(cuMemcpy3DAsync(&raw const copy, stream.handle())) }
            })?;
        }
        Ok(())
    }

    /// The driver's description of a copy of `depth` slices from `first` on, between the array and linear memory with
    /// rows at `pitch` bytes and slices of `height` rows.
    fn request(
        &self,
        address: CUdeviceptr,
        on_host: bool,
        (pitch, height): (usize, usize),
        (first, depth): (usize, usize),
        direction: Direction,
    ) -> CUDA_MEMCPY3D_st {
        let [width, rows, _] = self.options().extents();
        let kind = if on_host {
            CUmemorytype::CU_MEMORYTYPE_HOST
        } else {
            CUmemorytype::CU_MEMORYTYPE_UNIFIED
        };
        // SAFETY: integers, null pointers and enums, for which zero is valid.
        let mut copy: CUDA_MEMCPY3D_st = unsafe { std::mem::zeroed() };
        copy.WidthInBytes = width * self.options().element_bytes();
        copy.Height = rows;
        copy.Depth = depth;
        match direction {
            Direction::ToArray => {
                copy.srcMemoryType = kind;
                copy.srcHost = std::ptr::with_exposed_provenance(address as usize);
                copy.srcDevice = address;
                copy.srcPitch = pitch;
                copy.srcHeight = height;
                copy.dstMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
                copy.dstArray = self.handle();
                copy.dstZ = first;
            }
            Direction::FromArray => {
                copy.dstMemoryType = kind;
                copy.dstHost = std::ptr::with_exposed_provenance_mut(address as usize);
                copy.dstDevice = address;
                copy.dstPitch = pitch;
                copy.dstHeight = height;
                copy.srcMemoryType = CUmemorytype::CU_MEMORYTYPE_ARRAY;
                copy.srcArray = self.handle();
                copy.srcZ = first;
            }
        }
        copy
    }

    /// Copies a slice with all elements of the array, in the order channel, x, y, z, and waits for the copy.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] if the sizes differ or the stream is being captured; the driver's error where the thread
    /// must not wait, in a host callback or because a capture forbids it: nothing is copied then; otherwise the error of
    /// earlier work.
    pub fn copy_from<T: DeviceCopy>(&self, data: &[T], stream: &Stream) -> Result<()> {
        self.same_size("OpaqueArray::copy_from", "data", size_of_val(data))?;
        let memory = PitchedMemory::dense(self, data.as_ptr().expose_provenance() as u64, true);
        copy_and_wait("OpaqueArray::copy_from", stream, || {
            // SAFETY: the slice has the array's size and is borrowed until the copy is done.
            unsafe { self.copy_from_raw(memory, stream) }
        })
    }

    /// Copies all elements of the array to a slice, and waits for the copy.
    ///
    /// # Errors
    ///
    /// Same as [`OpaqueArray::copy_from`].
    pub fn copy_to<T: DeviceCopy>(&self, out: &mut [T], stream: &Stream) -> Result<()> {
        self.same_size("OpaqueArray::copy_to", "out", size_of_val(out))?;
        let memory = PitchedMemory::dense(self, out.as_mut_ptr().expose_provenance() as u64, true);
        copy_and_wait("OpaqueArray::copy_to", stream, || {
            // SAFETY: the slice has the array's size and is borrowed until the copy is done; `T: DeviceCopy` makes every
            // bit pattern valid.
            unsafe { self.copy_to_raw(memory, stream) }
        })
    }

    fn same_size(&self, function: &'static str, parameter: &str, given: usize) -> Result<()> {
        let size = self.options().size_bytes();
        if given == size {
            return Ok(());
        }
        Err(Error::argument(
            function,
            parameter,
            format!("has {given} bytes, the array {size}"),
        ))
    }
}
