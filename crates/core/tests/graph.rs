//! Graphs: builders, definitions, instantiated graphs, on the device of this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cupyrite::graph::{
    CaptureMode, Graph, GraphBuilder, GraphDefinition, GraphMemory, GraphMemoryAttribute,
    GraphMemoryResource, InstantiateOptions, MemcpyParams, NodeKind, Retained, drop_released,
};
use cupyrite::{Device, DeviceBuffer, Error, FillPattern, Stream};

fn device() -> Device {
    Device::new(0).expect("a device: the CPU device serves where there is no GPU")
}

fn problem_of(error: &Error) -> &str {
    match error {
        Error::InvalidArgument { problem, .. } => problem,
        other => panic!("{other}"),
    }
}

/// Counts its drops.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Waits until the driver has released what graphs retained.
fn wait_for(counter: &AtomicUsize, count: usize) {
    let until = Instant::now() + Duration::from_secs(10);
    while counter.load(Ordering::SeqCst) != count && Instant::now() < until {
        drop_released();
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(counter.load(Ordering::SeqCst), count);
}

#[test]
fn types_are_send_and_sync() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<GraphDefinition>();
    shared::<GraphBuilder>();
    shared::<Graph>();
}

#[test]
fn callbacks_run_in_the_order_of_the_edges() {
    let stream = device().create_stream().unwrap();
    let calls = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let definition = GraphDefinition::new().unwrap();
    let note = |number: u32| {
        let calls = calls.clone();
        move || calls.lock().push(number)
    };
    let first = definition.callback(&[], note(1)).unwrap();
    let second = definition.callback(&[first], note(2)).unwrap();
    let third = definition.callback(&[second, first], note(3)).unwrap();
    assert_eq!(third.predecessors().unwrap().len(), 2);
    assert_eq!(first.successors().unwrap().len(), 2);
    assert_eq!(third.kind().unwrap(), NodeKind::CU_GRAPH_NODE_TYPE_HOST);
    assert_eq!(definition.nodes().unwrap().len(), 3);
    assert_eq!(definition.edge_handles().unwrap().len(), 3);
    let graph = definition
        .instantiate(&InstantiateOptions::default())
        .unwrap();
    drop(definition);
    graph.launch(&stream).unwrap();
    graph.launch(&stream).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(*calls.lock(), [1, 2, 3, 1, 2, 3]);
}

#[test]
fn nodes_retain_their_memory() {
    let device = device();
    let stream = device.create_stream().unwrap();
    let drops = Arc::new(AtomicUsize::new(0));
    let memory = Arc::new(device.buffer::<u8>(64).unwrap());
    let address = memory.address();
    let result = device.buffer::<u8>(64).unwrap();
    let owner: Retained = Arc::new((memory, Counted(drops.clone())));
    let definition = GraphDefinition::new().unwrap();
    let copy = MemcpyParams {
        destination: result.address(),
        source: address,
        bytes: 64,
    };
    // SAFETY: the graph retains the memory; `result` outlives the launch.
    unsafe {
        let fill = definition
            .memset(&[], address, FillPattern::U8(7), 64, Some(owner))
            .unwrap();
        definition.memcpy(&[fill], copy, None).unwrap();
    }
    let graph = definition
        .instantiate(&InstantiateOptions::default())
        .unwrap();
    drop(definition);
    graph.launch(&stream).unwrap();
    assert_eq!(drops.load(Ordering::SeqCst), 0);
    graph.close();
    stream.synchronize().unwrap();
    wait_for(&drops, 1);
    assert_eq!(result.to_vec().unwrap(), [7; 64]);
}

#[test]
fn builders_split_and_join() {
    let stream = device().create_stream().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let add = |n: usize| {
        let count = count.clone();
        move || {
            count.fetch_add(n, Ordering::SeqCst);
        }
    };
    let builder = GraphBuilder::begin(&stream, CaptureMode::ThreadLocal).unwrap();
    builder.callback(add(1)).unwrap();
    let branches = builder.split(3).unwrap();
    for branch in &branches {
        branch.callback(add(10)).unwrap();
    }
    builder.callback(add(100)).unwrap();
    builder.join(branches).unwrap();
    let graph = builder.complete(&InstantiateOptions::default()).unwrap();
    graph.launch(&stream).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 121);
}

