//! Rules in plain words, English and Chinese, and back.

use jiff::civil::{Time, Weekday};

use super::pattern::Pattern;
use super::{
    Cron, DAYS, Rule, ScheduleError, hours_minutes, month_day, time, weekday, weekday_word,
};
use crate::words::{self, Language};

/// Longer texts are refused unread, in bytes.
const TEXT_MAX: usize = 220;

impl Rule {
    /// Reads plain words, such as `weekdays 8:00`, `every friday at 9:00`, `每月1日 9:00` or `every 30
    /// minutes`, or five cron fields. What [`Rule::words`] writes is read as a rule with the same
    /// slots. Errors say what may be written.
    pub fn from_words(text: &str) -> Result<Rule, ScheduleError> {
        let unknown = || ScheduleError::Words(text.chars().take(60).collect());
        if text.len() > TEXT_MAX {
            return Err(unknown());
        }
        let lower = text.trim().to_lowercase().replace('：', ":");
        if let Some(cron) = cron_text(&lower) {
            return Cron::read(cron).map(Rule::Cron);
        }
        if let Some(repeat) = repeat(&lower) {
            return repeat;
        }
        let of_time = |c: char| c.is_ascii_digit() || c == ':';
        let days = lower.trim_end_matches(of_time);
        let clock = &lower[days.len()..];
        let days = days.trim().trim_end_matches(" at").trim();
        if days.is_empty() || !clock.contains(':') {
            return Err(unknown());
        }
        let at = time(clock)?;
        on_days(days, at)?.ok_or_else(unknown)
    }

    /// The rule in plain words, for cards and lists.
    pub fn words(&self, language: Language) -> String {
        match (self, language) {
            (Rule::Daily { at }, Language::En) => format!("every day at {}", hours_minutes(*at)),
            (Rule::Daily { at }, Language::Zh) => format!("每天 {}", hours_minutes(*at)),
            (Rule::Weekdays { at }, Language::En) => format!("weekdays at {}", hours_minutes(*at)),
            (Rule::Weekdays { at }, Language::Zh) => format!("工作日 {}", hours_minutes(*at)),
            (Rule::Weekly { at, weekday }, Language::En) => {
                format!("every {} at {}", capital(weekday_word(*weekday)), hours_minutes(*at))
            }
            (Rule::Weekly { at, weekday }, Language::Zh) => {
                format!("每周{} {}", words::weekday(*weekday), hours_minutes(*at))
            }
            (Rule::Monthly { at, day }, Language::En) => {
                let or_last = if *day > 28 { " (or the last day)" } else { "" };
                format!("every month on day {day}{or_last} at {}", hours_minutes(*at))
            }
            (Rule::Monthly { at, day }, Language::Zh) => {
                let or_last = if *day > 28 { "（或最后一天）" } else { "" };
                format!("每月 {day} 日{or_last} {}", hours_minutes(*at))
            }
            (Rule::Cron(cron), _) => {
                let pattern = cron.pattern();
                let simple = once_a_day(&pattern).map(|rule| rule.words(language));
                simple
                    .or_else(|| evenly(&pattern, language))
                    .unwrap_or_else(|| format!("cron \"{}\"", cron.text()))
            }
        }
    }
}

fn cron_text(text: &str) -> Option<&str> {
    if let Some(quoted) = text.strip_prefix("cron") {
        return Some(quoted.trim().trim_matches('"'));
    }
    let starts = text.starts_with(|c: char| c.is_ascii_digit() || "*@".contains(c));
    (starts && !text.contains(':')).then_some(text)
}

fn on_days(days: &str, at: Time) -> Result<Option<Rule>, ScheduleError> {
    if let Some(day) = english_month_day(days).or_else(|| chinese_month_day(days)) {
        let Ok(day) = day.trim().parse() else { return Ok(None) };
        return Ok(Some(Rule::Monthly { at, day: month_day(day)? }));
    }
    Ok(match days {
        "daily" | "every day" | "每天" | "每日" | "天天" => Some(Rule::Daily { at }),
        "weekdays" | "weekday" | "every weekday" | "on weekdays" | "工作日" | "每个工作日"
        | "每個工作日" => Some(Rule::Weekdays { at }),
        _ => english_weekday(days)
            .or_else(|| chinese_weekday(days))
            .map(|weekday| Rule::Weekly { at, weekday }),
    })
}

fn english_month_day(days: &str) -> Option<&str> {
    let rest = days.strip_prefix("monthly").or_else(|| days.strip_prefix("every month"))?;
    let rest = rest.trim_start();
    let rest = rest.strip_prefix("on ").unwrap_or(rest);
    let rest = rest.strip_prefix("day ").or_else(|| rest.strip_prefix("the ")).unwrap_or(rest);
    let rest = rest.strip_suffix("(or the last day)").unwrap_or(rest).trim_end();
    let ordinal = ["st", "nd", "rd", "th"].iter().find_map(|ending| rest.strip_suffix(ending));
    Some(ordinal.unwrap_or(rest))
}

