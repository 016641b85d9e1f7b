//! Device resources and green contexts.

use cupyrite::{Context, Device, DeviceResource, Error, Result, SmGroup, StreamOptions};

fn device() -> Result<Device> {
    Device::new(0)
}

fn part(device: Device) -> Result<cupyrite::SmSplit> {
    let sm = device.sm_resource()?;
    let count = sm.min_partition_size();
    sm.split(&[SmGroup {
        count,
        ..SmGroup::default()
    }])
}

#[test]
fn green_contexts_live_as_long_as_their_streams() -> Result<()> {
    let device = device()?;
    let split = part(device)?;
    let group = &split.groups[0];
    assert_eq!(
        group.sm_count() + split.remainder.sm_count(),
        device.sm_resource()?.sm_count()
    );
    let context = device.create_green_context(&[DeviceResource::Sm(group)])?;
    assert!(context.is_green()?);
    assert!(!device.context()?.is_green()?);
    assert_eq!(context.sm_resource()?.sm_count(), group.sm_count());
    let stream = context.create_green_stream(&StreamOptions::default())?;
    drop(context);
    assert!(stream.context()?.is_green()?);
    assert_eq!(stream.sm_resource()?.sm_count(), group.sm_count());
    stream.synchronize()?;
    drop(stream);
    device.context()?.synchronize()
}

#[test]
fn the_current_green_context_is_found_again() -> Result<()> {
    let device = device()?;
    let split = part(device)?;
    let context = device.create_green_context(&[DeviceResource::Sm(&split.groups[0])])?;
    context.with_current(|| {
        let current = Context::current()?.expect("a context is current");
        assert!(current == context && current.is_green()?);
        Ok(())
    })
}

#[test]
fn estimates_reserve_nothing() -> Result<()> {
    let device = device()?;
    let sm = device.sm_resource()?;
    let groups = [SmGroup {
        count: sm.min_partition_size(),
        ..SmGroup::default()
    }];
    let estimate = sm.estimate_split(&groups)?;
    let group = &estimate.groups[0];
    assert!(group.is_estimate());
    assert_eq!(group.sm_count(), sm.split(&groups)?.groups[0].sm_count());
    let is_argument = |error: Error| matches!(error, Error::InvalidArgument { .. });
    assert!(group.split(&groups).is_err_and(is_argument));
    let created = device.create_green_context(&[DeviceResource::Sm(group)]);
    assert!(created.is_err_and(is_argument));
    assert!(device.create_green_context(&[]).is_err_and(is_argument));
    assert!(sm.split(&[]).is_err_and(is_argument));
    Ok(())
}

#[test]
fn impossible_groups_are_refused() -> Result<()> {
    let sm = device()?.sm_resource()?;
    let groups = [SmGroup {
        count: sm.sm_count() + 1,
        ..SmGroup::default()
    }];
    assert!(sm.split(&groups).is_err() && sm.estimate_split(&groups).is_err());
    Ok(())
}
