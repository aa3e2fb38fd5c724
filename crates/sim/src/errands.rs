//! Errands of the stages that ask somebody outside: the watcher's look, the attribution's question, the
//! checker's read and those of the path of an effect, each in half steps. Anything may happen between performing and recording.

use base::{AttemptId, Clock as _, OwnerId, Timestamp};
use domain::effect::Sight;
use engine::world::{Acted, Look, Read};
use engine::{Context, attribution, checker, dispatcher, reconciler, review, watcher};
use model::{Answer, ModelError};
use serde_json::json;
use store::Permit;
use store::source::Source;

use crate::sim::{Crash, Sim, now};
use crate::world::Lie;

/// What a stage has brought home and not recorded yet.
pub(crate) struct Errand {
    owner: OwnerId,
    home: Home,
    /// When it is home.
    pub(crate) ready_at: Timestamp,
}

pub(crate) enum Home {
    Looked(Box<Source>, Result<Look, String>),
    Asked(attribution::Question, Result<Answer, ModelError>),
    Checked(checker::Look, Result<Read, String>),
    Reviewed(review::Review, Result<Answer, ModelError>),
    /// On its way out: nothing has left yet.
    Permitted(Box<Permit>),
    Acted(AttemptId, Acted),
    Sought(reconciler::Look, Sight),
}

impl Errand {
    pub(crate) fn is_look(&self) -> bool {
        matches!(self.home, Home::Looked(..))
    }
    pub(crate) fn is_question(&self) -> bool {
        matches!(self.home, Home::Asked(..))
    }
    pub(crate) fn is_check(&self) -> bool {
        matches!(self.home, Home::Checked(..))
    }
    pub(crate) fn is_review(&self) -> bool {
        matches!(self.home, Home::Reviewed(..))
    }
    pub(crate) fn is_sending(&self) -> bool {
        matches!(self.home, Home::Permitted(_) | Home::Acted(..))
    }
    pub(crate) fn is_look_up(&self) -> bool {
        matches!(self.home, Home::Sought(..))
    }
}

impl Sim<'_> {
    /// The watcher sets out for the first source that is due.
    pub(crate) fn look(&mut self, cx: &Context) -> Result<(), Crash> {
        let at = self.clock.now();
        let due = now(cx.store.read(move |tx| store::source::due(tx, at, 1)));
        let Some((owner, id)) = self.outcome("watcher", due)?.pop() else {
            self.dirty.watcher = false;
            return Ok(());
        };
        let claimed = now(watcher::claim(cx, owner, id));
        let Some(source) = self.outcome("watcher", claimed)? else { return Ok(()) };
        self.outside("before a look")?;
        if self.fault(6) {
            let lie = if self.random(2) == 0 { Lie::Repeat } else { Lie::Silence };
            self.world.lie(lie);
        }
        let looked = now(watcher::look(cx, &source));
        let found = looked.as_ref().map(|look| look.items.len()).ok();
        self.note("look", json!({"source": id, "found": found}));
        self.outside("after a look")?;
        self.bring(owner, Home::Looked(Box::new(source), looked));
        Ok(())
    }

    /// The attribution sets out to ask about the first event that waits for it.
    pub(crate) fn question(&mut self, cx: &Context) -> Result<(), Crash> {
        let at = self.clock.now();
        let due = now(cx.store.read(move |tx| store::work_item::attributing(tx, at, 1)));
        let Some((owner, item)) = self.outcome("attribution", due)?.pop() else {
            self.dirty.attribution = false;
            return Ok(());
        };
        let claimed = now(attribution::claim(cx, owner, item));
        let Some(question) = self.outcome("attribution", claimed)? else { return Ok(()) };
        self.outside("before a question")?;
        let since = self.clock.now().since(self.story.start).as_millis() as u64;
        let outage = self.small_outages.iter_mut().find(|o| o.asks > 0 && o.from_ms <= since);
        let answer = match outage {
            Some(outage) => {
                outage.asks -= 1;
                Err(outage.error.clone())
            }
            None => match &mut self.attack {
                Some(attack) => Ok(attack.attribute()),
                None => self.small.answer_request(&question.request),
            },
        };
        let said = answer.as_ref().ok().and_then(|answer| answer.text.clone());
        self.note("question", json!({"item": item, "said": said}));
        self.outside("after a question")?;
        self.bring(owner, Home::Asked(question, answer));
        Ok(())
    }

    /// The checker sets out for the first look that is due.
    pub(crate) fn check(&mut self, cx: &Context) -> Result<(), Crash> {
        let at = self.clock.now();
        let due = now(cx.store.read(move |tx| store::check::due(tx, at, 1)));
        let Some((owner, id)) = self.outcome("checker", due)?.pop() else {
            self.dirty.checker = false;
            return Ok(());
        };
        let claimed = now(checker::claim(cx, owner, id));
        let Some(look) = self.outcome("checker", claimed)? else { return Ok(()) };
        self.outside("before a check")?;
        let read = now(checker::perform(cx, &look));
        self.note("check", json!({"check": id, "read": read.is_ok()}));
        self.outside("after a check")?;
        self.bring(owner, Home::Checked(look, read));
        Ok(())
    }

    /// What was brought home; a fault may lose it on the way or keep it for long.
    pub(crate) fn bring(&mut self, owner: OwnerId, home: Home) {
        if self.fault(12) {
            self.note("lost", json!({"what": "an errand"}));
            return;
        }
        let mut takes_ms = 100 + self.random(900);
        if self.fault(12) {
            takes_ms += 45_000;
        }
        let ready_at = self.clock.now().plus_ms(takes_ms);
        self.errands.push(Errand { owner, home, ready_at });
    }

    /// An errand that is home goes on record.
    pub(crate) fn record_errand(&mut self, cx: &Context, n: usize) -> Result<(), Crash> {
        let Errand { owner, home, .. } = self.errands.swap_remove(n);
        let (stage, recorded) = match home {
            Home::Looked(source, look) => {
                let write = cx.write(owner, move |cx, tx| watcher::record(cx, tx, &source, look));
                ("watcher", now(write))
            }
            Home::Asked(question, answer) => {
                let record = move |cx: &Context, tx: &mut store::OwnerTx<'_, '_>| {
                    attribution::record(cx, tx, &question, answer)
                };
                ("attribution", now(cx.write(owner, record)))
            }
            Home::Checked(look, read) => {
                let write = cx.write(owner, move |cx, tx| checker::record(cx, tx, &look, read));
                ("checker", now(write))
            }
            Home::Permitted(permit) => return self.act(cx, owner, *permit),
            Home::Reviewed(review, answer) => {
                let write = cx.write(owner, move |cx, tx| review::record(cx, tx, &review, answer));
                ("review", now(write))
            }
            Home::Acted(attempt, acted) => {
                if self.attack.is_some() && self.fault(6) {
                    // The same answer comes twice.
                    self.bring(owner, Home::Acted(attempt, acted.clone()));
                }
                let write =
                    cx.write(owner, move |cx, tx| dispatcher::record(cx, tx, attempt, acted));
                ("dispatcher", now(write))
            }
            Home::Sought(look, sight) => {
                let write = cx.write(owner, move |cx, tx| reconciler::record(cx, tx, &look, sight));
                ("reconciler", now(write))
            }
        };
        self.outcome(stage, recorded)
    }
}
