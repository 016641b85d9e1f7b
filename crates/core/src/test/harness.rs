//! What the test harness of Rust provides and lacks: the name of a test, output of passing tests.

/// The name of the calling test: the harness names threads after tests.
pub(super) fn test_name() -> String {
    let thread = std::thread::current();
    thread
        .name()
        .unwrap_or("a thread without a name")
        .to_owned()
}

/// Prints a line that is shown for passing tests too: the harness captures the output of macros only.
pub(super) fn print_uncaptured(text: &str) {
    use std::io::Write;
    // Nothing is left to be done if standard error is closed.
    let _ = writeln!(std::io::stderr(), "{text}");
}
