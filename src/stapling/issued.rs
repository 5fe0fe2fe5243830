//! Stapling for certificates that are ordered: an entry joins when its certificate is installed,
//! and leaves when that is replaced. Nothing here waits.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use bolide_acme::OrderId;
use bolide_conf::model::{LogLevel, TlsConf};
use bolide_tls::{LoadedCertificate, OcspQuestion, StapleKey};

use super::{Entry, Responder, Shared, Stapling, StaplingDraft, trusted};

/// How servers staple the certificates that are ordered for them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct StapleRule {
    /// `ssl_stapling_responder`
    responder: Option<Responder>,
    /// `ssl_stapling_verify`
    verifies: bool,
    /// `ssl_trusted_certificate`
    trusted: Vec<Vec<u8>>,
}

impl StapleRule {
    /// What names it in slots.
    pub(crate) fn key(&self) -> StapleKey {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        StapleKey(hasher.finish())
    }
}

impl Stapling {
    /// The rule for the ordered certificates of a server; `None` if they are not stapled.
    ///
    /// # Errors
    ///
    /// In nginx's words: a file is unreadable.
    pub(crate) fn rule(
        &self,
        draft: &mut StaplingDraft,
        conf: &TlsConf,
        warnings: &mut Vec<String>,
    ) -> Result<Option<StapleRule>, String> {
        if !conf.stapling {
            return Ok(None);
        }
        if conf.stapling_file.is_some() {
            let text = "\"ssl_stapling_file\" ignored for certificates of issuers, whose \
                        responders are asked";
            warnings.push(text.to_owned());
        }
        let responder = match conf.stapling_responder.as_deref().map(Responder::parse) {
            Some(Err((why, text))) => {
                let text = format!("\"ssl_stapling\" ignored, {why} in OCSP responder \"{text}\"");
                warnings.push(text);
                return Ok(None);
            }
            Some(Ok(responder)) => Some(responder),
            None => None,
        };
        draft.has_rules = true;
        let (verifies, trusted) = (conf.stapling_verify, trusted(conf)?);
        Ok(Some(StapleRule { responder, verifies, trusted }))
    }

    /// The side of those who install certificates.
    pub(crate) fn issued(&self) -> IssuedStapling {
        IssuedStapling(self.0.clone())
    }
}

/// The entries of ordered certificates.
#[derive(Clone, Debug, Default)]
pub(crate) struct IssuedStapling(Arc<Shared>);

impl IssuedStapling {
    /// Staples the certificate of an order by each of `rules`, and the one before it no more.
    /// Returns its forms. `words` names the directive.
    pub(crate) fn join(
        &self,
        order: &OrderId,
        words: &OrderId,
        rules: &[StapleRule],
        certificate: &LoadedCertificate,
    ) -> Vec<(StapleKey, LoadedCertificate)> {
        let mut state = self.0.lock();
        let before = state.issued.remove(order).unwrap_or_default();
        if rules.is_empty() {
            return Vec::new();
        }
        let (mut entries, mut forms) = (Vec::new(), Vec::new());
        for rule in rules {
            match entry(order, rule, certificate, &before) {
                Ok(entry) => {
                    forms.push((rule.key(), certificate.at_staple(&entry.staple)));
                    entries.push(Arc::new(entry));
                }
                Err(why) if state.noticed.insert(words.clone()) => {
                    let text = format!("\"ssl_stapling\" has no effect for \"{}\": {why}", order.0);
                    if let Some(log) = &state.log {
                        log.write(LogLevel::Notice, &text);
                    }
                }
                Err(_) => {}
            }
        }
        if !entries.is_empty() {
            state.issued.insert(order.clone(), entries);
            self.0.bell.notify_all();
        }
        forms
    }

    /// Staples only the certificates of orders for which `is_wanted`.
    pub(crate) fn retain(&self, is_wanted: impl Fn(&OrderId) -> bool) {
        self.0.lock().issued.retain(|order, _| is_wanted(order));
    }
}

