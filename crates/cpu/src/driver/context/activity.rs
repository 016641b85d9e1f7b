//! Device utilisation: the share of the last second in which at least one kernel ran.

use parking_lot::Mutex;

use crate::driver::entry::clock::now;

/// Length of one window slice, in nanoseconds, and the number of slices in the window.
const PART: u64 = 100_000_000;
const PARTS: usize = 10;

/// Kernel activity of one device.
struct Activity {
    /// Number of running kernels, and the time since which at least one runs.
    running: u32,
    since: u64,
    /// Busy nanoseconds of the latest slices, by slice number modulo `PARTS + 1`: the window and the current slice.
    busy: [u64; PARTS + 1],
    /// Number of the newest slice in `busy`.
    newest: u64,
}

impl Activity {
    const IDLE: Activity = Activity {
        running: 0,
        since: 0,
        busy: [0; PARTS + 1],
        newest: 0,
    };

    /// Clears the slices that have left the window at `time`.
    fn advance(&mut self, time: u64) {
        let part = time / PART;
        for passed in (self.newest + 1..=part).take(PARTS + 1) {
            self.busy[passed as usize % (PARTS + 1)] = 0;
        }
        self.newest = self.newest.max(part);
    }

    /// Counts the time from `since` to `time` as busy.
    fn credit(&mut self, time: u64) {
        self.advance(time);
        // Time before the window is irrelevant.
        let mut from = self
            .since
            .max(self.newest.saturating_sub(PARTS as u64) * PART);
        while from < time {
            let end = (from / PART + 1) * PART;
            let to = end.min(time);
            self.busy[(from / PART) as usize % (PARTS + 1)] += to - from;
            from = to;
        }
        self.since = self.since.max(time);
    }

    fn begin(&mut self, time: u64) {
        if self.running == 0 {
            self.since = time;
        }
        self.running += 1;
    }

    fn end(&mut self, time: u64) {
        self.credit(time);
        self.running = self.running.saturating_sub(1);
    }

    /// Percentage of the window before `time` that was busy. The window starts no earlier than time zero.
    fn percent(&mut self, time: u64) -> u32 {
        if self.running > 0 {
            self.credit(time);
        } else {
            self.advance(time);
        }
        let start = self.newest.saturating_sub(PARTS as u64) * PART;
        let window = time.saturating_sub(start).max(1);
        let busy: u64 = self.busy.iter().sum();
        (busy.min(window) * 100).div_ceil(window) as u32
    }
}

const DEVICES: usize = 16;
static DEVICES_ACTIVITY: [Mutex<Activity>; DEVICES] =
    [const { Mutex::new(Activity::IDLE) }; DEVICES];

fn with<T>(device: i32, look: impl FnOnce(&mut Activity, u64) -> T) -> Option<T> {
    let activity = DEVICES_ACTIVITY.get(usize::try_from(device).ok()?)?;
    let mut activity = activity.lock();
    Some(look(&mut activity, now()))
}

/// Counts as a running kernel until it is dropped.
pub(crate) struct RunningKernel(i32);

impl RunningKernel {
    /// Marks the start of a kernel on a device.
    pub(crate) fn on(device: i32) -> Self {
        with(device, Activity::begin);
        RunningKernel(device)
    }
}

impl Drop for RunningKernel {
    fn drop(&mut self) {
        with(self.0, Activity::end);
    }
}

/// Percentage of the last second in which a kernel ran on the device. Zero in a forked child, which cannot run kernels.
pub(crate) fn busy_percent(device: i32) -> u32 {
    if crate::driver::entry::init::forked() {
        return 0;
    }
    with(device, Activity::percent).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_busy_reports_half() {
        let mut a = Activity::IDLE;
        for second in 0..10 {
            for part in 0..10 {
                let start = second * 10 * PART + part * PART;
                a.begin(start);
                a.end(start + PART / 2);
            }
        }
        let percent = a.percent(100 * PART);
        assert!((48..=52).contains(&percent), "{percent}");
    }

    #[test]
    fn overlapping_kernels_count_once_and_running_kernels_count() {
        let mut a = Activity::IDLE;
        a.begin(0);
        a.begin(PART);
        assert_eq!(a.percent(50 * PART), 100);
        a.end(50 * PART);
        assert_eq!(a.percent(55 * PART), 100);
        a.end(60 * PART);
        assert_eq!(a.percent(60 * PART), 100);
        let later = a.percent(65 * PART);
        assert!((45..=55).contains(&later), "{later}");
        assert_eq!(a.percent(80 * PART), 0);
        assert_eq!(a.percent(8_000 * PART), 0);
    }

    #[test]
    fn short_activity_rounds_up() {
        let mut a = Activity::IDLE;
        a.begin(20 * PART);
        a.end(20 * PART + 1000);
        assert_eq!(a.percent(20 * PART + 2000), 1);
    }
}
