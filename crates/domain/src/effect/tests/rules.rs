//! A supervisor's rules: what each covers, and that none ever makes anything admissible (ADM-31).

use proptest::prelude::*;

use super::decisions::{Asked, asked, asked_by_policy, flips};
use super::*;
use crate::state::{ActionState, ApprovalState};
use crate::words::Language;

fn rule(tool: &str, effect: Option<Effect>, above: Option<Amount>, demand: Demand) -> Rule {
    Rule { tool: tool.into(), effect, above, demand }
}

fn all(demand: Demand) -> Rule {
    rule("*", None, None, demand)
}

#[test]
fn what_a_rule_covers() {
    let content = frozen().content;
    let covers =
        |tool: &str, effect, above| rule(tool, effect, above, Demand::Forbid).covers(&content);
    let named =
        ["*", "hotel.*", "hotel.book_hotel", "hotel.book", "hot.*", "fare.*", "hotel.book_hotels"];
    let found = named.map(|tool| covers(tool, None, None));
    assert_eq!(found, [true, true, true, false, false, false, false]);
    assert!(covers("*", Some(Effect::Paid), None) && !covers("*", Some(Effect::Outward), None));
    // It costs HKD 2 600.00.
    let bounds = [259_999, 260_000].map(|minor| covers("*", None, Some(hkd_amount(minor))));
    assert_eq!(bounds, [true, false]);
    let dollars = Amount { minor: i64::MAX, currency: Currency::parse("USD").unwrap() };
    assert!(covers("*", None, Some(dollars)), "what is not in that currency is above it");
    let dear = rule("*", None, Some(hkd_amount(i64::MAX)), Demand::Forbid);
    for half in [(None, None), (Some("many".to_owned()), Some(hkd())), (Some("1".to_owned()), None)]
    {
        let unknown = Content { minor: half.0, currency: half.1, ..content.clone() };
        assert!(dear.covers(&unknown), "what costs nobody knows how much is above it");
    }
}

#[test]
fn a_pattern_names_something() {
    let ok = |tool: &str| rule(tool, None, None, Demand::Person).check().is_ok();
    assert_eq!(["*", "hotel.*", "hotel.book", "a.b.*"].map(ok), [true; 4]);
    let long = format!("a.{}", "b".repeat(199));
    let wrong =
        ["", "hotel", "hotel*", "*.book", ".*", "hotel. book", "ho\u{200b}tel.*", "**", &long];
    assert_eq!(wrong.map(ok), [false; 9]);
    // What no connector and no tool can be called covers nothing.
    let nobody = ["Hotel.book", "h\u{43e}tel.*", ".", "a..b", "hotel.", "a. .*", "hotel.\u{3164}"];
    assert_eq!(nobody.map(ok), [false; 7]);
}

#[test]
fn a_rule_reads_whole_in_both_languages() {
    let dear = Some(hkd_amount(50_000));
    let said = [
        rule("hotel.*", Some(Effect::Paid), dear, Demand::Supervisor),
        rule("*", None, None, Demand::Person),
        rule("fare.buy", None, None, Demand::Forbid),
    ]
    .map(|rule| Language::ALL.map(|language| rule.words(language)));
    let wanted = [
        [
            "hotel.* (paid) above HKD 500.00: the supervisor approves each besides",
            "hotel.*（付款），超过 HKD 500.00：每件另须主管批准",
        ],
        [
            "*: the person decides on each, whatever a grant says",
            "*：无论有无授权，每件都由本人决定",
        ],
        ["fare.buy: not done", "fare.buy：不做"],
    ];
    assert_eq!(said, wanted);
}

#[test]
fn rules_are_a_set_and_no_rank() {
    let content = frozen().content;
    let asks = |rules: &[Rule]| {
        let Demanded { person, supervisor, forbid } = demanded(rules, &content);
        [person, supervisor, forbid]
    };
    assert_eq!(asks(&[]), [false; 3]);
    let both = [all(Demand::Supervisor), all(Demand::Person)];
    assert_eq!(asks(&both), [true, true, false], "the supervisor's word takes no tap away");
    assert_eq!(asks(&[rule("fare.*", None, None, Demand::Forbid)]), [false; 3]);
}

/// A supervisor's approval that counts.
fn approved(asked: &Asked) -> Option<Release> {
    let release = asked.control.release.clone().unwrap();
    Some(Release { grant: None, by_policy: false, ..release })
}

