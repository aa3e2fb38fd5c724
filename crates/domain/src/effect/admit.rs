//! Admission and recheck: one list of conditions, asked twice (ADM-03, ADM-16, ADM-18).
//!
//! The two cut lines of a stop are the two commits in which the answer is yes. Before the first a stop
//! refuses, between the two it recalls, after the second it can only be dealt with.

use base::{ActionId, Digest, DutyId, TaskVersionId, Timestamp};

use super::{Content, Grant, Limit, Rule, demanded};
use crate::state::{ActionState, ApprovalState, DutyState, TaskVersionState};

/// The action that asks.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing<'a> {
    /// Its frozen content.
    pub content: &'a Content,
    /// The digest on record.
    pub digest: Digest,
    /// The digest of the bytes as they are now.
    pub bytes: Digest,
    /// Where it stands.
    pub state: ActionState,
    /// For which duty.
    pub duty: Option<DutyId>,
    /// When the first of its objects stops counting.
    pub expires_at: Option<Timestamp>,
    /// The manifest's entry as it is now; `None`: there is none any more.
    pub entry: Option<Digest>,
}

/// Who released it, what exactly, in which scope, until when (ADM-10).
#[derive(Debug, Clone, PartialEq)]
pub struct Release {
    /// Where the approval stands.
    pub state: ApprovalState,
    /// Of which content.
    pub digest: Digest,
    /// In which version.
    pub task_version: Option<TaskVersionId>,
    /// Until when.
    pub until: Timestamp,
    /// The grant that a policy's approval rests on, with what others used of it.
    pub grant: Option<Grant>,
    /// Whether a policy released it, which only a grant lets it do.
    pub by_policy: bool,
}

/// What the control records say now, under the owner's lock. Knowledge has no place here (P4, P7).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Control {
    /// The operator stopped everything.
    pub system_stop: bool,
    /// A pause of everything, or of the action's duty.
    pub paused: bool,
    /// A message of the user holds everything back.
    pub held: bool,
    /// The duty's state.
    pub duty: Option<DutyState>,
    /// The state of the version that the action serves.
    pub version: Option<TaskVersionState>,
    /// An issued object that counts no more, or whose snapshot is not the frozen one.
    pub object_gone: Option<String>,
    /// An object that another live action uses.
    pub object_taken: Option<ActionId>,
    /// An action of the same errand that is admitted, sent or unknown.
    pub errand_open: Option<ActionId>,
    /// The approval of the person, or of the policy within a grant.
    pub release: Option<Release>,
    /// The supervisor's rules in force.
    pub rules: Vec<Rule>,
    /// The supervisor's approval, which only counts where a rule asks for it.
    pub supervisor: Option<Release>,
}

/// Why an action may not go on. The text says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The operator's stop.
    #[error("the operator has stopped everything; it goes on when they lift that")]
    SystemStop,
    /// A pause.
    #[error("it is paused; the person lifts that")]
    Paused,
    /// A hold.
    #[error("a message of the person holds everything back until it is settled")]
    Held,
    /// The duty has ended.
    #[error("its duty is no longer in force")]
    DutyOver,
    /// The version is an old one.
    #[error("it serves an older version of the duty; propose it again for the one in force")]
    Superseded,
    /// Its objects count no more.
    #[error("what it names has expired; search again and propose it anew")]
    Expired,
    /// An object is not what it was.
    #[error("`{0}` is not what it was when it was issued; search again and propose it anew")]
    ObjectGone(String),
    /// The same object twice.
    #[error("action {0} uses the same offer already; wait for what comes of it")]
    ObjectTaken(ActionId),
    /// The same errand twice.
    #[error("action {0} is on the same errand and not settled; wait for what comes of it")]
    ErrandOpen(ActionId),
    /// The content is not what was released.
    #[error("its content is not what was released; propose it again")]
    Tampered,
    /// The connector does something else now.
    #[error("the connector's manifest says something else of this tool now; propose it again")]
    Entry,
    /// Nobody released it.
    #[error("nobody has released it; the person decides on its card")]
    NotReleased,
    /// A rule forbids it.
    #[error("a rule of the supervisor forbids it; do without it, or ask them about the rule")]
    Forbidden,
    /// A rule asks for the person's own word.
    #[error("a rule of the supervisor asks that the person decides on it; they do so on its card")]
    PersonAsked,
    /// A rule asks for the supervisor's word.
    #[error("the supervisor has not approved it; they decide on their own device")]
    SupervisorAsked,
    /// Beyond the grant.
    #[error("{0}; the person decides on its card")]
    Limit(Limit),
}

/// Whether an action may go on now. `Ok` at admission: write the intent. `Ok` at the recheck: send.
///
/// # Errors
/// The first condition that does not hold, the user's stops first.
pub fn admit(action: &Standing<'_>, control: &Control, now: Timestamp) -> Result<(), Refusal> {
    stops(control)?;
    bindings(action, control, now)?;
    let demanded = demanded(&control.rules, action.content);
    if demanded.forbid {
        return Err(Refusal::Forbidden);
    }
    if let Some(other) = control.object_taken {
        return Err(Refusal::ObjectTaken(other));
    }
    if let Some(other) = control.errand_open {
        return Err(Refusal::ErrandOpen(other));
    }
    let release = control.release.as_ref().ok_or(Refusal::NotReleased)?;
    released(action, release, Refusal::NotReleased, now)?;
    if demanded.person && release.by_policy {
        return Err(Refusal::PersonAsked);
    }
    if demanded.supervisor {
        let approval = control.supervisor.as_ref().ok_or(Refusal::SupervisorAsked)?;
        return released(action, approval, Refusal::SupervisorAsked, now);
    }
    Ok(())
}

