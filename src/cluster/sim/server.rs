//! The simulated Valkey as nodes reach it: connections that are late, cut, or stand still, at every
//! point of an exchange; a clock that jumps; restarts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bolide_base::prng::Prng;
use bolide_valkey::ValkeyStream;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::keeper::{Keeper, Reply, leases_in};
use super::{EPOCH_MS, NODES, below};

/// Commands at one moment at most.
const MOMENT_MAX: u32 = 2000;

/// How bad connections are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trouble {
    /// Commands of a thousand whose connection is cut before they are carried out, or after.
    pub(super) cut: u64,
    /// Replies of a thousand that are late by up to half a second.
    pub(super) late: u64,
}

/// The server.
pub(super) struct Server {
    state: Mutex<State>,
    start: Instant,
    /// The stream has news.
    bell: Notify,
}

pub(super) struct State {
    pub(super) keeper: Keeper,
    /// What a restart goes back to that loses what was written last.
    saved: Keeper,
    chance: Prng,
    pub(super) trouble: Trouble,
    /// How far its clock is ahead.
    pub(super) jump_ms: i64,
    down_until: Instant,
    /// Until when nodes reach nothing, and until when what they send stands still.
    cut_until: [Instant; NODES],
    still_until: [Instant; NODES],
    connections: Vec<(usize, AbortHandle)>,
    /// The lease of the order.
    order: Option<Vec<u8>>,
    /// When each node last took or renewed it, and when leases were last lost.
    leased: [Instant; NODES],
    disturbed: Instant,
    /// Commands at one moment, and whether they were ever without end.
    moment: (Instant, u32),
    pub(super) is_flooded: bool,
}

/// What a restart leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    All,
    Saved,
    Nothing,
}

fn after(ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms)
}

impl Server {
    pub(super) fn new(seed: u64) -> Arc<Self> {
        let now = Instant::now();
        let state = State {
            keeper: Keeper::default(),
            saved: Keeper::default(),
            chance: Prng::new(seed ^ 0x5eed_0f5e),
            trouble: Trouble::default(),
            jump_ms: 0,
            down_until: now,
            cut_until: [now; NODES],
            still_until: [now; NODES],
            connections: Vec::new(),
            order: None,
            leased: [now; NODES],
            disturbed: now,
            moment: (now, 0),
            is_flooded: false,
        };
        Arc::new(Self { state: Mutex::new(state), start: now, bell: Notify::new() })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self, jump_ms: i64) -> u64 {
        (EPOCH_MS + self.start.elapsed().as_millis() as u64).saturating_add_signed(jump_ms)
    }

    /// A node connects.
    pub(super) fn dial(self: &Arc<Self>, node: usize) -> std::io::Result<Box<dyn ValkeyStream>> {
        let mut state = self.state();
        let now = Instant::now();
        if now < state.down_until || now < state.cut_until[node] {
            return Err(std::io::ErrorKind::ConnectionRefused.into());
        }
        let (near, far) = tokio::io::duplex(1 << 20);
        let task = tokio::spawn(self.clone().serve(node, far));
        state.connections.push((node, task.abort_handle()));
        Ok(Box::new(near))
    }

    /// Ends connections: of a node, or all.
    fn hang_up(&self, node: Option<usize>) {
        self.state().connections.retain(|(of, task)| {
            let is_meant = node.is_none_or(|node| node == *of);
            if is_meant {
                task.abort();
            }
            !is_meant && !task.is_finished()
        });
    }

    /// A node reaches nothing for a while.
    pub(super) fn cut(&self, node: usize, ms: u64) {
        self.state().cut_until[node] = after(ms);
        self.hang_up(Some(node));
    }

    /// What a node sends, and what it is sent, arrives late.
    pub(super) fn hold(&self, node: usize, ms: u64) {
        self.state().still_until[node] = after(ms);
    }

    pub(super) fn restart(&self, kept: Kept, down_ms: u64) {
        {
            let mut state = self.state();
            match kept {
                Kept::All => {}
                Kept::Saved => state.keeper = state.saved.clone(),
                Kept::Nothing => state.keeper = Keeper::default(),
            }
            if kept != Kept::All {
                state.disturbed = Instant::now();
            }
            state.saved = state.keeper.clone();
            state.down_until = after(down_ms);
        }
        self.hang_up(None);
    }

    /// Nothing is amiss from now on.
    pub(super) fn heal(&self) {
        let mut state = self.state();
        let now = Instant::now();
        state.trouble = Trouble::default();
        (state.keeper.is_full, state.keeper.refuses_scripts) = (false, false);
        state.down_until = now;
        (state.cut_until, state.still_until) = ([now; NODES], [now; NODES]);
    }

    /// Leases are lost, or the clock is another one.
    pub(super) fn record_disturbance(&self) {
        self.state().disturbed = Instant::now();
    }

    pub(super) fn disturbed(&self) -> Instant {
        self.state().disturbed
    }

    /// The first lease that is ever taken is that of the order; an account has one of its own.
    fn record_lease(&self, node: usize, words: &[Vec<u8>]) {
        let keys = leases_in(words);
        let Some(first) = keys.first() else { return };
        let state = &mut *self.state();
        if keys.contains(state.order.get_or_insert_with(|| first.clone())) {
            state.leased[node] = Instant::now();
        }
    }

    /// When a node last took the lease of the order, or renewed it.
    pub(super) fn leased(&self, node: usize) -> Instant {
        self.state().leased[node]
    }

