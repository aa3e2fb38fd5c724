//! State machines of the records (REQUIREMENTS §1.A), and who moves each state on.
//!
//! A machine names the table that holds it, so that the store can generate a guard for every table
//! and a test can ask for every non-terminal state: who moves it, by which index, and when is it late?

mod custody;

use std::fmt;

pub use custody::{Alarm, CUSTODY, Custody, Stage};

/// One state machine, as data: what the store's guards and the model checks read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// The table whose column `state` holds it.
    pub table: &'static str,
    /// All states, by the word that is stored.
    pub states: &'static [&'static str],
    /// States a new row may have.
    pub initial: &'static [&'static str],
    /// Every legal move.
    pub moves: &'static [(&'static str, &'static str)],
}

impl Machine {
    /// Whether a row may go from one state to the other. Staying is always allowed.
    pub fn allows(&self, from: &str, to: &str) -> bool {
        from == to || self.moves.contains(&(from, to))
    }

    /// Whether nothing leads out of `state`.
    pub fn is_terminal(&self, state: &str) -> bool {
        !self.moves.iter().any(|(from, _)| *from == state)
    }
}

/// A word in a `state` column that the machine does not have: the database was written by a newer
/// program, or by hand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{word}\" is no state of {table}; the database may come from a newer version of adjutant"
)]
pub struct UnknownState {
    /// The table it was read from.
    pub table: &'static str,
    /// The word found.
    pub word: String,
}

