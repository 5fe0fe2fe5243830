//! Properties that the fuzz targets hold, on random input.

mod conf;
mod engine;
mod esi;
mod resolver;
