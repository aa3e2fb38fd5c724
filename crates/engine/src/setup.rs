//! Set-up of the first owner, and the pairing of devices.

use base::{DeviceId, Digest, OwnerId, Secret, SessionId, Timestamp};
use domain::event::{Dial, Trust};
use domain::words::Language;
use store::device::Device;
use store::owner::{Owner, Principal, PrincipalKind};
use store::session::{Session, SessionKind};
use store::source::{Source, SourceKind};
use store::{OwnerTx, Result, StoreError};

use crate::{Context, control};

/// What the owner is called and where they live, to begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seed {
    /// Name.
    pub name: String,
    /// IANA zone.
    pub zone: String,
    /// In which language the server speaks to them; `None`: the first paired browser's.
    pub language: Option<Language>,
}

/// The owner of this installation; made now if there is none.
pub async fn owner(cx: &Context, seed: Seed) -> Result<Owner> {
    domain::schedule::zone(&seed.zone).map_err(|e| StoreError::Open(e.to_string()))?;
    if let Some(owner) = cx.store.read(store::owner::all).await?.into_iter().next() {
        return Ok(owner);
    }
    create(cx, seed).await
}

/// One more owner, with the principals, the timer and the conversation that each has.
pub async fn create(cx: &Context, seed: Seed) -> Result<Owner> {
    let now = cx.clock.now();
    let id: OwnerId = cx.id();
    let owner = Owner {
        id,
        name: seed.name,
        zone: seed.zone,
        change_seq: 0,
        audit_seq: 0,
        audit_head: Digest::ZERO,
        main_session: cx.id(),
        timer_source: cx.id(),
        dial: Dial::default(),
        language: seed.language,
        month_cap_micro_usd: base::MicroUsd(cx.limits.owner_month_micro_usd),
        created_at: now,
    };
    let principals =
        [(PrincipalKind::User, owner.name.clone()), (PrincipalKind::Policy, "policy".into())]
            .map(|(kind, name)| Principal { id: cx.id(), owner: id, kind, name, created_at: now });
    let timer = Source::new(owner.timer_source, id, SourceKind::Timer, "timer", Trust::System, now);
    let main = session(owner.main_session, id, SessionKind::Main, now);
    let made = owner.clone();
    cx.store
        .write_unowned(move |tx| {
            store::owner::create(tx, &owner, &principals)?;
            store::source::insert(tx, &timer)?;
            store::session::insert(tx, &main)
        })
        .await?;
    Ok(made)
}

/// A session that nobody has run yet.
pub(crate) fn session(id: SessionId, owner: OwnerId, kind: SessionKind, now: Timestamp) -> Session {
    Session {
        id,
        owner,
        agent: "main".into(),
        kind,
        fence: 0,
        holder: None,
        lease_until: None,
        not_before: Timestamp::from_micros(0),
        model_failures: 0,
        runs: 0,
        window_start: 0,
        prefix: None,
        prefix_digest: None,
        created_at: now,
    }
}

/// A device and the token that only it will know.
#[derive(Debug, Clone)]
pub struct Paired {
    /// The device.
    pub device: Device,
    /// Its token: 256 random bits in hexadecimal digits.
    pub token: Secret,
}

/// Adds a device of the user.
pub fn add_device(cx: &Context, tx: &mut OwnerTx<'_, '_>, name: &str) -> Result<Paired> {
    add(cx, tx, name, PrincipalKind::User, false)
}

/// Adds the device of the user that the server leaves to whoever runs the machine.
pub fn add_operator(cx: &Context, tx: &mut OwnerTx<'_, '_>, name: &str) -> Result<Paired> {
    add(cx, tx, name, PrincipalKind::User, true)
}

