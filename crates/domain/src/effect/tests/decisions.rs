//! The decisions on an effect's path: each as a table of all that can be asked (ADM-03, ADM-16, TOOL-04).

use base::ActionId;
use jiff::tz::TimeZone;

use super::*;
use crate::draft::Draft;
use crate::state::{ActionState, ApprovalState, DutyState, TaskVersionState};

const EFFECTS: [Effect; 7] = [
    Effect::Read,
    Effect::Reversible,
    Effect::Paid,
    Effect::Commitment,
    Effect::Outward,
    Effect::Authority,
    Effect::Human,
];

#[test]
fn who_must_release_what() {
    let tiers = EFFECTS.map(|effect| {
        let gate = |covered| {
            let tier = tier(effect, covered);
            (tier.word(), tier.gate())
        };
        (effect.word(), gate(true), gate(false))
    });
    let person = |tier| (tier, Gate::Person);
    let wanted = [
        ("read", person("r4"), person("r4")),
        ("reversible", ("r2", Gate::Policy), person("r4")),
        ("paid", ("r3", Gate::Review), person("r4")),
        ("commitment", person("r4"), person("r4")),
        ("outward", ("r3", Gate::Review), person("r4")),
        ("authority", person("r5"), person("r5")),
        ("human", person("r6"), person("r6")),
    ];
    assert_eq!(tiers, wanted);
    for effect in EFFECTS {
        assert_eq!(Effect::parse(effect.word()), Some(effect));
        assert_eq!(serde_json::to_value(effect).unwrap(), json!(effect.to_string()));
    }
    for tier in [Tier::R2, Tier::R3, Tier::R4, Tier::R5, Tier::R6] {
        assert_eq!(Tier::parse(tier.word()), Some(tier));
        assert_eq!(serde_json::to_value(tier).unwrap(), json!(tier.word()));
    }
    assert_eq!((Effect::parse("Paid"), Tier::parse("r1")), (None, None));
}

/// All that admission is asked about one action; everything in it holds.
#[derive(Clone)]
pub(super) struct Asked {
    content: Content,
    digest: Digest,
    bytes: Digest,
    pub(super) state: ActionState,
    duty: Option<base::DutyId>,
    expires_at: Option<Timestamp>,
    entry: Option<Digest>,
    pub(super) control: Control,
    now: Timestamp,
}

impl Asked {
    pub(super) fn answer(&self) -> Result<(), Refusal> {
        let action = Standing {
            content: &self.content,
            digest: self.digest,
            bytes: self.bytes,
            state: self.state,
            duty: self.duty,
            expires_at: self.expires_at,
            entry: self.entry,
        };
        admit(&action, &self.control, self.now)
    }

    /// The same with something else.
    pub(super) fn but(&self, change: impl FnOnce(&mut Asked)) -> Asked {
        let mut asked = self.clone();
        change(&mut asked);
        asked
    }

    fn release(&mut self) -> &mut Release {
        self.control.release.as_mut().unwrap()
    }
}

/// An action of a duty that a person released.
pub(super) fn asked() -> Asked {
    let Frozen { digest, content, expires_at, .. } = frozen();
    Asked {
        entry: Some(content.entry),
        content,
        digest,
        bytes: digest,
        state: ActionState::Authorized,
        duty: Some(id(1)),
        expires_at,
        control: Control {
            duty: Some(DutyState::Active),
            version: Some(TaskVersionState::Current),
            release: Some(Release {
                state: ApprovalState::Granted,
                digest,
                task_version: Some(version()),
                until: NOW.plus_ms(1),
                grant: None,
                by_policy: false,
            }),
            ..Control::default()
        },
        now: NOW,
    }
}

/// The same, released by the policy within a grant.
pub(super) fn asked_by_policy() -> Asked {
    asked().but(|a| {
        let grant = grant();
        let release = a.release();
        (release.grant, release.by_policy) = (Some(grant), true);
    })
}

pub(super) type Flip = (fn(&mut Asked), Refusal);

