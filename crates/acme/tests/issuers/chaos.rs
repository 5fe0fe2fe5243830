//! A seeded issuer that lies, is slow and crashes, in virtual time: no certificate is
//! lost, none is used that does not fit, and no limit is burnt.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bolide_acme::transport::{AcmeConnect, AcmeStream, Connecting};
use bolide_acme::{
    AcmeHost, AcmeLogLevel, AcmeNow, AcmePlan, AcmeService, AcmeSetting, Challenge, OrderId, kept,
};
use bolide_base::prng::Prng;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, IsCa, Issuer, KeyPair,
    PublicKeyData as _, SerialNumber,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, sleep};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::host::{order, plan};

const HOUR: u64 = 3600;
/// Life of the issuer's certificates.
const LIFE: u64 = 12 * HOUR;
/// Virtual time of a seed with faults, and after them.
const CHAOS: u64 = 30 * HOUR;
const CALM: u64 = 32 * HOUR;
const START: u64 = 1_700_000_000;

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    BadNonce,
    Broken,
    Limited,
    /// The answer is right, and the next request may come later.
    Later,
    /// All addresses are wrong.
    Astray,
    Slow,
    Cut,
    Closed,
    Huge,
    Garbage,
    WrongTypes,
    Invalid,
    Stuck,
    OtherName,
    Token,
    OtherKey,
    OtherNames,
    Expired,
    Future,
    NoPem,
}

const FAULTS: [Fault; 20] = [
    Fault::BadNonce,
    Fault::Broken,
    Fault::Limited,
    Fault::Later,
    Fault::Astray,
    Fault::Slow,
    Fault::Cut,
    Fault::Closed,
    Fault::Huge,
    Fault::Garbage,
    Fault::WrongTypes,
    Fault::Invalid,
    Fault::Stuck,
    Fault::OtherName,
    Fault::Token,
    Fault::OtherKey,
    Fault::OtherNames,
    Fault::Expired,
    Fault::Future,
    Fault::NoPem,
];

/// Values of `Retry-After`; a part of them is no time that a clock can show.
const RETRY_AFTER: [&str; 9] = [
    "0",
    "7",
    "3600",
    "999999999999",
    "9223372036854775807",
    "18446744073709551615",
    "Tue, 14 Nov 2090 22:13:20 GMT",
    "Fri, 31 Dec 9999 23:59:59 GMT",
    "x",
];

/// What addresses begin with that lead nowhere.
const ASTRAY: [&str; 7] = ["", " ", "https://", "https://a b", "http://issuer", "//", "\u{e9}"];

struct Placed {
    names: Vec<String>,
    status: &'static str,
    ready: bool,
    chain: Option<String>,
    /// The certificate that it replaces, as the order says.
    replaces: Option<String>,
}

struct Truth {
    prng: Prng,
    /// Of a hundred requests, those that have a fault.
    rate: u64,
    nonces: u64,
    orders: Vec<Placed>,
    /// When each was placed.
    placed: Vec<u64>,
    /// Orders whose certificates were used.
    used: BTreeSet<usize>,
    /// Questions about renewals that were answered.
    suggestions: usize,
}

/// The issuer, and the host that it serves.
struct ChaosWorld {
    truth: Mutex<Truth>,
    epoch: Instant,
    ca: Issuer<'static, KeyPair>,
    installed: Mutex<BTreeMap<OrderId, (Vec<u8>, u64)>>,
    names: BTreeMap<OrderId, Vec<String>>,
    presented: Mutex<BTreeSet<String>>,
}

#[derive(Clone)]
struct Chaos(Arc<ChaosWorld>);

fn rounded(time: u64) -> time::OffsetDateTime {
    time::OffsetDateTime::from_unix_timestamp(i64::try_from(time).unwrap()).unwrap()
}

fn rfc3339(time: u64) -> String {
    let at = rounded(time);
    let (date, (hour, minute, second)) = (at.date(), at.to_hms());
    format!("{date}T{hour:02}:{minute:02}:{second:02}Z")
}

impl ChaosWorld {
    fn unix(&self) -> u64 {
        START + self.epoch.elapsed().as_secs()
    }

