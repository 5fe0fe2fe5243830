//! Many fetches at once against origins that do everything that origins do.

pub(crate) mod support;