    /// As a command of an operator.
    pub(super) fn order(&self, words: &[&[u8]]) -> Reply {
        let words: Vec<_> = words.iter().map(|word| word.to_vec()).collect();
        self.carry_out(&words)
    }

    fn carry_out(&self, words: &[Vec<u8>]) -> Reply {
        let mut state = self.state();
        let now_ms = self.now_ms(state.jump_ms);
        let reply = state.keeper.run(words, now_ms);
        if below(&mut state.chance, 25) == 0 {
            state.saved = state.keeper.clone();
        }
        drop(state);
        self.bell.notify_waiters();
        reply
    }

    /// Whether more commands come at this moment than have a reason.
    fn is_flood(&self) -> bool {
        let state = &mut *self.state();
        let now = Instant::now();
        if state.moment.0 != now {
            state.moment = (now, 0);
        }
        state.moment.1 += 1;
        let is_flood = state.moment.1 > MOMENT_MAX;
        state.is_flooded |= is_flood;
        is_flood
    }

    async fn stand_still(&self, node: usize) {
        let until = self.state().still_until[node];
        if until > Instant::now() {
            sleep_until(until).await;
        }
    }

    async fn serve(self: Arc<Self>, node: usize, mut stream: DuplexStream) {
        let mut bytes = Vec::new();
        loop {
            let mut piece = [0; 4096];
            match stream.read(&mut piece).await {
                Ok(0) | Err(_) => return,
                Ok(count) => bytes.extend_from_slice(&piece[..count]),
            }
            while let Some((words, used)) = parse(&bytes) {
                bytes.drain(..used);
                self.stand_still(node).await;
                if self.is_flood() {
                    // Without a reply there is an end.
                    std::future::pending::<()>().await;
                }
                let (cut, pauses) = self.fate();
                pause(pauses[0]).await;
                if cut == Some(false) {
                    return;
                }
                let reply = match words[0] == b"XREAD" {
                    true => self.wait(&words).await,
                    false => self.carry_out(&words),
                };
                self.record_lease(node, &words);
                if cut == Some(true) {
                    return;
                }
                pause(pauses[1]).await;
                self.stand_still(node).await;
                let mut out = Vec::new();
                write(&reply, &mut out);
                if stream.write_all(&out).await.is_err() {
                    return;
                }
            }
        }
    }

    /// Whether a connection is cut, with or without the effect of a command, and how long that
    /// takes and its reply.
    fn fate(&self) -> (Option<bool>, [Duration; 2]) {
        let state = &mut *self.state();
        let (trouble, chance) = (state.trouble, &mut state.chance);
        let cut = (below(chance, 1000) < trouble.cut).then(|| below(chance, 2) == 1);
        let pauses = [(); 2].map(|()| {
            let ms = match below(chance, 1000) {
                by if by < trouble.late => below(chance, 500),
                by if by < 10 * trouble.late => 1,
                _ => 0,
            };
            Duration::from_millis(ms)
        });
        (cut, pauses)
    }

    /// `XREAD COUNT 1 BLOCK MS STREAMS KEY ID`: what it returns is not read.
    async fn wait(&self, words: &[Vec<u8>]) -> Reply {
        let ms = std::str::from_utf8(&words[4]).ok().and_then(|text| text.parse().ok());
        let until = after(ms.unwrap_or_default());
        loop {
            let news = self.bell.notified();
            match self.state().keeper.is_behind(&words[6], &words[7]) {
                Ok(true) => return Reply::Items(Vec::new()),
                Ok(false) => {}
                Err(refused) => return refused,
            }
            if timeout_at(until, news).await.is_err() {
                return Reply::None;
            }
        }
    }
}

async fn pause(time: Duration) {
    // One of no time would be rounded up.
    if !time.is_zero() {
        sleep(time).await;
    }
}

/// The first command of bytes, and how many of them it has.
fn parse(bytes: &[u8]) -> Option<(Vec<Vec<u8>>, usize)> {
    let mut at = 0;
    let mut line = |kind: u8| -> Option<usize> {
        let rest = bytes.get(at..)?;
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        assert_eq!(rest[0], kind, "a client sends arrays of strings");
        at += end + 1;
        std::str::from_utf8(&rest[1..end - 1]).ok()?.parse().ok()
    };
    let count = line(b'*')?;
    let mut ends = Vec::new();
    let mut from = at;
    for _ in 0..count {
        let rest = bytes.get(from..)?;
        let end = rest.iter().position(|byte| *byte == b'\n')?;
        let size: usize = std::str::from_utf8(&rest[1..end - 1]).ok()?.parse().ok()?;
        let start = from + end + 1;
        bytes.get(start..start + size + 2)?;
        ends.push(start..start + size);
        from = start + size + 2;
    }
    Some((ends.into_iter().map(|range| bytes[range].to_vec()).collect(), from))
}

fn write(reply: &Reply, out: &mut Vec<u8>) {
    match reply {
        Reply::Okay => out.extend_from_slice(b"+OK\r\n"),
        Reply::None => out.extend_from_slice(b"$-1\r\n"),
        Reply::Number(number) => out.extend_from_slice(format!(":{number}\r\n").as_bytes()),
        Reply::Error(text) => out.extend_from_slice(format!("-{text}\r\n").as_bytes()),
        Reply::Text(text) => {
            out.extend_from_slice(format!("${}\r\n", text.len()).as_bytes());
            out.extend_from_slice(text);
            out.extend_from_slice(b"\r\n");
        }
        Reply::Items(items) => {
            out.extend_from_slice(format!("*{}\r\n", items.len()).as_bytes());
            items.iter().for_each(|item| write(item, out));
        }
    }
}
