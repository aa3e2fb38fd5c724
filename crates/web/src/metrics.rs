//! For whoever watches the machine: does the process live, does it do its work, and how much there is to do
//! (OPS-03). Numbers only: no content, no id, no name of an owner.

use std::fmt::Write as _;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use base::Timestamp;
use domain::state::ActionState;
use serde_json::{Value, json};
use store::Tx;
use store::ledger::Totals;

use crate::App;
use crate::problem::Problem;
use crate::views;

/// Numbers that are younger are told again: however often somebody asks, the store is asked no more often.
const YOUNG_MS: u64 = 10_000;

/// The last numbers, and of when.
pub(crate) type Measured = Option<(Timestamp, String)>;

/// The process lives; nothing else is looked at.
pub(crate) async fn lives() -> Json<Value> {
    Json(json!({"ok": true}))
}

/// Whether work that comes now would be done: the store answers, every stage passes, and nobody told it to stop.
pub(crate) async fn ready(State(app): State<App>) -> Result<Json<Value>, Problem> {
    if app.stop.as_ref().is_some_and(|stop| *stop.borrow()) {
        let detail = "The server is stopping. Send the same request again once it runs.";
        return Err(Problem::not_done(detail));
    }
    let cx = &app.web.cx;
    cx.store.read(store::hold::is_stopped).await?;
    match app.web.hints.stuck(cx.clock.now()) {
        None => Ok(Json(json!({"ready": true}))),
        Some(stage) => Err(Problem::not_done(format!(
            "The stage {stage} has not passed for a minute, or not yet. If that lasts, look at the log and \
             start the server again."
        ))),
    }
}

/// Counts and gauges in the text format of Prometheus.
pub(crate) async fn show(State(app): State<App>) -> Result<Response, Problem> {
    let mut measured = app.measured.lock().await;
    let now = app.web.cx.clock.now();
    let is_young = |at: Timestamp| at <= now && now < at.plus_ms(YOUNG_MS);
    let text = match measured.as_ref() {
        Some((at, text)) if is_young(*at) => text.clone(),
        Some(_) | None => {
            let text = measure(&app, now).await?;
            *measured = Some((now, text.clone()));
            text
        }
    };
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

/// What the records say, read as one picture.
struct Counted {
    waiting: Vec<(String, String, i64)>,
    actions: Vec<(&'static str, i64)>,
    month: Totals,
    stopped: bool,
}

fn count(tx: &mut Tx<'_>, now: Timestamp) -> store::Result<Counted> {
    let states = ActionState::MACHINE.states.iter();
    let open = states.filter(|state| !ActionState::MACHINE.is_terminal(state));
    let mut actions: Vec<(&'static str, i64)> = open.map(|state| (*state, 0)).collect();
    let mut month = Totals::default();
    for owner in store::owner::all(tx)? {
        for (state, count) in store::gauge::actions(tx, owner.id)? {
            actions.iter_mut().filter(|(of, _)| *of == state).for_each(|(_, n)| *n += count);
        }
        let spent = views::spent(tx, &owner, now)?;
        month.wakeups += spent.wakeups;
        month.model_calls += spent.model_calls;
        month.input_tokens += spent.input_tokens;
        month.cached_tokens += spent.cached_tokens;
        month.output_tokens += spent.output_tokens;
        month.micro_usd = base::MicroUsd(month.micro_usd.0.saturating_add(spent.micro_usd.0));
    }
    let (waiting, stopped) = (store::gauge::waiting(tx)?, store::hold::is_stopped(tx)?);
    Ok(Counted { waiting, actions, month, stopped })
}

async fn measure(app: &App, now: Timestamp) -> Result<String, Problem> {
    let counted = app.web.cx.store.read(move |tx| count(tx, now)).await?;
    let machine = app.web.machine.clone();
    let machine = tokio::task::spawn_blocking(move || machine()).await.unwrap_or_default();
    let Counted { waiting, actions, month, stopped } = counted;
    let mut out = Page(String::new());
    let engine = if app.web.cx.store.is_postgres() { "postgresql" } else { "sqlite" };
    let about = format!("version=\"{}\",engine=\"{engine}\"", env!("CARGO_PKG_VERSION"));
    out.family("info", "What runs.", [(about, 1)]);
    let mut of = waiting.iter().map(|(noun, ..)| noun.as_str()).collect::<Vec<_>>();
    of.dedup();
    for noun in of {
        let lines = waiting.iter().filter(|(other, ..)| other == noun);
        let lines = lines.map(|(_, state, n)| (format!("state=\"{state}\""), n.unsigned_abs()));
        out.family(noun, "Of all owners, 10000 at most.", lines);
    }
    let lines = actions.iter().map(|(state, n)| (format!("state=\"{state}\""), n.unsigned_abs()));
    out.family("actions", "Not ended, among the newest 10000 of each owner.", lines);
    let plain = |n: u64| [(String::new(), n)];
    out.family("system_stop", "1: the operator has stopped everything.", plain(stopped.into()));
    out.family("month_wakeups", "Runs of this calendar month.", plain(month.wakeups));
    out.family("month_model_calls", "Answers of models.", plain(month.model_calls));
    out.family("month_input_tokens", "Tokens sent to models.", plain(month.input_tokens));
    out.family("month_cached_tokens", "Of these, from cache.", plain(month.cached_tokens));
    out.family("month_output_tokens", "Tokens of models.", plain(month.output_tokens));
    let cost = month.micro_usd.0.unsigned_abs();
    out.family("month_micro_usd", "Cost in millionths of a US dollar.", plain(cost));
    let ages = app.web.hints.ages_s(now).into_iter();
    let ages = ages.map(|(stage, age)| (format!("stage=\"{stage}\""), age));
    out.family("stage_age_seconds", "Since the end of the stage's last pass.", ages);
    for (name, n) in machine {
        out.family(name, "Of the machine.", plain(n));
    }
    Ok(out.0)
}

/// Numbers as they are written; all are gauges, also those that only grow within a month.
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, help: &str, lines: impl IntoIterator<Item = (String, u64)>) {
        let out = &mut self.0;
        // Writing to a string does not fail.
        let _ = writeln!(out, "# HELP adjutant_{name} {help}\n# TYPE adjutant_{name} gauge");
        for (labels, n) in lines {
            let _ = match labels.is_empty() {
                true => writeln!(out, "adjutant_{name} {n}"),
                false => writeln!(out, "adjutant_{name}{{{labels}}} {n}"),
            };
        }
    }
}
