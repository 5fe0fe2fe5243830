//! `$modern_browser`, `$ancient_browser`, `$msie`: what `User-Agent` says.

use bolide_conf::model::{BrowserName, Browsers, browser_version};
use bolide_http::Name;
use memchr::memmem::find;

use super::{VariableScope, VariableValue, text};

/// The least offset of a browser's name, the name, and the distance from its start to the version.
const fn shape(name: BrowserName) -> (usize, &'static [u8], usize) {
    match name {
        BrowserName::Opera => (0, b"Opera", 6),
        BrowserName::Msie => (25, b"MSIE ", 5),
        BrowserName::Gecko => (13, b"rv:", 3),
        BrowserName::Safari => (13, b"Safari/", 7),
        BrowserName::Konqueror => (25, b"Konqueror/", 10),
    }
}

/// The version of a browser with this name.
fn version_of(agent: &[u8], name: BrowserName) -> Option<u64> {
    let (skip, word, ahead) = shape(name);
    let rest = agent.get(skip..)?;
    let version = rest.get(find(rest, word)? + ahead..)?;
    (!version.is_empty()).then(|| browser_version(version).0)
}

fn is_modern(browsers: &Browsers, agent: Option<&[u8]>) -> bool {
    let Some(agent) = agent else { return browsers.unlisted };
    let listed = |name| browsers.modern.iter().find(|(one, _)| *one == name).map(|(_, from)| *from);
    let names = [
        BrowserName::Opera,
        BrowserName::Msie,
        BrowserName::Gecko,
        BrowserName::Safari,
        BrowserName::Konqueror,
    ];
    for name in names {
        let from = match listed(name) {
            Some(from) => from,
            None if name == BrowserName::Opera && !browsers.modern.is_empty() => u64::MAX,
            None => continue,
        };
        if let Some(version) = version_of(agent, name) {
            return version >= from;
        }
    }
    let is_netscape = agent.len() > 13
        && agent.starts_with(b"Mozilla/")
        && matches!(agent.get(8), Some(b'1'..=b'4'));
    browsers.unlisted
        && !(browsers.netscape4 && is_netscape)
        && !browsers.ancient.iter().any(|text| find(agent, text).is_some())
}

fn agent_of<'s>(scope: &'s VariableScope<'_>) -> Option<&'s [u8]> {
    scope.request.head().fields.get(Name::UserAgent)
}

impl VariableScope<'_> {
    /// `$modern_browser`
    pub(super) fn write_modern_browser(&self, out: &mut Vec<u8>) -> VariableValue {
        let browsers = &self.location().settings.browsers;
        let is_it = is_modern(browsers, agent_of(self));
        text(out, if is_it { &browsers.modern_value } else { b"" })
    }

    /// `$ancient_browser`
    pub(super) fn write_ancient_browser(&self, out: &mut Vec<u8>) -> VariableValue {
        let browsers = &self.location().settings.browsers;
        let is_it = !is_modern(browsers, agent_of(self));
        text(out, if is_it { &browsers.ancient_value } else { b"" })
    }

    /// `$msie`
    pub(super) fn write_msie(&self, out: &mut Vec<u8>) -> VariableValue {
        let agent = agent_of(self).unwrap_or_default();
        let is_it = find(agent, b"MSIE ").is_some_and(|at| at + 7 < agent.len())
            && find(agent, b"Opera").is_none();
        text(out, if is_it { b"1" } else { b"" })
    }
}

#[cfg(test)]
mod tests {
    use bolide_conf::model::{BrowserName, Browsers};

    use super::is_modern;

    #[test]
    fn browsers_are_told_apart_as_nginx_does() {
        let own = Browsers::default();
        let modern = vec![(BrowserName::Msie, 7_000_000), (BrowserName::Gecko, 1_080_000)];
        let listed = Browsers { modern, unlisted: true, ancient: vec![(*b"Foo").into()], ..own };
        let rows: [(&str, bool); 9] = [
            ("Mozilla/4.0 (compatible; MSIE 6.0; Windows NT 5.1)", false),
            ("Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 5.1)", true),
            ("MSIE 6.0; in front", true),
            ("Mozilla/5.0 (X11; U; Linux i686; en-US; rv:1.8.1) Gecko/20061010", true),
            ("Mozilla/5.0 (X11; U; Linux i686; en-US; rv:0.9) Gecko/20061010", false),
            ("Opera/9.80 (X11)", false),
            ("Opera/", true),
            ("Foo/1", false),
            ("Bar/1", true),
        ];
        for (agent, wanted) in rows {
            assert_eq!(is_modern(&listed, Some(agent.as_bytes())), wanted, "{agent}");
        }
        assert!(is_modern(&listed, None) && !is_modern(&Browsers::default(), None));
        let netscape = Browsers { unlisted: true, netscape4: true, ..Browsers::default() };
        for (agent, wanted) in [("Mozilla/4.0000", false), ("Mozilla/4.000", true)] {
            assert_eq!(is_modern(&netscape, Some(agent.as_bytes())), wanted, "{agent}");
        }
    }
}
