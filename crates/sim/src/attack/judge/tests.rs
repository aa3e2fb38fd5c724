//! The judge and what is around it, on what a product with a defect would leave.

use base::DeviceId;
use domain::state::{ActionState, AttemptState, RuleState};
use domain::words::Language;
use serde_json::json;
use testkit::stores::TempFolder;

use super::super::person::Tap;
use super::super::{Options, Progress, Report, Target, ToolSpec, epoch_seed, sample};
use super::*;

fn id<I: base::Id>(n: u128) -> I {
    I::from_uuid(uuid::Uuid::from_u128(n))
}

fn person() -> Person {
    let device = store::device::Device {
        id: id(1),
        owner: id(2),
        principal: id(3),
        source: id(4),
        kind: PrincipalKind::User,
        name: "phone".into(),
        token_digest: Digest::of(b"token"),
        created_at: Timestamp::from_micros(0),
        revoked_at: None,
        operator: false,
    };
    Person::new(device, (id(5), id(6)), Vec::new(), Timestamp::from_micros(0), 1)
}

fn rule(n: u128, demand: Demand) -> Rule {
    Rule {
        id: id(n),
        owner: id(2),
        tool: "hotel.*".into(),
        effect: None,
        above_minor: None,
        currency: None,
        demand,
        state: RuleState::Active,
        made_by: id(3),
        ended_by: None,
        created_at: Timestamp::from_micros(0),
        moved_at: Timestamp::from_micros(0),
    }
}

/// What the judge says.
fn judged(
    before: &Rows,
    after: &Rows,
    person: &Person,
    tools: Vec<ToolSpec>,
    ledger: &[Request],
) -> Vec<String> {
    let (duty, specs) = (id(5), Specs::new(tools).unwrap());
    let case = Case { seed: 1, duty, specs: &specs, before, after, ledger, person };
    case.judge().findings.into_iter().map(|finding| finding.what).collect()
}

#[test]
fn control_rows_that_nobody_touched_may_not_move() {
    let (pause, duty) = (uuid::Uuid::from_u128(7), id::<DutyId>(8));
    let (mut before, mut after, mut person) = (Rows::default(), Rows::default(), person());
    before.pauses.insert(pause);
    before.duties.insert(duty, DutyState::Stopped);
    before.sources.insert(uuid::Uuid::from_u128(9));
    before.rules.insert(id(10), rule(10, Demand::Forbid));
    assert_eq!(judged(&before, &before, &person, Vec::new(), &[]), [""; 0]);
    after.duties.insert(duty, DutyState::Active);
    after.sources.insert(uuid::Uuid::from_u128(11));
    after.rules.insert(id(12), rule(12, Demand::Person));
    // Another pause was lifted, and another duty resumed: that of this one is no tap.
    person.ended.extend([uuid::Uuid::from_u128(13), uuid::Uuid::from_u128(14)]);
    let named = |n: u128| uuid::Uuid::from_u128(n);
    assert_eq!(
        judged(&before, &after, &person, Vec::new(), &[]),
        [
            format!("a source {} was made without a tap", named(11)),
            format!("a source {} was taken away without a tap", named(9)),
            format!("rule {} was made, ended or changed", named(10)),
            format!("rule {} was made, ended or changed", named(12)),
            format!("duty {duty} became active without a tap"),
            format!("pause {pause} was lifted without a tap"),
        ]
    );
    // What the person lifted and resumed may be so.
    (after.sources, after.rules) = (before.sources.clone(), before.rules.clone());
    person.ended.extend([pause, duty.uuid()]);
    assert_eq!(judged(&before, &after, &person, Vec::new(), &[]), [""; 0]);
}

fn sampled(change: impl FnOnce(&mut Target)) -> Report {
    let scratch = TempFolder::in_memory().unwrap();
    let mut target = sample::target(&scratch.path().join("copy.db")).unwrap();
    change(&mut target);
    target.attack(Options { steps: 120, seed: 1, threads: 2 }, &Progress::default()).unwrap()
}

/// The oracle is told of a rule that the product does not know, and so does not keep.
#[test]
fn a_request_against_a_rule_of_the_supervisor_is_found() {
    let mut found: BTreeMap<&str, (u64, bool)> = BTreeMap::new();
    for demand in [Demand::Person, Demand::Supervisor, Demand::Forbid] {
        let report = sampled(|target| drop(target.rows.rules.insert(id(10), rule(10, demand))));
        let words =
            format!("against the rule \"{}\"", rule(10, demand).terms().words(Language::En));
        let against = report.findings.iter().filter(|finding| finding.what.contains(&words));
        found.insert(demand.word(), (report.requests, against.count() > 0));
    }
    assert!(found.values().all(|(requests, found)| *requests > 0 && *found), "{found:?}");
}

#[test]
fn a_rule_covers_what_it_names_and_what_may_cost_more() {
    let hkd = Currency::parse("HKD").ok();
    let of = |change: fn(&mut Rule)| {
        let mut rule = rule(1, Demand::Forbid);
        change(&mut rule);
        let book = |minor, currency| covers(&rule, "hotel.book", Effect::Paid, minor, currency);
        [book(Some(101), hkd), book(Some(100), hkd), book(Some(1), None), book(None, hkd)]
    };
    let bounded = |rule: &mut Rule| {
        (rule.above_minor, rule.currency) = (Some(100), Currency::parse("HKD").ok());
    };
    assert_eq!(of(|_| ()), [true; 4]);
    assert_eq!(of(bounded), [true, false, true, true]);
    assert_eq!(of(|rule| rule.tool = "*".into()), [true; 4]);
    assert_eq!(of(|rule| rule.tool = "hotel.book".into()), [true; 4]);
    assert_eq!(of(|rule| rule.tool = "hotels.*".into()), [false; 4]);
    assert_eq!(of(|rule| rule.tool = "hotel.bo".into()), [false; 4]);
    assert_eq!(of(|rule| rule.effect = Some(Effect::Outward)), [false; 4]);
}

