//! A value that is created, used and dropped on a thread of its own.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::fork::ForkGeneration;

/// The usual stack size of a process's main thread, on which most programs call the linker; Rust's default is 2 MiB.
/// Only touched pages are committed.
const STACK: usize = 8 << 20;

/// How long `drop` waits for the value to be dropped. A driver callback at process exit may have stopped the thread, so a
/// longer wait could last forever; the thread is detached instead.
const DROP_TIMEOUT: Duration = Duration::from_secs(10);

/// A value on a dedicated thread. Callers block while the thread works for them; dropping this drops the value there and
/// ends the thread.
///
/// The value never leaves its thread, so it need not be `Send`.
#[derive(Debug)]
pub(crate) struct DedicatedThread<T: 'static> {
    shared: Arc<Shared<T>>,
    /// `None` once `drop` has taken it.
    thread: Option<JoinHandle<()>>,
    /// A forked child has none of its parent's threads.
    generation: ForkGeneration,
}

#[derive(Debug)]
struct Shared<T: 'static> {
    turn: Mutex<Turn<T>>,
    changed: Condvar,
}

/// The state of the handshake. The thread waits for `Job` and `Stop`, the caller for `Done` and `Ended`.
#[derive(Debug)]
enum Turn<T: 'static> {
    /// There is no job.
    Idle,
    /// A job that the thread has not started.
    Job(Job<T>),
    /// The thread runs the job.
    Running,
    /// The thread has finished the job.
    Done,
    /// The thread has to end.
    Stop,
    /// The thread has ended, and dropped the value.
    Ended,
}

/// A function to run on the slot of the value.
#[derive(Debug)]
struct Job<T: 'static>(*mut (dyn FnMut(&mut Option<T>) + Send));

// SAFETY: the function is `Send`, and `DedicatedThread::run` blocks while the thread has the pointer.
unsafe impl<T> Send for Job<T> {}

impl<T> Shared<T> {
    /// Held for assignments only.
    fn lock(&self) -> MutexGuard<'_, Turn<T>> {
        self.turn.lock()
    }

    fn set(&self, turn: Turn<T>) {
        *self.lock() = turn;
        self.changed.notify_all();
    }

    /// The thread's next job; `None` if it has to end.
    fn next(&self) -> Option<Job<T>> {
        let mut turn = self.lock();
        loop {
            match std::mem::replace(&mut *turn, Turn::Running) {
                Turn::Job(job) => return Some(job),
                Turn::Stop => return None,
                other => *turn = other,
            }
            self.changed.wait(&mut turn);
        }
    }

    /// The thread's main function.
    fn serve(&self) {
        /// Sets `Ended`, also while a panic unwinds the thread.
        struct SetEnded<'a, T: 'static>(&'a Shared<T>);
        impl<T> Drop for SetEnded<'_, T> {
            fn drop(&mut self) {
                self.0.set(Turn::Ended);
            }
        }
        // Declared before the value, so that the value is dropped first.
        let _ended = SetEnded(self);
        let mut value = None;
        while let Some(job) = self.next() {
            // SAFETY: `DedicatedThread::run` keeps the function, and does not use it, until this thread sets `Done` or
            // `Ended`.
            unsafe { (*job.0)(&mut value) };
            self.set(Turn::Done);
        }
    }
}

