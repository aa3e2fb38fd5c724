//! One action between the records, the people, the stages and the world: what the engine does with the
//! decisions of `domain::effect`, as a pure machine. It asks `admit`, `recall`, `judge` and `reconcile`, and
//! decides nothing itself that they decide.

use std::sync::OnceLock;

use base::{Currency, Digest, Timestamp, parse_id};
use domain::effect::{
    Control, Effect, Finding, Frozen, Grant, Object, Observation, Outcome, Recall, Refusal,
    Release, Settled, Sight, Spec, Standing, Used, admit, freeze, judge, recall, reconcile,
};
use domain::state::{ActionState, ApprovalState, DutyState, TaskVersionState};

/// The clock goes from 0 to here; then the offer has expired.
pub const EXPIRED: u8 = 2;
/// Sendings of one action.
pub const ATTEMPTS_MAX: u8 = 3;

/// An approval, or the request for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Approval {
    pub state: ApprovalState,
    /// Until when it counts.
    pub until: u8,
    pub by_policy: bool,
}

/// What the world does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Way {
    /// It books and gives a receipt.
    Books,
    /// It promises that nothing happened, truly.
    Refuses,
    /// The same, and books.
    Lies,
    /// It answers something else.
    Errs,
    /// The request is under way for long; nobody answers.
    Crawls,
}

/// What a dispatcher has in its hands. A crash loses it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Hand {
    Empty,
    Permit,
    /// Sent, and this is what the answer will be.
    Sent(Way),
}

/// Everything there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct State {
    // The records.
    pub stopped: bool,
    pub paused: bool,
    pub held: bool,
    pub current: bool,
    /// Whether others have used up the grant.
    pub used_up: bool,
    pub action: ActionState,
    pub approval: Option<Approval>,
    /// Blocked, and it never left.
    pub again: bool,
    /// The last sending was answered with a refusal.
    pub refused: bool,
    pub attempts: u8,
    pub receipt: bool,
    pub contradicted: bool,
    // Time.
    pub clock: u8,
    /// The last attempt's `send_by` has passed.
    pub late: bool,
    /// So has the time after which the world promises that nothing can come any more.
    pub settled: bool,
    // The dispatchers and the world.
    pub hands: [Hand; 2],
    /// Requests that left a dispatcher.
    pub sent: u8,
    /// Requests that have not arrived.
    pub crawling: u8,
    pub booked: u8,
    pub lied: bool,
}

/// One commit, or one thing that happens outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    // People.
    Pause,
    Resume,
    Hold,
    StopMessage,
    Release,
    Approve,
    Deny,
    BumpVersion,
    StopAll,
    LiftAll,
    /// Another action takes what is left of the grant.
    UseUp,
    // Time.
    Expire,
    Late,
    Settle,
    // Stages. Review: whether the policy may release it within its grant.
    Review(bool),
    Admit,
    /// A recheck whose transaction registers nothing.
    Recheck,
    Attempt(usize),
    Send(usize, Way),
    Answer(usize),
    Lose(usize),
    Crash(usize),
    GiveUp,
    Arrive,
    /// Whether the look can be taken.
    Look(bool),
}

fn at(clock: u8) -> Timestamp {
    Timestamp::from_micros(1_800_000_000_000_000).plus_ms(u64::from(clock) * 1_000)
}

fn id<T: base::Id>(n: u8) -> T {
    parse_id(&format!("00000000-0000-0000-0000-{n:012}")).unwrap()
}