/// An action that only a person releases, as it left; with approvals of one kind.
fn left(kind: PrincipalKind, device: Option<DeviceId>) -> (Rows, Request) {
    let (action, at) = (id::<ActionId>(20), Timestamp::from_micros(5));
    let bytes = json!({"operation": "desk.note", "arguments": {}}).to_string().into_bytes();
    let action = store::action::Action {
        id: action,
        owner: id(2),
        session: id(6),
        duty: None,
        task_version: None,
        run: id(21),
        call_id: "c1".into(),
        tool: "desk.note".into(),
        effect: Effect::Human,
        content: id(22),
        digest: Digest::of(&bytes),
        errand: String::new(),
        minor: None,
        currency: None,
        compensates: None,
        expires_at: None,
        created_at: at,
        state: ActionState::Effective,
        tier: None,
        reason: None,
        draws_on: None,
        approval: None,
        not_before: None,
        due_at: None,
        tries: 1,
        sent_at: Some(at),
        receipt: None,
        authority: None,
        contradicted: false,
        escalated_at: None,
        moved_at: at,
    };
    let until = at.plus_ms(60_000);
    let asked = Approval::request(id(23), &action, kind, "card", until, at);
    let approval = Approval { device, ..asked.granted(id(3)) };
    let operation = format!("{}.1", action.id);
    let attempt = Attempt {
        id: id(24),
        owner: id(2),
        action: action.id,
        n: 1,
        operation_id: operation.clone(),
        dispatcher: id(25),
        send_by: until,
        answer_by: until,
        created_at: at,
        state: AttemptState::Accepted,
        reason: None,
        receipt: None,
        answer: None,
        moved_at: at,
    };
    let request = Request {
        at,
        operation,
        tool: action.tool.clone(),
        arguments: Map::new(),
        offered: Vec::new(),
        happened: Some(at),
        known: Some(at),
        receipt: "r".into(),
    };
    let acted = Acted { bytes, approvals: vec![approval], attempts: vec![attempt], action };
    let actions = BTreeMap::from([(acted.action.id, acted)]);
    (Rows { actions, ..Rows::default() }, request)
}

#[test]
fn only_a_tap_of_the_person_releases_what_a_person_must() {
    let (device, by) = (Some(id::<DeviceId>(1)), |kind, device| {
        let (rows, request) = left(kind, device);
        let tool = ToolSpec {
            name: "desk.note".into(),
            rule: ToolRule::default(),
            arguments: Value::Null,
        };
        judged(&rows, &rows, &person(), vec![tool], &[request])
    });
    assert_eq!(by(PrincipalKind::User, device), [""; 0]);
    let nobody = ["desk.note: only a person releases it, and nobody did"];
    assert_eq!(by(PrincipalKind::Supervisor, device), nobody);
    assert_eq!(by(PrincipalKind::User, None), nobody);
    assert_eq!(by(PrincipalKind::Policy, device), nobody);
}

#[test]
fn an_approval_is_a_tap_of_whom_it_names() {
    let made = |kind, device| {
        let (rows, request) = left(kind, device);
        let mut person = person();
        let acted = rows.actions.values().next().unwrap();
        let (action, digest) = (acted.action.id, acted.action.digest);
        let word = Word::Approve;
        person.taps.push(Tap { at: request.at, word, action, digest, taken: Some(true) });
        judged(&Rows::default(), &rows, &person, Vec::new(), &[])
    };
    let device = Some(id::<DeviceId>(1));
    let found = [format!("approval {} was made without a tap", uuid::Uuid::from_u128(23))];
    assert_eq!(made(PrincipalKind::User, device), [""; 0]);
    assert_eq!(made(PrincipalKind::Policy, None), [""; 0]);
    // The person's tap is none of the supervisor, and one without a device is of nobody.
    assert_eq!(made(PrincipalKind::Supervisor, device), found);
    assert_eq!(made(PrincipalKind::User, None), found);
}

#[test]
fn a_stage_that_panics_is_a_finding_with_its_seed() {
    let report = sampled(|target| target.last = || panic!("index out of bounds"));
    let finding = |seed| Finding {
        wrong: Wrong::Failed,
        what: "a stage panicked: index out of bounds".into(),
        seed,
    };
    assert_eq!(report.findings, [finding(1)]);
    assert!(report.steps >= 120, "{report:?}");
}

#[test]
fn a_printed_seed_is_played_first_and_neighbours_have_no_other_in_common() {
    assert_eq!((epoch_seed(7, 0), epoch_seed(8, 0)), (7, 8));
    let of = |seed| (0..200).map(|n| epoch_seed(seed, n)).collect::<BTreeSet<u64>>();
    assert_eq!(of(1).len(), 200);
    assert_eq!(of(1).intersection(&of(2)).count(), 0);
}

#[test]
fn the_same_seed_on_the_same_copy_makes_the_same_attack() {
    let scratch = TempFolder::in_memory().unwrap();
    let target = sample::target(&scratch.path().join("copy.db")).unwrap();
    let attack = |threads| {
        let options = Options { steps: 260, seed: 3, threads };
        target.attack(options, &Progress::default()).unwrap().json()
    };
    assert_eq!(attack(2), attack(1));
}
