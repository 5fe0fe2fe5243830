//! The offer to clients and upstreams: versions, ciphers and groups in OpenSSL's words. Words that
//! OpenSSL does not know either are refused as nginx refuses them; the others get a warning.

use bolide_conf::model::{OPENSSL_COMMANDS, OriginTlsConf, Protocols, TlsConf};
use bolide_tls::{AcceptorOptions, CipherStringError, Versions, names, offers};

/// Words of the commands `MinProtocol` and `MaxProtocol`, the oldest version first.
const PROTOCOLS: &[&str] = &["None", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];
/// Words of the command `Options`.
const OPTIONS: &[&str] = &[
    "AllowNoDHEKEX",
    "AntiReplay",
    "Bugs",
    "CANames",
    "ClientRenegotiation",
    "Compression",
    "DHSingle",
    "ECDHSingle",
    "EmptyFragments",
    "EncryptThenMac",
    "ExtendedMasterSecret",
    "KTLS",
    "KTLSTxZerocopySendfile",
    "MiddleboxCompat",
    "NoRenegotiation",
    "NoResumptionOnRenegotiation",
    "PreferNoDHEKEX",
    "PrioritizeChaCha",
    "RxCertificateCompression",
    "ServerPreference",
    "SessionTicket",
    "StrictCertCheck",
    "TxCertificateCompression",
    "UnsafeLegacyRenegotiation",
    "UnsafeLegacyServerConnect",
];

/// The directives of an offer.
#[derive(Clone, Copy)]
pub(super) struct WrittenOffer<'a> {
    /// The prefix of its directives.
    prefix: &'static str,
    protocols: Protocols,
    ciphers: &'a str,
    curves: &'a str,
    commands: &'a [(String, String)],
}

impl<'a> From<&'a TlsConf> for WrittenOffer<'a> {
    fn from(conf: &'a TlsConf) -> Self {
        Self {
            prefix: "ssl",
            protocols: conf.protocols,
            ciphers: &conf.ciphers,
            curves: &conf.ecdh_curve,
            commands: &conf.conf_commands,
        }
    }
}

impl<'a> From<&'a OriginTlsConf> for WrittenOffer<'a> {
    fn from(conf: &'a OriginTlsConf) -> Self {
        Self {
            prefix: "proxy_ssl",
            protocols: conf.protocols,
            ciphers: &conf.ciphers,
            curves: "auto",
            commands: &conf.conf_commands,
        }
    }
}

/// Fills in the offer.
///
/// # Errors
///
/// In nginx's words: OpenSSL would refuse a word, or no suite is left.
pub(super) fn offer<'a>(
    conf: impl Into<WrittenOffer<'a>>,
    options: &mut AcceptorOptions,
    warnings: &mut Vec<String>,
) -> Result<(), String> {
    let conf = conf.into();
    options.versions = Versions { tls12: conf.protocols.tls12, tls13: conf.protocols.tls13 };
    if conf.protocols.obsolete {
        let prefix = conf.prefix;
        warnings.push(format!(
            "versions before TLSv1.2 in \"{prefix}_protocols\" are not spoken, ignored"
        ));
    }
    let mut offer = Offer { prefix: conf.prefix, options, warnings, level: 0 };
    offer.ciphers(conf.ciphers)?;
    offer
        .curves(conf.curves)
        .map_err(|()| format!("SSL_CTX_set1_curves_list(\"{}\") failed", conf.curves))?;
    conf.commands.iter().try_for_each(|(name, value)| offer.command(name, value))?;
    let level = offer.level;
    options.ciphersuites.retain(|suite| names::meets_level(suite, level));
    Ok(())
}

struct Offer<'a> {
    prefix: &'static str,
    options: &'a mut AcceptorOptions,
    warnings: &'a mut Vec<String>,
    /// The level of security that ciphers have to meet.
    level: u8,
}

