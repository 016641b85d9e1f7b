//! Kernels that launch kernels.

use std::fmt::Write as _;

use super::{Session, cu, ok};
use crate::driver::Code;

const HEAD: &str = "
.version 8.0
.target sm_70
.address_size 64
.extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(
    .param .b64 f, .param .align 4 .b8 g[12], .param .align 4 .b8 b[12], .param .b32 s);
.extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 p, .param .b64 s);
.extern .func (.param .b32 r) __cudaCDP2GetLastError();
.extern .func (.param .b32 r) __cudaCDP2StreamCreateWithFlags(.param .b64 p, .param .b32 f);
.extern .func (.param .b32 r) __cudaCDP2StreamDestroy(.param .b64 s);
.extern .func (.param .b32 r) __cudaCDP2EventCreateWithFlags(.param .b64 p, .param .b32 f);
.extern .func (.param .b32 r) __cudaCDP2EventRecord(.param .b64 e, .param .b64 s);
.extern .func (.param .b32 r) __cudaCDP2EventDestroy(.param .b64 e);
.extern .func (.param .b32 r) __cudaCDP2StreamWaitEvent(.param .b64 s, .param .b64 e, .param .b32 f);
.extern .func (.param .b32 r) __cudaCDP2MemsetAsync(.param .b64 p, .param .b32 v, .param .b64 n, .param .b64 s);
.extern .func (.param .b32 r) __cudaCDP2MemcpyAsync(
    .param .b64 to, .param .b64 from, .param .b64 n, .param .b32 k, .param .b64 s);
.visible .global .align 4 .u32 length;
.visible .global .align 4 .b8 journal[16000];

// Appends a number to the journal.
.visible .entry note(.param .u32 value)
{
    .reg .b32 %v, %n;
    .reg .b64 %p;
    ld.param.u32 %v, [value];
    atom.global.add.u32 %n, [length], 1;
    mov.u64 %p, journal;
    mad.wide.u32 %p, %n, 4, %p;
    st.global.u32 [%p], %v;
    ret;
}
.visible .entry trapped(.param .u32 value) { trap; }
.visible .entry bounded(.param .u32 value) .maxntid 64, 1, 1 { ret; }
";

/// Instructions that launch a kernel with one 32-bit parameter.
fn launch(kernel: &str, grid: u32, block: u32, shared: u32, stream: &str, value: &str) -> String {
    format!(
        "{{
    .reg .b64 %f, %b;
    .reg .pred %null;
    .param .b64 f, r, p, s;
    .param .align 4 .b8 g[12];
    .param .align 4 .b8 t[12];
    .param .b32 m, e;
    mov.u64 %f, {kernel};
    st.param.b64 [f], %f;
    st.param.b32 [g], {grid};
    st.param.b32 [g+4], 1;
    st.param.b32 [g+8], 1;
    st.param.b32 [t], {block};
    st.param.b32 [t+4], 1;
    st.param.b32 [t+8], 1;
    st.param.b32 [m], {shared};
    call.uni (r), __cudaCDP2GetParameterBufferV2, (f, g, t, m);
    ld.param.b64 %b, [r];
    setp.eq.u64 %null, %b, 0;
    @%null bra NONE;
    st.u32 [%b], {value};
    st.param.b64 [p], %b;
    st.param.b64 [s], {stream};
    call.uni (e), __cudaCDP2LaunchDeviceV2, (p, s);
NONE:
    }}
"
    )
}

/// Instructions that call a function and add its status to the journal if it is not zero.
fn call(function: &str, args: &[(&str, &str)]) -> String {
    let mut out =
        String::from("{\n.reg .b32 %e, %n;\n.reg .b64 %at;\n.reg .pred %ok;\n.param .b32 e;\n");
    let mut names = Vec::new();
    for (n, (ty, value)) in args.iter().enumerate() {
        let _ = write!(out, ".param .{ty} a{n};\nst.param.{ty} [a{n}], {value};\n");
        names.push(format!("a{n}"));
    }
    let _ = write!(
        out,
        "call.uni (e), __cudaCDP2{function}, ({});
    ld.param.b32 %e, [e];
    setp.eq.u32 %ok, %e, 0;
    @%ok bra DONE;
    atom.global.add.u32 %n, [length], 1;
    mov.u64 %at, journal;
    mad.wide.u32 %at, %n, 4, %at;
    st.global.u32 [%at], %e;
DONE:
}}
",
        names.join(", ")
    );
    out
}

const LAST_ERROR: (&str, &[(&str, &str)]) = ("GetLastError", &[]);

fn last_error() -> String {
    call(LAST_ERROR.0, LAST_ERROR.1)
}

