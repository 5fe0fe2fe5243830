//! Warnings about certificates that have expired or soon will. It reads no clock.

use bolide_base::Now;
use bolide_conf::model::SourcePlace;
use bolide_tls::LoadedCertificate;

/// LIMIT: seconds before the expiry from which on there are warnings: 14 days.
const SOON: i64 = 14 * 86_400;
/// Seconds between two warnings: a day.
const DAY: u64 = 86_400;

/// The expiry of one certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CertificateEnd {
    name: String,
    place: SourcePlace,
    /// Seconds since 1970.
    seconds: i64,
    date: String,
}

/// The expiry of a configuration's certificates, each once.
#[derive(Clone, Debug, Default)]
pub(crate) struct CertificateEnds {
    all: Vec<CertificateEnd>,
    /// When warnings were last written, in seconds since 1970.
    logged: u64,
}

impl CertificateEnds {
    /// Adds a certificate; `name` is its file.
    pub(super) fn add(&mut self, name: &str, place: &SourcePlace, certificate: &LoadedCertificate) {
        let Some((seconds, date)) = certificate.end() else { return };
        let (name, place) = (name.to_owned(), place.clone());
        self.all.push(CertificateEnd { name, place, seconds, date });
    }

    /// The files of all certificates with their expiry, in seconds since 1970.
    pub(crate) fn files(&self) -> Vec<(String, i64)> {
        self.all.iter().map(|one| (one.name.clone(), one.seconds)).collect()
    }

    /// The files whose certificate has another expiry in `next`.
    pub(crate) fn renewed(&self, next: &Self) -> Vec<String> {
        let is_other = |one: &&CertificateEnd| {
            self.all.iter().any(|own| own.name == one.name && own.seconds != one.seconds)
        };
        next.all.iter().filter(is_other).map(|one| one.name.clone()).collect()
    }

    /// The current warnings.
    pub(crate) fn warnings(&mut self, now: Now) -> Vec<String> {
        self.logged = now.unix_seconds();
        let seconds = i64::try_from(self.logged).unwrap_or(i64::MAX);
        let near = self.all.iter().filter(|one| one.seconds.saturating_sub(seconds) <= SOON);
        near.map(|one| {
            let CertificateEnd { name, place, date, .. } = one;
            let verb = if one.seconds < seconds { "expired" } else { "expires" };
            format!("certificate \"{name}\" {verb} on {date} in {}:{}", place.file, place.line)
        })
        .collect()
    }

    /// The warnings, if a day has passed since the last ones.
    pub(crate) fn daily(&mut self, now: Now) -> Vec<String> {
        if now.unix_seconds().saturating_sub(self.logged) < DAY {
            return Vec::new();
        }
        self.warnings(now)
    }
}

#[cfg(test)]
mod tests {
    use bolide_base::Now;
    use bolide_conf::model::SourcePlace;

    use super::{CertificateEnd, CertificateEnds, DAY};

    const END: u64 = 2_000_000_000;

    fn ends() -> CertificateEnds {
        let place = SourcePlace { file: "conf".into(), line: 3 };
        let (name, date) = ("a.crt".to_owned(), "May 18 03:33:20 2033 GMT".to_owned());
        let end = CertificateEnd { name, place, seconds: END.cast_signed(), date };
        CertificateEnds { all: vec![end], logged: 0 }
    }

    fn at(seconds: u64) -> Now {
        Now { unix_millis: seconds * 1000, ..bolide_io::process::now() }
    }

    #[test]
    fn a_certificate_is_warned_of_in_its_last_days_and_from_then_on() {
        let said = |at_seconds| ends().warnings(at(at_seconds)).join("|");
        assert_eq!(said(END - 14 * DAY - 1), "");
        let soon = "certificate \"a.crt\" expires on May 18 03:33:20 2033 GMT in conf:3";
        assert_eq!(said(END - 14 * DAY), soon);
        assert_eq!(said(END), soon);
        assert_eq!(said(END + 1), soon.replace("expires", "expired"));
    }

    #[test]
    fn the_warning_comes_once_a_day() {
        let mut ends = ends();
        assert_eq!(ends.warnings(at(END)).len(), 1);
        assert_eq!(ends.daily(at(END + DAY - 1)).len(), 0);
        assert_eq!(ends.daily(at(END + DAY)).len(), 1);
        assert_eq!(ends.daily(at(END + DAY + 1)).len(), 0);
        assert_eq!(ends.daily(at(END + 2 * DAY)).len(), 1);
    }
}
