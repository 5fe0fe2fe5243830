//! The GeoIP databases of a site.

use std::sync::Arc;

use bolide_geoip::LiveGeoDatabase;

use super::Site;

impl Site {
    /// Gives the site its GeoIP databases, in the order of the configuration; a variable from a
    /// missing one has no value.
    #[must_use]
    pub fn with_geo_databases(mut self, databases: Vec<Arc<LiveGeoDatabase>>) -> Self {
        self.geo_databases = databases;
        self
    }

    /// A GeoIP database.
    pub(crate) fn geo_database(&self, index: u16) -> Option<&LiveGeoDatabase> {
        self.geo_databases.get(usize::from(index)).map(|database| &**database)
    }
}
