//! The environment variables of the driver; those of the engine are in `cupyrite_engine::settings`. An empty variable counts
//! as unset.

use std::env;

use cupyrite_engine::settings::{InvalidSetting, read};
use cupyrite_sys::loader::variables;

/// Maximum number of devices.
pub(crate) const MAX_DEVICES: i32 = 16;

/// Refuses unknown variables.
pub(crate) fn check_names() -> Result<(), InvalidSetting> {
    variables::check_names().map_err(|error| InvalidSetting::new(error.to_string()))
}

/// `CUPYRITE_CPU_DEVICES`: number of devices, by default 1.
pub(crate) fn devices() -> Result<i32, InvalidSetting> {
    let count = read("CUPYRITE_CPU_DEVICES", "an integer from 1 to 16", |text| {
        text.parse().ok().filter(|n| (1..=MAX_DEVICES).contains(n))
    })?;
    Ok(visible(
        count.unwrap_or(1),
        env::var_os("CUDA_VISIBLE_DEVICES")
            .map(|list| list.to_string_lossy().into_owned())
            .as_deref(),
    ))
}

/// The number of devices that `CUDA_VISIBLE_DEVICES` shows: those listed before the first that does not exist. All devices
/// are alike, so their order has no effect. Only numbers are recognized, and a list of other names shows all devices.
fn visible(count: i32, list: Option<&str>) -> i32 {
    let Some(list) = list else { return count };
    let numbers = list
        .split(',')
        .map(|item| item.trim().parse::<i32>().ok())
        .collect::<Vec<_>>();
    if !list.trim().is_empty() && numbers[0].is_none() {
        return count;
    }
    let mut shown = Vec::new();
    for number in numbers {
        match number {
            Some(number) if (0..count).contains(&number) && !shown.contains(&number) => {
                shown.push(number);
            }
            _ => break,
        }
    }
    shown.len() as i32
}

/// `CUPYRITE_CPU_COMPUTE_CAPABILITY`: the compute capability that the devices present, by default 8.9.
pub(crate) fn compute_capability() -> Result<(i32, i32), InvalidSetting> {
    let capability = read(
        "CUPYRITE_CPU_COMPUTE_CAPABILITY",
        "a version from 5.0 to 12.9, such as 8.9",
        |text| {
            let (major, minor) = text.split_once('.')?;
            let (major, minor) = (major.parse().ok()?, minor.parse().ok()?);
            ((5..=12).contains(&major) && (0..=9).contains(&minor)).then_some((major, minor))
        },
    )?;
    Ok(capability.unwrap_or((8, 9)))
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn visible_devices_are_those_before_an_invalid_number() {
        for (list, shown) in [
            (None, 3),
            (Some(""), 0),
            (Some("-1"), 0),
            (Some("1"), 1),
            (Some("2, 0"), 2),
            (Some("0,-1,1"), 1),
            (Some("0,0"), 1),
            (Some("7"), 0),
            (Some("0,1,2,3"), 3),
            (Some("GPU-1234"), 3),
        ] {
            assert_eq!(visible(3, list), shown, "{list:?}");
        }
    }
}
