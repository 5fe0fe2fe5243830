//! The key of a request.

use bolide_cache::NamespaceId;
use bolide_cache::rules;
use bolide_http::cookies::Cookies;

use crate::answer::Answer;
use crate::caching::CacheTransaction;
use crate::caching::Caching;
use crate::caching::identity::{page_key, zone_key};
use crate::ctx::StepCtx;
use crate::request::Request;
use crate::site::Site;
use crate::vars::VariableScope;

impl CacheTransaction {
    /// Writes the key of a request in this part of the store, and its URL.
    pub(in crate::caching) fn build_key(
        &mut self,
        request: &Request,
        answer: &Answer,
        caching: &Caching,
        space: NamespaceId,
        site: &Site,
        ctx: &StepCtx<'_>,
    ) {
        debug_assert_eq!(
            self.space,
            Some(space),
            "a key is made for the part of the store that is asked"
        );
        let mut keys = std::mem::take(&mut self.keys);
        let mut url = std::mem::take(&mut self.url);
        let template = match caching.is_page() {
            true => caching.conf.page.key.as_ref(),
            false => caching.conf.key.as_ref().or(caching.conf.page.key.as_ref()),
        };
        url.write(|out| match template {
            Some(template) => VariableScope::new(request, answer, site, ctx).expand(template, out),
            None => rules::url(out, &self.facts(request, site, ctx), &caching.policy),
        });
        match caching.is_page() {
            true => {
                let facts = self.facts(request, site, ctx);
                let cookies = Cookies::of(facts.fields);
                page_key(&mut keys, (space, &url), &facts, caching, &cookies, None);
            }
            false => zone_key(&mut keys, (space, &url), &self.arrival),
        }
        self.url = url;
        self.keys = keys;
    }
}
