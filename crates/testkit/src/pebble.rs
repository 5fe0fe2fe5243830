//! Pebble, an ACME test server, with a name server that resolves every name to 127.0.0.1.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::ports::TestPorts;
use crate::tools::{run, tool};
use crate::{site, wait_until};

/// The settings of a Pebble.
#[derive(Clone, Debug)]
pub struct PebbleOptions {
    /// The port of the server to which `http-01` validations go.
    pub http_port: u16,
    /// The port of the server to which `tls-alpn-01` validations go.
    pub tls_port: u16,
    /// The percentage of nonces that it rejects.
    pub bad_nonces: u32,
    /// The percentage of valid authorizations that it reuses.
    pub reused_authorizations: u32,
    /// Key id and key (base64url) of a required external account.
    pub external_account: Option<(String, String)>,
    /// Names that it refuses.
    pub blocked: Vec<String>,
    /// The number of further roots, each with a chain of its own.
    pub alternate_roots: u32,
    /// Profiles and the lifetimes of their certificates in seconds. An order without a profile gets
    /// any.
    pub profiles: Vec<(String, u64)>,
    /// The OCSP responder that its certificates name.
    pub responder: Option<String>,
}

impl PebbleOptions {
    /// A well-behaved issuer that validates at these ports.
    #[must_use]
    pub fn validating(http_port: u16, tls_port: u16) -> Self {
        Self {
            http_port,
            tls_port,
            bad_nonces: 0,
            reused_authorizations: 0,
            external_account: None,
            blocked: Vec::new(),
            alternate_roots: 0,
            profiles: vec![("default".into(), 7_776_000)],
            responder: None,
        }
    }

    fn json(&self, dir: &Path, ports: &TestPorts) -> String {
        let quoted = |name: &String| format!("\"{name}\"");
        let blocked = self.blocked.iter().map(quoted).collect::<Vec<_>>().join(",");
        let profile = |(name, seconds): &(String, u64)| {
            format!("\"{name}\":{{\"description\":\"{name}\",\"validityPeriod\":{seconds}}}")
        };
        let profiles = self.profiles.iter().map(profile).collect::<Vec<_>>().join(",");
        let keys = self.external_account.iter().map(|(kid, key)| format!("\"{kid}\":\"{key}\""));
        format!(
            "{{\"pebble\":{{\"listenAddress\":\"127.0.0.1:{}\",\
             \"managementListenAddress\":\"127.0.0.1:{}\",\
             \"certificate\":\"{dir}/leaf.pem\",\"privateKey\":\"{dir}/leaf.key\",\
             \"httpPort\":{},\"tlsPort\":{},\"externalAccountBindingRequired\":{},\
             \"externalAccountMACKeys\":{{{}}},\"domainBlocklist\":[{blocked}],\
             \"retryAfter\":{{\"authz\":1,\"order\":1}},\"keyAlgorithm\":\"{}\",\
             \"ocspResponderURL\":\"{}\",\"profiles\":{{{profiles}}}}}}}",
            ports.port(0),
            ports.port(1),
            self.http_port,
            self.tls_port,
            self.external_account.is_some(),
            keys.collect::<Vec<_>>().join(","),
            // It tells its key only if that is RSA.
            if self.responder.is_some() { "rsa" } else { "ecdsa" },
            self.responder.as_deref().unwrap_or_default(),
            dir = dir.display(),
        )
    }
}

/// A running Pebble. Dropping it ends it.
pub struct Pebble {
    issuer: Child,
    names: Child,
    dir: PathBuf,
    ports: TestPorts,
    options: PebbleOptions,
}

impl Pebble {
    /// Starts one on its own ports.
    ///
    /// # Panics It is missing or does not respond within a minute.
    #[must_use]
    pub fn start(options: PebbleOptions) -> Self {
        let (dir, ports) = (site::temp_dir(), TestPorts::claim());
        certificate(&dir);
        fs::write(dir.join("pebble.json"), options.json(&dir, &ports)).unwrap();
        let names = names(&dir, &ports);
        let issuer = issuer(&dir, &ports, &options);
        let pebble = Self { issuer, names, dir, ports, options };
        pebble.wait_ready();
        pebble
    }

    fn wait_ready(&self) {
        wait_until("Pebble to answer", || self.ask(0, "/dir").is_some());
        wait_until("Pebble's management to answer", || self.ask(1, "/roots/0").is_some());
    }

    /// The URI of its directory.
    #[must_use]
    pub fn directory(&self) -> String {
        format!("https://127.0.0.1:{}/dir", self.ports.port(0))
    }

    /// The authority of its own server's certificate, in PEM form.
    #[must_use]
    pub fn trusted(&self) -> PathBuf {
        self.dir.join("ca.pem")
    }

    /// The root number `n` of its certificates, in PEM form; a new one with each start.
    ///
    /// # Panics There is none.
    #[must_use]
    pub fn root(&self, n: u32) -> String {
        self.ask(1, &format!("/roots/{n}")).expect("a root of Pebble")
    }

    /// The certificate that issues others, and its key, in PEM form.
    ///
    /// # Panics It does not respond.
    #[must_use]
    pub fn authority(&self) -> (String, String) {
        let part = |path: &str| self.ask(1, path).expect("an authority of Pebble");
        (part("/intermediates/0"), part("/intermediate-keys/0"))
    }

