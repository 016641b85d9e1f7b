use super::*;

fn layout(shape: &[i64], strides: &[i64]) -> StridedLayout {
    StridedLayout::new(shape, Some(strides), 4).unwrap()
}

/// The offsets of all elements, in index order.
fn elements(layout: &StridedLayout) -> Vec<i64> {
    let mut all = vec![layout.offset()];
    for (&extent, &stride) in layout.shape().iter().zip(layout.strides()) {
        all = all
            .iter()
            .flat_map(|&at| (0..extent).map(move |i| at + i * stride))
            .collect();
    }
    all
}

#[test]
fn invalid_layouts_are_rejected() {
    assert!(StridedLayout::new(&[-1], None, 4).is_err());
    assert!(StridedLayout::new(&[1], None, 0).is_err());
    assert!(StridedLayout::new(&[1], Some(&[]), 1).is_err());
    assert!(StridedLayout::new(&[1; 65], None, 1).is_err());
    assert!(StridedLayout::new(&[1 << 62, 1 << 62], None, 1).is_err());
    assert!(StridedLayout::new(&[1 << 62], None, 4).is_err());
    assert!(StridedLayout::new(&[2], Some(&[i64::MAX]), 4).is_err());
    assert!(StridedLayout::new(&[2], Some(&[i64::MIN]), 4).is_err());
    // Its least element could not be counted from the other end.
    assert!(StridedLayout::new(&[2], Some(&[i64::MIN]), 1).is_err());
    let least = StridedLayout::new(&[2], Some(&[-i64::MAX]), 1).unwrap();
    assert!(least.required_size().is_err());
    assert!(StridedLayout::with_byte_strides(&[2], &[6], 4).is_err());
    // Without elements nothing is out of reach.
    assert_eq!(
        StridedLayout::new(&[0, 1 << 62, 1 << 62], None, 4)
            .unwrap()
            .volume(),
        0
    );
}

#[test]
fn reshaping_keeps_the_order_of_the_elements() {
    let rows = StridedLayout::new(&[2, 3, 4], None, 4).unwrap();
    for shape in [
        &[24][..],
        &[6, 4],
        &[2, 12],
        &[4, 3, 2],
        &[1, 24, 1],
        &[-1, 8],
        &[2, 2, 3, 2],
    ] {
        assert_eq!(
            elements(&rows.reshaped(shape).unwrap()),
            elements(&rows),
            "{shape:?}"
        );
    }
    let columns = rows.permuted(&[2, 1, 0]).unwrap();
    assert!(columns.reshaped(&[24]).is_err());
    let split = columns.reshaped(&[2, 2, 3, 2]).unwrap();
    assert_eq!(elements(&split), elements(&columns));
    assert!(rows.reshaped(&[5, -1]).is_err() && rows.reshaped(&[-1, -1]).is_err());
    assert!(rows.reshaped(&[25]).is_err() && rows.reshaped(&[0, -1]).is_err());
    let scalar = StridedLayout::new(&[], None, 4).unwrap();
    assert_eq!(scalar.reshaped(&[1, 1]).unwrap().shape(), [1, 1]);
    assert_eq!(
        rows.broadcast_to(&[5, 2, 3, 4])
            .unwrap()
            .reshaped(&[5, 24])
            .unwrap()
            .strides(),
        [0, 1]
    );
}

#[test]
fn merging_keeps_the_order_of_the_elements() {
    for strides in [
        [20, 4, 1],
        [1, 3, 12],
        [12, 4, 1],
        [4, 12, 1],
        [-12, -4, -1],
    ] {
        let some = layout(&[2, 3, 4], &strides);
        assert_eq!(
            elements(&some.flattened(u64::MAX).unwrap()),
            elements(&some),
            "{strides:?}"
        );
    }
    let whole = layout(&[2, 3, 4], &[12, 4, 1]);
    assert_eq!(whole.flattened_axis_mask(), 6);
    assert_eq!(whole.flattened(4).unwrap().shape(), [2, 12]);
}

