//! Performs the effects of exchanges.

use bolide_base::{Instant, SlabKey};
use bolide_engine::{SpoolPlace, StepEffect, Wake};
use bolide_files::VariantKey;
use bolide_http::BodyLen;
use bolide_io::{Io, Reset};
use bolide_upstream::{OriginNews, OriginRequest};
use bytes::Bytes;

use crate::clients::Clients;
use crate::console_desk::{ConsoleOrder, ConsoleReply};
use crate::env::WorkerEnv;
use crate::exchange_table::{ActiveExchange, Exchanges, Owner};
use crate::framing::{ConnFraming, Cut, ResetCause, StreamAct};
use crate::requests::Requests;
use crate::throttle::{AnswerPace, PacedFraming};
use crate::token::PollToken;

impl<I: Io> Requests<I> {
    /// Performs one effect; returns the wake if it has a result at once.
    // PERF: out of line, as the loop of steps would compute the addresses of every part first.
    #[inline(never)]
    pub(crate) fn perform(
        &mut self,
        key: SlabKey<ActiveExchange>,
        effect: StepEffect,
    ) -> Option<Wake> {
        match effect {
            StepEffect::Probe(probe) => {
                return self.background.probe((key, probe), &mut self.env, &self.exchanges);
            }
            StepEffect::Resolve(path) => {
                self.env.resolve(path);
                return Some(Wake::Probed);
            }
            StepEffect::Compress(job) => {
                return self.background.compress(key, *job, &mut self.env.files);
            }
            StepEffect::CutVideo(job) => {
                return self.background.cut_video(key, job, &mut self.env.io);
            }
            StepEffect::List(job) => return self.background.list(key, job),
            StepEffect::CheckPassword(check) => return self.background.check_password(key, &check),
            StepEffect::ChangeFiles(change) => {
                return self.background.change_files(key, *change, &mut self.env.io);
            }
            StepEffect::Command(action) => {
                let post = self.env.news.posts[usize::from(self.env.number)].clone();
                let reply = ConsoleReply::new(post, key.to_bits());
                self.env.console.submit(ConsoleOrder { action: *action, reply });
            }
            StepEffect::Respond => return self.respond(key),
            StepEffect::Fragments => return self.start_fragments(key),
            StepEffect::Mirror(mirrored) => self.start_mirror(key, mirrored),
            StepEffect::AuthSubrequest => return self.start_auth_subrequest(key),
            StepEffect::BodyReady => self.with_stream(key, StreamAct::Ready),
            StepEffect::DiscardBody => {
                self.exchanges.end_upload(key.to_bits());
                self.with_stream(key, StreamAct::Discard);
            }
            StepEffect::Continue => self.with_stream(key, StreamAct::Continue),
            StepEffect::WantBody(window) => {
                // The client may have waited for us until now.
                self.exchanges.begin_body_wait(key, self.env.now.mono);
                self.with_stream(key, StreamAct::Wanted(window));
            }
            StepEffect::BodyConsumed(bytes) => self.with_stream(key, StreamAct::Consumed(bytes)),
            StepEffect::Spool(place) => {
                if let Some(live) = self.exchanges.live.get_mut(key) {
                    self.spooling.request(key, place, live, &mut self.env);
                }
            }
            StepEffect::Fill(fill) => self.exchanges.update(key, |live| live.fill = Some(fill)),
            StepEffect::StoreFile(order) => {
                self.exchanges.update(key, |live| live.store = Some(order));
            }
            StepEffect::Refresh(request, fill) => {
                self.origins.begin_refresh(key, request, fill, &mut self.env, &mut self.exchanges);
            }
            StepEffect::Recall(permit) => return Some(self.env.recall(*permit)),
            StepEffect::AskNodes(permit) => {
                let asked = self.env.ask_nodes(*permit, key);
                self.exchanges.update(key, |live| live.asked = Some(asked));
            }
            StepEffect::WakeExchanges(wakes) => self.env.news.post(wakes),
            StepEffect::CompressObject(object, coding, level) => {
                self.background.compress_object(object, VariantKey { coding, level });
            }
            StepEffect::Fetch(request) => self.begin_fetch(key, request),
            StepEffect::DeliverNews(news) => {
                give_answer(key, news, &mut self.env, &mut self.exchanges);
            }
            StepEffect::FetchBody(bytes) => self.feed_fetch(key, bytes),
            StepEffect::FetchBodyEnd => self.finish_fetch_body(key),
            StepEffect::FetchTunnel(memory) => {
                self.origins.begin_tunnel(self.exchanges.fetch_of(key), memory);
            }
            // The room is checked before each read.
            StepEffect::FetchMayRead(false) => {}
            StepEffect::FetchMayRead(true) => {
                self.origins.resume_fetch(key, &mut self.env, &mut self.exchanges);
            }
            StepEffect::FetchDrop => self.drop_fetch(key),
            StepEffect::Interim(head) => {
                if let Some(live) = self.exchanges.live.get(key) {
                    self.clients.interim(live.owner, live.stream, &head);
                }
            }
            StepEffect::Deadline(at) => {
                wait_until(key, at, &mut self.clients, &mut self.env, &self.exchanges);
            }
            StepEffect::CloseSilently => self.close_silently(key),
            StepEffect::Detach => self.detach_exchange(key),
            StepEffect::Finish => self.retire(key),
        }
        None
    }

