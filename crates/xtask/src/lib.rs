//! The project's own checks on its text: style, structure, one-way dependencies.

mod documents;
pub mod layers;
pub mod tidy;
