//! The project's own checks on its text: style, structure, one-way dependencies.

pub mod counts;
mod documents;
mod harnesses;
pub mod layers;
mod recipes;
mod rust;
pub mod tidy;
