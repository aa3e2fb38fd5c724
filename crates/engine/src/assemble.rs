//! Assembly: the prefix, the tail and the whole request of a run, from records alone (CTX-02, DEL-17).

use agent::{DutyNote, Input, Prefix, Profile, StepKind, Tail, Terms, Turn};
use base::{Id as _, RunId, SessionId, Timestamp};
use domain::draft::Draft;
use domain::effect::Content;
use domain::event::{AskedAbout, EventKind, How, Trust};
use domain::schedule::{Rule, local_words, zone};
use domain::state::{DutyState, ProposalState, ScheduleState, SubscriptionState};
use domain::words::{self, Language};
use model::Block;
use store::duty::{Duty, TaskVersion};
use store::event::Event;
use store::owner::Owner;
use store::run::{self, StoredBlock};
use store::session::{PrefixChange, Session};
use store::work_item::WorkItem;
use store::{OwnerTx, Result, StoreError, Tx};

use crate::Context;

/// The duty of a session with the version in force.
pub(crate) type Focus = Option<(Duty, TaskVersion)>;

/// The session's duty, if it is a duty's.
pub(crate) fn focus(tx: &mut Tx<'_>, session: SessionId) -> Result<Focus> {
    let Some(duty) = store::duty::of_session(tx, session)? else { return Ok(None) };
    let version = store::duty::version(tx, duty.id)?;
    Ok(Some((duty, version)))
}

/// The frozen draft of a version.
pub(crate) fn draft(tx: &mut Tx<'_>, version: &TaskVersion) -> Result<Draft> {
    let bytes = store::event::body(tx, version.content)?.unwrap_or_default();
    serde_json::from_slice(&bytes).map_err(|error| StoreError::Corrupt(error.to_string()))
}

fn prefix(cx: &Context, tx: &mut Tx<'_>, owner: &Owner, focus: &Focus) -> Result<Prefix> {
    let profile = Profile { name: owner.name.clone(), zone: owner.zone.clone() };
    let terms = match focus {
        None => None,
        Some((duty, version)) => Some(Terms {
            duty: duty.id.to_string(),
            version: version.n,
            draft: draft(tx, version)?,
        }),
    };
    Ok(agent::prefix(&profile, &cx.world.tools(), terms.as_ref()))
}

/// Where the next run begins to read, and how much it may take in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settled {
    /// The prefix.
    pub digest: base::Digest,
    /// The first run of the history window.
    pub window_start: i64,
    /// Tokens that the tail may have, so that the request fits and room is left for the run's steps.
    pub tail_max: u64,
}

/// How the model's context is shared out beside what is fixed: prefix, tools and the longest answer.
struct Shares {
    /// Tokens that are free for history, tail and steps.
    free: u64,
    /// Of these, what history may hold.
    history: u64,
}

/// A tail may have so many tokens even where that leaves less than its half for the run's steps.
const TAIL_TOKENS_MIN: u64 = 1_000;

impl Shares {
    /// `least`: the tokens of the smallest tail that takes anything in. History gives way to it, and to as
    /// much again for the run's steps, but a tail that takes more than half of all is cut (CTX-14).
    fn new(cx: &Context, prefix: &Prefix, least: u64) -> Shares {
        let (context, limits) = (cx.model.context_tokens(), &cx.limits);
        let fixed =
            prefix.block.tokens + agent::definitions().tokens + u64::from(cx.max_output_tokens);
        let free = context.saturating_sub(fixed);
        let window = limits.window_tokens.min(context / 5 * 4).saturating_sub(fixed);
        Shares { free, history: window.min(free - 2 * least.min(free / 2)) }
    }

    /// What the tail may have beside so much history: half of what is left. A run that has used up its
    /// tokens before it asks would ask nothing, so it may not begin with more than half of those either.
    fn tail(&self, cx: &Context, held: u64) -> u64 {
        let left = self.free.saturating_sub(held);
        (left / 2).max(left.min(TAIL_TOKENS_MIN)).min(cx.limits.run_tokens / 2)
    }
}

