//! The zones of limits that a site counts in: those of the process, and when its rates hold.

use bolide_limit::Zones;

use super::Site;

impl Site {
    /// The same site with the zones of the process, which other configurations may share.
    ///
    /// # Errors
    ///
    /// In nginx's words, what a zone is used for that the one before it was not.
    pub fn with_zones(mut self, zones: &Zones) -> Result<Self, String> {
        if let Some(http) = &self.config.http {
            self.limit_zones =
                http.limit_zones.iter().map(|zone| zones.adopt(zone)).collect::<Result<_, _>>()?;
        }
        debug_assert_eq!(
            self.limit_zones.len(),
            self.http().map_or(0, |http| http.limit_zones.len()),
            "every zone of the configuration is there"
        );
        Ok(self)
    }

    /// The site comes into force: what its zones hear of other servers is paid off by its rates.
    pub fn enforce_zone_rates(&self) {
        let confs = self.http().map_or(&[][..], |http| &http.limit_zones);
        confs.iter().zip(&self.limit_zones).for_each(|(conf, zone)| zone.set_rate(conf));
    }
}
