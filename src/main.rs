//! The process: command line, signals, control. Nothing here answers a request.

fn main() {}