/// A kernel with one 32-bit parameter in `%v`.
fn kernel(name: &str, body: &str) -> String {
    format!(
        ".visible .entry {name}(.param .u32 value)
{{
    .local .align 8 .b8 frame[32];
    .reg .b32 %v, %x, %y;
    .reg .b64 %frame, %s, %t, %q, %p;
    .reg .pred %c;
    ld.param.u32 %v, [value];
    mov.u64 %frame, frame;
    cvta.local.u64 %frame, %frame;
{body}
    ret;
}}
"
    )
}

struct Loaded {
    session: Session,
    module: u64,
}

impl Loaded {
    fn new(kernels: &[(&str, String)]) -> Loaded {
        let session = Session::new();
        let mut text = String::from(HEAD);
        for (name, _) in kernels {
            let _ = writeln!(text, ".visible .entry {name}(.param .u32 value);");
        }
        for (name, body) in kernels {
            text += &kernel(name, body);
        }
        text.push('\0');
        let mut module = 0u64;
        ok!("cuModuleLoadData", &mut module, text.as_ptr() as u64);
        Loaded { session, module }
    }

    fn function(&self, name: &str) -> u64 {
        let name = std::ffi::CString::new(name).unwrap();
        let mut f = 0u64;
        ok!("cuModuleGetFunction", &mut f, self.module, name.as_c_str());
        f
    }

    /// Launches a kernel and waits for it.
    fn run(&self, name: &str, grid: u32, block: u32, value: u32) -> Code {
        let params = [(&raw const value) as u64];
        ok!(
            "cuLaunchKernel",
            self.function(name),
            grid,
            1,
            1,
            block,
            1,
            1,
            0,
            0u64,
            &params,
            0u64
        );
        Code(cu!("cuCtxSynchronize"))
    }

    fn variable(&self, name: &std::ffi::CStr) -> u64 {
        let mut address = 0u64;
        ok!(
            "cuModuleGetGlobal_v2",
            &mut address,
            0u64,
            self.module,
            name
        );
        address
    }

    /// The numbers of the journal, which it clears.
    fn journal(&self) -> Vec<u32> {
        let (length, journal) = (self.variable(c"length"), self.variable(c"journal"));
        let mut count = 0u32;
        ok!("cuMemcpyDtoH_v2", &mut count, length, 4);
        let mut all = vec![0u32; count as usize];
        ok!(
            "cuMemcpyDtoH_v2",
            all.as_mut_ptr() as u64,
            journal,
            4 * all.len()
        );
        ok!("cuMemsetD32_v2", length, 0, 1);
        all
    }
}

fn note(stream: &str, value: &str) -> String {
    launch("note", 1, 1, 0, stream, value)
}

#[test]
fn children_of_a_block_run_in_order_before_the_parent_completes() {
    let body: String = (1..=20).map(|n| note("0", &n.to_string())).collect();
    let loaded = Loaded::new(&[("parent", body + &last_error())]);
    assert_eq!(loaded.run("parent", 1, 1, 0), Code::SUCCESS);
    assert_eq!(loaded.journal(), (1..=20).collect::<Vec<u32>>());
    // One null stream for each block, and all threads of a block share it.
    assert_eq!(loaded.run("parent", 50, 2, 0), Code::SUCCESS);
    let all = loaded.journal();
    assert_eq!(all.len(), 2000);
    assert!((1..=20).all(|n| all.iter().filter(|&&v| v == n).count() == 100));
}

#[test]
fn tail_launches_run_after_the_other_children() {
    let inner = note("3", "31") + &note("0", "30") + &note("3", "32");
    let body = note("3", "40")
        + &launch("inner", 1, 1, 0, "3", "0")
        + &note("3", "50")
        + &note("0", "1")
        + &note("4", "2");
    let loaded = Loaded::new(&[("inner", inner), ("parent", body)]);
    assert_eq!(loaded.run("parent", 1, 1, 0), Code::SUCCESS);
    assert_eq!(loaded.journal(), [1, 2, 40, 30, 31, 32, 50]);
}

#[test]
fn a_kernel_can_launch_itself_as_a_tail_any_number_of_times() {
    let body = format!(
        "setp.ge.u32 %c, %v, 5000;\n@%c bra END;\nadd.u32 %x, %v, 1;\n{}{}ret;\nEND:\n{}",
        launch("parent", 1, 1, 0, "3", "%x"),
        last_error(),
        note("0", "%v")
    );
    let loaded = Loaded::new(&[("parent", body)]);
    assert_eq!(loaded.run("parent", 1, 1, 0), Code::SUCCESS);
    assert_eq!(loaded.journal(), [5000]);
}

