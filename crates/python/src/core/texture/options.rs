//! Conversion of the option classes of `cuda.core.texture`.

use cupyrite::{
    AddressMode, ArrayFormat, ArrayKind, ArrayOptions, FilterMode, ReadMode, TextureOptions,
};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::core::numbers::short_repr;
use crate::core::options::{Fields, OptionClass};

static ARRAY_OPTIONS: OptionClass =
    OptionClass::new("cuda.core.texture._array", "OpaqueArrayOptions");
static MIPMAPPED_OPTIONS: OptionClass = OptionClass::new(
    "cuda.core.texture._mipmapped_array",
    "MipmappedArrayOptions",
);
static TEXTURE_OPTIONS: OptionClass =
    OptionClass::new("cuda.core.texture._texture", "TextureObjectOptions");

/// The enumeration member of an element format, `cuda.core.typing.ArrayFormatType`.
///
/// # Errors
///
/// Errors of the import.
pub fn format_member(py: Python<'_>, format: ArrayFormat) -> PyResult<Py<PyAny>> {
    static CLASS: OptionClass = OptionClass::new("cuda.core.typing", "ArrayFormatType");
    CLASS.get(py)?.call1((format.name(),)).map(Bound::unbind)
}

/// Converts an element format: an `ArrayFormatType`, its name, or anything that `numpy.dtype()` accepts.
///
/// # Errors
///
/// `ValueError` for other formats.
pub fn format(given: &Bound<'_, PyAny>) -> PyResult<ArrayFormat> {
    let py = given.py();
    if let Some(found) = known_format(given) {
        return Ok(found);
    }
    let name = PyModule::import(py, intern!(py, "cuda.core.texture._array"))?
        .getattr(intern!(py, "_format"))?
        .call1((given,))?;
    known_format(&name).ok_or_else(|| {
        PyValueError::new_err(format!(
            "format is {}; expected an ArrayFormatType",
            short_repr(given)
        ))
    })
}

fn known_format(given: &Bound<'_, PyAny>) -> Option<ArrayFormat> {
    let text = given.cast::<PyString>().ok()?;
    ArrayFormat::from_name(&text.to_string_lossy())
}

/// Converts a number of channels.
///
/// # Errors
///
/// `ValueError` for numbers other than 1, 2 and 4.
pub fn channels(given: &Bound<'_, PyAny>) -> PyResult<u32> {
    match given.extract::<u32>() {
        Ok(channels @ (1 | 2 | 4)) => Ok(channels),
        _ => Err(PyValueError::new_err(format!(
            "num_channels is {}; expected 1, 2 or 4",
            short_repr(given)
        ))),
    }
}

/// Converts a count to an int, `expected` being at least `least`.
///
/// # Errors
///
/// `TypeError` for other types, `ValueError` for smaller numbers, `OverflowError` for those beyond 64 bits.
pub fn count(given: &Bound<'_, PyAny>, name: &str, least: usize) -> PyResult<usize> {
    let py = given.py();
    given
        .extract::<usize>()
        .ok()
        .filter(|&n| n >= least)
        .map_or_else(
            || {
                let displayed = short_repr(given);
                let negative = given.lt(least);
                Err(match negative {
                    Ok(true) => PyValueError::new_err(format!(
                        "{name} is {displayed}; expected at least {least}"
                    )),
                    Ok(false) if given.hasattr(intern!(py, "__index__"))? => {
                        PyOverflowError::new_err(format!(
                            "{name} is {displayed}; expected at most 2**64 - 1"
                        ))
                    }
                    _ => PyTypeError::new_err(format!("{name} is {displayed}; expected an int")),
                })
            },
            Ok,
        )
}

