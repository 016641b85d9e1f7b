//! `nanosleep`: which lanes, warps and blocks run while others sleep.

use std::time::{Duration, Instant};

use crate::harness::{Buffer, Launch, module};

const INDEX: &str = "
    .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %rd2, %r4, 4;
    add.s64 %rd3, %rd1, %rd2;
    mov.u32 %r5, %laneid;
";

/// Sleeps 50 times for a millisecond.
fn sleep_in_a_loop() -> String {
    format!(
        "{INDEX}
    mov.u32 %r6, 0;
L:  nanosleep.u32 1000000;
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %p1, %r6, 50;
    @%p1 bra L;
    bar.sync 0;
    st.global.u32 [%rd3], %r6;
    ret;"
    )
}

/// The duration of a launch with one word per thread, and the words.
fn timed(grid: u32, block: u32, body: &str) -> (Duration, Vec<u32>) {
    let out = Buffer::zeros((grid * block) as usize);
    let ptx = module("", 1, body);
    let start = Instant::now();
    Launch::new(grid, block).run(&ptx, &[out.addr]).unwrap();
    (start.elapsed(), out.get())
}

#[test]
fn warps_and_blocks_sleep_at_the_same_time() {
    // One after the other, they would sleep for 1.6 seconds and for 12.8 seconds divided by the number of workers.
    for (grid, block) in [(1, 1024), (256, 32)] {
        let mut times = Vec::new();
        // A loaded machine wakes threads late: one launch in time is enough.
        while times
            .last()
            .is_none_or(|&time| time >= Duration::from_millis(800))
        {
            assert!(times.len() < 5, "{grid} blocks: {times:?}");
            let (time, words) = timed(grid, block, &sleep_in_a_loop());
            assert!(words.iter().all(|&n| n == 50));
            assert!(time >= Duration::from_millis(50), "{grid} blocks: {time:?}");
            times.push(time);
        }
    }
}

#[test]
fn lanes_that_poll_in_different_loops_sleep_at_the_same_time() {
    // The last lane of each warp has the highest position, and sets the flag that the others wait for.
    let mut body = format!("{INDEX}\n    .shared .u32 flags[4];\n    mov.u32 %r7, flags;\n");
    body += "
    shr.u32 %r8, %r3, 5; shl.b32 %r8, %r8, 2; add.u32 %r7, %r7, %r8;
    mov.u32 %r9, 0;
    st.shared.u32 [%r7], %r9;
    bar.sync 0;\n";
    let labels: Vec<String> = (0..32).map(|n| format!("L{n}")).collect();
    body += &format!(
        "    ts: .branchtargets {};\n    brx.idx %r5, ts;\n",
        labels.join(", ")
    );
    for n in 0..31 {
        body += &format!(
            "L{n}: ld.relaxed.cta.shared.u32 %r10, [%r7];
    setp.ne.u32 %p1, %r10, 0;
    @%p1 bra D;
    nanosleep.u32 1000000;
    bra L{n};\n"
        );
    }
    body += "
L31: mov.u32 %r10, 1;
    st.relaxed.cta.shared.u32 [%r7], %r10;
D:  bar.sync 0;
    st.global.u32 [%rd3], %r10;
    ret;";
    // The shortest of some launches, as a loaded machine wakes threads late.
    let times = (0..5).map(|_| {
        let (time, words) = timed(1, 96, &body);
        assert_eq!(words, [1; 96]);
        time
    });
    let time = times.min().unwrap();
    // One lane after the other would take 93 ms even if each slept only once.
    assert!(time < Duration::from_millis(60), "{time:?}");
}
