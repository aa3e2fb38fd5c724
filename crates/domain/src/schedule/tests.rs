use super::*;

fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}
fn rule(json: &str) -> Rule {
    serde_json::from_str(json).unwrap()
}
fn words(text: &str) -> Rule {
    Rule::from_words(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn slots_follow_the_owners_wall_clock() {
    let hong_kong = zone("Asia/Hong_Kong").unwrap();
    let next = |r: &Rule, t| r.next_after(&hong_kong, at(t)).unwrap().to_string();
    let daily = words("daily 08:00");
    assert_eq!(next(&daily, "2027-02-28T23:59:59Z"), "2027-03-01T00:00:00.000000Z");
    assert_eq!(next(&daily, "2027-03-01T00:00:00Z"), "2027-03-02T00:00:00.000000Z");
    let weekdays = words("weekdays 08:00");
    assert_eq!(next(&weekdays, "2027-03-05T00:00:00Z"), "2027-03-08T00:00:00.000000Z");
    let friday = words("every friday 17:30");
    assert_eq!(next(&friday, "2027-03-05T09:30:00Z"), "2027-03-12T09:30:00.000000Z");
    assert_eq!(friday.words(crate::words::Language::En), "every Friday at 17:30");
}

#[test]
fn a_skipped_time_fires_later_and_a_repeated_one_once() {
    let berlin = zone("Europe/Berlin").unwrap();
    let daily = words("daily 02:30");
    let next = |t| daily.next_after(&berlin, at(t)).unwrap().to_string();
    // 28 March 2027: 02:00 jumps to 03:00, so 02:30 is 03:30 summer time.
    assert_eq!(next("2027-03-27T12:00:00Z"), "2027-03-28T01:30:00.000000Z");
    // 31 October 2027: 02:30 happens at 00:30 and 01:30 UTC; the first counts, the second does not.
    assert_eq!(next("2027-10-30T12:00:00Z"), "2027-10-31T00:30:00.000000Z");
    assert_eq!(next("2027-10-31T00:30:00Z"), "2027-11-01T01:30:00.000000Z");
}

#[test]
fn an_outage_collapses_to_one_late_catch_up() {
    let utc = zone("UTC").unwrap();
    let daily = words("daily 08:00");
    let check = |now: &str| due(&daily, &utc, at("2027-03-01T08:00:00Z"), at(now)).unwrap();
    assert_eq!(check("2027-03-01T07:59:59Z"), None);
    let on_time = Due {
        slot: at("2027-03-01T08:00:00Z"),
        missed: 0,
        late: false,
        next: at("2027-03-02T08:00:00Z"),
    };
    assert_eq!(check("2027-03-01T08:00:01Z"), Some(on_time));
    let caught_up = Due {
        slot: at("2027-03-04T08:00:00Z"),
        missed: 3,
        late: true,
        next: at("2027-03-05T08:00:00Z"),
    };
    assert_eq!(check("2027-03-04T09:00:00Z"), Some(caught_up));
    // It stands for missed ones, so it is late even right at its own time.
    assert_eq!(check("2027-03-04T08:00:00Z"), Some(caught_up));
}

/// The slots after an instant, in the owner's wall clock.
fn slots(rule: &Rule, place: &str, after: &str, count: usize) -> Vec<String> {
    let zone = zone(place).unwrap();
    let mut after = at(after);
    let mut slots = Vec::new();
    for _ in 0..count {
        after = rule.next_after(&zone, after).unwrap();
        slots.push(local_words(&zone, after).split_once(' ').unwrap().1.to_owned());
    }
    slots
}

#[test]
fn a_rule_keeps_its_form_and_refuses_other_fields() {
    for json in [
        r#"{"kind":"daily","at":"08:00"}"#,
        r#"{"kind":"weekdays","at":"08:00"}"#,
        r#"{"kind":"weekly","at":"17:30","weekday":"friday"}"#,
        r#"{"kind":"monthly","at":"09:00","day":31}"#,
        r#"{"kind":"cron","cron":"0 8 * * 1-5"}"#,
    ] {
        assert_eq!(serde_json::to_string(&rule(json)).unwrap(), json);
    }
    let says = |json: &str| {
        let error = serde_json::from_str::<Rule>(json).unwrap_err().to_string();
        error.split(" at line").next().unwrap().to_owned()
    };
    assert_eq!(
        says(r#"{"kind":"daily","at":"8am"}"#),
        "\"8am\" is no time of day; write it as 08:00"
    );
    assert_eq!(
        says(r#"{"kind":"weekly","at":"08:00"}"#),
        "a weekly schedule needs a weekday such as \"friday\""
    );
    assert_eq!(
        says(r#"{"kind":"weekly","at":"08:00","weekday":"freitag"}"#),
        "\"freitag\" is no day of the week; write it as friday"
    );
    assert_eq!(
        says(r#"{"kind":"daily","at":"08:00","weekday":"friday"}"#),
        "a daily schedule has no weekday; leave it out"
    );
    assert_eq!(
        says(r#"{"kind":"monthly","at":"08:00","day":32}"#),
        "32 is no day of a month; write 1 to 31"
    );
    assert_eq!(
        says(r#"{"kind":"cron","cron":"0 8 * * *","at":"08:00"}"#),
        "a cron schedule has no at; leave it out"
    );
    assert!(says(r#"{"kind":"daily","at":"08:00","zone":"UTC"}"#).contains("unknown field `zone`"));
    assert!(zone("Mars/Olympus").is_err());
}

#[test]
fn a_month_without_the_day_has_its_last_one() {
    let monthly = words("monthly 31 09:00");
    assert_eq!(
        slots(&monthly, "Asia/Hong_Kong", "2027-01-31T01:00:00Z", 3),
        ["2027-02-28 09:00", "2027-03-31 09:00", "2027-04-30 09:00"]
    );
    assert_eq!(
        slots(&words("monthly 30 09:00"), "UTC", "2028-01-31T00:00:00Z", 2),
        ["2028-02-29 09:00", "2028-03-30 09:00"]
    );
    // Cron is taken at its word.
    assert_eq!(
        slots(&words("0 9 31 * *"), "UTC", "2027-01-31T09:00:00Z", 2),
        ["2027-03-31 09:00", "2027-05-31 09:00"]
    );
}

#[test]
fn days_of_month_and_week_go_together_as_in_vixie_cron() {
    let check = |cron: &str, expected: [&str; 3]| {
        assert_eq!(slots(&words(cron), "UTC", "2027-03-01T00:00:00Z", 3), expected, "{cron}");
    };
    // Either, when both are named: Monday the 8th, and the 13th.
    check("0 0 13 * mon", ["2027-03-08 00:00", "2027-03-13 00:00", "2027-03-15 00:00"]);
    // Both, when one begins with a star: odd days that are Mondays.
    check("0 0 */2 * 1", ["2027-03-15 00:00", "2027-03-29 00:00", "2027-04-05 00:00"]);
    check("30 6 * feb-MAR sat,7", ["2027-03-06 06:30", "2027-03-07 06:30", "2027-03-13 06:30"]);
    check("5/25 22-23 * * *", ["2027-03-01 22:05", "2027-03-01 22:30", "2027-03-01 22:55"]);
    check("0 0 * * sat-sun", ["2027-03-06 00:00", "2027-03-07 00:00", "2027-03-13 00:00"]);
    check("@weekly", ["2027-03-07 00:00", "2027-03-14 00:00", "2027-03-21 00:00"]);
    check("0 12 29 2 *", ["2028-02-29 12:00", "2032-02-29 12:00", "2036-02-29 12:00"]);
    // The longest rest there is: no leap year in 2100, so 40 years from Monday to Monday.
    assert_eq!(
        slots(&words("0 0 29 2 */1"), "UTC", "2096-02-29T00:00:00Z", 1),
        ["2104-02-29 00:00"]
    );
    let mondays = words("0 0 */28 2 1");
    assert_eq!(
        slots(&mondays, "UTC", "2088-03-01T00:00:00Z", 3),
        ["2094-02-01 00:00", "2100-02-01 00:00", "2106-02-01 00:00"]
    );
}

#[test]
fn a_cron_that_cannot_be_meant_is_refused() {
    let says = |text: &str| Cron::read(text).map(|_| ()).map_err(|error| error.to_string());
    assert_eq!(
        says("0 0 30 2 *"),
        Err("this cron schedule never fires: no month that it names has such a day".into())
    );
    assert_eq!(
        says("0 0 8 * * *"),
        Err(
            "a cron schedule has five fields, minute hour day-of-month month day-of-week, and not \
             6; seconds and years have none"
                .into()
        )
    );
    assert_eq!(
        says("0 22-2 * * *"),
        Err("\"22-2\" runs backwards in the hour of a cron schedule; write it as two ranges, as \
             22-23,0-2"
            .into())
    );
    assert_eq!(
        says("*/90 * * * *"),
        Err("\"*/90\" is no minute of a cron schedule; write numbers from 0 to 59, ranges as 0-59, \
             steps up to 59 as */2, and commas between them"
            .into())
    );
    for wrong in [
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 0 *",
        "* * * 13 *",
        "* * * * 8",
        "*/0 * * * *",
        "1- * * * *",
        "-1 * * * *",
        "+1 * * * *",
        "1,,2 * * * *",
        "1/2/3 * * * *",
        "*-5 * * * *",
        "* * ? * *",
        "* * L * *",
        "* * 15W * *",
        "* * * * 1#2",
        "H * * * *",
        "* * * monday *",
        "@reboot",
        "",
        "0 0 31 4,6,9,11 *",
        "* * * * fri-mon",
        "1.5 * * * *",
        "٣ * * * *",
        "256 * * * *",
    ] {
        assert!(says(wrong).is_err(), "{wrong}");
    }
    assert!(says(&"1,".repeat(200)).is_err());
    // It fires on Mondays, though no April has a 31st.
    assert_eq!(says("0 0 31 4 1"), Ok(()));
}

#[test]
fn many_slots_a_day_are_kept_across_both_changes() {
    let half_hours = words("*/30 * * * *");
    // The skipped hour takes nothing away: 02:00 and 02:30 would fire at 03:00 and 03:30.
    assert_eq!(
        slots(&half_hours, "Europe/Berlin", "2027-03-28T00:15:00Z", 4),
        ["2027-03-28 01:30", "2027-03-28 03:00", "2027-03-28 03:30", "2027-03-28 04:00"]
    );
    // The repeated hour fires once, so there is an hour and a half between these two.
    let berlin = zone("Europe/Berlin").unwrap();
    let next = |after| half_hours.next_after(&berlin, at(after)).unwrap().to_string();
    assert_eq!(next("2027-10-31T00:15:00Z"), "2027-10-31T00:30:00.000000Z");
    assert_eq!(next("2027-10-31T00:30:00Z"), "2027-10-31T02:00:00.000000Z");
    assert_eq!(next("2027-10-31T01:10:00Z"), "2027-10-31T02:00:00.000000Z");
    // Half an hour on Lord Howe Island: 02:00 is 02:30, and each named minute fires.
    assert_eq!(
        slots(&words("*/20 * * * *"), "Australia/Lord_Howe", "2027-10-02T15:25:00Z", 5),
        [
            "2027-10-03 02:30",
            "2027-10-03 02:40",
            "2027-10-03 02:50",
            "2027-10-03 03:00",
            "2027-10-03 03:20"
        ]
    );
    let lord_howe = zone("Australia/Lord_Howe").unwrap();
    let next = |after| half_hours.next_after(&lord_howe, at(after)).unwrap().to_string();
    assert_eq!(next("2027-04-03T14:00:00Z"), "2027-04-03T14:30:00.000000Z");
    assert_eq!(next("2027-04-03T14:30:00Z"), "2027-04-03T15:30:00.000000Z");
    // Samoa skipped a whole day.
    assert_eq!(
        slots(&words("daily 08:00"), "Pacific/Apia", "2011-12-29T12:00:00Z", 3),
        ["2011-12-29 08:00", "2011-12-31 08:00", "2012-01-01 08:00"]
    );
    // Midnight itself was skipped in Sao Paulo.
    assert_eq!(
        slots(&words("daily 0:00"), "America/Sao_Paulo", "2018-11-03T12:00:00Z", 2),
        ["2018-11-04 01:00", "2018-11-05 00:00"]
    );
}

#[test]
fn a_years_outage_of_every_minute_costs_little() {
    let zone = zone("America/New_York").unwrap();
    let every_minute = words("* * * * *");
    let next_slot = at("2026-01-01T00:00:00Z");
    let due = due(&every_minute, &zone, next_slot, at("2027-01-01T00:00:30Z")).unwrap();
    let expected = Due {
        slot: at("2027-01-01T00:00:00Z"),
        missed: MISSED_MAX,
        late: true,
        next: at("2027-01-01T00:01:00Z"),
    };
    assert_eq!(due, Some(expected));
    assert_eq!(expected.missed_words(), "at least 1000");
    assert!(!expected.wakes(Missed::Skip, at("2027-01-01T00:01:01Z")));
    assert!(expected.wakes(Missed::Skip, at("2027-01-01T00:01:00Z")));
    assert!(expected.wakes(Missed::Once, at("2027-01-01T00:01:01Z")));
    assert_eq!(Due { missed: 3, ..expected }.missed_words(), "3");
    // All of January, then nothing until the next one: the newest lies far from now.
    let in_january = words("* * * 1 *");
    let due = super::due(&in_january, &zone, next_slot, at("2026-12-24T00:00:00Z")).unwrap();
    let slots = due.map(|due| (due.slot, due.next));
    assert_eq!(slots, Some((at("2026-02-01T04:59:00Z"), at("2027-01-01T05:00:00Z"))));
}

#[test]
fn plain_words_are_read_in_both_languages() {
    let check = |text: &str, expected: &str| {
        assert_eq!(words(text).words(crate::words::Language::En), expected, "{text}")
    };
    check("daily 07:30", "every day at 07:30");
    check("Every day at 7:30", "every day at 07:30");
    check("weekdays 8:00", "weekdays at 08:00");
    check("every friday 9:00", "every Friday at 09:00");
    check("Fridays at 9:00", "every Friday at 09:00");
    check("weekly sun 9:00", "every Sunday at 09:00");
    check("monthly 1 09:00", "every month on day 1 at 09:00");
    check("every month on the 31st at 9:00", "every month on day 31 (or the last day) at 09:00");
    check("工作日 8:00", "weekdays at 08:00");
    check("每天08：00", "every day at 08:00");
    check("每周五 9:00", "every Friday at 09:00");
    check("每星期天 9:00", "every Sunday at 09:00");
    check("週一 9:00", "every Monday at 09:00");
    check("每月1日 9:00", "every month on day 1 at 09:00");
    check("每月15号9:05", "every month on day 15 at 09:05");
    check("every 30 minutes", "every 30 minutes");
    check("每30分钟", "every 30 minutes");
    check("every hour", "every hour");
    check("每2小时", "every 2 hours");
    check("every 24 hours", "every day at 00:00");
    check("every 60 minutes", "every hour");
    check("0 8 * * 1-5", "weekdays at 08:00");
    check("0 8 1-31 * *", "every day at 08:00");
    check("0 8 1-31 * 5", "every day at 08:00");
    check("15 9 1 * *", "every month on day 1 at 09:15");
    check("* * * * *", "every minute");
    check("0  9 31 * *", "cron \"0 9 31 * *\"");
    check("cron \"*/7 9-17 * * MON\"", "cron \"*/7 9-17 * * mon\"");
    check("@yearly", "cron \"0 0 1 1 *\"");
}

#[test]
fn words_that_say_nothing_say_what_may_be_written() {
    let says = |text: &str| Rule::from_words(text).unwrap_err().to_string();
    let unknown = says("sometimes 8:00");
    assert_eq!(
        unknown,
        "\"sometimes 8:00\" is no schedule; write it as \"daily 07:30\", \"weekdays 8:00\", \
         \"every friday 9:00\", \"monthly 1 09:00\", \"every 30 minutes\", \"每天 08:00\", \
         \"工作日 8:00\", \"每周五 9:00\", \"每月1日 9:00\" or as five cron fields such as \"0 8 * * 1-5\""
    );
    // Each of the examples can be written.
    for example in unknown.split('"').skip(3).step_by(2) {
        words(example);
    }
    for text in ["", "8:00", "daily", "daily 8", "daily 8:00 pm", "at 8:00", "monthly 9:00"] {
        assert_eq!(Rule::from_words(text), Err(ScheduleError::Words(text.into())), "{text}");
    }
    assert_eq!(says("daily 24:00"), "\"24:00\" is no time of day; write it as 08:00");
    assert_eq!(says("daily 8:0"), "\"8:0\" is no time of day; write it as 08:00");
    assert_eq!(says("每月32日 9:00"), "32 is no day of a month; write 1 to 31");
    assert_eq!(
        says("every 7 minutes"),
        "every 7 minutes does not come out even; write a number that divides 60 minutes, or name \
         the times in cron"
    );
    assert!(says("every 0 minutes").contains("does not come out even"));
    assert!(says("0 25 * * *").starts_with("\"25\" is no hour of a cron schedule"));
    assert!(says(&"daily ".repeat(90)).contains("is no schedule"));
}
