//! The site under test: configurations as text, compiled as by the binary, and its sockets and
//! logs.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bolide_base::FileRef;
use bolide_cache::{Store, StoreLimits};
use bolide_conf::model::{ListenAddress, ListenTransport};
use bolide_engine::Site;
use bolide_io::listen::Listener;
use bolide_tls::EarlyData;
use bolide_worker::{Generation, ListenSettings, OpenLogs};

use crate::chance::Chance;
use crate::dns;
use crate::kernel::{Kernel, logs};
use crate::pages::LOCATIONS;
use crate::php_pools;
use crate::scenario::AppProtocol;
use crate::secure_ports;
use crate::sim_io::DescriptorSource;
use crate::tls::streams;
use crate::upkeep;
use crate::webdav;

/// The path of the configuration in the simulated file system.
const CONF: &str = "/conf/nginx.conf";
/// How long requests wait for other nodes.
const NODES_PATIENCE: Duration = Duration::from_millis(700);
/// The path of both logs.
const LOG: &str = "/logs/log";

/// A random directive for a disk cache.
pub fn page_path(chance: &mut Chance) -> &'static str {
    let all = [
        "page_cache_path /pages levels=1:2;",
        "page_cache_path /pages levels=1:2 max_size=20k;",
        "page_cache_path /pages levels=1:2 max_size=200k;",
    ];
    all[chance.index(all.len())]
}

/// The parameters of a configuration.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The number of the configuration; `/version` returns it.
    pub number: u32,
    /// TCP ports, in the order of their `listen` directives.
    pub ports: Vec<u16>,
    /// The number of workers.
    pub workers: usize,
    /// `worker_connections`
    pub connections: u32,
    /// `gzip_comp_level`
    pub gzip_level: u8,
    /// Further directives of the `http` block.
    pub extra: String,
    /// The directive for the disk cache, or nothing.
    pub page_path: &'static str,
    /// Whether nginx's directives cache pages for minutes instead of seconds.
    pub keeps_long: bool,
    /// The protocol of the applications.
    pub app_protocol: AppProtocol,
    /// UDP ports.
    pub quic_ports: Vec<u16>,
    /// Directives for QUIC.
    pub quic: String,
    /// Whether the server accepts early data (0-RTT).
    pub early_data: EarlyData,
    /// Whether the site has the locations of [`webdav`].
    pub has_dav: bool,
    /// Whether the site has the locations of [`upkeep`].
    pub has_upkeep: bool,
    /// Whether the site has [`secure_ports::SECURE_PORTS`], and upstreams by TLS.
    pub has_secure_ports: bool,
    /// The resolver's directives and the group with a name, or nothing.
    pub resolver: String,
    /// The directives of PHP pools, or nothing.
    pub pools: String,
    /// A complete configuration that replaces all of these.
    pub own: Option<String>,
}

impl Layout {
    fn text(&self) -> String {
        let mut listens: String =
            self.ports.iter().map(|port| format!("        listen {port};\n")).collect();
        for port in &self.quic_ports {
            let _ = writeln!(listens, "        listen {port} quic;");
        }
        if !self.quic_ports.is_empty() {
            listens.push_str("        ssl_certificate c.pem; ssl_certificate_key k.pem;\n");
            listens.push_str(&self.quic);
        }
        let mut servers = String::new();
        if self.has_secure_ports {
            listens.push_str(secure_ports::FIRST_SERVER);
            servers = self.server(secure_ports::SECOND_SERVER);
        }
        servers.insert_str(0, &self.server(&listens));
        format!(
            "worker_processes {workers};
error_log {LOG} info; {main}
events {{ worker_connections {connections}; }}
http {{
    types {{ text/html html; text/plain txt; text/css css; application/octet-stream bin; }}
    default_type text/plain;
    log_format sim 'A $connection $connection_requests \"$request\" $status $body_bytes_sent';
    access_log {LOG} sim;
    gzip on; gzip_comp_level {gzip_level}; gzip_types text/plain text/css;
    keepalive_timeout 30s; client_header_timeout 20s; client_body_timeout 20s;
    send_timeout 20s; lingering_timeout 5s;
    client_body_buffer_size 4k; fastcgi_buffer_size 4k; fastcgi_buffers 4 4k;
    fastcgi_read_timeout 3s; fastcgi_send_timeout 3s; fastcgi_connect_timeout 3s;
    fastcgi_param QUERY_STRING $query_string; fastcgi_param REQUEST_METHOD $request_method;
    fastcgi_param CONTENT_LENGTH $content_length;
    fastcgi_param SCRIPT_FILENAME $request_filename;
    upstream app {{ server unix:/run/app.sock max_fails=0; server 192.0.2.7:9000 max_fails=0; }}
    upstream kept {{ server 192.0.2.8:9000 max_fails=0; keepalive 2; keepalive_timeout 10s; }}
    upstream crowded {{ server unix:/run/small.sock max_conns=2; queue 100 timeout=60s; }}
    fastcgi_cache_path /cache keys_zone=zone:1m;
    fastcgi_cache_path /few keys_zone=few:1m max_size=64k;
    limit_conn_zone $uri zone=held:32k; limit_req_zone $uri zone=late:1m rate=50r/s;
    {extra} {upkeep} {dav} {upstreams} {page_path} {resolver} {pools}
{servers}}}
",
            workers = self.workers,
            connections = self.connections,
            gzip_level = self.gzip_level,
            extra = self.extra,
            main = if self.has_upkeep { upkeep::MAIN } else { "" },
            upkeep = if self.has_upkeep { upkeep::HTTP } else { "" },
            dav = if self.has_dav { webdav::HTTP } else { "" },
            upstreams = if self.has_secure_ports { secure_ports::UPSTREAMS } else { "" },
            page_path = self.page_path,
            resolver = self.resolver,
            pools = self.pools,
        )
    }

