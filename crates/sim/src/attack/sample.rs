//! Something to attack: the delegation of the story with the hotel, as the person confirmed it.

use std::path::Path;
use std::sync::Arc;

use base::{Clock as _, DutyId, Timestamp};
use connect::Manifest;
use serde_json::Value;
use testkit::clock::FakeClock;
use testkit::hotel::{HOTEL_MANIFEST, process};
use testkit::stores::TempFolder;

use super::{AttackError, Target, ToolSpec};
use crate::sim::{Crash, Plan, Sim, now};
use crate::stories;

/// The hotel's tools with what its server says of their arguments.
///
/// # Errors
/// When its manifest is none.
pub fn tools() -> Result<Vec<ToolSpec>, AttackError> {
    let manifest = Manifest::parse(HOTEL_MANIFEST);
    let manifest = manifest.map_err(|error| AttackError::SetUp(error.to_string()))?;
    let spec = |(name, rule): (&str, &connect::ToolRule)| ToolSpec {
        name: format!("hotel.{name}"),
        rule: rule.clone(),
        arguments: process::parameters(name).map_or(Value::Null, Value::Object),
    };
    Ok(manifest.tools().map(spec).collect())
}

/// Plays the story until its duty is confirmed, and copies its owner to `file`.
///
/// # Errors
/// When the story does not get that far.
pub fn target(file: &Path) -> Result<Target, AttackError> {
    let set_up = |what: String| AttackError::SetUp(what);
    let stories = stories::all();
    let story = stories.iter().find(|story| story.name == "hotel");
    let story = story.ok_or_else(|| set_up("there is no story with a hotel".into()))?;
    let scratch = TempFolder::in_memory().map_err(|error| set_up(error.to_string()))?;
    let folder = scratch.path().to_owned();
    let crash_at = Vec::new();
    let plan = Plan { seed: 1, crash_at, faults: false, postgres: None, folder, template: None };
    let clock = Arc::new(FakeClock::new(story.start));
    let mut sim =
        Sim::build(story, plan, clock.clone(), None).map_err(|e| set_up(e.to_string()))?;
    let (duty, at) = confirmed(&mut sim, &clock)?;
    let (cx, owner) = (sim.cx(), sim.owner);
    testkit::stores::block_on(cx.store.copy_owner(owner, file.to_owned()))?;
    Target::read(file, duty, tools()?, at)
}

fn confirmed(sim: &mut Sim<'_>, clock: &FakeClock) -> Result<(DutyId, Timestamp), AttackError> {
    for _ in 0..10_000 {
        let (cx, owner) = (sim.cx(), sim.owner);
        let duties = now(cx.store.read(move |tx| store::duty::all(tx, owner, 1)))?;
        if let Some(duty) = duties.first() {
            return Ok((duty.id, clock.now()));
        }
        match sim.turn() {
            Ok(true) => {}
            Ok(false) | Err(Crash::Point) => break,
            Err(Crash::Failed(error)) => return Err(AttackError::SetUp(error.to_string())),
        }
    }
    Err(AttackError::SetUp("nobody confirmed a duty".into()))
}
