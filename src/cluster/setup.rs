//! A `cluster` block with the content of its files.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use bolide_conf::model::{ClusterAddress, ClusterConf};
use bolide_valkey::{Connector, ValkeyPlace, ValkeySettings};

use crate::otel::system_authorities;

/// LIMIT: bytes of a password file.
const PASSWORD_MAX: usize = 4096;

/// The setup; if two are equal, no new thread is needed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ClusterSetup {
    pub(super) conf: ClusterConf,
    pub(super) settings: ValkeySettings,
    pub(super) node: String,
}

impl ClusterSetup {
    /// # Errors
    ///
    /// A file cannot be read.
    pub(super) fn read(conf: &ClusterConf) -> Result<Self, String> {
        let node = conf.node.clone().unwrap_or_else(bolide_io::process::hostname);
        if node.is_empty() {
            return Err("the machine has no name: write \"node\" in \"cluster\"".to_owned());
        }
        let password = match (&conf.password, &conf.password_file) {
            (Some(secret), _) => Some(secret.0.clone()),
            (None, Some(path)) => Some(password(path)?),
            (None, None) => None,
        };
        let (places, master) = match &conf.address {
            ClusterAddress::Unix(path) => (vec![ValkeyPlace::Unix(path.clone())], None),
            ClusterAddress::Tcp { hosts, master, .. } => {
                let of = |(host, port): &(String, u16)| ValkeyPlace::Tcp(host.clone(), *port);
                (hosts.iter().map(of).collect(), master.clone())
            }
        };
        let authorities = match conf.address.is_secure() {
            true => Some(authorities(conf.trusted_certificate.as_deref())?),
            false => None,
        };
        let settings = ValkeySettings {
            places,
            master,
            authorities,
            user: conf.user.clone(),
            password,
            timeout: conf.reply_timeout,
            namespace: conf.namespace.clone(),
        };
        // The CA certificates are checked before anything changes.
        Connector::new(settings.clone()).map_err(|why| match &conf.trusted_certificate {
            Some(path) => format!("\"trusted_certificate\" \"{}\": {why}", path.display()),
            None => format!("the authorities of the system for \"cluster\": {why}"),
        })?;
        // The other thread uses those.
        let conf = ClusterConf { secrets_keys: Vec::new(), ..conf.clone() };
        Ok(Self { conf, settings, node })
    }
}

/// The address as text.
pub(super) fn address(settings: &ValkeySettings) -> String {
    let places: Vec<_> = settings.places.iter().map(ToString::to_string).collect();
    match &settings.master {
        Some(name) => format!("{} by the sentinels {}", name, places.join(", ")),
        None => places.join(", "),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| {
        format!("open() \"{}\" failed ({})", path.display(), bolide_base::errno::describe(&error))
    })
}

fn authorities(trusted: Option<&Path>) -> Result<Vec<u8>, String> {
    match trusted {
        Some(path) => read(path),
        None => {
            let found = system_authorities();
            let found = found.ok_or("no authorities of the system are found for \"cluster\"")?;
            read(&found)
        }
    }
}

fn password(path: &Path) -> Result<String, String> {
    let bytes = read(path)?;
    let shown = || String::from_utf8_lossy(path.as_os_str().as_bytes()).into_owned();
    if bytes.len() > PASSWORD_MAX {
        return Err(format!("\"password_file\" \"{}\" is too large", shown()));
    }
    let text = String::from_utf8_lossy(&bytes);
    match text.lines().next().filter(|line| !line.is_empty()) {
        Some(line) => Ok(line.to_owned()),
        None => Err(format!("\"password_file\" \"{}\" has no password", shown())),
    }
}
