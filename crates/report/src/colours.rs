//! The colours of lines, which people with colour blindness can tell apart, and of heat maps.

/// Red, green and blue.
pub type Rgb = [u8; 3];

/// Background, text, grid and frame of a picture.
#[derive(Clone, Copy, Debug)]
pub struct Paper {
    /// Behind everything.
    pub ground: Rgb,
    /// Titles and numbers.
    pub text: Rgb,
    /// Names of axes and notes.
    pub faint: Rgb,
    /// Lines across the picture.
    pub grid: Rgb,
    /// The frame around it.
    pub frame: Rgb,
}

/// The paper of pictures in files.
pub const PAPER: Paper = Paper {
    ground: [255, 255, 255],
    text: [31, 35, 40],
    faint: [89, 99, 110],
    grid: [230, 234, 239],
    frame: [140, 149, 159],
};

/// Lines: the palette of Okabe and Ito, *Color Universal Design*, 2002, whose colours differ for
/// every kind of colour vision; the yellow is left out because it is lost on white.
pub const LINES: [Rgb; 7] = [
    [0, 114, 178],
    [213, 94, 0],
    [0, 158, 115],
    [110, 118, 129],
    [204, 121, 167],
    [86, 180, 233],
    [230, 159, 0],
];

/// The colour and the dash of a policy's line: the same in every picture that shows it. Optima are
/// dashed, so that they stand apart without colour too.
pub fn of_policy(policy: &str, place: usize) -> (Rgb, bool) {
    match policy {
        "lru" => (LINES[0], false),
        "ws" => (LINES[1], false),
        "vmin" => (LINES[2], true),
        "opt" => (LINES[3], true),
        _ => (LINES[(4 + place % 3) % LINES.len()], place % 6 >= 3),
    }
}

/// The colour of heat from 0 (next to nothing) to 255 (the most there is): dark violet over blue
/// and green to yellow. Its lightness rises evenly, so it reads the same in grey.
pub fn heat(level: u8) -> Rgb {
    let place = f64::from(level) / 255.0 * (STOPS.len() - 1) as f64;
    let at = (place as usize).min(STOPS.len() - 2);
    let part = place - at as f64;
    std::array::from_fn(|channel| {
        let (a, b) = (STOPS[at][channel], STOPS[at + 1][channel]);
        (f64::from(a) + (f64::from(b) - f64::from(a)) * part).round() as u8
    })
}

/// Between these the colours of heat are mixed.
const STOPS: [Rgb; 9] = [
    [58, 22, 92],
    [66, 50, 126],
    [56, 84, 142],
    [43, 114, 142],
    [32, 142, 140],
    [42, 170, 124],
    [98, 196, 92],
    [170, 216, 54],
    [250, 230, 36],
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance as the web's contrast rules define it.
    fn luminance(colour: Rgb) -> f64 {
        let [r, g, b] = colour.map(|channel| {
            let c = f64::from(channel) / 255.0;
            if c <= 0.040_45 {
                c / 12.92
            } else {
                ((c + 0.055) / 1.055).powf(2.4)
            }
        });
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    #[test]
    fn heat_grows_lighter_all_the_way() {
        // Single steps may differ by the rounding of a channel.
        for level in 4..=255 {
            let (below, here) = (luminance(heat(level - 4)), luminance(heat(level)));
            assert!(here > below, "{level}");
        }
        assert!(luminance(heat(255)) > 20.0 * luminance(heat(0)));
    }

    #[test]
    fn text_stands_out_from_its_paper() {
        let contrast = |colour| (1.05) / (luminance(colour) + 0.05);
        assert!(contrast(PAPER.text) >= 7.0 && contrast(PAPER.faint) >= 4.5);
    }

    #[test]
    fn the_usual_policies_have_lines_of_their_own() {
        let mut colours: Vec<Rgb> = ["lru", "ws", "vmin", "opt"]
            .iter()
            .map(|policy| of_policy(policy, 0).0)
            .collect();
        colours.sort_unstable();
        colours.dedup();
        assert_eq!(colours.len(), 4);
    }
}
