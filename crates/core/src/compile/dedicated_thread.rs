//! A value that has a thread of its own: it is made there, used there and dropped there.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::fork::ForkGeneration;

/// As much as the first thread of a process usually has, which is where most programs call what is called here; Rust
/// gives its threads a quarter of that. Only what is used of it becomes memory.
const STACK: usize = 8 << 20;

/// How long it is waited for the end of a value. One that takes longer is left to its thread: nobody wants to wait for
/// ever at the end of a process, where a driver's callback may have stopped the thread.
const PATIENCE: Duration = Duration::from_secs(10);

/// A value on a thread of its own. Whoever uses it waits meanwhile; when this is dropped, the value is, and the thread
/// ends.
///
/// The value never leaves its thread, so that it need not be `Send`.
#[derive(Debug)]
pub(crate) struct DedicatedThread<T: 'static> {
    shared: Arc<Shared<T>>,
    /// None once it has been waited for.
    thread: Option<JoinHandle<()>>,
    /// A is_forked_child child has none of its parent's threads.
    generation: ForkGeneration,
}

#[derive(Debug)]
struct Shared<T: 'static> {
    turn: Mutex<Turn<T>>,
    changed: Condvar,
}

/// Whose turn it is. The thread waits for `Job` and `Over`, the one who uses it for `Done` and `Ended`.
#[derive(Debug)]
enum Turn<T: 'static> {
    /// Nothing is to be done.
    Free,
    /// The thread has this to do, and has not begun.
    Job(Job<T>),
    /// The thread is at it.
    Running,
    /// The thread has done it.
    Done,
    /// The thread is to end.
    Over,
    /// The thread does nothing any more, whatever the reason; the value is gone.
    Ended,
}

/// What is to be done with the place of the value.
#[derive(Debug)]
struct Job<T: 'static>(*mut (dyn FnMut(&mut Option<T>) + Send));

