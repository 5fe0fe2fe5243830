//! A network with virtual time between endpoints and the library's clients. A seed decides how it
//! delays, loses, reorders and duplicates datagrams.

#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "an epoch for the library"
)]

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bolide_base::prng::Prng;
use bolide_base::{Instant, Now};
use bytes::{Bytes, BytesMut};
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir,
    EndpointConfig, Event, ReadError, StreamEvent, StreamId, TokenMemoryCache, TransportConfig,
    VarInt,
};
use rcgen::{CertificateParams, KeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

use crate::{
    ConnId, Endpoint, QuicArrival, QuicClock, QuicEvent, QuicOutgoing, QuicSettings, ReadEnd, Rest,
    SharedKeys,
};

/// Accepts any certificate.
#[derive(Debug)]
struct Believer;

impl ServerCertVerifier for Believer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

/// Whether the server accepts 0-RTT.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Early {
    Off,
    On,
}

pub(super) fn server_tls(early: Early) -> Arc<rustls::ServerConfig> {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
    let cert = params.self_signed(&key).unwrap();
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![cert.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    config.alpn_protocols = vec![b"h3".to_vec()];
    if early == Early::On {
        config.max_early_data_size = u32::MAX;
    }
    Arc::new(config)
}

pub(super) fn client_tls() -> Arc<QuicClientConfig> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Believer))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h3".to_vec()];
    config.enable_early_data = true;
    Arc::new(QuicClientConfig::try_from(config).unwrap())
}

/// The response to a request: as many bytes as its text says, each derived from its position.
pub(super) fn answer(request: &[u8]) -> Vec<u8> {
    let len: usize = std::str::from_utf8(request).unwrap().parse().unwrap();
    (0..len).map(|at| (at % 251) as u8).collect()
}

/// The library's client with its requests and responses.
pub(super) struct Client {
    endpoint: quinn_proto::Endpoint,
    pub(super) conn: Option<(ConnectionHandle, Connection)>,
    pub(super) addr: SocketAddr,
    pub(super) got: BTreeMap<StreamId, Vec<u8>>,
    pub(super) finished: Vec<StreamId>,
    pub(super) stopped: Vec<(StreamId, u64)>,
    pub(super) reset: Vec<(StreamId, u64)>,
    pub(super) lost: Option<ConnectionError>,
    pub(super) connected: bool,
    /// Whether responses are read as they arrive.
    pub(super) reads: bool,
    pub(super) sent: Vec<Vec<u8>>,
}

impl Client {
    pub(super) fn conn(&mut self) -> &mut Connection {
        &mut self.conn.as_mut().unwrap().1
    }

    pub(super) fn ask(&mut self, request: &str) -> StreamId {
        let id = self.conn().streams().open(Dir::Bi).unwrap();
        self.conn().send_stream(id).write(request.as_bytes()).unwrap();
        self.conn().send_stream(id).finish().unwrap();
        id
    }

    fn read(&mut self, id: StreamId) {
        if !self.reads {
            return;
        }
        let conn = &mut self.conn.as_mut().unwrap().1;
        let mut recv = conn.recv_stream(id);
        let Ok(mut chunks) = recv.read(true) else { return };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => self.got.entry(id).or_default().extend_from_slice(&chunk.bytes),
                Ok(None) => {
                    self.finished.push(id);
                    break;
                }
                Err(ReadError::Blocked) => break,
                Err(ReadError::Reset(code)) => {
                    self.reset.push((id, code.into()));
                    break;
                }
            }
        }
        let _ = chunks.finalize();
    }

    pub(super) fn read_all(&mut self, ids: &[StreamId]) {
        self.reads = true;
        ids.iter().for_each(|id| self.read(*id));
    }

    fn poll(&mut self) {
        while let Some(event) = self.conn.as_mut().and_then(|(_, conn)| conn.poll()) {
            match event {
                Event::Connected => self.connected = true,
                Event::ConnectionLost { reason } => self.lost = Some(reason),
                Event::Stream(StreamEvent::Readable { id }) => self.read(id),
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = self.conn().streams().accept(dir) {
                        self.read(id);
                    }
                }
                Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                    self.stopped.push((id, error_code.into()));
                }
                _ => {}
            }
        }
        let Some((handle, conn)) = self.conn.as_mut() else { return };
        while let Some(event) = conn.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                conn.handle_event(event);
            }
        }
    }
}

