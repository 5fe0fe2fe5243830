//! Connections: by address or socket, through TLS, by what sentinels and nodes of a cluster say.

use std::fmt;
use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ProtocolVersion, RedisConnectionInfo, RedisError};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use crate::line::{Driver, Line};
use crate::metered::{Metered, ValkeyStream};
use crate::settings::{ValkeyPlace, ValkeySettings};
use crate::{ValkeyFault, ValkeyFaultKind, replies};

/// LIMIT: how often nodes of a cluster may send on to others.
const REDIRECTS_MAX: usize = 5;

/// Opens a connection in the place of the system.
pub type ValkeyDial = dyn Fn(&ValkeyPlace) -> std::io::Result<Box<dyn ValkeyStream>> + Send + Sync;

/// Opens connections.
pub struct Connector {
    settings: ValkeySettings,
    tls: Option<Arc<ClientConfig>>,
    dial: Option<Box<ValkeyDial>>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Where a connection was sent on to, or why there is none.
enum Astray {
    Elsewhere(ValkeyPlace),
    Failed(ValkeyFault),
}

impl Connector {
    /// # Errors
    ///
    /// The authorities are none.
    pub fn new(settings: ValkeySettings) -> Result<Self, String> {
        let tls = settings.authorities.as_deref().map(tls).transpose()?;
        Ok(Self { settings, tls, dial: None })
    }

    /// One whose connections `dial` opens.
    #[must_use]
    pub fn dialing(settings: ValkeySettings, dial: Box<ValkeyDial>) -> Self {
        Self { settings, tls: None, dial: Some(dial) }
    }

    /// Two connections to the server that keeps the stream: one to wait on, and one to work with.
    ///
    /// # Errors
    ///
    /// No server can be reached, or it refuses.
    pub async fn open(&self) -> Result<(Line, Line), ValkeyFault> {
        let mut last = ValkeyFault::broken("there is no server");
        for place in &self.settings.places {
            match self.open_at(place).await {
                Ok(lines) => return Ok(lines),
                Err(fault) => last = fault,
            }
        }
        Err(last)
    }

    /// One more connection to the server of another one.
    ///
    /// # Errors
    ///
    /// It cannot be reached, or it refuses.
    pub async fn another(&self, like: &Line) -> Result<Line, ValkeyFault> {
        self.line(like.place()).await
    }

    async fn open_at(&self, place: &ValkeyPlace) -> Result<(Line, Line), ValkeyFault> {
        let mut place = match &self.settings.master {
            Some(name) => self.ask_sentinel(place, name).await?,
            None => place.clone(),
        };
        for _ in 0..=REDIRECTS_MAX {
            match self.probe(&place).await {
                Ok(line) => return Ok((self.line(&place).await?, line)),
                Err(Astray::Elsewhere(next)) => place = next,
                Err(Astray::Failed(fault)) => return Err(fault),
            }
        }
        Err(ValkeyFault::broken(format!("{place}: sent on from node to node too often")))
    }

    /// A connection to the node that has the key.
    async fn probe(&self, place: &ValkeyPlace) -> Result<Line, Astray> {
        let line = self.line(place).await.map_err(Astray::Failed)?;
        match line.probe().await {
            Ok(()) => Ok(line),
            Err(error) => {
                Err(match error.redirect_node().map(|(text, _)| elsewhere(text, place)) {
                    Some(Some(next)) => Astray::Elsewhere(next),
                    _ => Astray::Failed(fault(place, &error)),
                })
            }
        }
    }

    async fn line(&self, place: &ValkeyPlace) -> Result<Line, ValkeyFault> {
        let (connection, driver) = self.connect(place, true).await?;
        Ok(Line::new(connection, driver, place.clone(), &self.settings))
    }

    /// Where the server is that a sentinel has for a name.
    async fn ask_sentinel(
        &self,
        place: &ValkeyPlace,
        name: &str,
    ) -> Result<ValkeyPlace, ValkeyFault> {
        // A sentinel has users and passwords of its own; it is asked without.
        let (mut connection, _driver) = self.connect(place, false).await?;
        let mut command = redis::cmd("SENTINEL");
        command.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
        let asked = self.in_time(place, command.query_async(&mut connection)).await?;
        let found = asked.map_err(|error| fault(place, &error))?;
        replies::place(&found).ok_or_else(|| {
            ValkeyFault::broken(format!("sentinel {place}: it knows no server \"{name}\""))
        })
    }

