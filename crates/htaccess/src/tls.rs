//! mod_ssl: requirements of directories on the connection, and TLS variables.

use crate::expr::{self, Expr};
use crate::fault::{ParseResult, shown};
use crate::lines::ArgumentWords;
use crate::variable::RequestVariable;
use crate::world::{Evaluation, Stop};

/// LIMIT: lines of `SSLRequire` in one place.
const RULES_MAX: usize = 200;

/// A property of a TLS connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVariable {
    /// `SSL_PROTOCOL`
    Protocol,
    /// `SSL_CIPHER`
    Cipher,
    /// `SSL_CIPHER_USEKEYSIZE` and `SSL_CIPHER_ALGKEYSIZE`
    KeySize,
    /// `SSL_TLS_SNI`
    ServerName,
    /// `SSL_CLIENT_VERIFY`
    ClientVerify,
    /// `SSL_CLIENT_S_DN`, and one part of it.
    Subject(Option<DnPart>),
    /// `SSL_CLIENT_I_DN`, and one part of it.
    Issuer(Option<DnPart>),
    /// `SSL_CLIENT_M_SERIAL`
    Serial,
    /// `SSL_CLIENT_V_START`
    ValidFrom,
    /// `SSL_CLIENT_V_END`
    ValidUntil,
    /// `SSL_CLIENT_V_REMAIN`
    DaysLeft,
    /// `SSL_CLIENT_CERT`
    Certificate,
}

/// A part of a distinguished name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnPart {
    /// `CN`
    CommonName,
    /// `O`
    Organization,
    /// `OU`
    Unit,
    /// `C`
    Country,
    /// `ST`
    State,
    /// `L`
    Locality,
    /// `UID`
    UserId,
    /// `Email`
    Email,
}

const PARTS: [(&str, &str, DnPart); 8] = [
    ("CN", "CN", DnPart::CommonName),
    ("O", "O", DnPart::Organization),
    ("OU", "OU", DnPart::Unit),
    ("C", "C", DnPart::Country),
    ("ST", "ST", DnPart::State),
    ("L", "L", DnPart::Locality),
    ("UID", "UID", DnPart::UserId),
    ("EMAIL", "emailAddress", DnPart::Email),
];

/// Variables that applications get by `StdEnvVars`.
const EXPORTED: [(&str, TlsVariable); 21] = [
    ("SSL_PROTOCOL", TlsVariable::Protocol),
    ("SSL_CIPHER", TlsVariable::Cipher),
    ("SSL_CIPHER_USEKEYSIZE", TlsVariable::KeySize),
    ("SSL_CIPHER_ALGKEYSIZE", TlsVariable::KeySize),
    ("SSL_TLS_SNI", TlsVariable::ServerName),
    ("SSL_CLIENT_VERIFY", TlsVariable::ClientVerify),
    ("SSL_CLIENT_S_DN", TlsVariable::Subject(None)),
    ("SSL_CLIENT_S_DN_CN", TlsVariable::Subject(Some(DnPart::CommonName))),
    ("SSL_CLIENT_S_DN_O", TlsVariable::Subject(Some(DnPart::Organization))),
    ("SSL_CLIENT_S_DN_OU", TlsVariable::Subject(Some(DnPart::Unit))),
    ("SSL_CLIENT_S_DN_C", TlsVariable::Subject(Some(DnPart::Country))),
    ("SSL_CLIENT_S_DN_ST", TlsVariable::Subject(Some(DnPart::State))),
    ("SSL_CLIENT_S_DN_L", TlsVariable::Subject(Some(DnPart::Locality))),
    ("SSL_CLIENT_S_DN_UID", TlsVariable::Subject(Some(DnPart::UserId))),
    ("SSL_CLIENT_S_DN_Email", TlsVariable::Subject(Some(DnPart::Email))),
    ("SSL_CLIENT_I_DN", TlsVariable::Issuer(None)),
    ("SSL_CLIENT_I_DN_CN", TlsVariable::Issuer(Some(DnPart::CommonName))),
    ("SSL_CLIENT_I_DN_O", TlsVariable::Issuer(Some(DnPart::Organization))),
    ("SSL_CLIENT_M_SERIAL", TlsVariable::Serial),
    ("SSL_CLIENT_V_START", TlsVariable::ValidFrom),
    ("SSL_CLIENT_V_END", TlsVariable::ValidUntil),
];

