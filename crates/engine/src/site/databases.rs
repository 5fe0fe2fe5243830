//! The databases of addresses of a site.

use std::sync::Arc;

use bolide_geoip::LiveGeoDatabase;

use super::Site;

impl Site {
    /// The same site with its databases of addresses, in the order of the configuration; a variable
    /// from one that is missing has no value.
    #[must_use]
    pub fn with_geo_databases(mut self, databases: Vec<Arc<LiveGeoDatabase>>) -> Self {
        self.geo_databases = databases;
        self
    }

    /// A database of addresses.
    pub(crate) fn geo_database(&self, index: u16) -> Option<&LiveGeoDatabase> {
        self.geo_databases.get(usize::from(index)).map(|database| &**database)
    }
}
