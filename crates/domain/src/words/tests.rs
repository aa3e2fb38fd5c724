use super::said::{PARTS, SENTENCES, named};
use super::*;
use crate::effect::{Limit, Refusal};
use crate::state::{ActionState, ApprovalState, AttemptState, DutyState, ProposalState};

fn notices() -> [Notice<'static>; 15] {
    [
        Notice::Poison { attempts: 5, what: "\"hello\"" },
        Notice::Budget { what: "40 of 40 steps" },
        Notice::MonthCap { what: "US$5.00 of US$5.00" },
        Notice::Model { reason: "it does not answer just now" },
        Notice::Stuck { what: "work item pending", since: "Monday 2026-11-30 08:00" },
        Notice::Source { name: "news", reason: "the server answers 404" },
        Notice::Silent { name: "shop", since: "Monday 2026-11-30 08:00" },
        Notice::Connector { name: "mail", reason: "its server refuses the key" },
        Notice::Held { since: "Monday 2026-11-30 08:00" },
        Notice::IsItAStop { said: "wait" },
        Notice::BeingChecked { what: "hotel.book_hotel" },
        Notice::Adopted { lines: "Goal: \"at nine\" becomes \"at ten\"" },
        Notice::PutBack { taken: "Monday 2026-11-30 08:00" },
        Notice::DiskLow { free: "500 MiB", least: "128 MiB" },
        Notice::DiskFull { free: "90 MiB" },
    ]
}

#[test]
fn every_notice_begins_with_the_fact_and_ends_with_what_can_be_done() {
    let said = notices().map(|notice| notice.text(Language::En));
    let wanted = [
        "I gave up on \"hello\" after 5 tries. Nothing else is affected; send it again to retry.",
        "Stopped: the budget of this one run is used up (40 of 40 steps). What I reached is saved; \
         send a message to go on.",
        "On hold: this month's cap is used up (US$5.00 of US$5.00). Everything is kept and goes on \
         next month. To go on now, raise the cap: under More on the page, or with \"adjutant set \
         --cap-usd AMOUNT\".",
        "I cannot reach the model: it does not answer just now. Everything is kept and goes on by \
         itself.",
        "No progress since Monday 2026-11-30 08:00: work item pending. See \"adjutant doctor\" for \
         what to do.",
        "I cannot read the source news: the server answers 404. Nothing is lost; I go on trying. \
         See \"adjutant source list\".",
        "Nothing has come from shop since Monday 2026-11-30 08:00, which is longer than you expect. \
         Look whether it still sends, or change it with \"adjutant source\".",
        "The connector mail is broken: its server refuses the key. I do not go round it by other \
         ways; what needs it waits until it works again.",
        "Held since Monday 2026-11-30 08:00: until it is settled whether your message says stop, \
         nothing is done outside. Settle it with one tap under Now, or with \"adjutant hold\".",
        "Does this mean stop? \"wait\" Until you answer, nothing is done outside. Answer with one \
         tap under Now, or with \"adjutant hold\".",
        "Being checked: hotel.book_hotel. It was sent and no answer is certain yet. I look it up and \
         do not send it again.",
        "News from outside changed what this duty goes by: Goal: \"at nine\" becomes \"at ten\". What \
         it may do is as before. Tell me if that is wrong.",
        "Everything is paused: these records come from a backup of Monday 2026-11-30 08:00. What came \
         in, was decided or was done outside after that is not in them, and may have happened all the \
         same. Look at the open cards, at what your duties do, and at devices that you revoked since \
         (\"adjutant devices\"); then lift the pause under Now, or with \"adjutant lift\".",
        "The server's disk gets full: 500 MiB are left. Below 128 MiB nothing new from outside is taken \
         in. Make room there.",
        "The server's disk is nearly full: 90 MiB are left, and nothing new from outside is taken in. What \
         you say, decide and stop counts as ever. Make room there; then it goes on by itself.",
    ];
    assert_eq!(said, wanted);
}

/// Whether a text is whole in its language: Chinese holds no English words but names, commands and codes,
/// which stand in the list.
fn is_whole(text: &str, language: Language) -> bool {
    // What others said is quoted, in their words.
    let parts = text.split(['“', '”']).step_by(2).collect::<String>();
    let text = if language == Language::Zh { parts.as_str() } else { text };
    let chinese = text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
    let known = [
        "hotel",
        "book",
        "Monday",
        "pending",
        "adjutant",
        "doctor",
        "source",
        "list",
        "hold",
        "set",
        "cap",
        "usd",
        "token",
        "US",
        "HTTP",
        "HKD",
        "news",
        "shop",
        "mail",
        "pair",
        "x",
        "s",
        "action",
        "id",
        "Harbour",
        "supervisor",
        "revoke",
        "devices",
        "lift",
        "MiB",
    ];
    let mut words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    match language {
        Language::En => !chinese && !text.is_empty(),
        Language::Zh => !text.is_empty() && words.all(|word| known.contains(&word)),
    }
}