fn array_fields(class: &OptionClass, options: &Bound<'_, PyAny>) -> PyResult<ArrayOptions> {
    let py = options.py();
    let fields = Fields::of(class, options);
    let flag = |name: &Bound<'_, PyString>| fields.get(name)?.is_truthy();
    let layered = flag(intern!(py, "is_layered"))?;
    let cubemap = flag(intern!(py, "is_cubemap"))?;
    let given = fields.get(intern!(py, "shape"))?;
    let extent = |extent: &Bound<'_, PyAny>| count(extent, "shape: an extent", 1);
    let shape: Vec<usize> = match given.cast_exact::<PyTuple>() {
        Ok(extents) => extents
            .iter_borrowed()
            .map(|given| extent(&given))
            .collect::<PyResult<_>>()?,
        Err(_) => given
            .try_iter()?
            .map(|given| extent(&given?))
            .collect::<PyResult<_>>()?,
    };
    Ok(ArrayOptions {
        shape,
        format: format(&fields.get(intern!(py, "format"))?)?,
        num_channels: channels(&fields.get(intern!(py, "num_channels"))?)?,
        surface_load_store: flag(intern!(py, "is_surface_load_store"))?,
        kind: match (layered, cubemap) {
            (false, false) => ArrayKind::Plain,
            (true, false) => ArrayKind::Layered,
            (false, true) => ArrayKind::Cubemap,
            (true, true) => ArrayKind::CubemapLayered,
        },
    })
}

/// Converts `OpaqueArrayOptions`.
///
/// # Errors
///
/// `TypeError` and `ValueError` that name the field.
pub fn array(given: &Bound<'_, PyAny>) -> PyResult<ArrayOptions> {
    let options = ARRAY_OPTIONS.convert("Device.create_opaque_array", "options", given)?;
    array_fields(&ARRAY_OPTIONS, &options)
}

/// Converts `MipmappedArrayOptions`, with the number of levels.
///
/// # Errors
///
/// `TypeError` and `ValueError` that name the field.
pub fn mipmapped(given: &Bound<'_, PyAny>) -> PyResult<(ArrayOptions, u32)> {
    let options = MIPMAPPED_OPTIONS.convert("Device.create_mipmapped_array", "options", given)?;
    let levels = options.getattr(intern!(given.py(), "num_levels"))?;
    let levels = count(&levels, "num_levels", 1)?;
    // The greatest possible number of levels is 64.
    Ok((
        array_fields(&MIPMAPPED_OPTIONS, &options)?,
        u32::try_from(levels).unwrap_or(u32::MAX),
    ))
}

fn member<T: Copy>(given: &Bound<'_, PyAny>, name: &str, known: &[(&str, T)]) -> PyResult<T> {
    let found = given.cast::<PyString>().ok().and_then(|text| {
        let text = text.to_string_lossy();
        known.iter().find(|(name, _)| *name == text)
    });
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<String> = known.iter().map(|(name, _)| format!("'{name}'")).collect();
        PyValueError::new_err(format!(
            "{name} is {}; expected {}",
            short_repr(given),
            names.join(", ")
        ))
    })
}

const FILTER_MODES: [(&str, FilterMode); 2] =
    [("point", FilterMode::Point), ("linear", FilterMode::Linear)];

const ADDRESS_MODES: [(&str, AddressMode); 4] = [
    ("wrap", AddressMode::Wrap),
    ("clamp", AddressMode::Clamp),
    ("mirror", AddressMode::Mirror),
    ("border", AddressMode::Border),
];

const READ_MODES: [(&str, ReadMode); 2] = [
    ("element_type", ReadMode::ElementType),
    ("normalized_float", ReadMode::NormalizedFloat),
];

/// One mode for all dimensions, or one to three; the last one is that of the others.
fn address_modes(given: &Bound<'_, PyAny>) -> PyResult<[AddressMode; 3]> {
    if given.is_instance_of::<PyString>() {
        return Ok([member(given, "address_mode", &ADDRESS_MODES)?; 3]);
    }
    let Ok(items) = given.try_iter() else {
        return Err(PyTypeError::new_err(format!(
            "address_mode is {}; expected an AddressModeType or a tuple of one to three",
            short_repr(given)
        )));
    };
    let modes = items
        .enumerate()
        .map(|(index, mode)| member(&mode?, &format!("address_mode[{index}]"), &ADDRESS_MODES))
        .collect::<PyResult<Vec<_>>>()?;
    match modes[..] {
        [all] => Ok([all; 3]),
        [x, y] => Ok([x, y, y]),
        [x, y, z] => Ok([x, y, z]),
        _ => Err(PyValueError::new_err(format!(
            "address_mode has {} entries; expected one to three",
            modes.len()
        ))),
    }
}