    /// Ends the stream of a request without a response; its connection if that has only one stream.
    fn close_silently(&mut self, key: SlabKey<ActiveExchange>) {
        let Some(live) = self.exchanges.live.get(key) else { return };
        let (owner, stream) = (live.owner, live.stream);
        let settings = live.exchange.settings();
        let resets = settings.is_some_and(|settings| settings.reset_timedout_connection);
        self.retire(key);
        let cut = self.clients.reset_stream(owner, stream, ResetCause::Unanswered);
        debug_assert!(
            cut == Cut::Stream || matches!(owner, Owner::Tcp(_)),
            "only HTTP/1 has one stream"
        );
        match owner {
            _ if cut == Cut::Connection => {
                self.close_owner(owner, if resets { Reset::Yes } else { Reset::No });
            }
            Owner::Tcp(conn) => self.clients.tcp.mark_dirty(conn),
            Owner::Quic(_) | Owner::Parent(_) | Owner::PostAction(_) => {}
        }
    }

    fn respond(&mut self, key: SlabKey<ActiveExchange>) -> Option<Wake> {
        let live = self.exchanges.live.get(key)?;
        let head = live.exchange.head();
        let paced = live.exchange.is_paced();
        let answered = match live.owner {
            Owner::Tcp(conn) => {
                let owner = self.clients.tcp.conns.get_mut(conn)?;
                let framing = owner.framing.as_mut()?;
                if framing.is_plain_h1() {
                    // As in nginx: over HTTP/1 the location determines the idle timeout.
                    owner.idle_max = live.exchange.settings().map(|s| s.keepalive_timeout);
                    if let Some(manners) = live.exchange.manners() {
                        owner.manners = Some(manners);
                    }
                }
                let answered = framing.respond(live.stream, head, &mut self.env.scratch.replies);
                self.clients.tcp.mark_dirty(conn);
                answered
            }
            Owner::Quic(conn) => {
                let answered = self.clients.quic.conns.get_mut(conn)?.h3.respond(live.stream, head);
                self.clients.quic.mark(conn);
                answered.map(|()| 0)
            }
            Owner::PostAction(_) => return None,
            // Only the page has a rate limit.
            Owner::Parent(page) => return self.respond_fragment(key, page),
        };
        if paced && let Ok(left_already) = answered {
            self.pace(key, left_already);
        }
        answered.is_err().then(|| Wake::ClientGone)
    }

    /// Sets the rate limit of a response that has just begun.
    fn pace(&mut self, key: SlabKey<ActiveExchange>, left_already: u64) {
        let Some((live, mut ctx)) = self.lend(key) else { return };
        let rate = live.exchange.rate(&mut ctx);
        let is_of_known_length = !matches!(live.exchange.head().body, BodyLen::Unknown);
        let (owner, stream) = (live.owner, live.stream);
        if rate.per_second == 0 {
            return;
        }
        let framing = match owner {
            Owner::Tcp(conn) => {
                let conn = self.clients.tcp.conns.get_mut(conn);
                let Some(framing) = conn.and_then(|conn| conn.framing.as_mut()) else { return };
                let kind = match framing {
                    ConnFraming::H1(_) if is_of_known_length => PacedFraming::Bare,
                    ConnFraming::H1(_) => PacedFraming::Chunked,
                    ConnFraming::H2(_) => PacedFraming::H2,
                };
                framing.keep_pace(stream);
                kind
            }
            Owner::Quic(conn) => {
                let Some(conn) = self.clients.quic.conns.get_mut(conn) else { return };
                conn.h3.keep_pace(stream);
                if is_of_known_length { PacedFraming::Bare } else { PacedFraming::H3 }
            }
            Owner::Parent(_) | Owner::PostAction(_) => return,
        };
        if let Some(live) = self.exchanges.live.get_mut(key) {
            let mut pace = AnswerPace::new(rate, framing);
            pace.skip(left_already);
            live.pace = Some(pace);
        }
    }

