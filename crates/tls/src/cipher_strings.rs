//! OpenSSL's cipher strings (its manual of `ciphers`), read as OpenSSL 3 reads them: over all
//! ciphers that it has. Which of them exist here is for the caller.

mod table;

use table::{
    A_PSK, A_RSA, A_SRP, AES128_CBC, AES128_CCM, AES128_CCM8, AES128_GCM, AES256_CBC, AES256_CCM,
    AES256_CCM8, AES256_GCM, ANON, ARIA128, ARIA256, CAMELLIA128, CAMELLIA256, CHACHA20, CIPHERS,
    CipherTraits, DHE, DHE_PSK, DSS, ECDHE, ECDHE_PSK, ECDSA, K_PSK, K_RSA, K_SRP, MD5, NO_CIPHER,
    RSA_PSK, SHA1, SHA256, SHA384, SSL30, TLS10, TLS12,
};

/// What a string selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CipherList {
    /// Names of ciphers, preferred first.
    pub(crate) names: Vec<&'static str>,
    /// The words that add ciphers, and the names of those that each stands for.
    pub(crate) words: Vec<(String, Vec<&'static str>)>,
    /// The last `@SECLEVEL`.
    pub(crate) level: Option<u8>,
}

/// Why OpenSSL refuses a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CipherStringError {
    /// It selects nothing.
    NoMatch,
    /// A word is neither a selection nor `@STRENGTH` or `@SECLEVEL` with 0 to 5.
    InvalidCommand,
}

const AES128: u16 = AES128_CBC | AES128_GCM | AES128_CCM | AES128_CCM8;
const AES256: u16 = AES256_CBC | AES256_GCM | AES256_CCM | AES256_CCM8;
const CCM8: u16 = AES128_CCM8 | AES256_CCM8;
const CCM: u16 = AES128_CCM | AES256_CCM | CCM8;
const GCM: u16 = AES128_GCM | AES256_GCM;
const CAMELLIA: u16 = CAMELLIA128 | CAMELLIA256;
const ARIA: u16 = ARIA128 | ARIA256;
const PSK: u16 = K_PSK | RSA_PSK | DHE_PSK | ECDHE_PSK;
/// `DEFAULT`, in words.
const DEFAULT: &str = "ALL:!COMPLEMENTOFDEFAULT:!eNULL";
/// Strings that stand alone, and what they stand for.
const SUITE_B: [(&str, &str); 4] = [
    ("SUITEB128ONLY", "ECDHE-ECDSA-AES128-GCM-SHA256"),
    ("SUITEB128C2", "ECDHE-ECDSA-AES256-GCM-SHA384"),
    ("SUITEB128", "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384"),
    ("SUITEB192", "ECDHE-ECDSA-AES256-GCM-SHA384"),
];

/// Whether one word, of those that `+` joins, stands for a cipher.
fn stands_for(word: &str, row: &CipherTraits) -> bool {
    let (exchange, auth) = (|set| row.exchange & set != 0, |set| row.auth & set != 0);
    let (cipher, mac) = (|set| row.cipher & set != 0, |set| row.mac & set != 0);
    match word {
        "ALL" => !cipher(NO_CIPHER),
        "COMPLEMENTOFALL" | "NULL" | "eNULL" => cipher(NO_CIPHER),
        "COMPLEMENTOFDEFAULT" => {
            !cipher(NO_CIPHER) && (auth(DSS | ANON) || cipher(CCM | ARIA | CAMELLIA))
        }
        "kRSA" => exchange(K_RSA),
        "kEDH" | "kDHE" | "DH" => exchange(DHE),
        "kEECDH" | "kECDHE" | "ECDH" => exchange(ECDHE),
        "kPSK" => exchange(K_PSK),
        "kRSAPSK" => exchange(RSA_PSK),
        "kDHEPSK" => exchange(DHE_PSK),
        "kECDHEPSK" => exchange(ECDHE_PSK),
        "PSK" => exchange(PSK),
        "kSRP" | "SRP" => exchange(K_SRP),
        "EDH" | "DHE" => exchange(DHE) && !auth(ANON),
        "EECDH" | "ECDHE" => exchange(ECDHE) && !auth(ANON),
        "ADH" => exchange(DHE) && auth(ANON),
        "AECDH" => exchange(ECDHE) && auth(ANON),
        "RSA" => exchange(K_RSA) && auth(A_RSA),
        "aRSA" => auth(A_RSA),
        "aDSS" | "DSS" => auth(DSS),
        "aNULL" => auth(ANON),
        "aECDSA" | "ECDSA" => auth(ECDSA),
        "aPSK" => auth(A_PSK),
        "aSRP" => auth(A_SRP),
        "AES128" => cipher(AES128),
        "AES256" => cipher(AES256),
        "AES" => cipher(AES128 | AES256),
        "AESGCM" => cipher(GCM),
        "AESCCM" => cipher(CCM),
        "AESCCM8" => cipher(CCM8),
        "CAMELLIA128" => cipher(CAMELLIA128),
        "CAMELLIA256" => cipher(CAMELLIA256),
        "CAMELLIA" => cipher(CAMELLIA),
        "ARIA128" => cipher(ARIA128),
        "ARIA256" => cipher(ARIA256),
        "ARIA" | "ARIAGCM" => cipher(ARIA),
        "CHACHA20" => cipher(CHACHA20),
        "CBC" => cipher(AES128_CBC | AES256_CBC | CAMELLIA),
        "MD5" => mac(MD5),
        "SHA1" | "SHA" => mac(SHA1),
        "SHA256" => mac(SHA256),
        "SHA384" => mac(SHA384),
        "SSLv3" => row.version & SSL30 != 0,
        "TLSv1" | "TLSv1.0" => row.version & TLS10 != 0,
        "TLSv1.2" => row.version & TLS12 != 0,
        "HIGH" => !cipher(NO_CIPHER | CCM8),
        "MEDIUM" => cipher(CCM8),
        "FIPS" => cipher(GCM | AES128_CBC | AES256_CBC) && !exchange(K_SRP),
        _ => word == row.name || is_standard_name(word, row),
    }
}