#[test]
fn chains_of_children_may_be_long() {
    // An H100 has no limit for the depth, except that of pending launches.
    for stream in ["0", "4"] {
        let body = format!(
            "{}setp.ge.u32 %c, %v, 1000;\n@%c bra END;\nadd.u32 %x, %v, 1;\n{}{}END:\n",
            note("3", "%v"),
            launch("parent", 1, 1, 0, stream, "%x"),
            last_error(),
        );
        let loaded = Loaded::new(&[("parent", body)]);
        assert_eq!(loaded.run("parent", 1, 1, 1), Code::SUCCESS);
        assert_eq!(loaded.journal(), (1..=1000).rev().collect::<Vec<u32>>());
    }
}

#[test]
fn streams_of_a_kernel_run_in_order_and_wait_for_events() {
    let body = String::from("add.u64 %p, %frame, 8;\nadd.u64 %q, %frame, 16;\n")
        + &call("StreamCreateWithFlags", &[("b64", "%frame"), ("b32", "1")])
        + &call("StreamCreateWithFlags", &[("b64", "%p"), ("b32", "1")])
        + &call("EventCreateWithFlags", &[("b64", "%q"), ("b32", "2")])
        + "ld.u64 %s, [%frame];\nld.u64 %t, [%p];\nld.u64 %q, [%q];\n"
        // A wait for an event without a record does nothing.
        + &call("StreamWaitEvent", &[("b64", "%t"), ("b64", "%q"), ("b32", "0")])
        + &note("%t", "1")
        + &note("%s", "2")
        + &call("EventRecord", &[("b64", "%q"), ("b64", "%s")])
        + &call("StreamWaitEvent", &[("b64", "0"), ("b64", "%q"), ("b32", "0")])
        + &note("0", "3")
        + &call("EventDestroy", &[("b64", "%q")])
        + &call("StreamDestroy", &[("b64", "%s")])
        + &call("StreamDestroy", &[("b64", "%t")]);
    let loaded = Loaded::new(&[("parent", body)]);
    assert_eq!(loaded.run("parent", 1, 1, 0), Code::SUCCESS);
    let journal = loaded.journal();
    assert_eq!(journal.len(), 3, "{journal:?}");
    let at = |n: u32| journal.iter().position(|&v| v == n);
    assert!(at(2) < at(3), "{journal:?}");
}

#[test]
fn copies_and_fills_are_stream_ordered() {
    let buffer = "mov.u64 %s, journal;\nadd.u64 %s, %s, 12000;\nadd.u64 %t, %s, 100;\n";
    let fill = |value: &str| {
        let args = [("b64", "%s"), ("b32", value), ("b64", "8"), ("b64", "0")];
        call("MemsetAsync", &args)
    };
    let copy = [
        ("b64", "%t"),
        ("b64", "%s"),
        ("b64", "8"),
        ("b32", "3"),
        ("b64", "0"),
    ];
    let body = format!(
        "{buffer}{}{}{}",
        fill("7"),
        call("MemcpyAsync", &copy),
        fill("9")
    );
    let loaded = Loaded::new(&[("parent", body)]);
    assert_eq!(loaded.run("parent", 1, 1, 0), Code::SUCCESS);
    assert_eq!(loaded.journal(), []);
    let mut words = [0u32; 26];
    let at = loaded.variable(c"journal") + 12000;
    ok!("cuMemcpyDtoH_v2", &mut words, at, 104);
    assert_eq!(
        (words[0], words[1], words[25]),
        (0x0909_0909, 0x0909_0909, 0x0707_0707)
    );
    // Other directions are refused.
    let body = String::from(buffer)
        + &call(
            "MemcpyAsync",
            &[
                ("b64", "%t"),
                ("b64", "%s"),
                ("b64", "8"),
                ("b32", "1"),
                ("b64", "0"),
            ],
        );
    let loaded = Loaded::new(&[("parent", body)]);
    assert_eq!(loaded.run("parent", 1, 1, 0), Code::SUCCESS);
    assert_eq!(loaded.journal(), [21]);
}

#[test]
fn launches_are_validated_when_they_are_made() {
    let invalid_configuration = 9;
    for (launch, error) in [
        (launch("note", 0, 1, 0, "0", "%v"), invalid_configuration),
        (launch("note", 1, 0, 0, "0", "%v"), invalid_configuration),
        (launch("note", 1, 1025, 0, "0", "%v"), invalid_configuration),
        (
            launch("note", 1, 1, 1 << 20, "0", "%v"),
            invalid_configuration,
        ),
        (
            launch("bounded", 1, 65, 0, "0", "%v"),
            invalid_configuration,
        ),
        (launch("journal", 1, 1, 0, "0", "%v"), invalid_configuration),
    ] {
        let body = launch + &last_error() + &last_error() + &note("0", "%v");
        let loaded = Loaded::new(&[("parent", body)]);
        assert_eq!(loaded.run("parent", 1, 1, 1), Code::SUCCESS);
        assert_eq!(loaded.journal(), [error, 1]);
    }
}