macro_rules! machines {
    ($(
        $(#[$doc:meta])*
        $name:ident in $table:literal {
            $( $(#[$state_doc:meta])* $state:ident = $word:literal $(=> [$($to:ident),*])? ),* $(,)?
        } from [$($initial:ident),*]
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord,
                     serde::Serialize, serde::Deserialize)]
            pub enum $name { $( $(#[$state_doc])* #[serde(rename = $word)] $state ),* }

            impl $name {
                /// The machine as data.
                pub const MACHINE: Machine = Machine {
                    table: $table,
                    states: &[$($word),*],
                    initial: &[$( $name::$initial.word() ),*],
                    moves: &[$( $( $( ($word, $name::$to.word()) ),* ,)? )*],
                };
                /// The word that is stored and shown in JSON.
                pub const fn word(self) -> &'static str {
                    match self { $( $name::$state => $word ),* }
                }
                /// Reads the stored word.
                pub fn parse(word: &str) -> Result<Self, UnknownState> {
                    match word {
                        $( $word => Ok($name::$state), )*
                        other => Err(UnknownState { table: $table, word: other.to_owned() }),
                    }
                }
                /// Whether nothing leads out of this state.
                pub fn is_terminal(self) -> bool { Self::MACHINE.is_terminal(self.word()) }
            }
            impl fmt::Display for $name {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(self.word()) }
            }
        )*
        /// Every machine of the system.
        pub const MACHINES: &[Machine] = &[$( $name::MACHINE ),*];
    };
}

machines! {
    /// What a session still has to look at.
    WorkItemState in "work_item" {
        /// Accepted; nobody has said yet which session it concerns.
        Unrouted = "unrouted" => [Attributing, Pending, Background, Done],
        /// The small model is asked which of the router's candidates it concerns (EVT-09).
        Attributing = "attributing" => [Pending, Background, Done],
        /// Waits in its session's queue.
        Pending = "pending" => [Claimed, Done, Failed],
        /// Wakes nobody; the session's next run reads it along (QUE-15).
        Background = "background" => [Claimed, Done, Failed],
        /// Taken in by a run.
        Claimed = "claimed" => [Done, Pending, Background],
        /// Handled by a run that ended, or recorded without waking anyone.
        Done = "done",
        /// Given up after too many fruitless runs; the user was told.
        Failed = "failed",
    } from [Unrouted, Pending]

    /// One wake-up.
    RunState in "run" {
        /// A worker holds its session's lease.
        Running = "running" => [Lost, Sleeping, Completed, Interrupted, BudgetExhausted, Failed],
        /// Its worker is gone; the next claim of the session resumes it.
        Lost = "lost" => [Running, Interrupted],
        /// Put down in order because the model cannot be asked; resumed after the back-off.
        Sleeping = "sleeping" => [Running, Interrupted],
        /// Ended as the model wished.
        Completed = "completed",
        /// Ended early; its items joined a later run.
        Interrupted = "interrupted",
        /// Stopped at its budget; what it reached is kept and the user was told.
        BudgetExhausted = "budget_exhausted",
        /// Ended by an error that another try of the same step would not mend.
        Failed = "failed",
    } from [Running]

    /// A whole delegation.
    DutyState in "duty" {
        /// In force.
        Active = "active" => [CloseProposed, Stopped],
        /// The model says that it is done; the user decides.
        CloseProposed = "close_proposed" => [Active, Stopped, Closed],
        /// The user withdrew it.
        Stopped = "stopped" => [Active],
        /// The user confirmed that it is done; only the user can reopen it.
        Closed = "closed" => [Active],
    } from [Active]

    /// One version of what a duty asks for. Never edited.
    TaskVersionState in "task_version" {
        /// The version in force.
        Current = "current" => [Superseded, Ended],
        /// A later version took its place.
        Superseded = "superseded",
        /// Its duty ended.
        Ended = "ended" => [Current],
    } from [Current]

    /// A registered waiting condition. Its ends are final (DEL-10).
    WaitState in "wait" {
        /// Not met yet.
        Open = "open" => [Satisfied, TimedOut, Cancelled],
        /// An event with its key came.
        Satisfied = "satisfied",
        /// Its due time passed first.
        TimedOut = "timed_out",
        /// Nobody waits any more.
        Cancelled = "cancelled",
    } from [Open, Satisfied]

    /// A wake-up that repeats. It is an authorization and ends with its duty.
    ScheduleState in "schedule" {
        /// Wakes the agent at each slot.
        Active = "active" => [Paused, Closed, Expired],
        /// Its duty is stopped.
        Paused = "paused" => [Active, Closed, Expired],
        /// Its duty was closed, or a later version has other times.
        Closed = "closed",
        /// Its last day passed.
        Expired = "expired",
    } from [Active]

    /// A configured way in.
    SourceState in "source" {
        /// What comes through it is accepted.
        Active = "active" => [Removed],
        /// The user took it away; its events stay on record.
        Removed = "removed",
    } from [Active]

    /// A standing wait: events of a source wake a duty. It is an authorization and ends with its duty.
    SubscriptionState in "subscription" {
        /// Events that match are the duty's.
        Active = "active" => [Paused, Closed, Expired],
        /// Its duty is stopped.
        Paused = "paused" => [Active, Closed, Expired],
        /// Its duty was closed.
        Closed = "closed",
        /// Its last day passed.
        Expired = "expired",
    } from [Active]

    /// A look that a program takes for a schedule before anybody is woken.
    CheckState in "check_run" {
        /// Its slot came; the read has not been done.
        Due = "due" => [Unchanged, Met, Failed],
        /// Nothing to tell: no run, no model.
        Unchanged = "unchanged",
        /// The condition holds, and the duty was woken.
        Met = "met",
        /// It could not be read; the duty was woken with the reason.
        Failed = "failed",
    } from [Due]

    /// What a user's message holds back until it is known whether it says stop (QUE-09..12).
    HoldState in "hold" {
        /// Nothing of the owner is admitted.
        Placed = "placed" => [Released, Promoted],
        /// Not a stop, by the model and the stop check, or by the user's own tap.
        Released = "released",
        /// A stop: a pause took its place.
        Promoted = "promoted",
    } from [Placed]

    /// A pause: control state that only the user lifts.
    PauseState in "pause" {
        /// Nothing that it covers is admitted.
        Active = "active" => [Lifted],
        /// The user lifted it.
        Lifted = "lifted",
    } from [Active]

    /// A draft that only the user can turn into control state.
    ProposalState in "proposal" {
        /// Waits for the user.
        Open = "open" => [Confirmed, Declined, Withdrawn, Expired],
        /// The user took it as shown.
        Confirmed = "confirmed",
        /// The user said no.
        Declined = "declined",
        /// A later draft took its place, or what it was about ended.
        Withdrawn = "withdrawn",
        /// Nobody decided in time.
        Expired = "expired",
    } from [Open]

    /// What was allowed in advance.
    GrantState in "grants" {
        /// Actions inside its limits need no further word of the user.
        Active = "active" => [Ended],
        /// Its version or its duty ended, or the user took it back.
        Ended = "ended",
    } from [Active]

    /// A supervisor's rule over what a person may release: control state that only the supervisor writes.
    RuleState in "rule" {
        /// Every action that it covers meets it.
        Active = "active" => [Ended],
        /// The supervisor ended it; another one is a new rule.
        Ended = "ended",
    } from [Active]

    /// An intended outside effect.
    ActionState in "action" {
        /// Frozen; nobody has said who must release it.
        Proposed = "proposed" => [AwaitingApproval, Authorized, Expired, Superseded, Withdrawn],
        /// A person decides on its card.
        AwaitingApproval = "awaiting_approval" =>
            [Authorized, Denied, Expired, Superseded, Withdrawn],
        /// Released; admission looks at everything else.
        Authorized = "authorized" =>
            [AwaitingApproval, Admitted, Expired, Superseded, Withdrawn],
        /// The first cut line: it is to be sent, unless the recheck finds a reason not to.
        Admitted = "admitted" => [Authorized, Cancelled, Dispatched],
        /// The second cut line: its attempt is on record and treated as sent.
        Dispatched = "dispatched" => [Accepted, Blocked, Unknown],
        /// Nobody knows whether it happened.
        Unknown = "unknown" => [Accepted, Blocked, Dispatched],
        /// The outside confirmed it with a receipt.
        Accepted = "accepted" => [Effective, Blocked, Unknown],
        /// It certainly did not happen.
        Blocked = "blocked" => [Admitted, Abandoned, Unknown],
        /// Outside evidence shows it in force.
        Effective = "effective",
        /// The person said no.
        Denied = "denied",
        /// What it names, or the time to decide, is over.
        Expired = "expired",
        /// A newer version of the duty took its place.
        Superseded = "superseded",
        /// Taken back by the agent or the person.
        Withdrawn = "withdrawn",
        /// Caught between admission and sending.
        Cancelled = "cancelled",
        /// Not sent, too often.
        Abandoned = "abandoned",
    } from [Proposed]

    /// Who released an action.
    ApprovalState in "approval" {
        /// The person is asked.
        Requested = "requested" => [Granted, Denied, Expired, Cancelled],
        /// Released, by the person or by the policy within a grant.
        Granted = "granted" => [Consumed, Voided, Expired],
        /// The person said no.
        Denied = "denied",
        /// Its time is over.
        Expired = "expired",
        /// The action ended before anybody decided.
        Cancelled = "cancelled",
        /// An attempt was made under it.
        Consumed = "consumed",
        /// What it released is no longer what would be sent.
        Voided = "voided",
    } from [Requested, Granted]

    /// One actual sending.
    AttemptState in "attempt" {
        /// On record before anything leaves; what is not answered is unknown.
        Registered = "registered" => [Accepted, Blocked, Unknown],
        /// Answered with a receipt.
        Accepted = "accepted",
        /// Certainly without effect.
        Blocked = "blocked",
        /// No answer that proves anything.
        Unknown = "unknown" => [Accepted, Blocked],
    } from [Registered]

    /// What a person is told (USR-17).
    MessageState in "message" {
        /// Written by the commit that decided to speak.
        Generated = "generated" => [Queued, Dropped],
        /// The delivery gate chose channel and time.
        Queued = "queued" => [Sending, Dropped],
        /// Offered to the channel.
        Sending = "sending" => [Delivered, Uncertain],
        /// A device of the person confirmed that it has the message.
        Delivered = "delivered",
        /// The channel gave no answer.
        Uncertain = "uncertain" => [Delivered, Queued],
        /// Not sent, with a reason.
        Dropped = "dropped",
    } from [Generated]

    /// Something that is broken and that the user was told of once.
    FaultState in "fault" {
        /// Still broken.
        Open = "open" => [Closed],
        /// Works again.
        Closed = "closed",
    } from [Open]
}

/// Columns that are written once, with their row: the store refuses every later change (DEL-03, DEL-08).
pub const FROZEN: &[(&str, &[&str])] = &[
    ("task_version", &["duty", "n", "content", "digest", "until_at", "confirmed_by"]),
    ("proposal", &["content", "digest", "expires_at"]),
    (
        "grants",
        &[
            "duty",
            "task_version",
            "tool",
            "times",
            "currency",
            "each_minor",
            "total_minor",
            "recipients",
            "until_at",
            "confirmed_by",
        ],
    ),
    (
        "action",
        &[
            "session",
            "duty",
            "task_version",
            "run",
            "call_id",
            "tool",
            "effect",
            "content",
            "digest",
            "errand",
            "minor",
            "currency",
            "compensates",
            "expires_at",
            "created_at",
        ],
    ),
    ("rule", &["tool", "effect", "above_minor", "currency", "demand", "made_by", "created_at"]),
    ("action_object", &["action", "argument", "kind", "value"]),
    ("approval", &["action", "kind", "digest", "task_version", "until_at", "rests_on", "template"]),
    (
        "attempt",
        &["action", "n", "operation_id", "dispatcher", "send_by", "answer_by", "created_at"],
    ),
    ("body", &["digest", "provenance", "trust"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_that_can_move_has_exactly_one_custodian() {
        let mut wanted: Vec<(&str, &str)> = MACHINES
            .iter()
            .flat_map(|m| m.states.iter().map(move |s| (m, *s)))
            .filter(|(m, s)| !m.is_terminal(s))
            .map(|(m, s)| (m.table, s))
            .collect();
        let mut held: Vec<(&str, &str)> = CUSTODY.iter().map(|c| (c.table, c.state)).collect();
        wanted.sort_unstable();
        held.sort_unstable();
        assert_eq!(held, wanted);
    }

    #[test]
    fn every_state_can_be_reached_and_every_move_names_states() {
        for machine in MACHINES {
            let mut reached = machine.initial.to_vec();
            let mut at = 0;
            while at < reached.len() {
                let from = reached[at];
                for (_, to) in machine.moves.iter().filter(|(f, _)| *f == from) {
                    if !reached.contains(to) {
                        reached.push(to);
                    }
                }
                at += 1;
            }
            reached.sort_unstable();
            let mut states = machine.states.to_vec();
            states.sort_unstable();
            assert_eq!(reached, states, "{}", machine.table);
        }
    }

    #[test]
    fn waits_and_runs_end_for_good() {
        for state in [WaitState::Satisfied, WaitState::TimedOut, WaitState::Cancelled] {
            assert!(state.is_terminal());
        }
        assert!(RunState::Completed.is_terminal() && !RunState::Lost.is_terminal());
        assert!(!RunState::MACHINE.allows("completed", "running"));
        assert_eq!(RunState::parse("lost"), Ok(RunState::Lost));
        assert!(RunState::parse("asleep").is_err());
    }
}
