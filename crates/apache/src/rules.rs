//! Rules of access as they add up from section to section, and what they come to in nginx's words.

use crate::access::{decides, has_say, is_about_access};
use crate::import::ConfPlace;
use crate::networks::network;
use crate::tree::ApacheNode;
use crate::words::{has_variable, quoted};

/// Why something cannot be said, and where it stands.
pub(crate) type Unsaid = (ConfPlace, String);

/// A line in nginx's language.
pub(crate) type RuleLine = (ConfPlace, String);

/// What the sections so far say about who may come in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules<'a> {
    /// `Require`: that of a later section replaces it.
    requires: Vec<&'a ApacheNode>,
    /// `Order`, `Allow`, `Deny` and `Satisfy`: those of a later section replace all of them.
    hosts: Vec<&'a ApacheNode>,
    is_basic: bool,
    realm: Option<(ConfPlace, String)>,
    file: Option<(ConfPlace, String)>,
}

/// What rules come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Admittance {
    Open,
    /// With the line that denies.
    Denied,
    Lines(Vec<RuleLine>),
}

impl Admittance {
    /// Its lines; those of a denial stand for the place that is given.
    pub(crate) fn lines<'v>(&'v self, place: &'v ConfPlace) -> Vec<(&'v ConfPlace, &'v str)> {
        match self {
            Self::Open => Vec::new(),
            Self::Denied => vec![(place, "deny all;")],
            Self::Lines(lines) => lines.iter().map(|(place, text)| (place, &text[..])).collect(),
        }
    }
}

/// What one of the two kinds of rules comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Open,
    Denied,
    /// By the address.
    Hosts(Vec<RuleLine>),
    /// By a password.
    User,
    /// By one of both.
    HostsOrUser(Vec<RuleLine>),
}

fn text_of(node: &ApacheNode) -> String {
    let end = if node.is_section() { ">" } else { "" };
    format!("{} {}{end}", node.name, node.rest)
}

fn refused<T>(node: &ApacheNode) -> Result<T, Unsaid> {
    Err((node.place.clone(), text_of(node)))
}

impl<'a> Rules<'a> {
    /// Adds what a section says.
    ///
    /// # Errors
    ///
    /// What cannot be said.
    pub(crate) fn merge(&mut self, section: &'a ApacheNode) -> Result<(), Unsaid> {
        let (mut requires, mut hosts) = (Vec::new(), Vec::new());
        for node in &section.children {
            let args = node.words();
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            match (&node.lower[..], &args[..]) {
                ("authtype", [kind]) if kind.eq_ignore_ascii_case("basic") => self.is_basic = true,
                ("authtype", [kind]) if kind.eq_ignore_ascii_case("none") => self.is_basic = false,
                ("authbasicprovider", [kind]) if kind.eq_ignore_ascii_case("file") => {}
                ("authmerging", [kind]) if kind.eq_ignore_ascii_case("off") => {}
                ("authname", [name]) if !has_variable(name) => {
                    self.realm = Some((node.place.clone(), (*name).to_owned()));
                }
                ("authuserfile", [name]) if !has_variable(name) => {
                    self.file = Some((node.place.clone(), (*name).to_owned()));
                }
                ("require" | "<requireall" | "<requireany", _) => requires.push(node),
                ("order" | "allow" | "deny" | "satisfy", _) => hosts.push(node),
                (lower, _) if is_about_access(lower) || decides(node) || has_say(node) => {
                    return refused(node);
                }
                _ => {}
            }
        }
        if !requires.is_empty() {
            self.requires = requires;
        }
        if !hosts.is_empty() {
            self.hosts = hosts;
        }
        Ok(())
    }

    /// What it comes to.
    ///
    /// # Errors
    ///
    /// What nginx's words cannot say.
    pub(crate) fn verdict(&self) -> Result<Admittance, Unsaid> {
        let (hosts, users) = (self.of_hosts()?, self.of_requires()?);
        Ok(match (hosts, users) {
            (Part::Denied, _) | (_, Part::Denied) => Admittance::Denied,
            (Part::Open, Part::Open) => Admittance::Open,
            (Part::Hosts(lines), Part::Open) | (Part::Open, Part::Hosts(lines)) => {
                Admittance::Lines(lines)
            }
            (Part::Open, Part::User) => Admittance::Lines(self.password()?),
            (Part::Hosts(lines), Part::User) => {
                Admittance::Lines([lines, self.password()?].concat())
            }
            (Part::Open, Part::HostsOrUser(lines)) => {
                let mut all = [lines, self.password()?].concat();
                all.push((all[0].0.clone(), "satisfy any;".to_owned()));
                Admittance::Lines(all)
            }
            (_, Part::Hosts(_) | Part::User | Part::HostsOrUser(_) | Part::Open) => {
                let node = self.hosts.first().or(self.requires.first());
                return node.map_or(Ok(Admittance::Denied), |node| refused(node));
            }
        })
    }

    /// `auth_basic`
    fn password(&self) -> Result<Vec<RuleLine>, Unsaid> {
        match (&self.realm, &self.file) {
            (Some((named, realm)), Some((filed, file))) if self.is_basic => Ok(vec![
                (named.clone(), format!("auth_basic {};", quoted(realm))),
                (filed.clone(), format!("auth_basic_user_file {};", quoted(file))),
            ]),
            _ => {
                let place = self.requires.first().map(|node| node.place.clone());
                let why = "AuthType Basic, AuthName or AuthUserFile are missing".to_owned();
                place.map_or(Ok(Vec::new()), |place| Err((place, why)))
            }
        }
    }

