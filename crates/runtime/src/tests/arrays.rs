//! Arrays, copies across rows, texture and surface objects.

use cupyrite_sys::runtime::{
    cudaChannelFormatDesc, cudaChannelFormatKind, cudaExtent, cudaResourceDesc, cudaResourceType,
    cudaResourceViewDesc, cudaResourceViewFormat, cudaTextureAddressMode, cudaTextureDesc,
    cudaTextureFilterMode, cudaTextureReadMode,
};

use super::{Error, ok, rt};

const H2D: u32 = 1;
const D2H: u32 = 2;
const D2D: u32 = 3;

fn desc(bits: i32, f: cudaChannelFormatKind) -> cudaChannelFormatDesc {
    cudaChannelFormatDesc {
        x: bits,
        f,
        ..cudaChannelFormatDesc::default()
    }
}

fn array(bits: i32, width: u64, height: u64) -> u64 {
    let mut array = 0u64;
    let d = desc(bits, cudaChannelFormatKind::cudaChannelFormatKindUnsigned);
    ok!("cudaMallocArray", &mut array, &d, width, height, 0u32);
    array
}

#[test]
fn arrays_report_their_descriptors() {
    let a = array(16, 20, 6);
    let (mut d, mut extent, mut flags) = (
        cudaChannelFormatDesc::default(),
        cudaExtent::default(),
        9u32,
    );
    ok!("cudaArrayGetInfo", &mut d, &mut extent, &mut flags, a);
    assert_eq!((d.x, d.y, d.z, d.w), (16, 0, 0, 0));
    assert_eq!(d.f, cudaChannelFormatKind::cudaChannelFormatKindUnsigned);
    assert_eq!((extent.width, extent.height, extent.depth), (20, 6, 0));
    assert_eq!(flags, 0);
    let mut again = cudaChannelFormatDesc::default();
    ok!("cudaGetChannelDesc", &mut again, a);
    assert_eq!((again.x, again.f), (d.x, d.f));
    ok!("cudaFreeArray", a);
    ok!("cudaFreeArray", 0u64);
    assert_eq!(rt!("cudaFreeArray", a), Error::INVALID_RESOURCE_HANDLE);
    let bad = desc(12, cudaChannelFormatKind::cudaChannelFormatKindUnsigned);
    let mut none = 0u64;
    assert_eq!(
        rt!("cudaMallocArray", &mut none, &bad, 4u64, 4u64, 0u32),
        Error::INVALID_CHANNEL_DESCRIPTOR
    );
}

/// Every start, length and pair of widths, compared with a contiguous buffer.
#[test]
fn copies_continue_in_the_next_row() {
    let (a, b) = (array(8, 8, 5), array(8, 6, 7));
    let source: Vec<u8> = (1..=40).collect();
    for start in [0u64, 1, 7, 8, 13, 39] {
        for count in [0u64, 1, 3, 8, 9, 16, 27, 40] {
            let zeros = [0u8; 42];
            ok!("cudaMemcpyToArray", a, 0u64, 0u64, &zeros[0], 40u64, H2D);
            let status = rt!(
                "cudaMemcpyToArray",
                a,
                start % 8,
                start / 8,
                &source[0],
                count,
                H2D
            );
            if start + count > 40 {
                assert_eq!(status, Error::INVALID_VALUE, "{start} {count}");
                continue;
            }
            assert_eq!(status, Error::SUCCESS);
            let mut expected = [0u8; 40];
            expected[start as usize..][..count as usize].copy_from_slice(&source[..count as usize]);
            let mut back = [0u8; 40];
            ok!(
                "cudaMemcpy2DFromArray",
                &mut back,
                8u64,
                a,
                0u64,
                0u64,
                8u64,
                5u64,
                D2H
            );
            assert_eq!(back, expected, "{start} {count}");
            // Continues in rows of another length, and copies back in one run.
            ok!("cudaMemcpyToArray", b, 0u64, 0u64, &zeros[0], 42u64, H2D);
            ok!(
                "cudaMemcpyArrayToArray",
                b,
                2u64,
                0u64,
                a,
                start % 8,
                start / 8,
                count,
                D2D
            );
            let mut run = [0u8; 42];
            ok!("cudaMemcpyFromArray", &mut run, b, 0u64, 0u64, 42u64, D2H);
            assert_eq!(run[2..2 + count as usize], source[..count as usize]);
            assert!(run[2 + count as usize..].iter().all(|&v| v == 0));
        }
    }
    for kind in [0, D2H] {
        assert_eq!(
            rt!("cudaMemcpyToArray", a, 0u64, 0u64, &source[0], 4u64, kind),
            Error::INVALID_MEMCPY_DIRECTION
        );
    }
    assert_eq!(
        rt!(
            "cudaMemcpy2DToArray",
            a,
            0u64,
            0u64,
            &source[0],
            4u64,
            8u64,
            2u64,
            H2D
        ),
        Error::INVALID_PITCH_VALUE
    );
    ok!("cudaFreeArray", a);
    ok!("cudaFreeArray", b);
}

