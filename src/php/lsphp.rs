//! The interface to lsphp: environment variables only.

use std::ffi::OsString;

use super::fpm;
use super::settle::Settled;

/// The environment of a pool of lsphp, whose listening socket is its standard input.
pub(super) fn env(settled: &Settled) -> Vec<(String, OsString)> {
    let pool = &settled.pool;
    let number = |n: u64| OsString::from(n.to_string());
    let mut env = fpm::environment(settled);
    let mut set = |name: &str, value: OsString| env.push((name.to_owned(), value));
    if let Some(ini) = &pool.ini_file {
        set("PHPRC", ini.into());
    }
    // Told to have one child, lsphp has none and ends with its first connection. How many requests
    // there are at a time is the pool's decision anyway.
    set("LSAPI_CHILDREN", number(u64::from(settled.children.max(2))));
    // Children beyond these would accept requests that the pool has no memory for.
    set("LSAPI_EXTRA_CHILDREN", number(0));
    set("LSAPI_MAX_IDLE_CHILDREN", number(u64::from(settled.start)));
    if pool.max_requests > 0 {
        set("LSAPI_MAX_REQS", number(u64::from(pool.max_requests)));
    }
    if !pool.request_timeout.is_zero() {
        let seconds = pool.request_timeout.as_millis().div_ceil(1000);
        let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
        set("LSAPI_MAX_PROCESS_TIME", number(seconds));
    }
    env
}
