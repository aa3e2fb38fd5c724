//! Who moves each non-terminal state on, by which index, and when staying there is a fault.

/// The always-on stages, in the order data flows, and the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Attributes accepted events.
    Router,
    /// Asks the small model which candidate an event concerns.
    Attribution,
    /// Looks at polled sources.
    Watcher,
    /// Fires schedules and waits that came due.
    Timer,
    /// Takes the looks of schedules that have a check.
    Checker,
    /// Runs the turn.
    Worker,
    /// Says who must release an action, with the reviewer where its tier asks for it.
    Review,
    /// Asks whether a released action may go on: the first cut line.
    Admission,
    /// Asks again, registers the attempt, sends: the second cut line.
    Dispatcher,
    /// Looks up what became of what was sent.
    Reconciler,
    /// Decides what a person hears, when and where.
    Delivery,
    /// Finds what nobody holds.
    Sweeper,
    /// A person decides; nothing moves by itself.
    Person,
}

/// When the sweeper tells the user that a state lasts too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alarm {
    /// This many milliseconds after the row came into the state.
    AfterMs(u64),
    /// This many milliseconds after the row's own due time (`column`).
    AfterDueMs {
        /// The column that holds the due time.
        column: &'static str,
        /// Milliseconds past it.
        ms: u64,
    },
    /// Never, for the reason given.
    Never(&'static str),
}

/// One line of the table "non-terminal state → stage, index, alarm age".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Custody {
    /// The table.
    pub table: &'static str,
    /// The non-terminal state.
    pub state: &'static str,
    /// Who moves it on.
    pub stage: Stage,
    /// The index by which the stage finds such rows.
    pub index: &'static str,
    /// When staying in it is a fault.
    pub alarm: Alarm,
}

const fn held(
    table: &'static str,
    state: &'static str,
    stage: Stage,
    index: &'static str,
    alarm: Alarm,
) -> Custody {
    Custody { table, state, stage, index, alarm }
}

const MINUTE_MS: u64 = 60_000;

