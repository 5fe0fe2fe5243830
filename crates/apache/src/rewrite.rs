//! `RewriteRule` and `RewriteCond` outside of sections, in nginx's words where these say exactly
//! that. Where they do not, what the rule could be about is closed.

use crate::conditions::{condition, operator, variable, words_of};
use crate::expression::quoted_regex;
use crate::out::ConfText;
use crate::quiet::{self, QuietCheck};
use crate::server::Server;
use crate::tree::ApacheNode;
use crate::words::quoted;

/// A rule with its conditions.
struct RuleParts<'a> {
    conditions: Vec<&'a ApacheNode>,
    rule: &'a ApacheNode,
}

/// What rules are translated for.
struct RuleSet<'a, 's> {
    server: &'s Server<'a>,
    root: Option<&'s str>,
    /// Whether lines follow that count after a rule has ended the rules.
    goes_on: bool,
}

/// Writes the rules of a server. `root` is that of its files; `goes_on`: whether `Redirect` and its
/// kin follow.
pub(crate) fn write(
    nodes: &[&ApacheNode],
    server: &Server<'_>,
    root: Option<&str>,
    goes_on: bool,
    out: &mut ConfText,
) {
    let set = RuleSet { server, root, goes_on };
    let mut conditions = Vec::new();
    let mut number = 0;
    let mut rules = ConfText::default();
    for node in nodes {
        match &node.lower[..] {
            "rewritecond" => conditions.push(*node),
            "rewriterule" => {
                number += 1;
                let all = RuleParts { conditions: std::mem::take(&mut conditions), rule: node };
                if let Err(why) = set.rule(&all, number, &mut rules) {
                    refuse(&all, &why, &mut rules);
                }
            }
            _ => rules.note(&node.place, format!("{} {}: not translated", node.name, node.rest)),
        }
    }
    if goes_on && number > 0 {
        out.own(format!("set {END} \"\";"));
    }
    out.append(rules);
}

/// The variable that is set when a rule has ended the rules, but not what follows them.
const END: &str = "$rules_end";

/// Closes what a rule could be about.
fn refuse(all: &RuleParts<'_>, why: &str, out: &mut ConfText) {
    for node in all.conditions.iter().chain([&all.rule]) {
        out.comment_closed(&node.place, format_args!("{} {}: {why}", node.name, node.rest));
    }
    let words = words_of(all.rule);
    let pattern = words.first().cloned().unwrap_or_default();
    let (pattern, is_not) = match pattern.strip_prefix('!') {
        Some(rest) => (rest, true),
        None => (&pattern[..], false),
    };
    let flags = words.get(2).map(|flags| flags.to_ascii_lowercase()).unwrap_or_default();
    let mut flags = flags.trim_start_matches('[').trim_end_matches(']').split(',').map(str::trim);
    let any_case = flags.any(|flag| matches!(flag, "nc" | "nocase"));
    let operator = operator(is_not, any_case);
    match pattern.is_empty() {
        true => out.own("return 503;"),
        false => {
            out.own(format!("if ($uri {operator} {}) {{ return 503; }}", quoted_regex(pattern)));
        }
    }
}

/// What a rule comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleEnd {
    On,
    Last,
    Permanent,
    Temporary,
    Status(u16),
}

/// The flags of a rule: what it comes to, and what becomes of the query.
struct Flags {
    end: RuleEnd,
    any_case: bool,
    appends: bool,
    discards: bool,
    /// `[PT]`: what the rule leads to is the request's address from then on.
    passes: bool,
}

fn flags(text: &str) -> Result<Flags, String> {
    let mut all =
        Flags { end: RuleEnd::On, any_case: false, appends: false, discards: false, passes: false };
    let inner = text.trim_start_matches('[').trim_end_matches(']');
    for flag in inner.split(',').map(str::trim).filter(|flag| !flag.is_empty()) {
        match &flag.to_ascii_lowercase()[..] {
            "nc" | "nocase" => all.any_case = true,
            "qsa" | "qsappend" => all.appends = true,
            "qsd" | "qsdiscard" => all.discards = true,
            "l" | "last" | "end" if all.end == RuleEnd::On => all.end = RuleEnd::Last,
            "pt" | "passthrough" => all.passes = true,
            "l" | "last" | "end" | "ne" | "noescape" | "ns" => {}
            "f" | "forbidden" => all.end = RuleEnd::Status(403),
            "g" | "gone" => all.end = RuleEnd::Status(410),
            "r" | "redirect" | "r=302" | "redirect=302" | "r=temp" => all.end = RuleEnd::Temporary,
            "r=301" | "redirect=301" | "r=permanent" | "redirect=permanent" => {
                all.end = RuleEnd::Permanent;
            }
            other => {
                let status = other.strip_prefix("r=").or_else(|| other.strip_prefix("redirect="));
                match status.and_then(|status| status.parse().ok()) {
                    Some(status @ 303..600) => all.end = RuleEnd::Status(status),
                    _ => return Err(format!("[{flag}]")),
                }
            }
        }
    }
    Ok(all)
}

