//! `${NAME}`, and Debian's `envvars`: a shell's file of which only plain assignments are read.

use std::collections::BTreeMap;

/// Variables by name.
pub(crate) type Variables = BTreeMap<String, String>;

/// `text` with the variables that are known; others stay as they are, as in Apache.
pub(crate) fn substituted(text: &str, known: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let value = from.find('}').and_then(|end| Some((known(&from[2..end])?, end)));
        match value {
            Some((value, end)) => {
                out.push_str(&value);
                rest = &from[end + 1..];
            }
            None => {
                out.push_str("${");
                rest = &from[2..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// The assignments of a shell's file that need no shell.
pub(crate) fn envvars(text: &str) -> Variables {
    let mut all = Variables::new();
    for line in text.lines() {
        let line = line.trim();
        let Some((name, value)) = line.strip_prefix("export ").and_then(|it| it.split_once('='))
        else {
            continue;
        };
        let value = value.trim().trim_matches(|one| one == '"' || one == '\'');
        all.insert(name.trim().to_owned(), expanded(value, &all));
    }
    all
}

/// `$NAME` and `${NAME}`; what is not known is empty.
fn expanded(value: &str, known: &Variables) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some(start) = rest.find('$') {
        out.push_str(&rest[..start]);
        let from = &rest[start + 1..];
        let is_part = |one: char| one.is_ascii_alphanumeric() || one == '_';
        let (name, after) = match from.strip_prefix('{') {
            Some(inner) => inner.split_once('}').unwrap_or((inner, "")),
            None => from.split_at(from.find(|one| !is_part(one)).unwrap_or(from.len())),
        };
        out.push_str(known.get(name).map_or("", String::as_str));
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::{envvars, substituted};

    #[test]
    fn variables_are_put_in() {
        let known = |name: &str| (name == "A").then(|| "1".to_owned());
        assert_eq!(substituted("x${A}y${B}${", known), "x1y${B}${");
    }

    #[test]
    fn envvars_are_read_without_a_shell() {
        let text = "unset HOME\nif x; then\n SUFFIX=\nfi\nexport D=/var/log/apache2$SUFFIX\n\
                    export E=\"${D}/x\"\nexport LANG\n";
        let all = envvars(text);
        assert_eq!((&*all["D"], &*all["E"]), ("/var/log/apache2", "/var/log/apache2/x"));
        assert_eq!(all.len(), 2);
    }
}