    fn issue(&self, csr: &[u8], order: usize, fault: Fault) -> Option<String> {
        let truth = self.truth.lock().unwrap();
        let names = match fault {
            Fault::OtherNames => vec!["victim.example".to_owned()],
            _ => truth.orders[order].names.clone(),
        };
        let serial = order as u64 + 1;
        drop(truth);
        let now = self.unix();
        let mut params = CertificateParams::new(names).unwrap();
        let (from, until) = match fault {
            Fault::Expired => (now - 2 * LIFE, now - LIFE),
            Fault::Future => (now + LIFE, now + 2 * LIFE),
            _ => (now - 60, now + LIFE),
        };
        (params.not_before, params.not_after) = (rounded(from), rounded(until));
        params.serial_number = Some(SerialNumber::from(serial));
        params.use_authority_key_identifier_extension = true;
        let request = CertificateSigningRequestParams::from_der(&csr.to_vec().into()).ok()?;
        let made = match fault {
            Fault::OtherKey => params.signed_by(&KeyPair::generate().unwrap(), &self.ca),
            _ => params.signed_by(&request.public_key, &self.ca),
        };
        match fault {
            Fault::NoPem => Some("-----BEGIN CERTIFICATE-----\nnot\n".to_owned()),
            _ => Some(made.unwrap().pem()),
        }
    }

    /// The answer to a request: status, fields and body.
    fn answer(&self, path: &str, payload: &Value, fault: Fault) -> (u16, String, Vec<u8>) {
        let mut truth = self.truth.lock().unwrap();
        truth.nonces += 1;
        let mut fields = format!("Replay-Nonce: n{}\r\n", truth.nonces);
        let url = |path: String| format!("https://issuer{path}");
        let part = |n: usize| path.split('/').nth(n).unwrap_or("").to_owned();
        let number: usize = part(2).parse().unwrap_or(0);
        let problem = |status: u16, kind: &str| {
            let kind = format!("urn:ietf:params:acme:error:{kind}");
            (status, json!({"type": kind, "detail": "invented\u{7}"}).to_string().into_bytes())
        };
        let show = |truth: &Truth, number: usize| {
            let order = &truth.orders[number];
            let authorizations: Vec<String> =
                (0..order.names.len()).map(|n| url(format!("/authz/{number}/{n}"))).collect();
            let mut shown = json!({
                "status": order.status,
                "authorizations": authorizations,
                "finalize": url(format!("/finalize/{number}")),
            });
            if let Some(replaces) = &order.replaces {
                shown["replaces"] = json!(replaces);
            }
            if order.chain.is_some() {
                shown["certificate"] = json!(url(format!("/cert/{number}")));
            }
            shown.to_string().into_bytes()
        };
        if matches!(fault, Fault::Limited | Fault::Later) {
            let at = truth.prng.below(RETRY_AFTER.len() as u64) as usize;
            fields.push_str(&format!("Retry-After: {}\r\n", RETRY_AFTER[at]));
        }
        let known = number < truth.orders.len();
        let (status, body) = match part(1).as_str() {
            _ if fault == Fault::BadNonce => problem(400, "badNonce"),
            _ if fault == Fault::Broken => (500, b"<html>".to_vec()),
            _ if fault == Fault::Limited => problem(429, "rateLimited"),
            _ if fault == Fault::WrongTypes => {
                (200, b"{\"status\":7,\"authorizations\":{}}".to_vec())
            }
            "dir" => {
                let directory = json!({
                    "newNonce": url("/nonce".into()), "newAccount": url("/account".into()),
                    "newOrder": url("/order-new".into()), "meta": {},
                    "renewalInfo": url("/renewal".into()),
                });
                (200, directory.to_string().into_bytes())
            }
            "nonce" => (200, Vec::new()),
            "account" => {
                fields.push_str("Location: https://issuer/account/1\r\n");
                (201, b"{\"status\":\"valid\"}".to_vec())
            }
            "order-new" => {
                let names = payload["identifiers"].as_array().cloned().unwrap_or_default();
                let names = names.iter().filter_map(|name| name["value"].as_str());
                let names = names.map(str::to_owned).collect();
                let number = truth.orders.len();
                let replaces = payload["replaces"].as_str().map(str::to_owned);
                let status = "pending";
                truth.orders.push(Placed { names, status, ready: false, chain: None, replaces });
                let now = self.unix();
                truth.placed.push(now);
                fields.push_str(&format!("Location: https://issuer/order/{number}\r\n"));
                (201, show(&truth, number))
            }
            "renewal" => {
                truth.suggestions += 1;
                let now = self.unix();
                if truth.prng.below(9) > 0 {
                    fields.push_str(&format!("Retry-After: {}\r\n", truth.prng.below(7 * HOUR)));
                }
                // Soon, at once, much too late, and one that ends before it begins.
                let (start, end) = match truth.prng.below(16) {
                    0 => (1, 2),
                    1 => (now + 100 * LIFE, now + 200 * LIFE),
                    2 => (now + HOUR, now),
                    _ => (now + 2 * HOUR, now + 4 * HOUR),
                };
                let window = json!({"start": rfc3339(start), "end": rfc3339(end)});
                let shown = json!({"suggestedWindow": window, "explanationURL": "https://a/\u{7}"});
                (200, shown.to_string().into_bytes())
            }
            "order" if known => {
                let order = &mut truth.orders[number];
                match fault {
                    Fault::Invalid => order.status = "invalid",
                    _ if order.ready && order.status == "pending" => order.status = "ready",
                    _ => {}
                }
                (200, show(&truth, number))
            }
            "authz" if known => {
                let at: usize = part(3).parse().unwrap_or(0);
                let order = &truth.orders[number];
                let name = match fault {
                    Fault::OtherName => "victim.example".to_owned(),
                    _ => order.names[at].clone(),
                };
                let token = if fault == Fault::Token { "../../etc" } else { "tok-en_1" };
                let status = if order.status == "pending" { "pending" } else { "valid" };
                let shown = json!({
                    "status": status,
                    "identifier": {"type": "dns", "value": name},
                    "challenges": [{"type": "http-01", "status": "pending", "token": token,
                                    "url": url(format!("/challenge/{number}/{at}"))}],
                });
                (200, shown.to_string().into_bytes())
            }
            "challenge" if known => {
                let presented = self.presented.lock().unwrap();
                let order = &mut truth.orders[number];
                let all = order.names.iter().all(|name| presented.contains(name));
                order.ready = all && fault != Fault::Stuck;
                let shown = json!({"type": "http-01", "status": "processing", "token": "tok-en_1",
                                   "url": "https://issuer/x"});
                (200, shown.to_string().into_bytes())
            }
            "finalize" if known && truth.orders[number].status == "ready" => {
                drop(truth);
                let csr = base64url(payload["csr"].as_str().unwrap_or(""));
                let chain = self.issue(&csr, number, fault);
                truth = self.truth.lock().unwrap();
                truth.orders[number].status = if chain.is_some() { "valid" } else { "invalid" };
                truth.orders[number].chain = chain;
                (200, show(&truth, number))
            }
            "cert" if known && truth.orders[number].chain.is_some() => {
                fields.push_str("Content-Type: application/pem-certificate-chain\r\n");
                (200, truth.orders[number].chain.clone().unwrap().into_bytes())
            }
            _ => problem(404, "malformed"),
        };
        (status, fields, body)
    }