/// Every input, each flipped alone, in the order in which they are asked.
pub(super) fn flips() -> Vec<Flip> {
    let other = || id::<ActionId>(9);
    vec![
        (|a| a.control.system_stop = true, Refusal::SystemStop),
        (|a| a.control.paused = true, Refusal::Paused),
        (|a| a.control.held = true, Refusal::Held),
        (|a| a.control.duty = Some(DutyState::Stopped), Refusal::DutyOver),
        (|a| a.control.version = Some(TaskVersionState::Superseded), Refusal::Superseded),
        (|a| a.expires_at = Some(a.now), Refusal::Expired),
        (|a| a.control.object_gone = Some("quote".into()), Refusal::ObjectGone("quote".into())),
        (|a| a.bytes = Digest::of(b"other"), Refusal::Tampered),
        (|a| a.entry = Some(Digest::of(b"other")), Refusal::Entry),
        (|a| a.control.object_taken = Some(id(9)), Refusal::ObjectTaken(other())),
        (|a| a.control.errand_open = Some(id(9)), Refusal::ErrandOpen(other())),
        (|a| a.release().state = ApprovalState::Voided, Refusal::NotReleased),
        (|a| a.release().digest = Digest::of(b"other"), Refusal::Tampered),
        (|a| a.release().task_version = Some(id(3)), Refusal::Superseded),
        (
            |a| {
                let spent = Used { count: 3, minor: 0 };
                a.release().grant = Some(Grant { used: spent, ..grant() });
            },
            Refusal::Limit(Limit::Times("3 times".into())),
        ),
    ]
}

#[test]
fn an_action_goes_on_if_everything_holds_and_each_input_alone_stops_it() {
    for base in [asked(), asked_by_policy()] {
        // The two cut lines ask the same.
        for state in [ActionState::Authorized, ActionState::Admitted] {
            let base = base.but(|a| a.state = state);
            assert_eq!(base.answer(), Ok(()));
            for (flip, refusal) in flips() {
                assert_eq!(base.but(flip).answer(), Err(refusal));
            }
        }
    }
}

#[test]
fn of_two_reasons_the_earlier_is_told_and_stops_come_first() {
    let flips = flips();
    for (at, (first, refusal)) in flips.iter().enumerate() {
        // The approval's own inputs make each other untestable once it is replaced.
        for (second, _) in &flips[at + 1..] {
            let both = asked().but(first).but(second);
            assert_eq!(both.answer(), Err(refusal.clone()));
        }
    }
    let all = asked().but(|a| flips.iter().for_each(|(flip, _)| flip(a)));
    assert_eq!(all.answer(), Err(Refusal::SystemStop));
}

#[test]
fn every_state_of_duty_version_and_approval_has_its_answer() {
    let duty = |state| asked().but(|a| a.control.duty = state).answer();
    assert_eq!(duty(Some(DutyState::Active)), Ok(()));
    assert_eq!(duty(Some(DutyState::CloseProposed)), Ok(()));
    assert_eq!(duty(Some(DutyState::Stopped)), Err(Refusal::DutyOver));
    assert_eq!(duty(Some(DutyState::Closed)), Err(Refusal::DutyOver));
    // A duty of which nothing is on record is not in force.
    assert_eq!(duty(None), Err(Refusal::DutyOver));

    let version = |state| asked().but(|a| a.control.version = state).answer();
    assert_eq!(version(Some(TaskVersionState::Current)), Ok(()));
    for state in [Some(TaskVersionState::Superseded), Some(TaskVersionState::Ended), None] {
        assert_eq!(version(state), Err(Refusal::Superseded), "{state:?}");
    }

    let approval = |action, approval| {
        asked().but(|a| (a.state, a.release().state) = (action, approval)).answer()
    };
    for action in [ActionState::Authorized, ActionState::Admitted, ActionState::Blocked] {
        assert_eq!(approval(action, ApprovalState::Granted), Ok(()), "{action}");
        for state in [
            ApprovalState::Requested,
            ApprovalState::Denied,
            ApprovalState::Expired,
            ApprovalState::Cancelled,
            ApprovalState::Voided,
        ] {
            assert_eq!(approval(action, state), Err(Refusal::NotReleased), "{action} {state}");
        }
    }
    // What certainly did not leave is sent again under the same approval, through both cut lines; nothing
    // else is.
    for state in ActionState::MACHINE.states {
        let state = ActionState::parse(state).unwrap();
        let again = matches!(state, ActionState::Blocked | ActionState::Admitted);
        let wanted = if again { Ok(()) } else { Err(Refusal::NotReleased) };
        assert_eq!(approval(state, ApprovalState::Consumed), wanted, "{state}");
    }
    assert_eq!(asked().but(|a| a.control.release = None).answer(), Err(Refusal::NotReleased));
    assert_eq!(asked().but(|a| a.release().until = a.now).answer(), Err(Refusal::NotReleased));
    // A policy releases nothing without a grant.
    let alone = asked_by_policy().but(|a| a.release().grant = None);
    assert_eq!(alone.answer(), Err(Refusal::NotReleased));
}

