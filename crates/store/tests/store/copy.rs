//! A copy of one owner is the same owner elsewhere, and opens no door.

use base::{DeviceId, Digest, EventId, Id as _, OwnerId, SessionId};
use domain::state::ActionState;
use store::device::{Device, Request};
use store::owner::PrincipalKind;
use store::{Database, Store, StoreError};
use testkit::stores::{Harness, TempFolder, block_on, options};

use crate::effect_records::{action, grant};
use crate::fixtures::*;
use crate::raw::Raw;

/// An owner with a duty, a grant, an action that has come some way, a device and a lease, a code for another
/// device and an answer that is kept.
fn filled(h: &Harness) -> (base::ActionId, Digest) {
    let (duty, version) = stored_duty(h);
    let (granted, mut act) = (grant(h, duty.id, version.id), action(h, "call"));
    let token = Digest::of(b"token");
    let device = Device {
        id: h.id::<DeviceId>(),
        owner: h.owner,
        principal: h.user,
        kind: store::owner::PrincipalKind::User,
        source: h.device,
        name: "phone".into(),
        token_digest: token,
        created_at: now(h),
        revoked_at: None,
        operator: false,
    };
    let (id, main, holder, asked) = (act.id, h.main, h.id(), h.id::<EventId>().uuid());
    let answer = Request { digest: Digest::of(b"asked"), answer: "{}".into() };
    let later = now(h).plus_ms(60_000);
    h.write(move |tx| {
        store::device::insert(tx, &device)?;
        store::device::offer_code(tx, Digest::of(b"code"), PrincipalKind::User, later)?;
        store::device::answered(tx, device.id, asked, &answer)?;
        store::grant::insert(tx, &granted)?;
        store::action::insert(tx, &act, &[])?;
        act.state = ActionState::AwaitingApproval;
        store::action::put(tx, &act, ActionState::Proposed, None)?;
        store::session::take(tx, main, holder, 30_000)?;
        Ok(())
    })
    .unwrap();
    (id, token)
}

fn stranger(h: &Harness) -> OwnerId {
    let (id, main): (OwnerId, SessionId) = (h.id(), h.id());
    let mut owner = h.owner_record();
    (owner.id, owner.main_session) = (id, main);
    let principals = h.principals().map(|mut principal| {
        (principal.owner, principal.id) = (id, h.id());
        principal
    });
    h.unowned(move |tx| store::owner::create(tx, &owner, &principals)).unwrap();
    id
}

#[test]
fn a_copy_has_every_row_of_its_owner_and_no_other() {
    everywhere(|h| {
        let (action, token) = filled(&h);
        stranger(&h);
        let folder = TempFolder::new();
        let file = folder.path().join("copy.db");
        block_on(h.store.copy_owner(h.owner, file.clone())).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::mode(&file.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
        let opened = options(Database::Sqlite(file.clone()), h.clock.clone(), &h.ids, true);
        let copy = Store::open(opened).unwrap();
        let (owner, main) = (h.owner, h.main);
        type Seen = (store::owner::Owner, store::action::Action, Vec<store::change::Audited>);
        let read = move |tx: &mut store::Tx<'_>| -> store::Result<Seen> {
            let audit = store::change::audit(tx, owner, 0, 99)?;
            Ok((store::owner::get(tx, owner)?, store::action::get(tx, action)?, audit))
        };
        assert_eq!(block_on(copy.read(read)).unwrap(), h.read(read).unwrap());
        let (owners, door, lane) = block_on(copy.read(move |tx| {
            let owners = store::owner::all(tx)?.len();
            Ok((owners, store::device::by_token(tx, token)?, store::session::get(tx, main)?))
        }))
        .unwrap();
        assert_eq!((owners, door, lane.holder, lane.fence), (1, None, None, 1));
        // What was copied is guarded like the original.
        let txn = h.id::<EventId>().uuid();
        let moved = block_on(copy.write(owner, txn, move |tx| {
            let mut action = store::action::get(tx, action)?;
            action.state = ActionState::Effective;
            store::action::put(tx, &action, ActionState::AwaitingApproval, None)
        }));
        assert!(matches!(moved, Err(StoreError::Refused(_))), "{moved:?}");
        drop(copy);
        counted(&h, &file);
        let again = block_on(h.store.copy_owner(h.owner, file));
        assert!(matches!(again, Err(StoreError::Open(_))), "{again:?}");
        let nobody = block_on(h.store.copy_owner(h.id(), folder.path().join("other.db")));
        assert_eq!(nobody, Err(StoreError::Missing("owner")));
    });
}

/// Each table has as many rows of the owner as the original; what is left out is empty.
fn counted(h: &Harness, file: &std::path::Path) {
    let (mut here, mut there) = (Raw::beside(h), Raw::open(&Database::Sqlite(file.to_owned())));
    let names = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
    let hex = h.owner.uuid().simple().to_string();
    let mine = if here.name() == "sqlite" { format!("x'{hex}'") } else { format!("'{}'", h.owner) };
    let mut filled = 0;
    for name in there.texts(names) {
        let owned = match name.as_str() {
            "installation" | "node" => continue,
            "pairing" | "request" => {
                assert!(here.number(&format!("SELECT COUNT(*) FROM {name}")) > 0, "{name}");
                "1 = 0".to_owned()
            }
            "owner" => format!("id = {mine}"),
            _ => format!("owner = {mine}"),
        };
        let count = |raw: &mut Raw, rows: &str| {
            raw.texts(&format!("SELECT CAST(COUNT(*) AS TEXT) FROM {name} WHERE {rows}")).remove(0)
        };
        let (wanted, found) = (count(&mut here, &owned), count(&mut there, "1 = 1"));
        assert_eq!(found, wanted, "{name}");
        filled += usize::from(found != "0");
    }
    assert!(filled >= 10, "{filled} tables have rows");
}