impl<T: 'static> DedicatedThread<T> {
    /// Starts a thread of this name and creates the value there.
    ///
    /// # Errors
    ///
    /// The outer error if the thread cannot be started, the inner one from `create`.
    ///
    /// # Panics
    ///
    /// If `create` panics.
    pub(crate) fn start<E: Send>(
        name: &'static str,
        create: impl FnOnce() -> Result<T, E> + Send,
    ) -> io::Result<Result<DedicatedThread<T>, E>> {
        let shared = Arc::new(Shared {
            turn: Mutex::new(Turn::Idle),
            changed: Condvar::new(),
        });
        // Before the thread starts: installs the fork handler.
        let generation = ForkGeneration::current();
        let served = shared.clone();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .stack_size(STACK)
            .spawn(move || served.serve())?;
        let mut own = DedicatedThread {
            shared,
            thread: Some(thread),
            generation,
        };
        match own.run(|slot| create().map(|value| *slot = Some(value))) {
            Some(created) => Ok(created.map(|()| own)),
            None => Err(io::Error::other("the thread ended at once")),
        }
    }

    /// Runs `body` with the value on its thread and waits for it. `None`, without running it, if the thread does not exist:
    /// in a forked child, or after a panic ended it.
    ///
    /// # Panics
    ///
    /// If `body` panics; the value stays usable.
    pub(crate) fn with<R: Send>(&mut self, body: impl FnOnce(&mut T) -> R + Send) -> Option<R> {
        self.run(|slot| slot.as_mut().map(body)).flatten()
    }

    fn run<R: Send>(&mut self, body: impl FnOnce(&mut Option<T>) -> R + Send) -> Option<R> {
        if !self.generation.is_current() {
            return None;
        }
        let mut body = Some(body);
        let mut outcome = None;
        let mut job = |slot: &mut Option<T>| {
            if let Some(body) = body.take() {
                outcome = Some(catch_unwind(AssertUnwindSafe(|| body(slot))));
            }
        };
        let job: *mut (dyn FnMut(&mut Option<T>) + Send + '_) = &mut job;
        // SAFETY: this only erases the lifetime. The thread uses the job between taking it and setting `Done` (or `Ended`,
        // if it unwinds), and nothing below returns or panics between handing the job over and seeing one of the two. No
        // other job can be handed over meanwhile, because `self` is borrowed exclusively. What the job captures is `Send`.
        let job = unsafe {
            std::mem::transmute::<
                *mut (dyn FnMut(&mut Option<T>) + Send + '_),
                *mut (dyn FnMut(&mut Option<T>) + Send + 'static),
            >(job)
        };
        {
            let mut turn = self.shared.lock();
            if !matches!(*turn, Turn::Idle) {
                return None;
            }
            *turn = Turn::Job(Job(job));
            self.shared.changed.notify_all();
            self.shared
                .changed
                .wait_while(&mut turn, |turn| !matches!(turn, Turn::Done | Turn::Ended));
            if let Turn::Done = *turn {
                *turn = Turn::Idle;
            }
        }
        match outcome? {
            Ok(result) => Some(result),
            Err(panic) => resume_unwind(panic),
        }
    }
}

impl<T: 'static> Drop for DedicatedThread<T> {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        if !self.generation.is_current() {
            // The parent's thread, which may have held the lock at the fork.
            std::mem::forget(thread);
            return;
        }
        let mut turn = self.shared.lock();
        if !matches!(*turn, Turn::Ended) {
            *turn = Turn::Stop;
        }
        self.shared.changed.notify_all();
        let ended = |turn: &mut Turn<T>| !matches!(turn, Turn::Ended);
        self.shared
            .changed
            .wait_while_for(&mut turn, ended, DROP_TIMEOUT);
        let ended = matches!(*turn, Turn::Ended);
        drop(turn);
        if ended {
            // The thread only has to return. A panic of the value's `drop` has been reported by the panic hook.
            let _ = thread.join();
        } else {
            log::warn!("the thread {:?} does not end", thread.thread().name());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::marker::PhantomData;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::{self, ThreadId};

    use super::*;

    /// Not `Send`; checks that it pinned on its thread.
    struct Pinned {
        thread: ThreadId,
        used: usize,
        drops: Arc<AtomicUsize>,
        not_send: PhantomData<*const ()>,
    }

    impl Pinned {
        fn start(drops: &Arc<AtomicUsize>) -> DedicatedThread<Pinned> {
            let drops = drops.clone();
            DedicatedThread::start("pinned", || Ok::<_, ()>(Pinned::new(drops)))
                .unwrap()
                .unwrap()
        }

        fn new(drops: Arc<AtomicUsize>) -> Pinned {
            Pinned {
                thread: thread::current().id(),
                used: 0,
                drops,
                not_send: PhantomData,
            }
        }

        fn use_it(&mut self) -> usize {
            assert_eq!(thread::current().id(), self.thread);
            self.used += 1;
            self.used
        }
    }

    impl Drop for Pinned {
        fn drop(&mut self) {
            let here = thread::current().id() == self.thread;
            self.drops
                .fetch_add(if here { 1 } else { 1000 }, Ordering::SeqCst);
        }
    }

    fn is_send_and_sync<T: Send + Sync>(_: &T) {}

    #[test]
    fn a_value_stays_on_its_thread() {
        let drops = Arc::new(AtomicUsize::new(0));
        let mut own = Pinned::start(&drops);
        is_send_and_sync(&own);
        assert_eq!(own.with(Pinned::use_it), Some(1));
        // The closure may borrow from the caller.
        let mut words = vec!["one".to_owned()];
        let more = String::from("two");
        let count = own.with(|pinned| {
            words.push(more.as_str().to_owned());
            pinned.use_it()
        });
        assert_eq!((count, words.len()), (Some(2), 2));
        let mut own = thread::spawn(move || {
            assert_eq!(own.with(Pinned::use_it), Some(3));
            own
        })
        .join()
        .unwrap();
        let there = own.with(|pinned| pinned.thread);
        assert!(there.is_some() && there != Some(thread::current().id()));
        assert_eq!(drops.load(Ordering::SeqCst), 0);
        thread::spawn(move || drop(own)).join().unwrap();
        assert_eq!(drops.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_panic_reaches_the_caller() {
        let drops = Arc::new(AtomicUsize::new(0));
        let mut own = Pinned::start(&drops);
        for turn in 1..4 {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                own.with(|pinned| {
                    pinned.use_it();
                    panic!("wrong {turn}");
                })
            }));
            let panic = caught.unwrap_err();
            assert_eq!(
                panic.downcast_ref::<String>(),
                Some(&format!("wrong {turn}"))
            );
        }
        assert_eq!(own.with(Pinned::use_it), Some(4));
        drop(own);
        assert_eq!(drops.load(Ordering::SeqCst), 1);
        let caught = catch_unwind(|| {
            DedicatedThread::<()>::start("panics", || -> Result<(), ()> { panic!("not made") })
        });
        let panic = caught.unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"not made"));
    }

    #[test]
    fn an_error_of_the_constructor_is_returned() {
        let made = DedicatedThread::<()>::start("fails", || Err("no".to_owned()));
        assert_eq!(made.unwrap().unwrap_err(), "no");
    }

    #[test]
    fn a_panic_in_drop_ends_the_thread() {
        struct Fails;
        impl Drop for Fails {
            fn drop(&mut self) {
                panic!("in drop");
            }
        }
        let own = DedicatedThread::start("fails", || Ok::<_, ()>(Fails));
        drop(own.unwrap().unwrap());
    }

    #[test]
    fn an_ended_thread_runs_nothing() {
        let drops = Arc::new(AtomicUsize::new(0));
        let mut own = Pinned::start(&drops);
        // As a panic that unwinds the thread does.
        own.shared.set(Turn::Stop);
        let mut turn = own.shared.lock();
        own.shared
            .changed
            .wait_while(&mut turn, |turn| !matches!(turn, Turn::Ended));
        drop(turn);
        assert_eq!(drops.load(Ordering::SeqCst), 1);
        assert_eq!(own.with(Pinned::use_it), None);
        assert_eq!(own.with(Pinned::use_it), None);
    }

    #[test]
    fn a_forked_child_does_not_wait() {
        let drops = Arc::new(AtomicUsize::new(0));
        let mut own = Pinned::start(&drops);
        // The lock may be held at the time of the fork; no thread of the child would release it.
        let shared = own.shared.clone();
        let turn = shared.lock();
        // SAFETY: the child reads atomics and exits.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            // SAFETY: kills the child if it waits for the thread.
            unsafe { libc::alarm(20) };
            let answered = own.with(Pinned::use_it).is_some();
            drop(own);
            // SAFETY: exits without running the parent's exit handlers.
            unsafe { libc::_exit(i32::from(answered)) };
        }
        drop(turn);
        let mut status = 0;
        // SAFETY: the child is this process's; `status` is valid for writes.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        assert!(libc::WIFEXITED(status));
        assert_eq!(libc::WEXITSTATUS(status), 0);
        assert_eq!(own.with(Pinned::use_it), Some(1));
    }

    #[test]
    fn many_threads_at_once() {
        let drops = Arc::new(AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let mut own = Pinned::start(&drops);
                        for n in 1..20 {
                            assert_eq!(own.with(Pinned::use_it), Some(n));
                        }
                    }
                });
            }
        });
        assert_eq!(drops.load(Ordering::SeqCst), 400);
    }
}
