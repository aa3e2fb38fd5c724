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

/// Harmless words that only overlap with a stop ("停电邮推送" is no power cut, "stop sign-up mails" no road sign),
/// and the other way round.
const OVERLAPS: &str = include_str!("stop/overlaps.txt");

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

#[test]
fn a_harmless_word_that_only_overlaps_hides_no_stop() {
    check("overlaps", OVERLAPS, 3);
}

/// Letters that only look like the ones of a stop.
#[test]
fn look_alikes_are_read_as_what_they_look_like() {
    let shifted = |text: &str, upper: u32, lower: u32| -> String {
        let shift = |c: char| match c {
            'a'..='z' => char::from_u32(u32::from(c) - u32::from('a') + lower).unwrap(),
            'A'..='Z' => char::from_u32(u32::from(c) - u32::from('A') + upper).unwrap(),
            c => c,
        };
        text.chars().map(shift).collect()
    };
    let mut worn = Vec::new();
    for text in ["stop", "STOP", "wait", "Pause", "cancel", "abort", "freeze", "halt now"] {
        // Mathematical bold, script bold, fraktur bold, double-struck, sans-serif, monospace; circled.
        for (upper, lower) in [
            (0x1D400, 0x1D41A),
            (0x1D4D0, 0x1D4EA),
            (0x1D56C, 0x1D586),
            (0x1D5A0, 0x1D5BA),
            (0x1D670, 0x1D68A),
            (0x24B6, 0x24D0),
            (0xFF21, 0xFF41),
        ] {
            worn.push(shifted(text, upper, lower));
        }
        let upper = text.to_uppercase();
        // In circles and squares, black on white and white on black, and as a flag's letters.
        for first in [0x1F110, 0x1F130, 0x1F150, 0x1F170, 0x1F1E6] {
            worn.push(shifted(&upper, first, first));
        }
    }
    worn.extend(
        [
            "ѕtор",
            "ѕтор",
            "ЅТОР",
            "stοp",
            "ѕtοр",
            "ΡAUSE",
            "РАUSЕ",
            "саnсеl",
            "ѡаіt",
            "һаӏt",
            "ᴡᴀɪᴛ",
        ]
        .map(str::to_owned),
    );
    worn.extend(
        ["ꜱᴛᴏᴘ", "ˢᵗᵒᵖ", "⒮⒯⒪⒫", "ℎ𝑎𝑙𝑡", "ℋ𝒶ℓ𝓉", "ẁàìť", "ŝṱôṕ", "⽌", "\u{F967}"]
            .map(str::to_owned),
    );
    let missed: Vec<&String> =
        worn.iter().filter(|text| stop_check(text) == StopCheck::Clear).collect();
    assert_eq!(missed, Vec::<&String>::new());
    for harmless in ["Москва", "спасибо", "Αθήνα", "𝐡𝐞𝐥𝐥𝐨", "café", "ⓗⓘ"]
    {
        assert_eq!(stop_check(harmless), StopCheck::Clear, "{harmless}");
    }
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
    for set in [LABELLED, HELD_OUT, EVERYDAY, PUT_OFF, OVERLAPS] {
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
    for set in [LABELLED, HELD_OUT, EVERYDAY, OVERLAPS] {
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