/// A server with the state of its small application.
pub(super) struct Server {
    pub(super) endpoint: Endpoint,
    pub(super) events: Vec<(ConnId, QuicEvent)>,
    requests: BTreeMap<(u64, u64), Vec<u8>>,
    pub(super) writing: BTreeMap<(u64, u64), Bytes>,
    /// Streams that were read before the end of their handshake.
    pub(super) early: Vec<u64>,
    pub(super) resets: Vec<(u64, u64)>,
    pub(super) trains: usize,
    pub(super) datagrams: usize,
    pub(super) bytes: usize,
    pub(super) sent: Vec<Vec<u8>>,
}

impl Server {
    fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            events: Vec::new(),
            requests: BTreeMap::new(),
            writing: BTreeMap::new(),
            early: Vec::new(),
            resets: Vec::new(),
            trains: 0,
            datagrams: 0,
            bytes: 0,
            sent: Vec::new(),
        }
    }

    fn poll(&mut self, id: ConnId) {
        while let Some(event) = self.endpoint.poll_event(id) {
            match event {
                QuicEvent::StreamReadable(stream) => self.read(id, stream),
                QuicEvent::StreamWritable(stream) => self.write(id, stream),
                _ => {}
            }
            self.events.push((id, event));
        }
    }

    fn read(&mut self, id: ConnId, stream: u64) {
        let conn = self.endpoint.conn(id).unwrap();
        let mut chunks = Vec::new();
        let end = conn.read(stream, 1 << 20, &mut chunks);
        if conn.is_early() && !chunks.is_empty() {
            self.early.push(stream);
        }
        let request = self.requests.entry((id.to_bits(), stream)).or_default();
        chunks.iter().for_each(|chunk| request.extend_from_slice(chunk));
        match end {
            ReadEnd::Finished if stream & 2 == 0 => {
                let body = Bytes::from(answer(request));
                self.writing.insert((id.to_bits(), stream), body);
                self.write(id, stream);
            }
            ReadEnd::Reset(code) => self.resets.push((stream, code)),
            _ => {}
        }
    }

    pub(super) fn write(&mut self, id: ConnId, stream: u64) {
        let Some(body) = self.writing.get_mut(&(id.to_bits(), stream)) else { return };
        let Some(conn) = self.endpoint.conn(id) else { return };
        let gone = conn.write(stream, body).is_err();
        assert_eq!(conn.room(stream) == 0, !gone && !body.is_empty(), "a short write blocks");
        if gone || body.is_empty() {
            let _ = conn.finish(stream);
            self.writing.remove(&(id.to_bits(), stream));
        }
    }

    pub(super) fn has(&self, wanted: &QuicEvent) -> bool {
        self.events.iter().any(|(_, event)| event == wanted)
    }
}

/// Faults of the network in percent.
#[derive(Clone, Copy, Default)]
pub(super) struct Weather {
    pub(super) loss: u64,
    pub(super) twice: u64,
    pub(super) late: u64,
}

struct Datagram {
    to: SocketAddr,
    from: SocketAddr,
    bytes: Vec<u8>,
    ecn: u8,
}

pub(super) struct Net {
    pub(super) clock: QuicClock,
    epoch: std::time::Instant,
    pub(super) nanos: u64,
    prng: Prng,
    pub(super) weather: Weather,
    flying: BTreeMap<u64, Datagram>,
    queue: BinaryHeap<Reverse<(u64, u64)>>,
    count: u64,
    pub(super) server_addr: SocketAddr,
    pub(super) server: Server,
    pub(super) clients: Vec<Client>,
    pub(super) client_tls: Arc<QuicClientConfig>,
    /// Where clients keep the tokens that they were sent, if they share such a place.
    pub(super) tokens: Option<Arc<TokenMemoryCache>>,
    pub(super) keys: SharedKeys,
    out: QuicOutgoing,
    pub(super) segments: usize,
}

