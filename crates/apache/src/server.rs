//! A server: its own directives, and those of the main server that it inherits.

use crate::import::ConfPlace;
use crate::listens::VhostAddress;
use crate::tree::ApacheNode;
use crate::words::{escaped, quoted};

/// A server.
#[derive(Debug)]
pub(crate) struct Server<'a> {
    pub(crate) place: ConfPlace,
    pub(crate) addresses: Vec<VhostAddress>,
    pub(crate) own: &'a [ApacheNode],
    /// What it inherits; empty for the main server.
    pub(crate) main: &'a [ApacheNode],
}

impl<'a> Server<'a> {
    /// The last directive of this name, its own first.
    pub(crate) fn last(&self, name: &str) -> Option<&'a ApacheNode> {
        let find = |nodes: &'a [ApacheNode]| nodes.iter().rfind(|node| node.lower == name);
        find(self.own).or_else(|| find(self.main))
    }

    /// All directives of these names, its own first.
    pub(crate) fn all(
        &self,
        names: &'static [&'static str],
    ) -> impl Iterator<Item = &'a ApacheNode> {
        let all = self.own.iter().chain(self.main);
        all.filter(move |node| names.contains(&&node.lower[..]))
    }

    /// Whether the last directive of this name says `on`.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        self.last(name).is_some_and(|node| node.keyword() == "on")
    }

    /// Its first name, without a scheme and a port.
    pub(crate) fn name(&self) -> Option<String> {
        let node = self.last("servername")?;
        Some(host_of(&node.first())).filter(|name| !name.is_empty())
    }

    /// Its names as written.
    pub(crate) fn names(&self) -> Vec<(ConfPlace, String)> {
        let mut all = Vec::new();
        if let (Some(name), Some(node)) = (self.name(), self.last("servername")) {
            all.push((node.place.clone(), name));
        }
        for node in self.own.iter().filter(|node| node.lower == "serveralias") {
            all.extend(node.words().into_iter().map(|name| (node.place.clone(), host_of(&name))));
        }
        all
    }

    /// Its files.
    pub(crate) fn root(&self) -> Option<(&'a ApacheNode, String)> {
        let node = self.last("documentroot")?;
        let path = node.first();
        let bare = path.trim_end_matches('/');
        Some((node, if bare.is_empty() { "/".to_owned() } else { bare.to_owned() }))
    }

    /// The account of its scripts.
    pub(crate) fn account(&self) -> Option<(&'a ApacheNode, String, Option<String>)> {
        let names = ["suexecusergroup", "assignuserid", "ruidgid", "suphp_usergroup"];
        let node = self.own.iter().rfind(|node| names.contains(&&node.lower[..]))?;
        let words = node.words();
        let user = words.first()?.trim_start_matches('#').to_owned();
        Some((node, user, words.get(1).map(|group| group.trim_start_matches('#').to_owned())))
    }
}

fn host_of(word: &str) -> String {
    let bare = word.split_once("://").map_or(word, |(_, rest)| rest);
    let bare = match bare.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => bare,
    };
    bare.trim_end_matches('.').to_ascii_lowercase()
}

/// A name in the words of `server_name`.
pub(crate) fn server_name(name: &str) -> String {
    let has_wildcard = |text: &str| text.contains(['*', '?', '[']);
    if !has_wildcard(name) {
        return quoted(name);
    }
    if let Some(rest) = name.strip_prefix("*.")
        && !has_wildcard(rest)
        && rest.contains('.')
    {
        return name.to_owned();
    }
    let mut regex = String::new();
    for one in name.chars() {
        match one {
            '*' => regex.push_str(".*"),
            '?' => regex.push('.'),
            other => regex.push_str(&escaped(&other.to_string())),
        }
    }
    quoted(&format!("~^{regex}$"))
}

#[cfg(test)]
mod tests {
    use super::{host_of, server_name};

    #[test]
    fn names_are_those_of_nginx() {
        assert_eq!(host_of("https://A.example.org:443"), "a.example.org");
        let rows = [
            ("a.example.org", "a.example.org"),
            ("*.example.org", "*.example.org"),
            ("www?.example.org", r#""~^www.\.example\.org$""#),
            ("*", r#""~^.*$""#),
        ];
        for (name, wanted) in rows {
            assert_eq!(server_name(name), wanted);
        }
    }
}
