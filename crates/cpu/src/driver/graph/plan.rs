//! Execution plans: a graph flattened into chains of work that streams can run.
//!
//! Embedded graphs are inlined. A chain is a maximal sequence of nodes in which each has one predecessor and is its
//! only successor. A chain runs on one thread without queueing in between; chains run concurrently. The bodies of a
//! conditional node run on the thread of the node's chain, in topological order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use cupyrite_engine::GraphLauncher;
use cupyrite_engine::conditions::Condition;

use super::conditional::{self, Conditional};
use super::device_launch::Environment;
use super::{EventNode, Graph, Payload};
use crate::driver::context::{Context, green};
use crate::driver::entry::Res;
use crate::driver::external::semaphore::Operations;
use crate::driver::external::waits;
use crate::driver::module::launch::with_graph_launcher;
use crate::driver::stream::queue::{Op, Work};
use crate::driver::stream::{OpPlacement, Stream};

/// A node of the plan.
#[derive(Clone)]
struct Step {
    payload: Arc<Payload>,
    enabled: bool,
    /// The steps of each body of a conditional node, which follow the node's step.
    bodies: Box<[Range<usize>]>,
}

impl Step {
    /// The number of the next step of the same graph; `at` is the number of this one.
    fn next(&self, at: usize) -> usize {
        self.bodies.last().map_or(at + 1, |body| body.end)
    }
}

/// The execution of the graph with a step, if its kernels launch graphs.
type LauncherEnvironment<'a> = Option<&'a Arc<Environment>>;

/// How a stream handles a chain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChainKind {
    Work,
    /// Only points where branches start or meet.
    Empty,
    Record,
    Wait,
    /// A wait for external semaphores.
    Semaphores,
}

#[derive(Clone)]
struct Chain {
    sort: ChainKind,
    steps: Vec<usize>,
    /// Chains that must finish first.
    before: Vec<usize>,
    /// Whether no chain depends on it.
    is_last: bool,
}

/// Location of a node of the instantiated graph.
#[derive(Clone)]
pub(super) struct Located {
    step: usize,
    /// The graph, within the executable graph's copy, that contains the node, and the node's handle there.
    pub(super) graph: Arc<Graph>,
    pub(super) node: u64,
}

/// A plan. It can be launched any number of times; each launch keeps the plan unchanged.
#[derive(Clone)]
pub(super) struct Plan {
    steps: Vec<Step>,
    chains: Arc<Vec<Chain>>,
    /// By handle in the instantiated graph.
    index: Arc<HashMap<u64, Located>>,
    /// Conditions with a default value, which each launch sets first.
    defaults: Arc<[(Arc<Condition>, u32)]>,
    /// Whether kernels of the graph launch graphs.
    launches_graphs: bool,
    /// Keeps the graph's resources alive while a launch runs.
    _graph: Arc<Graph>,
}

/// Reports a cycle by the handle of one of its nodes, or of a node behind it, in the instantiated graph.
#[derive(Debug)]
pub(super) struct Cycle(pub(super) u64);

/// Nodes in topological order.
struct TopologicalOrder {
    steps: Vec<Step>,
    before: Vec<Vec<usize>>,
    index: HashMap<u64, Located>,
}

impl TopologicalOrder {
    fn push(&mut self, payload: Arc<Payload>, before: Vec<usize>) -> usize {
        self.steps.push(Step {
            payload,
            enabled: true,
            bodies: Box::default(),
        });
        self.before.push(before);
        self.steps.len() - 1
    }

