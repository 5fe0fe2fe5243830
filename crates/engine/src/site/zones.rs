//! The zones of limits that a site uses, and their rates.

use bolide_limit::Zones;

use super::Site;

impl Site {
    /// Gives the site the zones of the process, which other configurations may share.
    ///
    /// # Errors
    ///
    /// In nginx's words: a zone is used with another key or size than before.
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

    /// Puts the site's rates in force: reports of other servers are drained at these rates.
    pub fn enforce_zone_rates(&self) {
        let confs = self.http().map_or(&[][..], |http| &http.limit_zones);
        confs.iter().zip(&self.limit_zones).for_each(|(conf, zone)| zone.set_rate(conf));
    }
}
