//! The supervisor's rules: both read them, only the supervisor writes them (ADM-31, DEL-14).

use axum::Json as Sent;
use axum::extract::{Extension, State};
use base::{Amount, Currency, RuleId};
use domain::effect::{Demand, Effect, Rule as Terms};
use domain::words::Language;
use engine::{Context, control};
use serde::Deserialize;
use serde_json::{Value, json};
use store::device::Device;
use store::rule::Rule;
use store::{OwnerTx, Result, Tx};
use uuid::Uuid;

use crate::App;
use crate::auth::Caller;
use crate::body::{Json, Named, PAGE_MAX};
use crate::duties::Write;
use crate::idempotent::{Answer, Ask, Order, Outcome, target, write};
use crate::problem::Problem;
use crate::views::action::money;

fn view(rule: &Rule, language: Language) -> Value {
    let terms = rule.terms();
    json!({
        "id": rule.id,
        "tool": terms.tool,
        "effect": terms.effect,
        "above": money(terms.above),
        "demand": terms.demand,
        "words": terms.words(language),
        "state": rule.state,
        "created_at": rule.created_at,
        "moved_at": rule.moved_at,
    })
}

/// All rules over the owner, those in force first, each kind newest first.
pub(crate) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> std::result::Result<Sent<Value>, Problem> {
    let owner = caller.device.owner;
    let read = move |tx: &mut Tx<'_>| {
        let of = store::owner::get(tx, owner)?;
        let rules = store::rule::all(tx, owner, i64::from(PAGE_MAX))?;
        let shown: Vec<Value> = rules.iter().map(|rule| view(rule, of.language())).collect();
        Ok(json!({"rules": shown, "seq": of.change_seq}))
    };
    Ok(Sent(app.web.cx.store.read(read).await?))
}

/// A bound as a person writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bound {
    amount: String,
    currency: String,
}

/// A new rule.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleWrite {
    id: Uuid,
    tool: String,
    effect: Option<Effect>,
    above: Option<Bound>,
    demand: Demand,
}

impl RuleWrite {
    fn terms(&self) -> std::result::Result<Terms, Problem> {
        let above = |bound: &Bound| {
            let currency = Currency::parse(&bound.currency)?;
            Amount::parse(&bound.amount, currency)
        };
        let above = self.above.as_ref().map(above).transpose();
        let above =
            above.map_err(|error| Problem::bad(format!("The bound is no amount: {error}.")))?;
        Terms::new(&self.tool, self.effect, above, self.demand)
            .map_err(|error| Problem::bad(format!("This names no tool: {error}.")))
    }
}

/// The supervisor lays a rule. It only tightens, so like a stop it waits for nothing.
pub(crate) async fn add(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(asked): Json<RuleWrite>,
) -> std::result::Result<Sent<Value>, Problem> {
    let terms = asked.terms()?;
    let above = terms.above.map(|above| (above.minor, above.currency));
    let content = json!([terms.tool, terms.effect, above, terms.demand]).to_string();
    let content = vec![content.as_bytes()];
    let ask = Ask { id: asked.id, operation: "rule", target: None, content };
    let work = move |cx: &Context, tx: &mut OwnerTx<'_, '_>, device: &Device| {
        Ok(match control::add_rule(cx, tx, device, &terms)? {
            Ok(rule) => Outcome::Done(answer(tx, &rule)?),
            Err(no) => Outcome::of(no, Answer::plain(Value::Null)),
        })
    };
    Ok(Sent(write(&app, caller, Order::First, ask, work).await?.body))
}

/// The supervisor ends a rule. That widens what may be done, so it comes after what came before.
pub(crate) async fn end(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Named(id): Named<RuleId>,
    Json(asked): Json<Write>,
) -> std::result::Result<Sent<Value>, Problem> {
    let ask = Ask { id: asked.id, operation: "end_rule", target: target(id), content: Vec::new() };
    let work = move |_: &Context, tx: &mut OwnerTx<'_, '_>, device: &Device| {
        let changed = control::end_rule(tx, device, id)?;
        let owner = tx.owner();
        let rule = store::rule::get(tx, owner, id)?;
        Ok(Outcome::of(changed, answer(tx, &rule)?))
    };
    Ok(Sent(write(&app, caller, Order::InTurn, ask, work).await?.body))
}

fn answer(tx: &mut OwnerTx<'_, '_>, rule: &Rule) -> Result<Answer> {
    let mut shown = view(rule, store::owner::locked(tx)?.language());
    shown["seq"] = json!(tx.seq());
    Ok(Answer::plain(shown))
}