/// Whether it is the name that IANA has for a cipher.
fn is_standard_name(word: &str, row: &CipherTraits) -> bool {
    let Some((exchange, rest)) = word.strip_prefix("TLS_").and_then(|all| all.split_once("_WITH_"))
    else {
        return false;
    };
    let own_exchange = match (row.exchange, row.auth) {
        (K_RSA, _) => "RSA",
        (DHE, A_RSA) => "DHE_RSA",
        (DHE, DSS) => "DHE_DSS",
        (DHE, _) => "DH_anon",
        (ECDHE, A_RSA) => "ECDHE_RSA",
        (ECDHE, ECDSA) => "ECDHE_ECDSA",
        (ECDHE, _) => "ECDH_anon",
        (K_PSK, _) => "PSK",
        (RSA_PSK, _) => "RSA_PSK",
        (DHE_PSK, _) if row.cipher & CCM8 != 0 => "PSK_DHE",
        (DHE_PSK, _) => "DHE_PSK",
        (ECDHE_PSK, _) => "ECDHE_PSK",
        (_, A_RSA) => "SRP_SHA_RSA",
        (_, DSS) => "SRP_SHA_DSS",
        _ => "SRP_SHA",
    };
    let cipher = match row.cipher {
        AES128_CBC => "AES_128_CBC",
        AES256_CBC => "AES_256_CBC",
        AES128_GCM => "AES_128_GCM_SHA256",
        AES256_GCM => "AES_256_GCM_SHA384",
        AES128_CCM => "AES_128_CCM",
        AES256_CCM => "AES_256_CCM",
        AES128_CCM8 => "AES_128_CCM_8",
        AES256_CCM8 => "AES_256_CCM_8",
        CAMELLIA128 => "CAMELLIA_128_CBC",
        CAMELLIA256 => "CAMELLIA_256_CBC",
        ARIA128 => "ARIA_128_GCM_SHA256",
        ARIA256 => "ARIA_256_GCM_SHA384",
        CHACHA20 => "CHACHA20_POLY1305_SHA256",
        _ => "NULL",
    };
    let mac = match row.mac {
        MD5 => "_MD5",
        SHA1 => "_SHA",
        SHA256 => "_SHA256",
        SHA384 => "_SHA384",
        _ => "",
    };
    exchange == own_exchange && rest.strip_prefix(cipher) == Some(mac)
}

/// OpenSSL's measure of strength.
const fn bits(row: &CipherTraits) -> u16 {
    match row.cipher {
        NO_CIPHER => 0,
        // Their tags are short.
        AES128_CCM8 | AES256_CCM8 => 64,
        AES128_CBC | AES128_GCM | AES128_CCM | CAMELLIA128 | ARIA128 => 128,
        _ => 256,
    }
}

/// What a word does with the ciphers that it stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    Add,
    /// `-`: they may be added again.
    Delete,
    /// `!`: they may not.
    Kill,
    /// `+`: those that are in go to the end.
    MoveToEnd,
}

/// All ciphers that were not killed, each with whether it is in.
struct CipherOrder {
    rows: Vec<(&'static CipherTraits, bool)>,
}

impl CipherOrder {
    fn apply(&mut self, operator: Operator, stands: impl Fn(&CipherTraits) -> bool) {
        let is_meant = |(row, is_in): &(&CipherTraits, bool)| {
            stands(row)
                && match operator {
                    Operator::Add => !is_in,
                    Operator::Delete | Operator::MoveToEnd => *is_in,
                    Operator::Kill => true,
                }
        };
        let (mut meant, mut rest): (Vec<_>, Vec<_>) = self.rows.drain(..).partition(is_meant);
        self.rows = match operator {
            Operator::Kill => rest,
            Operator::Delete => {
                meant.iter_mut().for_each(|(_, is_in)| *is_in = false);
                meant.append(&mut rest);
                meant
            }
            Operator::Add | Operator::MoveToEnd => {
                meant.iter_mut().for_each(|(_, is_in)| *is_in = true);
                rest.append(&mut meant);
                rest
            }
        };
    }

