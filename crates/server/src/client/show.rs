//! How answers look on a terminal. State words are the server's; here is only layout (USR-07).

use std::fmt::Write as _;
use std::io::{BufRead, Write};

use base::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use super::error::ClientError;
use super::wire::{Condition, Device, Duty, Entry, GrantUse, Me, Proposal, Speaker};

/// Where a command writes, and whether a person is there to answer.
pub struct Screen<'a> {
    /// Results.
    pub out: &'a mut dyn Write,
    /// Everything else: notes, questions, errors.
    pub err: &'a mut dyn Write,
    /// The person's keyboard; `None` if this is no terminal.
    pub keyboard: Option<&'a mut dyn BufRead>,
    /// Results as JSON.
    pub json: bool,
}

impl Screen<'_> {
    /// Writes a result: the JSON that came, or `text` (which ends its own lines).
    pub fn result(&mut self, value: &Value, text: &str) -> Result<(), ClientError> {
        if self.json {
            writeln!(self.out, "{value}")?
        } else {
            write!(self.out, "{text}")?
        }
        Ok(self.out.flush()?)
    }

    /// Writes a note for the person, on standard error.
    pub fn note(&mut self, text: &str) -> Result<(), ClientError> {
        writeln!(self.err, "{text}")?;
        Ok(self.err.flush()?)
    }
}

/// Times in the owner's zone; UTC if the zone is not known here.
#[derive(Debug, Clone)]
pub struct Times(TimeZone);

impl Times {
    /// For an IANA name as the server gives it.
    pub fn new(zone: &str) -> Times {
        Times(TimeZone::get(zone).unwrap_or(TimeZone::UTC))
    }

    /// Such as `Mon 30 Nov 08:00`.
    pub fn show(&self, at: Timestamp) -> String {
        match jiff::Timestamp::from_microsecond(at.micros()) {
            Ok(time) => {
                time.to_zoned_datetime(self.0.clone()).strftime("%a %d %b %H:%M").to_string()
            }
            Err(_) => at.to_string(),
        }
    }

    /// The same, or a dash.
    pub fn or_dash(&self, at: Option<Timestamp>) -> String {
        at.map_or_else(|| "-".to_string(), |at| self.show(at))
    }
}

/// Text from outside without the characters that command a terminal or turn the reading direction.
pub fn plain(text: &str) -> String {
    let harmful = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if harmful(c) { '\u{fffd}' } else { c }).collect()
}

/// One line of the conversation with its state word, or only the new state of one shown before.
/// `way`: the command by which the card that it carries is decided, if it still can be.
pub fn entry(entry: &Entry, times: &Times, shown_before: bool, way: Option<&str>) -> String {
    let who = match entry.kind {
        Speaker::User => "you",
        Speaker::Agent => "adjutant",
        Speaker::Notice => "notice",
        Speaker::Other => "other",
    };
    let at = times.show(entry.at);
    let state = plain(&entry.state);
    if shown_before {
        let end = entry.id.len().saturating_sub(8);
        let short = entry.id.get(end..).unwrap_or(&entry.id);
        return format!("{at}  {who} …{short}: now {state}\n");
    }
    let late = if entry.late { ", late" } else { "" };
    let text = plain(&entry.text).replace('\n', "\n    ");
    let mut line = format!("{at}  {who} [{state}{late}]  {text}\n");
    if let Some(way) = way {
        let _ = writeln!(line, "    {way}");
    }
    line
}

/// One duty a line: what it is about last, since its width is not known.
pub fn duties(duties: &[Duty], times: &Times) -> String {
    if duties.is_empty() {
        return "No duties yet. Give one with: adjutant send \"Watch … and tell me when …\"\n"
            .into();
    }
    let mut text = format!("{:36}  {:14}  {:16}  {:>8}  TITLE\n", "ID", "STATE", "NEXT", "SPENT");
    for duty in duties {
        let _ = writeln!(
            text,
            "{:36}  {:14}  {:16}  {:>8}  {}",
            plain(&duty.id),
            plain(&duty.state),
            times.or_dash(duty.next_wake),
            duty.spent_micro_usd.to_string(),
            plain(&duty.title).replace('\n', " "),
        );
        if !duty.state_line.is_empty() {
            let _ = writeln!(text, "    {}", plain(&duty.state_line));
        }
    }
    text
}

