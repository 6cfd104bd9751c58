//! GNU sort, with a buffer that holds all of its input.

use super::scratch::Scratch;
use super::trial::Trial;
use super::{material, needs};

#[test]
fn sort_gives_the_same_lines_in_less_memory() {
    if !needs::are_met(&["sort"]) {
        return;
    }
    let scratch = Scratch::new("sort");
    let input = scratch.join("lines");
    let bytes = needs::size(14 << 20, 1 << 30);
    material::write_lines(&input, bytes);
    let buffer = format!("--buffer-size={}M", (4 * bytes) >> 20);
    let input = input.display().to_string();
    let arguments = ["sort", "--parallel=2", &buffer, "--output=sorted", &input];
    Trial::new("sort", &scratch, &arguments).compare();
}
