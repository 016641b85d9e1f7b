//! Which test has which device. Waiting tests are served in the order in which they came.
//!
//! Invariant: a thread that holds a device never waits for another one, so tests cannot wait for each other.

use std::thread::{self, ThreadId};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::harness::{print_uncaptured, test_name};

/// A test that waits longer says so once.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Reservations {
    state: Mutex<QueueState>,
    changed: Condvar,
    patience: Duration,
}

struct QueueState {
    /// By ordinal.
    slots: Vec<Slot>,
    /// The numbers of the next test to come, and of the one that is served.
    next: u64,
    served: u64,
}

#[derive(Clone, Default)]
struct Slot {
    holder: Option<(ThreadId, String)>,
    /// Why no test can use the device any more.
    unusable: Option<String>,
}

impl Reservations {
    pub(super) fn new(devices: usize) -> Reservations {
        Reservations {
            state: Mutex::new(QueueState {
                slots: vec![Slot::default(); devices],
                next: 0,
                served: 0,
            }),
            changed: Condvar::new(),
            patience: PATIENCE,
        }
    }

    /// Reserves `count` of the devices in `candidates` for the calling thread, the first free ones. Waits for them.
    ///
    /// # Errors
    ///
    /// The reason, if waiting would not help.
    pub(super) fn reserve(&self, count: usize, candidates: &[usize]) -> Result<Vec<usize>, String> {
        let me = thread::current().id();
        let mut state = self.state.lock();
        let held = |slot: &Slot| {
            slot.holder
                .as_ref()
                .is_some_and(|(thread, _)| *thread == me)
        };
        if let Some(ordinal) = state.slots.iter().position(held) {
            return Err(format!(
                "the thread already has device {ordinal}; keep one TestDevice in each test, or ask for several at once: \
                 let Some([a, b]) = test::require().devices() else {{ return }};"
            ));
        }
        let number = state.next;
        state.next += 1;
        let mut patience = Some(self.patience);
        let found = loop {
            if state.served == number {
                let (usable, broken): (Vec<usize>, Vec<usize>) = candidates
                    .iter()
                    .partition(|&&at| state.slots[at].unusable.is_none());
                if usable.len() < count {
                    let reason = broken
                        .first()
                        .and_then(|&at| state.slots[at].unusable.clone());
                    break Err(reason.unwrap_or_else(|| "there are too few devices".to_owned()));
                }
                let is_free = |at: &usize| state.slots[*at].holder.is_none();
                let free: Vec<usize> = usable.into_iter().filter(is_free).take(count).collect();
                if free.len() == count {
                    for &at in &free {
                        state.slots[at].holder = Some((me, test_name()));
                    }
                    break Ok(free);
                }
            }
            match patience {
                None => self.changed.wait(&mut state),
                Some(time) => {
                    if self.changed.wait_for(&mut state, time).timed_out() {
                        patience = None;
                        print_uncaptured(&state.waiting(candidates));
                    }
                }
            }
        };
        state.served += 1;
        self.changed.notify_all();
        found
    }

    /// Ends a reservation; `unusable` says why no other test can use the device.
    pub(super) fn release(&self, ordinal: usize, unusable: Option<String>) {
        self.state.lock().slots[ordinal] = Slot {
            holder: None,
            unusable,
        };
        self.changed.notify_all();
    }
}

impl QueueState {
    fn waiting(&self, candidates: &[usize]) -> String {
        let mut text = format!("{} waits for a CUDA device:", test_name());
        for &at in candidates {
            if let Some((_, holder)) = &self.slots[at].holder {
                text += &format!(" {holder} has device {at};");
            }
        }
        text + " other threads of a test use a copy of its device: let device = *device"
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_device_has_one_holder_at_a_time() {
        let reservations = Reservations::new(2);
        let held = [const { AtomicUsize::new(0) }; 2];
        let most = AtomicUsize::new(0);
        thread::scope(|scope| {
            for number in 0..8 {
                let (reservations, held, most) = (&reservations, &held, &most);
                scope.spawn(move || {
                    for _ in 0..20 {
                        let count = 1 + number % 2;
                        let found = reservations.reserve(count, &[0, 1]).unwrap();
                        assert_eq!(found.len(), count);
                        for &at in &found {
                            assert_eq!(held[at].fetch_add(1, Ordering::SeqCst), 0);
                        }
                        let now = held.iter().map(|n| n.load(Ordering::SeqCst)).sum();
                        most.fetch_max(now, Ordering::SeqCst);
                        thread::yield_now();
                        for at in found {
                            held[at].fetch_sub(1, Ordering::SeqCst);
                            reservations.release(at, None);
                        }
                    }
                });
            }
        });
        assert_eq!(most.into_inner(), 2);
    }

    #[test]
    fn a_test_that_needs_all_devices_is_not_overtaken() {
        let reservations = Reservations::new(2);
        let order = Mutex::new(Vec::new());
        let first = reservations.reserve(1, &[0, 1]).unwrap();
        thread::scope(|scope| {
            for count in [2, 1] {
                let (reservations, order) = (&reservations, &order);
                let number = reservations.state.lock().next;
                scope.spawn(move || {
                    let found = reservations.reserve(count, &[0, 1]).unwrap();
                    order.lock().push(count);
                    for at in found {
                        reservations.release(at, None);
                    }
                });
                // It waits once it has a number.
                while reservations.state.lock().next == number {
                    thread::yield_now();
                }
            }
            // Device 1 is free, but the first in the queue needs both.
            thread::sleep(Duration::from_millis(20));
            assert!(order.lock().is_empty());
            reservations.release(first[0], None);
        });
        assert_eq!(*order.lock(), [2, 1]);
    }

    #[test]
    fn a_thread_that_holds_a_device_does_not_wait_for_another() {
        let reservations = Reservations::new(2);
        let found = reservations.reserve(1, &[1, 0]).unwrap();
        assert_eq!(found, [1]);
        let refused = reservations.reserve(1, &[0]).unwrap_err();
        assert!(refused.contains("already has device 1"), "{refused}");
        reservations.release(1, None);
        assert_eq!(reservations.reserve(2, &[0, 1]).unwrap(), [0, 1]);
    }

    #[test]
    fn unusable_devices_are_left_out() {
        let reservations = Reservations::new(2);
        reservations.reserve(1, &[0, 1]).unwrap();
        reservations.release(0, Some("device 0 is unusable".to_owned()));
        let refused = reservations.reserve(2, &[0, 1]).unwrap_err();
        assert_eq!(refused, "device 0 is unusable");
        assert_eq!(reservations.reserve(1, &[0, 1]).unwrap(), [1]);
    }

    #[test]
    fn a_long_wait_names_the_holder() {
        let mut reservations = Reservations::new(1);
        reservations.patience = Duration::from_millis(1);
        reservations.reserve(1, &[0]).unwrap();
        let text = reservations.state.lock().waiting(&[0]);
        assert!(
            text.contains("a_long_wait_names_the_holder has device 0"),
            "{text}"
        );
        thread::scope(|scope| {
            let waits = scope.spawn(|| reservations.reserve(1, &[0]));
            thread::sleep(Duration::from_millis(20));
            reservations.release(0, None);
            assert_eq!(waits.join().unwrap(), Ok(vec![0]));
        });
    }
}
