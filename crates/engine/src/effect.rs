//! What the stages of the effect path share: the control records as they are now, the request for a release,
//! and the end that whoever waits is told of (DESIGN section 6).

use base::Timestamp;
use domain::effect::{Content, Control, Demanded, Refusal, Release, Standing, demanded};
use domain::event::{EventKind, Trust};
use domain::state::{ActionState, ApprovalState};
use domain::words;
use store::action::Action;
use store::approval::{self, Approval, Tap};
use store::owner::PrincipalKind;
use store::{OwnerTx, Result, StoreError};

use crate::intake::{Content as Said, Incoming, accept};
use crate::{Context, notice};

/// Why a person is asked within a grant of theirs.
pub(crate) const PERSON_ASKED: &str = "Your supervisor asks that you decide on this yourself.";

/// An action with its frozen bytes.
pub(crate) struct Held {
    pub action: Action,
    pub bytes: Vec<u8>,
    pub content: Content,
}

/// Reads an action and its content under the lock. Bytes that were erased or changed are no content.
pub(crate) fn held(tx: &mut OwnerTx<'_, '_>, id: base::ActionId) -> Result<Held> {
    let action = store::action::get(tx, id)?;
    let bytes = store::event::body(tx, action.content)?.unwrap_or_default();
    let content = Content::read(&bytes).map_err(StoreError::Corrupt)?;
    Ok(Held { action, bytes, content })
}

/// Whether what became of it can be looked up: by the manifest's entry that was frozen with it and by no other,
/// since its operation id travelled as that one says, if it travelled at all (P3).
pub(crate) fn can_look_up(cx: &Context, tx: &mut OwnerTx<'_, '_>, action: &Action) -> Result<bool> {
    if !cx.world.spec(&action.tool).is_some_and(|spec| spec.can_look_up) {
        return Ok(false);
    }
    let bytes = store::event::body(tx, action.content)?.unwrap_or_default();
    Ok(Content::read(&bytes).is_ok_and(|content| cx.world.stands(&content)))
}

impl Held {
    /// The action as the decisions see it.
    pub fn standing(&self, cx: &Context) -> Standing<'_> {
        Standing {
            content: &self.content,
            digest: self.action.digest,
            bytes: base::Digest::of(&self.bytes),
            state: self.action.state,
            duty: self.action.duty,
            expires_at: self.action.expires_at,
            entry: cx.world.stands(&self.content).then_some(self.content.entry),
        }
    }
}

/// Everything that time and the user can change about an action, read now (ADM-02, ADM-18).
pub(crate) fn control(tx: &mut OwnerTx<'_, '_>, held: &Held) -> Result<Control> {
    let (action, owner, now) = (&held.action, tx.owner(), tx.now());
    let pauses = store::hold::pauses(tx, owner)?;
    let duty = match action.duty {
        Some(duty) => Some(store::duty::get(tx, owner, duty)?.state),
        None => None,
    };
    let version = match action.task_version {
        Some(version) => Some(store::duty::version_by_id(tx, version)?.state),
        None => None,
    };
    let (mut object_gone, mut object_taken) = (None, None);
    for object in &held.content.objects {
        let (value, kind) = (object.id.as_str(), object.kind.as_str());
        let found =
            store::object::find(tx, action.session, action.task_version, value, Some(kind), now)?;
        if found.is_none_or(|found| found.digest != object.digest) {
            object_gone.get_or_insert(object.argument.clone());
        }
        object_taken = object_taken.or(store::action::taken(tx, action, kind, value)?);
    }
    Ok(Control {
        system_stop: tx.system_stop()?,
        paused: pauses.iter().any(|pause| pause.duty.is_none() || pause.duty == action.duty),
        held: !store::hold::placed(tx, owner)?.is_empty(),
        duty,
        version,
        object_gone,
        object_taken,
        errand_open: store::action::errand(tx, action)?,
        release: release(tx, action)?,
        rules: rules(tx)?,
        supervisor: approval::besides(tx, action.id)?.map(|besides| released(&besides, None)),
    })
}

/// The approval that an action points at, if it is its own: the content does not name its action, so two that
/// are alike have one digest and the record alone tells them apart (ADM-13).
fn own_approval(tx: &mut OwnerTx<'_, '_>, action: &Action) -> Result<Option<Approval>> {
    let Some(id) = action.approval else { return Ok(None) };
    Ok(Some(approval::get(tx, id)?).filter(|approval| approval.action == action.id))
}

