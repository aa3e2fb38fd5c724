//! A room in Hong Kong, from the person's words to the vendor's evidence: how the vendor goes wrong × what the
//! person does, each with one oracle over the records and the vendor's own state.

use domain::effect::Sight;
use domain::state::{ActionState, ApprovalState, AttemptState, PauseState};
use store::message::MessageKind;
use testkit::hotel::{Booking, Fault, Party, Tool};

use super::{DAY_MS, HOUR_MS, MINUTE_MS, plain, same, told};
use crate::dump::Effect;
use crate::story::{Act, Case, Outcome, Play, Story, When};
use crate::world::HotelEnd;

/// What the person does in the story with a grant.
const PLAYS: [Play; 8] = [
    Play::None,
    Play::PauseBefore,
    Play::PauseBetween,
    Play::PauseAfter,
    Play::StopMessage,
    Play::Harmless,
    Play::Withdraw,
    Play::StopDuty,
];
/// What the person does in the story with a card.
const TAPS: [Play; 4] = [Play::Approve, Play::ApproveLate, Play::ApprovePaused, Play::Deny];

/// The honest one of each.
pub(super) fn all() -> Vec<Story> {
    let honest = |play| Case { fault: None, play };
    vec![hotel(honest(Play::None)), card(honest(Play::Approve))]
}

/// Every variant of each.
pub(super) fn variants() -> Vec<Story> {
    let faults = Fault::ALL.into_iter().map(|fault| Some((Tool::BookHotel, fault)));
    let looks = Fault::ALL.into_iter().filter(|fault| fault.concerns(Tool::FindBooking));
    let looks = looks.map(|fault| Some((Tool::FindBooking, fault)));
    let mut all = Vec::new();
    for fault in std::iter::once(None).chain(faults).chain(looks) {
        all.extend(PLAYS.map(|play| hotel(Case { fault, play })));
    }
    // A vendor that says falsely that nothing happened makes whoever believes it book twice.
    let kept = std::iter::once(None).chain(Fault::ALL.map(|fault| Some((Tool::BookHotel, fault))));
    let again = kept.map(|fault| Case { fault, play: Play::Again });
    all.extend(again.filter(Case::keeps_promises).map(hotel));
    all.extend(TAPS.map(|play| card(Case { fault: None, play })));
    all
}

/// Delegated with a grant: policy and reviewer release it.
fn hotel(case: Case) -> Story {
    let action = |state, ms| When::Action(state, ms);
    let admitted = action(ActionState::Admitted, 1_000);
    let lift = (When::Paused(10 * MINUTE_MS), Act::Lift);
    let acts = match case.play {
        Play::PauseBefore => vec![(action(ActionState::Proposed, 0), Act::Pause), lift],
        Play::PauseBetween => vec![(admitted, Act::Pause), lift],
        Play::PauseAfter => vec![(action(ActionState::Dispatched, 0), Act::Pause), lift],
        Play::StopMessage => vec![(admitted, Act::Send("先别订"))],
        Play::Harmless => vec![(admitted, Act::Send("how is the weather there?"))],
        Play::Withdraw => vec![(admitted, Act::Withdraw)],
        Play::StopDuty => vec![(admitted, Act::Stop)],
        Play::None
        | Play::Again
        | Play::Approve
        | Play::ApproveLate
        | Play::ApprovePaused
        | Play::Deny => Vec::new(),
    };
    let words = match case.play == Play::Again {
        true => "I want a room in Hong Kong, try again",
        false => "I want a room in Hong Kong",
    };
    let mut all = vec![(When::At(1_000), Act::Send(words)), (When::Card(MINUTE_MS), Act::Confirm)];
    all.extend(acts);
    Story {
        end_ms: 6 * HOUR_MS,
        acts: all,
        hotel: Some(case),
        small: include_str!("../../stories/hotel_small.toml"),
        check,
        ..plain(
            "hotel",
            "a room is delegated with a grant: search, review, undo window, sending, evidence",
            include_str!("../../stories/hotel.toml"),
        )
    }
}