/// What is frozen, the same in every state.
fn frozen() -> &'static Frozen {
    static FROZEN: OnceLock<Frozen> = OnceLock::new();
    FROZEN.get_or_init(|| {
        let spec = Spec {
            tool: "hotel.book_hotel".into(),
            effect: Effect::Paid,
            entry: Digest::of(b"entry"),
            objects: [("quote".to_owned(), "quote".to_owned())].into(),
            amount: Some("quote.total".into()),
            currency: Some("HKD".into()),
            recipients: Vec::new(),
            once_per: Vec::new(),
            card: Vec::new(),
            operation: Some("ref".into()),
            undo: None,
            can_look_up: true,
            settled_after_ms: Some(1_000),
            idempotent_ms: None,
        };
        let offer = Object {
            argument: "quote".into(),
            kind: "quote".into(),
            id: "q-1".into(),
            snapshot: serde_json::json!({"total": "2600.00"}),
            digest: Digest::of(b"offer"),
            expires_at: Some(at(EXPIRED)),
        };
        let arguments = serde_json::json!({"quote": "q-1"});
        freeze(&spec, arguments.as_object().unwrap(), &[offer], Some(id(2)), None).unwrap()
    })
}

impl State {
    /// Proposed; nothing else has happened.
    pub fn new() -> Self {
        State {
            stopped: false,
            paused: false,
            held: false,
            current: true,
            used_up: false,
            action: ActionState::Proposed,
            approval: None,
            again: false,
            refused: false,
            attempts: 0,
            receipt: false,
            contradicted: false,
            clock: 0,
            late: false,
            settled: false,
            hands: [Hand::Empty; 2],
            sent: 0,
            crawling: 0,
            booked: 0,
            lied: false,
        }
    }

    /// What the stages ask at both cut lines.
    fn admitted(&self) -> Result<(), Refusal> {
        let frozen = frozen();
        let action = Standing {
            content: &frozen.content,
            digest: frozen.digest,
            bytes: Digest::of(&frozen.bytes),
            state: self.action,
            duty: Some(id(1)),
            expires_at: frozen.expires_at,
            entry: Some(frozen.content.entry),
        };
        let used = if self.used_up { 1 } else { 0 };
        let grant = Grant {
            tool: "hotel.book_hotel".into(),
            times: 1,
            currency: Currency::parse("HKD").ok(),
            each: None,
            total: Some(260_000),
            to: Vec::new(),
            until: None,
            used: Used { count: used, minor: used * 260_000 },
        };
        let release = self.approval.map(|approval| Release {
            state: approval.state,
            digest: frozen.digest,
            task_version: Some(id(2)),
            until: at(approval.until),
            grant: approval.by_policy.then_some(grant),
            by_policy: approval.by_policy,
        });
        let version =
            if self.current { TaskVersionState::Current } else { TaskVersionState::Superseded };
        let control = Control {
            system_stop: self.stopped,
            paused: self.paused,
            held: self.held,
            duty: Some(DutyState::Active),
            version: Some(version),
            release,
            ..Control::default()
        };
        admit(&action, &control, at(self.clock))
    }

    fn becomes(&mut self, to: ActionState) {
        let from = self.action.word();
        assert!(ActionState::MACHINE.allows(from, to.word()), "{from} > {to}: {self:?}");
        self.action = to;
    }

    fn approval_becomes(&mut self, to: ApprovalState) {
        let approval = self.approval.as_mut().unwrap();
        let from = approval.state.word();
        assert!(ApprovalState::MACHINE.allows(from, to.word()), "{from} > {to}: {approval:?}");
        approval.state = to;
    }

    /// The approval's end, where its action has ended.
    fn withdraw_approval(&mut self) {
        match self.approval.map(|approval| approval.state) {
            Some(ApprovalState::Requested) => self.approval_becomes(ApprovalState::Cancelled),
            Some(ApprovalState::Granted) => self.approval_becomes(ApprovalState::Voided),
            Some(
                ApprovalState::Denied
                | ApprovalState::Expired
                | ApprovalState::Cancelled
                | ApprovalState::Consumed
                | ApprovalState::Voided,
            )
            | None => {}
        }
    }

    fn ask_person(&mut self) {
        self.withdraw_approval();
        let (state, until) = (ApprovalState::Requested, self.clock + 1);
        self.approval = Some(Approval { state, until, by_policy: false });
        self.becomes(ActionState::AwaitingApproval);
    }

