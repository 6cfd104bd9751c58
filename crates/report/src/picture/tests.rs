use super::*;

#[test]
fn an_image_lies_where_it_was_put_in_both_forms() {
    let mut picture = Picture::new(20, 10);
    picture.image((5, 2), (3, 4), |_, _| [200, 0, 0]);
    let (width, height, pixels) = decode(&picture.to_png().unwrap()).unwrap();
    assert_eq!((width, height), (40, 20));
    let pixel = |x: usize, y: usize| pixels[(y * width + x) * 3];
    assert_eq!(pixel(10, 4), 200);
    assert_eq!(pixel(15, 11), 200);
    assert_eq!((pixel(9, 4), pixel(16, 4), pixel(10, 12)), (255, 255, 255));
    let svg = picture.to_svg();
    assert!(
        svg.contains("<image x=\"5\" y=\"2\" width=\"3\" height=\"4\""),
        "{svg}"
    );
}

#[test]
fn text_is_escaped() {
    let mut picture = Picture::new(20, 10);
    picture.text(1.0, 1.0, "<script>&", Lettering::new(10));
    let svg = picture.to_svg();
    assert!(svg.contains("&lt;script&gt;&amp;") && !svg.contains("<script>"));
}
