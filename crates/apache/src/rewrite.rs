//! `RewriteRule` and `RewriteCond` outside of sections, in nginx's words where these say exactly
//! that. Where they do not, what the rule could be about is closed.

use crate::out::ConfText;
use crate::tree::ApacheNode;
use crate::words::{in_quotes, quoted};

/// A rule with its conditions.
struct RuleParts<'a> {
    conditions: Vec<&'a ApacheNode>,
    rule: &'a ApacheNode,
}

/// Writes the rules of a server. `root` is that of its files.
pub(crate) fn write(nodes: &[&ApacheNode], root: Option<&str>, out: &mut ConfText) {
    let mut conditions = Vec::new();
    let mut number = 0;
    for node in nodes {
        match &node.lower[..] {
            "rewritecond" => conditions.push(*node),
            "rewriterule" => {
                number += 1;
                let all = RuleParts { conditions: std::mem::take(&mut conditions), rule: node };
                if let Err(why) = rule(&all, root, number, out) {
                    refuse(&all, &why, out);
                }
            }
            _ => out.note(&node.place, format!("{} {}: not translated", node.name, node.rest)),
        }
    }
}

/// Closes what a rule could be about.
fn refuse(all: &RuleParts<'_>, why: &str, out: &mut ConfText) {
    for node in all.conditions.iter().chain([&all.rule]) {
        out.note_closed(&node.place, format_args!("{} {}: {why}", node.name, node.rest));
    }
    let pattern = words_of(all.rule).into_iter().next().unwrap_or_default();
    let (pattern, operator) = match pattern.strip_prefix('!') {
        Some(rest) => (rest, "!~"),
        None => (&pattern[..], "~"),
    };
    match pattern.is_empty() {
        true => out.own("return 503;"),
        false => out.own(format!("if ($uri {operator} {}) {{ return 503; }}", in_quotes(pattern))),
    }
}

/// The words of a rule: backslashes stay.
fn words_of(node: &ApacheNode) -> Vec<String> {
    let mut all = Vec::new();
    let mut rest = node.rest.trim_start();
    while let Some(first) = rest.chars().next() {
        let quote = matches!(first, '"' | '\'').then_some(first);
        let inner = &rest[usize::from(quote.is_some())..];
        let mut escapes = false;
        let end = inner.find(|one: char| {
            let ends = !escapes && quote.map_or(one.is_ascii_whitespace(), |quote| one == quote);
            escapes = one == '\\' && !escapes;
            ends
        });
        let end = end.unwrap_or(inner.len());
        all.push(inner[..end].to_owned());
        rest = inner.get(end + 1..).unwrap_or_default().trim_start();
    }
    all
}

/// nginx's variable.
fn variable(name: &str) -> Option<String> {
    Some(match name {
        "HTTP_HOST" => "$http_host".to_owned(),
        "SERVER_NAME" => "$host".to_owned(),
        "SERVER_PORT" => "$server_port".to_owned(),
        "REQUEST_URI" => "$uri".to_owned(),
        "QUERY_STRING" => "$args".to_owned(),
        "REQUEST_METHOD" => "$request_method".to_owned(),
        "REMOTE_ADDR" => "$remote_addr".to_owned(),
        "REQUEST_SCHEME" => "$scheme".to_owned(),
        "THE_REQUEST" => "$request".to_owned(),
        "SERVER_PROTOCOL" => "$server_protocol".to_owned(),
        "HTTP_USER_AGENT" | "HTTP_REFERER" | "HTTP_COOKIE" | "HTTP_ACCEPT" => {
            format!("${}", name.to_ascii_lowercase())
        }
        _ => {
            let field = name.strip_prefix("HTTP:")?;
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            field.bytes().all(is_part).then_some(())?;
            format!("$http_{}", field.to_ascii_lowercase().replace('-', "_"))
        }
    })
}