/// Asked for in the person's own conversation, where no grant can cover it: a card.
fn card(case: Case) -> Story {
    let asked = |ms| When::Action(ActionState::AwaitingApproval, ms);
    let acts = match case.play {
        Play::ApproveLate => vec![(asked(DAY_MS + MINUTE_MS), Act::Approve)],
        Play::ApprovePaused => vec![
            (asked(MINUTE_MS), Act::Pause),
            (When::Paused(5_000), Act::Approve),
            (When::Paused(10_000), Act::Lift),
            (When::After(MINUTE_MS), Act::Approve),
        ],
        Play::Deny => vec![(asked(MINUTE_MS), Act::Deny)],
        Play::Approve
        | Play::None
        | Play::Again
        | Play::PauseBefore
        | Play::PauseBetween
        | Play::PauseAfter
        | Play::StopMessage
        | Play::Harmless
        | Play::Withdraw
        | Play::StopDuty => vec![(asked(MINUTE_MS), Act::Approve)],
    };
    let mut all = vec![(When::At(1_000), Act::Send("book a room in Hong Kong"))];
    all.extend(acts);
    Story {
        name: "hotel_card",
        about: "a room is asked for without a grant: the person decides on its card",
        end_ms: DAY_MS + 2 * HOUR_MS,
        acts: all,
        ..hotel(case)
    }
}

fn check(outcome: &Outcome) -> Result<(), String> {
    let Some(end) = &outcome.hotel else { return Err("there is no hotel".into()) };
    let all = &outcome.records.actions;
    let [first, again @ ..] = all.as_slice() else { return Err("no action".into()) };
    // Tried again for each that did not happen: that of the fault, and that of a crash before anything left.
    let again_max = match end.case.play == Play::Again {
        true => 1 + usize::from(outcome.rough),
        false => 0,
    };
    let before = all.iter().take(again.len());
    let open = before.filter(|effect| effect.action.state != ActionState::Blocked).count();
    if again.len() > again_max || open > 0 || end.bookings.len() > 1 {
        let (all, bookings) = (all.len(), end.bookings.len());
        return Err(format!(
            "{all} actions, {open} of them tried again while open, {bookings} bookings"
        ));
    }
    let of = |effect: &Effect| {
        let own = |operation: &str| effect.attempts.iter().any(|a| a.operation_id == operation);
        let mut end = end.clone();
        end.bookings.retain(|booking| own(&booking.client_ref));
        end.reached.retain(|reached| own(&reached.operation));
        end
    };
    let known: usize = all.iter().map(|effect| of(effect).reached.len()).sum();
    same("requests of attempts on record", &known, &end.reached.len())?;
    for effect in all {
        let end = of(effect);
        once(&end, effect)?;
        released(&end, effect)?;
        stopped(outcome, effect)?;
        evidence(&end, effect)?;
        agree(outcome, &end, effect)?;
    }
    let sold_out = end.case.fault == Some((Tool::BookHotel, Fault::SoldOut));
    if !outcome.rough && sold_out && end.case.play == Play::Again {
        let states: Vec<_> = all.iter().map(|effect| effect.action.state).collect();
        same("states", &states, &vec![ActionState::Blocked, ActionState::Effective])?;
    }
    if outcome.rough || end.case.play == Play::Again {
        return Ok(());
    }
    peaceful(outcome, end, first)
}

/// At most one real booking and one request for an action, and every request was an attempt on record first.
fn once(end: &HotelEnd, effect: &Effect) -> Result<(), String> {
    if end.bookings.len() > 1 || end.reached.len() > 1 {
        return Err(format!("{} bookings, {} requests", end.bookings.len(), end.reached.len()));
    }
    for reached in &end.reached {
        let of = effect.attempts.iter().find(|a| a.operation_id == reached.operation);
        let Some(attempt) = of else {
            return Err(format!("request {} is no attempt on record", reached.operation));
        };
        if reached.at < attempt.created_at || reached.at > attempt.send_by {
            return Err(format!("request {} came out of its time", reached.operation));
        }
    }
    // A further attempt needs that the one before it certainly never left.
    let before = effect.attempts.iter().rev().skip(1);
    let open = before.filter(|attempt| attempt.state != AttemptState::Blocked).count();
    same("attempts that were left open", &open, &0)
}

/// Nothing was sent without a release of exactly that content, and it was sent as it was frozen.
fn released(end: &HotelEnd, effect: &Effect) -> Result<(), String> {
    let Effect { action, content, bytes, approvals, attempts } = effect;
    same("the frozen bytes", bytes, &action.digest)?;
    for reached in &end.reached {
        let Some(content) = content else { return Err("a content that cannot be read".into()) };
        let wanted = content.call(Some("client_ref"), &reached.operation);
        same("the request", &reached.arguments, &wanted)?;
    }
    let counts = |approval: &&store::approval::Approval| {
        approval.digest == action.digest
            && approval.decided_by.is_some()
            && approval.state == ApprovalState::Consumed
    };
    if !attempts.is_empty() && approvals.iter().filter(counts).count() != 1 {
        return Err(format!("attempts under the approvals {approvals:?}"));
    }
    Ok(())
}

