//! `cupyrite::test`. What the test harness prints is seen by running this binary's ignored tests in a process of its own;
//! they are not tests, and do nothing in other processes.

use std::panic::{self, AssertUnwindSafe};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, mem, thread};

use cupyrite::sys::driver::CUresult;
use cupyrite::{Context, Device, Kernel, LaunchConfig, Library, MemoryPool, Result, test};

const PTX: &str = "\
.version 7.8
.target sm_75
.address_size 64
.visible .entry fails() { trap; }
.visible .entry twice(.param .u64 p)
{
    .reg .b32 %r<3>;
    .reg .f32 %f<2>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd2, %rd2, %rd3;
    ld.global.f32 %f1, [%rd2];
    add.f32 %f1, %f1, %f1;
    st.global.f32 [%rd2], %f1;
    ret;
}
";
/// Set in the processes that this binary starts.
const INNER: &str = "TESTING_INNER";

fn kernel(name: &str) -> Result<Kernel> {
    Library::load(PTX.as_bytes())?.kernel(name)
}

/// Launches a kernel that fails, and does not wait for it.
fn launch_fault(device: &Device) -> Result<()> {
    let stream = device.create_stream()?;
    // SAFETY: the kernel has no parameters and uses no memory.
    unsafe { kernel("fails")?.launch(&stream, &LaunchConfig::linear(1, 1), &()) }
}

/// Whether kernels run on the device.
fn check_works(device: &Device) {
    let stream = device.create_stream().unwrap();
    let x = device.buffer_from(&[1.0f32, 2.0, 3.0]).unwrap();
    let config = LaunchConfig::linear(1, 3);
    // SAFETY: each thread accesses one of the three elements.
    unsafe { kernel("twice").unwrap().launch(&stream, &config, &(&x,)) }.unwrap();
    stream.synchronize().unwrap();
    assert_eq!(x.to_vec().unwrap(), [2.0, 4.0, 6.0]);
}

fn leak_memory(device: &Device) {
    let stream = device.create_stream().unwrap();
    let pool = MemoryPool::current(device).unwrap();
    mem::forget(pool.allocate(1 << 20, &stream).unwrap());
}

/// The message of the panic of a test.
fn failure(test: impl FnOnce()) -> String {
    let payload = panic::catch_unwind(AssertUnwindSafe(test)).expect_err("the test passed");
    match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => payload.downcast_ref::<&str>().unwrap().to_string(),
    }
}

#[test]
fn a_fault_that_was_left_behind_fails_its_test_and_not_the_next() {
    let text = failure(|| {
        let device = test::device();
        launch_fault(&device).unwrap();
    });
    assert!(
        text.starts_with("the test left a CUDA error behind on device ")
            && text.contains("CUDA_ERROR_LAUNCH_FAILED"),
        "{text}"
    );
    check_works(&test::device());
}

#[test]
fn a_failing_test_keeps_its_message_and_resets_the_device() {
    let text = failure(|| {
        let device = test::device();
        launch_fault(&device).unwrap();
        panic!("the test's own message");
    });
    assert_eq!(text, "the test's own message");
    check_works(&test::device());
}

#[test]
fn objects_that_outlive_a_reset_are_refused_and_dropped() {
    let mut left = None;
    failure(|| {
        let device = test::device();
        let twice = kernel("twice").unwrap();
        left = Some((
            device.create_stream().unwrap(),
            device.buffer_from(&[1u8; 64]).unwrap(),
            twice,
        ));
        launch_fault(&device).unwrap();
    });
    let device = test::device();
    let (stream, buffer, twice) = left.unwrap();
    assert!(stream.synchronize().is_err() && buffer.to_vec().is_err());
    drop((stream, buffer));
    // Libraries belong to no context.
    let (stream, x) = (
        device.create_stream().unwrap(),
        device.buffer_from(&[4.0f32]).unwrap(),
    );
    // SAFETY: one thread accesses the one element.
    unsafe { twice.launch(&stream, &LaunchConfig::linear(1, 1), &(&x,)) }.unwrap();
    stream.synchronize().unwrap();
    assert_eq!(x.to_vec().unwrap(), [8.0]);
}

#[test]
fn tests_in_many_threads_do_not_meet() {
    let inside = AtomicUsize::new(0);
    let devices = Device::count().unwrap();
    thread::scope(|scope| {
        for number in 0..12 {
            let inside = &inside;
            scope.spawn(move || {
                let test = || {
                    let device = test::device();
                    assert!(inside.fetch_add(1, Ordering::SeqCst) < devices);
                    if number % 3 == 0 {
                        launch_fault(&device).unwrap();
                    } else {
                        check_works(&device);
                    }
                    inside.fetch_sub(1, Ordering::SeqCst);
                };
                match number % 3 {
                    0 => assert!(failure(test).contains("CUDA_ERROR_LAUNCH_FAILED")),
                    _ => test(),
                }
            });
        }
    });
}

