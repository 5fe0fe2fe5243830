//! The scripts of leases, by a real Valkey and by the simulated one.

use std::sync::Arc;

use bolide_base::prng::Prng;
use bolide_testkit::{Valkey, WallClock, wait_until};
use bolide_valkey::{Connector, KeptValue, Line, ValkeyPlace, ValkeySettings};

use super::below;
use super::member::settings;
use super::server::Server;

/// How long a lease lasts.
const LEASE_MS: u64 = 60_000;
const NAMES: [&str; 3] = ["order:a", "order:b", "order:c"];

/// A Valkey of each kind, with one clock.
struct Pair {
    valkey: Valkey,
    clock: WallClock,
    server: Arc<Server>,
    real: Line,
    simulated: Line,
    offset: i64,
}

impl Pair {
    async fn connect() -> Self {
        let clock = WallClock::default();
        let valkey = Valkey::launched_by(&clock.words(), &[]);
        let places = vec![ValkeyPlace::Tcp("127.0.0.1".to_owned(), valkey.port())];
        let timeout = std::time::Duration::from_mins(1);
        let by_port = ValkeySettings { places, timeout, ..settings() };
        let (real, _) = Connector::new(by_port).unwrap().open().await.unwrap();
        let server = Server::new(1);
        let own = server.clone();
        let dial = Box::new(move |_: &ValkeyPlace| own.dial(0));
        let (simulated, _) = Connector::dialing(settings(), dial).open().await.unwrap();
        Self { valkey, clock, server, real, simulated, offset: 0 }
    }

    fn pass(&mut self, seconds: i64) {
        self.offset += seconds;
        self.clock.set(self.offset);
        self.server.state().jump_ms = self.offset * 1000;
        // It looks at the clock a few times in a second.
        wait_until("Valkey to see the time", || {
            let info = self.valkey.cli(&["info", "server"]).text();
            let line = info.lines().find_map(|line| line.strip_prefix("server_time_usec:"));
            let seen: i64 = line.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
            let now = (bolide_io::process::now().unix_millis / 1000) as i64 + self.offset;
            (seen / 1_000_000).abs_diff(now) <= 5
        });
    }

    async fn take(&self, leases: &[(&str, &str)]) -> Vec<bool> {
        let leases = owned(leases);
        let taken = self.real.take_leases(&leases, LEASE_MS).await.unwrap();
        let same = self.simulated.take_leases(&leases, LEASE_MS).await.unwrap();
        assert_eq!(taken, same, "{leases:?}");
        taken
    }

    async fn renew(&self, leases: &[(&str, &str)]) {
        let leases = owned(leases);
        self.real.renew_leases(&leases, LEASE_MS).await.unwrap();
        self.simulated.renew_leases(&leases, LEASE_MS).await.unwrap();
    }

    async fn end(&self, leases: &[(&str, &str)]) {
        let leases = owned(leases);
        self.real.end_leases(&leases).await.unwrap();
        self.simulated.end_leases(&leases).await.unwrap();
    }

    /// The tokens that leases have.
    async fn tokens(&self) -> Vec<KeptValue> {
        let asked = NAMES.map(|name| (name, &b""[..]));
        let found = self.real.look_at_secrets(&asked).await.unwrap();
        let same = self.simulated.look_at_secrets(&asked).await.unwrap();
        assert_eq!(found, same);
        found
    }
}

fn owned(leases: &[(&str, &str)]) -> Vec<(String, String)> {
    leases.iter().map(|(name, token)| ((*name).to_owned(), (*token).to_owned())).collect()
}

fn with_pair<T>(what: impl AsyncFnOnce(Pair) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async { what(Pair::connect().await).await })
}

#[test]
fn a_lease_is_of_one_token_until_its_time_is_over_or_the_clock_was_set_back() {
    with_pair(async |mut pair| {
        let [a, b, _] = NAMES;
        assert_eq!(pair.take(&[(a, "one"), (b, "one")]).await, [true, true]);
        assert_eq!(pair.take(&[(a, "two")]).await, [false], "another one has it");
        assert_eq!(pair.take(&[(a, "one")]).await, [true], "the answer may have been lost");
        pair.pass(40);
        pair.renew(&[(a, "one"), (b, "two")]).await;
        pair.pass(40);
        let taken = pair.take(&[(a, "two"), (b, "two")]).await;
        assert_eq!(taken, [false, true], "one was renewed, and one by a token that has it not");
        pair.end(&[(a, "two"), (b, "two")]).await;
        assert_eq!(pair.take(&[(a, "two"), (b, "three")]).await, [false, true]);
        pair.pass(61);
        assert_eq!(pair.take(&[(a, "two")]).await, [true], "its time is over");
        pair.renew(&[(b, "three")]).await;
        assert_eq!(pair.take(&[(b, "four")]).await, [true], "what is over is not renewed");
        // The clock is set back: the lease would last for as long.
        pair.pass(-4000);
        assert_eq!(pair.take(&[(a, "three")]).await, [true]);
        pair.renew(&[(b, "four")]).await;
        assert_eq!(pair.take(&[(b, "five")]).await, [false], "renewed by the clock of now");
        pair.end(&[(a, "three"), (b, "four")]).await;
        assert_eq!(pair.tokens().await, [KeptValue::None, KeptValue::None, KeptValue::None]);
    });
}

/// Whatever is asked in whatever order, the simulated one answers as the real one does.
#[test]
fn leases_of_the_simulated_valkey_are_those_of_a_real_one() {
    let passes = [11, 47, 101, 4001, -11, -47, -101, -4001];
    with_pair(async |mut pair| {
        let mut chance = Prng::new(7);
        for _ in 0..250 {
            let tokens = ["one", "two", "three"];
            let mut leases = NAMES.map(|name| (name, tokens[below(&mut chance, 3) as usize]));
            let from = below(&mut chance, 3) as usize;
            leases.rotate_left(from);
            let leases = &leases[..1 + below(&mut chance, 3) as usize];
            match below(&mut chance, 8) {
                0 | 1 => pair.pass(passes[below(&mut chance, 8) as usize]),
                2..=4 => drop(pair.take(leases).await),
                5 | 6 => pair.renew(leases).await,
                _ => pair.end(leases).await,
            }
            pair.tokens().await;
        }
    });
}