fn float(given: &Bound<'_, PyAny>, name: &str) -> PyResult<f32> {
    match given.extract::<f64>() {
        Ok(number) => Ok(number as f32),
        Err(_) => Err(PyTypeError::new_err(format!(
            "{name} is {}; expected a number",
            short_repr(given)
        ))),
    }
}

fn border_color(given: &Bound<'_, PyAny>) -> PyResult<[f32; 4]> {
    if given.is_none() {
        return Ok([0.0; 4]);
    }
    let Ok(items) = given.try_iter() else {
        return Err(PyTypeError::new_err(format!(
            "border_color is {}; expected four numbers or None",
            short_repr(given)
        )));
    };
    let values = items
        .enumerate()
        .map(|(index, value)| float(&value?, &format!("border_color[{index}]")))
        .collect::<PyResult<Vec<f32>>>()?;
    <[f32; 4]>::try_from(values).map_err(|values| {
        PyValueError::new_err(format!(
            "border_color has {} elements; expected 4",
            values.len()
        ))
    })
}

/// Converts `TextureObjectOptions` or `None`; returns the Python object as well.
///
/// # Errors
///
/// `TypeError`, `ValueError` and `OverflowError` that name the field.
pub fn texture<'py>(
    py: Python<'py>,
    given: Option<&Bound<'py, PyAny>>,
) -> PyResult<(TextureOptions, Bound<'py, PyAny>)> {
    let object = match given.filter(|given| !given.is_none()) {
        Some(given) => TEXTURE_OPTIONS.convert("Device.create_texture_object", "options", given)?,
        None => TEXTURE_OPTIONS.get(py)?.call0()?,
    };
    Ok((texture_fields(&object)?, object))
}

fn texture_fields(object: &Bound<'_, PyAny>) -> PyResult<TextureOptions> {
    let py = object.py();
    let fields = Fields::of(&TEXTURE_OPTIONS, object);
    /// The value of a field.
    macro_rules! value {
        ($name:literal) => {
            fields.get(intern!(py, $name))?
        };
    }
    /// The number in a field.
    macro_rules! number {
        ($name:literal) => {
            float(&value!($name), $name)?
        };
    }
    let anisotropy = value!("max_anisotropy");
    Ok(TextureOptions {
        address_mode: address_modes(&value!("address_mode"))?,
        filter_mode: member(&value!("filter_mode"), "filter_mode", &FILTER_MODES)?,
        read_mode: member(&value!("read_mode"), "read_mode", &READ_MODES)?,
        normalized_coords: value!("normalized_coords").is_truthy()?,
        srgb: value!("srgb").is_truthy()?,
        disable_trilinear_optimization: value!("disable_trilinear_optimization").is_truthy()?,
        seamless_cubemap: value!("seamless_cubemap").is_truthy()?,
        max_anisotropy: u32::try_from(count(&anisotropy, "max_anisotropy", 0)?).map_err(|_| {
            PyOverflowError::new_err(format!(
                "max_anisotropy is {}; expected at most 2**32 - 1",
                short_repr(&anisotropy)
            ))
        })?,
        mipmap_filter_mode: member(
            &value!("mipmap_filter_mode"),
            "mipmap_filter_mode",
            &FILTER_MODES,
        )?,
        mipmap_level_bias: number!("mipmap_level_bias"),
        min_mipmap_level_clamp: number!("min_mipmap_level_clamp"),
        max_mipmap_level_clamp: number!("max_mipmap_level_clamp"),
        border_color: border_color(&value!("border_color"))?,
    })
}
