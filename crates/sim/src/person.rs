//! The person and their device: sends with retries, reads what is new, decides on cards.

use std::collections::{BTreeSet, VecDeque};

use base::{
    ActionId, Clock as _, DutyId, HoldId, MessageId, PauseId, ProposalId, SourceId, Timestamp,
};
use domain::state::{ActionState, ProposalState};
use engine::control::{self, Changed, Decided, NewSource, Statement};
use engine::delivery;
use engine::intake::{self, Receipt};
use serde_json::json;
use store::device::Device;
use store::source::SourceKind;
use uuid::Uuid;

use crate::sim::{Crash, Sim, now};
use crate::story::{Act, Story, When};

/// Milliseconds after which a device sends again what got no answer.
const RETRY_MS: u64 = 2_000;
/// Milliseconds after which a device looks at what changed.
const LOOK_MS: u64 = 400;
/// Milliseconds after which the person minds a hold.
const MINDED_MS: u64 = 60_000;
/// Milliseconds between two looks at a polled source.
const LOOK_EVERY_MS: u64 = 3_600_000;

/// Milliseconds after which the person has found out what nobody else could.
const FOUND_OUT_MS: u64 = 600_000;

/// How far an action has come; whatever ended it passed everything.
const fn far(state: ActionState) -> usize {
    match state {
        ActionState::Proposed => 0,
        ActionState::AwaitingApproval => 1,
        ActionState::Authorized => 2,
        ActionState::Admitted => 3,
        ActionState::Dispatched => 4,
        ActionState::Unknown
        | ActionState::Accepted
        | ActionState::Blocked
        | ActionState::Effective
        | ActionState::Denied
        | ActionState::Expired
        | ActionState::Superseded
        | ActionState::Withdrawn
        | ActionState::Cancelled
        | ActionState::Abandoned => 5,
    }
}

/// A message on its way to the server.
struct Letter {
    id: Uuid,
    text: &'static str,
    due: Timestamp,
    acked: bool,
}

/// The person, and what their device remembers.
pub struct Person {
    device: Device,
    acts: VecDeque<(When, Act)>,
    start: Timestamp,
    /// When the last act was done.
    done_at: Timestamp,
    not_before: Timestamp,
    letters: Vec<Letter>,
    looks_at: Option<Timestamp>,
    seen: BTreeSet<MessageId>,
    card: Option<(ProposalId, Timestamp)>,
    /// A hold that waits for the person, and when they saw that.
    held: Option<(HoldId, Timestamp)>,
    /// The oldest pause, and when they saw it.
    paused: Option<(PauseId, Timestamp)>,
    ran: Option<Timestamp>,
    duty_ran: Option<Timestamp>,
    /// Since when an action had come this far.
    came: [Option<Timestamp>; 6],
    /// An action that the person is asked about, and when they know what became of it.
    asked: Option<(ActionId, Timestamp)>,
}

impl Person {
    pub(crate) fn new(story: &Story, device: Device) -> Person {
        Person {
            device,
            acts: story.acts.iter().copied().collect(),
            start: story.start,
            done_at: story.start,
            not_before: story.start,
            letters: Vec::new(),
            looks_at: None,
            seen: BTreeSet::new(),
            card: None,
            held: None,
            paused: None,
            ran: None,
            duty_ran: None,
            came: [None; 6],
            asked: None,
        }
    }

    pub(crate) fn into_device(self) -> Device {
        self.device
    }

    pub(crate) fn sees_action(&mut self, state: ActionState, at: Timestamp) {
        for came in self.came.iter_mut().take(far(state) + 1) {
            came.get_or_insert(at);
        }
    }

    /// Something changed on the server, or the connection broke: the device looks, a little later.
    pub(crate) fn hint(&mut self, at: Timestamp) {
        self.look_at(at.plus_ms(LOOK_MS));
    }

    fn look_at(&mut self, at: Timestamp) {
        self.looks_at = Some(self.looks_at.map_or(at, |known| known.min(at)));
    }

    pub(crate) fn sees_run(&mut self, duty: Option<DutyId>, at: Timestamp) {
        self.ran.get_or_insert(at);
        if duty.is_some() {
            self.duty_ran.get_or_insert(at);
        }
    }

    /// What the person could not do any more, if anything.
    pub(crate) fn unfinished(&self) -> Option<String> {
        let act = self.acts.front().map(|(_, act)| format!("{act:?}"));
        act.or_else(|| self.letters.first().map(|letter| format!("send \"{}\"", letter.text)))
    }

