//! The compiled rules of `proxy_redirect` and `proxy_cookie_*`.

use std::sync::Arc;

use bolide_conf::model::{
    CookieFlags, CookieName, Http, ProxySettings, ProxyUrl, Redirect, Replacement,
};
use bolide_conf::vars::Template;

use bolide_patterns::CapturePattern;

/// A rule and its replacement.
#[derive(Debug)]
pub(super) enum Rule {
    /// `default`: the URL of `proxy_pass` becomes the prefix of the location.
    Default(Arc<ProxyUrl>),
    Text(Template, Template),
    Pattern(CapturePattern, Template),
}

/// The cookies whose flags change.
#[derive(Debug)]
pub(super) enum CookieSelector {
    Text(Template),
    Pattern(CapturePattern),
}

/// The rules of a location.
#[derive(Debug, Default)]
pub(crate) struct Rewriter {
    pub(super) redirects: Vec<Rule>,
    pub(super) domains: Vec<Rule>,
    pub(super) paths: Vec<Rule>,
    pub(super) flags: Vec<(CookieSelector, Vec<Template>)>,
}

impl Rewriter {
    /// The rules of `settings` for the upstream at `url`.
    pub(crate) fn new(settings: &ProxySettings, url: Option<&Arc<ProxyUrl>>, http: &Http) -> Self {
        let replacement = |rule: &Replacement| match rule {
            Replacement::Text { from, to } => Rule::Text(from.clone(), to.clone()),
            Replacement::Pattern { regex, to } => {
                Rule::Pattern(CapturePattern::new(regex, &http.named), to.clone())
            }
        };
        let redirect = |rule: &Redirect| match rule {
            Redirect::Default(inherited) => {
                inherited.as_ref().or(url).map(|url| Rule::Default(Arc::clone(url)))
            }
            Redirect::Rule(rule) => Some(replacement(rule)),
        };
        let flags = |rule: &CookieFlags| {
            let selector = match &rule.name {
                CookieName::Text(name) => CookieSelector::Text(name.clone()),
                CookieName::Pattern(regex) => {
                    CookieSelector::Pattern(CapturePattern::new(regex, &http.named))
                }
            };
            (selector, rule.flags.clone())
        };
        Self {
            redirects: settings.redirects.iter().filter_map(redirect).collect(),
            domains: settings.cookie_domains.iter().map(replacement).collect(),
            paths: settings.cookie_paths.iter().map(replacement).collect(),
            flags: settings.cookie_flags.iter().map(flags).collect(),
        }
    }
}