fn stops(control: &Control) -> Result<(), Refusal> {
    if control.system_stop {
        return Err(Refusal::SystemStop);
    }
    if control.paused {
        return Err(Refusal::Paused);
    }
    if control.held {
        return Err(Refusal::Held);
    }
    Ok(())
}

/// What ties the action to its version, its objects and its bytes.
fn bindings(action: &Standing<'_>, control: &Control, now: Timestamp) -> Result<(), Refusal> {
    match control.duty {
        Some(DutyState::Active | DutyState::CloseProposed) => {}
        None if action.duty.is_none() => {}
        // A duty that is not on record is none in force.
        None | Some(DutyState::Stopped | DutyState::Closed) => return Err(Refusal::DutyOver),
    }
    match control.version {
        Some(TaskVersionState::Current) => {}
        None if action.content.task_version.is_none() => {}
        None | Some(TaskVersionState::Superseded | TaskVersionState::Ended) => {
            return Err(Refusal::Superseded);
        }
    }
    if action.expires_at.is_some_and(|at| at <= now) {
        return Err(Refusal::Expired);
    }
    if let Some(argument) = &control.object_gone {
        return Err(Refusal::ObjectGone(argument.clone()));
    }
    if action.bytes != action.digest {
        return Err(Refusal::Tampered);
    }
    if action.entry != Some(action.content.entry) {
        return Err(Refusal::Entry);
    }
    Ok(())
}

/// The four questions of an approval; as soon as one has another answer, it is void (ADM-10). `nobody`: what is
/// told if it is none that counts.
fn released(
    action: &Standing<'_>,
    release: &Release,
    nobody: Refusal,
    now: Timestamp,
) -> Result<(), Refusal> {
    let counts = match release.state {
        ApprovalState::Granted => true,
        // A sending that certainly did not leave may be made again under the same approval, which is of
        // this action alone: only by way of Blocked is an action admitted whose approval is used.
        ApprovalState::Consumed => {
            matches!(action.state, ActionState::Blocked | ActionState::Admitted)
        }
        ApprovalState::Requested
        | ApprovalState::Denied
        | ApprovalState::Expired
        | ApprovalState::Cancelled
        | ApprovalState::Voided => false,
    };
    if !counts || release.until <= now {
        return Err(nobody);
    }
    if release.digest != action.digest {
        return Err(Refusal::Tampered);
    }
    if release.task_version != action.content.task_version {
        return Err(Refusal::Superseded);
    }
    match (&release.grant, release.by_policy) {
        (Some(grant), _) => grant.covers(action.content, now).map_err(Refusal::Limit),
        (None, false) => Ok(()),
        // A policy releases nothing by itself.
        (None, true) => Err(Refusal::NotReleased),
    }
}

/// What becomes of an admitted action that the recheck refuses (G-09).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recall {
    /// For good: whoever wants it makes a new action.
    Cancel,
    /// Back to where it waits for admission: a hold may be released, a word be given.
    Return,
}

/// What can still be settled for the same action sends it back: a hold, or a word that a rule asks for.
/// Everything else cancels it.
pub fn recall(refusal: &Refusal) -> Recall {
    match refusal {
        Refusal::Held | Refusal::PersonAsked | Refusal::SupervisorAsked => Recall::Return,
        Refusal::SystemStop
        | Refusal::Paused
        | Refusal::DutyOver
        | Refusal::Superseded
        | Refusal::Expired
        | Refusal::ObjectGone(_)
        | Refusal::ObjectTaken(_)
        | Refusal::ErrandOpen(_)
        | Refusal::Tampered
        | Refusal::Entry
        | Refusal::NotReleased
        | Refusal::Forbidden
        | Refusal::Limit(_) => Recall::Cancel,
    }
}

/// What becomes of an action that nobody wants any more: as `to` where nobody had admitted it, cancelled
/// between the cut lines, given up where it certainly never left. `None`: it left, or has ended, and can only
/// be dealt with (ADM-16).
pub fn taken_back(state: ActionState, to: ActionState, never_left: bool) -> Option<ActionState> {
    match state {
        ActionState::Proposed | ActionState::AwaitingApproval | ActionState::Authorized => Some(to),
        ActionState::Admitted => Some(ActionState::Cancelled),
        ActionState::Blocked if never_left => Some(ActionState::Abandoned),
        ActionState::Dispatched
        | ActionState::Unknown
        | ActionState::Accepted
        | ActionState::Effective
        | ActionState::Blocked
        | ActionState::Denied
        | ActionState::Expired
        | ActionState::Superseded
        | ActionState::Withdrawn
        | ActionState::Cancelled
        | ActionState::Abandoned => None,
    }
}

impl Refusal {
    /// Whether the action stays as it was and is asked again later: only its own expiry ends it (ADM-20).
    pub fn is_passing(&self) -> bool {
        match self {
            Refusal::SystemStop
            | Refusal::Paused
            | Refusal::Held
            | Refusal::ObjectTaken(_)
            | Refusal::ErrandOpen(_) => true,
            Refusal::DutyOver
            | Refusal::Superseded
            | Refusal::Expired
            | Refusal::ObjectGone(_)
            | Refusal::Tampered
            | Refusal::Entry
            | Refusal::NotReleased
            | Refusal::Forbidden
            | Refusal::PersonAsked
            | Refusal::SupervisorAsked
            | Refusal::Limit(_) => false,
        }
    }
}