fn check(text: &str, language: Language) {
    assert!(is_whole(text, language), "{}: {text}", language.word());
}

/// Each state with what its words may never claim (UX rule 1), once what is denied is taken out.
fn claims(facts: ActionFacts, language: Language) -> Option<&'static str> {
    let denied = [
        "not sent yet",
        "not sent",
        "nothing sent",
        "not happened",
        "not verified yet",
        "did not happen",
        "may or may not have happened",
        "nothing happened",
        "about to be sent",
        "no answer yet",
        "尚未发出",
        "未发出",
        "没有发出",
        "没有发生",
        "尚未核实",
        "即将发出",
        "可能发生了，也可能没有",
        "尚无答复",
    ];
    let mut said = action_line(facts, language).to_lowercase();
    for words in denied {
        said = said.replace(words, "");
    }
    let sent = matches!(
        facts.state,
        ActionState::Dispatched
            | ActionState::Unknown
            | ActionState::Accepted
            | ActionState::Effective
    );
    let happened = facts.state == ActionState::Effective || facts.said_by_user;
    let always = [
        "booked",
        "successful",
        "failed",
        "error",
        "retry",
        "失败",
        "重试",
        "已订妥",
        "成功",
        "!",
        "！",
    ];
    let of_sent = ["sent", "发出", "已提交"];
    let of_happened = ["happened", "in force", "done", "verified", "已生效", "已核实", "已经发生"];
    let never = always.iter();
    let never = never.chain(of_sent.iter().filter(|_| !sent));
    let mut never = never.chain(of_happened.iter().filter(|_| !happened));
    never.find(|word| said.contains(**word)).copied()
}

fn states() -> Vec<ActionFacts> {
    let words = ActionState::MACHINE.states.iter();
    let states = words.map(|word| ActionState::parse(word).unwrap());
    let facts = |state| {
        [(false, false), (true, false), (false, true)]
            .map(|(escalated, said_by_user)| ActionFacts { state, escalated, said_by_user })
    };
    states.flat_map(facts).collect()
}

#[test]
fn every_state_has_whole_words_in_both_languages_and_claims_no_more_than_it_is() {
    for language in Language::ALL {
        for facts in states() {
            check(action_line(facts, language), language);
            // What a person said counts only where they can say it.
            let can_say = matches!(facts.state, ActionState::Accepted | ActionState::Blocked);
            let of = ActionFacts { said_by_user: facts.said_by_user && can_say, ..facts };
            assert_eq!(claims(of, language), None, "{facts:?}");
            let ActionFacts { state, escalated, .. } = facts;
            let times = [(Some("2027-03-01 08:00"), Some("08:00"), 5), (None, None, 0)];
            for (until, not_before, seconds) in times {
                let of = Standing { state, escalated, until, not_before, seconds };
                if let Some((nothing, after)) = action_card(of, language) {
                    [nothing, after].iter().for_each(|text| check(text, language));
                }
            }
            if language == Language::Zh {
                check(&named(action_state(facts.state)), language);
            }
        }
        for word in ApprovalState::MACHINE.states {
            check(approval_line(ApprovalState::parse(word).unwrap(), language), language);
        }
        for word in AttemptState::MACHINE.states {
            check(attempt_line(AttemptState::parse(word).unwrap(), language), language);
        }
        for asked in [Question::Start, Question::Change, Question::Close] {
            for word in ProposalState::MACHINE.states {
                check(
                    proposal_line(asked, ProposalState::parse(word).unwrap(), language),
                    language,
                );
            }
            let (why, after) = proposal_card(asked, language);
            [why, after].iter().for_each(|text| check(text, language));
            check(&proposal_if_nothing(asked, "08:00", language), language);
        }
        check(proposal_lapsed(language), language);
        notices().iter().filter(|notice| !matches!(notice, Notice::Adopted { .. })).for_each(
            |notice| {
                check(&notice.text(language).replace("hello", "").replace("wait", ""), language);
            },
        );
        let zone = crate::schedule::zone("Asia/Hong_Kong").unwrap();
        for word in DutyState::MACHINE.states {
            let state = DutyState::parse(word).unwrap();
            let some = Some(Timestamp::from_micros(1_800_000_000_000_000));
            for (running, last_run, next_wake) in [
                (true, None, None),
                (false, some, some),
                (false, None, some),
                (false, some, None),
                (false, None, None),
            ] {
                check(
                    &duty_line(DutyFacts { state, running, next_wake, last_run }, &zone, language),
                    language,
                );
            }
        }
    }
}

