//! Owns the syntax and the default of a directive for the documentation.
//!
//! Both follow from the way to read the arguments where possible: the default of a row with a place
//! in the settings is the value in `defaults`. Other rows state it themselves.

use std::time::Duration;

use crate::directive::{Args, DirectiveForm, DirectiveSpec, Inheritance, Parse, Unwritten};
use crate::directives;
use crate::model::DirectiveFamily;
use crate::reader::ConfReader;
use crate::source::LoadOptions;

/// The placeholders of [`syntax`], with their meanings.
pub const PLACEHOLDERS: &[(&str, &str)] = &[
    (
        "TIME",
        "Numbers with `w`, `d`, `h`, `m`, `s` or `ms`, largest first (`1h30m`); without a unit, \
         seconds.",
    ),
    ("SECONDS", "As TIME, in whole seconds: no `ms`, but `y` and `M` (30 days)."),
    ("SIZE", "Bytes, or with `k` (1,024) or `m`."),
    ("BYTES", "Bytes, or with `k`, `m` or `g`."),
    ("NUMBER", "A whole number, without a sign; the directive states its bounds."),
    ("CODE", "An HTTP status code."),
    ("TEXT", "Text that may contain variables; text with blanks needs quotes."),
    ("URI", "A path of this server or a `@name`; usually with variables."),
    ("URL", "An absolute URL."),
    (
        "FILE, DIRECTORY",
        "A path, relative to the prefix (`-p`), or, for certificates, keys and passwords, \
         to the directory of the configuration.",
    ),
    ("NAME, ZONE, WORD", "A name of your choice, or one that another directive defines."),
    ("VARIABLE", "A variable, with its `$`."),
    ("REGEX", "A regular expression (PCRE)."),
    ("TYPE", "A media type such as `text/css`; `*` means all."),
    ("ADDRESS, NETWORK", "An IP address, a network (`10.0.0.0/8`)."),
    ("HOST", "A host name or address, with a port where one is needed, or `unix:FILE`."),
    ("CLIENTS", "Addresses, networks, `unix:`, `all`; `off` means none."),
    ("PORT", "A port, from 1 to 65535."),
    ("METHOD", "An HTTP method."),
    ("COOKIE", "A cookie's name; a final `*` matches any suffix."),
    ("CHARSET", "A charset, as in `Content-Type`."),
    ("CIPHERS, GROUP", "Names in OpenSSL's form."),
    ("MASK", "A digit `1` or `0` for each core, the last one first."),
    ("EXTENSION", "A file name extension, without the dot."),
    (
        "CONDITION",
        "A variable; a comparison by `=`, `!=`, `~`, `~*`, `!~`, `!~*`; a test by `-f`, \
         `-d`, `-e`, `-x`, or its negation with `!`.",
    ),
    (
        "PARAMETER, OPTION",
        "Further parameters of nginx are accepted, too; see the example and `bolide check`.",
    ),
    ("LEVEL", "`debug`, `info`, `notice`, `warn`, `error`, `crit`, `alert` or `emerg`."),
    ("…", "The preceding item may be repeated."),
];

/// The arguments of a directive; `None` where the row would have to state them and does not.
#[must_use]
pub fn syntax(row: &DirectiveSpec) -> Option<String> {
    if let Some(written) = row.syntax {
        return Some(written.to_owned());
    }
    let words = match row.parse {
        Parse::Flag(_) | Parse::Accepted(DirectiveForm::Flag) => "on | off".to_owned(),
        Parse::Number(_, 0, u32::MAX) | Parse::Accepted(DirectiveForm::Number) => {
            "NUMBER".to_owned()
        }
        Parse::Number(_, min, u32::MAX) => format!("NUMBER (from {min})"),
        Parse::Number(_, min, max) => format!("NUMBER ({min} to {max})"),
        Parse::Size(_) | Parse::Accepted(DirectiveForm::Size) => "SIZE".to_owned(),
        Parse::Offset(_) | Parse::Accepted(DirectiveForm::Offset) => "BYTES".to_owned(),
        Parse::Millis(_) | Parse::Accepted(DirectiveForm::Millis) => "TIME".to_owned(),
        Parse::Seconds(_) => "SECONDS".to_owned(),
        Parse::Buffers(_) => "NUMBER SIZE".to_owned(),
        Parse::Accepted(DirectiveForm::OneOf(words)) => words.join(" | "),
        _ if row.args == Args::NONE => String::new(),
        _ => return None,
    };
    Some(words)
}

