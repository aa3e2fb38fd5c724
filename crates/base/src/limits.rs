//! Every bound of the system under one name each, with its unit last (DESIGN section 11).

/// The bounds that hold for a process. All have defaults; the configuration file may set each by name.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// How long a claimed session stays with its worker without renewal.
    pub lease_ms: u64,
    /// How often a worker renews its lease while a model or tool call is under way.
    pub lease_renew_ms: u64,
    /// How often timers and the sweeper look at the store.
    pub tick_ms: u64,
    /// After how many fruitless runs a work item becomes a failure that the user sees.
    pub poison_attempts: u32,
    /// Follow-up messages of a person within this time of the first one join one turn.
    pub burst_ms: u64,
    /// Events from outside within this time of each other are read by one run (QUE-07).
    pub merge_ms: u64,
    /// Accepted events that may wait for the router; beyond it sources are told to come back later.
    pub unrouted_max: u64,
    /// How often a polled source is looked at where the user named nothing else.
    pub look_every_ms: u64,
    /// A waiting item of a lower class goes first once it is this old.
    pub starvation_ms: u64,
    /// Steps (model answers and tool results) of one run.
    pub run_steps: u32,
    /// Tokens (in and out) of one run.
    pub run_tokens: u64,
    /// Model cost of one run, in millionths of a US dollar.
    pub run_micro_usd: i64,
    /// Tokens of history and prefix that a request may hold; also at most 80 % of the model's context.
    pub window_tokens: u64,
    /// Bytes of a tool result or schema that enter the context; the rest is cut with a note.
    pub tool_text_bytes: usize,
    /// Bytes of one message of a person.
    pub message_bytes: usize,
    /// Bytes of one request body that a client may send.
    pub request_bytes: usize,
    /// Bytes of free disk below which the person is told.
    pub disk_low_bytes: u64,
    /// Bytes of free disk below which nothing new from outside is taken in.
    pub disk_least_bytes: u64,
    /// How long one read-only tool call may take.
    pub tool_call_ms: u64,
    /// How long one model call may take in all.
    pub model_call_ms: u64,
    /// First wait after a failed model call; doubles up to `retry_max_ms`.
    pub retry_ms: u64,
    /// Longest wait between two tries of a model call.
    pub retry_max_ms: u64,
    /// Fruitless model calls in a row after which the user is told that the model is away.
    pub model_fault_after: u32,
    /// Runs that may be under way at once in this process; one more is kept free for people.
    pub workers: usize,
    /// Work items that one run takes in.
    pub items_per_run: u32,
    /// How long the reviewer may take; later, a person is asked (PRO-10).
    pub review_ms: u64,
    /// How long a person has to decide on an action whose objects do not expire before.
    pub approval_ms: u64,
    /// How long after admission something paid is still held back for the person to undo.
    pub undo_paid_ms: u64,
    /// The same for what is sent to people.
    pub undo_outward_ms: u64,
    /// A released action that may not go on just now is asked again after this time.
    pub admission_retry_ms: u64,
    /// A registered attempt is sent within this time, or not at all.
    pub send_by_ms: u64,
    /// How long one request with an effect may take.
    pub effect_call_ms: u64,
    /// Sendings of one action that certainly did not leave.
    pub attempts_max: u32,
    /// An unknown effect of this age is told.
    pub unknown_told_ms: u64,
    /// An unknown effect of this age is put before the person.
    pub reconcile_ms: u64,
    /// Model cost of one owner in a calendar month, in millionths of a US dollar.
    pub owner_month_micro_usd: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            lease_ms: 30_000,
            lease_renew_ms: 10_000,
            tick_ms: 1_000,
            poison_attempts: 5,
            burst_ms: 1_500,
            merge_ms: 2_000,
            unrouted_max: 10_000,
            look_every_ms: 300_000,
            starvation_ms: 60_000,
            run_steps: 40,
            run_tokens: 200_000,
            run_micro_usd: 1_000_000,
            window_tokens: 120_000,
            tool_text_bytes: 4_000,
            message_bytes: 32_000,
            request_bytes: 256_000,
            disk_low_bytes: 512 << 20,
            disk_least_bytes: 128 << 20,
            tool_call_ms: 30_000,
            model_call_ms: 300_000,
            retry_ms: 2_000,
            retry_max_ms: 300_000,
            model_fault_after: 3,
            workers: 4,
            items_per_run: 50,
            review_ms: 15_000,
            approval_ms: 86_400_000,
            undo_paid_ms: 5_000,
            undo_outward_ms: 10_000,
            admission_retry_ms: 30_000,
            send_by_ms: 5_000,
            effect_call_ms: 30_000,
            attempts_max: 3,
            unknown_told_ms: 120_000,
            reconcile_ms: 86_400_000,
            owner_month_micro_usd: 20_000_000,
        }
    }
}