/// Prefix and window of the session's next run, and the share of its tail, of which `least` tokens are
/// needed to take anything in. A change is recorded with its cause (CTX-05).
pub(crate) fn settle_prefix(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    owner: &Owner,
    session: &Session,
    focus: &Focus,
    run_n: i64,
    least: u64,
) -> Result<Settled> {
    let prefix = prefix(cx, tx, owner, focus)?;
    let sizes = run::sizes(tx, session.id, session.window_start, run_n)?;
    let shares = Shares::new(cx, &prefix, least);
    let start = agent::window_start(&sizes, session.window_start, shares.history);
    let held = sizes.iter().filter(|(n, _)| *n >= start).map(|(_, tokens)| tokens).sum();
    let digest = prefix.block.digest;
    let tail_max = shares.tail(cx, held);
    record_prefix(cx, tx, session, prefix, start, run_n)?;
    Ok(Settled { digest, window_start: start, tail_max })
}

/// Records a prefix and a window that are not those of the last run.
fn record_prefix(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    session: &Session,
    prefix: Prefix,
    start: i64,
    run_n: i64,
) -> Result<()> {
    let mut causes = Vec::new();
    let last = store::session::last_prefix(tx, session.id)?;
    match &last {
        None => causes.push("first run".to_owned()),
        Some(last) => {
            let before: Vec<&str> = last.sections.split(' ').collect();
            let changed = prefix.sections.split(' ').filter(|section| !before.contains(section));
            causes
                .extend(changed.filter_map(|s| Some(format!("{} changed", s.split(':').next()?))));
        }
    }
    // Against the last recorded start: a history that was dropped in between moved it too.
    if last.as_ref().is_some_and(|last| last.window_start != start) {
        causes.push("history window moved".to_owned());
    }
    let digest = prefix.block.digest;
    if causes.is_empty() && last.as_ref().is_some_and(|last| last.digest == digest) {
        return Ok(());
    }
    if causes.is_empty() {
        // A defect by CTX-05, kept visible instead of hidden.
        causes.push("unexplained".to_owned());
    }
    let body = cx.id();
    store::event::put_body(
        tx,
        store::event::NewBody {
            id: body,
            bytes: prefix.block.bytes.as_bytes().to_vec(),
            media: "application/json".into(),
            provenance: "assembly".into(),
            trust: Trust::System,
        },
    )?;
    let change = PrefixChange {
        run_n,
        digest,
        window_start: start,
        sections: prefix.sections,
        cause: causes.join(", "),
        at: tx.now(),
    };
    store::session::change_prefix(tx, session.id, body, &change)
}

/// The tail of a run that begins, before it is known how much of it fits.
pub(crate) struct Scene {
    zone: jiff::tz::TimeZone,
    zone_name: String,
    tail: Tail,
    /// What waits, in order, each with its trust.
    waiting: Vec<(Input, Trust)>,
}

/// Where things stand and what waits: all that a new run could begin with.
pub(crate) fn scene(
    tx: &mut OwnerTx<'_, '_>,
    owner: &Owner,
    session: &Session,
    focus: &Focus,
    items: &[&WorkItem],
    text_max: usize,
) -> Result<Scene> {
    let zone = zone(&owner.zone).map_err(|e| StoreError::Corrupt(e.to_string()))?;
    let duties = match focus {
        Some((duty, _)) => vec![note(tx, duty, &zone)?],
        None => store::duty::all(tx, owner.id, 100)?
            .iter()
            .filter(|duty| duty.state != DutyState::Closed)
            .map(|duty| note(tx, duty, &zone))
            .collect::<Result<_>>()?,
    };
    let (changes, control) = (changes(tx, session)?, control(tx, owner, &zone)?);
    let mut waiting = Vec::new();
    for item in items {
        let event = store::event::get(tx, item.event)?;
        let text = cut(store::event::body_text(tx, event.body)?, text_max);
        let heading = heading(tx, session, &event)?;
        // With a card comes what outsiders wrote on it.
        let trust = if event.about.is_some() { Trust::Outside } else { event.trust };
        let late =
            event.late.then(|| "it comes after its time because I was not running".to_owned());
        waiting.push((Input { heading, text, late }, trust));
    }
    let tail = Tail { now: tx.now(), control, duties, changes, inputs: Vec::new() };
    Ok(Scene { zone, zone_name: owner.zone.clone(), tail, waiting })
}

impl Scene {
    fn tokens(&self) -> u64 {
        self.tail.tokens(&self.zone, &self.zone_name)
    }

