//! The supervisor's rules: both read them, only the supervisor writes them (ADM-31, DEL-14).

use axum::Json as Sent;
use axum::extract::{Extension, State};
use base::{Amount, Currency, RuleId};
use domain::effect::{Demand, Effect, Rule as Terms};
use engine::Context;
use engine::control::{self, Changed};
use serde::Deserialize;
use serde_json::{Value, json};
use store::device::Device;
use store::rule::Rule;
use store::{OwnerTx, Tx};
use uuid::Uuid;

use crate::App;
use crate::auth::Caller;
use crate::body::{Json, Named, PAGE_MAX};
use crate::duties::Write;
use crate::idempotent::{Answer, Ask, Order, Outcome, target, write};
use crate::problem::Problem;
use crate::views::action::money;

fn view(rule: &Rule) -> Value {
    let terms = rule.terms();
    json!({
        "id": rule.id,
        "tool": terms.tool,
        "effect": terms.effect,
        "above": money(terms.above),
        "demand": terms.demand,
        "words": terms.words(),
        "state": rule.state,
        "created_at": rule.created_at,
        "moved_at": rule.moved_at,
    })
}

/// All rules over the owner, ended ones too, newest first.
pub(crate) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Result<Sent<Value>, Problem> {
    let owner = caller.device.owner;
    let read = move |tx: &mut Tx<'_>| {
        let seq = store::owner::get(tx, owner)?.change_seq;
        let rules = store::rule::all(tx, owner, i64::from(PAGE_MAX))?;
        Ok(json!({"rules": rules.iter().map(view).collect::<Vec<_>>(), "seq": seq}))
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
    fn terms(&self) -> Result<Terms, Problem> {
        let above = |bound: &Bound| {
            let currency = Currency::parse(&bound.currency)?;
            Amount::parse(&bound.amount, currency)
        };
        let above = self.above.as_ref().map(above).transpose();
        let above =
            above.map_err(|error| Problem::bad(format!("The bound is no amount: {error}.")))?;
        let terms = Terms {
            tool: self.tool.trim().into(),
            effect: self.effect,
            above,
            demand: self.demand,
        };
        let wrong = |error| Problem::bad(format!("This names no tool: {error}."));
        terms.check().map(|()| terms).map_err(wrong)
    }
}

/// The supervisor lays a rule. It only tightens, so like a stop it waits for nothing.
pub(crate) async fn add(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Json(asked): Json<RuleWrite>,
) -> Result<Sent<Value>, Problem> {
    let terms = asked.terms()?;
    let said = terms.words();
    let ask = Ask { id: asked.id, operation: "rule", target: None, content: vec![said.as_bytes()] };
    let work = move |cx: &Context, tx: &mut OwnerTx<'_, '_>, device: &Device| {
        Ok(match control::add_rule(cx, tx, device, &terms)? {
            Ok(rule) => Outcome::Done(Answer::plain(with_seq(view(&rule), tx.seq()))),
            Err(what) => Outcome::Conflict(what),
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
) -> Result<Sent<Value>, Problem> {
    let ask = Ask { id: asked.id, operation: "end_rule", target: target(id), content: Vec::new() };
    let work = move |_: &Context, tx: &mut OwnerTx<'_, '_>, device: &Device| {
        if let Changed::Conflict(what) = control::end_rule(tx, device, id)? {
            return Ok(Outcome::Conflict(what));
        }
        let owner = tx.owner();
        let rule = store::rule::get(tx, owner, id)?;
        Ok(Outcome::Done(Answer::plain(with_seq(view(&rule), tx.seq()))))
    };
    Ok(Sent(write(&app, caller, Order::InTurn, ask, work).await?.body))
}

fn with_seq(mut shown: Value, seq: i64) -> Value {
    shown["seq"] = json!(seq);
    shown
}
