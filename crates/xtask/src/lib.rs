//! The project's own checks on its text: style, structure, one-way dependencies.

pub mod layers;
pub mod tidy;
