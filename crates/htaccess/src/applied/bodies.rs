//! Body filters, body sizes, and LiteSpeed's directives for the page cache.

use super::Applied;
use crate::output::OutputFilter;
use crate::substitute::BodySubstitution;
use crate::world::{Evaluation, Stop};

impl Applied<'_> {
    /// Applies the directives for the page cache; once per round.
    pub fn order_cache(&self, by: &mut Evaluation<'_>) {
        if self.all().any(|settings| !settings.cache.is_empty()) {
            let all = self.all().flat_map(|settings| &settings.cache);
            by.env.cache_mut().obey(all);
        }
    }

    /// The limit of the request body in bytes, if a file sets one; 0 means none.
    #[must_use]
    pub fn body_max(&self) -> u64 {
        self.last(|settings| settings.body_max).unwrap_or(0)
    }

    /// Whether there are output filters.
    #[must_use]
    pub fn has_output_filters(&self) -> bool {
        self.all().any(|settings| settings.output.is_some())
    }

    /// Whether filters may change bodies other than by compression.
    #[must_use]
    pub fn reworks_bodies(&self) -> bool {
        self.all().any(|settings| settings.output.reworks())
    }

    /// Whether there are substitutions.
    #[must_use]
    pub fn substitutes(&self) -> bool {
        self.all().any(|settings| settings.substitute.is_given())
    }

    /// The substitutions in lines of bodies.
    #[must_use]
    pub fn substitution(&self) -> Option<BodySubstitution> {
        BodySubstitution::new(self.all())
    }

    /// The output filters for a response of this type; `named` are those of its name's extensions.
    pub fn output_filters(&self, named: &[OutputFilter], media_type: &[u8]) -> Vec<OutputFilter> {
        let essence = media_type.split(|byte| *byte == b';').next().unwrap_or_default();
        let essence = essence.trim_ascii().to_ascii_lowercase();
        let set = self.last(|settings| settings.output.set.as_deref()).unwrap_or_default();
        let by_type = self.all().flat_map(|settings| &settings.output.by_type);
        let by_type = by_type.filter(move |(name, _)| **name == *essence);
        set.iter().chain(named).copied().chain(by_type.map(|(_, filter)| *filter)).collect()
    }

    /// All filters that may apply to some type.
    pub fn output_filters_of_any(&self, named: &[OutputFilter]) -> Vec<OutputFilter> {
        let by_type = self.all().flat_map(|settings| &settings.output.by_type);
        let filters = self.output_filters(named, b"");
        filters.into_iter().chain(by_type.map(|(_, filter)| *filter)).collect()
    }

    /// The filters of the extensions of a name, each once.
    ///
    /// # Errors
    ///
    /// There are too many to search.
    pub fn filters_of_name(
        &self,
        name: &[u8],
        by: &mut Evaluation<'_>,
    ) -> Result<Vec<OutputFilter>, Stop> {
        let mut found = Vec::new();
        let entries: usize = self.all().map(|settings| settings.output.by_extension.len()).sum();
        if entries == 0 {
            return Ok(found);
        }
        for extension in name.split(|byte| *byte == b'.').skip(1) {
            by.effort.spend_entries(entries);
            by.effort.check()?;
            let of = self.last(|settings| settings.output.of_extension(extension));
            for filter in of.into_iter().flatten() {
                if !found.contains(filter) {
                    found.push(*filter);
                }
            }
        }
        Ok(found)
    }
}