    /// The tokens of the smallest tail that takes anything in.
    pub(crate) fn least(&self) -> u64 {
        self.tokens() + self.waiting.first().map_or(0, |(input, _)| input.tokens())
    }

    /// The tail with as much of what waits as fits into so many tokens, the lowest trust of what is in it,
    /// and how many items it took. The first is always taken, cut if it must be; the rest waits on.
    pub(crate) fn begin(mut self, tokens_max: u64) -> (Block, Trust, usize) {
        self.shorten(tokens_max / 2);
        let (mut left, mut trust) = (tokens_max.saturating_sub(self.tokens()), Trust::User);
        for (input, of) in std::mem::take(&mut self.waiting) {
            let needed = input.tokens();
            if needed > left && !self.tail.inputs.is_empty() {
                break;
            }
            trust = trust.min(of);
            self.tail.inputs.push(input.fit(left));
            left = left.saturating_sub(needed);
        }
        let taken = self.tail.inputs.len();
        (self.tail.to_block(&self.zone, &self.zone_name), trust, taken)
    }

    /// Leaves out the last duties where all of them together take too much.
    fn shorten(&mut self, tokens_max: u64) {
        let mut hidden = 0;
        while self.tokens() > tokens_max && self.tail.duties.pop().is_some() {
            hidden += 1;
        }
        if hidden > 0 {
            self.tail.control.push(format!(
                "{hidden} more duties do not fit in here: read_records with what=duties lists them"
            ));
        }
    }
}

/// What an input is and whence, without its text.
fn heading(tx: &mut OwnerTx<'_, '_>, session: &Session, event: &Event) -> Result<String> {
    Ok(match event.kind {
        EventKind::UserMessage => {
            let about = event.about.as_deref();
            let about = about.map(|about| asked_about(tx, about)).transpose()?.unwrap_or_default();
            format!("message {} from the user{about}", event.id)
        }
        EventKind::ScheduleDue => match event.duty {
            Some(duty) => format!("schedule of duty {duty} \"{}\" is due", title(tx, duty)?),
            None => "a schedule is due".to_owned(),
        },
        EventKind::WaitTimedOut => format!("a wait timed out (event {})", event.id),
        EventKind::WaitSatisfied => format!("a wait was met (event {})", event.id),
        EventKind::ProposalDecided => format!("a decision (event {})", event.id),
        EventKind::ActionSettled => format!("news of an action (event {})", event.id),
        EventKind::Webhook | EventKind::File | EventKind::FeedEntry | EventKind::PageChanged => {
            let source = store::source::get(tx, event.source)?;
            let of = |name: &str, value: &Option<String>| {
                value
                    .as_ref()
                    .map(|value| format!(", {name} {}", quoted(value)))
                    .unwrap_or_default()
            };
            format!(
                "{} {} from outside through {}{}{}{}",
                event.kind.word(),
                event.id,
                source.name,
                of("topic", &event.topic),
                of("key", &event.key),
                why_here(tx, session, event.id)?
            )
        }
        EventKind::Related => {
            // `related:<the event>:<the lane>`
            let of = event.external_id.split(':').nth(1).and_then(|id| id.parse().ok());
            let why = of.map_or(Ok(String::new()), |of| why_here(tx, session, of))?;
            format!("an event from outside ({}){why}", event.id)
        }
    })
}

/// The card that a message of the user asks about, as it stands now.
fn asked_about(tx: &mut OwnerTx<'_, '_>, about: &str) -> Result<String> {
    let about = about.parse::<AskedAbout>().map_err(StoreError::Corrupt)?;
    let (card, what, state) = match about {
        AskedAbout::Action(id) => {
            let action = store::action::get(tx, id)?;
            let state = words::action_state(action.state).to_owned();
            // What was erased is still asked about.
            let what = match store::event::body(tx, action.content)? {
                None => "(erased)".to_owned(),
                Some(bytes) => {
                    let content = Content::read(&bytes).map_err(StoreError::Corrupt)?;
                    words::operation(&content, Language::En)
                }
            };
            (format!("action {id}"), what, state)
        }
        AskedAbout::Proposal(id) => {
            let owner = tx.owner();
            let proposal = store::proposal::get(tx, owner, id)?;
            let content = store::event::body_text(tx, proposal.content)?;
            let state = format!("{}, {}", proposal.kind.word(), proposal.state);
            (format!("proposal {id}"), content, state)
        }
    };
    let what = quoted(&what);
    Ok(format!(" about {card} ({state}): {what}; the person has not decided by asking"))
}

