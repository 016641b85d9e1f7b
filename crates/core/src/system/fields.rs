//! Field values: many figures of a device in one call of NVML.

use std::ffi::c_int;
use std::time::Duration;

use cupyrite_sys::nvml::{nvmlFieldValue_st, nvmlReturn_t, nvmlValueType_t as Kind};

use super::device::Device;
use super::library::nvml;
use crate::error::{Error, Result};

/// The number of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum FieldNumber {
    /// A floating-point number.
    Float(f64),
    /// A number that is not negative.
    Unsigned(u64),
    /// A number that may be negative.
    Signed(i64),
}

impl FieldNumber {
    /// The number, rounded if it has more than 53 bits.
    pub fn as_f64(self) -> f64 {
        match self {
            FieldNumber::Float(value) => value,
            FieldNumber::Unsigned(value) => value as f64,
            FieldNumber::Signed(value) => value as f64,
        }
    }
}

/// NVML's answer for one field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FieldValue {
    /// The field: `NVML_FI_*` of [`cupyrite::sys::nvml`](cupyrite_sys::nvml).
    pub field: u32,
    /// Scope of the field, for example a link.
    pub scope: u32,
    /// When the value was sampled, in microseconds since 1970.
    pub timestamp: i64,
    /// How long NVML took to update the value.
    pub latency: Duration,
    value: std::result::Result<FieldNumber, nvmlReturn_t>,
}

impl FieldValue {
    /// The value.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`] with the status of this field.
    pub fn value(&self) -> Result<FieldNumber> {
        self.value.map_err(|status| Error::Nvml {
            call: "nvmlDeviceGetFieldValues",
            status,
        })
    }
}

/// The number in C's union.
fn number(found: &nvmlFieldValue_st) -> std::result::Result<FieldNumber, nvmlReturn_t> {
    if found.nvmlReturn != nvmlReturn_t::NVML_SUCCESS {
        return Err(found.nvmlReturn);
    }
    // SAFETY: plain numbers, for which every bit pattern is valid; NVML wrote the one that its type names, over zeros.
    unsafe {
        let value = found.value;
        Ok(match found.valueType {
            Kind::NVML_VALUE_TYPE_DOUBLE => FieldNumber::Float(value.dVal),
            Kind::NVML_VALUE_TYPE_UNSIGNED_INT => FieldNumber::Unsigned(value.uiVal.into()),
            #[allow(clippy::useless_conversion)] // `c_ulong` has 32 bits on Windows
            Kind::NVML_VALUE_TYPE_UNSIGNED_LONG => FieldNumber::Unsigned(value.ulVal.into()),
            Kind::NVML_VALUE_TYPE_UNSIGNED_LONG_LONG => FieldNumber::Unsigned(value.ullVal),
            Kind::NVML_VALUE_TYPE_SIGNED_LONG_LONG => FieldNumber::Signed(value.sllVal),
            Kind::NVML_VALUE_TYPE_SIGNED_INT => FieldNumber::Signed(value.siVal.into()),
            Kind::NVML_VALUE_TYPE_UNSIGNED_SHORT => FieldNumber::Unsigned(value.usVal.into()),
            _ => return Err(nvmlReturn_t::NVML_ERROR_UNKNOWN),
        })
    }
}

/// Requests of C for (field, scope) pairs.
fn requests(
    fields: &[(u32, u32)],
    function: &'static str,
) -> Result<(Vec<nvmlFieldValue_st>, c_int)> {
    let count = c_int::try_from(fields.len())
        .map_err(|_| Error::argument(function, "fields", "there are more than 2147483647"))?;
    let request = |&(field, scope): &(u32, u32)| nvmlFieldValue_st {
        fieldId: field,
        scopeId: scope,
        ..Default::default()
    };
    Ok((fields.iter().map(request).collect(), count))
}

impl Device {
    /// Many figures in one call: pairs of a field, `NVML_FI_*` of [`cupyrite::sys::nvml`](cupyrite_sys::nvml), and a scope
    /// (0 where the field has none). The error of a field is returned by [`FieldValue::value`].
    ///
    /// Source: `nvmlDeviceGetFieldValues`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`].
    pub fn field_values(&self, fields: &[(u32, u32)]) -> Result<Vec<FieldValue>> {
        if fields.is_empty() {
            return Ok(Vec::new());
        }
        let (wanted, count) = requests(fields, "system::Device::field_values")?;
        let found = self.query(|handle| {
            let mut values = wanted.clone();
            nvml!(nvmlDeviceGetFieldValues(handle, count, values.as_mut_ptr()))?;
            Ok(values)
        })?;
        let value = |found: &nvmlFieldValue_st| FieldValue {
            field: found.fieldId,
            scope: found.scopeId,
            timestamp: found.timestamp,
            latency: Duration::from_micros(found.latencyUsec.max(0).cast_unsigned()),
            value: number(found),
        };
        Ok(found.iter().map(value).collect())
    }

    /// Resets counters: pairs as for [`Device::field_values`]. Requires root.
    ///
    /// Source: `nvmlDeviceClearFieldValues`.
    ///
    /// # Errors
    ///
    /// [`Error::Nvml`], also with the status of the first field that has an error.
    pub fn clear_field_values(&self, fields: &[(u32, u32)]) -> Result<()> {
        if fields.is_empty() {
            return Ok(());
        }
        let (wanted, count) = requests(fields, "system::Device::clear_field_values")?;
        self.query(|handle| {
            let mut values = wanted.clone();
            nvml!(nvmlDeviceClearFieldValues(
                handle,
                count,
                values.as_mut_ptr()
            ))?;
            let failed =
                |value: &&nvmlFieldValue_st| value.nvmlReturn != nvmlReturn_t::NVML_SUCCESS;
            match values.iter().find(failed) {
                None => Ok(()),
                Some(value) => Err(Error::Nvml {
                    call: "nvmlDeviceClearFieldValues",
                    status: value.nvmlReturn,
                }),
            }
        })
    }
}
