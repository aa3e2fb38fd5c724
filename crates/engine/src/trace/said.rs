//! The chain of an event in words: one line for each thing that happened, in that order.

use base::Timestamp;
use domain::event::{Dial, How, Trust};
use domain::schedule::local_words;
use domain::state::{RunState, WorkItemState};
use jiff::tz::TimeZone;

use super::{Asked, Item, Matter, Trace, Wakeup};

/// The lines.
pub(super) fn words(trace: &Trace, zone: &TimeZone) -> Vec<String> {
    let at = |instant: Timestamp| local_words(zone, instant);
    let mut lines = vec![received(trace, &at)];
    if let Some(origin) = trace.origin {
        lines.push(format!("It says in this lane what event {origin} says."));
    }
    lines.extend(trace.attribution.as_ref().map(asked));
    lines.extend(trace.links.iter().map(matter));
    if trace.links.is_empty() && trace.attribution.is_none() && trace.work_item.is_some() {
        lines.extend(trace.proactive.as_ref().map(|_| "It belongs to no duty.".to_owned()));
    }
    lines.extend(trace.work_item.as_ref().map(|item| queued(item, &at)));
    for other in &trace.related {
        let what = other.disposition.as_deref().unwrap_or("not handled yet");
        lines.push(format!("Told to another lane as event {}: {what}.", other.event));
    }
    for run in &trace.runs {
        lines.push(ran(run, &at));
        for message in &run.messages {
            let text = message.text.replace('\n', " ");
            lines.push(format!("It said ({}): {text}", message.state));
        }
    }
    if let Some(note) = &trace.proactive {
        let did = match note.dial {
            Dial::Auto => "it may",
            Dial::Off | Dial::Observe => "it would",
        };
        lines.push(format!(
            "Noted with the dial on {}: {}; {did} {}; disturbs {}; more is released by {}.",
            note.dial.word(),
            note.situation,
            note.reach,
            note.disturb,
            note.release,
        ));
    }
    if let Some(hold) = &trace.hold {
        let verdict = hold.verdict.map_or("the model has not read it yet", |v| v.word());
        lines.push(format!("It holds back what is done outside: {} ({verdict}).", hold.state));
    }
    lines.push(match (&trace.event.disposition, trace.event.handled_at) {
        (Some(what), Some(when)) => format!("Handled {}: {what}.", at(when)),
        (Some(what), None) => format!("Handled: {what}."),
        (None, _) => "Not handled yet.".to_owned(),
    });
    lines
}

fn received(trace: &Trace, at: &impl Fn(Timestamp) -> String) -> String {
    let event = &trace.event;
    let mut line = format!(
        "Received {} from {} ({}) as {}",
        at(event.received_at),
        trace.source.name,
        trace.source.kind.word(),
        event.external_id
    );
    for (name, value) in [("topic", &event.topic), ("key", &event.key)] {
        if let Some(value) = value {
            line.push_str(&format!(", {name} {value}"));
        }
    }
    line.push_str(match event.trust {
        Trust::Outside => "; anyone may have written it",
        Trust::System => "; written by this program",
        Trust::User => "; written by you",
    });
    line.push_str(if event.late { "; late." } else { "." });
    line
}

fn asked(asked: &Asked) -> String {
    let name = |n: usize, title: &str| format!("{}. {title}", n + 1);
    let all: Vec<String> =
        asked.candidates.iter().enumerate().map(|(n, c)| name(n, &c.title)).collect();
    let answer = asked.answer.as_deref().unwrap_or("nothing").trim().replace('\n', " ");
    let refused = match &asked.refused {
        Some(why) => format!("; that did not count: {why}"),
        None => String::new(),
    };
    format!(
        "{} was asked which it concerns ({}) and said: {answer}{refused}.",
        asked.model,
        all.join(", ")
    )
}

fn matter(matter: &Matter) -> String {
    let what = match &matter.title {
        Some(title) => format!("the duty \"{title}\""),
        None => "the conversation".to_owned(),
    };
    let why = match matter.how {
        How::Wait => format!("it met the wait {}", matter.record),
        How::Subscription => format!("the subscription {} covers it", matter.record),
        How::Attribution => "the small model said so".to_owned(),
        How::Dial => "the dial stands on auto".to_owned(),
    };
    format!("It concerns {what}: {why}.")
}

fn queued(item: &Item, at: &impl Fn(Timestamp) -> String) -> String {
    let mut line = match item.class {
        Some(class) => format!("In the queue as {}", class.word()),
        None => "In no queue".to_owned(),
    };
    let times = [("delivered", item.delivered_at), ("read", item.read_at), ("done", item.done_at)];
    for (name, time) in times {
        if let Some(time) = time {
            line.push_str(&format!(", {name} {}", at(time)));
        }
    }
    let stands = match item.state {
        WorkItemState::Unrouted => "; the router has not looked at it",
        WorkItemState::Attributing => "; the small model is asked what it concerns",
        WorkItemState::Pending => "; it waits for its run",
        WorkItemState::Background => "; it wakes nobody, the next run reads it along",
        WorkItemState::Claimed => "; a run has it",
        WorkItemState::Done => "",
        WorkItemState::Failed => "; given up, and you were told",
    };
    line.push_str(stands);
    line.push('.');
    line
}

fn ran(run: &Wakeup, at: &impl Fn(Timestamp) -> String) -> String {
    let how = match run.state {
        RunState::Running => "is under way",
        RunState::Lost => "lost its worker and goes on",
        RunState::Sleeping => "waits for the model",
        RunState::Completed => "ended as the model wished",
        RunState::Interrupted => "was interrupted",
        RunState::BudgetExhausted => "stopped at its budget",
        RunState::Failed => "failed",
    };
    let ended = run.ended_at.map(|end| format!(" {}", at(end))).unwrap_or_default();
    let reason = run.reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
    let quiet = match run.messages.is_empty() && run.ended_at.is_some() {
        true => "; it said nothing",
        false => "",
    };
    format!("Run {} began {} and {how}{ended}{reason}{quiet}.", run.id, at(run.started_at))
}
