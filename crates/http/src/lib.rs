//! HTTP semantics (RFC 9110): heads, fields, methods; no wire format.

#[cfg(test)]
extern crate self as bolide_http;

pub mod cache_control;
pub mod cache_groups;
pub mod cache_status;
pub mod conditional;
pub mod cookies;
pub mod date;
pub mod digits;
pub mod escape;
pub mod fields;
pub mod forwarded_by;
#[cfg(test)]
#[path = "../../fuzz-entries/src/http.rs"]
pub mod fuzz;
pub mod hop_by_hop;
pub mod host;
pub mod lscache;
pub mod message;
pub mod method;
pub mod names;
pub mod negotiate;
pub mod no_vary_search;
pub mod params;
pub mod range;
pub mod status;
pub mod structured;
pub mod trace_context;
pub mod types;
pub mod upstream_message;
pub mod uri;
pub mod vary;

pub use fields::{FieldMap, NameSet};
pub use hop_by_hop::Hops;
pub use message::{
    BodyLen, CHUNK_SIZE, HttpVersion, OriginHead, RequestBody, RequestHead, ResponseHead, Scheme,
};
pub use method::Method;
pub use names::Name;
pub use params::Params;
pub use upstream_message::{
    AppForm, AppMessage, Http2Head, MemcachedGet, UpstreamHead, UpstreamMessage, UpstreamVersion,
};