/// Everything about one duty.
pub fn duty(duty: &Duty, times: &Times) -> String {
    let mut text = format!(
        "{}\n{}\n\nId       {}\nState    {} (version {}, since {})\n\
         Next     {}\nSpent    {}\nGoal     {}\n",
        plain(&duty.title),
        plain(&duty.state_line),
        plain(&duty.id),
        plain(&duty.state),
        duty.version,
        times.show(duty.created_at),
        times.or_dash(duty.next_wake),
        duty.spent_micro_usd,
        plain(&duty.goal),
    );
    conditions(&mut text, &duty.conditions);
    let _ = writeln!(text, "Ends     {}", ends(duty.ends_at, times));
    if !duty.schedules.is_empty() {
        text.push_str("Wakes\n");
    }
    for schedule in &duty.schedules {
        let late = if schedule.late_last { ", the last one late" } else { "" };
        let (words, state) = (plain(&schedule.words), plain(&schedule.state));
        let next = times.or_dash(schedule.next_slot);
        let _ = writeln!(text, "  - {words} [{state}{late}], next {next}");
        prompt(&mut text, "    ", &schedule.prompt);
        if let Some(check) = &schedule.check {
            let failed = match check.failed {
                0 => String::new(),
                count => format!(", could not read {count}"),
            };
            let last = times.or_dash(check.last);
            let (looked, woke) = (check.looked, check.woke);
            let _ = writeln!(
                text,
                "    Check: looked {looked} times, woke {woke}{failed}, last {last}"
            );
        }
    }
    heard(&mut text, duty, times);
    if !duty.waits.is_empty() {
        text.push_str("Waits for\n");
    }
    for wait in &duty.waits {
        let key = plain(wait.key.as_deref().unwrap_or(""));
        let (kind, state) = (plain(&wait.kind), plain(&wait.state));
        let due = times.or_dash(wait.due_at);
        let _ = writeln!(text, "  - {kind} {key} [{state}], until {due}");
    }
    if !duty.runs.is_empty() {
        text.push_str("Runs, newest first\n");
    }
    for run in &duty.runs {
        let _ = writeln!(
            text,
            "  - {} [{}] {} steps, {} tokens in, {} out, {}",
            times.show(run.started_at),
            plain(&run.state),
            run.steps,
            run.input_tokens,
            run.output_tokens,
            run.micro_usd,
        );
    }
    text
}

/// What a duty hears, and where its matters stand.
fn heard(text: &mut String, duty: &Duty, times: &Times) {
    if let Some(pause) = &duty.pause {
        let (what, lift) = match pause.everything {
            true => ("with everything", "adjutant lift".to_owned()),
            false => ("by itself", format!("adjutant lift {}", plain(&duty.id))),
        };
        let _ = writeln!(text, "Paused   {what}; go on: {lift}");
    }
    if !duty.subscriptions.is_empty() {
        text.push_str("Hears\n");
    }
    for one in &duty.subscriptions {
        let topic = one.topic.as_deref().map_or_else(|| "everything".into(), plain);
        let along = if one.mode == "background" { ", read along" } else { "" };
        let (name, state) = (plain(&one.name), plain(&one.state));
        let _ = writeln!(text, "  - {name}: {topic} [{state}{along}]");
        prompt(text, "    ", &one.prompt);
    }
    granted(text, duty);
    if !duty.situations.is_empty() {
        text.push_str("Stands, newest first\n");
    }
    for one in &duty.situations {
        let matter = plain(&one.matter).replace('\n', " ");
        let (words, due) = (plain(&one.words), times.show(one.due_at));
        let _ = writeln!(text, "  - {matter}: {words}; looked at again {due}");
    }
}

/// What a duty may do without asking again, and what is left of it.
fn granted(text: &mut String, duty: &Duty) {
    if !duty.grants.is_empty() {
        text.push_str("May do without asking again\n");
    }
    for grant in &duty.grants {
        let part = |part: &GrantUse| match &part.amount {
            Some(amount) => format!("{} × ({})", part.count, plain(&amount.text)),
            None => format!("{} ×", part.count),
        };
        let (words, state) = (plain(&grant.words).replace('\n', " "), plain(&grant.state));
        let _ = writeln!(
            text,
            "  - {words} [{state}]\n    Done {}, under way {}, left {}",
            part(&grant.spent),
            part(&grant.reserved),
            part(&grant.left)
        );
    }
}