// SAFETY: what it points at is `Send`, and `DedicatedThread::run` waits while the thread has it.
unsafe impl<T> Send for Job<T> {}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, Turn<T>> {
        // Held for assignments only, so that a poisoned lock means nothing.
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, turn: Turn<T>) {
        *self.lock() = turn;
        self.changed.notify_all();
    }

    /// The thread's next job; None when it is to end.
    fn next(&self) -> Option<Job<T>> {
        let mut turn = self.lock();
        loop {
            match std::mem::replace(&mut *turn, Turn::Running) {
                Turn::Job(job) => return Some(job),
                Turn::Over => return None,
                before => *turn = before,
            }
            turn = self
                .changed
                .wait(turn)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// What the thread does.
    fn live(&self) {
        /// Says that the thread has ended, also when something unwinds through it.
        struct Ends<'a, T: 'static>(&'a Shared<T>);
        impl<T> Drop for Ends<'_, T> {
            fn drop(&mut self) {
                self.0.set(Turn::Ended);
            }
        }
        // Before the value, which is dropped first then.
        let _ends = Ends(self);
        let mut value = None;
        while let Some(job) = self.next() {
            // SAFETY: made from a reference in `DedicatedThread::run`, which uses it no more and keeps what it refers to until
            // this thread says `Done` or `Ended`.
            unsafe { (*job.0)(&mut value) };
            self.set(Turn::Done);
        }
    }
}

impl<T: 'static> DedicatedThread<T> {
    /// A value that `make` makes, on a new thread of that name.
    ///
    /// # Errors
    ///
    /// The outer one if the thread cannot be started, the inner one is that of `make`.
    ///
    /// # Panics
    ///
    /// As `make` does.
    pub(crate) fn start<E: Send>(
        name: &'static str,
        make: impl FnOnce() -> Result<T, E> + Send,
    ) -> io::Result<Result<DedicatedThread<T>, E>> {
        let shared = Arc::new(Shared {
            turn: Mutex::new(Turn::Free),
            changed: Condvar::new(),
        });
        // Before the thread: from here on forks are noticed.
        let generation = ForkGeneration::current();
        let there = shared.clone();
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .stack_size(STACK)
            .spawn(move || there.live())?;
        let mut own = DedicatedThread {
            shared,
            thread: Some(thread),
            generation,
        };
        match own.run(|place| make().map(|value| *place = Some(value))) {
            Some(made) => Ok(made.map(|()| own)),
            None => Err(io::Error::other("it ended at once")),
        }
    }

    /// Runs `body` with the value on its thread, and waits for that. None, without running it, if the thread is gone: this
    /// process was is_forked_child from the one that has it, or something ended it.
    ///
    /// # Panics
    ///
    /// As `body` does; the value stays, and can be used again.
    pub(crate) fn with<R: Send>(&mut self, body: impl FnOnce(&mut T) -> R + Send) -> Option<R> {
        self.run(|place| place.as_mut().map(body)).flatten()
    }

    fn run<R: Send>(&mut self, body: impl FnOnce(&mut Option<T>) -> R + Send) -> Option<R> {
        if !self.generation.is_current() {
            return None;
        }
        let mut body = Some(body);
        let mut outcome = None;
        let mut job = |place: &mut Option<T>| {
            if let Some(body) = body.take() {
                outcome = Some(catch_unwind(AssertUnwindSafe(|| body(place))));
            }
        };
        let job: *mut (dyn FnMut(&mut Option<T>) + Send + '_) = &mut job;
        // SAFETY: only the lifetime is left out, and the thread does not use the job outside of it: it uses it between
        // taking it and saying `Done`, or `Ended` if something unwinds through it, and nothing below returns or panics
        // between handing it over and hearing one of these. Nobody else can hand over another one meanwhile, since this
        // has the only reference. What the job refers to may be used by another thread: it is `Send`.
        let job = unsafe {
            std::mem::transmute::<
                *mut (dyn FnMut(&mut Option<T>) + Send + '_),
                *mut (dyn FnMut(&mut Option<T>) + Send + 'static),
            >(job)
        };
        {
            let mut turn = self.shared.lock();
            if !matches!(*turn, Turn::Free) {
                return None;
            }
            *turn = Turn::Job(Job(job));
            self.shared.changed.notify_all();
            turn = self
                .shared
                .changed
                .wait_while(turn, |turn| !matches!(turn, Turn::Done | Turn::Ended))
                .unwrap_or_else(PoisonError::into_inner);
            if let Turn::Done = *turn {
                *turn = Turn::Free;
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
            // The thread is the parent's, and may have had the lock when this process was is_forked_child.
            std::mem::forget(thread);
            return;
        }
        let mut turn = self.shared.lock();
        if !matches!(*turn, Turn::Ended) {
            *turn = Turn::Over;
        }
        self.shared.changed.notify_all();
        let waited = self
            .shared
            .changed
            .wait_timeout_while(turn, PATIENCE, |turn| !matches!(turn, Turn::Ended));
        let (turn, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let ended = matches!(*turn, Turn::Ended);
        drop(turn);
        if ended {
            // It has only its own end before it. That the value's end panicked has been told by then.
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

    /// Knows its thread, and is to stay there.
    struct Stays {
        thread: ThreadId,
        used: usize,
        ended: Arc<AtomicUsize>,
        not_send: PhantomData<*const ()>,
    }

    impl Stays {
        fn start(ended: &Arc<AtomicUsize>) -> DedicatedThread<Stays> {
            let ended = ended.clone();
            DedicatedThread::start("stays", || Ok::<_, ()>(Stays::new(ended)))
                .unwrap()
                .unwrap()
        }

        fn new(ended: Arc<AtomicUsize>) -> Stays {
            Stays {
                thread: thread::current().id(),
                used: 0,
                ended,
                not_send: PhantomData,
            }
        }

        fn touch(&mut self) -> usize {
            assert_eq!(thread::current().id(), self.thread);
            self.used += 1;
            self.used
        }
    }

    impl Drop for Stays {
        fn drop(&mut self) {
            let here = thread::current().id() == self.thread;
            self.ended
                .fetch_add(if here { 1 } else { 1000 }, Ordering::SeqCst);
        }
    }

    fn is_send_and_sync<T: Send + Sync>(_: &T) {}

    #[test]
    fn a_value_stays_on_its_thread() {
        let ended = Arc::new(AtomicUsize::new(0));
        let mut own = Stays::start(&ended);
        is_send_and_sync(&own);
        assert_eq!(own.with(Stays::touch), Some(1));
        // What the caller has may be borrowed.
        let mut words = vec!["one".to_owned()];
        let more = String::from("two");
        let count = own.with(|stays| {
            words.push(more.as_str().to_owned());
            stays.touch()
        });
        assert_eq!((count, words.len()), (Some(2), 2));
        let mut own = thread::spawn(move || {
            assert_eq!(own.with(Stays::touch), Some(3));
            own
        })
        .join()
        .unwrap();
        let there = own.with(|stays| stays.thread);
        assert!(there.is_some() && there != Some(thread::current().id()));
        assert_eq!(ended.load(Ordering::SeqCst), 0);
        thread::spawn(move || drop(own)).join().unwrap();
        assert_eq!(ended.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn panics_are_the_caller_s() {
        let ended = Arc::new(AtomicUsize::new(0));
        let mut own = Stays::start(&ended);
        for turn in 1..4 {
            let caught = catch_unwind(AssertUnwindSafe(|| {
                own.with(|stays| {
                    stays.touch();
                    panic!("wrong {turn}");
                })
            }));
            let panic = caught.unwrap_err();
            assert_eq!(
                panic.downcast_ref::<String>(),
                Some(&format!("wrong {turn}"))
            );
        }
        assert_eq!(own.with(Stays::touch), Some(4));
        drop(own);
        assert_eq!(ended.load(Ordering::SeqCst), 1);
        let caught = catch_unwind(|| {
            DedicatedThread::<()>::start("panics", || -> Result<(), ()> { panic!("not made") })
        });
        let panic = caught.unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"not made"));
    }

    #[test]
    fn what_cannot_be_made_is_told() {
        let made = DedicatedThread::<()>::start("fails", || Err("no".to_owned()));
        assert_eq!(made.unwrap().unwrap_err(), "no");
    }

    #[test]
    fn an_end_that_panics_ends_the_thread() {
        struct Fails;
        impl Drop for Fails {
            fn drop(&mut self) {
                panic!("the end");
            }
        }
        let own = DedicatedThread::start("fails", || Ok::<_, ()>(Fails));
        drop(own.unwrap().unwrap());
    }

    #[test]
    fn a_thread_that_is_gone_answers_nothing() {
        let ended = Arc::new(AtomicUsize::new(0));
        let mut own = Stays::start(&ended);
        // As something that unwinds through the thread would.
        own.shared.set(Turn::Over);
        let turn = own.shared.lock();
        let turn = own
            .shared
            .changed
            .wait_while(turn, |turn| !matches!(turn, Turn::Ended));
        drop(turn);
        assert_eq!(ended.load(Ordering::SeqCst), 1);
        assert_eq!(own.with(Stays::touch), None);
        assert_eq!(own.with(Stays::touch), None);
    }

    #[test]
    fn a_child_forgets() {
        let ended = Arc::new(AtomicUsize::new(0));
        let mut own = Stays::start(&ended);
        // The lock is taken at the time of the fork, as it may be: nobody in the child would ever release it.
        let shared = own.shared.clone();
        let turn = shared.lock();
        // SAFETY: the child looks at atomics, and leaves at once.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            // SAFETY: ends the child if it waits for the thread after all.
            unsafe { libc::alarm(20) };
            let answered = own.with(Stays::touch).is_some();
            drop(own);
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(i32::from(answered)) };
        }
        drop(turn);
        let mut status = 0;
        // SAFETY: the child is ours, `status` is a valid place.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        assert!(libc::WIFEXITED(status));
        assert_eq!(libc::WEXITSTATUS(status), 0);
        assert_eq!(own.with(Stays::touch), Some(1));
    }

    #[test]
    fn many_at_once() {
        let ended = Arc::new(AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let mut own = Stays::start(&ended);
                        for n in 1..20 {
                            assert_eq!(own.with(Stays::touch), Some(n));
                        }
                    }
                });
            }
        });
        assert_eq!(ended.load(Ordering::SeqCst), 400);
    }
}
