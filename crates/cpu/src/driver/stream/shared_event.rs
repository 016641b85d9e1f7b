//! Interprocess state of an event: an anonymous file that each process maps.
//!
//! Records are numbered. The recording process stores each number in the file, and stores it again when all work before
//! the record is done. A record of a process that has exited counts as done.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cupyrite_engine::memory::files::{self, Process, Words};

use crate::driver::context::Context;
use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::refuse;
use crate::driver::memory::ipc_message::{Message, is_sealed, seal};
use crate::driver::stream::queue::Op;

/// Prefix of the file names.
const NAME: &str = "cupyrite-event-";
/// First word of a handle and of the file.
const MAGIC: u64 = u64::from_le_bytes(*b"cprevnt1");

/// Word offsets of the latest record's number and of the change counter, which waiters watch.
const LATEST: usize = 8;
const CHANGES: usize = 16;
/// Word offset of the record ring, its capacity, and the words of an entry: number of the last completed record in this
/// slot, number of the last record in this slot, recording process and its start time.
const RECORDS: usize = 24;
const ROOM: u64 = 4096;
const DONE: usize = 0;
const NUMBER: usize = 1;
const PROCESS: usize = 2;
const START: usize = 3;
const WORDS: usize = RECORDS + 4 * ROOM as usize;
/// Maximum sleep of a waiter; a process that exits wakes no waiter.
const NAP: Duration = Duration::from_millis(50);

/// See the module documentation.
pub(crate) struct SharedEvent {
    words: Words,
    handle: Message,
    /// The file that the handle names; present in the creating process.
    _file: Option<OwnedFd>,
}

impl SharedEvent {
    /// Creates the shared state.
    ///
    /// # Errors
    /// `OUT_OF_MEMORY` if the file cannot be created.
    pub(crate) fn new() -> Res<Arc<SharedEvent>> {
        let [a, b] = files::nonce();
        let made = files::create(&format!("{NAME}{a:016x}{b:016x}"), 8 * WORDS as u64)
            .and_then(|file| Some((Words::map(&file, WORDS)?, file)));
        let (words, file) = made.ok_or(Code::OUT_OF_MEMORY)?;
        let maker = Process::current();
        let descriptor = u64::from(file.as_raw_fd() as u32);
        let handle = seal([MAGIC, maker.id.into(), maker.start, descriptor, a, b, 0, 0]);
        if !files::write_words(&file, 0, &handle) {
            return Err(Code::OUT_OF_MEMORY);
        }
        Ok(Arc::new(SharedEvent {
            words,
            handle,
            _file: Some(file),
        }))
    }

    /// Opens the shared state of another process's event.
    ///
    /// # Errors
    /// `INVALID_HANDLE` for an invalid or stale handle, `INVALID_CONTEXT` in the creating process.
    pub(crate) fn open(handle: &Message) -> Res<Arc<SharedEvent>> {
        let [_, process, start, descriptor, a, b, ..] = *handle;
        if !is_sealed(handle, MAGIC) {
            return refuse(Code::INVALID_HANDLE, || {
                "the data is not an event handle of a CPU device".into()
            });
        }
        let maker = Process {
            id: process as u32,
            start,
        };
        if maker == Process::current() {
            return refuse(Code::INVALID_CONTEXT, || {
                "an event handle cannot be opened by the process that created it".into()
            });
        }
        let label = format!("{NAME}{a:016x}{b:016x}");
        let words = (maker.is_alive())
            .then(|| files::recognise_in(maker.id, descriptor as i32, &label))
            .flatten()
            .filter(|f| f.size == 8 * WORDS as u64)
            .filter(|f| files::read_words(&f.file, 0) == Some(*handle))
            .and_then(|f| Words::map(&f.file, WORDS));
        let Some(words) = words else {
            return refuse(Code::INVALID_HANDLE, || {
                format!(
                    "process {}, which created the event, has exited or has destroyed it",
                    maker.id
                )
            });
        };
        Ok(Arc::new(SharedEvent {
            words,
            handle: *handle,
            _file: None,
        }))
    }

    /// The handle by which another process opens this event.
    pub(crate) fn handle(&self) -> Message {
        self.handle
    }

    /// Word offset of a record's slot.
    fn place(number: u64) -> usize {
        RECORDS + 4 * (number % ROOM) as usize
    }

    /// Number of the latest record of any process; zero before the first record.
    pub(crate) fn latest(&self) -> u64 {
        self.words.word(LATEST).load(Ordering::SeqCst)
    }

    /// Records the event, to be completed with `op`. Returns the number of the record.
    pub(crate) fn record(self: &Arc<Self>, op: &Arc<Op>) -> u64 {
        let number = self.words.word(LATEST).fetch_add(1, Ordering::SeqCst) + 1;
        let (at, own) = (Self::place(number), Process::current());
        for (word, value) in [
            (PROCESS, own.id.into()),
            (START, own.start),
            (NUMBER, number),
        ] {
            self.words.word(at + word).store(value, Ordering::SeqCst);
        }
        if op.is_done() {
            self.complete(number);
        } else {
            let event = self.clone();
            let after = Op::new(Some(Box::new(move || event.complete(number))));
            after.after(op);
            after.release();
        }
        number
    }

    fn complete(&self, number: u64) {
        let done = self.words.word(Self::place(number) + DONE);
        done.fetch_max(number, Ordering::SeqCst);
        self.words.word(CHANGES).fetch_add(1, Ordering::SeqCst);
        self.words.wake(CHANGES);
    }

    /// Whether all work before a record is done.
    pub(crate) fn is_done(&self, number: u64) -> bool {
        let at = Self::place(number);
        let word = |i: usize| self.words.word(at + i).load(Ordering::SeqCst);
        if number == 0 || word(DONE) >= number {
            return true;
        }
        // The number is stored last; until then the entry describes an older record.
        if word(NUMBER) != number {
            return word(NUMBER) > number;
        }
        let recorder = Process {
            id: word(PROCESS) as u32,
            start: word(START),
        };
        !recorder.is_alive() || word(NUMBER) > number
    }

    /// An op that completes with a record, or when the context has failed.
    pub(crate) fn op(self: &Arc<Self>, number: u64, context: &Arc<Context>) -> Arc<Op> {
        let (event, context) = (self.clone(), context.clone());
        let op = Op::new(Some(Box::new(move || {
            loop {
                let seen = event.words.word(CHANGES).load(Ordering::SeqCst) as u32;
                if event.is_done(number) || context.has_failed() {
                    return;
                }
                event.words.sleep(CHANGES, seen, NAP);
            }
        })));
        op.clone().release();
        op
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_complete_in_any_order() {
        let event = SharedEvent::new().unwrap();
        assert_eq!(event.latest(), 0);
        assert!(event.is_done(0));
        let (first, second) = (Op::new(None), Op::new(None));
        assert_eq!((event.record(&first), event.record(&second)), (1, 2));
        assert!(!event.is_done(1) && !event.is_done(2));
        second.release();
        for _ in 0..2000 {
            if event.is_done(2) {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(event.is_done(2) && !event.is_done(1));
        // A process that has exited.
        event
            .words
            .word(SharedEvent::place(1) + START)
            .store(1, Ordering::SeqCst);
        assert!(event.is_done(1));
        // The creating process cannot open the handle, and invalid data is detected.
        assert_eq!(
            SharedEvent::open(&event.handle()).err(),
            Some(Code::INVALID_CONTEXT)
        );
        assert_eq!(SharedEvent::open(&[1; 8]).err(), Some(Code::INVALID_HANDLE));
    }
}