impl TlsVariable {
    /// The variable called `name`, in upper case.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        let part = |text: &str| PARTS.iter().find(|(known, ..)| *known == text).map(|row| row.2);
        Some(match name {
            "SSL_PROTOCOL" => Self::Protocol,
            "SSL_CIPHER" => Self::Cipher,
            "SSL_CIPHER_USEKEYSIZE" | "SSL_CIPHER_ALGKEYSIZE" => Self::KeySize,
            "SSL_TLS_SNI" => Self::ServerName,
            "SSL_CLIENT_VERIFY" => Self::ClientVerify,
            "SSL_CLIENT_S_DN" => Self::Subject(None),
            "SSL_CLIENT_I_DN" => Self::Issuer(None),
            "SSL_CLIENT_M_SERIAL" => Self::Serial,
            "SSL_CLIENT_V_START" => Self::ValidFrom,
            "SSL_CLIENT_V_END" => Self::ValidUntil,
            "SSL_CLIENT_V_REMAIN" => Self::DaysLeft,
            "SSL_CLIENT_CERT" => Self::Certificate,
            _ => {
                match (name.strip_prefix("SSL_CLIENT_S_DN_"), name.strip_prefix("SSL_CLIENT_I_DN_"))
                {
                    (Some(rest), _) => Self::Subject(Some(part(rest)?)),
                    (_, Some(rest)) => Self::Issuer(Some(part(rest)?)),
                    _ => return None,
                }
            }
        })
    }

    /// Those that applications get, with their names.
    pub fn exported() -> impl Iterator<Item = (&'static str, Self)> {
        EXPORTED.into_iter()
    }
}

/// A part of a distinguished name in the form of RFC 2253, which has the last part first.
#[must_use]
pub fn dn_value(name: &[u8], part: DnPart) -> Option<Vec<u8>> {
    let wanted = PARTS.iter().find(|(.., known)| *known == part).map(|(_, name, _)| *name)?;
    let (mut found, mut rest) = (None, name);
    while !rest.is_empty() {
        let equals = rest.iter().position(|byte| *byte == b'=')?;
        let (key, value) = (&rest[..equals], &rest[equals + 1..]);
        let (text, end) = unescaped(value);
        if key.trim_ascii().eq_ignore_ascii_case(wanted.as_bytes()) {
            found = Some(text);
        }
        rest = value.get(end + 1..).unwrap_or_default();
    }
    found
}

/// A value up to its `,` or `+`, and the position of that.
fn unescaped(value: &[u8]) -> (Vec<u8>, usize) {
    let (mut text, mut at) = (Vec::new(), 0);
    while let Some(&byte) = value.get(at) {
        let digit = |at: usize| value.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (byte, digit(at + 1), digit(at + 2)) {
            (b',' | b'+', ..) => break,
            (b'\\', Some(high), Some(low)) => {
                text.push(u8::try_from(high * 16 + low).unwrap_or_default());
                at += 3;
            }
            (b'\\', ..) => {
                text.extend(value.get(at + 1));
                at += 2;
            }
            _ => {
                text.push(byte);
                at += 1;
            }
        }
    }
    (text, at.min(value.len()))
}

/// `SSLOptions`, by bit.
const STRICT: u8 = 1;
const EXPORTS: u8 = 2;

/// The changes of options by a place.
#[derive(Clone, Copy, Debug)]
struct TlsOptionsChange {
    is_absolute: bool,
    adds: u8,
    takes: u8,
}

/// The directives of one place.
#[derive(Clone, Debug, Default)]
pub(crate) struct TlsSettings {
    /// `SSLRequireSSL`
    pub(crate) is_needed: bool,
    /// `SSLRequire`
    rules: Vec<Expr>,
    /// `SSLVerifyClient`: whether a verified certificate is required.
    needs_certificate: Option<bool>,
    options: Option<TlsOptionsChange>,
}

/// The result for a request, by its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsVerdict {
    Good,
    /// Access is denied, unless `Satisfy Any` grants it.
    KeptOut,
    /// The request is refused.
    Refused,
}