#[test]
fn an_action_of_no_duty_needs_none() {
    let free = freeze(&spec(), &arguments(), &[offer()], None, None).unwrap();
    let base = asked().but(|a| {
        (a.digest, a.bytes, a.duty) = (free.digest, free.digest, None);
        a.content = free.content;
        (a.control.duty, a.control.version) = (None, None);
        let digest = a.digest;
        let release = a.release();
        (release.digest, release.task_version) = (digest, None);
    });
    assert_eq!(base.answer(), Ok(()));
    assert_eq!(base.but(|a| a.expires_at = None).answer(), Ok(()));
    let gone = base.but(|a| a.control.version = Some(TaskVersionState::Ended));
    assert_eq!(gone.answer(), Err(Refusal::Superseded));
    assert_eq!(base.but(|a| a.entry = None).answer(), Err(Refusal::Entry));
    // Until the very instant.
    let eve = base.but(|a| a.expires_at = Some(a.now.plus_ms(1)));
    assert_eq!(eve.answer(), Ok(()));
}

#[test]
fn a_refusal_says_what_to_do_what_passes_and_what_becomes_of_an_admitted_action() {
    let other = id::<ActionId>(9);
    let refusals = [
        Refusal::SystemStop,
        Refusal::Paused,
        Refusal::Held,
        Refusal::DutyOver,
        Refusal::Superseded,
        Refusal::Expired,
        Refusal::ObjectGone("quote".into()),
        Refusal::ObjectTaken(other),
        Refusal::ErrandOpen(other),
        Refusal::Tampered,
        Refusal::Entry,
        Refusal::NotReleased,
        Refusal::Forbidden,
        Refusal::PersonAsked,
        Refusal::SupervisorAsked,
        Refusal::Limit(Limit::NoAmount),
    ];
    let told =
        refusals.map(|refusal| (recall(&refusal), refusal.is_passing(), refusal.to_string()));
    let (cancel, hold) = (Recall::Cancel, Recall::Return);
    let wanted = [
        (cancel, true, "the operator has stopped everything; it goes on when they lift that"),
        (cancel, true, "it is paused; the person lifts that"),
        (hold, true, "a message of the person holds everything back until it is settled"),
        (cancel, false, "its duty is no longer in force"),
        (
            cancel,
            false,
            "it serves an older version of the duty; propose it again for the one in force",
        ),
        (cancel, false, "what it names has expired; search again and propose it anew"),
        (
            cancel,
            false,
            "`quote` is not what it was when it was issued; search again and propose it anew",
        ),
        (
            cancel,
            true,
            "action 00000000-0000-0000-0000-000000000009 uses the same offer already; wait for what \
             comes of it",
        ),
        (
            cancel,
            true,
            "action 00000000-0000-0000-0000-000000000009 is on the same errand and not settled; wait \
             for what comes of it",
        ),
        (cancel, false, "its content is not what was released; propose it again"),
        (
            cancel,
            false,
            "the connector's manifest says something else of this tool now; propose it again",
        ),
        (cancel, false, "nobody has released it; the person decides on its card"),
        (
            cancel,
            false,
            "a rule of the supervisor forbids it; do without it, or ask them about the rule",
        ),
        (
            hold,
            false,
            "a rule of the supervisor asks that the person decides on it; they do so on its card",
        ),
        (hold, false, "the supervisor has not approved it; they decide on their own device"),
        (
            cancel,
            false,
            "what it costs is not known from the connector's answers; the person decides on its card",
        ),
    ]
    .map(|(recall, passing, text)| (recall, passing, text.to_owned()));
    assert_eq!(told, wanted);
}