/// A card in the order of UX rule 3: what will happen, its fields, and what if nobody answers.
pub fn card(card: &Proposal, times: &Times) -> String {
    let what = match card.kind.as_str() {
        "new_duty" => "Take on a duty",
        "change_duty" => "Change a duty",
        "close_duty" => "Close a duty",
        other => other,
    };
    // Further lines of a text are set in, so that none looks like a line of the card's own.
    let (what, title) = (plain(what), plain(&card.title).replace('\n', " "));
    let goal = plain(&card.goal).replace('\n', "\n         ");
    // For a closing the server gives the reason here, which is what is confirmed.
    let label = if card.kind == "close_duty" { "Because " } else { "Goal    " };
    let mut text = format!("{what}: {title}\n{label} {goal}\n");
    for line in &card.changes {
        let _ = writeln!(text, "Changes  {}", plain(line).replace('\n', " "));
    }
    conditions(&mut text, &card.conditions);
    for schedule in &card.schedules {
        let first = times.or_dash(schedule.first);
        let words = plain(&schedule.words).replace('\n', " ");
        let _ = writeln!(text, "Wakes    {words}, first {first}");
        if schedule.run_missed == "skip" {
            text.push_str("         A time that is missed is left out\n");
        }
        if let Some(check) = &schedule.check {
            let line = |text: &str| plain(text).replace('\n', " ");
            let (tool, arguments) = (line(&check.tool), line(&check.arguments));
            let _ = writeln!(text, "         Calls: {tool} with {arguments}");
            let _ = writeln!(text, "         Only if: {}", line(&check.words));
        }
        prompt(&mut text, "         ", &schedule.prompt);
    }
    for one in &card.subscriptions {
        let _ = writeln!(text, "Hears    {}", plain(&one.words).replace('\n', " "));
        prompt(&mut text, "         ", &one.prompt);
    }
    for grant in &card.grants {
        let _ = writeln!(text, "May do   {}", plain(grant).replace('\n', " "));
    }
    if let Some(reach) = &card.reach {
        let _ = writeln!(text, "Reach    {}", plain(reach).replace('\n', " "));
    }
    if card.kind != "close_duty" {
        let _ = writeln!(text, "Ends     {}", ends(card.ends_at, times));
    }
    if !card.why.is_empty() {
        let _ = writeln!(text, "Asked    {}", plain(&card.why));
    }
    let _ = writeln!(text, "Deadline {}", times.or_dash(card.until));
    let _ = writeln!(text, "If you do nothing: {}", plain(&card.if_nothing));
    if !card.afterwards.is_empty() {
        let _ = writeln!(text, "Afterwards: {}", plain(&card.afterwards));
    }
    let _ = writeln!(text, "Card     {} [{}]", plain(&card.id), plain(&card.state));
    let _ = writeln!(text, "Digest   {}", plain(&card.digest));
    text
}

/// What the agent is told at a wake-up, under its line.
fn prompt(text: &mut String, indent: &str, prompt: &str) {
    if !prompt.is_empty() {
        let prompt = plain(prompt).replace('\n', &format!("\n{indent}      "));
        let _ = writeln!(text, "{indent}Task: {prompt}");
    }
}

fn ends(at: Option<Timestamp>, times: &Times) -> String {
    at.map_or_else(|| "when you confirm that it is done, or stop it".into(), |at| times.show(at))
}

/// One device a line, its name last, since its width is not known.
pub fn devices(devices: &[Device], times: &Times) -> String {
    let mut text = format!("{:36}  {:16}  {:24}  NAME\n", "ID", "PAIRED", "STATE");
    for device in devices {
        let state = match (device.revoked_at, device.this) {
            (Some(at), _) => format!("revoked {}", times.show(at)),
            (None, true) => "this device".into(),
            (None, false) if device.of == "supervisor" => "the supervisor's".into(),
            (None, false) => "paired".into(),
        };
        let _ = writeln!(
            text,
            "{:36}  {:16}  {state:24}  {}",
            plain(&device.id),
            times.show(device.created_at),
            plain(&device.name).replace('\n', " "),
        );
    }
    text
}

/// What the person set for themselves.
pub fn settings(me: &Me) -> String {
    let cap = me.month.cap_micro_usd.map_or_else(|| "no cap".into(), |cap| format!("of {cap}"));
    let (name, zone, spent) = (plain(&me.name), plain(&me.zone), me.month.micro_usd);
    let dial = match me.dial.as_str() {
        "" => String::new(),
        dial => format!("Dial   {}\n", plain(dial)),
    };
    let language = match me.language.as_str() {
        "" => String::new(),
        language => format!("Speaks {}\n", plain(language)),
    };
    format!("Name   {name}\nZone   {zone}\nMonth  {spent} {cap}\n{dial}{language}")
}

fn conditions(text: &mut String, conditions: &[Condition]) {
    if !conditions.is_empty() {
        text.push_str("Done when\n");
    }
    for condition in conditions {
        let _ = write!(text, "  - {}", plain(&condition.text));
        if let Some(evidence) = &condition.evidence {
            let _ = write!(text, "; evidence: {}", plain(evidence));
        }
        if let Some(authority) = &condition.authority {
            let _ = write!(text, "; authority: {}", plain(authority));
        }
        text.push('\n');
    }
}