    async fn connect(
        &self,
        place: &ValkeyPlace,
        with_user: bool,
    ) -> Result<(MultiplexedConnection, Driver), ValkeyFault> {
        let stream = self.in_time(place, self.stream(place)).await?;
        let stream = stream.map_err(|text| ValkeyFault::broken(format!("{place}: {text}")))?;
        let (stream, overrun) = Metered::new(stream);
        let mut info = RedisConnectionInfo::default()
            .set_protocol(ProtocolVersion::RESP2)
            .set_skip_set_lib_name();
        if let Some(user) = self.settings.user.as_ref().filter(|_| with_user) {
            info = info.set_username(user);
        }
        if let Some(password) = self.settings.password.as_ref().filter(|_| with_user) {
            info = info.set_password(password);
        }
        // Each command has its own limit of time.
        let config = AsyncConnectionConfig::new().set_response_timeout(None);
        let made = MultiplexedConnection::new_with_config(&info, stream, config);
        let made = self.in_time(place, made).await?;
        let (connection, driver) = made.map_err(|error| fault(place, &error))?;
        Ok((connection, Driver::new(tokio::spawn(driver), overrun)))
    }

    async fn stream(&self, place: &ValkeyPlace) -> Result<Box<dyn ValkeyStream>, String> {
        let failed = |error: std::io::Error| error.to_string();
        if let Some(dial) = &self.dial {
            return dial(place).map_err(failed);
        }
        let (host, port) = match place {
            ValkeyPlace::Unix(path) => {
                return Ok(Box::new(UnixStream::connect(path).await.map_err(failed)?));
            }
            ValkeyPlace::Tcp(host, port) => (host, *port),
        };
        // It tries all addresses of the name.
        let stream = TcpStream::connect((host.as_str(), port)).await.map_err(failed)?;
        let _slower = stream.set_nodelay(true);
        let Some(tls) = &self.tls else { return Ok(Box::new(stream)) };
        let name = ServerName::try_from(host.clone()).map_err(|error| error.to_string())?;
        let stream = TlsConnector::from(tls.clone()).connect(name, stream).await;
        Ok(Box::new(stream.map_err(failed)?))
    }

    async fn in_time<T>(
        &self,
        place: &ValkeyPlace,
        what: impl Future<Output = T>,
    ) -> Result<T, ValkeyFault> {
        let limited = tokio::time::timeout(self.settings.timeout, what).await;
        limited.map_err(|_| ValkeyFault::broken(format!("{place}: no answer in time")))
    }
}

/// The node that another one sends on to, by `HOST:PORT`; an empty host is that of the node itself.
fn elsewhere(text: &str, place: &ValkeyPlace) -> Option<ValkeyPlace> {
    let (host, port) = text.rsplit_once(':')?;
    let host = match (host.trim_matches(['[', ']']), place) {
        ("", ValkeyPlace::Tcp(host, _)) => host.clone(),
        ("", ValkeyPlace::Unix(_)) => return None,
        (host, _) => host.to_owned(),
    };
    Some(ValkeyPlace::Tcp(host, port.parse().ok()?))
}

/// What a server or the way to it has against a command.
pub(crate) fn fault(place: &ValkeyPlace, error: &RedisError) -> ValkeyFault {
    let kind = match error.code() {
        Some("OOM") => ValkeyFaultKind::Full,
        Some("WRONGTYPE" | "NOPERM") => ValkeyFaultKind::Refused,
        Some("ERR") if is_unknown_command(error) => ValkeyFaultKind::Refused,
        _ => ValkeyFaultKind::Broken,
    };
    // Servers may say anything: one line, not too long.
    let said: String = error.to_string().chars().filter(|c| !c.is_control()).take(200).collect();
    ValkeyFault { kind, text: format!("{place}: {said}") }
}

/// Whether the server has no such command: some that speak its language have no scripts.
fn is_unknown_command(error: &RedisError) -> bool {
    error.detail().is_some_and(|said| said.starts_with("unknown command"))
}

fn tls(authorities: &[u8]) -> Result<Arc<ClientConfig>, String> {
    let found = pem::parse_many(authorities).map_err(|error| error.to_string())?;
    let found = found.into_iter().filter(|block| block.tag().ends_with("CERTIFICATE"));
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.map(|block| block.into_contents().into()));
    if roots.is_empty() {
        return Err("there is no certificate in it".to_owned());
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

#[cfg(test)]
mod tests {
    use super::elsewhere;
    use crate::settings::ValkeyPlace;

    #[test]
    fn a_node_sends_on_by_address_or_port_alone() {
        let here = ValkeyPlace::Tcp("10.0.0.1".to_owned(), 1);
        let to = |text: &str| elsewhere(text, &here).map(|place| place.to_string());
        for (text, wanted) in [
            ("10.0.0.2:7000", Some("10.0.0.2:7000")),
            (":7000", Some("10.0.0.1:7000")),
            ("::1:7000", Some("[::1]:7000")),
            ("[::1]:7000", Some("[::1]:7000")),
            ("10.0.0.2", None),
            ("a:99999", None),
        ] {
            assert_eq!(to(text).as_deref(), wanted, "{text}");
        }
        assert_eq!(elsewhere(":1", &ValkeyPlace::Unix("/s".into())), None);
    }
}
