//! Converts a configuration to the plan of the ordering thread.

use bolide_acme::{
    AccountKey, AcmeAuthority, AcmeDemand, AcmeIssuer, AcmeOrder, AcmePlan, CertificateKey,
    ChallengeKind, DemandRate, ExternalAccount, OrderId,
};
use bolide_conf::model::{
    AcmeConf, Config, DemandedRate, IssuedConf, IssuedId, IssuedKey, IssuerAuthority,
    IssuerChallenge, IssuerConf, IssuerKey,
};

/// A certificate of the configuration, as the thread knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PlannedPlace {
    /// One order.
    Order(OrderId),
    /// Orders for names on demand.
    Demand(OrderId),
}

/// The plan, and its entries for the configuration's certificates.
pub(super) fn of(config: &Config) -> (AcmePlan, Vec<PlannedPlace>) {
    let Some(acme) = config.http.as_ref().map(|http| &http.acme) else {
        return (AcmePlan::default(), Vec::new());
    };
    let (on_demand, written): (Vec<_>, Vec<_>) =
        acme.certificates.iter().partition(|one| one.is_on_demand());
    let plan = AcmePlan {
        issuers: acme.issuers.iter().map(issuer).collect(),
        orders: written.into_iter().map(|one| order(acme, one)).collect(),
        demands: on_demand.into_iter().filter_map(|one| demand(acme, one)).collect(),
    };
    let place = |one: &IssuedConf| match one.is_on_demand() {
        true => PlannedPlace::Demand(name(acme, one)),
        false => PlannedPlace::Order(name(acme, one)),
    };
    (plan, acme.certificates.iter().map(place).collect())
}

/// Checks the files of issuers that are used.
///
/// # Errors
///
/// One text per issuer, with its line.
pub(crate) fn check(config: &Config) -> Result<(), Vec<String>> {
    let issuers = config.http.as_ref().map_or(&[][..], |http| &http.acme.issuers);
    let text = |(at, why): (usize, String)| {
        let IssuerConf { name, place, .. } = issuers.get(at)?;
        Some(format!("acme_issuer \"{name}\": {why} in {place}"))
    };
    let unusable = bolide_acme::unusable_issuers(&of(config).0);
    let all: Vec<_> = unusable.into_iter().filter_map(text).collect();
    if all.is_empty() { Ok(()) } else { Err(all) }
}

fn demand(acme: &AcmeConf, one: &IssuedConf) -> Option<AcmeDemand> {
    let first = acme.issuers.get(*one.issuers.first()?)?;
    let DemandedRate { count, seconds } = first.on_demand_rate;
    Some(AcmeDemand {
        id: name(acme, one),
        issuers: one.issuers.clone(),
        key: key(one.key),
        ask: first.on_demand_ask.clone()?,
        rate: DemandRate { count, seconds },
        names_max: first.on_demand_names,
    })
}

/// The id of an order, stable across reloads and restarts.
pub(super) fn id_of(acme: &AcmeConf, id: IssuedId) -> OrderId {
    acme.certificates.get(id.index()).map_or_else(|| OrderId(String::new()), |one| name(acme, one))
}

fn name(acme: &AcmeConf, one: &IssuedConf) -> OrderId {
    let first = one.issuers.first().and_then(|at| acme.issuers.get(*at));
    let issuer = first.map_or("", |issuer| &*issuer.name);
    // Another directory URL under the same name is another issuer: from staging to production.
    let host = match first {
        Some(issuer) if issuer.is_local() => "this server",
        other => other.map_or("", |issuer| host_of(&issuer.uri)),
    };
    let mut names: Vec<&str> = one.names.iter().map(|name| &**name).collect();
    names.sort_unstable();
    if one.is_on_demand() {
        names.push("on demand");
    }
    // A certificate of another profile is another order, however long it is valid.
    let profile = first.and_then(|issuer| issuer.profile.as_ref());
    let profile = profile.map_or_else(String::new, |(profile, _)| format!(" as {profile}"));
    OrderId(format!("{issuer} {} {} at {host}{profile}", one.key.text(), names.join(" ")))
}

/// Host and port of a URL.
fn host_of(uri: &str) -> &str {
    let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    rest.split(['/', '?']).next().unwrap_or(rest)
}

fn order(acme: &AcmeConf, one: &IssuedConf) -> AcmeOrder {
    AcmeOrder {
        id: name(acme, one),
        issuers: one.issuers.clone(),
        names: one.names.iter().map(|name| name.to_string()).collect(),
        key: key(one.key),
    }
}

fn issuer(conf: &IssuerConf) -> AcmeIssuer {
    AcmeIssuer {
        name: conf.name.to_string(),
        authority: match conf.authority {
            IssuerAuthority::Acme => AcmeAuthority::Remote,
            IssuerAuthority::Local { lifetime } => AcmeAuthority::Local { lifetime },
        },
        uri: conf.uri.clone(),
        account_key: match &conf.account_key {
            IssuerKey::Made(made) => AccountKey::Generated(key(*made)),
            IssuerKey::File(path) => AccountKey::File(path.clone()),
        },
        contacts: conf.contacts.clone(),
        challenge: match &conf.challenge {
            IssuerChallenge::Http => ChallengeKind::Http01,
            IssuerChallenge::TlsAlpn => ChallengeKind::TlsAlpn01,
            IssuerChallenge::Dns(program) => ChallengeKind::Dns01(program.clone()),
        },
        external_account: conf.external_account.as_ref().map(|account| ExternalAccount {
            kid: account.kid.clone(),
            key_file: account.key_file.clone(),
        }),
        preferred_chain: conf.preferred_chain.clone(),
        profile: conf.profile.clone(),
        trusted: conf.trusted_certificate.clone(),
        verify: conf.verify,
        state_path: conf.state_path.clone(),
        accepts_terms: conf.accepts_terms,
    }
}

const fn key(of: IssuedKey) -> CertificateKey {
    match of {
        IssuedKey::EcdsaP256 => CertificateKey::EcdsaP256,
        IssuedKey::EcdsaP384 => CertificateKey::EcdsaP384,
        IssuedKey::EcdsaP521 => CertificateKey::EcdsaP521,
        IssuedKey::Rsa2048 => CertificateKey::Rsa2048,
        IssuedKey::Rsa3072 => CertificateKey::Rsa3072,
        IssuedKey::Rsa4096 => CertificateKey::Rsa4096,
    }
}