    async fn serve(self: Arc<Self>, mut stream: DuplexStream) {
        let mut buffer = Vec::new();
        loop {
            let Some((path, body)) = request(&mut stream, &mut buffer).await else { return };
            let (fault, after) = {
                let mut truth = self.truth.lock().unwrap();
                let rate = truth.rate;
                let is_faulty = truth.prng.below(100) < rate;
                let which = truth.prng.below(FAULTS.len() as u64) as usize;
                let after = truth.prng.below(200);
                (if is_faulty { FAULTS[which] } else { Fault::None }, after)
            };
            let envelope: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
            let payload = base64url(envelope["payload"].as_str().unwrap_or(""));
            let payload = serde_json::from_slice(&payload).unwrap_or(Value::Null);
            let (status, fields, mut body) = self.answer(&path, &payload, fault);
            let mut length = body.len();
            match fault {
                Fault::Slow => sleep(Duration::from_secs(after)).await,
                Fault::Closed => return,
                Fault::Astray => {
                    let address = ASTRAY[after as usize % ASTRAY.len()];
                    let text = String::from_utf8_lossy(&body);
                    body = text.replace("https://issuer", address).into_bytes();
                    length = body.len();
                }
                Fault::Cut => length += 10,
                Fault::Huge => {
                    body = vec![b' '; 3 << 20];
                    length = body.len();
                }
                Fault::Garbage => {
                    let _gone = stream.write_all(b"\0\xff\r\n\r\nnonsense").await;
                    return;
                }
                _ => {}
            }
            let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{fields}\r\n");
            let sent = stream.write_all(head.as_bytes()).await;
            if sent.is_err() || stream.write_all(&body).await.is_err() || fault == Fault::Cut {
                return;
            }
        }
    }
}

