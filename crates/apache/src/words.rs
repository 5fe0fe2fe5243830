//! Words: those of a directive of Apache's, and how one is written in nginx's language.

use bolide_htaccess::{ArgumentWords, Lines};

use crate::names;

/// The arguments of a directive.
pub(crate) fn words(text: &str) -> Vec<String> {
    ArgumentWords::new(text.as_bytes())
        .map(|word| String::from_utf8_lossy(&word).into_owned())
        .collect()
}

/// `word` as one word of nginx's language; in quotes where it has to be.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || b"/._-:*+,=@%~^|?&![]".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    in_quotes(word)
}

/// `word` in quotes.
pub(crate) fn in_quotes(word: &str) -> String {
    let quote = if word.contains('"') && !word.contains('\'') { '\'' } else { '"' };
    let mut text = String::with_capacity(word.len() + 2);
    text.push(quote);
    let mut all = word.chars().peekable();
    while let Some(one) = all.next() {
        let next = all.peek();
        // A backslash counts only before these.
        let is_read = matches!(next, None | Some('"' | '\'' | '\\' | 't' | 'r' | 'n'));
        if one == quote || one == '\\' && is_read {
            text.push('\\');
        }
        text.push(one);
    }
    text.push(quote);
    text
}

/// An address of Apache's with its scheme in lower case, and that behind a socket's path.
pub(crate) fn with_lower_schemes(url: &str) -> String {
    let lowered = |text: &str| {
        let (scheme, rest) = text.split_at(text.find(':').unwrap_or_default());
        format!("{}{rest}", scheme.to_ascii_lowercase())
    };
    let whole = lowered(url);
    match whole.split_once('|').filter(|_| whole.starts_with("unix:")) {
        Some((path, rest)) => format!("{path}|{}", lowered(rest)),
        None => whole,
    }
}

/// Text for a parameter that knows variables: those of nginx are kept out.
pub(crate) fn has_variable(text: &str) -> bool {
    text.contains('$')
}

/// The literal text as an expression.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for one in text.chars() {
        if r".+*?^$()[]{}|\".contains(one) {
            out.push('\\');
        }
        out.push(one);
    }
    out
}

/// Whether `text` is of Apache's language: the first directive that only one of the two languages
/// could have written is a section in brackets, or has a name of Apache's and ends without nginx's
/// `;` and `{`. A text without one is taken for nginx's, whose errors name what is missing.
#[must_use]
pub fn is_apache(text: &[u8]) -> bool {
    Lines::new(text).find_map(|(_, line)| language(&line)) == Some(Language::Apache)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    Apache,
    Nginx,
}

/// The language of a line, unless it could be of both.
fn language(line: &[u8]) -> Option<Language> {
    /// Names that both languages have, when they are in lower case.
    const SHARED: [&[u8]; 4] = [b"include", b"listen", b"keepalive", b"user"];
    if line.starts_with(b"<") {
        return Some(Language::Apache);
    }
    let name = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
    let line = line.split(|byte| *byte == b'#').next().unwrap_or_default().trim_ascii();
    let is_open = !line.contains(&b';') && !line.ends_with(b"{") && line.len() > name.len();
    if is_open && SHARED.contains(&name) {
        return None;
    }
    let is_name = name.first().is_some_and(u8::is_ascii_uppercase)
        || names::is_of_apache(&String::from_utf8_lossy(name).to_ascii_lowercase());
    Some(if is_open && is_name { Language::Apache } else { Language::Nginx })
}

#[cfg(test)]
mod tests {
    use super::{is_apache, quoted, with_lower_schemes};

    #[test]
    fn schemes_count_in_any_case() {
        let rows = [
            ("HTTP://Host:80/A|B:c", "http://Host:80/A|B:c"),
            ("Unix:/Run/X|FCGI://Host/", "unix:/Run/X|fcgi://Host/"),
            ("!", "!"),
        ];
        for (url, wanted) in rows {
            assert_eq!(with_lower_schemes(url), wanted);
        }
    }

    #[test]
    fn languages_are_told_apart() {
        for apache in [
            "# x\nServerRoot \"/etc/httpd\"\n",
            "<VirtualHost *:80>\n</VirtualHost>\n",
            "DefaultRuntimeDir ${APACHE_RUN_DIR}\n",
            "listen 80\nservername a.test\n",
            "include mods/*.conf\nListen 80\n",
        ] {
            assert!(is_apache(apache.as_bytes()), "{apache}");
        }
        for nginx in [
            "user www-data;\n",
            "events {\n}\n",
            "http\n{\n}\n",
            "",
            "events {}",
            "user\n a;",
            "include none.conf",
            "include { }",
            "include none.conf {}",
            "include a.conf\nevents {}",
        ] {
            assert!(!is_apache(nginx.as_bytes()), "{nginx}");
        }
    }

    #[test]
    fn words_are_quoted_where_they_need_it() {
        assert_eq!(quoted("/srv/www"), "/srv/www");
        assert_eq!(quoted(r#"Header set X "a b""#), r#"'Header set X "a b"'"#);
        assert_eq!(quoted(r"^\.ht"), r#""^\.ht""#);
        assert_eq!(quoted(r"a\n\\"), r#""a\\n\\\\""#);
        assert_eq!(quoted(""), "\"\"");
    }
}
