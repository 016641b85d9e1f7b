//! Error texts for cuFile's statuses. The library exports none, and the texts in its header are NVIDIA's.

use crate::bindings::call::convert;
use crate::bindings::custom::required;
use crate::bindings::descriptor::Arguments;
use crate::bindings::descriptor::Int;
use crate::cpython;
use crate::cpython::{Owned, R};

/// `op_status_error(status)`: the text for a status.
pub fn op_status_error(arguments: Arguments<'_>) -> R<Owned> {
    let status = convert::int(required(arguments, 0)?, Int::I32, arguments.site(0))?;
    cpython::from_str(match words(status.cast_signed()) {
        "" => "unknown status of cuFile",
        words => words,
    })
}

/// The text for a cuFile status; empty for an unknown one.
pub fn words(status: i64) -> &'static str {
    match WORDS.binary_search_by_key(&status, |row| row.0) {
        Ok(at) => WORDS[at].1,
        Err(_) => "",
    }
}

/// `CUfileOpError`, sorted.
const WORDS: &[(i64, &str)] = &[
    (0, "success"),
    (
        5001,
        "cuFile is not initialised, or the nvidia-fs kernel module is missing and compatibility mode is off",
    ),
    (5002, "a property of the driver has no valid value"),
    (5003, "a limit of the driver is out of its range"),
    (
        5004,
        "the nvidia-fs kernel module and libcufile do not fit together",
    ),
    (
        5005,
        "the version of the nvidia-fs kernel module cannot be read",
    ),
    (5006, "cuFile is being shut down"),
    (5007, "GPUDirect Storage does not run on this platform"),
    (5008, "the file's file system or device is not supported"),
    (5009, "the GPU is not supported"),
    (5010, "the nvidia-fs kernel module reports an error"),
    (5011, "the CUDA driver reports an error"),
    (5012, "the address is not GPU memory"),
    (5013, "this type of GPU memory cannot be used"),
    (5014, "the range lies outside of its allocation"),
    (5015, "the memory belongs to another CUDA context"),
    (5016, "more memory is accessed than was registered"),
    (5017, "memory outside of what was registered is accessed"),
    (5018, "files of this type are not supported"),
    (
        5019,
        "the file was opened with flags that are not supported",
    ),
    (5020, "the file was opened without O_DIRECT"),
    (5022, "an argument has no valid value"),
    (5023, "the memory is registered already"),
    (5024, "the memory is not registered"),
    (5025, "permission to the driver or the file is denied"),
    (5026, "cuFile is open already"),
    (5027, "the file is not registered"),
    (5028, "the file is registered already"),
    (5029, "the GPU was not found"),
    (5030, "internal error of cuFile"),
    (5031, "no new file descriptor could be had"),
    (5033, "the nvidia-fs kernel module could not be set up"),
    (5034, "GPUDirect Storage is switched off for this request"),
    (5035, "the batch could not be submitted"),
    (5036, "GPU memory could not be pinned"),
    (5037, "the batch is full"),
    (5038, "asynchronous requests are not supported"),
    (5039, "a batch could not be set up"),
    (
        5040,
        "the batch could not be submitted now; try again later",
    ),
    (5041, "the state of the batch could not be had"),
    (5042, "the batch could not be cancelled"),
    (5043, "not enough memory"),
    (5044, "reading or writing failed"),
    (5045, "an internal buffer could not be registered"),
    (5046, "an internal table could not be changed"),
    (5047, "the CUDA context is not valid"),
    (5048, "internal error of the nvidia-fs kernel module"),
    (5049, "batches do not work in compatibility mode here"),
    (5050, "the highest status: nothing reports it"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_words() {
        assert!(WORDS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(words(5022), "an argument has no valid value");
        assert_eq!(words(5021), "");
        assert_eq!(words(-1), "");
    }
}