/// Groups of an expression get names, so that a later one does not take their numbers.
fn named_groups(regex: &str, rule: usize) -> String {
    let all: Vec<char> = regex.chars().collect();
    let (mut out, mut number, mut escapes, mut in_set) = (String::new(), 0, false, false);
    for (at, one) in all.iter().enumerate() {
        out.push(*one);
        match one {
            '[' if !escapes => in_set = true,
            ']' if !escapes => in_set = false,
            '(' if !escapes && !in_set && all.get(at + 1) != Some(&'?') => {
                number += 1;
                out.push_str(&format!("?<cond{rule}_{number}>"));
            }
            _ => {}
        }
        escapes = *one == '\\' && !escapes;
    }
    out
}

/// What stands within `if (…)`, and whether the next condition is another way (`OR`).
fn condition(node: &ApacheNode, rule: usize) -> Result<(String, bool), String> {
    let words = words_of(node);
    let ([subject, pattern] | [subject, pattern, _]) = &words[..] else {
        return Err("not understood".to_owned());
    };
    let flags = words.get(2).map_or("", String::as_str);
    let flags = flags.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    let (mut any_case, mut or_next) = (false, false);
    for flag in flags.split(',').map(str::trim).filter(|flag| !flag.is_empty()) {
        match flag {
            "nc" | "nocase" => any_case = true,
            "or" | "ornext" => or_next = true,
            "nv" | "novary" => {}
            _ => return Err(format!("[{flag}]")),
        }
    }
    let (pattern, is_not) = match pattern.strip_prefix('!') {
        Some(rest) => (rest, true),
        None => (&pattern[..], false),
    };
    let name = subject.strip_prefix("%{").and_then(|it| it.strip_suffix('}'));
    if let Some(test @ ("-f" | "-d" | "-e" | "-x")) = Some(pattern) {
        let path = match &subject[..] {
            "%{REQUEST_FILENAME}" | "%{REQUEST_URI}" => "$uri",
            "%{DOCUMENT_ROOT}%{REQUEST_URI}"
            | "%{DOCUMENT_ROOT}%{REQUEST_FILENAME}"
            | "%{DOCUMENT_ROOT}/%{REQUEST_URI}"
            | "%{DOCUMENT_ROOT}/%{REQUEST_FILENAME}" => "$document_root$uri",
            _ => return Err(format!("{subject} {pattern}")),
        };
        let not = if is_not { "!" } else { "" };
        return Ok((format!("{not}{test} {path}"), or_next));
    }
    if name == Some("HTTPS") {
        let bare = pattern.trim_start_matches(['=', '^']).trim_end_matches('$');
        let wants_on = match &bare.to_ascii_lowercase()[..] {
            "on" => !is_not,
            "off" => is_not,
            _ => return Err(format!("%{{HTTPS}} {pattern}")),
        };
        return Ok((if wants_on { "$https" } else { "$https = \"\"" }.to_owned(), or_next));
    }
    let value = name.and_then(variable).ok_or_else(|| subject.clone())?;
    if pattern.starts_with(['<', '>']) || pattern.starts_with('-') && pattern.len() <= 3 {
        return Err(pattern.to_owned());
    }
    let text = match pattern.strip_prefix('=') {
        Some(text) if any_case => {
            let regex = format!("^{}$", crate::words::escaped(text.trim_matches('"')));
            format!("{value} {} {}", if is_not { "!~*" } else { "~*" }, in_quotes(&regex))
        }
        Some(text) if text.contains(['$', '%']) => return Err(pattern.to_owned()),
        Some(text) => {
            let operator = if is_not { "!=" } else { "=" };
            format!("{value} {operator} {}", in_quotes(text.trim_matches('"')))
        }
        None => {
            let operator = match (is_not, any_case) {
                (false, false) => "~",
                (false, true) => "~*",
                (true, false) => "!~",
                (true, true) => "!~*",
            };
            format!("{value} {operator} {}", in_quotes(&named_groups(pattern, rule)))
        }
    };
    Ok((text, or_next))
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
}

