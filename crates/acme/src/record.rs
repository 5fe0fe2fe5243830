//! The stored state of orders and accounts, and its text format: a line with the version, then a
//! word and its values on each line.

use std::fmt::Write as _;

use bolide_tls::Revocation;

use crate::schedule::FailureLog;

/// The first line of each file.
const VERSION: &str = "bolide-acme 1";
/// LIMIT: bytes of a file.
pub const RECORD_MAX: usize = 64 << 10;
/// LIMIT: parsed failures; an hour has fewer.
const FAILURES_MAX: usize = 1000;
/// LIMIT: bytes of a stored message.
const MESSAGE_MAX: usize = 1000;

/// The window in which an issuer wants a certificate replaced, in seconds since 1970 (RFC 9773,
/// section 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenewalWindow {
    /// Its first second.
    pub start: u64,
    /// Its last second.
    pub end: u64,
    /// The last second of the certificate that it is for.
    pub until: u64,
}

/// A certificate that its issuer revoked. Times are seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevokedCertificate {
    /// Its serial number in hexadecimal.
    pub serial: String,
    /// How many of the order's were revoked in succession, with it.
    pub times: u32,
    /// When that was noticed.
    pub noticed: u64,
    /// What the issuer says.
    pub revocation: Revocation,
}

impl RevokedCertificate {
    fn text(&self) -> String {
        let Self { serial, times, noticed, revocation } = self;
        let number = |number: Option<u64>| number.map_or("-".to_owned(), |it| it.to_string());
        let (at, reason) = (number(revocation.at), number(revocation.reason.map(u64::from)));
        format!("{serial} {times} {noticed} {at} {reason}")
    }

    fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split(' ').collect();
        let [serial, times, noticed, at, reason] = parts[..] else { return None };
        let revocation = Revocation {
            at: (at != "-").then(|| at.parse()).transpose().ok()?,
            reason: (reason != "-").then(|| reason.parse()).transpose().ok()?,
        };
        let is_serial = !serial.is_empty() && serial.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (times, noticed) = (times.parse().ok()?, noticed.parse().ok()?);
        is_serial.then(|| Self { serial: serial.to_owned(), times, noticed, revocation })
    }
}

/// The stored state of an order. Times are seconds since 1970.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OrderRecord {
    /// Failures of the last hour.
    pub failures: FailureLog,
    /// Failures since the last success.
    pub consecutive: u32,
    /// The next issuer; `None`: the first.
    pub issuer: Option<String>,
    /// Failures at it in this round.
    pub tries: u32,
    /// No attempt before.
    pub not_before: u64,
    /// When the running attempt began, and its issuer.
    pub started: Option<(u64, String)>,
    /// How many times processes continued it.
    pub resumes: u32,
    /// The issuer of the certificate.
    pub issued_by: Option<String>,
    /// The window that this issuer suggests.
    pub window: Option<RenewalWindow>,
    /// When to ask for it again.
    pub window_again: u64,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
    /// The last certificate that was revoked.
    pub revoked: Option<RevokedCertificate>,
}

/// The stored state of an account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountRecord {
    /// Failed orders of the last hour.
    pub failures: FailureLog,
    /// How many times in succession the issuer did not respond.
    pub silences: u32,
    /// No request to the issuer before, in seconds since 1970.
    pub not_before: u64,
}

impl OrderRecord {
    /// The content of its file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!("{VERSION}\n");
        lines(&mut out, "failure", self.failures.times());
        line(&mut out, "consecutive", self.consecutive);
        line(&mut out, "tries", self.tries);
        line(&mut out, "not-before", self.not_before);
        line(&mut out, "window-again", self.window_again);
        if let Some(issuer) = &self.issuer {
            line(&mut out, "issuer", flat(issuer));
        }
        if let Some((when, issuer)) = &self.started {
            line(&mut out, "started", format_args!("{when} {}", flat(issuer)));
        }
        if self.resumes > 0 {
            line(&mut out, "resumes", self.resumes);
        }
        if let Some(issuer) = &self.issued_by {
            line(&mut out, "issued-by", flat(issuer));
        }
        if let Some(window) = self.window {
            let RenewalWindow { start, end, until } = window;
            line(&mut out, "window", format_args!("{start} {end} {until}"));
        }
        if let Some(error) = &self.last_error {
            line(&mut out, "error", flat(error));
        }
        if let Some(revoked) = &self.revoked {
            line(&mut out, "revoked", revoked.text());
        }
        out
    }

    /// Parses a file; `None` if it is damaged.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (mut record, mut failures) = (Self::default(), Vec::new());
        for (word, value) in words(text)? {
            let (word, value) = (word, value?);
            match word {
                "failure" => failures.push(value.parse().ok()?),
                "consecutive" => record.consecutive = value.parse().ok()?,
                "tries" => record.tries = value.parse().ok()?,
                "not-before" => record.not_before = value.parse().ok()?,
                "window-again" => record.window_again = value.parse().ok()?,
                "resumes" => record.resumes = value.parse().ok()?,
                "issuer" => record.issuer = Some(value.to_owned()),
                "issued-by" => record.issued_by = Some(value.to_owned()),
                "started" => {
                    let (when, issuer) = value.split_once(' ')?;
                    record.started = Some((when.parse().ok()?, issuer.to_owned()));
                }
                "window" => {
                    let (start, rest) = value.split_once(' ')?;
                    let (end, until) = rest.split_once(' ')?;
                    record.window = Some(RenewalWindow {
                        start: start.parse().ok()?,
                        end: end.parse().ok()?,
                        until: until.parse().ok()?,
                    });
                }
                "error" => record.last_error = Some(value.to_owned()),
                "revoked" => record.revoked = Some(RevokedCertificate::parse(value)?),
                _ => return None,
            }
        }
        record.failures = log(failures)?;
        Some(record)
    }
}

