//! The compiled kernel does not load, does not run, or has a wrong result.

use super::nvrtc::reinstall_nvrtc;
use super::versions::driver_too_old;
use super::{on_the_cpu, problem, rest_of};
use crate::evidence::Evidence;
use crate::probe::{Failure, FailureKind, Stage};
use crate::report::{Fix, Problem, Severity};

/// The kernel could not be loaded or launched.
pub(crate) fn kernel_failed(evidence: &Evidence<'_>, failure: &Failure) -> Problem {
    if let Some(problem) = driver_too_old(evidence, failure) {
        return problem;
    }
    let code = match (failure.step, failure.kind) {
        (_, FailureKind::Wrong) => "result-wrong",
        (Stage::Load, _) => "load-fails",
        _ => "launch-fails",
    };
    let mut fix = vec![Fix::advice_with_command(
        "see what the kernel module says",
        "sudo dmesg | grep -iE 'nvrm|xid'",
    )];
    if !evidence.on_gpu() {
        fix = vec![Fix::advice(
            "please report this: the CPU device is part of Cupyrite",
        )];
    } else {
        fix.push(on_the_cpu());
    }
    problem(
        code,
        Severity::Error,
        format!("failed to {}", failure.step.words()),
        rest_of(&failure.message),
        fix,
    )
}

/// The kernel ran, and could not be loaded as PTX.
pub(crate) fn ptx_failed(evidence: &Evidence<'_>, failure: &Failure) -> Problem {
    if let Some(problem) = driver_too_old(evidence, failure) {
        return problem;
    }
    problem(
        "ptx-fails",
        Severity::Warning,
        "kernels run as machine code, but not as PTX",
        rest_of(&failure.message),
        reinstall_nvrtc(evidence),
    )
}