/// Who moves each non-terminal state on. A state without a line fails a test.
pub const CUSTODY: &[Custody] = &[
    held("work_item", "unrouted", Stage::Router, "work_item_unrouted", Alarm::AfterMs(MINUTE_MS)),
    held(
        "work_item",
        "attributing",
        Stage::Attribution,
        "work_item_attributing",
        Alarm::AfterMs(30 * MINUTE_MS),
    ),
    held(
        "work_item",
        "background",
        Stage::Worker,
        "work_item_background",
        Alarm::Never("it wakes nobody; the session's next run reads it"),
    ),
    held(
        "work_item",
        "pending",
        Stage::Worker,
        "work_item_pending",
        Alarm::AfterMs(30 * MINUTE_MS),
    ),
    held(
        "work_item",
        "claimed",
        Stage::Worker,
        "work_item_claimed",
        Alarm::AfterMs(30 * MINUTE_MS),
    ),
    held("run", "running", Stage::Worker, "run_open", Alarm::AfterMs(30 * MINUTE_MS)),
    held("run", "lost", Stage::Worker, "run_open", Alarm::AfterMs(10 * MINUTE_MS)),
    held(
        "run",
        "sleeping",
        Stage::Worker,
        "run_open",
        Alarm::Never("the user was told that the model is away when that began"),
    ),
    held(
        "duty",
        "active",
        Stage::Person,
        "duty_open",
        Alarm::Never("a duty lasts as long as the user wants it; its schedules and waits move it"),
    ),
    held(
        "duty",
        "close_proposed",
        Stage::Person,
        "duty_open",
        Alarm::Never("its proposal is shown until the user decides"),
    ),
    held(
        "duty",
        "stopped",
        Stage::Person,
        "duty_open",
        Alarm::Never("only the user resumes a stopped duty"),
    ),
    held(
        "duty",
        "closed",
        Stage::Person,
        "duty_owner",
        Alarm::Never("only the user reopens a closed duty"),
    ),
    held(
        "task_version",
        "current",
        Stage::Person,
        "task_version_current",
        Alarm::Never("it ends with its duty or by a later version"),
    ),
    held(
        "task_version",
        "ended",
        Stage::Person,
        "task_version_number",
        Alarm::Never("only the user reopens its duty"),
    ),
    held(
        "wait",
        "open",
        Stage::Timer,
        "wait_due",
        Alarm::AfterDueMs { column: "due_at", ms: 2 * MINUTE_MS },
    ),
    held(
        "schedule",
        "active",
        Stage::Timer,
        "schedule_due",
        Alarm::AfterDueMs { column: "next_slot", ms: 2 * MINUTE_MS },
    ),
    held(
        "schedule",
        "paused",
        Stage::Person,
        "schedule_duty",
        Alarm::Never("only the user resumes its duty"),
    ),
    held(
        "source",
        "active",
        Stage::Watcher,
        "source_look",
        Alarm::Never("its health is told by its own faults, by what it received"),
    ),
    held(
        "subscription",
        "active",
        Stage::Person,
        "subscription_source",
        Alarm::Never("a standing wait; it ends with its duty or its last day"),
    ),
    held(
        "subscription",
        "paused",
        Stage::Person,
        "subscription_duty",
        Alarm::Never("only the user resumes its duty"),
    ),
    held("check_run", "due", Stage::Checker, "check_run_due", Alarm::AfterMs(30 * MINUTE_MS)),
    // Clients show a hold at once; a message of our own about it comes when a turn cannot explain it.
    held("hold", "placed", Stage::Person, "hold_placed", Alarm::AfterMs(10 * MINUTE_MS)),
    held(
        "pause",
        "active",
        Stage::Person,
        "pause_active",
        Alarm::Never("only the user lifts a pause, whenever they like"),
    ),
    held(
        "proposal",
        "open",
        Stage::Timer,
        "proposal_due",
        Alarm::AfterDueMs { column: "expires_at", ms: 2 * MINUTE_MS },
    ),
    held(
        "grants",
        "active",
        Stage::Person,
        "grants_duty",
        Alarm::Never("it ends with its duty, its version or its last day"),
    ),
    held(
        "rule",
        "active",
        Stage::Person,
        "rule_active",
        Alarm::Never("only the supervisor ends a rule, whenever they like"),
    ),
    // The sweeper asks these by when they came there, so they have an index besides the stages' own.
    held("action", "proposed", Stage::Review, "action_hurried", Alarm::AfterMs(5 * MINUTE_MS)),
    held(
        "action",
        "awaiting_approval",
        Stage::Review,
        "action_due",
        Alarm::Never("its card is shown until its own deadline"),
    ),
    held(
        "action",
        "authorized",
        Stage::Admission,
        "action_due",
        Alarm::Never("what holds it back is shown with it"),
    ),
    held("action", "admitted", Stage::Dispatcher, "action_hurried", Alarm::AfterMs(5 * MINUTE_MS)),
    held(
        "action",
        "dispatched",
        Stage::Reconciler,
        "action_hurried",
        Alarm::AfterMs(5 * MINUTE_MS),
    ),
    held(
        "action",
        "unknown",
        Stage::Reconciler,
        "action_due",
        Alarm::Never("the user is told by its own notice and card"),
    ),
    held(
        "action",
        "accepted",
        Stage::Reconciler,
        "action_due",
        Alarm::Never("confirmed by its vendor; evidence is looked for until it settles"),
    ),
    held(
        "action",
        "blocked",
        Stage::Admission,
        "action_due",
        Alarm::Never("nothing happened, and whoever waits for it was told"),
    ),
    held(
        "approval",
        "requested",
        Stage::Person,
        "approval_action",
        Alarm::Never("its action has the deadline"),
    ),
    held(
        "approval",
        "granted",
        Stage::Admission,
        "approval_action",
        Alarm::Never("it waits with its action"),
    ),
    held(
        "attempt",
        "registered",
        Stage::Reconciler,
        "attempt_action",
        Alarm::Never("its action is watched"),
    ),
    held(
        "attempt",
        "unknown",
        Stage::Reconciler,
        "attempt_action",
        Alarm::Never("its action is watched"),
    ),
    held("message", "generated", Stage::Delivery, "message_undelivered", Alarm::AfterMs(MINUTE_MS)),
    held("message", "queued", Stage::Delivery, "message_undelivered", Alarm::AfterMs(MINUTE_MS)),
    held(
        "message",
        "sending",
        Stage::Person,
        "message_undelivered",
        Alarm::Never("it waits for a device of the person to fetch it"),
    ),
    held(
        "message",
        "uncertain",
        Stage::Delivery,
        "message_undelivered",
        Alarm::AfterMs(10 * MINUTE_MS),
    ),
    held(
        "fault",
        "open",
        Stage::Sweeper,
        "fault_open",
        Alarm::Never("the user was told when it opened"),
    ),
];