    /// A server block with these `listen` directives.
    fn server(&self, listens: &str) -> String {
        format!(
            "    server {{
{listens}        http2 on;
        server_name site;
        root /www;
        index index.html;
        client_max_body_size 64k;
        location = /version {{ return 200 \"generation {number}\"; }}
        location /upload {{ return 200 \"thanks\"; }}
        location /paced/ {{ alias /www/; limit_rate 40k; limit_rate_after 5k;
            limit_conn held 60000; limit_req zone=late burst=100000; post_action @behind; }}
        location @behind {{ fastcgi_pass app; post_action /version; }}
        location /app {{ fastcgi_pass unix:/run/app.sock; }}
        location /esi {{ fastcgi_pass app; page_cache auto; }}
        location /stream {{ fastcgi_pass app; fastcgi_request_buffering off; }}
        location /kept {{ fastcgi_pass kept; fastcgi_keep_conn on; fastcgi_next_upstream off; }}
        location /tight {{ fastcgi_pass crowded; fastcgi_max_temp_file_size 0; }}
        location /heedless {{ fastcgi_pass app; fastcgi_ignore_client_abort on; }}
        location /try/ {{ try_files $uri /small.txt; }}
{upkeep}{dav}{gates}{names}{pools}{pages}    }}
",
            upkeep = if self.has_upkeep { upkeep::LOCATIONS } else { "" },
            dav = if self.has_dav { webdav::LOCATIONS } else { "" },
            gates = if self.has_secure_ports { secure_ports::LOCATIONS } else { "" },
            names = if self.resolver.is_empty() { "" } else { dns::LOCATIONS },
            pools = if self.pools.is_empty() { "" } else { php_pools::LOCATIONS },
            number = self.number,
            pages = match self.keeps_long {
                true =>
                    LOCATIONS.replace("valid 200 1s", "valid 200 5m").replace("200 2s", "200 5m"),
                false => LOCATIONS.to_owned(),
            },
        )
    }
}

/// The same configuration for applications that speak HTTP.
fn by_http(text: &str) -> String {
    let words = text
        .split_inclusive(';')
        .filter(|words| !words.contains("fastcgi_param ") && !words.contains("fastcgi_keep_conn "));
    let text = words.collect::<String>().replace("fastcgi_pass ", "proxy_pass http://");
    text.replace("fastcgi_", "proxy_")
}

/// The same over HTTP/2.
fn by_http2(text: &str) -> String {
    by_http(text).replacen("http {", "http { proxy_http_version 2; proxy_pass_trailers on;", 1)
}

/// The same with applications of another family with parameters.
fn by_family(text: &str, prefix: &str) -> String {
    let words = text.split_inclusive(';').filter(|words| !words.contains("fastcgi_keep_conn "));
    words.collect::<String>().replace("fastcgi_", prefix)
}

/// The same with applications of gRPC, which have some of the directives only.
fn by_grpc(text: &str) -> String {
    let known = [
        "buffer_size ",
        "connect_timeout ",
        "next_upstream ",
        "pass ",
        "read_timeout ",
        "send_timeout ",
    ];
    let mut out = String::new();
    for words in text.split_inclusive(';') {
        match words.split_once("fastcgi_") {
            Some((before, directive)) if known.iter().any(|name| directive.starts_with(name)) => {
                out += &format!("{before}grpc_{directive}");
            }
            Some((before, _)) => out += before,
            None => out += words,
        }
    }
    out
}

/// The simulated file system for reading the configuration.
struct Text<'a>(&'a str);

impl bolide_conf::ConfSource for Text<'_> {
    fn read(&self, path: &Path) -> std::io::Result<Vec<u8>> {
        if path == Path::new(CONF) {
            return Ok(self.0.as_bytes().to_vec());
        }
        Err(std::io::Error::from(std::io::ErrorKind::NotFound))
    }