    /// Adds the nodes of `graph`, all after the step `start` if given. Returns the steps without successors. The
    /// recursion depth is limited by the nesting depth of graphs.
    fn add(&mut self, graph: &Arc<Graph>, start: Option<usize>) -> Result<Vec<usize>, Cycle> {
        let state = graph.lock();
        let mut missing: HashMap<u64, usize> = HashMap::new();
        let mut ready = BinaryHeap::new();
        for (&handle, node) in &state.nodes {
            missing.insert(handle, node.before.len());
            if node.before.is_empty() {
                ready.push(Reverse(handle));
            }
        }
        let mut ends = HashMap::new();
        let mut last = Vec::new();
        while let Some(Reverse(handle)) = ready.pop() {
            let node = &state.nodes[&handle];
            let mut before: Vec<usize> = node.before.iter().map(|e| ends[&e.node]).collect();
            if before.is_empty() {
                before.extend(start);
            }
            let first = self.steps.len();
            let end = match &*node.payload {
                Payload::Graph(inner) => {
                    let begin = self.push(Arc::new(Payload::Empty), before);
                    let mut inner_ends = self.add(inner, Some(begin))?;
                    if inner_ends.is_empty() {
                        inner_ends.push(begin);
                    }
                    self.push(Arc::new(Payload::Empty), inner_ends)
                }
                Payload::Conditional(c) => {
                    let step = self.push(node.payload.clone(), before);
                    let mut bodies = Vec::with_capacity(c.bodies.len());
                    for body in &c.bodies {
                        let start = self.steps.len();
                        self.add(body, None)?;
                        bodies.push(start..self.steps.len());
                    }
                    self.steps[step].bodies = bodies.into();
                    step
                }
                _ => self.push(node.payload.clone(), before),
            };
            let located = Located {
                step: first,
                graph: graph.clone(),
                node: handle,
            };
            self.index.insert(node.origin, located);
            ends.insert(handle, end);
            if node.after.is_empty() {
                last.push(end);
            }
            for edge in &node.after {
                if let Some(count) = missing.get_mut(&edge.node) {
                    *count -= 1;
                    if *count == 0 {
                        ready.push(Reverse(edge.node));
                    }
                }
            }
        }
        if ends.len() < state.nodes.len() {
            let stuck = state.nodes.iter().find(|(h, _)| !ends.contains_key(h));
            return Err(Cycle(stuck.map_or(0, |(_, n)| n.origin)));
        }
        Ok(last)
    }

    fn chains(&self) -> Vec<Chain> {
        let mut successors = vec![0u32; self.steps.len()];
        for &b in self.before.iter().flatten() {
            successors[b] += 1;
        }
        let mut chains: Vec<Chain> = Vec::new();
        // Steps in bodies are in no chain.
        let mut chain_of = vec![usize::MAX; self.steps.len()];
        let mut next = 0;
        while let Some(step) = self.steps.get(next) {
            let i = next;
            next = step.next(i);
            let sort = match &*step.payload {
                Payload::EventRecord(_) => ChainKind::Record,
                Payload::EventWait(_) => ChainKind::Wait,
                Payload::WaitSemaphores(_) => ChainKind::Semaphores,
                Payload::Empty => ChainKind::Empty,
                _ => ChainKind::Work,
            };
            let is_event = |s: ChainKind| {
                matches!(
                    s,
                    ChainKind::Record | ChainKind::Wait | ChainKind::Semaphores
                )
            };
            if let [before] = self.before[i][..]
                && successors[before] == 1
                && !is_event(sort)
            {
                let at: usize = chain_of[before];
                let chain: &mut Chain = &mut chains[at];
                if !is_event(chain.sort) {
                    chain.steps.push(i);
                    if sort == ChainKind::Work {
                        chain.sort = sort;
                    }
                    chain_of[i] = at;
                    continue;
                }
            }
            let mut before: Vec<usize> = self.before[i].iter().map(|&b| chain_of[b]).collect();
            before.sort_unstable();
            before.dedup();
            for &b in &before {
                chains[b].is_last = false;
            }
            chain_of[i] = chains.len();
            chains.push(Chain {
                sort,
                steps: vec![i],
                before,
                is_last: true,
            });
        }
        chains
    }
}

impl Plan {
    /// Flattens a graph.
    ///
    /// # Errors
    /// A node of a cycle.
    pub(super) fn new(graph: &Arc<Graph>) -> Result<Plan, Cycle> {
        let mut flat = TopologicalOrder {
            steps: Vec::new(),
            before: Vec::new(),
            index: HashMap::new(),
        };
        flat.add(graph, None)?;
        let chains = Arc::new(flat.chains());
        let launches = |s: &Step| matches!(&*s.payload, Payload::Kernel(k) if k.launches_graphs());
        Ok(Plan {
            launches_graphs: flat.steps.iter().any(launches),
            steps: flat.steps,
            chains,
            index: Arc::new(flat.index),
            defaults: defaults(graph),
            _graph: graph.clone(),
        })
    }