/// Adds a device of the supervisor: with the first one there is a supervisor (DEL-25).
pub fn add_supervisor(cx: &Context, tx: &mut OwnerTx<'_, '_>, name: &str) -> Result<Paired> {
    let (owner, kind) = (tx.owner(), PrincipalKind::Supervisor);
    match store::owner::principal(tx, owner, kind) {
        Ok(_) => {}
        Err(StoreError::Missing(_)) => {
            let (name, created_at) = ("supervisor".into(), tx.now());
            let supervisor = Principal { id: cx.id(), owner, kind, name, created_at };
            store::owner::add_principal(tx, &supervisor)?;
        }
        Err(error) => return Err(error),
    }
    add(cx, tx, name, kind, false)
}

fn add(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    name: &str,
    kind: PrincipalKind,
    operator: bool,
) -> Result<Paired> {
    let bytes: [u8; 32] = cx.ids.bytes();
    let text = bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let token = Secret::new(&text).map_err(|e| StoreError::Corrupt(e.to_string()))?;
    let owner = tx.owner();
    let principal = store::owner::principal(tx, owner, kind)?.id;
    let id: DeviceId = cx.id();
    let (of, trust) = (SourceKind::Device, Trust::User);
    let source = Source::new(cx.id(), owner, of, id.to_string(), trust, tx.now());
    let device = Device {
        id,
        owner,
        principal,
        kind,
        source: source.id,
        name: name.chars().take(60).collect(),
        token_digest: Digest::of(text.as_bytes()),
        operator,
        created_at: tx.now(),
        revoked_at: None,
    };
    store::source::insert(tx, &source)?;
    store::device::insert(tx, &device)?;
    Ok(Paired { device, token })
}

/// Letters and digits that cannot be taken for each other.
const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
/// How long a pairing code can be used.
pub const CODE_LASTS_MS: u64 = 15 * 60_000;

/// A code that is shown this once.
#[derive(Debug, Clone)]
pub struct Offer {
    /// Such as `K7PM-Q3XT`.
    pub code: String,
    /// Until when it can be used.
    pub expires_at: Timestamp,
}

/// Puts up a new one-time code for a device of the user, 40 random bits, usable once and for a quarter hour,
/// in place of all that were not used.
pub fn offer_code(cx: &Context, tx: &mut OwnerTx<'_, '_>) -> Result<Offer> {
    offer(cx, tx, PrincipalKind::User)
}

/// The same for a device of that kind of principal.
pub(crate) fn offer(cx: &Context, tx: &mut OwnerTx<'_, '_>, kind: PrincipalKind) -> Result<Offer> {
    let bytes: [u8; 8] = cx.ids.bytes();
    let letters: Vec<char> =
        bytes.iter().map(|b| char::from(ALPHABET[usize::from(b % 32)])).collect();
    let code: String = format!("{}-{}", join(&letters[..4]), join(&letters[4..]));
    let expires_at = tx.now().plus_ms(CODE_LASTS_MS);
    store::device::offer_code(tx, Digest::of(code.as_bytes()), kind, expires_at)?;
    Ok(Offer { code, expires_at })
}

fn join(letters: &[char]) -> String {
    letters.iter().collect()
}

/// Uses a code up and adds the device, which reads this language. `None`: the code is wrong, used or too old.
pub fn redeem(
    cx: &Context,
    tx: &mut OwnerTx<'_, '_>,
    code: &str,
    name: &str,
    language: Option<Language>,
) -> Result<Option<Paired>> {
    let digest = Digest::of(code.trim().to_ascii_uppercase().as_bytes());
    let paired = match store::device::redeem_code(tx, digest)? {
        Some(PrincipalKind::Supervisor) => add_supervisor(cx, tx, name)?,
        Some(PrincipalKind::User) => add_device(cx, tx, name)?,
        Some(PrincipalKind::Policy) | None => return Ok(None),
    };
    // Nobody has said in which language to speak: the first paired browser of the user's.
    let unsaid = store::owner::locked(tx)?.language.is_none();
    if paired.device.kind == PrincipalKind::User && language.is_some() && unsaid {
        let wish = control::Settings { language, ..control::Settings::default() };
        control::settings(tx, &paired.device, &wish)?;
    }
    Ok(Some(paired))
}
