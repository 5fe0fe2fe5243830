//! The interface to lsphp: environment variables only.

use std::ffi::OsString;

use super::settle::Settled;

/// The environment of a pool of lsphp, whose listening socket is its standard input.
pub(super) fn env(settled: &Settled) -> Vec<(&str, OsString)> {
    let pool = &settled.pool;
    let number = |n: u64| OsString::from(n.to_string());
    let mut env: Vec<(&str, OsString)> =
        pool.env.iter().map(|(name, value)| (name.as_str(), value.into())).collect();
    env.push(("LSAPI_CHILDREN", number(u64::from(settled.children))));
    // Children beyond these would accept requests that the pool has no memory for.
    env.push(("LSAPI_EXTRA_CHILDREN", number(0)));
    env.push(("LSAPI_MAX_IDLE_CHILDREN", number(u64::from(settled.start))));
    if pool.max_requests > 0 {
        env.push(("LSAPI_MAX_REQS", number(u64::from(pool.max_requests))));
    }
    if !pool.request_timeout.is_zero() {
        let seconds = pool.request_timeout.as_millis().div_ceil(1000);
        let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
        env.push(("LSAPI_MAX_PROCESS_TIME", number(seconds)));
    }
    env
}