    /// When the next act is due, if that is known.
    fn due(&self) -> Option<Timestamp> {
        let (when, _) = self.acts.front()?;
        let due = match when {
            When::At(ms) => Some(self.start.plus_ms(*ms)),
            When::After(ms) => Some(self.done_at.plus_ms(*ms)),
            When::Card(ms) => self.card.map(|(_, seen)| seen.plus_ms(*ms)),
            When::DutyRuns(ms) => self.duty_ran.map(|seen| seen.plus_ms(*ms)),
            When::Runs(ms) => self.ran.map(|seen| seen.plus_ms(*ms)),
            When::Paused(ms) => self.paused.map(|(_, seen)| seen.plus_ms(*ms)),
            When::Held(ms) => self.held.map(|(_, seen)| seen.plus_ms(*ms)),
            When::Action(state, ms) => {
                let came = self.came.get(far(*state)).copied().flatten();
                came.map(|came| came.plus_ms(*ms))
            }
        };
        due.map(|due| due.max(self.not_before))
    }

    pub(crate) fn ready(&self, at: Timestamp) -> bool {
        self.next().is_some_and(|next| next <= at)
    }

    /// When the person or the device has something to do next.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        let letters = self.letters.iter().map(|letter| letter.due);
        let asked = self.asked.map(|(_, at)| at);
        letters.chain(self.due()).chain(self.looks_at).chain(asked).min()
    }

    /// Does one thing that is due.
    pub(crate) fn act(&mut self, sim: &mut Sim<'_>) -> Result<(), Crash> {
        let at = sim.clock.now();
        if let Some(n) = self.letters.iter().position(|letter| letter.due <= at) {
            // Not acknowledged before it is: a crash in between leaves it to be sent again.
            if let Some(letter) = self.letters.get_mut(n) {
                letter.due = at.plus_ms(RETRY_MS);
            }
            return self.send(sim, n);
        }
        if self.due().is_some_and(|due| due <= at) {
            self.not_before = at.plus_ms(RETRY_MS);
            return self.next_act(sim);
        }
        if let Some((id, _)) = self.asked.filter(|(_, knows)| *knows <= at) {
            return self.state(sim, id);
        }
        self.looks_at = None;
        self.look(sim)
    }

    fn send(&mut self, sim: &mut Sim<'_>, n: usize) -> Result<(), Crash> {
        let Some(letter) = self.letters.get(n) else { return Ok(()) };
        let (id, text, acked) = (letter.id, letter.text, letter.acked);
        sim.note("send", json!({"id": id.to_string(), "text": text}));
        if sim.fault(8) {
            sim.note("lost", json!({"id": id.to_string(), "what": "request"}));
            return Ok(());
        }
        let device = self.device.clone();
        let receipt =
            sim.write("message", move |cx, tx| intake::message(cx, tx, &device, id, text))?;
        sim.spoken();
        if sim.fault(8) {
            sim.note("lost", json!({"id": id.to_string(), "what": "answer"}));
            return Ok(());
        }
        let event = match receipt {
            Receipt::New { event, .. } | Receipt::Known { event } => event,
            Receipt::Conflict => {
                sim.note("conflict", json!({"id": id.to_string()}));
                self.letters.swap_remove(n);
                return Ok(());
            }
        };
        sim.note("ack", json!({"id": id.to_string(), "event": event}));
        // A network may deliver a message again after it was answered.
        if !acked && sim.fault(6) {
            if let Some(letter) = self.letters.get_mut(n) {
                letter.acked = true;
            }
        } else {
            self.letters.swap_remove(n);
        }
        Ok(())
    }

    fn next_act(&mut self, sim: &mut Sim<'_>) -> Result<(), Crash> {
        let Some((_, act)) = self.acts.front().copied() else { return Ok(()) };
        match act {
            Act::Send(text) => {
                let cx = sim.cx();
                let at = sim.clock.now();
                self.letters.push(Letter { id: cx.uuid(), text, due: at, acked: false });
            }
            Act::Down(ms) => {
                // It goes down once: the act is over before the power is.
                self.acts.pop_front();
                self.done_at = sim.clock.now().plus_ms(ms);
                sim.note("down", json!({"ms": ms}));
                return sim.restart(ms).map_err(Crash::Failed);
            }
            Act::Deliver(parcel) => sim.send_parcel(parcel),
            Act::Confirm => self.decide(sim, true)?,
            Act::Decline => self.decide(sim, false)?,
            Act::Stop | Act::Resume => self.change(sim, act)?,
            Act::Approve => self.tap(sim, "approve")?,
            Act::Deny => self.tap(sim, "deny")?,
            Act::Withdraw => self.tap(sim, "withdraw")?,
            Act::Source(kind, name) => self.add_source(sim, kind, name)?,
            Act::Pause => self.hold(sim, "pause")?,
            Act::Lift => self.hold(sim, "lift")?,
            Act::Release => self.hold(sim, "release")?,
        }
        self.acts.pop_front();
        self.done_at = sim.clock.now();
        self.not_before = self.done_at;
        self.ran = None;
        self.duty_ran = None;
        Ok(())
    }

    fn decide(&mut self, sim: &mut Sim<'_>, confirm: bool) -> Result<(), Crash> {
        let Some((id, _)) = self.card else { return Ok(()) };
        let device = self.device.clone();
        let decided = sim.write("decide", move |cx, tx| {
            let owner = tx.owner();
            let shown = store::proposal::get(tx, owner, id)?.digest;
            match confirm {
                true => control::confirm(cx, tx, &device, id, shown),
                false => control::decline(cx, tx, &device, id),
            }
        })?;
        self.card = None;
        let word = match decided {
            Decided::Done(proposal) => proposal.state.word().to_owned(),
            // The answer to an earlier try was lost.
            Decided::Conflict(text) => text,
        };
        sim.note("decide", json!({"proposal": id, "came": word}));
        Ok(())
    }

    /// The person's word on the newest action: on exactly what its card shows.
    fn tap(&mut self, sim: &mut Sim<'_>, what: &'static str) -> Result<(), Crash> {
        let (cx, owner) = (sim.cx(), sim.owner);
        let shown = now(cx.store.read(move |tx| store::action::all(tx, owner, 1)));
        let Some(shown) = sim.outcome("look", shown)?.pop() else { return Ok(()) };
        let (device, id, digest) = (self.device.clone(), shown.id, shown.digest);
        // Noted before it is made: its answer may get lost.
        sim.note("tap", json!({"what": what, "action": id, "digest": digest}));
        let changed = sim.write("tap", move |cx, tx| match what {
            "approve" => control::approve(tx, &device, id, digest),
            "deny" => control::deny(cx, tx, &device, id, None),
            _ => control::withdraw(cx, tx, &device, id),
        })?;
        let said = match changed {
            Changed::Done => None,
            Changed::Conflict(why) => Some(why),
            Changed::NotYours(whose) => Some(whose.to_owned()),
        };
        sim.note("tapped", json!({"what": what, "action": id, "conflict": said}));
        Ok(())
    }

    /// Asked what became of an action, the person says what is true.
    fn state(&mut self, sim: &mut Sim<'_>, id: ActionId) -> Result<(), Crash> {
        let (cx, at) = (sim.cx(), sim.clock.now());
        self.asked = Some((id, at.plus_ms(RETRY_MS)));
        let attempts = now(cx.store.read(move |tx| store::attempt::of_action(tx, id)));
        let attempts = sim.outcome("look", attempts)?;
        let happened = sim.world.vendor.as_ref().is_some_and(|vendor| {
            attempts.iter().any(|attempt| vendor.in_force(&attempt.operation_id, at))
        });
        let statement = if happened { Statement::Happened } else { Statement::DidNot };
        sim.note("state", json!({"action": id, "happened": happened}));
        let device = self.device.clone();
        sim.write("state", move |cx, tx| control::state(cx, tx, &device, id, statement))?;
        self.asked = None;
        Ok(())
    }

    fn change(&mut self, sim: &mut Sim<'_>, act: Act) -> Result<(), Crash> {
        let device = self.device.clone();
        let stops = act == Act::Stop;
        let changed = sim.write("change", move |cx, tx| {
            let owner = tx.owner();
            let Some(duty) = store::duty::all(tx, owner, 1)?.into_iter().next() else {
                return Ok(None);
            };
            let changed = match stops {
                true => control::stop(cx, tx, &device, duty.id)?,
                false => control::resume(tx, &device, duty.id)?,
            };
            Ok(Some((duty.id, changed)))
        })?;
        sim.spoken();
        let what = if stops { "stop" } else { "resume" };
        if let Some((duty, changed)) = changed {
            let done = changed == Changed::Done;
            sim.note(what, json!({"duty": duty, "done": done}));
        }
        Ok(())
    }

    fn add_source(
        &self,
        sim: &mut Sim<'_>,
        kind: SourceKind,
        name: &'static str,
    ) -> Result<(), Crash> {
        let (device, id): (_, SourceId) = (self.device.clone(), sim.cx().id());
        let changed = sim.write("source", move |_, tx| {
            let new = NewSource {
                kind,
                name: name.to_owned(),
                config: name.to_owned(),
                every_ms: (kind != SourceKind::Webhook).then_some(LOOK_EVERY_MS),
                expect_ms: None,
            };
            control::add_source(tx, &device, id, new)
        })?;
        // A conflict: the answer to an earlier try was lost.
        sim.note("source", json!({"name": name, "done": changed == Changed::Done}));
        Ok(())
    }

    /// The person's own word on holds and pauses. Whoever lost the answer asks again.
    fn hold(&mut self, sim: &mut Sim<'_>, what: &'static str) -> Result<(), Crash> {
        let device = self.device.clone();
        let held = self.held.map(|(id, _)| id);
        let paused = self.paused.map(|(id, _)| id);
        let changed = sim.write("hold", move |cx, tx| match (what, held, paused) {
            ("release", Some(id), _) => control::release(tx, &device, id),
            ("lift", _, Some(id)) => control::lift(tx, &device, id),
            _ => control::pause(cx, tx, &device, None),
        })?;
        (self.held, self.paused) = (None, None);
        sim.note(what, json!({"hold": held, "done": changed == Changed::Done}));
        Ok(())
    }

    /// Reads what is new, and confirms that it is here.
    fn look(&mut self, sim: &mut Sim<'_>) -> Result<(), Crash> {
        let (cx, owner) = (sim.cx(), sim.owner);
        let found = now(cx.store.read(move |tx| {
            let chat = store::message::chat_before(tx, owner, i64::MAX, 60)?;
            let holds = store::hold::placed(tx, owner)?;
            let pauses = store::hold::pauses(tx, owner)?;
            let actions = store::action::all(tx, owner, 20)?;
            let proposals = store::proposal::all(tx, owner, 20)?;
            Ok((chat, proposals, (holds, pauses), actions))
        }));
        let (chat, proposals, (holds, pauses), actions) = sim.outcome("look", found)?;
        let at = sim.clock.now();
        let unclear = |action: &&store::action::Action| {
            action.state == ActionState::Unknown && action.escalated_at.is_some()
        };
        match (actions.iter().find(unclear), self.asked) {
            (Some(action), Some((id, _))) if action.id == id => {}
            (action, _) => self.asked = action.map(|a| (a.id, at.plus_ms(FOUND_OUT_MS))),
        }
        match (pauses.first(), self.paused) {
            (Some(pause), Some((id, _))) if pause.id == id => {}
            (pause, _) => self.paused = pause.map(|pause| (pause.id, at)),
        }
        // The person minds a hold once they are asked, or once it has stood for a minute.
        let minded = |hold: &store::hold::Hold| match hold.asked_at {
            Some(_) => at,
            None => hold.created_at.plus_ms(MINDED_MS),
        };
        let shown = holds.iter().find(|hold| minded(hold) <= at);
        if let Some(next) = holds.iter().map(minded).filter(|next| *next > at).min() {
            self.look_at(next);
        }
        match (shown, self.held) {
            (Some(hold), Some((id, _))) if hold.id == id => {}
            (shown, _) => self.held = shown.map(|hold| (hold.id, at)),
        }
        let open = proposals.iter().rev().find(|p| p.state == ProposalState::Open);
        match open {
            Some(open) if self.card.is_none_or(|(id, _)| id != open.id) => {
                self.card = Some((open.id, at));
            }
            Some(_) | None => {}
        }
        let mut arrived = Vec::new();
        for entry in chat.into_iter().filter(|entry| entry.state == "sending") {
            let id: MessageId = base::Id::from_uuid(entry.id);
            arrived.push(id);
            if self.seen.insert(id) {
                sim.note("seen", json!({"message": id, "text": entry.text, "late": entry.late}));
            }
        }
        if arrived.is_empty() {
            return Ok(());
        }
        if sim.fault(10) {
            self.look_at(at.plus_ms(RETRY_MS));
            return Ok(());
        }
        let device = self.device.id;
        sim.write("receipts", move |_, tx| delivery::receipts(tx, device, &arrived))
    }
}
