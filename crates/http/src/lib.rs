//! What HTTP *means* (RFC 9110): heads, names, methods; nothing about bytes on a wire.

pub mod fields;
pub mod message;
pub mod method;
pub mod names;
pub mod status;

pub use fields::Fields;
pub use message::{BodyLen, RequestBody, RequestHead, ResponseHead, Scheme, Version};
pub use method::Method;
pub use names::Name;