impl TlsSettings {
    /// `SSLRequire EXPRESSION`
    pub(crate) fn require(&mut self, arguments: &[u8]) -> ParseResult<()> {
        let mut words = ArgumentWords::new(arguments);
        // In quotes it is one word, as usual.
        let text = match words.rest().first() {
            Some(b'"') => match (words.next_word(), words.rest()) {
                (Some(word), []) => word,
                _ => arguments.to_vec(),
            },
            _ => arguments.to_vec(),
        };
        if self.rules.len() >= RULES_MAX {
            return Err(format!("more than {RULES_MAX} lines of SSLRequire"));
        }
        let rule = expr::tls_condition(&text);
        self.rules.push(rule.map_err(|why| format!("SSLRequire: {why}"))?);
        Ok(())
    }

    /// `SSLOptions …`
    pub(crate) fn options(&mut self, arguments: &[u8]) -> ParseResult<()> {
        let mut all = TlsOptionsChange { is_absolute: false, adds: 0, takes: 0 };
        let mut is_one_there = false;
        for word in ArgumentWords::new(arguments) {
            is_one_there = true;
            let (sign, name) = match &word[..] {
                [sign @ (b'+' | b'-'), name @ ..] => (Some(*sign), name),
                name => (None, name),
            };
            let bit = match (&name.to_ascii_lowercase()[..], sign) {
                (b"strictrequire", _) => STRICT,
                (b"stdenvvars", _) => EXPORTS,
                // It concerns an optimisation that does not exist here.
                (b"optrenegotiate", _) => 0,
                (b"fakebasicauth" | b"exportcertdata" | b"legacydnstringformat", Some(b'-')) => 0,
                _ => {
                    return Err(format!("SSLOptions: '{}' is not available here", shown(name)));
                }
            };
            match sign {
                Some(b'-') => {
                    all.adds &= !bit;
                    all.takes |= bit;
                }
                Some(_) => {
                    all.takes &= !bit;
                    all.adds |= bit;
                }
                None if all.is_absolute => all.adds |= bit,
                None => all = TlsOptionsChange { is_absolute: true, adds: bit, takes: 0 },
            }
        }
        self.options = Some(all);
        if is_one_there { Ok(()) } else { Err("SSLOptions needs an argument".to_owned()) }
    }

    /// `SSLVerifyClient LEVEL`
    pub(crate) fn verify_client(&mut self, arguments: &[u8]) -> ParseResult<()> {
        let mut words = ArgumentWords::new(arguments);
        let level = words.next_word().map(|word| word.to_ascii_lowercase());
        self.needs_certificate = Some(match (level.as_deref(), words.rest()) {
            (Some(b"none" | b"optional" | b"optional_no_ca"), []) => false,
            (Some(b"require"), []) => true,
            (Some(_), []) => return Err("SSLVerifyClient: Invalid argument".to_owned()),
            _ => return Err("SSLVerifyClient takes one argument".to_owned()),
        });
        Ok(())
    }

    /// Whether it restricts access.
    pub(crate) const fn is_given(&self) -> bool {
        self.is_needed || self.needs_certificate.is_some() || !self.rules.is_empty()
    }
}

/// The merged options of `places`, the deepest last.
fn options<'a>(places: impl Iterator<Item = &'a TlsSettings>) -> u8 {
    places.filter_map(|place| place.options).fold(0, |all, change| {
        let kept = if change.is_absolute { 0 } else { all & !change.takes };
        kept | change.adds
    })
}

/// Whether applications get TLS variables.
pub(crate) fn exports<'a>(places: impl Iterator<Item = &'a TlsSettings>) -> bool {
    options(places) & EXPORTS != 0
}

/// Whether the connection uses TLS.
pub(crate) fn is_tls(by: &Evaluation<'_>) -> bool {
    let mut https = Vec::new();
    by.world.variable(RequestVariable::Https, &mut https);
    https == b"on"
}

/// Whether its client has a verified certificate.
pub(crate) fn is_verified(by: &Evaluation<'_>) -> bool {
    let mut verdict = Vec::new();
    by.world.variable(RequestVariable::Tls(TlsVariable::ClientVerify), &mut verdict);
    verdict == b"SUCCESS"
}