/// The approval that counts, with its grant as others have used it.
fn release(tx: &mut OwnerTx<'_, '_>, action: &Action) -> Result<Option<Release>> {
    let Some(approval) = own_approval(tx, action)? else { return Ok(None) };
    let grant = match approval.rests_on {
        None => None,
        Some(grant) => {
            let own = match store::action::share(action.state) {
                store::grant::Share::None => None,
                store::grant::Share::Reserved | store::grant::Share::Spent => {
                    Some(action.minor.unwrap_or(0))
                }
            };
            Some(store::grant::get(tx, grant)?.limits(own)?)
        }
    };
    Ok(Some(released(&approval, grant)))
}

fn released(approval: &Approval, grant: Option<domain::effect::Grant>) -> Release {
    Release {
        state: approval.state,
        digest: approval.digest,
        task_version: approval.task_version,
        until: approval.until_at,
        by_policy: approval.kind == PrincipalKind::Policy,
        grant,
    }
}

/// The supervisor's rules in force.
fn rules(tx: &mut OwnerTx<'_, '_>) -> Result<Vec<domain::effect::Rule>> {
    let owner = tx.owner();
    Ok(store::rule::active(tx, owner)?.iter().map(store::rule::Rule::terms).collect())
}

/// What the supervisor's rules leave of an action that was not sent: one that they forbid ends here, and the
/// person and whoever waits are told. `None`: it ended.
pub(crate) fn ruled(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    held: &mut Held,
) -> Result<Option<Demanded>> {
    let demanded = demanded(&rules(tx)?, &held.content);
    if !demanded.forbid {
        return Ok(Some(demanded));
    }
    forbid(cx, tx, held, ActionState::Withdrawn).map(|()| None)
}

/// Ends what a rule forbids, and tells the person.
pub(crate) fn forbid(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    held: &mut Held,
    to: ActionState,
) -> Result<()> {
    let why = Refusal::Forbidden.to_string();
    drop_action(cx, tx, &mut held.action, to, &why, None)?;
    let text = |language| words::forbidden(&held.content, language);
    notice::action(cx, tx, &held.action, text).map(|_| ())
}

/// Asks the supervisor besides, where a rule wants it and nobody asked yet: their device lists it (ADM-31). Where
/// no rule wants it any more, the question ends. `Some`: until when they may decide.
pub(crate) fn ask_besides(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    held: &Held,
    demanded: Demanded,
) -> Result<Option<Timestamp>> {
    let (action, now) = (&held.action, tx.now());
    let asked = approval::besides(tx, action.id)?;
    if !demanded.supervisor {
        if let Some(asked) = asked.filter(|asked| asked.state == ApprovalState::Requested) {
            end_one(tx, &asked, false)?;
        }
        return Ok(None);
    }
    let until = decide_until(cx, action, now);
    match asked.map(|asked| (asked.state, asked)) {
        Some((ApprovalState::Requested, asked)) => return Ok(Some(asked.until_at)),
        Some((ApprovalState::Granted, asked)) if asked.until_at > now => {
            return Ok(Some(asked.until_at));
        }
        // What they released was not used in time.
        Some((ApprovalState::Granted, asked)) => end_one(tx, &asked, true)?,
        Some((
            ApprovalState::Denied
            | ApprovalState::Expired
            | ApprovalState::Cancelled
            | ApprovalState::Consumed
            | ApprovalState::Voided,
            _,
        ))
        | None => {}
    }
    let kind = PrincipalKind::Supervisor;
    let shown = words::action_template(store::owner::locked(tx)?.language());
    let request = Approval::request(cx.id(), action, kind, &shown, until, now);
    approval::insert(tx, &request)?;
    Ok(Some(until))
}

/// A request whose time is over: nothing was done, and whoever waits is told (ADM-32).
pub(crate) fn lapse(cx: &Context, tx: &mut OwnerTx<'_, '_>, held: &mut Held) -> Result<()> {
    let why = "nobody decided in time";
    drop_action(cx, tx, &mut held.action, ActionState::Expired, why, None)?;
    let text = |language| words::lapsed(&held.content, language);
    notice::action(cx, tx, &held.action, text).map(|_| ())
}

/// Until when somebody may decide, and what was decided be used.
pub(crate) fn decide_until(cx: &Context, action: &Action, now: Timestamp) -> Timestamp {
    let until = now.plus_ms(cx.limits.approval_ms);
    action.expires_at.map_or(until, |expires| expires.min(until))
}