impl AccountRecord {
    /// The content of its file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!("{VERSION}\n");
        lines(&mut out, "failure", self.failures.times());
        line(&mut out, "silences", self.silences);
        line(&mut out, "not-before", self.not_before);
        out
    }

    /// Parses a file; `None` if it is damaged.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (mut record, mut failures) = (Self::default(), Vec::new());
        for (word, value) in words(text)? {
            let value = value?;
            match word {
                "failure" => failures.push(value.parse().ok()?),
                "silences" => record.silences = value.parse().ok()?,
                "not-before" => record.not_before = value.parse().ok()?,
                _ => return None,
            }
        }
        record.failures = log(failures)?;
        Some(record)
    }
}

fn log(times: Vec<u64>) -> Option<FailureLog> {
    (times.len() <= FAILURES_MAX).then(|| FailureLog::kept(times.into_iter()))
}

/// Words and values of the lines after the version; a line may have no value.
fn words(text: &str) -> Option<impl Iterator<Item = (&str, Option<&str>)>> {
    // A truncated file does not end with a line feed.
    let rest = text.strip_prefix(VERSION)?.strip_prefix('\n')?;
    let is_whole = rest.is_empty() || rest.ends_with('\n');
    is_whole.then(|| {
        rest.lines().map(|line| match line.split_once(' ') {
            Some((word, value)) => (word, Some(value)),
            None => (line, None),
        })
    })
}

fn line(out: &mut String, word: &str, value: impl std::fmt::Display) {
    // Writing to a string does not fail.
    let _ = writeln!(out, "{word} {value}");
}

fn lines(out: &mut String, word: &str, values: impl Iterator<Item = u64>) {
    values.for_each(|value| line(out, word, value));
}

/// A text as one line of limited length.
fn flat(text: &str) -> String {
    let mut end = text.len().min(MESSAGE_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_record_survives_its_text(
            times in proptest::collection::vec(any::<u64>(), 0..9),
            numbers: (u32, u32, u64, u64, u32),
            issuer in proptest::option::of("[a-z ]{1,9}"),
            started in proptest::option::of((any::<u64>(), "[a-z]{1,9}")),
            window in proptest::option::of(any::<(u64, u64, u64)>()),
            error in proptest::option::of("\\PC{1,300}"),
            revoked in proptest::option::of((
                "[0-9a-f]{1,40}", any::<(u32, u64, Option<u64>, Option<u8>)>(),
            )),
        ) {
            let revoked = revoked.map(|(serial, (times, noticed, at, reason))| {
                let revocation = Revocation { at, reason };
                RevokedCertificate { serial, times, noticed, revocation }
            });
            let record = OrderRecord {
                failures: FailureLog::kept(times.into_iter()),
                consecutive: numbers.0,
                tries: numbers.1,
                not_before: numbers.2,
                window_again: numbers.3,
                resumes: numbers.4,
                issued_by: issuer.clone(),
                issuer,
                started,
                window: window.map(|(start, end, until)| RenewalWindow { start, end, until }),
                last_error: error.clone(),
                revoked,
            };
            let read = OrderRecord::parse(&record.text()).unwrap();
            prop_assert_eq!(read.text(), record.text());
            if error.is_none_or(|error| error.len() <= MESSAGE_MAX) {
                prop_assert_eq!(read, record);
            }
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(bolide-acme 1\n)?\\PC{0,200}") {
            for text in [text.clone(), text.replace(' ', "\n"), format!("{text}\n")] {
                if let Some(record) = OrderRecord::parse(&text) {
                    prop_assert_eq!(OrderRecord::parse(&record.text()), Some(record));
                }
                let _read = AccountRecord::parse(&text);
            }
        }
    }

    #[test]
    fn a_cut_file_is_damaged() {
        let record =
            OrderRecord { last_error: Some("a\nb".into()), tries: 12, ..OrderRecord::default() };
        let text = record.text();
        assert!(text.ends_with("error a b\n"));
        for end in 0..text.len() {
            let is_line_end = end > 0 && text.as_bytes()[end - 1] == b'\n';
            assert_eq!(OrderRecord::parse(&text[..end]).is_some(), is_line_end, "{end}");
        }
    }
}
