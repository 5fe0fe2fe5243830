//! The project's own tools: tidy, docs.

fn main() {}