    /// Ends what is over before it was released, as review does; whether it did.
    fn ends(&mut self) -> bool {
        let over = match (self.current, self.clock >= EXPIRED) {
            (false, _) => ActionState::Superseded,
            (true, true) => ActionState::Expired,
            (true, false) => return false,
        };
        self.withdraw_approval();
        self.becomes(over);
        true
    }

    fn review(&mut self, within_grant: bool) {
        if self.action == ActionState::AwaitingApproval {
            self.ends();
        }
        if self.action != ActionState::Proposed || self.ends() {
            return;
        }
        if within_grant && !self.used_up {
            let (state, until) = (ApprovalState::Granted, EXPIRED);
            self.approval = Some(Approval { state, until, by_policy: true });
            self.becomes(ActionState::Authorized);
        } else {
            self.ask_person();
        }
    }

    fn admission(&mut self) {
        let retry = self.action == ActionState::Blocked && self.again;
        if !retry && self.action != ActionState::Authorized {
            return;
        }
        if retry && self.attempts >= ATTEMPTS_MAX {
            return self.becomes(ActionState::Abandoned);
        }
        match self.admitted() {
            Ok(()) => self.becomes(ActionState::Admitted),
            Err(refusal) if refusal.is_passing() => {}
            Err(_) if retry => self.becomes(ActionState::Abandoned),
            Err(Refusal::NotReleased | Refusal::Limit(_)) => self.ask_person(),
            Err(_) => {
                self.ends();
            }
        }
    }

    /// The transaction of the second cut line. `hand`: whose attempt it registers.
    fn dispatch(&mut self, hand: Option<usize>) {
        if self.action != ActionState::Admitted {
            return;
        }
        match (self.admitted(), hand) {
            (Err(refusal), _) => match recall(&refusal) {
                Recall::Return => self.becomes(ActionState::Authorized),
                Recall::Cancel => {
                    self.withdraw_approval();
                    self.becomes(ActionState::Cancelled);
                }
            },
            (Ok(()), None) => {}
            (Ok(()), Some(hand)) => {
                if self.hands[hand] != Hand::Empty {
                    return;
                }
                self.approval_becomes(ApprovalState::Consumed);
                self.becomes(ActionState::Dispatched);
                self.attempts += 1;
                (self.late, self.settled) = (false, false);
                (self.again, self.refused) = (false, false);
                self.hands[hand] = Hand::Permit;
            }
        }
    }

    fn send(&mut self, hand: usize, way: Way) {
        if self.hands[hand] != Hand::Permit {
            return;
        }
        if self.late {
            self.hands[hand] = Hand::Empty;
            return self.record(Observation::NotSent("too late".into()));
        }
        self.hands[hand] = Hand::Sent(way);
        self.sent += 1;
        match way {
            Way::Books => self.booked += 1,
            Way::Lies => (self.booked, self.lied) = (self.booked + 1, true),
            Way::Crawls => self.crawling += 1,
            Way::Refuses | Way::Errs => {}
        }
    }

    fn answer(&mut self, hand: usize) {
        let Hand::Sent(way) = self.hands[hand] else { return };
        let said = |text: &str| text.to_owned();
        let seen = match way {
            Way::Books => Observation::Receipt(said("r-1")),
            Way::Refuses | Way::Lies => Observation::Refused(said("sold out")),
            Way::Errs => Observation::Other(said("500")),
            // There is none to come.
            Way::Crawls => return,
        };
        self.hands[hand] = Hand::Empty;
        self.record(seen);
    }

    /// What comes of an attempt, whoever saw it; late answers are recorded too.
    fn record(&mut self, seen: Observation) {
        match (judge(seen, true), self.action) {
            (Outcome::Accepted { .. }, ActionState::Dispatched | ActionState::Unknown) => {
                self.receipt = true;
                self.becomes(ActionState::Accepted);
            }
            (Outcome::Blocked { again, .. }, ActionState::Dispatched | ActionState::Unknown) => {
                self.again = again;
                self.becomes(ActionState::Blocked);
            }
            (Outcome::Refused { .. }, ActionState::Dispatched | ActionState::Unknown) => {
                self.refused = true;
                self.becomes(ActionState::Unknown);
            }
            (Outcome::Unknown { .. }, ActionState::Dispatched) => {
                self.becomes(ActionState::Unknown);
            }
            (
                Outcome::Accepted { .. }
                | Outcome::Answered
                | Outcome::Blocked { .. }
                | Outcome::Refused { .. }
                | Outcome::Unknown { .. },
                _,
            ) => {}
        }
    }