    /// The text of its log.
    #[must_use]
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.dir.join("log")).unwrap_or_default()).into_owned()
    }

    /// Kills it.
    pub fn kill(&mut self) {
        let _gone = self.issuer.kill();
        let _gone = self.issuer.wait();
    }

    /// Kills it and starts it on the same ports, without its accounts and orders.
    ///
    /// # Panics It does not respond within a minute.
    pub fn restart(&mut self) {
        self.kill();
        self.issuer = issuer(&self.dir, &self.ports, &self.options);
        self.wait_ready();
    }

    /// Sends a command to the name server: `/set-txt`, `/clear-txt`, `/add-a` and others, with
    /// JSON.
    ///
    /// # Panics It refuses.
    pub fn names(&self, path: &str, json: &str) {
        let _quiet = run("curl", ["-fsS", "-d", json, &self.names_url(path)]).succeeded();
    }

    /// The URL of such a command, for programs of tests.
    #[must_use]
    pub fn names_url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.ports.port(3))
    }

    /// Sets the renewal information of a certificate (ARI) as JSON.
    ///
    /// # Panics It refuses.
    pub fn suggest_renewal(&self, certificate_pem: &str, json: &str) {
        let escaped = |text: &str| text.replace('"', "\\\"").replace('\n', "\\n");
        let body = format!(
            "{{\"certificate\":\"{}\",\"ariResponse\":\"{}\"}}",
            escaped(certificate_pem),
            escaped(json)
        );
        let url = format!("https://127.0.0.1:{}/set-renewal-info/", self.ports.port(1));
        let trusted = self.trusted();
        let args = ["-fsS", "--cacert", trusted.to_str().unwrap(), "-d", &body, &url];
        let _quiet = run("curl", args).succeeded();
    }

    fn ask(&self, port: usize, path: &str) -> Option<String> {
        let url = format!("https://127.0.0.1:{}{path}", self.ports.port(port));
        let trusted = self.trusted();
        let asked = run("curl", ["-fsS", "--cacert", trusted.to_str().unwrap(), &url]);
        (asked.code == 0).then(|| asked.text())
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        self.kill();
        let _gone = self.names.kill();
        let _gone = self.names.wait();
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            let tail = lines[lines.len().saturating_sub(60)..].join("\n");
            let _ = std::io::stderr().write_all(format!("--- Pebble\n{tail}\n---\n").as_bytes());
        }
        if std::env::var_os("BOLIDE_TEST_KEEP").is_none() {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

/// Creates an authority and a certificate for 127.0.0.1 and `localhost` that it signs.
fn certificate(dir: &Path) {
    let script = "cd \"$1\"
        new='openssl req -x509 -nodes -days 30 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1'
        $new -subj '/CN=Authority of the test' -keyout ca.key -out ca.pem \
            -addext basicConstraints=critical,CA:TRUE
        openssl req -nodes -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -subj /CN=localhost \
            -keyout leaf.key -out leaf.csr
        echo 'subjectAltName=DNS:localhost,IP:127.0.0.1' >leaf.ext
        openssl x509 -req -days 30 -in leaf.csr -CA ca.pem -CAkey ca.key -CAcreateserial \
            -extfile leaf.ext -out leaf.pem";
    let _quiet = run("sh", ["-ec", script, "sh", dir.to_str().unwrap()]).succeeded();
}

fn issuer(dir: &Path, ports: &TestPorts, options: &PebbleOptions) -> Child {
    let mut command = Command::new(tool("pebble"));
    command.arg("-config").arg(dir.join("pebble.json"));
    command.arg("-dnsserver").arg(format!("127.0.0.1:{}", ports.port(2)));
    command.env("PEBBLE_VA_NOSLEEP", "1");
    command.env("PEBBLE_WFE_NONCEREJECT", options.bad_nonces.to_string());
    command.env("PEBBLE_AUTHZREUSE", options.reused_authorizations.to_string());
    command.env("PEBBLE_ALTERNATE_ROOTS", options.alternate_roots.to_string());
    spawn(command, dir)
}

fn names(dir: &Path, ports: &TestPorts) -> Child {
    let mut command = Command::new(tool("pebble-challtestsrv"));
    command.arg("-dnsserver").arg(format!("127.0.0.1:{}", ports.port(2)));
    command.arg("-management").arg(format!("127.0.0.1:{}", ports.port(3)));
    command.args(["-defaultIPv4", "127.0.0.1", "-defaultIPv6", ""]);
    command.args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""]);
    spawn(command, dir)
}

fn spawn(mut command: Command, dir: &Path) -> Child {
    let log = fs::File::options().create(true).append(true).open(dir.join("log")).unwrap();
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    command.spawn().unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_answers_and_forgets_its_roots_with_a_restart() {
        let mut pebble = Pebble::start(PebbleOptions::validating(1, 2));
        assert!(pebble.ask(0, "/dir").unwrap().contains("newOrder"));
        let before = pebble.root(0);
        pebble.names("/add-a", "{\"host\":\"a.example\",\"addresses\":[\"127.0.0.2\"]}");
        pebble.restart();
        assert_ne!(pebble.root(0), before);
    }
}
