//! Pictures for files: drawn once, written as SVG or PNG.
//!
//! A [`Picture`] is a scene of kuva's, whose two backends draw the same lines and letters, and any
//! number of pixel images. In SVG an image is embedded as PNG; in PNG it is laid over the scene.

pub mod batch;
pub mod chart;
pub mod curves;
pub mod experiment;
pub mod heat;
pub mod sizes;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kuva::backend::raster::RasterBackend;
use kuva::backend::svg::SvgBackend;
use kuva::render::color::Color;
use kuva::render::render::{Primitive, Scene, TextAnchor};

use crate::colours::{PAPER, Rgb};

/// Pixels of a PNG for each unit of a picture.
const SCALE: usize = 2;
const FONTS: &str = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Verdana, sans-serif";

/// A drawing with a size.
pub struct Picture {
    scene: Scene,
    images: Vec<Image>,
}

/// Pixels at a place of a picture.
struct Image {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
    /// `SCALE` pixels for each unit, row by row.
    pixels: Vec<Rgb>,
}

/// The side of a text that is at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The text begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// The text ends there.
    End,
}

/// The looks of a text.
#[derive(Clone, Copy, Debug)]
pub struct Lettering {
    /// Height of the letters.
    pub size: u32,
    /// The side that is at its place.
    pub anchor: Anchor,
    /// Its colour.
    pub colour: Rgb,
    /// True if it is a heading.
    pub is_bold: bool,
}

/// The looks of a line.
#[derive(Clone, Copy, Debug)]
pub struct Stroke {
    /// Its colour.
    pub colour: Rgb,
    /// Its width.
    pub width: f64,
    /// True if it is dashed.
    pub is_dashed: bool,
}

impl Picture {
    /// An empty picture.
    pub fn new(width: usize, height: usize) -> Picture {
        let mut scene = Scene::new(width as f64, height as f64);
        scene.font_family = Some(FONTS.into());
        Picture {
            scene,
            images: vec![],
        }
    }

    /// Writes `text` at a place: on its baseline.
    pub fn text(&mut self, x: f64, y: f64, text: &str, lettering: Lettering) {
        self.scene.add(Primitive::Text {
            x,
            y,
            content: text.into(),
            size: lettering.size,
            anchor: match lettering.anchor {
                Anchor::Start => TextAnchor::Start,
                Anchor::Middle => TextAnchor::Middle,
                Anchor::End => TextAnchor::End,
            },
            rotate: None,
            bold: lettering.is_bold,
            color: Some(colour(lettering.colour)),
        });
    }

    /// Draws through `points`.
    pub fn line(&mut self, points: Vec<(f64, f64)>, stroke: Stroke) {
        // The backends begin a dash anew at every point, which makes dense lines solid.
        let parts = match stroke.is_dashed {
            true => dashes(&points),
            false => vec![points],
        };
        for points in parts {
            self.scene.add(Primitive::PolyLine {
                points,
                stroke: colour(stroke.colour),
                stroke_width: stroke.width,
                stroke_dasharray: None,
            });
        }
    }

    /// Fills a rectangle, with an opacity from 0 to 1.
    pub fn fill(&mut self, corner: (f64, f64), size: (f64, f64), fill: Rgb, opacity: f64) {
        self.scene.add(Primitive::Rect {
            x: corner.0,
            y: corner.1,
            width: size.0,
            height: size.1,
            fill: colour(fill),
            stroke: None,
            stroke_width: None,
            opacity: Some(opacity),
        });
    }

    /// Draws a dot with a white rim.
    pub fn dot(&mut self, x: f64, y: f64, radius: f64, fill: Rgb) {
        self.scene.add(Primitive::Circle {
            cx: x,
            cy: y,
            r: radius,
            fill: colour(fill),
            fill_opacity: None,
            stroke: Some(colour(PAPER.ground)),
            stroke_width: Some(1.5),
        });
    }

    /// Lays pixels over whatever is drawn: two for each unit in both directions. `pixel` is asked
    /// with column and row.
    pub fn image(
        &mut self,
        corner: (usize, usize),
        size: (usize, usize),
        pixel: impl Fn(usize, usize) -> Rgb,
    ) {
        let (width, height) = (size.0 * SCALE, size.1 * SCALE);
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let pixels = pixels.map(|(x, y)| pixel(x, y)).collect();
        self.images.push(Image {
            x: corner.0,
            y: corner.1,
            width,
            height,
            pixels,
        });
    }

    /// The number of pixels of an image in each direction for each unit.
    pub const fn scale() -> usize {
        SCALE
    }

    /// The picture as SVG.
    pub fn to_svg(&self) -> String {
        let mut svg = SvgBackend::new().render_scene(&self.scene);
        let end = svg
            .rfind("</svg>")
            .expect("the backend closes what it opens");
        let images: String = self.images.iter().map(Image::to_svg).collect();
        svg.insert_str(end, &images);
        // A picture that is looked at on another screen keeps its shape.
        let (width, height) = (self.scene.width, self.scene.height);
        let view = format!("<svg viewBox=\"0 0 {width} {height}\"");
        svg.replacen("<svg", &view, 1)
    }