    /// Location of a node of the instantiated graph.
    pub(super) fn locate(&self, node: u64) -> Option<&Located> {
        self.index.get(&node)
    }

    pub(super) fn payload(&self, at: &Located) -> &Arc<Payload> {
        &self.steps[at.step].payload
    }

    pub(super) fn set_payload(&mut self, at: &Located, payload: Arc<Payload>) {
        self.steps[at.step].payload = payload;
    }

    pub(super) fn is_enabled(&self, at: &Located) -> bool {
        self.steps[at.step].enabled
    }

    pub(super) fn set_enabled(&mut self, at: &Located, enabled: bool) {
        self.steps[at.step].enabled = enabled;
    }

    /// Takes over the default values of another graph's conditions.
    pub(super) fn set_defaults(&mut self, graph: &Arc<Graph>) {
        self.defaults = defaults(graph);
    }

    /// All payloads in topological order.
    pub(super) fn payloads(&self) -> impl Iterator<Item = &Payload> {
        self.steps.iter().map(|s| &*s.payload)
    }

    /// Runs the steps of a chain in order until one fails.
    fn run(
        &self,
        chain: usize,
        context: &Arc<Context>,
        environment: LauncherEnvironment<'_>,
    ) -> Res {
        for &step in &self.chains[chain].steps {
            if !self.run_step(step, context, environment)? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Runs a step. Returns false if a context has failed: the remaining steps are skipped.
    fn run_step(
        &self,
        step: usize,
        context: &Arc<Context>,
        environment: LauncherEnvironment<'_>,
    ) -> Res<bool> {
        let step = &self.steps[step];
        let payload = &step.payload;
        let place = payload.context().unwrap_or(context);
        if context.has_failed() || place.has_failed() {
            return Ok(false);
        }
        if let Payload::Conditional(node) = &**payload {
            return self.run_bodies(step, node, context, environment);
        }
        if !step.enabled {
            return Ok(true);
        }
        if let Payload::Host(_) = &**payload {
            payload.run()?;
        } else {
            let (Some(_work), Some(_work_there)) = (context.begin_work(), place.begin_work())
            else {
                return Ok(false);
            };
            let launcher = environment.cloned();
            let launcher = launcher.map(|e| e as Arc<dyn GraphLauncher + Send>);
            let outcome = with_graph_launcher(launcher, || payload.run());
            outcome.inspect_err(|&code| place.fail(code))?;
        }
        environment.map_or(Ok(true), |e| e.run_fired(context))
    }

    /// Runs the bodies of a conditional node that its condition selects.
    fn run_bodies(
        &self,
        step: &Step,
        node: &Conditional,
        context: &Arc<Context>,
        environment: LauncherEnvironment<'_>,
    ) -> Res<bool> {
        while let Some(body) = node.selected() {
            let Some(body) = step.bodies.get(body) else {
                break;
            };
            let mut at = body.start;
            while at < body.end {
                if !self.run_step(at, context, environment)? {
                    return Ok(false);
                }
                at = self.steps[at].next(at);
            }
            if !node.is_loop() {
                break;
            }
            // A loop without kernels ends only when its context fails.
            if context.has_failed() || node.context().has_failed() {
                return Ok(false);
            }
            if body.is_empty() {
                std::thread::yield_now();
            }
        }
        Ok(true)
    }

    /// Runs all steps on this thread, for a launch from the device. Returns false if a context has failed.
    pub(super) fn run_all(
        &self,
        context: &Arc<Context>,
        environment: &Arc<Environment>,
    ) -> Res<bool> {
        let mut at = 0;
        while let Some(step) = self.steps.get(at) {
            if !self.run_step(at, context, Some(environment))? {
                return Ok(false);
            }
            at = step.next(at);
        }
        Ok(true)
    }

    /// Enqueues a launch in the stream, after `also`; returns its final op. `current` is the handle of the executable
    /// graph if the device can launch it, else zero.
    pub(super) fn launch(
        self: &Arc<Plan>,
        stream: &Arc<Stream>,
        also: &[Arc<Op>],
        current: u64,
    ) -> Arc<Op> {
        if !self.defaults.is_empty() {
            let defaults = self.defaults.clone();
            stream.enqueue(also, OpPlacement::CallerIfIdle, move |_| {
                defaults.iter().for_each(|(c, value)| c.set(*value));
                Ok(())
            });
        }
        let needed = self.launches_graphs || current != 0;
        let environment = needed.then(|| Environment::new(current));
        match &self.chains[..] {
            [] => return stream.mark(also),
            [only] if only.sort == ChainKind::Work => {
                let plan = self.clone();
                return stream.enqueue_steps(also, OpPlacement::Worker, move |context| {
                    plan.run(0, context, environment.as_ref())?;
                    environment.map_or(Ok(()), |e| e.run_tails(context))
                });
            }
            _ => {}
        }
        stream.enter_many(self.chains.len() + 1, also, |first, last, leave| {
            // After all other work: the tail launches.
            let end = environment.as_ref().map(|environment| {
                let (environment, context) = (environment.clone(), stream.context.clone());
                let (green, leave) = (stream.green().cloned(), leave.clone());
                Op::new(Some(Box::new(move || {
                    let _share = green::enter_share(green.as_ref());
                    if !context.has_failed()
                        && let Err(code) = environment.run_tails(&context)
                    {
                        context.fail(code);
                    }
                    drop(leave);
                })))
            });
            let last = end.as_ref().inspect(|end| last.after(end)).unwrap_or(last);
            let mut ops: Vec<Arc<Op>> = Vec::with_capacity(self.chains.len());
            for (i, chain) in self.chains.iter().enumerate() {
                let op = Op::new(match chain.sort {
                    ChainKind::Work => {
                        let (plan, context, leave) =
                            (self.clone(), stream.context.clone(), leave.clone());
                        let green = stream.green().cloned();
                        let environment = environment.clone();
                        let work: Work = Box::new(move || {
                            let _share = green::enter_share(green.as_ref());
                            let outcome =
                                std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                                    plan.run(i, &context, environment.as_ref())
                                }));
                            // A panic is a bug in this crate; the context fails, so that the program learns that the
                            // work was not done.
                            if let Err(code) = outcome.unwrap_or(Err(super::Code::UNKNOWN)) {
                                context.fail(code);
                            }
                            drop(leave);
                        });
                        Some(work)
                    }
                    ChainKind::Empty
                    | ChainKind::Record
                    | ChainKind::Wait
                    | ChainKind::Semaphores => None,
                });
                // What follows the previous chains: the op itself, or the op that begins its wait.
                let begin = self.semaphores(chain).map(|operations| {
                    waits::begin(operations, &stream.context, leave.clone(), &op)
                });
                let entry = begin.as_ref().unwrap_or(&op);
                if chain.before.is_empty() {
                    entry.after(first);
                }
                for &before in &chain.before {
                    entry.after(&ops[before]);
                }
                begin.into_iter().for_each(Op::release);
                match self.event(chain) {
                    Some(e) if chain.sort == ChainKind::Record => e.event.set(op.clone()),
                    Some(e) => {
                        if let Some(recorded) = e.event.latest() {
                            op.after(&recorded);
                        }
                    }
                    None => {}
                }
                if chain.is_last {
                    last.after(&op);
                }
                ops.push(op);
            }
            ops.into_iter().for_each(Op::release);
            end.into_iter().for_each(Op::release);
        })
    }

    /// The operations of a chain that consists of a wait for semaphores.
    fn semaphores(&self, chain: &Chain) -> Option<&Operations> {
        match &*self.steps[*chain.steps.first()?].payload {
            Payload::WaitSemaphores(s) => Some(s.operations()),
            _ => None,
        }
    }

    /// The event of a chain that consists of an event node.
    fn event(&self, chain: &Chain) -> Option<&EventNode> {
        match &*self.steps[*chain.steps.first()?].payload {
            Payload::EventRecord(e) | Payload::EventWait(e) => Some(e),
            _ => None,
        }
    }
}

/// The conditions of a graph that have a default value.
fn defaults(graph: &Arc<Graph>) -> Arc<[(Arc<Condition>, u32)]> {
    let variables = conditional::variables(graph);
    variables.iter().filter_map(|v| v.default()).collect()
}