#[test]
fn wrong_uses_name_what_is_missing() {
    let stream = device().create_stream().unwrap();
    let builder = GraphBuilder::begin(&stream, CaptureMode::Relaxed).unwrap();
    let again = GraphBuilder::begin(&stream, CaptureMode::Relaxed).unwrap_err();
    assert!(problem_of(&again).contains("end that capture first"));
    assert!(problem_of(&builder.split(1).unwrap_err()).contains("2 to 1024"));
    let mut branches = builder.split(2).unwrap();
    branches[0].callback(|| {}).unwrap();
    let branch = branches.remove(0);
    assert!(problem_of(&branch.end().unwrap_err()).contains("join()"));
    let unjoined = builder.end().unwrap_err().to_string();
    assert!(unjoined.contains("call join() first"), "{unjoined}");

    let (one, other) = (
        GraphDefinition::new().unwrap(),
        GraphDefinition::new().unwrap(),
    );
    let node = other.empty(&[]).unwrap();
    assert!(problem_of(&one.empty(&[node]).unwrap_err()).contains("another definition"));
    assert!(problem_of(&one.embed(&[], &one).unwrap_err()).contains("same graph"));
}

#[test]
fn a_dropped_builder_discards_its_capture() {
    let stream = device().create_stream().unwrap();
    let drops = Arc::new(AtomicUsize::new(0));
    let counted = Counted(drops.clone());
    let builder = GraphBuilder::begin(&stream, CaptureMode::Relaxed).unwrap();
    builder
        .callback(move || panic!("must not run: {:p}", &counted))
        .unwrap();
    drop(builder);
    stream.synchronize().unwrap();
    wait_for(&drops, 1);
}

#[test]
fn nodes_are_destroyed_by_name() {
    let drops = Arc::new(AtomicUsize::new(0));
    let counted = Counted(drops.clone());
    let mut definition = GraphDefinition::new().unwrap();
    let node = definition
        .callback(&[], move || panic!("must not run: {:p}", &counted))
        .unwrap()
        .id();
    definition.destroy(node).unwrap();
    wait_for(&drops, 1);
    assert!(problem_of(&definition.destroy(node).unwrap_err()).contains("not a node"));
}

#[test]
fn updates_replace_what_graphs_retain() {
    let stream = device().create_stream().unwrap();
    let drops = Arc::new(AtomicUsize::new(0));
    let make = || {
        let counted = Counted(drops.clone());
        let definition = GraphDefinition::new().unwrap();
        definition
            .callback(&[], move || {
                let _ = &counted;
            })
            .unwrap();
        definition
    };
    let graph = make().instantiate(&InstantiateOptions::default()).unwrap();
    for _ in 0..100 {
        graph.update(&make()).unwrap();
        graph.launch(&stream).unwrap();
    }
    stream.synchronize().unwrap();
    let other = GraphDefinition::new().unwrap();
    let refused = graph.update(&other).unwrap_err().to_string();
    assert!(refused.contains("nodes or edges differ"), "{refused}");
    drop(graph);
    stream.synchronize().unwrap();
    drop(make().instantiate(&InstantiateOptions::default()).unwrap());
    wait_for(&drops, 102);
}

#[test]
fn memory_of_a_capture_belongs_to_the_graph() {
    let device = device();
    let stream = device.create_stream().unwrap();
    let resource = Arc::new(GraphMemoryResource::new(device));
    let refused = DeviceBuffer::from_resource(resource.clone(), 64, &stream).unwrap_err();
    assert!(
        refused.to_string().contains("not being captured"),
        "{refused}"
    );
    let builder = GraphBuilder::begin(&stream, CaptureMode::Relaxed).unwrap();
    let memory = DeviceBuffer::from_resource(resource, 1 << 20, builder.stream()).unwrap();
    memory.close(None).unwrap();
    let graph = builder.complete(&InstantiateOptions::default()).unwrap();
    for _ in 0..3 {
        graph.launch(&stream).unwrap();
    }
    stream.synchronize().unwrap();
    let memory = GraphMemory::of(device);
    assert!(memory.attribute(GraphMemoryAttribute::UsedHigh).unwrap() >= 1 << 20);
    drop(graph);
    memory.trim().unwrap();
    memory.reset(GraphMemoryAttribute::UsedHigh).unwrap();
    assert!(memory.reset(GraphMemoryAttribute::UsedCurrent).is_err());
}

#[test]
fn threads_share_a_graph() {
    let count = Arc::new(AtomicUsize::new(0));
    let definition = GraphDefinition::new().unwrap();
    let counter = count.clone();
    definition
        .callback(&[], move || {
            counter.fetch_add(1, Ordering::SeqCst);
        })
        .unwrap();
    let graph = definition
        .instantiate(&InstantiateOptions::default())
        .unwrap();
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let stream: Stream = device().create_stream().unwrap();
                for _ in 0..50 {
                    graph.launch(&stream).unwrap();
                }
                stream.synchronize().unwrap();
            });
        }
    });
    assert_eq!(count.load(Ordering::SeqCst), 400);
}

