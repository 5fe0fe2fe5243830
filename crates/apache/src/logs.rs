//! `ErrorLog`, `CustomLog`, `LogFormat` in nginx's words.

use std::collections::BTreeMap;

use crate::out::ConfText;
use crate::tree::ApacheNode;
use crate::words::quoted;

/// nginx's `combined`.
const COMBINED: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status \
                        $body_bytes_sent \"$http_referer\" \"$http_user_agent\"";

/// Names of formats, as Apache has them and as they are here.
pub(crate) type Formats = BTreeMap<String, String>;

/// A format in nginx's words.
///
/// # Errors
///
/// The part that has no counterpart.
fn format(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let modified =
            rest.trim_start_matches(|one: char| one.is_ascii_digit() || "<>!,".contains(one));
        let (argument, after) = match modified.strip_prefix('{') {
            Some(inner) => {
                let (argument, after) = inner.split_once('}').ok_or("%{")?;
                (Some(argument), after)
            }
            None => (None, modified),
        };
        let after = after.trim_start_matches(['<', '>']);
        let code = after.chars().next().ok_or("%")?;
        rest = &after[code.len_utf8()..];
        let value = match (code, argument) {
            ('%', None) => "%".to_owned(),
            ('h' | 'a', _) => "$remote_addr".to_owned(),
            ('l', None) => "-".to_owned(),
            ('u', None) => "$remote_user".to_owned(),
            ('t', None) => "[$time_local]".to_owned(),
            ('r', None) => "$request".to_owned(),
            ('s', None) => "$status".to_owned(),
            ('b' | 'B', None) => "$body_bytes_sent".to_owned(),
            ('O', None) => "$bytes_sent".to_owned(),
            ('I', None) => "$request_length".to_owned(),
            ('D' | 'T', _) => "$request_time".to_owned(),
            ('v' | 'V', None) => "$server_name".to_owned(),
            ('p', _) => "$server_port".to_owned(),
            ('m', None) => "$request_method".to_owned(),
            ('U', None) => "$uri".to_owned(),
            ('q', None) => "$is_args$args".to_owned(),
            ('H', None) => "$server_protocol".to_owned(),
            ('f', None) => "$request_filename".to_owned(),
            ('A', None) => "$server_addr".to_owned(),
            ('P', _) => "$pid".to_owned(),
            ('k', None) => "$connection_requests".to_owned(),
            ('L', None) => "$request_id".to_owned(),
            ('i', Some(name)) => format!("${}", variable("http_", name)?),
            ('o', Some(name)) => format!("${}", variable("sent_http_", name)?),
            ('C', Some(name)) => format!("${}", variable("cookie_", name)?),
            ('x', Some("SSL_PROTOCOL")) => "$ssl_protocol".to_owned(),
            ('x', Some("SSL_CIPHER")) => "$ssl_cipher".to_owned(),
            _ => "-".to_owned(),
        };
        out.push_str(&value);
    }
    out.push_str(rest);
    Ok(out)
}

fn variable(start: &str, name: &str) -> Result<String, String> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    match name.bytes().all(is_part) && !name.is_empty() {
        true => Ok(format!("{start}{}", name.to_ascii_lowercase().replace('-', "_"))),
        false => Err(format!("%{{{name}}}")),
    }
}

/// Writes one format; its name here, or why there is none.
fn define(node: &ApacheNode, text: &str, name: &str, known: &mut Formats, out: &mut ConfText) {
    match format(text) {
        Ok(text) if text.replace("$bytes_sent", "$body_bytes_sent") == COMBINED => {
            out.note(&node.place, format!("LogFormat {name}: combined is there"));
            known.insert(name.to_owned(), "combined".to_owned());
        }
        Ok(text) if text.contains('\'') => {
            out.put(&node.place, format!("log_format apache_{name} {};", quoted(&text)));
            known.insert(name.to_owned(), format!("apache_{name}"));
        }
        Ok(text) => {
            let name_here =
                format!("apache_{}", name.replace(|one: char| !one.is_ascii_alphanumeric(), "_"));
            out.put(&node.place, format!("log_format {name_here} '{text}';"));
            known.insert(name.to_owned(), name_here);
        }
        Err(part) => out.note(&node.place, format!("LogFormat {name}: {part} is not known")),
    }
}

/// Writes all formats, those of `CustomLog` too.
pub(crate) fn formats(nodes: &[&ApacheNode], out: &mut ConfText) -> Formats {
    let mut known = Formats::new();
    known.insert("common".to_owned(), "combined".to_owned());
    for node in nodes {
        let words = node.words();
        match (&node.lower[..], &words[..]) {
            ("logformat", [text, name]) => define(node, text, name, &mut known, out),
            ("customlog", [_, text, ..]) if text.contains('%') => {
                let name = format!("line_{}", node.place.line);
                define(node, text, &name, &mut known, out);
                if let Some(here) = known.get(&name).cloned() {
                    known.insert(text.clone(), here);
                }
            }
            _ => {}
        }
    }
    known
}

/// Writes `access_log`.
pub(crate) fn access_log(node: &ApacheNode, known: &Formats, out: &mut ConfText) {
    let words = node.words();
    let (Some(path), form) = (words.first(), words.get(1)) else { return };
    if path.starts_with('|') {
        out.note(&node.place, format!("{} {}: no program is fed", node.name, node.rest));
        return;
    }
    if let Some(condition) = words.get(2) {
        out.note(&node.place, format!("{condition}: every request is logged"));
    }
    let form = form.and_then(|form| known.get(form)).map_or("combined", String::as_str);
    out.put(&node.place, format!("access_log {} {form};", quoted(path)));
}

/// Writes `error_log`.
pub(crate) fn error_log(node: &ApacheNode, level: Option<&ApacheNode>, out: &mut ConfText) {
    let path = node.first();
    let word = level.map(ApacheNode::keyword).unwrap_or_default();
    let level_word = match &word[..] {
        "emerg" | "alert" | "crit" | "error" | "warn" | "notice" | "info" | "debug" => &word[..],
        word if word.starts_with("trace") => "debug",
        _ => "warn",
    };
    if let Some(level) = level {
        out.note(&level.place, "LogLevel: in error_log");
    }
    if path.starts_with('|') {
        out.note(&node.place, format!("ErrorLog {}: no program is fed", node.rest));
    } else if node.keyword().starts_with("syslog") {
        out.put(&node.place, format!("error_log syslog:server=unix:/dev/log {level_word};"));
    } else {
        out.put(&node.place, format!("error_log {} {level_word};", quoted(&path)));
    }
}

#[cfg(test)]
mod tests {
    use super::format;

    #[test]
    fn formats_are_in_nginx_words() {
        let text = r#"%v:%p %h %l %u %t "%r" %>s %O "%{Referer}i" %{User-Agent}i %D %%"#;
        let wanted = r#"$server_name:$server_port $remote_addr - $remote_user [$time_local] "$request" $status $bytes_sent "$http_referer" $http_user_agent $request_time %"#;
        assert_eq!(format(text).unwrap(), wanted);
        assert!(format("%{a b}i").is_err());
    }
}
