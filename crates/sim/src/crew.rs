//! Workers of the simulator: each has a run in its hands, in half steps. It performs, and later it
//! records, so that anything may happen in between.

use base::{Clock as _, Timestamp};
use engine::worker::{self, Action, Recorded, Work};
use engine::{Context, tools};
use model::{Answer, ModelError, Request, ToolCall};
use serde_json::json;
use store::StoreError;

use crate::sim::{Crash, Sim, now};
use crate::world::{SLOW, SLOW_MS};

/// Something a worker has in its hands.
pub(crate) enum Hands {
    Empty,
    Asked(Request, Result<Answer, ModelError>),
    Called(ToolCall, tools::Done),
    Ends(agent::Outcome),
}

pub(crate) struct Worker {
    pub(crate) work: Work,
    hands: Hands,
    /// When what it performs is done.
    pub(crate) ready_at: Timestamp,
    pub(crate) renew_at: Timestamp,
    /// It hangs: no renewals until it is ready.
    pub(crate) hangs: bool,
}

impl Sim<'_> {
    pub(crate) fn claim(&mut self, cx: &Context) -> Result<(), Crash> {
        let at = self.clock.now();
        let merged = at.minus_ms(cx.limits.merge_ms);
        let found = now(cx.store.read(move |tx| store::session::claimable(tx, at, at, merged, 10)));
        let found = self.outcome("claim", found)?;
        let Some(first) = found.first() else {
            self.dirty.claim = false;
            return Ok(());
        };
        let work = now(worker::claim(cx, first.owner, first.session));
        let Some(work) = self.outcome("claim", work)? else { return Ok(()) };
        let (lease, run) = (&work.lease, &work.run);
        self.note(
            "claim",
            json!({
                "session": lease.session, "fence": lease.fence, "run": run.id, "steps": run.steps,
                "holder": lease.holder,
            }),
        );
        self.workers.push(Worker {
            work,
            hands: Hands::Empty,
            ready_at: at,
            renew_at: at.plus_ms(10_000),
            hangs: false,
        });
        if let Some(person) = &mut self.person {
            person.sees_run(self.workers.last().and_then(|w| w.work.run.duty), at);
        }
        Ok(())
    }

    /// A worker's next half step: perform, or record what it performed.
    pub(crate) fn work(&mut self, cx: &Context, n: usize) -> Result<(), Crash> {
        let mut worker = self.workers.swap_remove(n);
        match std::mem::replace(&mut worker.hands, Hands::Empty) {
            Hands::Empty => {
                if self.perform(cx, &mut worker)? {
                    self.workers.push(worker);
                }
                Ok(())
            }
            full @ (Hands::Asked(..) | Hands::Called(..) | Hands::Ends(_)) => {
                self.record(cx, worker, full)
            }
        }
    }

    /// `false`: the worker died over it.
    fn perform(&mut self, cx: &Context, worker: &mut Worker) -> Result<bool, Crash> {
        let at = self.clock.now();
        let mut takes_ms = 0;
        worker.hands = match worker::next(cx, &worker.work) {
            Action::End(outcome) => Hands::Ends(outcome),
            Action::Tool(call, plan) => {
                let cleared = now(tools::clear(cx, &worker.work, plan));
                let plan = match cleared {
                    Err(StoreError::Fenced) => return Ok(false),
                    other => self.outcome("clear", other)?,
                };
                let outside = match &plan {
                    tools::Plan::Cleared(wish) => Some(wish.tool.clone()),
                    tools::Plan::Schema(name) => Some(format!("schema of {name}")),
                    tools::Plan::Read(_)
                    | tools::Plan::Record(_)
                    | tools::Plan::Answer(_)
                    | tools::Plan::Act(..) => None,
                };
                if let Some(name) = &outside {
                    self.outside("before a read")?;
                    takes_ms = if name == SLOW { SLOW_MS } else { 50 };
                    let run = &worker.work.run;
                    let fields =
                        json!({"run": run.id, "n": run.steps, "call": call.id, "tool": name});
                    self.note("read", fields);
                }
                let done = now(tools::perform(cx, plan));
                if outside.is_some() {
                    self.outside("after a read")?;
                }
                Hands::Called(call, done)
            }
            Action::Ask(request) => {
                if self.is_deadly(&request) {
                    self.note("died", json!({"run": worker.work.run.id, "why": "a deadly word"}));
                    return Ok(false);
                }
                let answer = self.ask(&worker.work, &request)?;
                takes_ms = 100 + self.random(900);
                Hands::Asked(request, answer)
            }
        };
        if self.deaths_left > 0 && self.fault(30) {
            self.deaths_left -= 1;
            self.note("died", json!({"run": worker.work.run.id, "why": "a fault"}));
            return Ok(false);
        }
        if self.fault(30) {
            takes_ms += 45_000;
            // A worker that hangs past its lease counts as a death.
            worker.hangs = self.deaths_left > 0 && self.fault(2);
            self.deaths_left -= u32::from(worker.hangs);
        }
        worker.ready_at = at.plus_ms(takes_ms);
        Ok(true)
    }

    fn is_deadly(&self, request: &Request) -> bool {
        let Some(word) = self.story.deadly else { return false };
        let tail = request.blocks.iter().rev().find_map(|block| match block.message() {
            Ok(model::Message::User(text)) => Some(text),
            Ok(
                model::Message::System(_)
                | model::Message::Assistant { .. }
                | model::Message::Tool { .. },
            )
            | Err(_) => None,
        });
        tail.is_some_and(|text| text.contains(word))
    }

    fn ask(&mut self, work: &Work, request: &Request) -> Result<Result<Answer, ModelError>, Crash> {
        let (run, n, digest) = (work.run.id, work.run.steps, request.digest());
        self.outside("before an ask")?;
        self.asks += 1;
        self.note("ask", json!({"run": run, "n": n, "request": digest, "fence": work.lease.fence}));
        let since = self.clock.now().since(self.story.start).as_millis() as u64;
        // Never twice in a row: the third would be an outage that the user must hear of.
        self.flaked = !self.flaked && self.fault(15);
        let flaky = self.flaked;
        let outage = self.outages.iter_mut().find(|o| o.asks > 0 && o.from_ms <= since);
        let answer = match outage {
            Some(outage) => {
                outage.asks -= 1;
                Err(outage.error.clone())
            }
            None if flaky => Err(ModelError::retry("a fault of the simulator")),
            None if let Some(attack) = &mut self.attack => {
                Ok(attack.answer(work.lease.session, request, self.clock.now()))
            }
            None => self.script.answer(&request.body(self.script.name())).map(|mut answer| {
                // No two answers are alike: asking again would be seen.
                answer.answer_id = format!("{}-{}", answer.answer_id, self.asks);
                answer
            }),
        };
        match &answer {
            Ok(answer) => {
                let fields = json!({"run": run, "n": n, "answer": answer.answer_id});
                self.note("answer", fields);
            }
            Err(error) => {
                self.note("no_answer", json!({"run": run, "n": n, "class": error.class()}));
            }
        }
        self.outside("after an ask")?;
        Ok(answer)
    }

    pub(crate) fn outside(&mut self, what: &'static str) -> Result<(), Crash> {
        if self.points.pass(what) { Ok(()) } else { Err(Crash::Point) }
    }

    fn record(&mut self, cx: &Context, mut worker: Worker, hands: Hands) -> Result<(), Crash> {
        let (what, recorded) = {
            let work = &mut worker.work;
            match hands {
                Hands::Empty => return Ok(()),
                Hands::Ends(outcome) => ("end", now(worker::record_end(cx, work, outcome))),
                Hands::Called(call, done) => {
                    ("tool", now(worker::record_tool(cx, work, call, done)))
                }
                Hands::Asked(request, Ok(answer)) => {
                    let digest = request.digest();
                    ("model", now(worker::record_answer(cx, work, digest, answer)))
                }
                Hands::Asked(_, Err(error)) => {
                    ("failure", now(worker::record_failure(cx, work, error)))
                }
            }
        };
        let lease = worker.work.lease;
        let fields = json!({
            "what": what, "session": lease.session, "fence": lease.fence,
            "run": worker.work.run.id,
        });
        match recorded {
            Err(StoreError::Fenced) => self.note("fenced", fields),
            other => {
                let recorded = self.outcome("record", other)?;
                self.note("record", fields);
                if recorded == Recorded::Goes {
                    let at = self.clock.now();
                    worker.ready_at = at;
                    worker.renew_at = at.plus_ms(10_000);
                    worker.hangs = false;
                    self.workers.push(worker);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn renew(&mut self, cx: &Context, n: usize) -> Result<(), Crash> {
        let worker = self.workers.swap_remove(n);
        let held = worker.work.clone();
        let renewed = now(cx.write(held.lease.owner, move |cx, tx| worker::renew(cx, tx, &held)));
        let lease = worker.work.lease;
        let fields = json!({"what": "renew", "session": lease.session, "fence": lease.fence,
            "run": worker.work.run.id});
        match renewed {
            Err(StoreError::Fenced) => self.note("fenced", fields),
            other => {
                let renewed = self.outcome("renew", other)?;
                self.note("record", fields);
                if renewed == Recorded::Goes {
                    let renew_at = self.clock.now().plus_ms(10_000);
                    self.workers.push(Worker { renew_at, ..worker });
                }
            }
        }
        Ok(())
    }
}
