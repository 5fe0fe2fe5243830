//! From `proxy_ssl_*`, `uwsgi_ssl_*` and `grpc_ssl_*` to the settings of TLS upstreams.

use bolide_conf::model::{CertificateConf as Pair, DirectiveFamily, OriginTlsConf, Pem, PemName};
use bolide_engine::Site;
use bolide_tls::{AcceptorOptions, OriginOptions, OriginTls};

use super::certificates::{self, CertificateReader};
use super::client_auth::authorities;
use super::computed::Files;
use super::offer;

/// The TLS settings of upstreams, in the site's numbering. Warnings go to `warnings`.
///
/// # Errors
///
/// In nginx's words: a file is unreadable or contains nothing of its kind, or no suite is left to
/// offer.
pub(crate) fn origins(
    site: &Site,
    reader: &mut CertificateReader,
    warnings: &mut Vec<String>,
) -> Result<Vec<OriginTls>, String> {
    check_passwords(site)?;
    site.origin_tls().iter().map(|conf| origin(conf, reader, warnings)).collect()
}

/// Checks files of pass phrases, used or not: nginx reads them when it parses the directive.
fn check_passwords(site: &Site) -> Result<(), String> {
    let mut checked = None;
    let families = [DirectiveFamily::Proxy, DirectiveFamily::Uwsgi, DirectiveFamily::Grpc];
    for location in site.config().http.iter().flat_map(|http| &http.locations) {
        for family in families {
            let file = location.settings.origin_of(family).proxy.tls.password_file.as_ref();
            if file.is_some() && file != checked {
                let _phrases = certificates::passwords(file)?;
                checked = file;
            }
        }
    }
    Ok(())
}

fn origin(
    conf: &OriginTlsConf,
    reader: &mut CertificateReader,
    warnings: &mut Vec<String>,
) -> Result<OriginTls, String> {
    let mut offered = AcceptorOptions::default();
    offer::offer(conf, &mut offered, warnings)?;
    let options = OriginOptions {
        versions: offered.versions,
        ciphers: offered.ciphers,
        ciphersuites: offered.ciphersuites,
        curves: offered.curves,
        tells_name: conf.server_name,
        keeps_sessions: conf.session_reuse,
        alpn: if conf.offers_http2 { vec![b"h2".to_vec()] } else { Vec::new() },
    };
    let passwords = certificates::passwords(conf.password_file.as_ref())?;
    let shown = conf.certificate.as_ref().filter(|chain| !chain.written.is_empty());
    let pair = shown.map(|chain| pair(conf, chain)).transpose()?;
    let fixed = pair.filter(|_| !conf.computes_certificate());
    let fixed = fixed.map(|pair| reader.certificate(&pair, &passwords)).transpose()?;
    let mut made = OriginTls::new(&options, fixed)?;
    if conf.computes_certificate() {
        let kept = conf.certificate_cache.map(|rules| reader.cache(rules));
        let (files, beside) = (Files::new(passwords, kept), conf.beside.clone());
        made.load(move |chain, key| {
            let (chain, key) = (Pem::of(chain, &beside), Pem::of_key(key, &beside));
            files.load(&chain, &key, bolide_io::process::now())
        });
    }
    if conf.verify {
        let trusted = conf.trusted_certificate.as_deref();
        let prefix = conf.family.prefix();
        let missing = || format!("no {prefix}ssl_trusted_certificate for {prefix}ssl_verify");
        let trusted = trusted.ok_or_else(missing)?;
        let crl = conf.crl.as_deref();
        made.trust(authorities(None, Some(trusted), crl, conf.verify_depth)?);
    }
    Ok(made)
}

fn pair(conf: &OriginTlsConf, chain: &PemName) -> Result<Pair, String> {
    let Some(key) = &conf.key else {
        let chain = String::from_utf8_lossy(&chain.written);
        return Err(format!(
            "no \"{}ssl_certificate_key\" is defined for certificate \"{chain}\"",
            conf.family.prefix()
        ));
    };
    let chain = Pem::of(&chain.written, &conf.beside);
    let key = Pem::of_key(&key.written, &conf.beside);
    Ok(Pair { chain, key, place: None })
}
