//! Hooks of NVML functions: lists of fields, structs for which Python passes bytes, and arrays whose length another function
//! reports.

use cupyrite_sys::checked;
use cupyrite_sys::loader::{self, Backend, CudaLibrary};
use pyo3::ffi;

use crate::bindings::call::convert;
use crate::bindings::call::words::address;
use crate::bindings::custom;
use crate::bindings::descriptor::Arguments;
use crate::bindings::descriptor::{Conv, Function, Int, Module, Slice};
use crate::bindings::errors;
use crate::bindings::errors::{ExceptionKind, Site};
use crate::bindings::exceptions;
use crate::bindings::raising;
use crate::bindings::raising::TOO_SMALL;
use crate::cpython;
use crate::cpython::{Buffer, Obj, Owned, R, Raised};
use crate::generated::nvml_types::class;
use crate::types;

/// Functions that dereference their first handle unchecked. All others validate their handles.
const FOLLOW: &[&str] = &["device_get_device_handle_from_mig_device_handle"];

/// Whether the C function of `f` dereferences its first handle unchecked.
pub fn dereferences_handle(f: &Function) -> bool {
    f.library() == CudaLibrary::Nvml && FOLLOW.contains(&f.name)
}

/// Refuses a handle that is no readable address, for functions that dereference it unchecked.
///
/// # Errors
///
/// `InvalidArgumentError`.
pub fn check_handle(arguments: Arguments<'_>, handle: u64) -> R<()> {
    /// `NVML_ERROR_INVALID_ARGUMENT`
    const INVALID: i64 = 2;
    if !dereferences_handle(arguments.f) || matches!(loader::nvml_backend(), Ok(Backend::Cpu)) {
        return Ok(());
    }
    let at = address(handle);
    if at == 0 || checked::is_readable(at as u64, 8) {
        return Ok(());
    }
    let note = format!(
        "{}() was given {at:#x}, which is no handle of a device",
        arguments.f.name
    );
    Err(exceptions::raise_status(
        arguments.f.module,
        INVALID,
        None,
        None,
        Some(&note),
    ))
}

/// Whether "too small" counts as success: the struct holds as much as fits, and no larger struct exists.
pub fn fills_what_fits(f: &Function) -> bool {
    f.library() == CudaLibrary::Nvml
        && matches!(
            f.name,
            "device_get_vgpu_metadata" | "vgpu_instance_get_metadata"
        )
}

/// The argument for parameter `index`, which has no default, and its site.
///
/// # Errors
///
/// `TypeError`.
pub fn required<'a>(arguments: Arguments<'a>, index: usize) -> R<(Obj<'a>, Site)> {
    custom::required(arguments, index).map(|obj| (obj, arguments.site(index)))
}

/// Converts an integer, address or handle argument. A handle of a registered kind must be alive.
fn number(arguments: Arguments<'_>, index: usize) -> R<u64> {
    let (obj, site) = required(arguments, index)?;
    match arguments.f.params[index].conv {
        Conv::Int(kind) => convert::int(obj, kind, site),
        Conv::LiveHandle(kind) => {
            let value = convert::address(obj, site)?;
            match raising::live_handles::find(kind, value) {
                Some(_) => Ok(value),
                None => Err(raising::not_live(arguments.f, kind, value)),
            }
        }
        _ => convert::address(obj, site),
    }
}

/// Writes a 32-bit member of a struct.
fn put(bytes: &mut [u8], offset: usize, value: u64) {
    bytes[offset..offset + 4].copy_from_slice(&value.to_le_bytes()[..4]);
}

/// Reads a 32-bit member of a struct that C wrote.
fn get(bytes: &[u8], offset: usize) -> u32 {
    let mut word = [0u8; 4];
    word.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_le_bytes(word)
}

/// A struct that C reads and writes.
#[repr(C, align(8))]
struct Bytes<const N: usize>([u8; N]);

impl<const N: usize> Bytes<N> {
    fn at(&mut self) -> u64 {
        self.0.as_mut_ptr().expose_provenance() as u64
    }
}

/// Copies the content of `bytes` or another buffer.
fn content(obj: Obj<'_>, site: Site) -> R<Vec<u8>> {
    if obj.is_str() {
        return Err(errors::wrong_type(site, "bytes", obj));
    }
    match Buffer::get(obj)? {
        Some(view) if view.len() == 0 => Ok(Vec::new()),
        Some(view) => {
            let from = std::ptr::with_exposed_provenance::<u8>(address(view.address()));
            // SAFETY: the view keeps this many bytes alive. The GIL is held during the copy, so no Python code changes
            // them.
            Ok(unsafe { std::slice::from_raw_parts(from, view.len()) }.to_vec())
        }
        None => Err(errors::wrong_type(site, "bytes", obj)),
    }
}

