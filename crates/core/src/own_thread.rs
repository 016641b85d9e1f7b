//! A thread of an object's own, for libraries that keep what belongs to an object in the memory of a thread.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Sender, SyncSender, channel, sync_channel};

use crate::birth::Birth;

type Job = Box<dyn FnOnce() + Send + 'static>;

/// A thread that does one piece of work after the other, and ends with this object.
#[derive(Debug)]
pub struct OwnThread {
    jobs: Sender<(Job, SyncSender<()>)>,
    birth: Birth,
}

impl OwnThread {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// The system's, where it gives no more threads.
    pub fn start(name: &str) -> std::io::Result<OwnThread> {
        let (jobs, queue) = channel::<(Job, SyncSender<()>)>();
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                for (job, done) in queue {
                    job();
                    // Whoever asked waits for this, so it is there.
                    let _ = done.send(());
                }
            })?;
        Ok(OwnThread {
            jobs,
            birth: Birth::now(),
        })
    }

    /// Does `work` on the thread and waits for it; a panic comes back as one. None in a forked child, which does not
    /// have the thread.
    ///
    /// # Safety
    ///
    /// What `work` uses may be used from another thread while this one waits: it holds no lock guard and nothing else
    /// that is bound to the calling thread.
    pub unsafe fn run<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        if !self.birth.is_here() {
            return None;
        }
        let mut result: Option<Result<R, Box<dyn Any + Send>>> = None;
        let (done, wait) = sync_channel(1);
        let place = &mut result;
        let job: Box<dyn FnOnce() + '_> = Box::new(move || {
            *place = Some(catch_unwind(AssertUnwindSafe(work)));
        });
        // SAFETY: the job is either handed back by `send` and dropped here, or has run and is gone when `recv` returns,
        // which is before what it borrows ends; that it may go to another thread is the caller's promise.
        let job = unsafe { std::mem::transmute::<Box<dyn FnOnce() + '_>, Job>(job) };
        if self.jobs.send((job, done)).is_ok() {
            // An error means that the thread dropped the job and its end of the channel: it is gone too.
            let _ = wait.recv();
        }
        match result? {
            Ok(value) => Some(value),
            Err(panic) => resume_unwind(panic),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_work_is_done_on_one_other_thread() {
        let own = OwnThread::start("own").unwrap();
        let mut seen = Vec::new();
        for _ in 0..3 {
            // SAFETY: the closure touches a vector that nobody else uses meanwhile.
            unsafe { own.run(|| seen.push(std::thread::current().id())) }.unwrap();
        }
        assert!(seen.iter().all(|id| *id == seen[0]));
        assert_ne!(seen[0], std::thread::current().id());
    }

    #[test]
    fn a_panic_comes_back_and_the_thread_lives_on() {
        let own = OwnThread::start("own").unwrap();
        let caught = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: nothing is shared.
            unsafe { own.run(|| panic!("no")) }
        }));
        assert!(caught.is_err());
        // SAFETY: nothing is shared.
        assert_eq!(unsafe { own.run(|| 5) }, Some(5));
    }
}
