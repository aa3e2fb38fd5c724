//! The stop check against three labelled sets (QUE-10). A missed stop fails; false alarms are
//! counted.
//!
//! `labelled.txt` was written before the lexicon; one of its lines, which moves a call to another week,
//! was relabelled a stop when those who put off began to count. `held_out.txt` (hard, roundabout) and
//! `everyday.txt` were written after it and measured before it learned from them: 36 of 134 and 3
//! of 90 stops were missed then, 2 of 128 and 1 of 92 clear messages were held. What is new to the
//! lexicon is therefore still missed at such rates; that is why a model has to agree before
//! anything is released.

use domain::stop::{StopCheck, stop_check};

const LABELLED: &str = include_str!("stop/labelled.txt");
const HELD_OUT: &str = include_str!("stop/held_out.txt");
const EVERYDAY: &str = include_str!("stop/everyday.txt");
/// What someone says who wants it another day, and the shortest ways to say no.
const PUT_OFF: &str = include_str!("stop/put_off.txt");

/// What a set came to: stops caught and missed, clear messages let through and held.
#[derive(Debug, Default)]
struct Score {
    caught: usize,
    missed: Vec<&'static str>,
    clear: usize,
    alarms: Vec<(&'static str, &'static str)>,
    chinese: usize,
}

fn sentences(set: &'static str) -> impl Iterator<Item = (bool, &'static str)> {
    set.lines().map(|line| match line.split_once('\t') {
        Some(("stop", text)) => (true, text),
        Some(("clear", text)) => (false, text),
        _ => panic!("no label: {line}"),
    })
}

fn score(set: &'static str) -> Score {
    let mut score = Score::default();
    for (is_stop, text) in sentences(set) {
        score.chinese += usize::from(text.chars().any(|c| ('\u{4E00}'..='\u{9FFF}').contains(&c)));
        match (is_stop, stop_check(text)) {
            (true, StopCheck::Stop { .. }) => score.caught += 1,
            (true, StopCheck::Clear) => score.missed.push(text),
            (false, StopCheck::Clear) => score.clear += 1,
            (false, StopCheck::Stop { found }) => score.alarms.push((text, found)),
        }
    }
    score
}

/// Prints the counts; fails at one miss, or at more false alarms than `alarms_max`.
#[expect(clippy::print_stdout, reason = "the counts are what the reader of a test run is after")]
fn check(name: &str, set: &'static str, alarms_max: usize) -> Score {
    let score = score(set);
    let Score { caught, missed, clear, alarms, chinese } = &score;
    println!(
        "{name}: {caught} stops caught, {} missed; {clear} clear let through, {} false alarms, \
         {alarms_max} allowed; {chinese} with Chinese",
        missed.len(),
        alarms.len(),
    );
    for (text, found) in alarms {
        println!("  false alarm: {text}   [{found}]");
    }
    for text in missed {
        println!("  MISSED: {text}");
    }
    assert!(missed.is_empty(), "missed: {missed:?}");
    assert!(alarms.len() <= alarms_max, "false alarms: {alarms:?}");
    score
}

#[test]
fn no_stop_of_the_labelled_set_is_missed() {
    let score = check("labelled", LABELLED, 16);
    let (stops, all) = (score.caught, score.caught + score.clear + score.alarms.len());
    assert!(all >= 320 && stops * 10 >= all * 4 && score.chinese * 2 >= all, "{stops} of {all}");
}

#[test]
fn no_stop_of_the_held_out_set_is_missed() {
    check("held out", HELD_OUT, 0);
}

#[test]
fn no_stop_of_the_everyday_set_is_missed() {
    check("everyday", EVERYDAY, 0);
}

#[test]
fn whoever_puts_it_off_or_says_a_bare_no_is_heard() {
    check("put off", PUT_OFF, 0);
}

/// A way to write the same message.
type Dress = dyn Fn(&str) -> String;

/// However a stop is dressed up, it stays one.
#[test]
fn a_stop_stays_one_in_capitals_full_width_quotes_and_with_blanks() {
    let full_width = |text: &str| -> String {
        let wide = |c: char| char::from_u32(u32::from(c) + 0xFEE0).unwrap();
        text.chars().map(|c| if c.is_ascii_graphic() { wide(c) } else { c }).collect()
    };
    let dressed: [(&str, &Dress); 10] = [
        ("capitals", &|text| text.to_uppercase()),
        ("full width", &full_width),
        ("quoted", &|text| format!("“{text}”")),
        ("curly apostrophe", &|text| text.replace('\'', "’")),
        ("no apostrophe", &|text| text.replace('\'', "")),
        ("wide blanks", &|text| format!("\u{3000}{}\n", text.replace(' ', " \u{A0} "))),
        ("zero width", &|text| text.chars().flat_map(|c| [c, '\u{200B}']).collect()),
        ("turned", &|text| text.chars().flat_map(|c| ['\u{2066}', c, '\u{202E}']).collect()),
        ("bold", &|text| format!("**{text}**!!!")),
        ("with a face", &|text| format!("🙏 {text} 🙏")),
    ];
    for set in [LABELLED, HELD_OUT, EVERYDAY, PUT_OFF] {
        for (_, text) in sentences(set).filter(|(is_stop, _)| *is_stop) {
            for (name, dress) in &dressed {
                let worn = dress(text);
                assert_ne!(stop_check(&worn), StopCheck::Clear, "{name}: {worn}");
            }
        }
    }
}

/// Nothing harmless said before or after a stop hides it.
#[test]
fn a_stop_is_heard_beside_every_harmless_sentence() {
    let stops = ["stop", "Wait!", "don't", "停", "先别订", "取消吧"];
    let mut hidden = Vec::new();
    for set in [LABELLED, HELD_OUT, EVERYDAY] {
        for (_, text) in sentences(set).filter(|(is_stop, _)| !*is_stop) {
            for stop in stops {
                for both in
                    [format!("{text}. {stop}"), format!("{stop}，{text}"), format!("{text} {stop}")]
                {
                    if stop_check(&both) == StopCheck::Clear {
                        hidden.push(both);
                    }
                }
            }
        }
    }
    assert_eq!(hidden, [""; 0]);
}

#[test]
fn what_was_found_is_named_and_nothing_is_clear() {
    let found = |text| match stop_check(text) {
        StopCheck::Stop { found } => found,
        StopCheck::Clear => "",
    };
    let cases = [
        ("", ""),
        (" \n…！", ""),
        ("tickets booked?", ""),
        ("先别订", "别"),
        ("please hang on a bit", "hang on"),
        ("stpo", "stop"),
        ("s t o p", "stop"),
        ("Turn the heating off", "turn * off"),
        ("这部分别发", "别"),
        ("分别发给三个人", ""),
        ("🛑", "🛑"),
    ];
    assert_eq!(cases.map(|(text, _)| (text, found(text))), cases);
}