/// The entry of a certificate, with what one before it knows.
fn entry(
    order: &OrderId,
    rule: &StapleRule,
    certificate: &LoadedCertificate,
    before: &[Arc<Entry>],
) -> Result<Entry, String> {
    let responder = match (&rule.responder, bolide_tls::responder(certificate.leaf())) {
        (Some(responder), _) => responder.clone(),
        (None, None) => return Err("the certificate names no OCSP responder".to_owned()),
        (None, Some(url)) => {
            let parsed = Responder::parse(&url).ok().filter(|_| bolide_tls::is_http(&url));
            parsed.ok_or_else(|| format!("its OCSP responder {url:?} cannot be asked"))?
        }
    };
    let question = OcspQuestion::new(certificate, &rule.trusted, rule.verifies);
    let question = question.ok_or("its chain has no issuer")?;
    let is_same = |entry: &&Arc<Entry>| entry.question == question && entry.responder == responder;
    let mut known = before.iter().find(is_same).map(|entry| entry.known().clone());
    // A new configuration retries failed queries at once.
    if let Some(known) = known.as_mut().filter(|known| known.failures > 0) {
        known.due = 0;
    }
    let (known, staple) = (known.unwrap_or_default(), certificate.with_staple());
    staple.set(known.answer.clone(), known.until);
    Ok(Entry { question, responder, name: order.0.clone(), staple, known: Mutex::new(known) })
}

#[cfg(test)]
mod tests {
    use std::fs::read;

    use bolide_acme::OrderId;
    use bolide_testkit::run;
    use bolide_testkit::site::temp_dir;
    use bolide_tls::LoadedCertificate;

    use super::{IssuedStapling, Responder, StapleRule};

    /// An authority, and certificates of it: two with a responder and one without.
    const AUTHORITY: &str = "cd \"$1\"
        new='-nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1'
        openssl req -x509 $new -days 9 -subj /CN=authority -keyout ca.key -out ca.pem
        for n in one two bare; do
            openssl req $new -subj /CN=$n -keyout $n.key -out $n.csr
            echo subjectAltName=DNS:$n.test >ext
            [ $n = bare ] || echo 'authorityInfoAccess=OCSP;URI:http://ocsp.test/' >>ext
            openssl x509 -req -days 9 -in $n.csr -CA ca.pem -CAkey ca.key -CAcreateserial \\
                -extfile ext -out $n.crt
            cat $n.crt ca.pem >$n.pem
        done";

    fn certificates() -> [LoadedCertificate; 3] {
        let dir = temp_dir();
        let _quiet = run("sh", ["-ec", AUTHORITY, "sh", dir.to_str().unwrap()]).succeeded();
        ["one", "two", "bare"].map(|name| {
            let file = |end: &str| read(dir.join(format!("{name}.{end}"))).unwrap();
            LoadedCertificate::from_pem(&file("pem"), &file("key"), &[]).unwrap()
        })
    }

    fn rule(responder: Option<&str>) -> StapleRule {
        let responder = responder.map(|url| Responder::parse(url).unwrap());
        StapleRule { responder, verifies: false, trusted: Vec::new() }
    }

    #[test]
    fn a_replaced_certificate_is_stapled_no_more() {
        let [one, two, bare] = certificates();
        let (stapling, id) = (IssuedStapling::default(), OrderId("a".into()));
        let asked = || {
            let state = stapling.0.lock();
            let entries = state.issued.values().flatten();
            entries.map(|entry| entry.question.request()).collect::<Vec<_>>()
        };
        let join = |rules: &[StapleRule], certificate| {
            stapling.join(&id, &id, rules, certificate).into_iter().map(|(key, _)| key).collect()
        };
        let by_certificate = rule(None);
        let keys: Vec<_> = join(std::slice::from_ref(&by_certificate), &one);
        assert_eq!(keys, [by_certificate.key()]);
        let first = asked();
        // What is known of a certificate survives a reload.
        stapling.0.lock().issued[&id][0].known().until = Some(7);
        let _keys: Vec<_> = join(std::slice::from_ref(&by_certificate), &one);
        assert_eq!(asked(), first);
        assert_eq!(stapling.0.lock().issued[&id][0].known().until, Some(7));
        let _keys: Vec<_> = join(std::slice::from_ref(&by_certificate), &two);
        assert_eq!(stapling.0.lock().issued[&id][0].known().until, None);
        assert!(asked().len() == 1 && asked() != first);
        // One without a responder, unless the configuration has one.
        let keys: Vec<_> = join(std::slice::from_ref(&by_certificate), &bare);
        assert!(keys.is_empty() && asked().is_empty());
        let told = rule(Some("http://127.0.0.1:1/"));
        let keys: Vec<_> = join(&[by_certificate, told.clone()], &bare);
        assert_eq!((keys, asked().len()), (vec![told.key()], 1));
        stapling.retain(|_| false);
        assert!(asked().is_empty());
    }
}