#[test]
fn expected_faults_are_returned_and_the_test_goes_on() {
    let device = test::device();
    device.deny_leaks();
    let before = device.buffer_from(&[0u8; 1 << 20]).unwrap();
    let fault = device.expect_fault(|| launch_fault(&device));
    assert_eq!(fault.status(), Some(CUresult::CUDA_ERROR_LAUNCH_FAILED));
    assert!(before.to_vec().is_err());
    check_works(&device);
    let fault = device.expect_fault(|| {
        launch_fault(&device)?;
        device.synchronize()
    });
    assert_eq!(fault.status(), Some(CUresult::CUDA_ERROR_LAUNCH_FAILED));
    assert_eq!(
        Context::current().unwrap().unwrap(),
        *device.context().unwrap()
    );
}

#[test]
fn a_missing_fault_fails_the_test() {
    let device = test::device();
    let text = failure(|| drop(device.expect_fault(|| Ok(()))));
    assert!(
        text.starts_with("expected a fault on device ") && text.ends_with("but no kernel failed"),
        "{text}"
    );
    assert!(panic::catch_unwind(|| device.expect_fault(|| Ok(()))).is_err());
    let text = failure(|| drop(device.expect_fault(|| Device::new(1000).map(drop))));
    assert!(
        text.contains("failed with another error") && text.contains("1000"),
        "{text}"
    );
}

#[test]
fn leaks_fail_a_test_that_denies_them() {
    let text = failure(|| {
        let device = test::device();
        device.deny_leaks();
        leak_memory(&device);
    });
    assert!(
        text.contains(" bytes of device memory allocated on device "),
        "{text}"
    );
    let bytes: u64 = text.split(' ').find_map(|word| word.parse().ok()).unwrap();
    assert!(bytes >= 1 << 20, "{text}");
    // The leak of one test is not counted for the next.
    let device = test::device();
    device.deny_leaks();
    check_works(&device);
}

#[test]
fn the_context_is_current_during_the_test_only() {
    let device = test::device();
    assert_eq!(
        Context::current().unwrap().unwrap(),
        *device.context().unwrap()
    );
    drop(device);
    assert_eq!(Context::current().unwrap(), None);
}

#[test]
fn a_second_device_of_a_thread_is_refused() {
    let device = test::device();
    let text = failure(|| drop(test::device()));
    assert!(
        text.contains("already has device ") && text.contains("require().devices()"),
        "{text}"
    );
    drop(device);
    drop(test::device());
}

#[test]
fn other_threads_of_a_test_use_its_device() {
    let device = test::device();
    thread::scope(|scope| {
        scope.spawn(|| check_works(&device));
    });
}

#[test]
fn unmet_requirements_give_no_device() {
    let (major, gpu) = (1000, test::require().gpu());
    assert!(test::require().capability(major, 0).device().is_none());
    assert!(test::require().devices::<1000>().is_none());
    assert!(gpu.cpu_device().device().is_none());
    let has = Device::new(0).unwrap().compute_capability().unwrap();
    let met = test::require()
        .capability(has.major, has.minor)
        .capability(1, 0);
    assert!(met.device().is_some());
    let found = [
        gpu.device().is_some(),
        test::require().cpu_device().device().is_some(),
    ];
    assert_eq!(found.iter().filter(|found| **found).count(), 1);
}

/// Standard output and standard error of ignored tests.
fn run(names: &[&str], threads: &str, variables: &[(&str, &str)]) -> (String, String) {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--ignored", "--exact", "--test-threads", threads])
        .args(names);
    for variable in [
        "CUDA_VISIBLE_DEVICES",
        "CUPYRITE_CPU_COMPUTE_CAPABILITY",
        "CUPYRITE_CPU_DEVICES",
        "NEXTEST_TEST_GLOBAL_SLOT",
    ] {
        command.env_remove(variable);
    }
    command
        .env(INNER, "1")
        .env("CUPYRITE_DEVICE", "cpu")
        .envs(variables.iter().copied());
    let done = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(done.stdout), text(done.stderr))
}

#[test]
fn the_harness_fails_the_faulty_test_only() {
    for (threads, devices) in [("1", "1"), ("4", "1"), ("4", "3")] {
        let names = ["inner::faulty", "inner::good", "inner::good_too"];
        let (printed, errors) = run(&names, threads, &[("CUPYRITE_CPU_DEVICES", devices)]);
        assert!(printed.contains("2 passed; 1 failed"), "{printed}{errors}");
        assert!(
            printed.contains("CUDA_ERROR_LAUNCH_FAILED") && printed.contains("inner::faulty"),
            "{printed}{errors}"
        );
    }
}