fn value_error(site: Site, what: &str) -> Raised {
    errors::raise(ExceptionKind::Value, &format!("{} {what}", site.prefix()))
}

// ---------------------------------------------------------------------------------------------------------
// Statuses

/// `check_status(status)`: raises for an error status.
pub fn check_status(arguments: Arguments<'_>) -> R<Owned> {
    raise_for(arguments, false)?;
    Ok(cpython::none())
}

/// `check_status(status)` that returns a good status.
pub fn check_status_and_return(arguments: Arguments<'_>) -> R<Owned> {
    raise_for(arguments, false)?;
    cpython::from_i64(0)
}

/// `check_status_size(status)`: "too small" is a good status.
pub fn check_status_size(arguments: Arguments<'_>) -> R<Owned> {
    raise_for(arguments, true)?;
    cpython::from_i64(0)
}

fn raise_for(arguments: Arguments<'_>, size_is_fine: bool) -> R<()> {
    match number(arguments, 0)?.cast_signed() {
        0 => Ok(()),
        TOO_SMALL if size_is_fine => Ok(()),
        status => Err(exceptions::raise_status(
            arguments.f.module,
            status,
            None,
            None,
            None,
        )),
    }
}

// ---------------------------------------------------------------------------------------------------------
// Fields

/// `nvmlFieldValue_t`
const FIELD_VALUE: usize = 40;

/// `(device, values)`. `values` is a `FieldValue` or a list of fields and (field, scope) pairs.
pub fn field_values(arguments: Arguments<'_>) -> R<Owned> {
    let device = number(arguments, 0)?;
    let (obj, site) = required(arguments, 1)?;
    let (values, at, count) = match types::buffer_struct_ptr(obj, Some(class::FieldValue)) {
        Some(at) => {
            types::prepare_struct(obj)?;
            (obj.owned(), at, types::struct_count(obj))
        }
        None => fields(obj, site)?,
    };
    // Without fields the library is not called; the object is returned unchanged, as in NVIDIA's package.
    if count == 0 {
        return Ok(values);
    }
    raising::by_words(arguments.f, &[device, count as u64, at.addr() as u64])?;
    if arguments.f.results.is_empty() {
        Ok(cpython::none())
    } else {
        Ok(values)
    }
}

fn fields(obj: Obj<'_>, site: Site) -> R<(Owned, *mut u8, usize)> {
    const WANTED: &str = "a FieldValue or a sequence of field IDs or (field ID, scope ID) tuples";
    // SAFETY: `obj` is a live object, which the caller's arguments keep alive.
    let sequence = unsafe { ffi::PySequence_Check(obj.ptr()) } != 0;
    if !sequence || obj.is_str() || obj.is_bytes() {
        return Err(errors::wrong_type(site, WANTED, obj));
    }
    let items = obj.snapshot()?;
    debug_assert_eq!(types::class_size(class::FieldValue), FIELD_VALUE);
    let (values, at) = types::new_buffer_struct(class::FieldValue, items.len())?;
    for index in 0..items.len() {
        let item = items.get(index);
        let (field, scope) = if item.is_tuple() {
            let pair = item.snapshot()?;
            if pair.len() != 2 {
                return Err(value_error(
                    site,
                    &format!("must be {WANTED}; item {index} is not"),
                ));
            }
            (
                convert::int(pair.get(0), Int::U32, site)?,
                convert::int(pair.get(1), Int::U32, site)?,
            )
        } else if item.has_slot(ffi::Py_nb_index) {
            (convert::int(item, Int::U32, site)?, 0)
        } else {
            return Err(value_error(
                site,
                &format!("must be {WANTED}; item {index} is not"),
            ));
        };
        // SAFETY: `fresh` allocated one struct of `FIELD_VALUE` bytes for each item. The struct begins with two 32-bit
        // members.
        unsafe {
            let to = at.add(index * FIELD_VALUE).cast::<u32>();
            #[allow(clippy::cast_possible_truncation)] // checked to fit
            to.write_unaligned(field as u32);
            #[allow(clippy::cast_possible_truncation)]
            to.add(1).write_unaligned(scope as u32);
        }
    }
    Ok((values, at, items.len()))
}

// ---------------------------------------------------------------------------------------------------------
// Structs for which Python passes bytes