    pub(crate) fn with_stream(&mut self, key: SlabKey<ActiveExchange>, act: StreamAct) {
        if let StreamAct::Consumed(bytes) = act {
            self.exchanges.count_body_consumed(key, bytes, self.env.now.mono);
        }
        let Some(live) = self.exchanges.live.get(key) else { return };
        match live.owner {
            Owner::Parent(page) if matches!(act, StreamAct::Ready) => self.with_stream(page, act),
            owner => self.clients.act(owner, live.stream, act),
        }
    }

    /// Starts a fetch.
    fn begin_fetch(&mut self, key: SlabKey<ActiveExchange>, request: Box<OriginRequest>) {
        let is_begun = self.origins.begin_fetch(key, request, &mut self.env, &mut self.exchanges);
        let owner = self.exchanges.live.get(key).map(|live| live.owner).filter(|_| is_begun);
        let Some(owner) = owner.and_then(|owner| self.exchanges.root_owner(owner)) else { return };
        self.exchanges.left.extend(self.clients.hung_up(owner));
        if let Owner::Quic(conn) = owner {
            self.clients.quic.ping_while_waiting(conn, &mut self.env);
        }
    }

    /// Passes a piece of the request body to the fetch.
    fn feed_fetch(&mut self, key: SlabKey<ActiveExchange>, bytes: Bytes) {
        if let Err(bytes) = self.origins.feed_fetch(self.exchanges.fetch_of(key), bytes) {
            self.with_stream(key, StreamAct::Consumed(bytes.len()));
        }
    }

    /// The request body is complete.
    fn finish_fetch_body(&mut self, key: SlabKey<ActiveExchange>) {
        let Some(live) = self.exchanges.live.get(key) else { return };
        let owner = live.owner;
        if let Some(fetch) = live.fetch {
            self.origins.finish_body(fetch);
        }
        if let Some(owner) = self.exchanges.root_owner(owner) {
            self.exchanges.left.extend(self.clients.hung_up(owner));
        }
    }

    /// Drops the fetch.
    pub(crate) fn drop_fetch(&mut self, key: SlabKey<ActiveExchange>) {
        self.env.news.forget_answer(key);
        let Some(live) = self.exchanges.live.get_mut(key) else { return };
        let Some(fetch) = live.fetch.take() else { return };
        live.paused = false;
        self.origins.abandon_fetch(fetch, &mut self.env, &mut self.exchanges);
    }

    /// Writes the excess of an exchange's spool to its file; wakes it when that is done.
    pub(crate) fn spool(&mut self, key: SlabKey<ActiveExchange>, place: SpoolPlace) {
        let Some(live) = self.exchanges.live.get_mut(key) else { return };
        self.spooling.spool(key, place, live, &mut self.env);
    }
}

/// Delivers a response without a fetch to an exchange, and to its fill.
fn give_answer<I: Io>(
    key: SlabKey<ActiveExchange>,
    given: Vec<OriginNews>,
    env: &mut WorkerEnv<I>,
    exchanges: &mut Exchanges,
) {
    let Some(live) = exchanges.live.get_mut(key) else { return };
    let mut fill = live.fill.take();
    for news in given {
        if let Some(fill) = &mut fill {
            env.news.post(fill.handle_news(&news, Some(&mut live.exchange), env.now));
        }
        env.news.wake(key, Wake::Origin(news));
    }
}

/// Wakes an exchange at `at`. Until then its client does not count as idle.
fn wait_until<I: Io>(
    key: SlabKey<ActiveExchange>,
    at: Instant,
    clients: &mut Clients,
    env: &mut WorkerEnv<I>,
    exchanges: &Exchanges,
) {
    env.wheel.arm_once(at, PollToken::Exchange(key).pack());
    let owner = exchanges.live.get(key).map(|live| live.owner);
    if let Some(Owner::Quic(conn)) = owner.and_then(|owner| exchanges.root_owner(owner)) {
        clients.quic.ping_while_waiting(conn, env);
    }
}