    fn look(&mut self, readable: bool) {
        let sent = matches!(
            self.action,
            ActionState::Unknown | ActionState::Accepted | ActionState::Blocked
        );
        // What never left is not looked for.
        if !sent || self.again {
            return;
        }
        let sight = match (readable, self.booked) {
            (false, _) => Sight::Unreadable("404".into()),
            (true, 0) => Sight::Absent,
            (true, _) => Sight::Found { receipt: "r-1".into(), ended: false },
        };
        let settled = Settled {
            state: self.action,
            receipt: self.receipt.then(|| "r-1".into()),
            sent_by: at(0),
            settled_after_ms: Some(1_000),
            contradicted: self.contradicted,
            refused: self.refused.then(|| "sold out".into()),
        };
        match reconcile(&settled, &sight, at(u8::from(self.settled))) {
            Finding::Again | Finding::Confirmed => {}
            Finding::Effective { .. } => {
                self.receipt = true;
                self.becomes(ActionState::Accepted);
                self.becomes(ActionState::Effective);
            }
            Finding::Blocked { .. } => self.becomes(ActionState::Blocked),
            Finding::Contradiction { .. } => {
                self.contradicted = true;
                self.becomes(ActionState::Unknown);
            }
        }
    }

    fn tap(&mut self, approve: bool) {
        let asked = self.approval.filter(|a| a.state == ApprovalState::Requested);
        let Some(asked) = asked else { return };
        match approve {
            // A tap during a pause must be repeated after it, and one on an old card says nothing.
            true if self.paused || self.stopped || asked.until <= self.clock || !self.current => {}
            true => {
                self.approval_becomes(ApprovalState::Granted);
                self.becomes(ActionState::Authorized);
            }
            false => {
                self.approval_becomes(ApprovalState::Denied);
                self.becomes(ActionState::Denied);
            }
        }
    }

    /// What comes of one event. One that has nothing to do leaves everything as it is.
    pub fn after(&self, event: Event) -> State {
        let mut next = *self;
        match event {
            Event::Pause => next.paused = true,
            Event::Resume => next.paused = false,
            Event::Hold => next.held = true,
            Event::StopMessage if next.held => (next.held, next.paused) = (false, true),
            Event::StopMessage => {}
            Event::Release => next.held = false,
            Event::Approve => next.tap(true),
            Event::Deny => next.tap(false),
            Event::BumpVersion => next.current = false,
            Event::StopAll => next.stopped = true,
            Event::LiftAll => next.stopped = false,
            Event::UseUp => next.used_up = true,
            Event::Expire => next.clock = EXPIRED.min(next.clock + 1),
            Event::Late => next.late |= next.attempts > 0,
            Event::Settle if next.late => (next.settled, next.crawling) = (true, 0),
            Event::Settle => {}
            Event::Review(within_grant) => next.review(within_grant),
            Event::Admit => next.admission(),
            Event::Recheck => next.dispatch(None),
            Event::Attempt(hand) => next.dispatch(Some(hand)),
            Event::Send(hand, way) => next.send(hand, way),
            Event::Answer(hand) => next.answer(hand),
            Event::Lose(hand) => {
                if let Hand::Sent(_) = next.hands[hand] {
                    next.hands[hand] = Hand::Empty;
                    next.record(Observation::Lost("no answer".into()));
                }
            }
            Event::Crash(hand) => next.hands[hand] = Hand::Empty,
            // Others may say so only once nobody can send any more.
            Event::GiveUp if next.late && next.action == ActionState::Dispatched => {
                next.record(Observation::Lost("start without result".into()));
            }
            Event::GiveUp => {}
            Event::Arrive if next.crawling > 0 => {
                (next.crawling, next.booked) = (next.crawling - 1, next.booked + 1);
            }
            Event::Arrive => {}
            Event::Look(readable) => next.look(readable),
        }
        next
    }
}

