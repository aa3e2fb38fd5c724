use super::*;

const GOOD: &str = r#"{"title":"Price watch","goal":"Tell me when it falls under 100",
    "conditions":[{"text":"the user ends it","evidence":"statement","authority":"user"}],
    "schedules":[{"kind":"weekdays","at":"08:00","prompt":"Look at the feed"}]}"#;

fn read(arguments: &str) -> Result<Draft, String> {
    let now = Timestamp::parse("2027-03-01T00:00:00Z").unwrap();
    Draft::read(arguments, &TimeZone::UTC, now).map_err(|e| e.to_string())
}

#[test]
fn a_draft_needs_conditions_and_times_that_exist() {
    let draft = read(GOOD).unwrap();
    assert_eq!(draft.schedules[0].rule.words(crate::words::Language::En), "weekdays at 08:00");
    let without = GOOD
        .replace(r#"{"text":"the user ends it","evidence":"statement","authority":"user"}"#, "");
    assert_eq!(
        read(&without),
        Err("a duty needs between 1 and 12 conditions, each with evidence and authority".into())
    );
    assert_eq!(
        read(&GOOD.replace("08:00", "8 o'clock")),
        Err("\"8 o'clock\" is no time of day; write it as 08:00".into())
    );
    assert!(read(&GOOD.replace("\"title\":\"Price watch\"", "\"title\":\" \"")).is_err());
    assert_eq!(
        read(&GOOD.replace("Price watch", "Price\\nDigest  0000")),
        Err("title has a character that may not stand there; write it in plain words in one line"
            .into())
    );
    assert!(read(&GOOD.replace("falls under", "falls\\nunder")).is_ok());
    assert!(read(&GOOD.replace("falls under", "falls \\u202e under")).is_err());
    let past = GOOD.replacen('{', r#"{"until":"2026-01-01T00:00:00Z","#, 1);
    assert!(read(&past).unwrap_err().contains("in the past"));
}

const SCHEDULE: &str = r#"{"kind":"weekdays","at":"08:00","prompt":"Look at the feed"}"#;

/// The draft with another schedule, as it would be frozen; or why it is refused.
fn frozen(schedule: &str) -> Result<String, String> {
    let draft = read(&GOOD.replace(SCHEDULE, schedule))?;
    let bytes = serde_json::to_string(&draft).unwrap();
    // The frozen bytes are read as the same draft.
    assert_eq!(serde_json::from_str::<Draft>(&bytes).unwrap(), draft);
    let (_, schedules) = bytes.split_once(r#""schedules":["#).unwrap();
    Ok(schedules.strip_suffix("]}").unwrap().to_owned())
}

#[test]
fn frozen_bytes_hold_the_normal_form_of_a_wakeup() {
    assert_eq!(frozen(SCHEDULE), Ok(SCHEDULE.into()));
    assert_eq!(
        frozen(r#"{"when":"工作日 8:00","prompt":"Look at the feed"}"#),
        Ok(SCHEDULE.into())
    );
    assert_eq!(
        frozen(r#"{"when":"*/5  9 * * MON","prompt":"Look","run_missed":"once"}"#),
        Ok(r#"{"kind":"cron","cron":"*/5 9 * * mon","prompt":"Look"}"#.into())
    );
    let whole = r#"{"kind":"monthly","at":"09:00","day":31,"prompt":"Look","run_missed":"skip",
        "check":{"tool":"feed.price","arguments":{"item":"x"},"path":"price","when":"below","value":100}}"#
        .replace("\n        ", "");
    assert_eq!(frozen(&whole), Ok(whole.clone()));
    assert_eq!(frozen(&whole.replace("\"value\":100", "\"value\":\"100\"")), Ok(whole));
}

#[test]
fn a_wakeup_that_cannot_be_says_what_to_write() {
    let says = |schedule: &str| frozen(schedule).unwrap_err();
    assert_eq!(
        says(r#"{"prompt":"Look"}"#),
        "a schedule needs a time; write it as \"when\":\"weekdays 8:00\""
    );
    assert_eq!(
        says(r#"{"when":"daily 8:00","at":"09:00","prompt":"Look"}"#),
        "give a schedule either \"when\" or \"kind\" with its fields, not both"
    );
    assert_eq!(
        says(r#"{"kind":"weekly","at":"09:00","prompt":"Look"}"#),
        "a weekly schedule needs a weekday such as \"friday\""
    );
    assert_eq!(
        says(r#"{"when":"0 0 31 2 *","prompt":"Look"}"#),
        "this cron schedule never fires: no month that it names has such a day"
    );
    assert!(says(r#"{"when":"daily 8:00","prompt":"Look","zone":"UTC"}"#).contains("`zone`"));
    assert!(says(r#"{"when":"daily 8:00","prompt":"Look","run_missed":"all"}"#).contains("`all`"));
    assert!(says(r#"{"when":"daily 8:00","prompt":" "}"#).starts_with("a schedule's prompt"));
    let check = |fields: &str| {
        says(&format!(r#"{{"when":"daily 8:00","prompt":"Look","check":{{{fields}}}}}"#))
    };
    assert_eq!(
        check(r#""tool":"feed.price","when":"below""#),
        "a check with \"below\" needs a number as its value, such as 100"
    );
    assert_eq!(
        check(r#""tool":"feed.price","when":"above","value":"NaN""#),
        "a check with \"above\" needs a number as its value, such as 100"
    );
    assert_eq!(
        check(r#""tool":"feed.price","when":"contains","value":7"#),
        "a check with \"contains\" needs a text as its value"
    );
    assert_eq!(
        check(r#""tool":"feed.price","when":"changed","value":7"#),
        "a check with \"changed\" has no value; leave it out"
    );
    assert!(check(r#""tool":"","when":"changed""#).starts_with("a check's tool"));
    assert!(
        check(r#""tool":"a.b","when":"changed","arguments":{"a":"\u202e"}"#)
            .contains("plain words")
    );
}

#[test]
fn subscriptions_are_bounded_and_name_a_topic_or_none() {
    let with = |subscriptions: &str| {
        read(&GOOD.replacen('{', &format!("{{\"subscriptions\":[{subscriptions}],"), 1))
            .map(|draft| draft.subscriptions)
    };
    let read_along =
        r#"{"source":"github","topic":"issues.*","mode":"background","prompt":"Note"}"#;
    let wakes = r#"{"source":"mail","prompt":"Sort it"}"#;
    let subscriptions = with(&format!("{read_along},{wakes}")).unwrap();
    assert_eq!(
        subscriptions,
        [
            Subscription {
                source: "github".into(),
                topic: Some("issues.*".into()),
                mode: Mode::Background,
                prompt: "Note".into(),
            },
            Subscription {
                source: "mail".into(),
                topic: None,
                mode: Mode::Wake,
                prompt: "Sort it".into(),
            },
        ]
    );
    assert_eq!(
        subscriptions.iter().map(|one| one.words(crate::words::Language::En)).collect::<Vec<_>>(),
        ["events of github (issues.*), only read along", "events of mail (any)"]
    );
    assert!(with(&vec![wakes; 20].join(",")).is_ok());
    assert_eq!(with(&vec![wakes; 21].join(",")), Err("a duty has at most 20 subscriptions".into()));
    for topic in ["*", ".*", "a*", "a.*.b", "*.*"] {
        let bad = read_along.replace("issues.*", topic);
        assert_eq!(
            with(&bad),
            Err(format!(
                "\"{topic}\" is no topic; write it whole, or as a prefix such as issues.*"
            ))
        );
    }
    assert!(with(&wakes.replace("mail", "")).is_err());
    assert!(with(&wakes.replace("prompt", "prompts")).is_err());
}

#[test]
fn a_routine_is_a_duty_that_only_the_person_ends() {
    let wakeup: Wakeup = serde_json::from_str(
        r#"{"when":"weekdays 8:00","prompt":"Brief me","run_missed":"skip",
            "check":{"tool":"feed.price","when":"changed"}}"#,
    )
    .unwrap();
    assert_eq!(
        wakeup.words(crate::words::Language::En),
        "weekdays at 08:00; not late; only if its answer of feed.price {} has changed"
    );
    let routine = Draft::routine("Morning brief", wakeup, None);
    let now = Timestamp::parse("2027-03-01T00:00:00Z").unwrap();
    assert_eq!(routine.check(&TimeZone::UTC, now), Ok(()));
    assert_eq!(
        serde_json::to_string(&routine).unwrap(),
        r#"{"title":"Morning brief","goal":"Brief me","conditions":[{"text":"The person ends it","#
            .to_owned()
            + r#""evidence":"statement","authority":"user"}],"schedules":[{"kind":"weekdays","#
            + r#""at":"08:00","prompt":"Brief me","run_missed":"skip","check":{"tool":"feed.price","#
            + r#""arguments":{},"when":"changed"}}]}"#
    );
    let ended = Draft { until: Some("2027-02-28T00:00:00Z".into()), ..routine };
    assert_eq!(ended.check(&TimeZone::UTC, now), Err(DraftError::Past));
}

/// Looks one after the other: what each found. What a look read is remembered unless it was
/// unreadable.
fn looks(check: &str, answers: &[&str]) -> Vec<Verdict> {
    let check: Check = serde_json::from_str(check).unwrap();
    let mut last: Option<String> = None;
    let look = |answer: &&str| {
        let verdict = check_verdict(&check, last.as_deref(), answer);
        last = check.reading(answer).ok().or(last.take());
        verdict
    };
    answers.iter().map(look).collect()
}
fn met(was: Option<&str>, now: &str) -> Verdict {
    Verdict::Met { was: was.map(Into::into), now: now.into() }
}
fn unchanged(now: &str) -> Verdict {
    Verdict::Unchanged { now: now.into() }
}
fn unreadable(why: &str) -> Verdict {
    Verdict::Unreadable(why.into())
}

#[test]
fn a_look_is_met_when_its_test_becomes_true() {
    assert_eq!(
        looks(r#"{"tool":"t","when":"changed"}"#, &["a", "a", "b", "b"]),
        [unchanged("a"), unchanged("a"), met(Some("a"), "b"), unchanged("b")]
    );
    let below = r#"{"tool":"t","path":"items.0.price","when":"below","value":100.5}"#;
    let price = |price: &str| format!(r#"{{"items":[{{"price":{price}}}]}}"#);
    let prices = ["120", "100.5", "\"100.4\"", "90", "101", "-1e2", "null", "80"].map(price);
    assert_eq!(
        looks(below, &prices.each_ref().map(String::as_str)),
        [
            unchanged("120"),
            unchanged("100.5"),
            met(Some("100.5"), "100.4"),
            unchanged("90"),
            unchanged("101"),
            met(Some("101"), "-100.0"),
            unreadable("\"null\" is no number"),
            unchanged("80"),
        ]
    );
    // The first look may find it so already; what cannot be read changes nothing.
    assert_eq!(
        looks(r#"{"tool":"t","when":"above","value":5}"#, &[" 6\n", "x", "7", "5", "inf", "6"]),
        [
            met(None, "6"),
            unreadable("\"x\" is no number"),
            unchanged("7"),
            unchanged("5"),
            unreadable("\"inf\" is no number"),
            met(Some("5"), "6"),
        ]
    );
    assert_eq!(
        looks(
            r#"{"tool":"t","when":"contains","value":"Sold OUT"}"#,
            &["in stock", "a\n now sold out!\n", "sold out", "in stock", "SOLD OUT"]
        ),
        [
            unchanged(""),
            met(Some(""), "now sold out!"),
            unchanged("sold out"),
            unchanged(""),
            met(Some(""), "SOLD OUT"),
        ]
    );
    assert_eq!(
        looks(r#"{"tool":"t","path":"a.b","when":"changed"}"#, &["{", "{\"a\":1}", "[]", "{}"]),
        [
            unreadable("the answer is no JSON"),
            unreadable("the answer has nothing at \"a.b\""),
            unreadable("the answer has nothing at \"a.b\""),
            unreadable("the answer has nothing at \"a.b\""),
        ]
    );
}

#[test]
fn a_long_value_is_remembered_by_its_digest() {
    let check: Check = serde_json::from_str(r#"{"tool":"t","when":"changed"}"#).unwrap();
    let long = "x".repeat(10_000);
    let reading = check.reading(&long).unwrap();
    assert!(reading.starts_with("10000 bytes with digest ") && reading.len() < 120, "{reading}");
    assert_eq!(check_verdict(&check, Some(&reading), &long), unchanged(&reading));
    let other = check_verdict(&check, Some(&reading), &format!("{long}y"));
    assert!(matches!(other, Verdict::Met { was: Some(was), .. } if was == reading));
}

#[test]
fn a_draft_may_grant_what_each_grant_says_within_its_bounds() {
    const GRANT: &str = r#"{"tool":"hotel.book_hotel","times":3,"currency":"HKD","each":"3000.00","total":"8200.00","to":["Ada"]}"#;
    let with = |grants: &str| {
        let draft = read(&GOOD.replacen('{', &format!(r#"{{"grants":[{grants}],"#), 1))?;
        let bytes = serde_json::to_string(&draft).unwrap();
        assert_eq!(serde_json::from_str::<Draft>(&bytes).unwrap(), draft);
        let after = bytes.split_once(r#""grants":["#).map(|(_, after)| after.to_owned());
        Ok::<_, String>(after)
    };
    let frozen =
        |grants: &str| with(grants).map(|after| after.map(|after| after.starts_with(grants)));
    let bare = r#"{"tool":"calendar.move","times":1}"#;
    assert_eq!(frozen(GRANT), Ok(Some(true)));
    assert_eq!(frozen(&[GRANT, bare].join(",")), Ok(Some(true)));
    assert_eq!(frozen(&[bare; 12].join(",")), Ok(Some(true)));
    assert_eq!(frozen(&[bare; 13].join(",")), Err("a duty has at most 12 grants".into()));
    // Drafts that were frozen before there were grants read as drafts without.
    assert_eq!(read(GOOD).unwrap().grants, vec![]);

    let says = |from: &str, to: &str| with(&GRANT.replace(from, to)).unwrap_err();
    assert_eq!(says(":3,", ":0,"), "a grant is for between 1 and 1000 times");
    assert_eq!(
        says("hotel.book_hotel", " "),
        "a grant's tool must have between 1 and 80 characters"
    );
    assert_eq!(says("8200.00", "2999.99"), GrantError::Money.to_string());
    assert_eq!(says(r#""currency":"HKD","#, ""), GrantError::Money.to_string());
    assert_eq!(says("8200.00", "8,200"), "\"8,200\" is no amount of HKD; write it as 2600.00");
    assert_eq!(says("Ada", "A\\u202eda"), GrantError::People.to_string());
    assert!(says("HKD", "hkd").contains("three capital letters"));
    assert!(says(r#""times":3"#, r#""times":-1"#).contains("-1"));
    assert!(says(r#""times""#, r#""forever":true,"times""#).contains("`forever`"));
}