#[test]
fn what_is_not_provably_accepted_or_blocked_is_unknown() {
    let why = || "text".to_owned();
    let table = [
        (Observation::NotSent(why()), Outcome::Blocked { why: why(), again: true }),
        (Observation::Receipt(why()), Outcome::Accepted { receipt: why() }),
        (Observation::Answered, Outcome::Answered),
        (Observation::Refused(why()), Outcome::Refused { why: why() }),
        (Observation::Other(why()), Outcome::Unknown { why: why() }),
        (Observation::Lost(why()), Outcome::Unknown { why: why() }),
    ];
    for (seen, outcome) in table {
        assert_eq!(judge(seen.clone(), true), outcome, "{seen:?}");
        // What nobody can look up has to be believed.
        let refused = Outcome::Refused { why: why() };
        let believed = Outcome::Blocked { why: why(), again: false };
        let outcome = if outcome == refused { believed } else { outcome };
        assert_eq!(judge(seen.clone(), false), outcome, "{seen:?}");
    }
}

#[test]
fn a_look_proves_something_or_is_taken_again() {
    let found = |receipt: &str, ended| Sight::Found { receipt: receipt.into(), ended };
    let sights = [
        found("r-1", false),
        found("r-2", false),
        found("r-1", true),
        Sight::Absent,
        Sight::Unreadable("404".into()),
    ];
    let effective = |receipt: &str| Finding::Effective { receipt: receipt.into() };
    let ended = || Finding::Blocked { why: "r-1 has ended without effect".into() };
    let contradiction = |why: &str| Finding::Contradiction { why: why.into() };
    let (again, confirmed) = (|| Finding::Again, || Finding::Confirmed);
    let absent = |state, receipt: Option<&str>, promised: bool, contradicted: bool, refused| {
        if state == ActionState::Unknown && !contradicted && (refused || promised) {
            let why = if refused { "sold out" } else { "it is not there, and can no longer come" };
            return Finding::Blocked { why: why.into() };
        }
        if state == ActionState::Accepted && promised {
            let what = receipt.unwrap_or("it");
            return contradiction(&format!("{what} was confirmed, and is not there"));
        }
        if state == ActionState::Blocked && promised { confirmed() } else { again() }
    };
    let mut asked = 0;
    for word in ActionState::MACHINE.states {
        let state = ActionState::parse(word).unwrap();
        for receipt in [None, Some("r-1")] {
            for (settled_after_ms, promised) in
                [(None, false), (Some(1_001), false), (Some(1_000), true), (Some(u64::MAX), false)]
            {
                for (contradicted, refused) in
                    [(false, false), (true, false), (false, true), (true, true)]
                {
                    let action = Settled {
                        state,
                        receipt: receipt.map(Into::into),
                        sent_by: NOW.minus_ms(1_000),
                        settled_after_ms,
                        contradicted,
                        refused: refused.then(|| "sold out".into()),
                    };
                    let absent = absent(state, receipt, promised, contradicted, refused);
                    let wanted = match (state, receipt) {
                        (ActionState::Blocked, _) => [
                            contradiction("it was taken for not done, and yet r-1 is there"),
                            contradiction("it was taken for not done, and yet r-2 is there"),
                            confirmed(),
                            absent,
                            again(),
                        ],
                        (ActionState::Accepted, Some("r-1")) => [
                            effective("r-1"),
                            contradiction("r-1 was confirmed, and r-2 is there"),
                            ended(),
                            absent,
                            again(),
                        ],
                        (ActionState::Unknown, _) if refused && !contradicted => [
                            contradiction("it was refused, and yet r-1 is there"),
                            contradiction("it was refused, and yet r-2 is there"),
                            ended(),
                            absent,
                            again(),
                        ],
                        (ActionState::Unknown, receipt) if contradicted => [
                            if receipt.is_some() { effective("r-1") } else { again() },
                            again(),
                            ended(),
                            absent,
                            again(),
                        ],
                        _ => [effective("r-1"), effective("r-2"), ended(), absent, again()],
                    };
                    let seen = sights.each_ref().map(|sight| reconcile(&action, sight, NOW));
                    assert_eq!(seen, wanted, "{action:?}");
                    asked += seen.len();
                }
            }
        }
    }
    assert_eq!(asked, ActionState::MACHINE.states.len() * 2 * 4 * 4 * 5);
}

