//! Situations: judgements of where matters stand, each a row that is never changed (PRO-02, PRO-05).

use base::{
    BodyId, DutyId, EventId, OwnerId, RunId, SessionId, SituationId, TaskVersionId, Timestamp,
    WaitId,
};
use domain::situation::{Part, Stands, Step};

use crate::error::Result;
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record};

record! {
    /// One judgement.
    pub struct Situation in "situation" {
        /// Its id.
        pub id: SituationId,
        /// Whose.
        pub owner: OwnerId,
        /// In which lane.
        pub session: SessionId,
        /// Of which duty.
        pub duty: Option<DutyId>,
        /// Of which version of it.
        pub task_version: Option<TaskVersionId>,
        /// By which run.
        pub run: RunId,
        /// By which call of it.
        pub call_id: String,
        /// The event that shows it.
        pub event: Option<EventId>,
        /// The matter and who has taken it on, as JSON.
        pub body: BodyId,
        /// Where it stands.
        pub stands: Stands,
        /// The user's part.
        pub part: Part,
        /// Which step is wanted.
        pub step: Step,
        /// The version of the set of states.
        pub set_version: u32,
        /// When it is looked at again.
        pub due_at: Timestamp,
        /// The wait that follows it up.
        pub wait: WaitId,
        /// When.
        pub created_at: Timestamp,
    }
}

statements! { "situation":
    INSERT = insert Situation, "";
    LATEST = hot select Situation, "WHERE owner = $1 ORDER BY created_at DESC, id DESC LIMIT $2";
}

/// Adds a judgement.
pub fn insert(tx: &mut OwnerTx<'_, '_>, situation: &Situation) -> Result<()> {
    tx.insert(&INSERT, situation)?;
    tx.changed(situation.id);
    Ok(())
}

/// An owner's judgements, newest first.
pub fn latest(tx: &mut Tx<'_>, owner: OwnerId, limit: i64) -> Result<Vec<Situation>> {
    tx.all(&LATEST, params![owner, limit])
}
