//! Drawings for a terminal: curves and working sets in braille, maps in half blocks.
//!
//! Every drawing is a pure function of a record and a [`Screen`]. Without colours, letters on lines
//! distinguish them, and the density of blocks shows heat.

pub(crate) mod canvas;
mod compare;
mod curves;
mod experiment;
mod map;
mod needs;
mod paragraphs;
mod replay;
mod ruler;
mod screen;
mod sizes;

pub use compare::compare;
pub use curves::curves;
pub use experiment::experiments;
pub use map::map;
pub use needs::needs;
pub use paragraphs::sentence;
pub(crate) use paragraphs::wrapped;
pub use replay::replay;
pub use screen::Screen;
pub use sizes::sizes;