/// `(type, uuid)`. `uuid` is text of 40 characters for type 1, 16 bytes for type 2.
pub fn handle_by_uuid(arguments: Arguments<'_>) -> R<Owned> {
    let kind = number(arguments, 0)?;
    let (obj, site) = required(arguments, 1)?;
    let uuid = match obj.text() {
        Some(text) if kind == 1 => text.into_bytes(),
        _ => content(obj, site)?,
    };
    match (kind, uuid.len()) {
        // NVIDIA's package also accepts 15 bytes, one too few.
        (1, 40) | (2, 15 | 16) => {}
        (1, len) => {
            let what = format!("must be a UUID of 40 characters, not of {len}");
            return Err(value_error(site, &what));
        }
        (2, len) => {
            let what = format!("must be a UUID of 16 bytes, not of {len}");
            return Err(value_error(site, &what));
        }
        _ => {
            let what = format!("must be 1 (text) or 2 (binary), not {kind}");
            return Err(value_error(arguments.site(0), &what));
        }
    }
    // `nvmlUUID_v1_t`: version, type, text or bytes.
    let mut request = Bytes([0u8; 52]);
    put(&mut request.0, 0, 0x0100_0034);
    put(&mut request.0, 4, kind);
    request.0[8..8 + uuid.len()].copy_from_slice(&uuid);
    let mut device = 0u64;
    let to = &raw mut device;
    raising::by_words(arguments.f, &[request.at(), to.addr() as u64])?;
    // SAFETY: the pointer comes from the initialized local above, which C wrote a handle to.
    cpython::from_i64(unsafe { to.read_volatile() }.cast_signed())
}

/// Size of the text in `nvmlHostname_v1_t`, in bytes, with its nul.
const HOSTNAME: usize = 64;

/// `(device, hostname)`
pub fn set_hostname(arguments: Arguments<'_>) -> R<Owned> {
    let device = number(arguments, 0)?;
    let (obj, site) = required(arguments, 1)?;
    convert::utf8(obj, site)?;
    let name = obj.text().unwrap_or_default();
    if name.len() >= HOSTNAME {
        let what = format!(
            "must have at most {} bytes as UTF-8, not {}",
            HOSTNAME - 1,
            name.len()
        );
        return Err(value_error(site, &what));
    }
    let mut request = Bytes([0u8; HOSTNAME]);
    request.0[..name.len()].copy_from_slice(name.as_bytes());
    raising::by_words(arguments.f, &[device, request.at()])?;
    Ok(cpython::none())
}

/// Size of the data in `nvmlPRMTLV_v1_t`, in bytes. The data follows two 32-bit members: its length and a status.
const PRM: usize = 496;

/// `(device, in_data)`. Returns status and data.
pub fn read_write_prm(arguments: Arguments<'_>) -> R<Owned> {
    let device = number(arguments, 0)?;
    let (obj, site) = required(arguments, 1)?;
    let data = content(obj, site)?;
    if data.len() > PRM {
        let what = format!("must have at most {PRM} bytes, not {}", data.len());
        return Err(value_error(site, &what));
    }
    let mut request = Bytes([0u8; 8 + PRM]);
    put(&mut request.0, 0, data.len() as u64);
    request.0[8..8 + data.len()].copy_from_slice(&data);
    raising::by_words(arguments.f, &[device, request.at()])?;
    let len = (get(&request.0, 0) as usize).min(PRM);
    let status = cpython::from_u64(get(&request.0, 4).into())?;
    let data = cpython::from_bytes(&request.0[8..8 + len])?;
    // SAFETY: `status` and `data` own live objects; `PyTuple_Pack` takes its own references.
    Owned::take(unsafe { ffi::PyTuple_Pack(2, status.ptr(), data.ptr()) })
}

/// `(device, counters)`. Fills in `counters` and returns it.
pub fn prm_counters(arguments: Arguments<'_>) -> R<Owned> {
    let device = number(arguments, 0)?;
    let (obj, site) = required(arguments, 1)?;
    let Some(at) = types::buffer_struct_ptr(obj, Some(class::PRMCounter_v1)) else {
        return Err(errors::wrong_type(site, "PRMCounter_v1", obj));
    };
    types::prepare_struct(obj)?;
    // `nvmlPRMCounterList_v1_t`: count and address.
    let mut request = Bytes([0u8; 16]);
    put(&mut request.0, 0, types::struct_count(obj) as u64);
    request.0[8..].copy_from_slice(&(at.addr() as u64).to_le_bytes());
    raising::by_words(arguments.f, &[device, request.at()])?;
    Ok(obj.owned())
}

/// Offset and length of `nonce` in `nvmlConfComputeGpuAttestationReport_t`.
const NONCE: (usize, usize) = (12, 32);

/// `(device, nonce)`. A shorter nonce is padded with zeros, a longer one truncated.
pub fn attestation_report(arguments: Arguments<'_>) -> R<Owned> {
    let device = number(arguments, 0)?;
    let (obj, site) = required(arguments, 1)?;
    let nonce = content(obj, site)?;
    let (report, at) = types::new_buffer_struct(class::ConfComputeGpuAttestationReport, 1)?;
    let len = nonce.len().min(NONCE.1);
    // SAFETY: the new object holds a whole struct, and `NONCE` lies within it. `len` is at most the length of either side.
    unsafe { std::ptr::copy_nonoverlapping(nonce.as_ptr(), at.add(NONCE.0), len) };
    raising::by_words(arguments.f, &[device, at.addr() as u64])?;
    Ok(report)
}