/// A word of a sender's, such as a topic: in quotation marks, with every mark that could end them or the
/// line escaped, so that it cannot be taken for words of the records.
fn quoted(value: &str) -> String {
    let plain = |c: char| !c.is_control() && !('\u{2028}'..='\u{202e}').contains(&c);
    let value: String = value.chars().filter(|c| plain(*c)).take(200).collect();
    serde_json::Value::from(value).to_string()
}

/// Why an event is this lane's, by the links that the router wrote.
fn why_here(tx: &mut OwnerTx<'_, '_>, session: &Session, event: base::EventId) -> Result<String> {
    let mut whys = String::new();
    for link in store::link::of_event(tx, event)? {
        if link.session != session.id {
            continue;
        }
        whys.push_str(&match link.how {
            How::Wait => format!("; it meets wait {}", link.record),
            How::Attribution => {
                "; a small model takes it for this duty's: check that it is".to_owned()
            }
            How::Dial => {
                "; it belongs to no duty: you may look, remind, ask and prepare".to_owned()
            }
            How::Subscription => {
                let duty = link.duty.ok_or(StoreError::Missing("duty of a subscription"))?;
                let known = store::subscription::of_duty(tx, duty)?;
                let found = known.into_iter().find(|s| s.id.uuid() == link.record);
                let prompt = match found {
                    Some(subscription) => store::event::body_text(tx, subscription.prompt)?,
                    None => String::new(),
                };
                format!("; subscribed: {prompt}")
            }
        });
    }
    Ok(whys)
}

/// Pauses that a turn is shown: that of everything is among the oldest few or covers them.
const PAUSES_SHOWN: usize = 20;
/// Holds that a turn is shown one by one.
const HOLDS_SHOWN: i64 = 5;

/// The control state that stands over everything: what is paused or held.
fn control(
    tx: &mut OwnerTx<'_, '_>,
    owner: &Owner,
    zone: &jiff::tz::TimeZone,
) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    if store::hold::is_stopped(tx)? {
        lines.push("the operator has stopped everything: nothing is done outside".to_owned());
    }
    for pause in store::hold::pauses(tx, owner.id)?.into_iter().take(PAUSES_SHOWN) {
        let what = match pause.duty {
            None => "everything".to_owned(),
            Some(duty) => format!("duty {duty} \"{}\"", title(tx, duty)?),
        };
        let since = local_words(zone, pause.created_at);
        lines.push(format!("paused since {since}: {what}; only the person lifts it"));
    }
    // However many there are, the turn reads of the last few: each message is known to its own turn.
    let mut placed = store::hold::newest(tx, owner.id, HOLDS_SHOWN + 1)?;
    if placed.len() as i64 > HOLDS_SHOWN {
        placed.remove(0);
        lines.push("earlier messages hold everything back, too".to_owned());
    }
    for hold in &placed {
        let asked = if hold.asked_at.is_some() { "; the person is asked" } else { "" };
        lines.push(format!("message {} holds everything back{asked}", hold.event));
    }
    Ok(lines)
}

fn title(tx: &mut Tx<'_>, duty: base::DutyId) -> Result<String> {
    let version = store::duty::version(tx, duty)?;
    Ok(draft(tx, &version)?.title)
}