#[test]
fn a_leak_is_shown_though_the_test_passes() {
    let (printed, errors) = run(&["inner::leaky"], "2", &[]);
    assert!(printed.contains("1 passed"), "{printed}");
    assert!(
        errors.contains("inner::leaky: the test left ") && errors.contains("on device 0"),
        "{errors}"
    );
}

#[test]
fn the_reason_of_a_skipped_test_is_shown() {
    let names = ["inner::needs_gpu", "inner::needs_two", "inner::needs_newer"];
    let (printed, errors) = run(&names, "2", &[]);
    assert!(printed.contains("3 passed"), "{printed}");
    for reason in [
        "skipped inner::needs_gpu: needs an NVIDIA GPU; this process uses the CPU device\n",
        "skipped inner::needs_two: needs 2 CUDA devices; this process has 1; CUPYRITE_CPU_DEVICES=2 makes more",
        "needs_newer: needs compute capability 12.9; this device has ",
        "; CUPYRITE_CPU_COMPUTE_CAPABILITY=12.9 sets that of the CPU device",
    ] {
        assert!(errors.contains(reason), "{errors}");
    }
    let (printed, errors) = run(&["inner::needs_two"], "2", &[("CUPYRITE_CPU_DEVICES", "2")]);
    assert!(
        printed.contains("1 failed") && printed.contains("both devices were there: 0 1"),
        "{printed}{errors}"
    );
    assert!(!errors.contains("skipped"), "{errors}");
}

#[test]
fn without_a_device_the_test_fails_with_the_reason() {
    let hidden = ("CUDA_VISIBLE_DEVICES", "");
    for (variables, reason) in [
        (vec![hidden], "CUDA_VISIBLE_DEVICES hides all devices"),
        (vec![("CUPYRITE_DEVICE", "gpuu")], "CUPYRITE_DEVICE='gpuu'"),
        (vec![hidden, ("CUPYRITE_DEVICE", "gpu")], ""),
    ] {
        let (printed, errors) = run(&["inner::good"], "2", &variables);
        assert!(printed.contains("1 failed"), "{printed}{errors}");
        assert!(
            printed.contains("no CUDA device for the test: ") && printed.contains(reason),
            "{printed}{errors}"
        );
    }
}

#[test]
fn processes_of_nextest_begin_with_different_devices() {
    let slot = |number| {
        let variables = [
            ("CUPYRITE_CPU_DEVICES", "2"),
            ("NEXTEST_TEST_GLOBAL_SLOT", number),
        ];
        run(&["inner::faulty"], "2", &variables).0
    };
    assert!(slot("2").contains("left a CUDA error behind on device 0"));
    assert!(slot("3").contains("left a CUDA error behind on device 1"));
}

mod inner {
    use super::*;

    fn is_inner() -> bool {
        env::var_os(INNER).is_some()
    }

    #[test]
    #[ignore = "run by other tests"]
    fn faulty() {
        if is_inner() {
            let device = test::device();
            launch_fault(&device).unwrap();
        }
    }

    #[test]
    #[ignore = "run by other tests"]
    fn good() {
        if is_inner() {
            check_works(&test::device());
        }
    }

    #[test]
    #[ignore = "run by other tests"]
    fn good_too() {
        if is_inner() {
            check_works(&test::device());
        }
    }

    #[test]
    #[ignore = "run by other tests"]
    fn leaky() {
        if is_inner() {
            leak_memory(&test::device());
        }
    }

    #[test]
    #[ignore = "run by other tests"]
    fn needs_gpu() {
        if is_inner() && test::require().gpu().device().is_some() {
            panic!("there is a GPU");
        }
    }

    #[test]
    #[ignore = "run by other tests"]
    fn needs_two() {
        if is_inner() {
            let Some([first, second]) = test::require().devices() else {
                return;
            };
            check_works(&first);
            check_works(&second);
            assert_eq!(Context::current().unwrap().unwrap().device(), *first);
            let ordinals = format!("{} {}", first.ordinal(), second.ordinal());
            drop((first, second));
            assert_eq!(Context::current().unwrap(), None);
            panic!("both devices were there: {ordinals}");
        }
    }

    #[test]
    #[ignore = "run by other tests"]
    fn needs_newer() {
        if is_inner() && test::require().capability(12, 9).device().is_some() {
            panic!("there is such a device");
        }
    }
}
