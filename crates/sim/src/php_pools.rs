//! PHP pools of the site: their configuration, and the limits that their requests must keep.
//!
//! The processes of a pool are in `crates/sim/src/upstream/processes.rs`.

use std::fmt::Write as _;

use crate::chance::Chance;
use crate::scenario::Scenario;
use crate::time::MILLI;

/// The pools by name, and the directive for the program: it determines the protocol.
const POOLS: [(&str, &str); 3] = [("shop", ""), ("few", ""), ("speedy", "binary /opt/lsphp;")];
/// The pool that speaks LSAPI.
pub const LSAPI: usize = 2;
/// The pool with a short queue.
const SHORT: usize = 1;
/// `request_timeout` of every pool, in nanoseconds.
pub const REQUEST_TIMEOUT: u64 = 5000 * MILLI;
/// How many times the `request_timeout` a place may be taken by a silent process.
pub const TIMEOUTS_MAX: u64 = 3;
/// The locations of clients' requests.
pub const APPS: &[&str] =
    &["/pool", "/pool", "/pooled", SHORT_QUEUE, SHORT_QUEUE, "/speedy", "/speedy", "/app", "/kept"];
/// The location whose pool has a short queue.
pub const SHORT_QUEUE: &str = "/few";

/// The locations of the site. A script must exist.
pub const LOCATIONS: &str = "        location /pool { alias /www/small.txt; php_pass shop; }
        location /pooled { alias /www/small.txt; php_pass shop;
            fastcgi_request_buffering off; }
        location /few { alias /www/small.txt; php_pass few; fastcgi_max_temp_file_size 0; }
        location /speedy { alias /www/small.txt; php_pass speedy; }
";

/// Random directives for the `http` block, if the scenario has pools.
#[must_use]
pub fn directives(scenario: Scenario, seed: u64) -> String {
    if !scenario.has_php_pools() {
        return String::new();
    }
    let mut text = String::new();
    for (number, children) in children(seed).into_iter().enumerate() {
        let (name, program) = POOLS[number];
        let queue = if number == SHORT { "1 timeout=2s" } else { "100 timeout=60s" };
        let _ = write!(
            text,
            "\n    php_pool {name} {{ {program} children {children}; queue {queue}; \
             request_timeout 5s; }}"
        );
    }
    text
}

/// The number of children of each pool.
#[must_use]
pub fn children(seed: u64) -> [usize; POOLS.len()] {
    let mut chance = Chance::new(seed, 11);
    POOLS.map(|_| 1 + chance.index(3))
}

/// The pool at an address.
#[must_use]
pub fn pool_at(address: &str) -> Option<usize> {
    POOLS.iter().position(|(name, _)| address.ends_with(&format!("/php-{name}.sock")))
}

/// Whether the requests to a location are for a pool.
#[must_use]
pub fn is_pool(location: &str) -> bool {
    matches!(location, "/pool" | "/pooled" | SHORT_QUEUE | "/speedy")
}

/// The name of a pool.
#[must_use]
pub const fn name(pool: usize) -> &'static str {
    POOLS[pool].0
}