    /// `Order`, `Allow` and `Deny`.
    fn of_hosts(&self) -> Result<Part, Unsaid> {
        let (mut is_allow_last, mut allows_all, mut denies_all) = (false, false, false);
        let (mut allows, mut denies) = (Vec::new(), Vec::new());
        for node in &self.hosts {
            let lower = node.rest.to_ascii_lowercase();
            let args: Vec<&str> = lower.split_ascii_whitespace().collect();
            match (&node.lower[..], &args[..]) {
                ("satisfy", ["all"]) => {}
                ("order", ["allow,deny" | "mutual-failure"]) => is_allow_last = true,
                ("order", ["deny,allow"]) => is_allow_last = false,
                ("allow", ["from", "all"]) => allows_all = true,
                ("deny", ["from", "all"]) => denies_all = true,
                ("allow" | "deny", ["from", nets @ ..]) => {
                    let is_allow = node.lower == "allow";
                    let list = if is_allow { &mut allows } else { &mut denies };
                    list.extend(lines_of(node, nets, is_allow)?);
                }
                _ => return refused(node),
            }
        }
        let Some(place) = self.hosts.first().map(|node| node.place.clone()) else {
            return Ok(Part::Open);
        };
        let line = |text: &str| vec![(place.clone(), text.to_owned())];
        Ok(match is_allow_last {
            // "allow,deny": one has to be allowed, and not denied.
            true if denies_all || !allows_all && allows.is_empty() => Part::Denied,
            true if allows_all && denies.is_empty() => Part::Open,
            true if allows_all => Part::Hosts([denies, line("allow all;")].concat()),
            true => Part::Hosts([denies, allows, line("deny all;")].concat()),
            false if allows_all || !denies_all && denies.is_empty() => Part::Open,
            false if denies_all && allows.is_empty() => Part::Denied,
            false if denies_all => Part::Hosts([allows, line("deny all;")].concat()),
            false => Part::Hosts([allows, denies, line("allow all;")].concat()),
        })
    }

    /// `Require` and its sections.
    fn of_requires(&self) -> Result<Part, Unsaid> {
        let mut flat: Vec<&ApacheNode> = Vec::new();
        for node in &self.requires {
            match &node.lower[..] {
                "<requireany" if !node.children.iter().any(ApacheNode::is_section) => {
                    flat.extend(&node.children);
                }
                "<requireall" if self.requires.len() == 1 => return all_of(node),
                "require" => flat.push(node),
                _ => return refused(node),
            }
        }
        let (mut hosts, mut grants, mut asks_user) = (Vec::new(), false, false);
        for node in &flat {
            let args = required(node);
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            match (&node.lower[..], &args[..]) {
                ("require", ["all", "granted"]) => grants = true,
                ("require", ["all", "denied"]) => {}
                ("require", ["valid-user"]) => asks_user = true,
                ("require", ["local"]) => {
                    hosts.extend(lines_of(node, &["127.0.0.0/8", "::1"], true)?);
                }
                ("require", ["ip", nets @ ..]) => hosts.extend(lines_of(node, nets, true)?),
                _ => return refused(node),
            }
        }
        if grants || self.requires.is_empty() {
            return Ok(Part::Open);
        }
        if let Some((place, _)) = hosts.last() {
            hosts.push((place.clone(), "deny all;".to_owned()));
        }
        Ok(match (hosts.is_empty(), asks_user) {
            (true, true) => Part::User,
            (true, false) => Part::Denied,
            (false, true) => Part::HostsOrUser(hosts),
            (false, false) => Part::Hosts(hosts),
        })
    }
}

/// The words of a `Require`. Its `not`, and what follows `all`, count in any case; the names of
/// what is required do not.
pub(crate) fn required(node: &ApacheNode) -> Vec<String> {
    let mut words = node.words();
    let is_not = words.first().is_some_and(|word| word.eq_ignore_ascii_case("not"));
    if is_not {
        "not".clone_into(&mut words[0]);
    }
    if let [all, word, ..] = &mut words[usize::from(is_not)..]
        && all == "all"
    {
        word.make_ascii_lowercase();
    }
    words
}

/// `<RequireAll>` of all clients but those of some networks.
fn all_of(section: &ApacheNode) -> Result<Part, Unsaid> {
    let (mut lines, mut grants) = (Vec::new(), false);
    for node in &section.children {
        let args = required(node);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        match (&node.lower[..], &args[..]) {
            ("require", ["all", "granted"]) => grants = true,
            ("require", ["all", "denied"]) => return Ok(Part::Denied),
            ("require", ["not", "ip", nets @ ..]) => lines.extend(lines_of(node, nets, false)?),
            _ => return refused(node),
        }
    }
    if !grants {
        return refused(section);
    }
    match lines.last().map(|(place, _)| place.clone()) {
        None => Ok(Part::Open),
        Some(place) => {
            lines.push((place, "allow all;".to_owned()));
            Ok(Part::Hosts(lines))
        }
    }
}

/// `allow` or `deny` for each network.
fn lines_of(node: &ApacheNode, nets: &[&str], is_allow: bool) -> Result<Vec<RuleLine>, Unsaid> {
    let word = if is_allow { "allow" } else { "deny" };
    let line = |net: &&str| {
        let net = network(net).ok_or_else(|| (node.place.clone(), text_of(node)))?;
        Ok((node.place.clone(), format!("{word} {net};")))
    };
    match nets.is_empty() {
        true => refused(node),
        false => nets.iter().map(line).collect(),
    }
}
