//! Results as pictures, as terminal drawings and as one self-contained HTML page.
//!
//! Sees the records of `tidemark-results` and nothing else: every view is a pure function of them.
//!
//! [`picture`] draws for files (SVG, PNG), [`terminal`] for terminals, [`page`] for browsers, as
//! do [`replay`] and [`experiment`]; [`thrashing`] draws for files and terminals, [`diff`] for
//! terminals and browsers, and [`visits`] and [`sweep`] are tables for terminals. They share how
//! values become places ([`axis`]), numbers ([`numbers`]), colours ([`colours`]) and sentences
//! ([`words`]), how a map is laid out ([`raster`]), and its table ([`regions`]). [`footprint`]
//! stands below working sets. [`headline`] is the sentence that leads a page.

#![forbid(unsafe_code)]

pub mod axis;
pub mod colours;
pub mod diff;
pub mod experiment;
pub mod footprint;
pub mod headline;
pub mod numbers;
pub mod page;
pub mod picture;
pub mod raster;
pub mod regions;
pub mod replay;
pub mod sweep;
pub mod terminal;
pub mod thrashing;
mod verdict;
pub mod visits;
pub mod words;