const DRAFT: &str = r#"{"title":"Hotel","goal":"Book it","conditions":[
    {"text":"the user ends it","evidence":"statement","authority":"user"}],
    "schedules":[{"kind":"daily","at":"08:00","prompt":"Look"}],
    "grants":[
        {"tool":"hotel.book","times":3,"currency":"HKD","each":"3000","total":"8200"},
        {"tool":"mail.send","times":1,"to":["Ada","Bob","Ada"]},
        {"tool":"hotel.book","times":2,"currency":"USD","total":"10"},
        {"tool":"mail.send","times":1,"to":["Bob"]},
        {"tool":"fee.pay","times":1,"currency":"HKD","total":"0.50"}],
    "until":"2027-01-20T00:00:00Z"}"#;

fn draft(change: impl FnOnce(&mut Draft)) -> Draft {
    let mut draft: Draft = serde_json::from_str(DRAFT).unwrap();
    let now = Timestamp::parse("2027-01-17T09:00:00Z").unwrap();
    assert_eq!(draft.check(&TimeZone::UTC, now), Ok(()));
    change(&mut draft);
    draft
}

#[test]
fn a_reach_is_the_most_that_can_happen() {
    let now = Timestamp::parse("2027-01-17T09:00:00Z").unwrap();
    let of = |draft: &Draft| reach(draft, &TimeZone::UTC, now);
    let usd = Currency::parse("USD").unwrap();
    let wanted = Reach {
        money: vec![hkd_amount(820_050), Amount { minor: 1_000, currency: usd }],
        actions: [("fee.pay", 1), ("hotel.book", 5), ("mail.send", 2)]
            .map(|(tool, times)| (tool.to_owned(), times))
            .into(),
        people: vec!["Ada".into(), "Bob".into()],
        wakeups: Some(2),
        until: Some(Timestamp::parse("2027-01-20T00:00:00Z").unwrap()),
    };
    assert_eq!(of(&draft(|_| {})), wanted);

    let words = |change: fn(&mut Draft)| {
        of(&draft(change)).words(&TimeZone::UTC, crate::words::Language::En)
    };
    assert_eq!(
        words(|_| {}),
        "At most HKD 8 200.50, USD 10.00, fee.pay once, hotel.book 5 times, mail.send twice, 2 people \
         written to, 2 wake-ups, until Wednesday 2027-01-20 00:00"
    );
    assert_eq!(
        words(|d| {
            d.grants = vec![d.grants[3].clone()];
            d.until = Some("2027-01-18T23:00:00Z".into());
        }),
        "At most mail.send once, 1 person written to, 1 wake-up, until Monday 2027-01-18 23:00"
    );
    assert_eq!(
        words(|d| (d.grants, d.until) = (vec![], None)),
        "At most wake-ups without end, until you end it"
    );
    assert_eq!(
        words(|d| (d.grants, d.schedules, d.until) = (vec![], vec![], None)),
        "At most nothing outside, until you end it"
    );
    // More than is worth counting is told as endless, never as fewer.
    let far = draft(|d| d.until = Some("2099-01-01T00:00:00Z".into()));
    assert_eq!(of(&far).wakeups, None);
}

#[test]
fn what_has_not_left_can_be_taken_back_and_nothing_else() {
    use ActionState as S;
    let wanted = |state, never_left| match (state, never_left) {
        (S::Proposed | S::AwaitingApproval | S::Authorized, _) => Some(S::Superseded),
        (S::Admitted, _) => Some(S::Cancelled),
        (S::Blocked, true) => Some(S::Abandoned),
        _ => None,
    };
    for word in S::MACHINE.states {
        let state = S::parse(word).unwrap();
        for never_left in [false, true] {
            let to = taken_back(state, S::Superseded, never_left);
            assert_eq!(to, wanted(state, never_left), "{word}");
            assert!(to.is_none_or(|to| S::MACHINE.allows(word, to.word())), "{word}");
        }
    }
}