fn note(tx: &mut OwnerTx<'_, '_>, duty: &Duty, zone: &jiff::tz::TimeZone) -> Result<DutyNote> {
    let version = store::duty::version(tx, duty.id)?;
    let title = title(tx, duty.id)?;
    let mut open = Vec::new();
    for schedule in store::schedule::of_duty(tx, duty.id)? {
        if schedule.state == ScheduleState::Active {
            let words = serde_json::from_str::<Rule>(&schedule.rule)
                .map_or_else(|_| "at set times".to_owned(), |rule| rule.words(Language::En));
            open.push(format!("wakes {words}; next {}", local_words(zone, schedule.next_slot)));
        }
    }
    for subscription in store::subscription::of_duty(tx, duty.id)? {
        if subscription.state == SubscriptionState::Active {
            let source = store::source::get(tx, subscription.source)?.name;
            let topic = subscription.topic.as_deref().unwrap_or("any topic");
            open.push(format!("hears {source} ({topic})"));
        }
    }
    for wait in store::wait::open(tx, duty.session, 20)? {
        open.push(format!(
            "wait {}: {} \"{}\", until {}",
            wait.id,
            wait.kind,
            wait.key,
            local_words(zone, wait.due_at)
        ));
    }
    Ok(DutyNote {
        id: duty.id.to_string(),
        title,
        version: version.n,
        state: duty.state.word().into(),
        open,
    })
}

/// What was decided about this session's proposals since its last run began.
fn changes(tx: &mut OwnerTx<'_, '_>, session: &Session) -> Result<Vec<String>> {
    let since =
        store::run::last(tx, session.id)?.map_or(Timestamp::from_micros(0), |run| run.started_at);
    let owner = tx.owner();
    let mut changes = Vec::new();
    for proposal in store::proposal::all(tx, owner, 50)? {
        let decided = !matches!(proposal.state, ProposalState::Open) && proposal.moved_at >= since;
        if decided && proposal.session == session.id {
            let by = match proposal.state {
                ProposalState::Confirmed | ProposalState::Declined => " by the user",
                ProposalState::Open | ProposalState::Withdrawn | ProposalState::Expired => "",
            };
            changes.push(format!("proposal {}: {}{by}", proposal.id, proposal.state));
        }
    }
    changes.reverse();
    Ok(changes)
}

/// The owner's calendar month.
pub(crate) fn month(owner: &Owner, at: Timestamp) -> Result<String> {
    let zone = zone(&owner.zone).map_err(|e| StoreError::Corrupt(e.to_string()))?;
    Ok(domain::schedule::month(&zone, at))
}

/// Whether a month that has cost this much may cost no more. A cap of zero allows what costs nothing,
/// such as a local model.
pub(crate) fn is_capped(owner: &Owner, spent: base::MicroUsd) -> bool {
    spent >= owner.month_cap_micro_usd && spent > base::MicroUsd(0)
}

/// Cuts a text to a number of bytes at a character, with a note of what is missing.
pub(crate) fn cut(mut text: String, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    let whole = text.len();
    let mut at = bytes_max;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    text.truncate(at);
    text.push_str(&format!(" … (cut; {whole} bytes in all)"));
    text
}

/// All that a run's next request is made of, and where its turn stands.
#[derive(Debug, Clone)]
pub(crate) struct Assembled {
    pub blocks: Vec<Block>,
    pub turn: Turn,
}

/// Reads a run's request back from records: prefix, history window, its own steps.
pub(crate) fn load(tx: &mut Tx<'_>, run: RunId) -> Result<Assembled> {
    let run = run::get(tx, run)?;
    let session = store::session::get(tx, run.session)?;
    let prefix = session.prefix.ok_or(StoreError::Missing("prefix"))?;
    let mut blocks = vec![Block::from_stored(store::event::body_text(tx, prefix)?)];
    let history = run::history(tx, run.session, run.window_start, run.n)?;
    blocks.extend(agent::readable(history.into_iter().map(parts)));
    let own = run::blocks(tx, run.id)?;
    let kinds: Vec<StepKind> = own.iter().map(|stored| kind(stored.kind)).collect();
    let mine = agent::readable(own.into_iter().map(parts));
    let mut turn = Turn::default();
    for (kind, block) in kinds.into_iter().zip(&mine) {
        turn.push(kind, block).map_err(|error| StoreError::Corrupt(error.to_string()))?;
    }
    blocks.extend(mine);
    Ok(Assembled { blocks, turn })
}

fn parts(stored: StoredBlock) -> (StepKind, Option<String>, Option<Vec<u8>>) {
    (kind(stored.kind), stored.call_id, stored.bytes)
}

fn kind(kind: run::StepKind) -> StepKind {
    match kind {
        run::StepKind::Tail => StepKind::Tail,
        run::StepKind::Model => StepKind::Model,
        run::StepKind::Tool => StepKind::Tool,
    }
}
