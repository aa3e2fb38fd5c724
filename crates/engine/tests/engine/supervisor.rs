//! A supervisor over a person's own grants and approvals: rules that only tighten (ADM-31, DEL-14, DEL-25).

use base::{Amount, Currency, Digest, RuleId};
use domain::effect::{Demand, Rule};
use domain::state::{ActionState, ApprovalState};
use engine::control::{self, Changed};
use engine::setup;
use store::device::Device;
use store::owner::PrincipalKind;

use crate::effects::{Room, conflict};
use crate::outside::Small;
use crate::support::now;

const GRANT: &str = "3000.00 each, 8200.00 in all, 3 times";

/// A room whose owner has a supervisor.
struct Watched {
    room: Room,
    boss: Device,
}

impl Watched {
    fn over(mut room: Room) -> Watched {
        room.talk.cx.reviewer = Small::says(&[Ok(r#"{"verdict":"allow","why":""}"#)]);
        let owner = room.talk.device.owner;
        let add = |cx: &engine::Context, tx: &mut store::OwnerTx<'_, '_>| {
            setup::add_supervisor(cx, tx, "boss")
        };
        let boss = now(room.talk.cx.write(owner, add)).unwrap().device;
        Watched { room, boss }
    }

    fn new() -> Watched {
        Watched::over(Room::honest())
    }

    fn as_boss<T: Send + 'static>(
        &self,
        work: impl FnOnce(&engine::Context, &mut store::OwnerTx<'_, '_>, &Device) -> store::Result<T>
        + Send
        + 'static,
    ) -> T {
        let device = self.boss.clone();
        now(self.room.talk.cx.write(device.owner, move |cx, tx| work(cx, tx, &device))).unwrap()
    }

    fn rule(&self, demand: Demand) -> RuleId {
        let terms = all(demand);
        self.as_boss(move |cx, tx, device| control::add_rule(cx, tx, device, &terms)).unwrap().id
    }

    fn end(&self, rule: RuleId) {
        let ended = self.as_boss(move |_, tx, device| control::end_rule(tx, device, rule));
        assert_eq!(ended, Changed::Done);
    }

    fn boss_approves(&self, digest: Digest) -> Changed {
        let id = self.room.only().id;
        self.as_boss(move |_, tx, device| control::approve(tx, device, id, digest))
    }

    /// Whose approvals the action has, and where each stands.
    fn approvals(&self) -> Vec<(PrincipalKind, ApprovalState)> {
        let all = self.room.approvals(self.room.only().id);
        all.iter().map(|approval| (approval.kind, approval.state)).collect()
    }

    /// The state, and whether anything was sent.
    fn stands(&self) -> (ActionState, usize) {
        (self.room.state(), self.room.sent().len())
    }
}

fn all(demand: Demand) -> Rule {
    Rule { tool: "*".into(), effect: None, above: None, demand }
}

use ActionState::{Admitted, Authorized, AwaitingApproval, Cancelled, Expired, Withdrawn};
use ApprovalState::{Consumed, Denied, Granted, Requested, Voided};
use PrincipalKind::{Policy, Supervisor, User};

#[test]
fn the_supervisor_approves_exactly_this_content_besides_the_persons_own_word() {
    for person_first in [true, false] {
        let watched = Watched::new();
        let room = &watched.room;
        watched.rule(Demand::Supervisor);
        let action = room.ask();
        room.stages();
        assert_eq!(watched.stands(), (AwaitingApproval, 0));
        assert_eq!(watched.approvals(), [(User, Requested), (Supervisor, Requested)]);
        let wrong = watched.boss_approves(Digest::of(b"something else"));
        assert!(conflict(wrong).contains("not what was shown"));
        if person_first {
            assert_eq!(room.approve(), Changed::Done);
            room.after_ms(60_000);
            assert_eq!(watched.stands(), (Authorized, 0), "a grant or a tap alone does not do");
            let why = "the supervisor has not approved it; they decide on their own device";
            assert_eq!(room.only().reason.as_deref(), Some(why));
            assert!(conflict(room.approve()).contains("no longer be decided"));
            assert_eq!(watched.boss_approves(action.digest), Changed::Done);
        } else {
            assert_eq!(watched.boss_approves(action.digest), Changed::Done);
            room.after_ms(60_000);
            assert_eq!(watched.stands(), (AwaitingApproval, 0), "it takes no tap's place");
            assert!(conflict(watched.boss_approves(action.digest)).contains("no longer"));
            assert_eq!(room.approve(), Changed::Done);
        }
        room.stages();
        room.after_ms(5_000);
        assert_eq!(watched.stands(), (ActionState::Accepted, 1));
        assert_eq!(watched.approvals(), [(User, Consumed), (Supervisor, Consumed)]);
        let id = action.id;
        let told = room.talk.read(move |tx, owner| engine::explain::collect(tx, owner, id));
        for who in ["user", "supervisor"] {
            let line = format!("Release by the {who} is consumed");
            assert!(told.words.iter().any(|words| words.starts_with(&line)), "{:?}", told.words);
        }
    }
}

#[test]
fn within_a_grant_the_policy_alone_does_not_suffice_where_a_rule_asks_for_somebody() {
    let watched = Watched::new();
    watched.rule(Demand::Supervisor);
    watched.room.duty(GRANT);
    watched.room.after_ms(1);
    watched.room.after_ms(60_000);
    assert_eq!(watched.stands(), (Authorized, 0));
    assert_eq!(watched.approvals(), [(Policy, Granted), (Supervisor, Requested)]);
    assert_eq!(watched.boss_approves(watched.room.only().digest), Changed::Done);
    watched.room.stages();
    watched.room.after_ms(5_000);
    assert_eq!(watched.stands(), (ActionState::Accepted, 1));

    let watched = Watched::new();
    watched.rule(Demand::Person);
    watched.room.duty(GRANT);
    watched.room.after_ms(1);
    watched.room.after_ms(60_000);
    assert_eq!(watched.stands(), (AwaitingApproval, 0));
    let card = watched.room.talk.said().pop().unwrap().1;
    assert!(card.contains("Your supervisor asks that you decide on this yourself."), "{card}");
    assert_eq!(watched.room.approve(), Changed::Done);
    watched.room.stages();
    watched.room.after_ms(5_000);
    assert_eq!(
        (watched.stands(), watched.approvals()),
        ((ActionState::Accepted, 1), vec![(User, Consumed)])
    );
}

#[test]
fn a_rule_is_about_what_it_names_and_ended_it_is_none() {
    let watched = Watched::new();
    let hkd = |minor| Some(Amount { minor, currency: Currency::parse("HKD").unwrap() });
    let others = [
        Rule { tool: "fare.*".into(), ..all(Demand::Forbid) },
        Rule { above: hkd(260_000), ..all(Demand::Forbid) },
    ];
    for terms in others {
        watched.as_boss(move |cx, tx, d| control::add_rule(cx, tx, d, &terms)).unwrap();
    }
    let supervised = watched.rule(Demand::Supervisor);
    assert_eq!(watched.rule(Demand::Supervisor), supervised, "laid twice it is one");
    watched.room.duty(GRANT);
    watched.room.after_ms(1);
    watched.room.after_ms(60_000);
    assert_eq!(watched.stands(), (Authorized, 0));
    watched.end(supervised);
    watched.end(supervised);
    watched.room.stages();
    watched.room.after_ms(5_000);
    assert_eq!(watched.stands(), (ActionState::Accepted, 1));
    let cancelled = ApprovalState::Cancelled;
    assert_eq!(watched.approvals(), [(Policy, Consumed), (Supervisor, cancelled)]);
}

#[test]
fn what_a_rule_forbids_ends_at_once_wherever_it_waits() {
    let told = |watched: &Watched| {
        let text = watched.room.talk.said().pop().unwrap().1;
        assert!(text.starts_with("Not done: hotel.book for HKD 2 600.00"), "{text}");
        let why = watched.room.only().reason.unwrap();
        assert!(why.contains("a rule of the supervisor forbids it"), "{why}");
        now(engine::router::pass(&watched.room.talk.cx)).unwrap();
    };
    // Before anybody was asked.
    let watched = Watched::new();
    watched.rule(Demand::Forbid);
    watched.room.ask();
    watched.room.stages();
    assert_eq!((watched.stands(), watched.approvals()), ((Withdrawn, 0), vec![]));
    told(&watched);
    let seen = watched.room.talk.turn();
    let seen = String::from_utf8_lossy(seen.first().unwrap()).into_owned();
    assert!(seen.contains("a rule of the supervisor forbids it"), "the model reads why: {seen}");

    // While the person is asked.
    let watched = Watched::new();
    watched.room.ask();
    watched.room.stages();
    assert_eq!(watched.stands(), (AwaitingApproval, 0));
    watched.rule(Demand::Forbid);
    watched.room.stages();
    assert_eq!(watched.stands(), (Withdrawn, 0));
    assert_eq!(watched.approvals(), [(User, ApprovalState::Cancelled)]);
    told(&watched);

    // Released, and not admitted since it is paused.
    let watched = Watched::new();
    watched.room.ask();
    watched.room.stages();
    assert_eq!(watched.room.approve(), Changed::Done);
    let paused = watched.room.tap(|cx, tx, device| control::pause(cx, tx, device, None));
    assert_eq!(paused, Changed::Done);
    watched.room.stages();
    assert_eq!(watched.stands(), (Authorized, 0));
    watched.rule(Demand::Forbid);
    watched.room.stages();
    assert_eq!((watched.stands(), watched.approvals()), ((Withdrawn, 0), vec![(User, Voided)]));
    told(&watched);
}

#[test]
fn a_rule_made_between_the_cut_lines_recalls_what_was_admitted() {
    let admitted = || {
        let watched = Watched::new();
        watched.room.duty(GRANT);
        watched.room.stages();
        watched.room.stages();
        assert_eq!(watched.stands(), (Admitted, 0));
        watched
    };
    let watched = admitted();
    watched.rule(Demand::Forbid);
    watched.room.after_ms(5_000);
    watched.room.after_ms(60_000);
    assert_eq!((watched.stands(), watched.approvals()), ((Cancelled, 0), vec![(Policy, Voided)]));

    let watched = admitted();
    watched.rule(Demand::Supervisor);
    watched.room.after_ms(5_000);
    watched.room.after_ms(60_000);
    assert_eq!(watched.stands(), (Authorized, 0));
    assert_eq!(watched.boss_approves(watched.room.only().digest), Changed::Done);
    watched.room.stages();
    watched.room.after_ms(5_000);
    assert_eq!(watched.stands(), (ActionState::Accepted, 1));

    let watched = admitted();
    watched.rule(Demand::Person);
    watched.room.after_ms(5_000);
    watched.room.after_ms(60_000);
    assert_eq!(watched.stands(), (AwaitingApproval, 0));
    assert_eq!(watched.approvals(), [(Policy, Voided), (User, Requested)]);
}

#[test]
fn a_supervisor_who_says_nothing_or_no_ends_it() {
    let watched = Watched::new();
    watched.rule(Demand::Supervisor);
    watched.room.ask();
    watched.room.stages();
    assert_eq!(watched.room.approve(), Changed::Done);
    watched.room.after_ms(86_399_000);
    assert_eq!(watched.stands(), (Authorized, 0));
    watched.room.after_ms(2_000);
    assert_eq!(watched.stands(), (Expired, 0));
    let over = ApprovalState::Expired;
    assert_eq!(watched.approvals(), [(User, over), (Supervisor, over)]);
    assert!(watched.room.talk.said().pop().unwrap().1.starts_with("The time to decide has passed"));
    let late = watched.boss_approves(watched.room.only().digest);
    assert!(conflict(late).contains("no longer be decided"));

    for person_first in [true, false] {
        let watched = Watched::new();
        watched.rule(Demand::Supervisor);
        let id = watched.room.ask().id;
        watched.room.stages();
        if person_first {
            assert_eq!(watched.room.approve(), Changed::Done);
            watched.room.stages();
        }
        let reason = Some("too dear".to_owned());
        let no = watched.as_boss(move |cx, tx, d| control::deny(cx, tx, d, id, reason));
        assert_eq!((no, watched.stands()), (Changed::Done, (Withdrawn, 0)));
        let why = watched.room.only().reason.unwrap();
        assert_eq!(why, "the supervisor refused it: too dear");
        let of_user = if person_first { Voided } else { ApprovalState::Cancelled };
        assert_eq!(watched.approvals(), [(User, of_user), (Supervisor, Denied)]);
    }
}

#[test]
fn only_the_supervisor_writes_rules_and_only_the_operator_lets_one_in() {
    let watched = Watched::new();
    let rule = watched.rule(Demand::Supervisor);
    let terms = all(Demand::Person);
    let room = &watched.room;
    let refused = room.tap(move |cx, tx, device| control::add_rule(cx, tx, device, &terms));
    let no = Changed::NotYours(control::RULES);
    assert_eq!(refused, Err(no.clone()));
    let kept = room.tap(move |_, tx, device| control::end_rule(tx, device, rule));
    assert_eq!(kept, no);
    let standing = room.talk.read(store::rule::active);
    let standing: Vec<_> = standing.iter().map(|rule| (rule.id, rule.made_by)).collect();
    assert_eq!(standing, [(rule, watched.boss.principal)]);

    // A code for the supervisor's device, and its end, are the operator's; the rest is each one's own.
    let code = |device: &Device, kind| {
        let (device, owner) = (device.clone(), device.owner);
        let offer = move |cx: &engine::Context, tx: &mut store::OwnerTx<'_, '_>| {
            control::offer_code(cx, tx, &device, kind)
        };
        now(room.talk.cx.write(owner, offer)).unwrap().is_ok()
    };
    let owner = room.talk.device.owner;
    let add = |cx: &engine::Context, tx: &mut store::OwnerTx<'_, '_>| {
        setup::add_operator(cx, tx, "command line")
    };
    let operator = now(room.talk.cx.write(owner, add)).unwrap().device;
    let of = |device: &Device| [code(device, User), code(device, Supervisor), code(device, Policy)];
    assert_eq!(of(&room.talk.device), [true, false, false]);
    assert_eq!(of(&watched.boss), [false, false, false]);
    assert_eq!(of(&operator), [true, true, false]);
    let revoke = |by: &Device, id| {
        let by = by.clone();
        let owner = by.owner;
        now(room.talk.cx.write(owner, move |_, tx| control::revoke(tx, &by, id))).unwrap().is_ok()
    };
    assert!(
        !revoke(&room.talk.device, watched.boss.id),
        "a person does not turn their supervisor out"
    );
    assert!(!revoke(&watched.boss, room.talk.device.id));
    assert!(revoke(&operator, watched.boss.id));
}

#[test]
fn a_question_ends_with_its_rule_and_holds_nothing_up_under_a_stop() {
    let watched = Watched::new();
    let room = &watched.room;
    let rule = watched.rule(Demand::Supervisor);
    room.duty(GRANT);
    room.stages();
    assert_eq!(watched.stands(), (Authorized, 0));
    let paused = room.tap(|cx, tx, device| control::pause(cx, tx, device, None));
    assert_eq!(paused, Changed::Done);
    watched.end(rule);
    room.after_ms(25 * 3_600_000);
    assert_eq!(watched.stands(), (Authorized, 0), "nobody has to decide any more");
    assert_eq!(watched.approvals(), [(Policy, Granted), (Supervisor, ApprovalState::Cancelled)]);
    let digest = room.only().digest;
    assert!(conflict(watched.boss_approves(digest)).contains("no longer be decided"));
}

#[test]
fn where_both_are_asked_both_have_the_same_time() {
    let watched = Watched::new();
    let room = &watched.room;
    watched.rule(Demand::Supervisor);
    room.duty(GRANT);
    room.stages();
    room.after_ms(23 * 3_600_000);
    watched.rule(Demand::Person);
    room.stages();
    assert_eq!(room.state(), AwaitingApproval);
    room.after_ms(2 * 3_600_000);
    assert_eq!(room.state(), AwaitingApproval);
    assert_eq!(watched.boss_approves(room.only().digest), Changed::Done);
    assert_eq!(room.approve(), Changed::Done);
    room.stages();
    assert_eq!(room.state(), Admitted);
}

#[test]
fn what_a_rule_forbids_is_not_sent_again_and_the_person_is_told() {
    let down = domain::effect::Observation::NotSent("the connector is down".into());
    let watched = Watched::over(Room::with(&[down], &[], true));
    let room = &watched.room;
    room.ask();
    room.stages();
    assert_eq!(room.approve(), Changed::Done);
    room.stages();
    room.after_ms(5_000);
    assert_eq!(room.state(), ActionState::Blocked);
    watched.rule(Demand::Forbid);
    room.after_ms(60_000);
    assert_eq!(watched.stands(), (ActionState::Abandoned, 0));
    let told = room.talk.said().pop().unwrap().1;
    assert!(told.ends_with("A rule of your supervisor forbids it."), "{told}");
}