    fn sort_by_strength(&mut self) {
        for strength in [256, 128, 64, 0] {
            self.apply(Operator::MoveToEnd, |row| bits(row) == strength);
        }
    }
}

/// Reads a cipher string.
///
/// # Errors
///
/// Where OpenSSL would refuse it.
pub(crate) fn read(spec: &str) -> Result<CipherList, CipherStringError> {
    let mut order = CipherOrder { rows: CIPHERS.iter().map(|row| (row, false)).collect() };
    let mut list = CipherList { names: Vec::new(), words: Vec::new(), level: None };
    let suite_b = SUITE_B.iter().find(|(word, _)| spec.starts_with(word));
    let spec = suite_b.map_or(spec, |(_, names)| names);
    match spec.strip_prefix("DEFAULT") {
        Some(rest) => {
            read_words(DEFAULT, &mut order, &mut list)?;
            read_words(rest.strip_prefix(':').unwrap_or(rest), &mut order, &mut list)?;
        }
        None => read_words(spec, &mut order, &mut list)?,
    }
    list.names = order.rows.iter().filter(|(_, is_in)| *is_in).map(|(row, _)| row.name).collect();
    if list.names.is_empty() { Err(CipherStringError::NoMatch) } else { Ok(list) }
}

const fn is_separator(byte: u8) -> bool {
    matches!(byte, b':' | b' ' | b';' | b',')
}

const fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'=')
}

/// Splits the word off that a text begins with.
fn split_word(text: &str) -> Result<(&str, &str), CipherStringError> {
    let end = text.bytes().position(|byte| !is_of_word(byte)).unwrap_or(text.len());
    if end == 0 { Err(CipherStringError::InvalidCommand) } else { Ok(text.split_at(end)) }
}

fn read_words(
    spec: &str,
    order: &mut CipherOrder,
    list: &mut CipherList,
) -> Result<(), CipherStringError> {
    let mut rest = spec;
    while let Some(&first) = rest.as_bytes().first() {
        let operator = match first {
            b'-' => Operator::Delete,
            b'!' => Operator::Kill,
            b'+' => Operator::MoveToEnd,
            _ => Operator::Add,
        };
        if is_separator(first) {
            rest = &rest[1..];
        } else if first == b'@' {
            let (word, after) = split_word(&rest[1..])?;
            command(word, order, list)?;
            rest = skip_to_separator(after);
        } else {
            let start = if operator == Operator::Add { rest } else { &rest[1..] };
            rest = select(start, operator, order, list)?;
        }
    }
    Ok(())
}

fn skip_to_separator(text: &str) -> &str {
    &text[text.bytes().position(is_separator).unwrap_or(text.len())..]
}

/// Reads the words that `+` joins, and applies them; returns what stands behind them.
fn select<'a>(
    text: &'a str,
    operator: Operator,
    order: &mut CipherOrder,
    list: &mut CipherList,
) -> Result<&'a str, CipherStringError> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let (part, after) = split_word(rest)?;
        parts.push(part);
        if !CIPHERS.iter().any(|row| stands_for(part, row)) {
            rest = skip_to_separator(after);
            break;
        }
        rest = after;
        match after.strip_prefix('+') {
            Some(more) => rest = more,
            None => break,
        }
    }
    // The classes of strength (HIGH, MEDIUM, LOW, FIPS) are disjoint.
    let classes = || parts.iter().filter(|part| ["HIGH", "MEDIUM", "LOW", "FIPS"].contains(part));
    let is_split = classes().any(|class| classes().any(|other| other != class));
    let stands = |row: &CipherTraits| !is_split && parts.iter().all(|part| stands_for(part, row));
    if operator == Operator::Add {
        let names = CIPHERS.iter().filter(|row| stands(row)).map(|row| row.name).collect();
        list.words.push((text[..text.len() - rest.len()].to_owned(), names));
    }
    order.apply(operator, stands);
    Ok(rest)
}

fn command(
    word: &str,
    order: &mut CipherOrder,
    list: &mut CipherList,
) -> Result<(), CipherStringError> {
    let level = word.strip_prefix("SECLEVEL=").map(str::as_bytes);
    match (word, level) {
        ("STRENGTH", _) => order.sort_by_strength(),
        (_, Some([level @ b'0'..=b'5'])) => list.level = Some(level - b'0'),
        _ => return Err(CipherStringError::InvalidCommand),
    }
    Ok(())
}

#[cfg(test)]
mod tests;