/// Asks a person to release an action: the request, its card, and the time it has (ADM-06, ADM-07).
pub(crate) fn ask(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    held: &mut Held,
    why: String,
) -> Result<()> {
    let was = held.action.state;
    let until = decide_until(cx, &held.action, tx.now());
    let shown = words::action_template(store::owner::locked(tx)?.language());
    let kind = PrincipalKind::User;
    let request = Approval::request(cx.id(), &held.action, kind, &shown, until, tx.now());
    store::approval::insert(tx, &request)?;
    // Both questions end at one time: a card whose other half is over could only be tapped in vain.
    if let Some(earlier) = approval::besides(tx, held.action.id)?
        && earlier.state == ApprovalState::Requested
        && earlier.until_at < until
    {
        end_one(tx, &earlier, false)?;
    }
    let demanded = demanded(&rules(tx)?, &held.content);
    ask_besides(cx, tx, held, demanded)?;
    let action = &mut held.action;
    action.state = ActionState::AwaitingApproval;
    action.approval = Some(request.id);
    action.draws_on = None;
    action.due_at = Some(until);
    action.reason = Some(why.clone());
    store::action::put(tx, action, was, None)?;
    let text = |language| words::asks(&held.content, &why, language);
    notice::action(cx, tx, &held.action, text).map(|_| ())
}

/// Ends the approval by the person or the policy of an action that goes back to the person.
pub(crate) fn end_approval(tx: &mut OwnerTx<'_, '_>, action: &Action) -> Result<()> {
    own_approval(tx, action)?.map_or(Ok(()), |approval| end_one(tx, &approval, false))
}

/// Uses the approvals of an action up, at its attempt; a question that nobody has to answer any more ends.
pub(crate) fn use_up(tx: &mut OwnerTx<'_, '_>, action: &Action) -> Result<()> {
    for approval in approval::of_action(tx, action.id)? {
        match approval.state {
            ApprovalState::Granted => {
                approval::advance(tx, &approval, ApprovalState::Consumed, Tap::default())?;
            }
            ApprovalState::Requested
            | ApprovalState::Denied
            | ApprovalState::Expired
            | ApprovalState::Cancelled
            | ApprovalState::Consumed
            | ApprovalState::Voided => end_one(tx, &approval, false)?,
        }
    }
    Ok(())
}

fn end_one(tx: &mut OwnerTx<'_, '_>, approval: &Approval, expired: bool) -> Result<()> {
    let to = match (approval.state, expired) {
        (ApprovalState::Requested | ApprovalState::Granted, true) => ApprovalState::Expired,
        (ApprovalState::Requested, false) => ApprovalState::Cancelled,
        (ApprovalState::Granted, false) => ApprovalState::Voided,
        (
            ApprovalState::Denied
            | ApprovalState::Expired
            | ApprovalState::Cancelled
            | ApprovalState::Consumed
            | ApprovalState::Voided,
            _,
        ) => return Ok(()),
    };
    approval::advance(tx, approval, to, Tap::default()).map(|_| ())
}

/// Moves an action to an end before it was sent, and tells whoever waits.
pub(crate) fn drop_action(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    action: &mut Action,
    to: ActionState,
    why: &str,
    by: Option<base::PrincipalId>,
) -> Result<()> {
    for approval in approval::of_action(tx, action.id)? {
        end_one(tx, &approval, to == ActionState::Expired)?;
    }
    let was = action.state;
    action.state = to;
    action.reason = Some(why.to_owned());
    action.due_at = None;
    store::action::put(tx, action, was, by)?;
    settled(cx, tx, action)
}

/// Tells whoever waits for an action what came of it: an event under its id, once per state.
pub(crate) fn settled(cx: &Context, tx: &mut OwnerTx<'_, '_>, action: &Action) -> Result<()> {
    let reason = action.reason.as_deref().unwrap_or_default();
    let receipt = action.receipt.as_deref().map(|receipt| format!(" Receipt: {receipt}."));
    let state = words::action_state(action.state);
    tell(cx, tx, action, &format!("{state}.{} {reason}", receipt.unwrap_or_default()))
}

/// Tells them what was answered to what was only asked: as a read's answer, from outside.
pub(crate) fn answered(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    action: &Action,
    answer: &str,
) -> Result<()> {
    tell(cx, tx, action, &format!("it was asked, and this is the answer.\n{answer}"))
}

fn tell(cx: &Context, tx: &mut OwnerTx<'_, '_>, action: &Action, what: &str) -> Result<()> {
    let source = store::owner::locked(tx)?.timer_source;
    let text = format!("action {} ({}): {what}", action.id, action.tool);
    let incoming = Incoming {
        source,
        external_id: format!("action:{}:{}:{}", action.id, action.state, action.tries),
        kind: EventKind::ActionSettled,
        key: Some(action.id.to_string()),
        topic: None,
        trust: Trust::Outside,
        content: Said::text(text.trim_end(), format!("action:{}", action.id)),
        links: Vec::new(),
        session: None,
        duty: None,
        late: false,
    };
    accept(cx, tx, incoming).map(|_| ())
}