/// Every refusal; a new variant has to be added here, and its sentence to the table.
fn refusals() -> Vec<Refusal> {
    let action: base::ActionId = base::parse_id("0193e4a1-7c00-7000-8000-000000000001").unwrap();
    let amount = base::Amount::parse("1480", base::Currency::parse("HKD").unwrap()).unwrap();
    let limit = |limit: Limit| match limit {
        Limit::Ended
        | Limit::Times(_)
        | Limit::Currency(_)
        | Limit::NoAmount
        | Limit::Each(_)
        | Limit::Total { .. }
        | Limit::Recipient(_) => Refusal::Limit(limit),
    };
    let limits = [
        Limit::Ended,
        Limit::Times("once".into()),
        Limit::Times("3 times".into()),
        Limit::Currency(amount.currency),
        Limit::NoAmount,
        Limit::Each(amount),
        Limit::Total { amount, left: amount },
        Limit::Recipient("x".into()),
        Limit::Recipient("whoever receives it".into()),
    ];
    let mut all: Vec<Refusal> = limits.map(limit).into();
    all.extend([
        Refusal::SystemStop,
        Refusal::Paused,
        Refusal::Held,
        Refusal::DutyOver,
        Refusal::Superseded,
        Refusal::Expired,
        Refusal::ObjectGone("hotel".into()),
        Refusal::ObjectTaken(action),
        Refusal::ErrandOpen(action),
        Refusal::Tampered,
        Refusal::Entry,
        Refusal::NotReleased,
        Refusal::Forbidden,
        Refusal::PersonAsked,
        Refusal::SupervisorAsked,
    ]);
    all
}

#[test]
fn every_refusal_is_whole_in_chinese_by_itself_and_as_why_a_person_is_asked() {
    for refusal in refusals() {
        let alone = refusal.to_string();
        let asked = format!("No grant of yours covers it: {alone}.");
        let limit = match &refusal {
            Refusal::Limit(limit) => format!("No grant of yours covers it: {limit}."),
            Refusal::SystemStop
            | Refusal::Paused
            | Refusal::Held
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
            | Refusal::PersonAsked
            | Refusal::SupervisorAsked => alone.clone(),
        };
        for english in [alone, asked, limit] {
            let chinese = said(&english, Language::Zh).replace("0193e4a1-7c00", "");
            check(&chinese, Language::Zh);
        }
    }
}

#[test]
fn each_template_has_as_many_places_in_both_languages_and_is_reached() {
    let whole: fn(&str) -> String = |english| said(english, Language::Zh);
    let part: fn(&str) -> String = named;
    let all = SENTENCES.iter().map(|template| (template, whole));
    for ((english, chinese), read) in all.chain(PARTS.iter().map(|template| (template, part))) {
        let places = english.matches("{}").count() + english.matches("{+}").count();
        assert_eq!(places, chinese.matches("{}").count(), "{english}");
        assert_eq!(english.matches('{').count(), places, "{english}");
        // An earlier, wider line would take its sentences.
        let filled = english.replace("{+}", "in force").replace("{}", "x");
        let of = named("in force");
        let mut wanted = (*chinese).to_owned();
        for place in english.split('{').skip(1) {
            let part = if place.starts_with('+') { of.as_str() } else { "x" };
            wanted = wanted.replacen("{}", part, 1);
        }
        assert_eq!(read(&filled), wanted, "{english}");
        assert!(is_whole(&wanted.replace("cron", ""), Language::Zh), "{wanted}");
    }
    // What is nobody's sentence here stays as it is.
    assert_eq!(said("Card declined", Language::Zh), "Card declined");
}

#[test]
fn a_persons_own_words_are_no_part_of_ours() {
    let own = ["wait for my husband to look", "I told you three times", "run it by my boss"];
    assert_eq!(own.map(|words| said(words, Language::Zh)), own);
    let refused =
        own.map(|words| said(&format!("the supervisor refused it: {words}"), Language::Zh));
    assert_eq!(refused, own.map(|words| format!("主管已否决：“{words}”")));
}

#[test]
fn text_of_others_never_becomes_a_sentence_of_ours() {
    let said = said("The reviewer asks you to look: nothing was done.", Language::Zh);
    assert_eq!(said, "复核请你看一下：“nothing was done”。");
}
