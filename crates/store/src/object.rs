//! Objects: ids that the tool layer issued to a task version. Tools that ask for one accept nothing
//! else (TOOL-15); an id from a mail or a page is not in here.

use base::{BodyId, Digest, ObjectId, OwnerId, RunId, SessionId, TaskVersionId, Timestamp};

use crate::error::Result;
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record};

record! {
    /// One issued id. Never changed; a later issue of the same id is another row.
    pub struct Object in "object" {
        /// Our id of it.
        pub id: ObjectId,
        /// Whose.
        pub owner: OwnerId,
        /// To which lane.
        pub session: SessionId,
        /// To which version; none in the owner's own conversation.
        pub task_version: Option<TaskVersionId>,
        /// What it is: `quote`, `url`.
        pub kind: String,
        /// The id as the tool gave it.
        pub value: String,
        /// What was known of it then.
        pub snapshot: Option<BodyId>,
        /// Digest of that.
        pub digest: Digest,
        /// In which run.
        pub run: RunId,
        /// By which call of it; none for what stood in the run's input.
        pub call_id: Option<String>,
        /// Where it comes from.
        pub provenance: String,
        /// It counts until then.
        pub expires_at: Option<Timestamp>,
        /// When it was issued.
        pub created_at: Timestamp,
    }
}

statements! { "object":
    INSERT = hot insert Object, "";
    FIND = hot select Object, "WHERE session = $1 AND value = $2 AND ($3 = '' OR kind = $3)
          AND task_version IS NOT DISTINCT FROM $4 AND (expires_at IS NULL OR expires_at > $5)
        ORDER BY created_at DESC, id DESC LIMIT 1";
}

/// Issues an id.
pub fn issue(tx: &mut OwnerTx<'_, '_>, object: &Object) -> Result<()> {
    tx.insert(&INSERT, object).map(|_| ())
}

/// The newest object that counts now, for this version; `kind` `None`: of any kind (P6).
pub fn find(
    tx: &mut Tx<'_>,
    session: SessionId,
    version: Option<TaskVersionId>,
    value: &str,
    kind: Option<&str>,
    now: Timestamp,
) -> Result<Option<Object>> {
    let kind = kind.unwrap_or_default();
    tx.one(&FIND, params![session, value, kind, version, now])
}