// ---------------------------------------------------------------------------------------------------------
// Arrays

/// `(device or GPU instance, profile)`. The number of possible placements limits the number of instances.
pub fn instances(arguments: Arguments<'_>) -> R<Owned> {
    let parent = number(arguments, 0)?;
    let profile = number(arguments, 1)?;
    let places = match arguments.f.name {
        "device_get_gpu_instances" => "device_get_gpu_instance_possible_placements_v2",
        _ => "gpu_instance_get_compute_instance_possible_placements",
    };
    let mut count = 0u32;
    let counter = &raw mut count;
    let status = raising::call_named(
        Module::Nvml,
        places,
        &[parent, profile, 0, counter.addr() as u64],
    )?;
    if status != 0 {
        return Err(exceptions::raise_call(arguments.f, status, None));
    }
    // SAFETY: the pointer comes from the initialized local above, which C wrote a number to.
    let most = unsafe { counter.read_volatile() };
    if most == 0 {
        return types::new_slice(Slice::Address, &[]);
    }
    let mut keep = convert::Keep::default();
    let bytes = most as usize * 8;
    let array = keep.array(bytes)?;
    let words = [parent, profile, array.addr() as u64, counter.addr() as u64];
    raising::by_words(arguments.f, &words)?;
    // SAFETY: C wrote a number to the local. The array has room for `most` handles, which limits `found`.
    let found = unsafe {
        let found = counter.read_volatile().min(most) as usize;
        std::slice::from_raw_parts(array, found * 8)
    };
    types::new_slice(Slice::Address, found)
}

/// `(device)`. Returns all supported performance states.
pub fn performance_states(arguments: Arguments<'_>) -> R<Owned> {
    const STATES: usize = 16;
    let device = number(arguments, 0)?;
    let mut states = Bytes([0u8; STATES * 4]);
    let at = states.at();
    raising::by_words(arguments.f, &[device, at, (STATES * 4) as u64])?;
    types::new_array(Slice::U32, &states.0)
}

/// `(set, index)`. Returns the context data of an event.
pub fn context_data(arguments: Arguments<'_>) -> R<Owned> {
    let set = number(arguments, 0)?;
    let index = number(arguments, 1)?;
    // `nvmlEventSetGetContextData_v1_t`: address, index, size.
    let mut request = Bytes([0u8; 16]);
    put(&mut request.0, 8, index);
    let at = request.at();
    let status = raising::status_of(arguments.f, &[set, at])?;
    if status != 0 && status != TOO_SMALL {
        return Err(exceptions::raise_call(arguments.f, status, None));
    }
    let size = get(&request.0, 12) as usize;
    if size == 0 {
        return cpython::from_bytes(b"");
    }
    let mut data = vec![0u8; size];
    let to = data.as_mut_ptr().expose_provenance() as u64;
    request.0[..8].copy_from_slice(&to.to_le_bytes());
    raising::by_words(arguments.f, &[set, request.at()])?;
    data.truncate(get(&request.0, 12) as usize);
    cpython::from_bytes(&data)
}

/// `(event_set, timeout_ms, buffer_size)`. Returns the events that occurred, at most `buffer_size`.
pub fn system_event_set_wait(arguments: Arguments<'_>) -> R<Owned> {
    let set = number(arguments, 0)?;
    let timeout = number(arguments, 1)?;
    let most = number(arguments, 2)?;
    let room = address(most);
    let (events, at) = types::new_buffer_struct(class::SystemEventData_v1, room)?;
    // `nvmlSystemEventSetWaitRequest_v1_t`
    let mut request = Bytes([0u8; 32]);
    put(&mut request.0, 0, 0x0100_0020);
    put(&mut request.0, 4, timeout);
    request.0[8..16].copy_from_slice(&set.to_le_bytes());
    let data = if room == 0 { 0 } else { at.addr() as u64 };
    request.0[16..24].copy_from_slice(&data.to_le_bytes());
    put(&mut request.0, 24, most);
    raising::by_words(arguments.f, &[request.at()])?;
    let found = (get(&request.0, 28) as usize).min(room);
    if found == room {
        return Ok(events);
    }
    let (fewer, to) = types::new_buffer_struct(class::SystemEventData_v1, found)?;
    let bytes = found * types::class_size(class::SystemEventData_v1);
    // SAFETY: both objects hold at least `found` structs. They do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(at, to, bytes) };
    Ok(fewer)
}
