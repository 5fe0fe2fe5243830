//! Connections to a name with several addresses (RFC 8305, without the order of families): one that
//! is silent delays the others only a little.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long an address is tried alone; then the next one is tried beside it.
const ALONE: Duration = Duration::from_secs(1);

/// Connects to the addresses of a host, in the order of the system, and returns the first
/// connection that `open` completes.
///
/// # Errors
///
/// The host has no address, or the last failure.
pub(crate) async fn connect<T, F>(
    host: &str,
    port: u16,
    open: impl Fn(SocketAddr) -> F,
) -> Result<T, String>
where
    T: Send + 'static,
    F: Future<Output = io::Result<T>> + Send + 'static,
{
    let found = lookup_host((host, port)).await;
    let addresses = found.map_err(|error| format!("{host}:{port}: {error}"))?.collect();
    first(addresses, open).await.map_err(|why| format!("{host}:{port}: {why}"))
}

async fn first<T, F>(
    addresses: Vec<SocketAddr>,
    open: impl Fn(SocketAddr) -> F,
) -> Result<T, String>
where
    T: Send + 'static,
    F: Future<Output = io::Result<T>> + Send + 'static,
{
    // What still runs is dropped, and closed, with it.
    let mut tried = JoinSet::new();
    let mut failure = "it has no address".to_owned();
    let mut left = addresses.into_iter();
    loop {
        if let Some(address) = left.next() {
            tried.spawn(open(address));
        }
        let ended = match left.len() {
            0 => tried.join_next().await,
            _ => match timeout(ALONE, tried.join_next()).await {
                Ok(ended) => ended,
                Err(_) => continue,
            },
        };
        match ended {
            Some(Ok(Ok(connection))) => return Ok(connection),
            Some(Ok(Err(error))) => failure = error.to_string(),
            Some(Err(error)) => failure = error.to_string(),
            None => return Err(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::{Arc, Mutex};

    use tokio::time::{Instant, sleep};

    use super::*;

    /// What an address does, by its port.
    #[derive(Clone, Copy, Debug)]
    enum Address {
        Silent,
        Refuses,
        /// It accepts after milliseconds.
        Accepts(u64),
    }
    use Address::{Accepts, Refuses, Silent};

    /// The address that is connected, when in milliseconds, and how many were tried.
    fn run(all: &[Address]) -> (Result<u16, String>, u128, usize) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        let addresses = (0..).map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
        let addresses = addresses.take(all.len()).collect();
        let count = Arc::new(Mutex::new(0));
        runtime.block_on(async {
            let start = Instant::now();
            let connected = first(addresses, |address| {
                *count.lock().unwrap() += 1;
                let port = address.port();
                let what = all[usize::from(port)];
                async move {
                    match what {
                        Silent => pending().await,
                        Refuses => Err(io::Error::other(format!("{port} refuses"))),
                        Accepts(time) => {
                            sleep(Duration::from_millis(time)).await;
                            Ok(port)
                        }
                    }
                }
            });
            let limit = Duration::from_secs(15);
            let connected = timeout(limit, connected).await.unwrap_or(Err("too late".into()));
            (connected, start.elapsed().as_millis(), *count.lock().unwrap())
        })
    }

    #[test]
    fn a_silent_address_delays_the_next_one_a_little() {
        assert_eq!(run(&[Silent, Accepts(5)]), (Ok(1), 1005, 2));
        assert_eq!(run(&[Silent, Silent, Silent, Accepts(0)]), (Ok(3), 3000, 4));
        // Those begun before may still win.
        assert_eq!(run(&[Accepts(1500), Silent, Accepts(0)]), (Ok(0), 1500, 2));
        assert_eq!(run(&[Accepts(14_000), Silent]), (Ok(0), 14_000, 2));
    }

    #[test]
    fn one_that_fails_is_followed_at_once() {
        assert_eq!(run(&[Refuses, Refuses, Accepts(5)]), (Ok(2), 5, 3));
        assert_eq!(run(&[Silent, Refuses, Accepts(5)]), (Ok(2), 1005, 3));
        assert_eq!(run(&[Accepts(5), Accepts(0)]), (Ok(0), 5, 1));
    }

    #[test]
    fn all_failures_are_one() {
        assert_eq!(run(&[Refuses, Refuses]), (Err("1 refuses".into()), 0, 2));
        assert_eq!(run(&[]), (Err("it has no address".into()), 0, 0));
        assert_eq!(run(&[Silent, Refuses]), (Err("too late".into()), 15_000, 2));
    }
}