fn flags(text: &str) -> Result<Flags, String> {
    let mut all = Flags { end: RuleEnd::On, any_case: false, appends: false, discards: false };
    let inner = text.trim_start_matches('[').trim_end_matches(']');
    for flag in inner.split(',').map(str::trim).filter(|flag| !flag.is_empty()) {
        match &flag.to_ascii_lowercase()[..] {
            "nc" | "nocase" => all.any_case = true,
            "qsa" | "qsappend" => all.appends = true,
            "qsd" | "qsdiscard" => all.discards = true,
            "l" | "last" | "end" if all.end == RuleEnd::On => all.end = RuleEnd::Last,
            "l" | "last" | "end" | "pt" | "passthrough" | "ne" | "noescape" | "ns" => {}
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

fn rule(
    all: &RuleParts<'_>,
    root: Option<&str>,
    number: usize,
    out: &mut ConfText,
) -> Result<(), String> {
    let words = words_of(all.rule);
    let ([pattern, to] | [pattern, to, _]) = &words[..] else {
        return Err("not understood".to_owned());
    };
    let flags = flags(words.get(2).map_or("", String::as_str))?;
    let (test, action) = action(pattern, to, &flags, root, number)?;
    let mut conditions = Vec::new();
    for node in &all.conditions {
        conditions.push((*node, condition(node, number)?));
    }
    // What the pattern asks is one condition more where no "rewrite" asks it.
    conditions.extend(test.map(|test| (all.rule, (test, false))));
    let place = &all.rule.place;
    match &conditions[..] {
        [] => out.put(place, action),
        [(node, (only, _))] => {
            out.open(&node.place, format!("if ({only})"));
            out.put(place, action);
            out.close();
        }
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
            out.put(place, action);
            out.close();
        }
    }
    Ok(())
}

/// What is done where a rule applies.
fn action(
    pattern: &str,
    to: &str,
    flags: &Flags,
    root: Option<&str>,
    number: usize,
) -> Result<(Option<String>, String), String> {
    let case = if flags.any_case { "(?i)" } else { "" };
    let (bare, is_not) = match pattern.strip_prefix('!') {
        Some(rest) => (rest, true),
        None => (pattern, false),
    };
    let regex = in_quotes(&format!("{case}{bare}"));
    let test = format!("$uri {} {regex}", if is_not { "!~" } else { "~" });
    let test = (!is_everything(bare)).then_some(test);
    if is_not && !matches!(flags.end, RuleEnd::Status(_)) {
        return Err("a pattern with !".to_owned());
    }
    match (flags.end, to) {
        (RuleEnd::Status(status @ 400..), _) => return Ok((test, format!("return {status};"))),
        (RuleEnd::Last, "-") => return Ok((test, "break;".to_owned())),
        (_, "-") => return Err("a rule without a target".to_owned()),
        _ => {}
    }
    let to = to.replace("%{DOCUMENT_ROOT}", "");
    let to = root
        .and_then(|root| to.strip_prefix(&format!("{root}/")))
        .map_or(to.clone(), |it| format!("/{it}"));
    let is_away = to.contains("://");
    let (to, query) = match to.split_once('?') {
        Some((path, query)) => (path.to_owned(), Some(query.to_owned())),
        None => (to, None),
    };
    // The address as it came, with its query.
    let whole = to.strip_suffix("%{REQUEST_URI}").filter(|_| query.is_none() && !flags.discards);
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
    let end = match flags.end {
        RuleEnd::Permanent => " permanent",
        RuleEnd::Temporary => " redirect",
        RuleEnd::On | RuleEnd::Last if is_away => " redirect",
        RuleEnd::Last => " last",
        RuleEnd::On => "",
        RuleEnd::Status(status) => {
            let is_whole = whole.is_some() && !text.contains("$1") && !text.contains("$2");
            let text = quoted(text.trim_end_matches('?'));
            return match is_whole {
                true => Ok((test, format!("return {status} {text};"))),
                false => Err(format!("R={status}")),
            };
        }
    };
    Ok((None, format!("rewrite {regex} {}{end};", quoted(&text))))
}

/// Whether a pattern finds every path.
fn is_everything(pattern: &str) -> bool {
    let all = [
        "^", ".*", "(.*)", "^(.*)$", "^(.*)", "^.*$", "^/", "^/(.*)$", "^/(.*)", ".?", "^/.*$",
        "^/?(.*)", "^/?(.*)$", "/.*", "/(.*)",
    ];
    all.contains(&pattern)
}
