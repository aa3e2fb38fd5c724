//! The stages of the path of an effect in half steps: each claims, goes outside, and records, and anything may
//! happen in between.

use base::{ActionId, Clock as _, OwnerId};
use domain::state::ActionState;
use engine::{Context, admission, dispatcher, reconciler, review};
use serde_json::json;
use store::Permit;

use crate::attack::Attack;
use crate::errands::Home;
use crate::sim::{Crash, Sim, now};

/// The states in which the reconciler looks at an action.
const WATCHED: [ActionState; 4] =
    [ActionState::Dispatched, ActionState::Unknown, ActionState::Accepted, ActionState::Blocked];

impl Sim<'_> {
    /// The first action in one of these states that is due.
    fn due(
        &mut self,
        cx: &Context,
        stage: &'static str,
        states: &'static [ActionState],
    ) -> Result<Option<(ActionState, OwnerId, ActionId)>, Crash> {
        let at = self.clock.now();
        let found = now(cx.store.read(move |tx| {
            for state in states {
                if let Some((owner, id)) = store::action::due(tx, *state, at, 1)?.pop() {
                    return Ok(Some((*state, owner, id)));
                }
            }
            Ok(None)
        }));
        self.outcome(stage, found)
    }

    /// The review decides by the tier, asks the reviewer where that is wanted, and ends late requests.
    pub(crate) fn review(&mut self, cx: &Context) -> Result<(), Crash> {
        let states = &[ActionState::AwaitingApproval, ActionState::Proposed];
        let Some((_, owner, id)) = self.due(cx, "review", states)? else {
            self.dirty.review = false;
            return Ok(());
        };
        let claimed = now(review::claim(cx, owner, id));
        let Some(review) = self.outcome("review", claimed)? else { return Ok(()) };
        self.outside("before a review")?;
        let answer = match &self.attack {
            Some(_) => Ok(Attack::review()),
            None => self.small.answer_request(&review.request),
        };
        let said = answer.as_ref().ok().and_then(|answer| answer.text.clone());
        self.note("review", json!({"action": id, "said": said}));
        self.outside("after a review")?;
        self.bring(owner, Home::Reviewed(review, answer));
        Ok(())
    }

    /// The first cut line.
    pub(crate) fn admission(&mut self, cx: &Context) -> Result<(), Crash> {
        let at = self.clock.now();
        let found = match self.due(cx, "admission", &[ActionState::Authorized])? {
            Some((_, owner, id)) => Some((owner, id)),
            None => {
                let again = now(cx.store.read(move |tx| store::action::retry(tx, at, 1)));
                self.outcome("admission", again)?.pop()
            }
        };
        let Some((owner, id)) = found else {
            self.dirty.admission = false;
            return Ok(());
        };
        let decided = now(admission::decide(cx, owner, id));
        self.outcome("admission", decided)
    }

    /// The second cut line; what it permits leaves a little later.
    pub(crate) fn dispatch(&mut self, cx: &Context) -> Result<(), Crash> {
        let Some((_, owner, id)) = self.due(cx, "dispatcher", &[ActionState::Admitted])? else {
            self.dirty.dispatcher = false;
            return Ok(());
        };
        let claimed = now(dispatcher::claim(cx, owner, id));
        if let Some(permit) = self.outcome("dispatcher", claimed)? {
            self.bring(owner, Home::Permitted(Box::new(permit)));
        }
        Ok(())
    }

    /// What was permitted leaves.
    pub(crate) fn act(
        &mut self,
        cx: &Context,
        owner: OwnerId,
        permit: Permit,
    ) -> Result<(), Crash> {
        self.outside("before an act")?;
        let (attempt, operation) = (permit.attempt(), permit.operation_id().to_owned());
        let (action, tool) = (permit.action(), permit.tool().to_owned());
        let acted = now(dispatcher::perform(cx, permit));
        self.note(
            "act",
            json!({
                "attempt": attempt, "action": action, "operation": operation, "tool": tool,
                "seen": format!("{:?}", acted.seen),
            }),
        );
        self.outside("after an act")?;
        self.bring(owner, Home::Acted(attempt, acted));
        Ok(())
    }

    /// The reconciler sets out for the first operation that is due.
    pub(crate) fn reconcile(&mut self, cx: &Context) -> Result<(), Crash> {
        let Some((_, owner, id)) = self.due(cx, "reconciler", &WATCHED)? else {
            self.dirty.reconciler = false;
            return Ok(());
        };
        let claimed = now(reconciler::claim(cx, owner, id));
        let Some(look) = self.outcome("reconciler", claimed)? else { return Ok(()) };
        self.outside("before a look-up")?;
        let sight = now(reconciler::perform(cx, &look));
        self.note(
            "look_up",
            json!({"action": id, "operation": look.operation, "sight": format!("{sight:?}")}),
        );
        self.outside("after a look-up")?;
        self.bring(owner, Home::Sought(look, sight));
        Ok(())
    }

    /// Tells the person's triggers how far the actions have come.
    pub(crate) fn see_actions(&mut self) -> Result<(), Crash> {
        if self.story.hotel.is_none() {
            return Ok(());
        }
        let (cx, owner, at) = (self.cx(), self.owner, self.clock.now());
        let actions = now(cx.store.read(move |tx| store::action::all(tx, owner, 20)));
        let actions = self.outcome("look", actions)?;
        if let Some(person) = &mut self.person {
            for action in actions {
                person.sees_action(action.state, at);
            }
        }
        Ok(())
    }
}
