//! What the clock does while nobody can go: it jumps to whatever comes next.

use base::{Clock as _, Timestamp};
use domain::state::Alarm;
use engine::rest::Rest;
use engine::{Context, rest};

use crate::attack::Attack;
use crate::person::Person;
use crate::sim::{Crash, Sim, now};
use crate::turn::ALL_DIRTY;

/// How far time moves while a lease that nobody uses runs out.
const BUSY_MS: u64 = 5_000;
/// How many milliseconds after its time the sweeper's tick finds what lasts too long.
const TICK_MS: u64 = 50;

impl Sim<'_> {
    /// Nobody can go: the clock moves to whatever comes next.
    pub(crate) fn let_time_pass(&mut self) -> Result<bool, Crash> {
        let at = self.clock.now();
        let cx = self.cx();
        let rest = now(rest::look(&cx));
        let rest = self.outcome("rest", rest)?;
        let due = match rest {
            Rest::Busy => Some(at.plus_ms(BUSY_MS)),
            Rest::Until(due) => Some(due),
            Rest::Person | Rest::Quiet => None,
        };
        let alarm = self.next_alarm(&cx)?;
        let workers = self.workers.iter().map(|worker| {
            if worker.hangs { worker.ready_at } else { worker.ready_at.min(worker.renew_at) }
        });
        let person = self.person.as_ref().and_then(Person::next);
        let attack = self.attack.as_ref().and_then(Attack::next);
        let errands = self.errands.iter().map(|errand| errand.ready_at);
        let sent = self.sent.iter().map(|sent| sent.due);
        let next = workers.chain(errands).chain(sent).chain(due).chain(alarm).chain(person);
        let next = next.chain(attack).min();
        let end = self.story.start.plus_ms(self.story.end_ms);
        match next {
            Some(next) if next <= end => {
                // Never back, and a little after the instant, as real timers are.
                self.clock.set(next.max(at));
                self.dirty = ALL_DIRTY;
                Ok(true)
            }
            Some(_) | None => Ok(false),
        }
    }

    /// When the sweeper's tick finds the next hold that lasts too long.
    fn next_alarm(&mut self, cx: &Context) -> Result<Option<Timestamp>, Crash> {
        let (at, owner) = (self.clock.now(), self.owner);
        let holds = now(cx.store.read(move |tx| store::hold::placed(tx, owner)));
        let holds = self.outcome("rest", holds)?;
        let custody = domain::state::CUSTODY.iter().find(|custody| custody.table == "hold");
        let Some(Alarm::AfterMs(ms)) = custody.map(|custody| custody.alarm) else {
            return Ok(None);
        };
        // A process that has just come back gives its stages that long too.
        let since = holds.iter().map(|hold| hold.created_at.max(self.opened_at));
        Ok(since.map(|since| since.plus_ms(ms + TICK_MS)).filter(|due| *due > at).min())
    }
}