impl Offer<'_> {
    fn unsupported(&mut self, directive: &str, names: impl IntoIterator<Item = String>) {
        for name in names {
            let prefix = self.prefix;
            let text = format!("\"{name}\" in \"{prefix}_{directive}\" is not supported, ignored");
            self.warnings.push(text);
        }
    }

    fn ciphers(&mut self, spec: &str) -> Result<(), String> {
        let selected = names::ciphers(spec).map_err(|error| {
            let why = match error {
                CipherStringError::InvalidCommand => "0A000118:SSL routines::invalid command",
                CipherStringError::NoMatch => "0A0000B9:SSL routines::no cipher match",
            };
            format!("SSL_CTX_set_cipher_list(\"{spec}\") failed (SSL: error:{why})")
        })?;
        let prefix = self.prefix;
        if selected.suites.is_empty() && self.options.versions.tls12 {
            self.warnings.push(format!(
                "no cipher of \"{prefix}_ciphers\" is supported, TLSv1.2 is not spoken"
            ));
        }
        self.options.ciphers = selected.suites;
        if let Some(level) = selected.level {
            self.level(level);
        }
        self.unsupported("ciphers", selected.unsupported);
        Ok(())
    }

    fn level(&mut self, level: u8) {
        self.options.ciphers.retain(|suite| names::meets_level(suite, level));
        self.level = level;
        // Below, nothing is spoken that they would keep out.
        if level > 2 {
            let prefix = self.prefix;
            self.warnings.push(format!(
                "\"@SECLEVEL={level}\" in \"{prefix}_ciphers\" is asked of ciphers, not of keys"
            ));
        }
    }

    fn curves(&mut self, spec: &str) -> Result<(), ()> {
        let (curves, unknown) = names::curves(spec);
        let optional = |name: &str| spec.split([':', '/']).any(|word| word == format!("?{name}"));
        if unknown.iter().any(|name| !offers::is_curve(name) && !optional(name)) {
            return Err(());
        }
        if !curves.is_empty() {
            self.options.curves = curves;
        }
        self.unsupported("ecdh_curve", unknown);
        Ok(())
    }

    fn command(&mut self, name: &str, value: &str) -> Result<(), String> {
        let failed =
            |why: &str| format!("SSL_CONF_cmd(\"{name}\", \"{value}\") failed (SSL: error:{why})");
        let bad_value = format!("0A000180:SSL routines::bad value:cmd={name}, value={value}");
        let known = OPENSSL_COMMANDS.iter().find(|known| known.eq_ignore_ascii_case(name));
        let Some(known) = known else {
            return Err(failed(&format!("0A000182:SSL routines::unknown cmd name:cmd={name}")));
        };
        match *known {
            "Ciphersuites" => {
                let (suites, unknown) = names::ciphersuites(value);
                let is_known = |name: &String| offers::is_cipher(name);
                if suites.is_empty() && !unknown.iter().any(is_known) {
                    let no_match =
                        format!("0A0000B9:SSL routines::no cipher match error:{bad_value}");
                    return Err(failed(&no_match));
                }
                if !suites.is_empty() {
                    self.options.ciphersuites = suites;
                }
                self.unsupported("conf_command", unknown);
            }
            "CipherString" => return self.ciphers(value),
            "Curves" | "Groups" => return self.curves(value).map_err(|()| failed(&bad_value)),
            "Options" => {
                let words = value.split(',').map(|word| word.trim_start_matches(['-', '+']));
                for word in words {
                    if !OPTIONS.iter().any(|known| known.eq_ignore_ascii_case(word)) {
                        return Err(failed(&bad_value));
                    }
                    self.unsupported("conf_command", [word.to_owned()]);
                }
            }
            "MinProtocol" | "MaxProtocol" if self.prefix == "proxy_ssl" => {
                let at = PROTOCOLS.iter().position(|known| known.eq_ignore_ascii_case(value));
                let at = at.ok_or_else(|| failed(&bad_value))?;
                let is_min = *known == "MinProtocol";
                let keeps = |name: &str| {
                    let own = PROTOCOLS.iter().position(|known| *known == name).unwrap_or(0);
                    at == 0 || if is_min { own >= at } else { own <= at }
                };
                let versions = &mut self.options.versions;
                versions.tls12 &= keeps("TLSv1.2");
                versions.tls13 &= keeps("TLSv1.3");
            }
            "MinProtocol" => {
                if !PROTOCOLS.iter().any(|known| known.eq_ignore_ascii_case(value)) {
                    return Err(failed(&bad_value));
                }
            }
            _ => self.unsupported("conf_command", [name.to_owned()]),
        }
        Ok(())
    }
}