/// A target in nginx's words.
fn target(text: &str, rule: usize) -> Result<String, String> {
    let mut out = String::new();
    let mut all = text.char_indices();
    while let Some((at, one)) = all.next() {
        let next = text[at + one.len_utf8()..].chars().next();
        match (one, next) {
            ('$', Some(digit @ '0'..='9')) => {
                all.next();
                if digit == '0' {
                    return Err("$0".to_owned());
                }
                out.push('$');
                out.push(digit);
            }
            ('%', Some(digit @ '1'..='9')) => {
                all.next();
                out.push_str(&format!("${{cond{rule}_{digit}}}"));
            }
            ('%', Some('{')) => {
                let inner = &text[at + 2..];
                let end = inner.find('}').ok_or("%{")?;
                let value =
                    variable(&inner[..end]).ok_or_else(|| format!("%{{{}}}", &inner[..end]))?;
                let is_safe =
                    matches!(&value[..], "$host" | "$http_host" | "$server_port" | "$scheme");
                if !is_safe {
                    return Err(format!("%{{{}}}", &inner[..end]));
                }
                out.push_str(&value.replace('$', "${"));
                out.push('}');
                (0..inner[..=end].chars().count() + 1).for_each(|_| {
                    all.next();
                });
            }
            ('$' | '\\', _) => return Err(format!("{one} in the target")),
            _ => out.push(one),
        }
    }
    Ok(out)
}

/// What is done where a rule applies.
struct Acting {
    /// What has to hold; none where `lines` ask it themselves.
    test: Option<String>,
    lines: Vec<String>,
    /// The path within the server that the request gets.
    leads: Option<String>,
}

impl Acting {
    fn one(test: Option<String>, line: String) -> Self {
        Self { test, lines: vec![line], leads: None }
    }
}

/// A condition, and where it stands.
type Asked<'a> = (&'a ApacheNode, (String, bool));

impl RuleSet<'_, '_> {
    fn rule(&self, all: &RuleParts<'_>, number: usize, out: &mut ConfText) -> Result<(), String> {
        let words = words_of(all.rule);
        let ([pattern, to] | [pattern, to, _]) = &words[..] else {
            return Err("not understood".to_owned());
        };
        let mut flags = flags(words.get(2).map_or("", String::as_str))?;
        let (mut pattern, mut to) = (pattern.clone(), to.clone());
        let mut asked = &all.conditions[..];
        if is_everything(&pattern)
            && let Some((last, before)) = asked.split_last()
            && let Some(merged) = merged(last, before, &to)
        {
            (pattern, to, flags.any_case) = merged;
            asked = before;
        }
        let (pattern, to) = (&pattern[..], &to[..]);
        let acting = self.acting(pattern, to, &flags, number)?;
        let mut conditions: Vec<Asked<'_>> = Vec::new();
        if self.goes_on && number > 1 {
            conditions.push((all.rule, (format!("{END} = \"\""), false)));
        }
        for node in asked {
            conditions.push((*node, condition(node, number)?));
        }
        if let Some(to) = &acting.leads {
            self.quiet(all.rule, &mut conditions, (pattern, to), &flags, number, out);
        }
        // What the pattern asks is one condition more where no "rewrite" asks it.
        conditions.extend(acting.test.map(|test| (all.rule, (test, false))));
        apply(&conditions, all.rule, &acting.lines, number, out);
        Ok(())
    }

