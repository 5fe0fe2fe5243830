//! The response to a combined request (`combine`), as the page and the parts in it know it.

use bolide_cache::rules::Environment;
use bolide_http::FieldMap;

use crate::route::LocationIndex;

/// A combined response, as far as it says who may have its parts.
#[derive(Clone, Debug, Default)]
pub struct CombinedHead {
    pub(crate) status: u16,
    /// Its fields, as its application sent them.
    pub(crate) fields: FieldMap,
    /// The cache controls of its request.
    pub(crate) environment: Environment,
    pub(crate) location: LocationIndex,
    /// The places whose checks its request passed.
    pub(crate) checks: u64,
    /// Whether its request was refused on the way.
    pub(crate) is_refused: bool,
}