/// Evaluates the directives of `places`, the deepest last.
pub(crate) fn judge<'a>(
    places: impl Iterator<Item = &'a TlsSettings> + Clone,
    by: &mut Evaluation<'_>,
) -> Result<TlsVerdict, Stop> {
    if !places.clone().any(TlsSettings::is_given) {
        return Ok(TlsVerdict::Good);
    }
    let is_tls = is_tls(by);
    let needs_certificate = places.clone().filter_map(|place| place.needs_certificate).last();
    // As in Apache, if the requested certificate does not come.
    if is_tls && needs_certificate == Some(true) && !is_verified(by) {
        return Ok(TlsVerdict::Refused);
    }
    let mut holds = is_tls || !places.clone().any(|place| place.is_needed);
    // As in Apache, `SSLRequire` does not concern plain-text connections.
    for rule in places.clone().filter(|_| is_tls).flat_map(|place| &place.rules) {
        holds = holds && rule.holds(by)?;
    }
    Ok(match (holds, options(places) & STRICT != 0) {
        (true, _) => TlsVerdict::Good,
        (false, false) => TlsVerdict::KeptOut,
        (false, true) => TlsVerdict::Refused,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{DnPart, TlsSettings, TlsVariable, dn_value, options};

    #[test]
    fn a_part_of_a_name_is_the_first_one_of_the_certificate() {
        let name = br"emailAddress=a@b.c,CN=A\, B+UID=7,CN=first\2C\\x,OU=x\,O\=y,C=DE";
        let rows = [
            (DnPart::CommonName, Some(&br"first,\x"[..])),
            (DnPart::UserId, Some(b"7")),
            (DnPart::Email, Some(b"a@b.c")),
            (DnPart::Unit, Some(b"x,O=y")),
            (DnPart::Organization, None),
            (DnPart::Country, Some(b"DE")),
        ];
        for (part, wanted) in rows {
            assert_eq!(dn_value(name, part).as_deref(), wanted, "{part:?}");
        }
        assert_eq!(dn_value(b"", DnPart::Country), None);
    }

    #[test]
    fn names_are_those_that_are_known() {
        let part = TlsVariable::Issuer(Some(DnPart::Email));
        assert_eq!(TlsVariable::parse("SSL_CLIENT_I_DN_EMAIL"), Some(part));
        assert_eq!(TlsVariable::parse("SSL_CLIENT_S_DN_XX"), None);
        assert_eq!(TlsVariable::parse("SSL_SERVER_S_DN"), None);
        for (name, variable) in TlsVariable::exported() {
            assert_eq!(TlsVariable::parse(&name.to_ascii_uppercase()), Some(variable), "{name}");
        }
    }

    #[test]
    fn options_with_signs_change_those_above() {
        let place = |text: &str| {
            let mut own = TlsSettings::default();
            own.options(text.as_bytes()).map(|()| own)
        };
        let of = |texts: &[&str]| {
            let all: Vec<_> = texts.iter().map(|text| place(text).unwrap()).collect();
            options(all.iter())
        };
        assert_eq!(of(&["+StrictRequire", "+StdEnvVars"]), 3);
        assert_eq!(of(&["+StrictRequire", "StdEnvVars"]), 2);
        assert_eq!(of(&["StrictRequire StdEnvVars", "-strictrequire"]), 2);
        assert_eq!(of(&["OptRenegotiate"]), 0);
        assert!(place("+FakeBasicAuth").is_err() && place("").is_err());
    }

    proptest! {
        #[test]
        fn any_name_is_read_to_its_end(name in "[CNO=,+\\\\0-9a-f]{0,30}") {
            for part in [DnPart::CommonName, DnPart::Organization] {
                let _ = dn_value(name.as_bytes(), part);
            }
        }

        #[test]
        fn any_requirement_is_read_or_refused(
            text in "(%\\{HTTPS\\}|and|or|not|\\(|\\)| |\"a\"|lt|<|==|in|\\{|\\}|m#x#|=~){0,12}",
        ) {
            let _ = TlsSettings::default().require(text.as_bytes());
        }
    }
}