#[test]
fn textures_and_surfaces() {
    let a = array(8, 8, 5);
    let mut resource = cudaResourceDesc {
        resType: cudaResourceType::cudaResourceTypeArray,
        ..cudaResourceDesc::default()
    };
    resource.res.array.array = a as *mut _;
    let mut t = cudaTextureDesc {
        addressMode: [cudaTextureAddressMode::cudaAddressModeBorder; 3],
        filterMode: cudaTextureFilterMode::cudaFilterModeLinear,
        readMode: cudaTextureReadMode::cudaReadModeNormalizedFloat,
        normalizedCoords: 7,
        sRGB: 1,
        borderColor: [1.0, 2.0, 3.0, 4.0],
        maxAnisotropy: 5,
        ..cudaTextureDesc::default()
    };
    let (mut texture, mut surface) = (0u64, 0u64);
    ok!("cudaCreateTextureObject", &mut texture, &resource, &t, 0u64);
    let mut back = cudaTextureDesc::default();
    ok!("cudaGetTextureObjectTextureDesc", &mut back, texture);
    assert_eq!(back.addressMode, t.addressMode);
    assert_eq!((back.filterMode, back.readMode), (t.filterMode, t.readMode));
    assert_eq!(
        (back.normalizedCoords, back.sRGB, back.maxAnisotropy),
        (1, 1, 5)
    );
    assert_eq!(back.borderColor, t.borderColor);
    let mut from = cudaResourceDesc::default();
    ok!("cudaGetTextureObjectResourceDesc", &mut from, texture);
    // SAFETY: the type selects the union member that was written.
    assert_eq!(unsafe { from.res.array.array } as u64, a);
    ok!("cudaDestroyTextureObject", texture);
    ok!("cudaCreateSurfaceObject", &mut surface, &resource);
    ok!("cudaGetSurfaceObjectResourceDesc", &mut from, surface);
    ok!("cudaDestroySurfaceObject", surface);
    // Linear memory, whose format is in the resource descriptor.
    let mut memory = 0u64;
    ok!("cudaMalloc", &mut memory, 4096u64);
    let mut linear = cudaResourceDesc {
        resType: cudaResourceType::cudaResourceTypeLinear,
        ..cudaResourceDesc::default()
    };
    linear.res.linear = cupyrite_sys::runtime::cudaResourceDesc_res_linear {
        devPtr: memory as *mut _,
        desc: desc(32, cudaChannelFormatKind::cudaChannelFormatKindFloat),
        sizeInBytes: 4096,
    };
    ok!("cudaCreateTextureObject", &mut texture, &linear, &t, 0u64);
    ok!("cudaGetTextureObjectResourceDesc", &mut from, texture);
    // SAFETY: the resource type selects the union member that was written.
    let got = unsafe { from.res.linear };
    assert_eq!(
        (got.devPtr as u64, got.sizeInBytes, got.desc.x),
        (memory, 4096, 32)
    );
    ok!("cudaDestroyTextureObject", texture);
    ok!("cudaFree", memory);
    // A combination that the driver would accept.
    t.readMode = cudaTextureReadMode::cudaReadModeElementType;
    assert_eq!(
        rt!("cudaCreateTextureObject", &mut texture, &resource, &t, 0u64),
        Error::INVALID_FILTER_SETTING
    );
    let view = cudaResourceViewDesc {
        format: cudaResourceViewFormat::cudaResViewFormatSignedChar1,
        width: 8,
        height: 5,
        ..cudaResourceViewDesc::default()
    };
    assert_eq!(
        rt!(
            "cudaCreateTextureObject",
            &mut texture,
            &resource,
            &t,
            &view
        ),
        Error::INVALID_FILTER_SETTING
    );
    for bad in [0u64, 1, u64::MAX - 200] {
        assert_eq!(
            rt!("cudaCreateTextureObject", &mut texture, bad, &t, 0u64),
            Error::INVALID_VALUE
        );
        assert_eq!(
            rt!(
                "cudaCreateTextureObject",
                &mut texture,
                &resource,
                bad,
                0u64
            ),
            Error::INVALID_VALUE
        );
        assert_eq!(
            rt!("cudaGetTextureObjectTextureDesc", &mut back, bad),
            Error::INVALID_VALUE
        );
    }
    ok!("cudaFreeArray", a);
}
