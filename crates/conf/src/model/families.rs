//! The settings of the families of directives about upstreams, side by side.

use std::sync::Arc;

use super::{CacheSettings, DirectiveFamily, LocationSettings, OriginSettings};

/// The settings of one family.
#[derive(Clone, Debug, PartialEq)]
pub struct FamilySettings {
    /// `PREFIX_*`
    pub origin: Arc<OriginSettings>,
    /// `PREFIX_cache*`
    pub cache: Arc<CacheSettings>,
}

/// The settings of all families but the first, whose are those of the location itself until its
/// protocol is known.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherFamilies(pub(crate) [FamilySettings; DirectiveFamily::ALL.len() - 1]);

impl OtherFamilies {
    /// Those of a family; none of the first.
    #[must_use]
    pub fn get(&self, family: DirectiveFamily) -> Option<&FamilySettings> {
        self.0.get((family as usize).checked_sub(1)?)
    }

    pub(crate) fn get_mut(&mut self, family: DirectiveFamily) -> Option<&mut FamilySettings> {
        self.0.get_mut((family as usize).checked_sub(1)?)
    }
}

impl LocationSettings {
    /// The upstream settings of a family.
    #[must_use]
    pub fn origin_of(&self, family: DirectiveFamily) -> &Arc<OriginSettings> {
        self.families.get(family).map_or(&self.origin, |other| &other.origin)
    }

    /// The cache settings of a family.
    #[must_use]
    pub fn cache_of(&self, family: DirectiveFamily) -> &Arc<CacheSettings> {
        self.families.get(family).map_or(&self.cache, |other| &other.cache)
    }

    /// The upstream settings of a family, copied if shared.
    pub(crate) fn origin_mut(&mut self, family: DirectiveFamily) -> &mut OriginSettings {
        let own = &mut self.origin;
        Arc::make_mut(match family {
            DirectiveFamily::Application => own,
            _ => {
                Arc::make_mut(&mut self.families).get_mut(family).map_or(own, |one| &mut one.origin)
            }
        })
    }

    /// The cache settings of a family, in the same way.
    pub(crate) fn cache_mut(&mut self, family: DirectiveFamily) -> &mut CacheSettings {
        let own = &mut self.cache;
        Arc::make_mut(match family {
            DirectiveFamily::Application => own,
            _ => {
                Arc::make_mut(&mut self.families).get_mut(family).map_or(own, |one| &mut one.cache)
            }
        })
    }
}
