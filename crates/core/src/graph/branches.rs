//! Branches of a capture: builders that `split` creates and `join` ends.

use crate::error::{Error, Result};
use crate::graph::builder::{GraphBuilder, Role};
use crate::graph::stream_capture::capture_state;
use crate::graph::unjoined::is_unjoined;
use crate::stream::{EventOptions, Stream, StreamOptions};

/// Largest number of builders of a [`GraphBuilder::split`]; each has a stream.
const MAX_SPLIT: usize = 1024;

impl GraphBuilder {
    /// Splits the capture: returns `count - 1` further builders, whose work is independent of this one's later work and
    /// comes after its present work. Each has to be joined.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a `count` below 2 or above 1024; the driver's error.
    pub fn split(&self, count: usize) -> Result<Vec<GraphBuilder>> {
        if !(2..=MAX_SPLIT).contains(&count) {
            let problem = format!("is {count}; expected 2 to {MAX_SPLIT}");
            return Err(Error::argument("GraphBuilder::split", "count", problem));
        }
        let context = self.base.context()?;
        let _lock = self.lock()?;
        let forked = self.base.record_with(&EventOptions::default())?;
        let mut branches = Vec::new();
        for _ in 1..count {
            let stream = Stream::new(&context, &StreamOptions::default())?;
            stream.wait(&forked)?;
            branches.push(GraphBuilder::of(
                self.recorder.clone(),
                stream,
                Role::Branch,
            ));
        }
        Ok(branches)
    }

    /// Joins branches: later work of this builder comes after theirs.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a builder of another capture or one that is no branch; the driver's error. The
    /// branches are consumed in any case.
    pub fn join(&self, branches: Vec<GraphBuilder>) -> Result<()> {
        let branches: Vec<&GraphBuilder> = branches.iter().collect();
        self.join_shared(&branches)
    }

    /// [`GraphBuilder::join`] for builders that others refer to as well.
    ///
    /// # Errors
    ///
    /// As [`GraphBuilder::join`].
    #[doc(hidden)] // For the Python package, whose objects are shared.
    pub fn join_shared(&self, branches: &[&GraphBuilder]) -> Result<()> {
        for branch in branches {
            let problem = if !self.shares_capture_with(branch) {
                "contains a builder of another graph; join builders that split() of this graph returned"
            } else if branch.role != Role::Branch {
                "contains the builder that began the capture; call join() on it instead"
            } else {
                continue;
            };
            return Err(Error::argument(
                "GraphBuilder::join",
                "graph_builders",
                problem,
            ));
        }
        let _lock = self.lock()?;
        for branch in branches {
            let event = branch.base.record_with(&EventOptions::default())?;
            self.base.wait(&event)?;
            let handle = branch.base.handle();
            let mut branches = self.recorder.branches.lock();
            branches.retain(|stream| stream.handle() != handle);
        }
        Ok(())
    }

    /// Whether a branch to which nodes were added by handle was not joined.
    pub(super) fn has_unjoined_branch(&self) -> Result<bool> {
        let recorder = &*self.recorder;
        let branches = std::mem::take(&mut *recorder.branches.lock());
        let mut last = Vec::new();
        for branch in branches.iter().filter(|stream| !stream.is_destroyed()) {
            let found = capture_state(branch, true)?;
            if !found.is_other(recorder.id) {
                last.extend(found.after);
            }
        }
        if last.is_empty() {
            return Ok(false);
        }
        let end = capture_state(&self.base, true)?.after;
        Ok(is_unjoined(
            &recorder.definition.edge_handles()?,
            &end,
            &last,
        ))
    }
}
