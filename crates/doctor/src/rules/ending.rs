//! The probe did not finish: a hang, an interruption, a crash.

use super::nvrtc::reinstall_nvrtc;
use super::{on_the_cpu, problem};
use crate::evidence::Evidence;
use crate::isolate::End;
use crate::probe::Stage;
use crate::report::{Backend, Fix, Problem, Severity};
use crate::{show, variables};

/// A hang or a crash.
pub(crate) fn crash_or_hang(evidence: &Evidence<'_>) -> Option<Problem> {
    let outcome = evidence.outcome;
    let words = outcome.stage.words();
    let library = match outcome.stage {
        Stage::LoadNvrtc | Stage::Compile => "nvrtc",
        _ => "cuda",
    };
    let path = evidence
        .located(library)
        .and_then(|item| item.path.as_deref())
        .map(show);
    let on_cpu = outcome.probe.backend == Some(Backend::Cpu);
    let mut fix = match library {
        "nvrtc" => reinstall_nvrtc(evidence),
        _ if on_cpu => vec![Fix::advice(
            "please report this: the CPU device is part of Cupyrite",
        )],
        _ => vec![
            Fix::advice_with_command(
                "see what the kernel module says",
                "sudo dmesg | grep -iE 'nvrm|xid'",
            ),
            Fix::advice(
                "restart the machine, or the container; if that does not help, reinstall the NVIDIA driver",
            ),
            on_the_cpu(),
        ],
    };
    match &outcome.end {
        End::Finished => None,
        End::Hung => {
            let seconds = evidence.facts.deadline.as_secs_f64();
            let mut why = match library {
                "nvrtc" => "NVRTC gave no answer; a slow network file system could be the reason.",
                _ if on_cpu => "The CPU device gave no answer.",
                _ => "The NVIDIA driver gave no answer; it usually waits for its kernel module or for the GPU.",
            }
            .to_owned();
            why.push_str(" A longer wait: --deadline SECONDS.");
            if !outcome.in_process && library == "cuda" && !on_cpu {
                fix.insert(
                    0,
                    Fix::advice_with_command("see whether it hangs for others too", "nvidia-smi"),
                );
            }
            Some(problem(
                "hang",
                Severity::Error,
                format!("no answer within {seconds} s: {words}"),
                why,
                fix,
            ))
        }
        End::Crashed { how, .. } if how == "SIGINT" => Some(problem(
            "interrupted",
            Severity::Error,
            format!("interrupted: {words}"),
            "The examination is not complete.",
            vec![Fix::advice("run it again")],
        )),
        End::Crashed { how, said } => {
            let mut why = match &path {
                Some(path) if !on_cpu || library == "nvrtc" => {
                    format!(
                        "The library in use is {path}. It is damaged, or does not fit this machine."
                    )
                }
                _ => "A library in use is damaged, or does not fit this machine.".to_owned(),
            };
            if !said.is_empty() {
                why.push_str("\nIts last words: ");
                why.push_str(said);
            }
            if variables::value(evidence.variables, "LD_PRELOAD").is_some() {
                fix.push(Fix::advice_with_command(
                    "or try without LD_PRELOAD",
                    "unset LD_PRELOAD",
                ));
            }
            Some(problem(
                "crash",
                Severity::Error,
                format!("the process died ({how}): {words}"),
                why,
                fix,
            ))
        }
    }
}