    fn list(&self, _dir: &Path) -> std::io::Result<Vec<OsString>> {
        Ok(Vec::new())
    }

    fn resolve(&self, _host: &str) -> Vec<IpAddr> {
        Vec::new()
    }
}

/// The state that outlives configurations: sockets, keys and the store.
#[derive(Debug)]
pub struct SimSockets {
    descriptors: DescriptorSource,
    open: BTreeMap<(u16, usize), Arc<Listener>>,
    /// Real sockets that stand for the UDP sockets of each port: the server reads their address.
    bound: BTreeMap<u16, UdpSocket>,
    seed: u64,
    log: FileRef,
    /// Further log files.
    logs: BTreeMap<&'static str, FileRef>,
    keys: Arc<bolide_quic::SharedKeys>,
    /// The upstream groups of the current configuration.
    groups: Option<Arc<bolide_upstream::UpstreamGroups>>,
    /// The store of all configurations.
    store: Arc<Store>,
    /// The zones of all configurations.
    zones: bolide_engine::Zones,
}

impl SimSockets {
    /// No sockets so far.
    ///
    /// # Errors
    ///
    /// The real kernel has no descriptor left.
    pub fn new(
        descriptors: DescriptorSource,
        limits: StoreLimits,
        seed: u64,
    ) -> std::io::Result<Self> {
        let log = FileRef::new(descriptors.copy()?);
        let keys = Arc::new(bolide_quic::SharedKeys::from_secret([7; 32]));
        let store = Store::new(limits, 7);
        if seed.is_multiple_of(3) {
            // The server asks other nodes, and they never answer.
            store.sharing().set_patience(NODES_PATIENCE);
            store.sharing().open(1 << 20);
            store.sharing().set_answering(true);
        }
        let zones = bolide_engine::Zones::default();
        let (open, bound) = (BTreeMap::new(), BTreeMap::new());
        let logs = BTreeMap::new();
        Ok(Self { descriptors, open, bound, seed, log, logs, keys, groups: None, store, zones })
    }

    fn socket(
        &mut self,
        port: u16,
        worker: usize,
        kernel: &mut Kernel,
    ) -> Result<Arc<Listener>, String> {
        if let Some(open) = self.open.get(&(port, worker)) {
            return Ok(open.clone());
        }
        let fd = self.descriptors.copy().map_err(|error| error.to_string())?;
        let listener = Arc::new(Listener::adopt(fd));
        kernel.add_port(port, worker, listener.fd());
        self.open.insert((port, worker), listener.clone());
        Ok(listener)
    }