/// The default of a directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Default {
    /// The same as these arguments.
    Words(String),
    /// A description.
    Described(String),
}

/// The default of a directive; `None` where the row would have to state it and does not.
#[must_use]
pub fn default(row: &DirectiveSpec) -> Option<Default> {
    match row.unwritten {
        Unwritten::Words(words) => return Some(Default::Words(words.to_owned())),
        Unwritten::Described(sentence) => return Some(Default::Described(sentence.to_owned())),
        Unwritten::Unsaid => {}
    }
    let owns_its_block = row.is_block() || row.args == Args::NONE;
    let is_nothing = matches!(row.parse, Parse::Accepted(_));
    if is_nothing || (owns_its_block && row.inherit == Inheritance::Own) {
        return Some(Default::Described("none".to_owned()));
    }
    from_settings(row).map(Default::Words)
}

/// The value of a row's place in `defaults`.
fn from_settings(row: &DirectiveSpec) -> Option<String> {
    let mut reader = ConfReader::with_defaults(&LoadOptions::default(), directives::TABLE);
    reader.family = DirectiveFamily::of(row.name);
    directives::begin_blocks(&mut reader);
    let r = &mut reader;
    Some(match row.parse {
        Parse::Flag(slot) => if *slot(r) { "on" } else { "off" }.to_owned(),
        Parse::Number(slot, ..) => slot(r).to_string(),
        Parse::Size(slot) => bytes(*slot(r) as u64),
        Parse::Offset(slot) => bytes(*slot(r)),
        Parse::Millis(slot) | Parse::Seconds(slot) => time(*slot(r)),
        Parse::Buffers(slot) => {
            let (count, size) = *slot(r);
            format!("{count} {}", bytes(size as u64))
        }
        _ => return None,
    })
}

/// Bytes with the largest unit that every reader of sizes accepts.
fn bytes(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        _ if bytes.is_multiple_of(1 << 20) => format!("{}m", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{}k", bytes >> 10),
        _ => bytes.to_string(),
    }
}

fn time(time: Duration) -> String {
    let (seconds, millis) = (time.as_secs(), time.subsec_millis());
    match seconds {
        _ if millis > 0 => format!("{}ms", time.as_millis()),
        0 => "0".to_owned(),
        _ if seconds.is_multiple_of(86_400) => format!("{}d", seconds / 86_400),
        _ if seconds.is_multiple_of(3600) => format!("{}h", seconds / 3600),
        _ if seconds.is_multiple_of(60) && seconds > 60 => format!("{}m", seconds / 60),
        _ => format!("{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{bytes, time};
    use crate::directive::Parse;
    use crate::directives;

    #[test]
    fn what_is_accepted_says_that_it_has_no_effect() {
        let accepted = directives::all().filter(|row| matches!(row.parse, Parse::Accepted(_)));
        let silent: Vec<_> = accepted.filter(|row| !row.has_no_effect()).collect();
        assert!(silent.is_empty(), "{silent:?}");
    }

    #[test]
    fn sizes_and_times_are_written_with_their_largest_unit() {
        assert_eq!([0, 100, 2048, 3 << 20].map(bytes), ["0", "100", "2k", "3m"]);
        let shown = [0, 250, 60_000, 300_000, 7_200_000, 86_400_000];
        let shown = shown.map(|millis| time(Duration::from_millis(millis)));
        assert_eq!(shown, ["0", "250ms", "60s", "5m", "2h", "1d"]);
    }
}