/// What every step must keep. It asks none of the functions that the machine asks.
pub fn check(was: &State, event: Event, is: &State) -> Result<(), &'static str> {
    let rules = [
        ("nothing leaves unless every condition holds at the attempt", {
            let registered = is.attempts != was.attempts;
            let attempt = matches!(event, Event::Attempt(_));
            !registered || attempt && was.action == ActionState::Admitted && free(was)
        }),
        ("what is admitted was free to go", {
            let admitted =
                was.action != ActionState::Admitted && is.action == ActionState::Admitted;
            !admitted || event == Event::Admit && free(was)
        }),
        ("a request needs a permit in hand", is.sent == was.sent || was.attempts > was.sent),
        ("one request, one effect", is.sent <= 1 && is.booked <= 1),
        ("a stop between the cut lines cancels, a hold sends back", {
            let asked = matches!(event, Event::Recheck | Event::Attempt(_));
            let wanted = match (was.stopped || was.paused, was.held) {
                (true, _) => Some(ActionState::Cancelled),
                (false, true) => Some(ActionState::Authorized),
                (false, false) => None,
            };
            let caught = asked && was.action == ActionState::Admitted;
            !caught || wanted.is_none_or(|wanted| is.action == wanted)
        }),
        ("what has ended stays so", {
            !was.action.is_terminal() || (is.action, is.attempts) == (was.action, was.attempts)
        }),
        ("what may have happened is not sent again", {
            let open = matches!(was.action, ActionState::Unknown | ActionState::Dispatched);
            !(open || was.sent > 0) || is.attempts == was.attempts
        }),
        ("a refusal counts once a look finds nothing either", {
            let ended = was.action != ActionState::Blocked && is.action == ActionState::Blocked;
            !ended || is.again || event == Event::Look(true)
        }),
        ("a tap during a pause does nothing", {
            event != Event::Approve || !(was.paused || was.stopped) || is == was
        }),
        ("control state touches nothing else", !is_control(event) || same_but_control(was, is)),
        ("what is booked is never called off", {
            let called_off = !matches!(
                is.action,
                ActionState::Dispatched
                    | ActionState::Unknown
                    | ActionState::Accepted
                    | ActionState::Effective
            );
            is.booked == 0 || is.lied || !called_off
        }),
        ("what is in force is there", is.action != ActionState::Effective || is.booked == 1),
    ];
    rules.iter().find(|(_, holds)| !holds).map_or(Ok(()), |(rule, _)| Err(rule))
}

/// Whether nothing stands against it, in the words of the requirement.
fn free(s: &State) -> bool {
    let approved = s.approval.is_some_and(|approval| {
        let counts = match approval.state {
            ApprovalState::Granted => true,
            // The one before certainly did not leave.
            ApprovalState::Consumed => s.sent == 0 && s.attempts > 0,
            ApprovalState::Requested
            | ApprovalState::Denied
            | ApprovalState::Expired
            | ApprovalState::Cancelled
            | ApprovalState::Voided => false,
        };
        counts && approval.until > s.clock && !(approval.by_policy && s.used_up)
    });
    approved && !s.stopped && !s.paused && !s.held && s.current && s.clock < EXPIRED
}

fn is_control(event: Event) -> bool {
    matches!(
        event,
        Event::Pause
            | Event::Resume
            | Event::Hold
            | Event::StopMessage
            | Event::Release
            | Event::StopAll
            | Event::LiftAll
    )
}

fn same_but_control(was: &State, is: &State) -> bool {
    State { stopped: was.stopped, paused: was.paused, held: was.held, ..*is } == *was
}
