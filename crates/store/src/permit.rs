//! The right to cause one effect.

use base::{ActionId, AttemptId, Digest, OwnerId, Timestamp};
use domain::effect::Effect;
use serde_json::{Map, Value};

use crate::attempt::Registered;

/// The right to send one request, with exactly the frozen content, until `send_by` (P5).
///
/// Only [`Store::dispatch`](crate::Store::dispatch) gives one, of an attempt whose commit is durable. It can not
/// be made elsewhere:
///
/// ```compile_fail,E0451
/// fn forge(registered: store::attempt::Registered) -> store::Permit {
///     store::Permit { registered }
/// }
/// ```
///
/// nor out of an attempt that is not committed:
///
/// ```compile_fail,E0624
/// fn early(registered: store::attempt::Registered) -> store::Permit {
///     store::Permit::of(registered)
/// }
/// ```
///
/// nor be used twice:
///
/// ```compile_fail,E0277
/// fn needs_clone<T: Clone>() {}
/// needs_clone::<store::Permit>();
/// ```
///
/// nor be given other content than what was released:
///
/// ```compile_fail,E0616
/// fn change(permit: &mut store::Permit) {
///     permit.registered = todo!();
/// }
/// ```
#[derive(Debug)]
#[must_use = "an attempt is on record: send it, or record that it was not sent"]
pub struct Permit {
    registered: Registered,
}

impl Permit {
    pub(crate) fn of(registered: Registered) -> Self {
        Permit { registered }
    }

    /// The attempt to record the answer under.
    pub fn attempt(&self) -> AttemptId {
        self.registered.attempt.id
    }

    /// Its action.
    pub fn action(&self) -> ActionId {
        self.registered.attempt.action
    }

    /// Whose.
    pub fn owner(&self) -> OwnerId {
        self.registered.attempt.owner
    }

    /// The tool's full name.
    pub fn tool(&self) -> &str {
        &self.registered.tool
    }

    /// As what it was released.
    pub fn effect(&self) -> Effect {
        self.registered.content.effect
    }

    /// The manifest entry that was released.
    pub fn entry(&self) -> Digest {
        self.registered.content.entry
    }

    /// Under which id the outside knows it.
    pub fn operation_id(&self) -> &str {
        &self.registered.attempt.operation_id
    }

    /// Not sent later than this.
    pub fn send_by(&self) -> Timestamp {
        self.registered.attempt.send_by
    }

    /// The request's arguments, with the operation id in the argument that the manifest names for it.
    pub fn arguments(&self, operation: Option<&str>) -> Map<String, Value> {
        self.registered.content.call(operation, self.operation_id())
    }
}
