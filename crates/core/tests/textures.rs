//! Textures and surfaces: copies, ownership, kernels.

use cupyrite::{
    ArrayFormat, ArrayKind, ArrayOptions, Device, Error, FilterMode, LaunchConfig, MipmappedArray,
    OpaqueArray, Program, SurfaceObject, TextureObject, TextureOptions, TextureResource,
};

const SOURCE: &str = r#"
extern "C" __global__ void read(cudaTextureObject_t t, float *out, int w) {
    out[threadIdx.x] = tex2D<float>(t, threadIdx.x % w + 0.5f, threadIdx.x / w + 0.5f);
}
extern "C" __global__ void fetch(cudaTextureObject_t t, float *out) {
    out[threadIdx.x] = tex1Dfetch<float>(t, threadIdx.x);
}
extern "C" __global__ void fill(cudaSurfaceObject_t s, int w) {
    surf2Dwrite((float)threadIdx.x, s, threadIdx.x % w * 4, threadIdx.x / w);
}
"#;

fn values(count: usize) -> Vec<f32> {
    (0..count).map(|n| n as f32).collect()
}

#[test]
fn copies_of_all_shapes() {
    let device = Device::new(0).unwrap();
    let stream = device.create_stream().unwrap();
    for (shape, kind) in [
        (&[7][..], ArrayKind::Plain),
        (&[7, 5], ArrayKind::Plain),
        (&[7, 5, 3], ArrayKind::Plain),
        (&[7, 3], ArrayKind::Layered),
        (&[7, 5, 3], ArrayKind::Layered),
        (&[4, 4, 6], ArrayKind::Cubemap),
        (&[4, 4, 12], ArrayKind::CubemapLayered),
    ] {
        let mut options = ArrayOptions::new(shape, ArrayFormat::Float32, 2);
        options.kind = kind;
        let array = device.create_opaque_array(&options).unwrap();
        let data = values(shape.iter().product::<usize>() * 2);
        array.copy_from(&data, &stream).unwrap();
        let mut back = vec![0f32; data.len()];
        array.copy_to(&mut back, &stream).unwrap();
        assert_eq!(back, data, "{shape:?} {kind:?}");
        assert!(matches!(
            array.copy_from(&data[1..], &stream),
            Err(Error::InvalidArgument { .. })
        ));
    }
}

#[test]
fn objects_own_what_they_refer_to() {
    let device = Device::new(0).unwrap();
    let stream = device.create_stream().unwrap();
    let code = Program::new(SOURCE).compile_for(&device).unwrap();
    let out = device.buffer::<f32>(32).unwrap();

    let mut options = ArrayOptions::new(&[8, 4], ArrayFormat::Float32, 1);
    options.surface_load_store = true;
    let array = OpaqueArray::new(device, &options).unwrap();
    let resource = TextureResource::array(&array);
    let texture = TextureObject::new(device, &resource, &TextureOptions::default()).unwrap();
    let surface = SurfaceObject::new(device, &resource).unwrap();
    drop((array, resource));
    let config = LaunchConfig::linear(1, 32);
    // SAFETY: the kernels touch the array's 32 elements, and `out`.
    unsafe {
        let fill = code.kernel("fill").unwrap();
        fill.launch(&stream, &config, &(&surface, 8i32)).unwrap();
        let read = code.kernel("read").unwrap();
        read.launch(&stream, &config, &(&texture, &out, 8i32))
            .unwrap();
    }
    stream.synchronize().unwrap();
    assert_eq!(out.to_vec().unwrap(), values(32));

    let buffer = device.buffer_from(&values(32)).unwrap();
    let linear = TextureResource::linear(&buffer, ArrayFormat::Float32, 1).unwrap();
    drop(buffer);
    let texture = TextureObject::new(device, &linear, &TextureOptions::default()).unwrap();
    drop(linear);
    out.zero().unwrap();
    // SAFETY: the kernel has these parameters and writes within `out`.
    unsafe {
        let fetch = code.kernel("fetch").unwrap();
        fetch.launch(&stream, &config, &(&texture, &out)).unwrap();
    }
    stream.synchronize().unwrap();
    assert_eq!(out.to_vec().unwrap(), values(32));
}

#[test]
fn levels_own_their_array() {
    let device = Device::new(0).unwrap();
    let stream = device.create_stream().unwrap();
    let options = ArrayOptions::new(&[8, 4], ArrayFormat::Float32, 1);
    let array = MipmappedArray::new(device, &options, 3).unwrap();
    assert!(array.level(3).is_err());
    let level = array.level(1).unwrap();
    drop(array);
    assert_eq!(level.options().shape, [4, 2]);
    level.copy_from(&values(8), &stream).unwrap();
    let mut back = [0f32; 8];
    level.copy_to(&mut back, &stream).unwrap();
    assert_eq!(back[..], values(8)[..]);
    let resource = TextureResource::array(&level);
    let sampling = TextureOptions {
        filter_mode: FilterMode::Linear,
        ..TextureOptions::default()
    };
    TextureObject::new(device, &resource, &sampling).unwrap();
    let error = SurfaceObject::new(device, &resource).unwrap_err();
    assert!(error.to_string().contains("surface_load_store"), "{error}");
    assert!(MipmappedArray::new(device, &options, 5).is_err());
}
