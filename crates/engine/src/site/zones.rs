//! The zones of limits that a site uses, and what it puts in force of shared state.

use bolide_limit::Zones;

use super::Site;

impl Site {
    /// Gives the site the zones of the process, which other configurations may share.
    ///
    /// # Errors
    ///
    /// In nginx's words: a zone in force has another key.
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

    /// Puts what the site says of shared state in force: the zones, the rates at which reports of
    /// other servers are drained, the limits of cached objects. Until then it may be refused.
    pub fn come_into_force(&self, zones: &Zones) {
        let confs = self.http().map_or(&[][..], |http| &http.limit_zones);
        confs.iter().zip(&self.limit_zones).for_each(|(conf, zone)| zone.set_rate(conf));
        zones.put_in_force(&self.limit_zones);
        if let (Some(kept), Some(http)) = (&self.kept, self.http()) {
            kept.limit(http);
        }
    }
}