/// A kernel that launches its parameter's number of children into a stream.
fn launches(stream: &str) -> Loaded {
    let body = format!(
        "mov.u32 %x, 0;\nAGAIN:\n{}{}add.u32 %x, %x, 1;\nsetp.lt.u32 %c, %x, %v;\n@%c bra AGAIN;\n",
        note(stream, "7"),
        last_error()
    );
    Loaded::new(&[("parent", body)])
}

#[test]
fn tail_launches_are_limited_by_the_pending_count() {
    let loaded = launches("3");
    let pending_launch_count = 4;
    let mut limit = 0u64;
    ok!("cuCtxGetLimit", &mut limit, pending_launch_count);
    assert_eq!(limit, 2048);
    ok!("cuCtxSetLimit", pending_launch_count, 16u64);
    ok!("cuCtxGetLimit", &mut limit, pending_launch_count);
    assert_eq!(limit, 32, "as on an H100");
    assert_eq!(loaded.run("parent", 1, 1, 36), Code::SUCCESS);
    let exceeded = 69;
    assert_eq!(
        loaded.journal(),
        [[exceeded; 4].as_slice(), &[7; 32]].concat()
    );
    // The completed launches do not count any more.
    assert_eq!(loaded.run("parent", 1, 1, 32), Code::SUCCESS);
    assert_eq!(loaded.journal(), [7; 32]);
    ok!("cuCtxSetLimit", pending_launch_count, 2048u64);
    assert_eq!(loaded.run("parent", 1, 1, 900), Code::SUCCESS);
    assert_eq!(loaded.journal(), [7; 900]);
}

#[test]
fn children_make_room_for_others_while_their_parent_runs() {
    for stream in ["0", "4"] {
        let loaded = launches(stream);
        ok!("cuCtxSetLimit", 4, 32u64);
        assert_eq!(loaded.run("parent", 1, 1, 3000), Code::SUCCESS);
        assert_eq!(loaded.journal(), [7; 3000]);
    }
}

#[test]
fn launches_of_what_is_no_kernel_are_faults() {
    for body in [
        launch("0", 1, 1, 0, "0", "%v"),
        call("LaunchDeviceV2", &[("b64", "0"), ("b64", "0")]),
    ] {
        let loaded = Loaded::new(&[("parent", body)]);
        assert_eq!(loaded.run("parent", 1, 1, 1), Code::ILLEGAL_ADDRESS);
    }
}

#[test]
fn a_fault_in_a_child_fails_the_context_and_drops_the_rest() {
    let body =
        note("0", "1") + &launch("trapped", 1, 1, 0, "0", "%v") + &note("0", "2") + &note("3", "3");
    let loaded = Loaded::new(&[("parent", body)]);
    assert_eq!(loaded.run("parent", 1, 1, 0), Code::LAUNCH_FAILED);
    assert_eq!(Code(cu!("cuCtxSynchronize")), Code::LAUNCH_FAILED);
    drop(loaded.session);
}

#[test]
fn parents_can_wait_for_what_they_launched() {
    // Spins until the child has written to the journal.
    let body = note("4", "5")
        + "WAIT:\nld.volatile.global.u32 %x, [length];\nsetp.eq.u32 %c, %x, 0;\n@%c bra WAIT;\n"
        + &note("0", "6");
    let loaded = Loaded::new(&[("parent", body)]);
    assert_eq!(loaded.run("parent", 1, 1, 0), Code::SUCCESS);
    assert_eq!(loaded.journal(), [5, 6]);
}

#[test]
fn streams_are_those_of_the_grid() {
    let invalid_value = 1;
    let body = note("4660", "1") + &last_error() + &note("0", "9");
    let loaded = Loaded::new(&[("parent", body)]);
    assert_eq!(loaded.run("parent", 1, 1, 0), Code::SUCCESS);
    assert_eq!(loaded.journal(), [invalid_value, 9]);
    let destroyed = call("StreamDestroy", &[("b64", "4660")]);
    let loaded = Loaded::new(&[("parent", destroyed)]);
    assert_eq!(loaded.run("parent", 1, 1, 0), Code::SUCCESS);
    assert_eq!(loaded.journal(), [invalid_value]);
}