async fn request(stream: &mut DuplexStream, buffer: &mut Vec<u8>) -> Option<(String, Vec<u8>)> {
    loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
            let field = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let all = end + 4 + field.map_or(0, |length| length.parse::<usize>().unwrap());
            if buffer.len() >= all {
                let path = head.split(' ').nth(1)?.to_owned();
                // A HEAD request is answered without a body, which is empty here anyway.
                let body = buffer[end + 4..all].to_vec();
                buffer.drain(..all);
                return Some((path, body));
            }
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}

fn base64url(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for byte in text.bytes() {
        let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let Some(six) = alphabet.iter().position(|known| *known == byte) else { continue };
        bits = (bits << 6 | six as u32) & 0xffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out
}

impl AcmeConnect for Chaos {
    fn connect(&self, _host: &str, _port: u16) -> Connecting {
        let world = self.0.clone();
        Box::pin(async move {
            let refuses = {
                let mut truth = world.truth.lock().unwrap();
                let rate = truth.rate;
                truth.prng.below(300) < rate
            };
            if refuses {
                return Err("refused".to_owned());
            }
            let (ours, theirs) = tokio::io::duplex(16 << 10);
            tokio::spawn(world.serve(theirs));
            Ok(Box::new(ours) as Box<dyn AcmeStream>)
        })
    }
}

impl AcmeHost for Chaos {
    fn present(&self, challenge: &Challenge) {
        let Challenge::Http01 { name, token, .. } = challenge else { panic!("{challenge:?}") };
        assert!(!token.contains(['/', '.']), "{token}");
        assert!(self.0.names.values().flatten().any(|known| known == name), "{name}");
        self.0.presented.lock().unwrap().insert(name.clone());
    }

    fn withdraw(&self, challenge: &Challenge) {
        let Challenge::Http01 { name, .. } = challenge else { panic!("{challenge:?}") };
        self.0.presented.lock().unwrap().remove(name);
    }

    fn install(&self, id: &OrderId, chain: &[u8], key: &[u8]) -> Result<(), String> {
        let key = KeyPair::from_pem(std::str::from_utf8(key).unwrap()).unwrap();
        // By itself, and not by what the service checks with.
        let block = pem::parse(chain).unwrap();
        let (_, leaf) = X509Certificate::from_der(block.contents()).unwrap();
        assert_eq!(leaf.public_key().raw, key.subject_public_key_info(), "our key");
        let names = leaf.subject_alternative_name().unwrap().unwrap().value.general_names.iter();
        let names = names.map(|name| match name {
            GeneralName::DNSName(name) => (*name).to_owned(),
            other => panic!("{other:?}"),
        });
        assert_eq!(names.collect::<Vec<_>>(), self.0.names[id], "our names");
        let until = leaf.validity().not_after.timestamp() as u64;
        assert!(leaf.validity().not_before.timestamp() as u64 <= self.0.unix(), "valid now");
        let mut installed = self.0.installed.lock().unwrap();
        let before = installed.get(id).map_or(0, |(_, until)| *until);
        assert!(until >= before, "an older certificate replaces a newer one");
        installed.insert(id.clone(), (chain.to_vec(), until));
        drop(installed);
        let serial = leaf.tbs_certificate.raw_serial();
        let number = serial.iter().fold(0_usize, |sum, byte| sum << 8 | usize::from(*byte));
        self.0.truth.lock().unwrap().used.insert(number - 1);
        Ok(())
    }

    fn log(&self, _level: AcmeLogLevel, text: &str) {
        assert!(!text.contains("PRIVATE KEY") && !text.contains('\u{7}'), "{text}");
    }
}

fn world(seed: u64, names: BTreeMap<OrderId, Vec<String>>, ca: Issuer<'static, KeyPair>) -> Chaos {
    let mut prng = Prng::new(seed);
    let rate = [2, 5, 12, 30, 60][prng.below(5) as usize];
    let truth = Truth {
        prng,
        rate,
        nonces: 0,
        orders: Vec::new(),
        placed: Vec::new(),
        used: BTreeSet::new(),
        suggestions: 0,
    };
    Chaos(Arc::new(ChaosWorld {
        truth: Mutex::new(truth),
        epoch: Instant::now(),
        ca,
        installed: Mutex::default(),
        names,
        presented: Mutex::default(),
    }))
}

fn ca() -> Issuer<'static, KeyPair> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.use_authority_key_identifier_extension = true;
    Issuer::new(params, KeyPair::generate().unwrap())
}