    /// The picture as PNG.
    ///
    /// # Errors
    /// The drawing library can't draw or encode it.
    pub fn to_png(&self) -> Result<Vec<u8>, String> {
        let backend = RasterBackend::new().with_scale(SCALE as f32);
        let drawn = backend.render_scene(&self.scene)?;
        let (width, height, mut pixels) = decode(&drawn)?;
        for image in &self.images {
            image.lay_over(&mut pixels, width, height);
        }
        encode(width, height, &pixels)
    }
}

impl Image {
    fn to_svg(&self) -> String {
        let bytes: Vec<u8> = self.pixels.iter().flatten().copied().collect();
        let png = encode(self.width, self.height, &bytes).expect("a PNG in memory can't fail");
        format!(
            "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" \
             style=\"image-rendering:pixelated\" href=\"data:image/png;base64,{}\"/>",
            self.x,
            self.y,
            self.width / SCALE,
            self.height / SCALE,
            STANDARD.encode(png),
        )
    }

    fn lay_over(&self, pixels: &mut [u8], width: usize, height: usize) {
        for row in 0..self.height.min(height.saturating_sub(self.y * SCALE)) {
            let from = ((self.y * SCALE + row) * width + self.x * SCALE) * 3;
            let line = &self.pixels[row * self.width..(row + 1) * self.width];
            let bytes: Vec<u8> = line.iter().flatten().copied().collect();
            pixels[from..from + bytes.len()].copy_from_slice(&bytes);
        }
    }
}

impl Lettering {
    /// Text of a size, from its place to the right.
    pub fn new(size: u32) -> Lettering {
        Lettering {
            size,
            anchor: Anchor::Start,
            colour: PAPER.text,
            is_bold: false,
        }
    }

    /// This lettering with another anchor.
    pub fn anchored(self, anchor: Anchor) -> Lettering {
        Lettering { anchor, ..self }
    }

    /// This lettering in another colour.
    pub fn coloured(self, colour: Rgb) -> Lettering {
        Lettering { colour, ..self }
    }

    /// This lettering as a heading.
    pub fn bold(self) -> Lettering {
        Lettering {
            is_bold: true,
            ..self
        }
    }
}

impl Stroke {
    /// A line.
    pub fn new(colour: Rgb, width: f64) -> Stroke {
        Stroke {
            colour,
            width,
            is_dashed: false,
        }
    }

    /// This line, dashed or not.
    pub fn dashed(self, is_dashed: bool) -> Stroke {
        Stroke { is_dashed, ..self }
    }
}

/// The dashes of a line: stretches of it with gaps between.
fn dashes(points: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
    const LENGTHS: [f64; 2] = [7.0, 4.0];
    let mut parts = vec![];
    let mut part: Vec<(f64, f64)> = points.first().copied().into_iter().collect();
    let (mut side, mut left) = (0, LENGTHS[0]);
    for pair in points.windows(2) {
        let (mut from, to) = (pair[0], pair[1]);
        loop {
            let length = (to.0 - from.0).hypot(to.1 - from.1);
            if length < left {
                left -= length;
                part.push(to);
                break;
            }
            let share = left / length;
            from = (
                from.0 + (to.0 - from.0) * share,
                from.1 + (to.1 - from.1) * share,
            );
            part.push(from);
            let whole = std::mem::replace(&mut part, vec![from]);
            if side == 0 {
                parts.push(whole);
            }
            side = 1 - side;
            left = LENGTHS[side];
        }
    }
    if side == 0 && part.len() > 1 {
        parts.push(part);
    }
    parts
}

/// About how wide a text is, for deciding what there is room for. A little more than it is.
pub fn text_width(text: &str, size: u32) -> f64 {
    text.chars().count() as f64 * f64::from(size) * 0.62
}

/// A PNG's pixels as red, green and blue.
fn decode(png: &[u8]) -> Result<(usize, usize, Vec<u8>), String> {
    let decoder = png::Decoder::new(std::io::Cursor::new(png));
    let mut reader = decoder.read_info().map_err(|error| error.to_string())?;
    let size = reader
        .output_buffer_size()
        .ok_or("the picture is too large")?;
    let mut bytes = vec![0; size];
    let frame = reader
        .next_frame(&mut bytes)
        .map_err(|error| error.to_string())?;
    bytes.truncate(frame.buffer_size());
    let samples = frame.color_type.samples();
    let pixels = bytes
        .chunks(samples)
        .flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]);
    Ok((
        frame.width as usize,
        frame.height as usize,
        pixels.collect(),
    ))
}

fn encode(width: usize, height: usize, pixels: &[u8]) -> Result<Vec<u8>, String> {
    let mut png = vec![];
    let mut encoder = png::Encoder::new(&mut png, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().map_err(|error| error.to_string())?;
    writer
        .write_image_data(pixels)
        .map_err(|error| error.to_string())?;
    writer.finish().map_err(|error| error.to_string())?;
    Ok(png)
}

fn colour(rgb: Rgb) -> Color {
    Color::Rgb(rgb[0], rgb[1], rgb[2])
}

#[cfg(test)]
mod tests;