fn chinese_month_day(days: &str) -> Option<&str> {
    let rest = days.strip_prefix("每月").or_else(|| days.strip_prefix("每个月"))?;
    let rest = rest.strip_suffix("（或最后一天）").unwrap_or(rest);
    ["日", "号", "號"].iter().find_map(|ending| rest.strip_suffix(ending))
}

fn english_weekday(days: &str) -> Option<Weekday> {
    let word = ["every ", "weekly on ", "weekly ", "on "]
        .iter()
        .find_map(|start| days.strip_prefix(start))
        .unwrap_or(days)
        .trim_start();
    let whole = weekday(word).or_else(|| weekday(word.strip_suffix('s')?));
    let short = || DAYS.iter().find(|(name, _)| &name[..3] == word).map(|(_, day)| *day);
    whole.or_else(short)
}

fn chinese_weekday(days: &str) -> Option<Weekday> {
    let days = days.strip_prefix('每').unwrap_or(days);
    let names = ["星期", "礼拜", "禮拜", "周", "週"];
    let day = names.iter().find_map(|name| days.strip_prefix(name))?;
    match day {
        "一" => Some(Weekday::Monday),
        "二" => Some(Weekday::Tuesday),
        "三" => Some(Weekday::Wednesday),
        "四" => Some(Weekday::Thursday),
        "五" => Some(Weekday::Friday),
        "六" => Some(Weekday::Saturday),
        "日" | "天" => Some(Weekday::Sunday),
        _ => None,
    }
}

/// `every 30 minutes`, `每2小时` and the like; `None` if the words say nothing of the sort.
fn repeat(text: &str) -> Option<Result<Rule, ScheduleError>> {
    let rest = text.strip_prefix("every").or_else(|| text.strip_prefix('每'))?.trim_start();
    let unit = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let count = &rest[..rest.len() - unit.len()];
    let n = if count.is_empty() { Some(1) } else { count.parse::<u32>().ok() };
    let divides = |whole: u32| n.is_some_and(|n| n > 0 && whole.is_multiple_of(n));
    let n = n.unwrap_or(0);
    let (even, text, whole) = match unit.trim_start() {
        "minute" | "minutes" | "分钟" | "分鐘" => {
            (divides(60), format!("*/{n} * * * *"), "60 minutes")
        }
        "hour" | "hours" | "小时" | "小時" | "个小时" | "個小時" => {
            (divides(24), format!("0 */{n} * * *"), "24 hours")
        }
        _ => return None,
    };
    // A step may not be as large as its field: once an hour and once a day have their own form.
    let text = match text.as_str() {
        "*/60 * * * *" => "0 * * * *",
        "0 */24 * * *" => "0 0 * * *",
        text => text,
    };
    match even {
        true => Some(Cron::read(text).map(Rule::Cron)),
        false => Some(Err(ScheduleError::Uneven(rest.chars().take(20).collect(), whole))),
    }
}

/// The rule with the same slots, of a pattern that fires once on each of its days.
fn once_a_day(pattern: &Pattern) -> Option<Rule> {
    // Whatever it names besides its first time and day shows when the two are compared.
    let first = |bits: u64| i8::try_from(bits.trailing_zeros()).ok();
    let at = Time::new(first(pattern.hours)?, first(pattern.minutes)?, 0, 0).ok()?;
    let mut rules = vec![Rule::Daily { at }, Rule::Weekdays { at }];
    rules.extend(DAYS.iter().map(|(_, weekday)| Rule::Weekly { at, weekday: *weekday }));
    rules.extend(first(pattern.month_days).map(|day| Rule::Monthly { at, day }));
    rules.into_iter().find(|rule| rule.pattern() == *pattern)
}

/// `every 30 minutes` for a pattern that fires so around the clock.
fn evenly(pattern: &Pattern, language: Language) -> Option<String> {
    let divisors = |whole: u32| (1..whole).filter(move |n| whole.is_multiple_of(*n));
    let multiples = |n: u32, whole: u32| (0..whole).filter(move |i| i.is_multiple_of(n));
    let bits = |n, whole| multiples(n, whole).fold(0, |bits, i| bits | 1 << i);
    let every = |n: u32, unit: &str, chinese: &str| match (n, language) {
        (1, Language::En) => format!("every {unit}"),
        (n, Language::En) => format!("every {n} {unit}s"),
        (n, Language::Zh) => format!("每 {n} {chinese}"),
    };
    let by_minutes = divisors(60)
        .find(|n| Pattern { minutes: bits(*n, 60), ..Pattern::ALL } == *pattern)
        .map(|n| every(n, "minute", "分钟"));
    let by_hours = || divisors(24).find(|n| hourly(bits(*n, 24)) == *pattern);
    by_minutes.or_else(|| by_hours().map(|n| every(n, "hour", "小时")))
}

fn hourly(hours: u64) -> Pattern {
    Pattern { minutes: 1, hours, ..Pattern::ALL }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
