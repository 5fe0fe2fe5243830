//! What HTTP *means* (RFC 9110): heads, names, methods; nothing about bytes on a wire.

pub mod conditional;
pub mod date;
pub mod digits;
pub mod escape;
pub mod fields;
pub mod fuzz;
pub mod host;
pub mod message;
pub mod method;
pub mod names;
pub mod negotiate;
pub mod params;
pub mod range;
pub mod status;
pub mod types;
pub mod uri;

pub use fields::Fields;
pub use message::{BodyLen, OriginHead, RequestBody, RequestHead, ResponseHead, Scheme, Version};
pub use method::Method;
pub use names::Name;
pub use params::Params;