#[test]
fn slices_stay_inside() {
    let rows = layout(&[3, 4], &[4, 1]);
    let all = Index::Range {
        start: 0,
        len: 3,
        step: 1,
    };
    assert_eq!(
        elements(&rows.sliced(&[Index::At(-1)]).unwrap()),
        [8, 9, 10, 11]
    );
    let back = Index::Range {
        start: 3,
        len: 2,
        step: -3,
    };
    assert_eq!(
        elements(&rows.sliced(&[all, back]).unwrap()),
        [3, 0, 7, 4, 11, 8]
    );
    for bad in [
        Index::At(3),
        Index::At(-4),
        Index::Range {
            start: 1,
            len: 3,
            step: 1,
        },
        Index::Range {
            start: 0,
            len: -1,
            step: 1,
        },
    ] {
        assert!(rows.sliced(&[bad]).is_err(), "{bad:?}");
    }
    assert!(rows.sliced(&[all, all, all]).is_err());
    let far = Index::Range {
        start: 1,
        len: 1,
        step: i64::MAX,
    };
    assert_eq!(elements(&rows.sliced(&[far]).unwrap()), [4, 5, 6, 7]);
}

#[test]
fn contiguity_and_bounds() {
    let rows = layout(&[3, 4], &[4, 1]);
    assert!(
        rows.is_contiguous_c() && !rows.is_contiguous_f() && rows.is_dense() && rows.is_unique()
    );
    let columns = rows.permuted(&[1, 0]).unwrap();
    assert!(!columns.is_contiguous_c() && columns.is_contiguous_f() && columns.is_contiguous_any());
    assert_eq!(columns.stride_order(), [1, 0]);
    assert_eq!(columns.to_dense(None).unwrap(), columns);
    assert_eq!(
        columns.to_dense(Some(&StrideOrder::C)).unwrap().strides(),
        [3, 1]
    );
    let gaps = layout(&[3, 4], &[5, 1]);
    assert!(!gaps.is_contiguous_any() && gaps.is_unique());
    assert!(!layout(&[3, 4], &[0, 1]).is_unique() && !layout(&[3, 4], &[3, 1]).is_unique());
    let back = layout(&[3, 4], &[-4, 1]);
    assert_eq!(back.bounds(), (-8, 3));
    assert!(back.required_size().is_err());
    assert_eq!(gaps.required_size().unwrap(), 56);
    assert_eq!(layout(&[0, 4], &[4, 1]).bounds(), (0, -1));
    let odd = StridedLayout::dense(&[2, 3, 4], 1, &StrideOrder::Axes(vec![2, 0, 1])).unwrap();
    assert_eq!(odd.strides(), [3, 1, 6]);
}

#[test]
fn elements_of_another_size() {
    let rows = layout(&[3, 4], &[4, 1]);
    let wide = rows.repacked(8, 0, 1, true).unwrap();
    assert_eq!((wide.shape(), wide.strides()), (&[3, 2][..], &[2, 1][..]));
    assert_eq!(rows.repacked(16, 0, 1, false).unwrap().shape(), [3]);
    assert_eq!(rows.repacked(1, 0, 1, true).unwrap().strides(), [16, 1]);
    assert!(rows.repacked(8, 4, 1, true).is_err() && rows.repacked(8, 0, 0, true).is_err());
    assert!(rows.repacked(12, 0, 1, true).is_err() && rows.repacked(6, 0, 1, true).is_err());
    assert_eq!(rows.max_compatible_item_size(16, 0, 1).unwrap(), 16);
    assert_eq!(rows.max_compatible_item_size(16, 8, 1).unwrap(), 8);
    assert!(rows.max_compatible_item_size(2, 0, 1).is_err());
    assert_eq!(
        layout(&[6], &[1])
            .max_compatible_item_size(16, 0, 0)
            .unwrap(),
        8
    );
    assert_eq!(
        layout(&[3], &[1])
            .max_compatible_item_size(16, 0, 0)
            .unwrap(),
        4
    );
}

#[test]
fn axes_are_inserted_and_removed() {
    let rows = layout(&[3, 4], &[4, 1]);
    assert_eq!(rows.unsqueezed(&[0, 3]).unwrap().strides(), [12, 4, 1, 1]);
    assert_eq!(rows.unsqueezed(&[1]).unwrap().squeezed().unwrap(), rows);
    assert!(rows.unsqueezed(&[3]).is_err() && rows.unsqueezed(&[0, 0]).is_err());
    assert!(rows.permuted(&[0, 0]).is_err() && rows.permuted(&[0]).is_err());
    assert_eq!(
        layout(&[3, 1], &[1, 1])
            .broadcast_to(&[2, 3, 5])
            .unwrap()
            .strides(),
        [0, 1, 0]
    );
    assert!(rows.broadcast_to(&[4]).is_err() && rows.broadcast_to(&[3, 5]).is_err());
}
