//! Hooks of cuDLA functions.

use crate::bindings::call::convert;
use crate::bindings::call::general;
use crate::bindings::call::memory_checks;
use crate::bindings::call::words::address;
use crate::bindings::custom::nvml::required;
use crate::bindings::descriptor::Arguments;
use crate::bindings::descriptor::Int;
use crate::bindings::errors;
use crate::bindings::errors::ExceptionKind;
use crate::bindings::exceptions;
use crate::bindings::raising;
use crate::cpython;
use crate::cpython::{Owned, R};
use crate::generated::cudla_types::class;
use crate::types;

/// `CUDLA_STANDALONE` of `cudlaDevCreateFlags`: a device without a GPU. It needs objects of other libraries that Python
/// cannot provide.
const STANDALONE: u64 = 1;
/// `cudlaErrorUnsupportedOperation`
const UNSUPPORTED: i64 = 13;

/// `(device, flags)`
pub fn create_device(arguments: Arguments<'_>) -> R<Owned> {
    let (obj, site) = required(arguments, 1)?;
    if convert::int(obj, Int::U32, site)? == STANDALONE {
        return Err(exceptions::raise_status(
            arguments.f.module,
            UNSUPPORTED,
            None,
            None,
            Some("standalone mode is not available from Python"),
        ));
    }
    general::call(arguments)
}

/// `(h_module, attr_type)`. Returns a number or a list of tensor descriptors.
pub fn module_attributes(arguments: Arguments<'_>) -> R<Owned> {
    let (obj, site) = required(arguments, 0)?;
    let module = convert::address(obj, site)?;
    let (obj, site) = required(arguments, 1)?;
    let which = convert::int(obj, Int::I32, site)?;
    let ask = |which: u64, value: &mut u64| {
        let at = std::ptr::from_mut(value);
        raising::by_words(arguments.f, &[module, which, at.addr() as u64])
    };
    let mut value = 0u64;
    match which {
        // Number of input tensors, output tensors or output task statistics.
        0 | 1 | 4 => {
            ask(which, &mut value)?;
            cpython::from_u64(read(&value) & 0xFFFF_FFFF)
        }
        // Descriptors of the input or output tensors; their number is queried first.
        2 | 3 => {
            ask(which - 2, &mut value)?;
            let count = address(read(&value) & 0xFFFF_FFFF);
            let size = types::class_size(class::ModuleTensorDescriptor);
            let mut keep = convert::Keep::default();
            let array = keep.array(count.checked_mul(size).ok_or_else(errors::no_memory)?)?;
            if count > 0 {
                value = array.addr() as u64;
                ask(which, &mut value)?;
            }
            cpython::list((0..count).map(|index| {
                let (object, to) = types::new_buffer_struct(class::ModuleTensorDescriptor, 1)?;
                // SAFETY: the array has `count` structs of `size` bytes, the new object one. They do not overlap.
                unsafe { std::ptr::copy_nonoverlapping(array.add(index * size), to, size) };
                Ok(object)
            }))
        }
        _ => Err(errors::raise(
            ExceptionKind::Value,
            &format!(
                "{} must be 0 to 4, not {}",
                site.prefix(),
                which.cast_signed()
            ),
        )),
    }
}

/// Reads a word that C wrote.
fn read(value: &u64) -> u64 {
    // SAFETY: the pointer comes from a reference.
    unsafe { std::ptr::from_ref(value).read_volatile() }
}

/// `(dev_handle, ptr_to_tasks, num_tasks, stream, flags)`. `ptr_to_tasks` is a `Task` or the address of an array of tasks.
pub fn submit_task(arguments: Arguments<'_>) -> R<Owned> {
    let int = |index: usize, kind| {
        let (obj, site) = required(arguments, index)?;
        convert::int(obj, kind, site)
    };
    let handle = |index: usize| {
        let (obj, site) = required(arguments, index)?;
        convert::address(obj, site)
    };
    let device = handle(0)?;
    let count = int(2, Int::U32)?;
    let (obj, site) = required(arguments, 1)?;
    let tasks = match types::buffer_struct_ptr(obj, Some(class::Task)) {
        Some(at) => {
            types::prepare_struct(obj)?;
            let have = types::struct_count(obj);
            if count > have as u64 {
                let message = format!(
                    "{} has {have} tasks, but num_tasks is {count}",
                    site.prefix()
                );
                return Err(errors::raise(ExceptionKind::Value, &message));
            }
            at.addr() as u64
        }
        None if obj.is_int() => {
            let at = convert::address(obj, site)?;
            let size = types::class_size(class::Task) as u64;
            memory_checks::check_memory(at, count.saturating_mul(size), site)?;
            at
        }
        None => return Err(errors::wrong_type(site, "Task or an address", obj)),
    };
    let (stream, flags) = (handle(3)?, int(4, Int::U32)?);
    raising::by_words(arguments.f, &[device, tasks, count, stream, flags])?;
    Ok(cpython::none())
}