fn chaos_plan(dir: PathBuf) -> AcmePlan {
    let orders = vec![order(&["a.example"]), order(&["b.example", "c.example"])];
    let issuer = bolide_acme::AcmeIssuer {
        name: "pebble".to_owned(),
        authority: bolide_acme::AcmeAuthority::Remote,
        uri: "https://issuer/dir".to_owned(),
        account_key: bolide_acme::AccountKey::Generated(bolide_acme::CertificateKey::EcdsaP256),
        contacts: Vec::new(),
        challenge: bolide_acme::ChallengeKind::Http01,
        external_account: None,
        preferred_chain: None,
        profile: None,
        trusted: None,
        verify: true,
        state_path: Some(dir),
        accepts_terms: true,
    };
    plan(issuer, orders)
}

async fn life(seed: u64) {
    let plan = chaos_plan(crate::host::state_dir());
    let names = plan.orders.iter().map(|order| (order.id.clone(), order.names.clone())).collect();
    let chaos = world(seed, names, ca());
    let world = chaos.0.clone();
    let clock_world = world.clone();
    let clock = move || {
        let unix = clock_world.unix();
        AcmeNow { unix, mono: unix - START }
    };
    let setting = AcmeSetting {
        clock: Arc::new(clock),
        connect: Some(Arc::new(chaos.clone())),
        crash_hook: None,
        tick: Duration::from_secs(300),
        ..AcmeSetting::default()
    };
    let mut kept_before = BTreeSet::new();
    while world.unix() < START + CHAOS {
        let (service, run) = AcmeService::detached(Arc::new(chaos.clone()), setting.clone());
        let run = tokio::spawn(run);
        // A new process, which knows of no certificate.
        world.installed.lock().unwrap().clear();
        service.settle(plan.clone());
        for order in &plan.orders {
            let has = kept(&plan, order).is_some();
            assert!(has || !kept_before.contains(&order.id), "seed {seed}: a certificate is lost");
        }
        let stays = world.truth.lock().unwrap().prng.below(6 * HOUR);
        sleep(Duration::from_secs(stays + 1)).await;
        kept_before =
            plan.orders.iter().filter(|o| kept(&plan, o).is_some()).map(|o| o.id.clone()).collect();
        // A crash: nothing of it runs on, and no file is written any more.
        drop(service);
        run.await.expect("no panic");
    }
    world.truth.lock().unwrap().rate = 0;
    world.installed.lock().unwrap().clear();
    let (service, run) = AcmeService::detached(Arc::new(chaos.clone()), setting);
    let run = tokio::spawn(run);
    service.settle(plan.clone());
    sleep(Duration::from_secs(CALM)).await;
    let now = world.unix();
    for report in service.report() {
        let expires = report.expires.unwrap_or(0);
        assert!(expires > now, "seed {seed}: {report:?}");
    }
    drop(service);
    run.await.expect("no panic");
    let truth = world.truth.lock().unwrap();
    assert!(truth.suggestions > 0, "seed {seed}: it was asked when to renew");
    let replaces = truth.orders.iter().filter(|order| order.replaces.is_some()).count();
    assert!(replaces > 0, "seed {seed}: an order says what it replaces");
    let failed: Vec<u64> = (truth.placed.iter().enumerate())
        .filter(|(number, _)| !truth.used.contains(number))
        .map(|(_, when)| *when)
        .collect();
    for start in &failed {
        let within = failed.iter().filter(|when| (*start..start + HOUR).contains(*when)).count();
        assert!(within <= 5, "seed {seed}: {within} failed orders in an hour");
    }
}

/// Panics of any thread. The runtime catches those of its tasks; in a release, each ends the
/// process.
static PANICS: AtomicUsize = AtomicUsize::new(0);

fn count_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        usual(info);
    }));
}

#[test]
fn a_hundred_issuers_that_lie_and_die() {
    count_panics();
    let _alone = crate::HEAVY.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let first = std::env::var("BOLIDE_ACME_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = first.map_or(0..100, |seed| seed..seed + 1);
    // Two halves at once, as many as there are cores on small machines.
    let half = |odd: u64| {
        let seeds = seeds.clone().filter(move |seed| seed % 2 == odd);
        std::thread::spawn(move || seeds.for_each(one))
    };
    for half in [half(0), half(1)] {
        if let Err(panic) = half.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

fn one(seed: u64) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(life(seed));
    assert_eq!(PANICS.load(Ordering::Relaxed), 0, "seed {seed} or one before it: no panic");
}
