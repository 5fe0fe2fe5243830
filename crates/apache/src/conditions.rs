//! `RewriteCond` in the words of nginx's `if`.

use crate::expression::quoted_regex;
use crate::tree::ApacheNode;
use crate::words::in_quotes;

/// How an expression is asked.
pub(crate) const fn operator(is_not: bool, any_case: bool) -> &'static str {
    match (is_not, any_case) {
        (false, false) => "~",
        (false, true) => "~*",
        (true, false) => "!~",
        (true, true) => "!~*",
    }
}

/// The words of a rule: backslashes stay.
pub(crate) fn words_of(node: &ApacheNode) -> Vec<String> {
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
pub(crate) fn variable(name: &str) -> Option<String> {
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
pub(crate) fn condition(node: &ApacheNode, rule: usize) -> Result<(String, bool), String> {
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
            format!("{value} {} {}", if is_not { "!~*" } else { "~*" }, quoted_regex(&regex))
        }
        Some(text) if text.contains(['$', '%']) => return Err(pattern.to_owned()),
        Some(text) => {
            let operator = if is_not { "!=" } else { "=" };
            format!("{value} {operator} {}", in_quotes(text.trim_matches('"')))
        }
        None => {
            let operator = operator(is_not, any_case);
            format!("{value} {operator} {}", quoted_regex(&named_groups(pattern, rule)))
        }
    };
    Ok((text, or_next))
}