impl Net {
    pub(super) fn new(seed: u64, settings: &QuicSettings) -> Self {
        Self::with(seed, settings, Early::Off, 0)
    }

    pub(super) fn with(seed: u64, settings: &QuicSettings, early: Early, worker: u8) -> Self {
        let epoch = std::time::Instant::now();
        let clock = QuicClock::starting_at(epoch);
        let keys = SharedKeys::from_secret([7; 32]);
        let endpoint = Endpoint::new(settings, server_tls(early), worker, &keys, clock).unwrap();
        Self {
            clock,
            epoch,
            nanos: 1_000_000_000,
            prng: Prng::new(seed),
            weather: Weather::default(),
            flying: BTreeMap::new(),
            queue: BinaryHeap::new(),
            count: 0,
            server_addr: SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1), 443)),
            server: Server::new(endpoint),
            clients: Vec::new(),
            client_tls: client_tls(),
            tokens: None,
            keys,
            out: QuicOutgoing::default(),
            segments: 10,
        }
    }

    pub(super) fn now(&self) -> Now {
        let mono = Instant::from_nanos(self.nanos);
        Now { mono, unix_millis: 1_700_000_000_000 + self.nanos / 1_000_000 }
    }

    fn library_now(&self) -> std::time::Instant {
        self.epoch + Duration::from_nanos(self.nanos)
    }

    pub(super) fn connect(&mut self) -> usize {
        let mut endpoint =
            quinn_proto::Endpoint::new(Arc::new(EndpointConfig::default()), None, true, None);
        let mut config = ClientConfig::new(Arc::<QuicClientConfig>::clone(&self.client_tls));
        let mut transport = TransportConfig::default();
        transport.stream_receive_window(VarInt::from_u32(64 * 1024));
        config.transport_config(Arc::new(transport));
        if let Some(tokens) = &self.tokens {
            config.token_store(Arc::<TokenMemoryCache>::clone(tokens));
        }
        let now = self.library_now();
        let conn = endpoint.connect(now, config, self.server_addr, "a.example").unwrap();
        let port = 5000 + self.clients.len() as u16;
        self.clients.push(Client {
            endpoint,
            conn: Some(conn),
            addr: SocketAddr::from((Ipv4Addr::new(10, 0, 0, 2), port)),
            got: BTreeMap::new(),
            finished: Vec::new(),
            stopped: Vec::new(),
            reset: Vec::new(),
            lost: None,
            connected: false,
            reads: true,
            sent: Vec::new(),
        });
        self.clients.len() - 1
    }

    fn send(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8], ecn: u8) {
        let copies = 1 + usize::from(self.prng.below(100) < self.weather.twice);
        for _ in 0..copies {
            if self.prng.below(100) < self.weather.loss {
                continue;
            }
            let late = self.prng.below(100) < self.weather.late;
            let delay = 10_000_000 + if late { self.prng.below(40_000_000) } else { 0 };
            self.count += 1;
            self.queue.push(Reverse((self.nanos + delay, self.count)));
            let datagram = Datagram { to, from, bytes: bytes.to_vec(), ecn };
            self.flying.insert(self.count, datagram);
        }
    }

    fn flush(&mut self) {
        let trains = self.out.trains().len();
        self.server.trains += trains;
        for index in 0..trains {
            let train = &self.out.trains()[index];
            let (remote, ecn) = (train.remote, train.ecn);
            let parts: Vec<Vec<u8>> =
                train.bytes.chunks(train.segment).map(<[u8]>::to_vec).collect();
            for bytes in parts {
                self.server.datagrams += 1;
                self.server.bytes += bytes.len();
                self.server.sent.push(bytes.clone());
                self.send(self.server_addr, remote, &bytes, ecn);
            }
        }
        self.out.clear();
    }

    fn speak(&mut self) {
        let now = self.library_now();
        for index in 0..self.clients.len() {
            self.clients[index].poll();
            let mut buffer = Vec::new();
            while let Some(transmit) = self.clients[index]
                .conn
                .as_mut()
                .and_then(|(_, conn)| conn.poll_transmit(now, 1, &mut buffer))
            {
                let bytes = std::mem::take(&mut buffer);
                self.clients[index].sent.push(bytes.clone());
                let ecn = transmit.ecn.map_or(0, |ecn| ecn as u8);
                self.send(self.clients[index].addr, self.server_addr, &bytes, ecn);
            }
        }
        for id in self.server.endpoint.ids().collect::<Vec<_>>() {
            self.server.poll(id);
            let now = self.now();
            while self.server.endpoint.transmit(id, now, self.segments, &mut self.out) == Rest::More
            {
            }
            self.server.poll(id);
        }
        self.flush();
    }

    fn next(&mut self) -> Option<u64> {
        let flying = self.queue.peek().map(|Reverse((at, _))| *at);
        let since = |at: std::time::Instant| at.duration_since(self.epoch).as_nanos() as u64;
        let clients = self.clients.iter_mut().filter_map(|client| client.conn.as_mut());
        let clients = clients.filter_map(|(_, conn)| conn.poll_timeout()).map(since).min();
        let ids: Vec<_> = self.server.endpoint.ids().collect();
        let servers = ids.into_iter().filter_map(|id| self.server.endpoint.deadline(id));
        let servers = servers.map(Instant::as_nanos).min();
        [flying, clients, servers].into_iter().flatten().min()
    }

    /// Delivers `bytes` to the server from the address `from`.
    pub(super) fn deliver(&mut self, from: SocketAddr, bytes: &[u8], ecn: u8) -> Option<ConnId> {
        let now = self.now();
        let arrival = QuicArrival { remote: from, local: None, ecn };
        let id = self.server.endpoint.receive(now, arrival, bytes, &mut self.out);
        if let Some(id) = id {
            self.server.poll(id);
        }
        self.flush();
        id
    }

    fn arrive(&mut self, datagram: &Datagram) {
        if datagram.to == self.server_addr {
            self.deliver(datagram.from, &datagram.bytes, datagram.ecn);
            return;
        }
        let now = self.library_now();
        for client in self.clients.iter_mut().filter(|client| client.addr == datagram.to) {
            let mut buffer = Vec::new();
            let data = BytesMut::from(&datagram.bytes[..]);
            let event = client.endpoint.handle(now, datagram.from, None, None, data, &mut buffer);
            if let (Some(DatagramEvent::ConnectionEvent(_, event)), Some((_, conn))) =
                (event, client.conn.as_mut())
            {
                conn.handle_event(event);
            }
        }
    }

    /// Lets `millis` of virtual time pass.
    pub(super) fn run(&mut self, millis: u64) {
        let end = self.nanos + millis * 1_000_000;
        let mut steps = 0;
        loop {
            self.speak();
            let Some(at) = self.next().filter(|at| *at <= end) else {
                self.nanos = end;
                return;
            };
            steps += 1;
            assert!(steps < 1_000_000, "the network comes to rest");
            self.nanos = self.nanos.max(at);
            while self.queue.peek().is_some_and(|Reverse((at, _))| *at <= self.nanos) {
                let Some(Reverse((_, number))) = self.queue.pop() else { break };
                let datagram = self.flying.remove(&number).unwrap();
                self.arrive(&datagram);
            }
            let now = self.library_now();
            for (_, conn) in self.clients.iter_mut().filter_map(|client| client.conn.as_mut()) {
                conn.handle_timeout(now);
            }
            for id in self.server.endpoint.ids().collect::<Vec<_>>() {
                let due = self.server.endpoint.deadline(id);
                if due.is_some_and(|at| at.as_nanos() <= self.nanos) {
                    let now = self.now();
                    self.server.endpoint.handle_deadline(id, now);
                }
            }
        }
    }

    /// The only connection of the server.
    pub(super) fn only(&self) -> ConnId {
        let mut ids = self.server.endpoint.ids();
        let id = ids.next().unwrap();
        assert!(ids.next().is_none(), "one connection");
        id
    }
}