    /// The UDP socket of a worker for a port.
    fn udp_socket(
        &mut self,
        port: u16,
        worker: usize,
        kernel: &mut Kernel,
    ) -> Result<Arc<Listener>, String> {
        if let Some(open) = self.open.get(&(port, worker)) {
            return Ok(open.clone());
        }
        let words = |error: std::io::Error| error.to_string();
        let bound = match self.bound.entry(port) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(free) => free.insert(UdpSocket::bind(("127.0.0.1", 0)).map_err(words)?),
        };
        let fd = bound.try_clone().map_err(words)?.into();
        let listener = Arc::new(Listener::adopt(fd));
        kernel.net.keys = Some((*self.keys).clone());
        kernel.add_udp_port(port, worker, listener.fd());
        self.open.insert((port, worker), listener.clone());
        Ok(listener)
    }

    /// The settings of a configuration's listeners.
    fn listens(
        &self,
        layout: &Layout,
        site: &Arc<Site>,
        kernel: &Kernel,
    ) -> Result<Vec<ListenSettings>, String> {
        let Some(http) = &site.config().http else { return Ok(Vec::new()) };
        let acceptor = match layout.quic_ports.is_empty() {
            true => None,
            false => Some(crate::tls::acceptor(layout.early_data)?),
        };
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.seed.to_be_bytes());
        let listens = http.listens.iter().enumerate().map(|(at, listen)| {
            let tls = match listen.transport {
                ListenTransport::Quic => acceptor.clone(),
                ListenTransport::Tcp if listen.tls => {
                    Some(secure_ports::acceptor(site, at, kernel)?)
                }
                ListenTransport::Tcp => None,
            };
            let mut settings = ListenSettings::new(http, listen, tls);
            settings.quic.seed = Some(seed);
            Ok(settings)
        });
        listens.collect()
    }

    /// Compiles a configuration and opens its listeners.
    ///
    /// # Errors
    ///
    /// The messages of the parser or the compiler.
    pub fn generation(
        &mut self,
        layout: &Layout,
        kernel: &mut Kernel,
    ) -> Result<Arc<Generation>, String> {
        let text = match (&layout.own, layout.app_protocol) {
            (Some(own), _) => own.clone(),
            (None, AppProtocol::FastCgi | AppProtocol::Lsapi) => layout.text(),
            (None, AppProtocol::Http) => by_http(&layout.text()),
            (None, AppProtocol::Uwsgi) => by_family(&layout.text(), "uwsgi_"),
            (None, AppProtocol::Scgi) => by_family(&layout.text(), "scgi_"),
            (None, AppProtocol::Grpc) => by_grpc(&layout.text()),
            (None, AppProtocol::Http2) => by_http2(&layout.text()),
        };
        let options = bolide_conf::LoadOptions {
            prefix: "/conf".into(),
            ..bolide_conf::LoadOptions::default()
        };
        let outcome = bolide_conf::parse(&Text(&text), Path::new(CONF), &options);
        let config = outcome.config.ok_or_else(|| format!("{:?}", outcome.diagnostics))?;
        let site = Site::compile(Arc::new(config)).map_err(|all| format!("{all:?}"))?;
        let site = site.with_store(Arc::clone(&self.store)).with_zones(&self.zones)?;
        let http = site.config().http.as_ref().ok_or("no http block")?;
        let origin_tls = site
            .origin_tls()
            .iter()
            .map(|conf| streams::to_upstream(conf.verify, conf.certificate.is_some()));
        let origin_tls = origin_tls.collect::<Result<_, _>>()?;
        let groups =
            Arc::new(bolide_upstream::UpstreamGroups::new(&http.upstreams, self.groups.as_deref()));
        self.groups = Some(Arc::clone(&groups));
        site.come_into_force(&self.zones);
        let site = Arc::new(site);
        let listens = self.listens(layout, &site, kernel)?;
        let http = site.config().http.as_ref().ok_or("no http block")?;
        let mut sockets = Vec::new();
        for worker in 0..layout.workers {
            let mut own = Vec::new();
            for (place, listen) in http.listens.iter().enumerate() {
                let ListenAddress::Inet(at) = &listen.address else {
                    return Err("not TCP".to_owned());
                };
                let socket = match listen.transport {
                    ListenTransport::Quic => self.udp_socket(at.port(), worker, kernel)?,
                    ListenTransport::Tcp => self.socket(at.port(), worker, kernel)?,
                };
                own.push((place, socket));
            }
            sockets.push(own);
        }
        let connections_max = site.config().events.worker_connections;
        let addresses = bolide_worker::Addresses::new(&http.listens);
        Ok(Arc::new(Generation {
            number: u64::from(layout.number),
            site,
            groups,
            origin_tls,
            listens,
            addresses,
            sockets: bolide_worker::Handout::new(sockets),
            quic_keys: self.keys.clone(),
            connections_max,
        }))
    }

    /// The log files of every configuration.
    #[must_use]
    pub fn logs(&self) -> OpenLogs {
        let file = bolide_worker::LogFile::new(self.log.clone(), true);
        let mut all = HashMap::from([(LOG.as_bytes().to_vec(), file)]);
        for (name, is_regular) in logs::NAMED {
            if let Some(file) = self.logs.get(name) {
                let file = bolide_worker::LogFile::new(file.clone(), is_regular);
                all.insert(name.as_bytes().to_vec(), file);
            }
        }
        Arc::new(all)
    }

    /// Opens the further logs, or reopens them.
    ///
    /// # Errors
    ///
    /// The real kernel has no descriptor left.
    pub fn open_logs(&mut self, kernel: &mut Kernel) -> std::io::Result<()> {
        kernel.logs.rotate();
        for (name, _) in logs::NAMED {
            let file = FileRef::new(self.descriptors.copy()?);
            kernel.logs.register(name, file.clone(), kernel.nanos);
            self.logs.insert(name, file);
        }
        Ok(())
    }

    /// The upstream groups of the current configuration.
    #[must_use]
    pub const fn groups(&self) -> Option<&Arc<bolide_upstream::UpstreamGroups>> {
        self.groups.as_ref()
    }

    /// The zones of all configurations.
    #[must_use]
    pub const fn zones(&self) -> &bolide_engine::Zones {
        &self.zones
    }

    /// The store of all configurations.
    #[must_use]
    pub const fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Drops the sockets of a port that no configuration has any more.
    pub fn forget(&mut self, port: u16) {
        self.open.retain(|(number, _), _| *number != port);
    }
}
