//! What applies to bodies and to the page cache: filters, sizes, LiteSpeed's directives.

use super::Applied;
use crate::output::OutputFilter;
use crate::world::Evaluation;

impl Applied<'_> {
    /// Says what directives say to the page cache; once a round.
    pub fn order_cache(&self, by: &mut Evaluation<'_>) {
        if self.all().any(|settings| !settings.cache.is_empty()) {
            let all = self.all().flat_map(|settings| &settings.cache);
            by.env.cache_mut().obey(all);
        }
    }

    /// Bytes that the body of a request may have, where files say it; 0 is any number.
    #[must_use]
    pub fn body_max(&self) -> u64 {
        self.last(|settings| settings.body_max).unwrap_or(0)
    }

    /// Whether filters are asked for.
    #[must_use]
    pub fn has_output_filters(&self) -> bool {
        self.all()
            .any(|settings| settings.output.set.is_some() || !settings.output.by_type.is_empty())
    }

    /// The filters that are asked for, where an answer has this type.
    pub fn output_filters(&self, media_type: &[u8]) -> impl Iterator<Item = OutputFilter> {
        let essence = media_type.split(|byte| *byte == b';').next().unwrap_or_default();
        let essence = essence.trim_ascii().to_ascii_lowercase();
        let set = self.last(|settings| settings.output.set.as_deref()).unwrap_or_default();
        let by_type = self.all().flat_map(|settings| &settings.output.by_type);
        let by_type = by_type.filter(move |(name, _)| **name == *essence);
        set.iter().copied().chain(by_type.map(|(_, filter)| *filter))
    }
}