    /// Asks for what the sections of the request's address say before a rule leads elsewhere.
    fn quiet<'c>(
        &self,
        rule: &'c ApacheNode,
        conditions: &mut Vec<Asked<'c>>,
        (pattern, to): (&str, &str),
        flags: &Flags,
        number: usize,
        out: &mut ConfText,
    ) {
        let regex = if flags.any_case { "" } else { pattern };
        let mut unless = Vec::new();
        for check in quiet::checks(self.server, regex, to, flags.passes) {
            match check {
                QuietCheck::Unless(test) => unless.push((rule, (test, false))),
                QuietCheck::Refuse { node, test, status } => {
                    let mut asked = conditions.clone();
                    asked.extend(test.map(|test| (rule, (test, false))));
                    if !is_everything(pattern) {
                        let operator = operator(false, flags.any_case);
                        let test = format!("$uri {operator} {}", quoted_regex(pattern));
                        asked.push((rule, (test, false)));
                    }
                    if status != 403 {
                        let end = if node.is_section() { ">" } else { "" };
                        let what = format!("{} {}{end} is about one path", node.name, node.rest);
                        out.comment_closed(&rule.place, what);
                    }
                    apply(&asked, rule, &[format!("return {status};")], number, out);
                }
            }
        }
        conditions.extend(unless);
    }

    /// What is done where a rule applies.
    fn acting(
        &self,
        pattern: &str,
        to: &str,
        flags: &Flags,
        number: usize,
    ) -> Result<Acting, String> {
        let case = if flags.any_case { "(?i)" } else { "" };
        let (bare, is_not) = match pattern.strip_prefix('!') {
            Some(rest) => (rest, true),
            None => (pattern, false),
        };
        let regex = quoted_regex(&format!("{case}{bare}"));
        let test = format!("$uri {} {regex}", operator(is_not, false));
        let test = (!is_everything(bare) || is_not).then_some(test);
        if is_not && !matches!(flags.end, RuleEnd::Status(_)) {
            return Err("a pattern with !".to_owned());
        }
        match (flags.end, to) {
            (RuleEnd::Status(status @ 400..), _) => {
                return Ok(Acting::one(test, format!("return {status};")));
            }
            (RuleEnd::Last, "-") if self.goes_on => {
                return Ok(Acting::one(test, format!("set {END} 1;")));
            }
            (RuleEnd::Last, "-") => return Ok(Acting::one(test, "break;".to_owned())),
            (_, "-") => return Err("a rule without a target".to_owned()),
            _ => {}
        }
        let Target { text, is_away, is_whole } = self.leading(to, flags, number)?;
        let end = match flags.end {
            RuleEnd::Permanent => " permanent",
            RuleEnd::Temporary => " redirect",
            RuleEnd::On | RuleEnd::Last if is_away => " redirect",
            RuleEnd::On | RuleEnd::Last if flags.passes && self.goes_on => {
                let lines =
                    vec![format!("set {END} 1;"), format!("rewrite {regex} {};", quoted(&text))];
                return Ok(Acting { test, lines, leads: Some(text) });
            }
            RuleEnd::Last => " last",
            RuleEnd::On if flags.passes => " last",
            RuleEnd::On => "",
            RuleEnd::Status(status) => {
                let is_whole = is_whole && !text.contains("$1") && !text.contains("$2");
                let text = quoted(text.trim_end_matches('?'));
                return match is_whole {
                    true => Ok(Acting::one(test, format!("return {status} {text};"))),
                    false => Err(format!("R={status}")),
                };
            }
        };
        let is_within = matches!(end, " last" | "");
        let line = format!("rewrite {regex} {}{end};", quoted(&text));
        Ok(Acting { test: None, lines: vec![line], leads: is_within.then_some(text) })
    }

    /// Where a rule leads to, in nginx's words.
    fn leading(&self, to: &str, flags: &Flags, number: usize) -> Result<Target, String> {
        let to = to.replace("%{DOCUMENT_ROOT}", "");
        let to = self
            .root
            .and_then(|root| to.strip_prefix(&format!("{root}/")))
            .map_or(to.clone(), |it| format!("/{it}"));
        let is_away = to.contains("://");
        let (to, query) = match to.split_once('?') {
            Some((path, query)) => (path.to_owned(), Some(query.to_owned())),
            None => (to, None),
        };
        // The address as it came, with its query.
        let whole =
            to.strip_suffix("%{REQUEST_URI}").filter(|_| query.is_none() && !flags.discards);
        let text = match whole {
            Some(start) => format!("{}$request_uri?", target(start, number)?),
            None => {
                let path = target(&to, number)?;
                let query = query.map(|query| target(&query, number)).transpose()?;
                match query {
                    Some(query) if query.is_empty() && !flags.appends => format!("{path}?"),
                    Some(query) if flags.appends && !flags.discards => format!("{path}?{query}"),
                    Some(query) => format!("{path}?{query}?"),
                    None if flags.discards => format!("{path}?"),
                    None => path,
                }
            }
        };
        if !is_away && !text.starts_with('/') && whole.is_none() {
            return Err("a target without a slash".to_owned());
        }
        let of_system = ["/var/", "/home/", "/usr/", "/srv/", "/opt/", "/etc/", "/mnt/"];
        if of_system.iter().any(|start| text.starts_with(start)) {
            return Err("a target that may be a file".to_owned());
        }
        Ok(Target { text, is_away, is_whole: whole.is_some() })
    }
}

