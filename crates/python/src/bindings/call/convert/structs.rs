//! Structs of the driver and of the functions that raise.

use super::lists::check_count;
use super::numbers::address;
use crate::bindings::call::memory_checks;
use crate::bindings::descriptor::{Module, StructRule};
use crate::bindings::errors;
use crate::bindings::errors::{ExceptionKind, Site};
use crate::cpython::{Obj, R};
use crate::types;

/// The address of a struct of class `id`; null for `None` if `nullable`.
///
/// # Errors
///
/// `TypeError`.
#[inline]
pub fn structure(obj: Obj<'_>, id: types::ClassId, nullable: bool, site: Site) -> R<u64> {
    if let Some(address) = types::struct_ptr(obj, id) {
        types::prepare_struct(obj)?;
        return Ok(address.addr() as u64);
    }
    if obj.is_none() && nullable {
        return Ok(0);
    }
    let or_none = if nullable { " or None" } else { "" };
    let wanted = format!("{}{or_none}", types::class_name(id));
    Err(errors::wrong_type(site, &wanted, obj))
}

/// The address of a struct of class `id` that a function of a raising library takes.
///
/// # Errors
///
/// `TypeError`; `ValueError` for an address without readable memory.
pub fn buffer_struct(
    obj: Obj<'_>,
    id: types::ClassId,
    rule: StructRule,
    module: Module,
    site: Site,
) -> R<u64> {
    if rule != StructRule::Plain
        && let Some(address) = types::buffer_struct_ptr(obj, Some(id))
    {
        types::prepare_struct(obj)?;
        return Ok(address.addr() as u64);
    }
    let class = types::class_name(id);
    match rule {
        StructRule::Exact => Err(errors::wrong_type(site, class, obj)),
        StructRule::Address if obj.is_none() && module != Module::Nvml => Ok(0),
        _ if obj.is_int() => {
            let at = address(obj, site)?;
            if at == 0 && module == Module::Nvml {
                // NVML dereferences the struct before it checks for null.
                let message = format!("{} must be {class}, not a null address", site.prefix());
                return Err(errors::raise(ExceptionKind::Value, &message));
            }
            memory_checks::check_memory(at, types::class_size(id) as u64, site)?;
            Ok(at)
        }
        StructRule::Address => {
            let wanted = match module {
                Module::Nvml => format!("{class} or its address"),
                _ => format!("{class}, its address or None"),
            };
            Err(errors::wrong_type(site, &wanted, obj))
        }
        StructRule::Plain => {
            let wanted = format!("the address of {class}");
            Err(errors::wrong_type(site, &wanted, obj))
        }
    }
}

/// The address of an array of `count` structs of class `id`; null for `None`.
///
/// # Errors
///
/// `TypeError`; fewer structs than `count`; `ValueError` for an address without readable memory.
pub fn buffer_structs(obj: Obj<'_>, id: types::ClassId, count: u64, site: Site) -> R<u64> {
    if obj.is_none() {
        return Ok(0);
    }
    if let Some(at) = types::buffer_struct_ptr(obj, Some(id)) {
        check_count(types::struct_count(obj), Some(count), site)?;
        types::prepare_struct(obj)?;
        return Ok(at.addr() as u64);
    }
    if obj.is_int() {
        let at = address(obj, site)?;
        let bytes = count.saturating_mul(types::class_size(id) as u64);
        memory_checks::check_memory(at, bytes, site)?;
        return Ok(at);
    }
    let wanted = format!("{}, its address or None", types::class_name(id));
    Err(errors::wrong_type(site, &wanted, obj))
}
