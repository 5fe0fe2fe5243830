//! A site in the form that one worker holds.

use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;

use bolide_upstream::UpstreamGroups;

use super::Site;

/// A site in the form that one worker holds: a clone for a request changes no reference counter of
/// another core.
#[derive(Clone, Debug)]
#[allow(
    clippy::redundant_allocation,
    reason = "the inner counts are shared by cores, the outer is not"
)]
pub struct SiteRef(Rc<(Arc<Site>, Arc<UpstreamGroups>)>);

impl SiteRef {
    /// Wraps a site and its upstream groups for this worker; call it once per worker and
    /// configuration.
    #[must_use]
    pub fn new(site: Arc<Site>, groups: Arc<UpstreamGroups>) -> Self {
        Self(Rc::new((site, groups)))
    }

    /// The upstream groups of the site.
    #[must_use]
    pub fn groups(&self) -> &Arc<UpstreamGroups> {
        &self.0.1
    }

    /// The shared site.
    #[must_use]
    pub fn shared(&self) -> &Arc<Site> {
        &self.0.0
    }
}

impl Deref for SiteRef {
    type Target = Site;

    #[inline]
    fn deref(&self) -> &Site {
        &self.0.0
    }
}