#[test]
fn each_demand_has_its_answer_at_both_cut_lines() {
    let (person, policy) = (asked(), asked_by_policy());
    for state in [ActionState::Authorized, ActionState::Admitted] {
        let with = |base: &Asked, demand| {
            base.but(|a| (a.state, a.control.rules) = (state, vec![all(demand)]))
        };
        for base in [&person, &policy] {
            let of = |demand| with(base, demand);
            assert_eq!(of(Demand::Forbid).answer(), Err(Refusal::Forbidden));
            let asked = of(Demand::Supervisor);
            assert_eq!(asked.answer(), Err(Refusal::SupervisorAsked));
            let approval = approved(&asked);
            let both = asked.but(|a| a.control.supervisor = approval);
            assert_eq!(both.answer(), Ok(()));
            // It stands besides the other release and in place of none.
            assert_eq!(both.but(|a| a.control.release = None).answer(), Err(Refusal::NotReleased));
            let but = |change: fn(&mut Release)| {
                both.but(|a| change(a.control.supervisor.as_mut().unwrap())).answer()
            };
            assert_eq!(but(|r| r.digest = Digest::of(b"other")), Err(Refusal::Tampered));
            assert_eq!(but(|r| r.task_version = Some(id(3))), Err(Refusal::Superseded));
            assert_eq!(but(|r| r.until = NOW), Err(Refusal::SupervisorAsked));
            for word in ApprovalState::MACHINE.states {
                let wanted = match (ApprovalState::parse(word).unwrap(), state) {
                    (ApprovalState::Granted, _)
                    | (ApprovalState::Consumed, ActionState::Admitted) => Ok(()),
                    _ => Err(Refusal::SupervisorAsked),
                };
                let of = both.but(|a| {
                    a.control.supervisor.as_mut().unwrap().state =
                        ApprovalState::parse(word).unwrap();
                });
                assert_eq!(of.answer(), wanted, "{word}");
            }
        }
        assert_eq!(with(&person, Demand::Person).answer(), Ok(()));
        assert_eq!(with(&policy, Demand::Person).answer(), Err(Refusal::PersonAsked));
    }
}

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    let tool = prop::sample::select(vec!["*", "hotel.*", "hotel.book_hotel", "fare.*"]);
    let effect = prop::option::of(prop::sample::select(vec![Effect::Paid, Effect::Outward]));
    let currency = prop::sample::select(vec!["HKD", "USD"]);
    let above = prop::option::of((250_000_i64..270_000, currency));
    let demand = prop::sample::select(vec![Demand::Person, Demand::Supervisor, Demand::Forbid]);
    let one = (tool, effect, above, demand).prop_map(|(tool, effect, above, demand)| {
        let amount = |(minor, code)| Amount { minor, currency: Currency::parse(code).unwrap() };
        rule(tool, effect, above.map(amount), demand)
    });
    prop::collection::vec(one, 0..6)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2_000, ..ProptestConfig::default() })]

    /// Whatever the control records say: with more rules nothing goes on that did not with fewer.
    #[test]
    fn more_rules_never_admit_more(
        (rules, more) in (rules(), rules()),
        (by_policy, approved_by, flip, at) in (any::<bool>(), 0..4_u8, 0..40_usize, 0..6_usize),
    ) {
        let base = if by_policy { asked_by_policy() } else { asked() };
        let base = base.but(|a| {
            let approval = approved(a);
            a.control.supervisor = approval.filter(|_| approved_by > 0);
            if let Some(approval) = a.control.supervisor.as_mut().filter(|_| approved_by == 1) {
                approval.digest = Digest::of(b"other");
            }
            // In most cases everything else holds.
            if let Some((flip, _)) = flips().get(flip) {
                flip(a);
            }
        });
        let fewer = base.but(|a| a.control.rules = rules.clone());
        // Wherever the others stand among them.
        let mut together = rules;
        for (n, rule) in more.into_iter().enumerate() {
            together.insert((at + n) % (together.len() + 1), rule);
        }
        let more = base.but(|a| a.control.rules = together);
        if more.answer().is_ok() {
            prop_assert_eq!(fewer.answer(), Ok(()));
        }
        if fewer.answer().is_ok() {
            prop_assert_eq!(base.answer(), Ok(()));
        }
    }
}
