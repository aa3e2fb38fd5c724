//! Devices with their tokens, one-time pairing codes, and what clients wrote under which id.

use base::{DeviceId, Digest, OwnerId, PrincipalId, SourceId, Timestamp};
use uuid::Uuid;

use crate::error::{Result, StoreError};
use crate::owner::PrincipalKind;
use crate::sql::statements;
use crate::tx::{OwnerTx, Tx};
use crate::value::{params, record};

record! {
    /// A client of a principal, with a revocable token.
    pub struct Device in "device" {
        /// Its id.
        pub id: DeviceId,
        /// Whose.
        pub owner: OwnerId,
        /// For whom it may write.
        pub principal: PrincipalId,
        /// Of which kind that is, written at the pairing: it never changes.
        pub kind: PrincipalKind,
        /// The source of its messages.
        pub source: SourceId,
        /// As the person named it.
        pub name: String,
        /// SHA-256 of its token; the token itself is nowhere.
        pub token_digest: Digest,
        /// Whether the server made it for whoever runs the machine.
        pub operator: bool,
        /// When it was paired.
        pub created_at: Timestamp,
        /// When it was revoked.
        pub revoked_at: Option<Timestamp>,
    }
}

/// A request that a device made before under the same id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Digest of what it asked.
    pub digest: Digest,
    /// The answer it got.
    pub answer: String,
}

statements! { "device":
    INSERT = insert Device, "";
    BY_TOKEN = hot select Device, "WHERE token_digest = $1 AND revoked_at IS NULL";
    BY_ID = select Device, "WHERE id = $1 AND owner = $2";
    REVOKE = "UPDATE device SET revoked_at = $3 WHERE id = $1 AND owner = $2 AND revoked_at IS NULL";
    OFFER = "INSERT INTO pairing (code_digest, owner, expires_at, kind) VALUES ($1, $2, $3, $4)
        ON CONFLICT DO NOTHING";
    REDEEM = "UPDATE pairing SET used_at = $3
        WHERE code_digest = $1 AND owner = $2 AND used_at IS NULL AND expires_at > $3
        RETURNING kind";
    OFFERED_TO = "SELECT owner FROM pairing WHERE code_digest = $1";
    CODES = "SELECT COUNT(*) FROM pairing WHERE owner = $1 AND used_at IS NULL AND expires_at > $2";
    FORGET_CODES = "DELETE FROM pairing WHERE owner = $1 AND used_at IS NULL AND kind = $2";
    DEVICES = select Device, "WHERE owner = $1 ORDER BY created_at, id";
    REQUEST = hot "SELECT digest, answer FROM request WHERE device = $1 AND id = $2";
    INSERT_REQUEST = hot "INSERT INTO request (device, id, owner, digest, answer, at)
        VALUES ($1, $2, $3, $4, $5, $6)";
}

/// Adds a device.
pub fn insert(tx: &mut OwnerTx<'_, '_>, device: &Device) -> Result<()> {
    tx.insert(&INSERT, device)?;
    tx.changed(device.id);
    tx.audit(Some(device.principal), "pair", device.id, Some(device.token_digest));
    Ok(())
}

/// The device that a token belongs to, if it is not revoked.
pub fn by_token(tx: &mut Tx<'_>, token_digest: Digest) -> Result<Option<Device>> {
    tx.one(&BY_TOKEN, params![token_digest])
}

/// One device of an owner, revoked or not.
pub fn get(tx: &mut Tx<'_>, owner: OwnerId, id: DeviceId) -> Result<Device> {
    tx.one(&BY_ID, params![id, owner])?.ok_or(StoreError::Missing("device"))
}

/// All devices of an owner.
pub fn all(tx: &mut Tx<'_>, owner: OwnerId) -> Result<Vec<Device>> {
    tx.all(&DEVICES, params![owner])
}

/// Ends a device's access from now on; `false` if it had none. Messages it sent stay.
pub fn revoke(tx: &mut OwnerTx<'_, '_>, id: DeviceId, by: Option<PrincipalId>) -> Result<bool> {
    let (owner, now) = (tx.owner(), tx.now());
    let revoked = tx.run(&REVOKE, params![id, owner, now])? == 1;
    if revoked {
        tx.changed(id);
        tx.audit(by, "revoke", id, None);
    }
    Ok(revoked)
}

/// Puts up a one-time code for a device of this kind of principal, in place of unused ones.
pub fn offer_code(
    tx: &mut OwnerTx<'_, '_>,
    code_digest: Digest,
    kind: PrincipalKind,
    expires_at: Timestamp,
) -> Result<()> {
    let owner = tx.owner();
    tx.run(&FORGET_CODES, params![owner, kind])?;
    tx.run(&OFFER, params![code_digest, owner, expires_at, kind])?;
    Ok(())
}

/// Whose code this is, used or not.
pub fn code_owner(tx: &mut Tx<'_>, code_digest: Digest) -> Result<Option<OwnerId>> {
    tx.row(&OFFERED_TO, params![code_digest])?.map(|row| row.get(0)).transpose()
}

/// Uses a code up: whose device it makes. `None`: it was used before or is too old.
pub fn redeem_code(tx: &mut OwnerTx<'_, '_>, code_digest: Digest) -> Result<Option<PrincipalKind>> {
    let (owner, now) = (tx.owner(), tx.now());
    tx.row(&REDEEM, params![code_digest, owner, now])?.map(|row| row.get(0)).transpose()
}

/// What a device asked before under this id.
pub fn request(tx: &mut Tx<'_>, device: DeviceId, id: Uuid) -> Result<Option<Request>> {
    tx.row(&REQUEST, params![device, id])?
        .map(|row| Ok(Request { digest: row.get(0)?, answer: row.get(1)? }))
        .transpose()
}

/// Keeps the first answer to a request, so that a repeat gets the same.
pub fn answered(
    tx: &mut OwnerTx<'_, '_>,
    device: DeviceId,
    id: Uuid,
    request: &Request,
) -> Result<()> {
    let (owner, now) = (tx.owner(), tx.now());
    let values = params![device, id, owner, request.digest, request.answer, now];
    match tx.run(&INSERT_REQUEST, values)? {
        1 => Ok(()),
        _ => Err(StoreError::Duplicate("request".into())),
    }
}