/// While a pause stood that concerned it, no attempt was registered.
fn stopped(outcome: &Outcome, effect: &Effect) -> Result<(), String> {
    let records = &outcome.records;
    let seqs = |id: uuid::Uuid| records.seqs_of(id).unwrap_or_default();
    for attempt in &effect.attempts {
        let (at, _) = seqs(base::Id::uuid(attempt.id));
        for pause in &records.pauses {
            let (placed, last) = seqs(base::Id::uuid(pause.id));
            let stood = match pause.state {
                PauseState::Active => at > placed,
                PauseState::Lifted => at > placed && at < last,
            };
            if stood && pause.duty.is_none_or(|duty| effect.action.duty == Some(duty)) {
                return Err(format!("attempt {at} while the pause of {placed} stood"));
            }
        }
    }
    Ok(())
}

/// In force is only what a look found with that receipt while it really was there.
fn evidence(end: &HotelEnd, effect: &Effect) -> Result<(), String> {
    if effect.action.state != ActionState::Effective {
        return Ok(());
    }
    let receipt = effect.action.receipt.clone().unwrap_or_default();
    let wanted = Sight::Found { receipt, ended: false };
    let shown = end.looked.iter().any(|look| {
        look.exists
            && look.sight == wanted
            && effect.attempts.iter().any(|attempt| attempt.operation_id == look.operation)
    });
    if shown { Ok(()) } else { Err("in force without evidence".into()) }
}

/// What the records say in the end and what is true, and that the person was asked where they differ.
fn agree(outcome: &Outcome, end: &HotelEnd, effect: &Effect) -> Result<(), String> {
    let action = &effect.action;
    let booked = end.bookings.first();
    let by_hotel = booked.is_some_and(|b| b.cancelled_by == Some(Party::Hotel));
    let settled = match action.state {
        ActionState::Effective => booked.is_some(),
        ActionState::Accepted => action.authority.as_deref() == Some("user") && booked.is_some(),
        ActionState::Blocked => booked.is_none_or(|b| !b.in_force()),
        // Released, and a stop that was not lifted stands in its way.
        ActionState::Authorized => {
            booked.is_none()
                && outcome.records.pauses.iter().any(|pause| pause.state == PauseState::Active)
        }
        ActionState::Denied
        | ActionState::Expired
        | ActionState::Superseded
        | ActionState::Withdrawn
        | ActionState::Cancelled
        | ActionState::Abandoned => booked.is_none(),
        ActionState::Proposed
        | ActionState::AwaitingApproval
        | ActionState::Admitted
        | ActionState::Dispatched
        | ActionState::Unknown => false,
    };
    let says = || {
        let booked: Vec<(bool, bool)> =
            end.bookings.iter().map(|b| (Booking::in_force(b), b.forgotten)).collect();
        format!("{} ({:?}) and bookings {booked:?}", action.state, action.reason)
    };
    let told = outcome.records.told();
    let asked = told.iter().any(|(_, text, _)| text.starts_with("Did this happen?"));
    if action.contradicted && !asked {
        return Err(format!("a contradiction without a card: {}", says()));
    }
    match end.case.keeps_promises() {
        true if action.contradicted && !by_hotel => Err(format!("contradicted: {}", says())),
        true if !settled => Err(says()),
        // A vendor that breaks its promise may fool the records for a while, not for good and unseen.
        false if !settled && !asked => Err(format!("nobody was told: {}", says())),
        true | false => Ok(()),
    }
}

/// Without crashes: exactly what each variant must come to.
fn peaceful(outcome: &Outcome, end: &HotelEnd, effect: &Effect) -> Result<(), String> {
    let records = &outcome.records;
    let sent = match end.case.play {
        Play::None
        | Play::Again
        | Play::PauseBefore
        | Play::PauseAfter
        | Play::Harmless
        | Play::Approve
        | Play::ApprovePaused => 1,
        Play::PauseBetween
        | Play::StopMessage
        | Play::Withdraw
        | Play::StopDuty
        | Play::ApproveLate
        | Play::Deny => 0,
    };
    same("requests", &end.reached.len(), &sent)?;
    if end.case != (Case { fault: None, play: Play::None }) {
        return Ok(());
    }
    same("state", &effect.action.state, &ActionState::Effective)?;
    let grants: Vec<_> = records.grants.iter().map(|g| (g.reserved_count, g.spent_count)).collect();
    same("grants", &grants, &vec![(0, 1)])?;
    let notice = "Start this duty? A room: Book a room in Hong Kong from 10 to 12 March.";
    let (notice, agent) =
        ((MessageKind::Notice, notice), (MessageKind::Agent, "The room: in force."));
    told(outcome, &[notice, agent])
}