/// Where a rule leads to.
struct Target {
    text: String,
    /// Whether it is another server's, or named as one.
    is_away: bool,
    /// Whether it ends with the address as it came.
    is_whole: bool,
}

/// The pattern, the target and whether letters count in any case, where a rule for all paths takes
/// the groups of its last condition, about the path: those of a pattern of its own are escaped.
fn merged(last: &ApacheNode, before: &[&ApacheNode], to: &str) -> Option<(String, String, bool)> {
    let words = words_of(last);
    let (pattern, any_case) = match &words[..] {
        [subject, pattern] if subject == "%{REQUEST_URI}" => (pattern, false),
        [subject, pattern, flags] if subject == "%{REQUEST_URI}" => {
            let is_any_case = ["[nc]", "[nocase]"].contains(&&flags.to_ascii_lowercase()[..]);
            (pattern, is_any_case.then_some(true)?)
        }
        _ => return None,
    };
    let joins = |node: &&ApacheNode| words_of(node).get(2).is_some_and(|it| may_join(it));
    let is_regex = !pattern.starts_with(['!', '=', '<', '>', '-']);
    let has_group = to.as_bytes().windows(2).any(|two| two[0] == b'%' && two[1].is_ascii_digit());
    if !is_regex || !has_group || before.last().is_some_and(joins) || to.contains('$') {
        return None;
    }
    let mut out = String::new();
    let mut all = to.chars().peekable();
    while let Some(one) = all.next() {
        let is_group = one == '%' && all.peek().is_some_and(char::is_ascii_digit);
        out.push(if is_group { '$' } else { one });
    }
    Some((pattern.clone(), out, any_case))
}

/// Whether flags of a condition have the next one be another way.
fn may_join(flags: &str) -> bool {
    flags.to_ascii_lowercase().contains("or")
}

/// Writes `lines` for where all of the conditions hold.
fn apply(
    conditions: &[Asked<'_>],
    rule: &ApacheNode,
    lines: &[String],
    number: usize,
    out: &mut ConfText,
) {
    let place = &rule.place;
    match conditions {
        [] => return lines.iter().for_each(|line| out.put(place, line.clone())),
        [(node, (only, _))] => out.open(&node.place, format!("if ({only})")),
        _ => {
            out.own(format!("set $rule{number} \"\";"));
            let mut groups = 0;
            let mut begins = true;
            for (at, (node, (text, or_next))) in conditions.iter().enumerate() {
                if begins {
                    out.own(format!("set $way{number} \"\";"));
                }
                out.put(&node.place, format!("if ({text}) {{ set $way{number} 1; }}"));
                begins = !or_next || at + 1 == conditions.len();
                if begins {
                    groups += 1;
                    out.own(format!("set $rule{number} \"${{rule{number}}}${{way{number}}}\";"));
                }
            }
            out.open(place, format!("if ($rule{number} = {})", "1".repeat(groups)));
        }
    }
    lines.iter().for_each(|line| out.put(place, line.clone()));
    out.close();
}

/// Whether a pattern finds every path.
fn is_everything(pattern: &str) -> bool {
    let all = [
        "^", ".*", "(.*)", "^(.*)$", "^(.*)", "^.*$", "^/", "^/(.*)$", "^/(.*)", ".?", "^/.*$",
        "^/?(.*)", "^/?(.*)$", "/.*", "/(.*)",
    ];
    all.contains(&pattern)
}