/// Destroys a node as a program that uses the driver's functions does.
fn destroy_by_handle(node: cupyrite::sys::driver::CUgraphNode) {
    // SAFETY: the node is live.
    let status = unsafe { cupyrite::sys::driver::cuGraphDestroyNode(node) };
    assert_eq!(status.unwrap().0, 0);
}

#[test]
fn nodes_that_the_program_destroys_are_refused() {
    let definition = GraphDefinition::new().unwrap();
    let first = definition.empty(&[]).unwrap();
    let second = definition.empty(&[first]).unwrap();
    destroy_by_handle(first.handle());
    for error in [
        first.kind().map(drop).unwrap_err(),
        first.successors().map(drop).unwrap_err(),
        first.predecessors().map(drop).unwrap_err(),
    ] {
        assert!(problem_of(&error).contains("was destroyed"), "{error}");
    }
    let error = definition.empty(&[second, first]).unwrap_err();
    assert!(problem_of(&error).contains("was destroyed"), "{error}");
    assert!(second.predecessors().unwrap().is_empty());
    // Also when new nodes get the handle.
    let new: Vec<_> = (0..20).map(|_| definition.empty(&[]).unwrap()).collect();
    assert!(first.kind().is_err());
    for node in new {
        node.kind().unwrap();
    }
}

#[test]
fn a_body_that_is_recorded_and_destroyed_leaves_no_dangling_nodes() {
    let stream = device().create_stream().unwrap();
    let mut definition = GraphDefinition::new().unwrap();
    let condition = definition.create_condition(Some(0)).unwrap();
    let (node, mut bodies) = definition
        .conditional(&[], condition, cupyrite::graph::ConditionalKind::If, 1)
        .unwrap();
    let id = node.id();
    let mut body = bodies.remove(0);
    let builder = GraphBuilder::begin_into(&stream, &body, CaptureMode::Relaxed).unwrap();
    builder.embed(&GraphDefinition::new().unwrap()).unwrap();
    let ended = builder.end().unwrap();
    let recorded = ended.nodes().unwrap()[0];
    body.destroy(recorded.id()).unwrap();
    assert!(recorded.kind().is_err());
    let other = ended.empty(&[]).unwrap();
    definition.destroy(id).unwrap();
    assert!(!body.exists() && !ended.exists());
    assert!(other.kind().is_err() && ended.nodes().is_err());
}

#[test]
fn threads_share_a_definition_and_its_graph() {
    let device = device();
    let a = GraphDefinition::new().unwrap();
    let b = GraphDefinition::new().unwrap();
    a.callback(&[], || {}).unwrap();
    b.callback(&[], || {}).unwrap();
    let graph = a.instantiate(&InstantiateOptions::default()).unwrap();
    thread::scope(|scope| {
        for number in 0..4 {
            let (a, b, graph) = (&a, &b, &graph);
            scope.spawn(move || {
                let stream = device.create_stream().unwrap();
                let (one, other) = if number % 2 == 0 { (a, b) } else { (b, a) };
                for _ in 0..20 {
                    let node = one.empty(&[]).unwrap();
                    node.successors().unwrap();
                    one.nodes().unwrap();
                    drop(graph.update(other));
                    graph.launch(&stream).unwrap();
                    let copy = GraphDefinition::new().unwrap();
                    copy.embed(&[], one).unwrap();
                }
                stream.synchronize().unwrap();
            });
        }
    });
    assert_eq!(a.nodes().unwrap().len(), 41);
}

#[test]
fn a_builder_whose_capture_the_program_ends_refuses_work() {
    let device = device();
    let stream = device.create_stream().unwrap();
    let buffer = device.buffer::<u32>(4).unwrap();
    let builder = GraphBuilder::begin(&stream, CaptureMode::Relaxed).unwrap();
    let mut graph = std::ptr::null_mut();
    // SAFETY: the stream is live, `graph` is valid for writes.
    let status = unsafe { cupyrite::sys::driver::cuStreamEndCapture(stream.handle(), &mut graph) };
    assert_eq!(status.unwrap().0, 0);
    assert!(!builder.is_recording());
    for error in [
        builder.callback(|| panic!("ran")).unwrap_err(),
        builder.split(2).map(drop).unwrap_err(),
        // SAFETY: the buffer outlives the refused call.
        unsafe {
            cupyrite::copy_async(
                buffer.address(),
                buffer.address(),
                4,
                builder.stream(),
                &Default::default(),
            )
        }
        .unwrap_err(),
        builder.end().map(drop).unwrap_err(),
    ] {
        assert!(error.to_string().contains("cuStreamEndCapture"), "{error}");
    }
    // SAFETY: the program owns the graph.
    let status = unsafe { cupyrite::sys::driver::cuGraphDestroy(graph) };
    assert_eq!(status.unwrap().0, 0);
    stream.synchronize().unwrap();
}
