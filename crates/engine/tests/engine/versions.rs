//! New versions of a duty: what they void, what they carry on, and what outside events may change
//! (DEL-21, DEL-22, DEL-26).

use base::{DutyId, ProposalId};
use domain::effect::{Observation, Sight};
use domain::state::{ActionState, ApprovalState, GrantState, ProposalState, TaskVersionState};
use engine::control::{self, Decided};
use store::duty::{Origin, TaskVersion};
use testkit::world::FakeTool;

use crate::effects::Room;
use crate::outside::Small;

fn versions(room: &Room, duty: DutyId) -> Vec<TaskVersion> {
    room.talk.read(move |tx, _| store::duty::versions(tx, duty))
}

/// The user asks for another limit and gets the card; its id.
fn ask(room: &Room, duty: DutyId, total: &str) -> ProposalId {
    room.talk.say(&format!("change {duty} to at most {total} in all"));
    room.talk.turn();
    room.talk.read(|tx, owner| store::proposal::all(tx, owner, 1)).remove(0).id
}

fn confirm(room: &Room, id: ProposalId) -> Decided {
    room.tap(move |cx, tx, device| {
        let card = store::proposal::get(tx, device.owner, id)?;
        control::confirm(cx, tx, device, id, card.digest)
    })
}

#[test]
fn a_new_version_voids_what_is_not_sent_and_refills_no_limit() {
    let down = || Sight::Unreadable("down".into());
    let sights = [down(), down(), Sight::Absent];
    let mut room = Room::with(&[Observation::Lost("no answer".into())], &sights, true);
    let allow = Ok(r#"{"verdict":"allow","why":""}"#);
    room.talk.cx.reviewer = Small::says(&[allow.clone(), allow]);
    let (duty, session) = room.duty("3000.00 each, 5000.00 in all, 3 times");
    room.stages();
    room.after_ms(5_000);
    room.slot(session);
    room.stages();
    let states = |room: &Room| -> Vec<ActionState> {
        room.actions().into_iter().map(|action| action.state).collect()
    };
    assert_eq!(states(&room), [ActionState::AwaitingApproval, ActionState::Unknown]);

    let card = ask(&room, duty, "6000.00");
    let said = room.talk.said().pop().unwrap().1;
    assert_eq!(
        said,
        "Change \"A room\"? May, without asking, no longer: hotel.book, at most 3 times, HKD 3 000.00 \
         each, HKD 5 000.00 in all. May, without asking, new: hotel.book, at most 3 times, HKD 6 000.00 \
         in all."
    );
    assert_eq!(versions(&room, duty).len(), 1, "nothing is in force before the tap");
    let stale = ask(&room, duty, "9000.00");
    assert!(matches!(confirm(&room, card), Decided::Done(_)));
    assert_eq!(states(&room), [ActionState::Superseded, ActionState::Unknown]);
    let old = room.actions().remove(0).id;
    let approvals = room.talk.read(move |tx, _| store::approval::of_action(tx, old));
    assert_eq!(approvals[0].state, ApprovalState::Cancelled);
    let all: Vec<_> =
        versions(&room, duty).iter().map(|version| (version.n, version.state, version.origin)).collect();
    let current = TaskVersionState::Current;
    assert_eq!(
        all,
        [(1, TaskVersionState::Superseded, Origin::User), (2, current, Origin::User)]
    );
    let grants = room.talk.read(move |tx, _| store::grant::of_duty(tx, duty));
    let used: Vec<_> = grants
        .iter()
        .map(|grant| (grant.state, grant.total_minor, grant.reserved_minor, grant.spent_minor))
        .collect();
    assert_eq!(
        used,
        [
            (GrantState::Ended, Some(500_000), 260_000, 0),
            (GrantState::Active, Some(600_000), 0, 260_000),
        ]
    );
    // A card that was drafted for the version before changes nothing.
    match confirm(&room, stale) {
        Decided::Conflict(why) => assert!(why.contains("no longer in force"), "{why}"),
        Decided::Done(_) => panic!("it was confirmed"),
    }
    // What was sent goes on being reconciled.
    for _ in 0..8 {
        room.after_ms(300_000);
    }
    assert_eq!(states(&room), [ActionState::Superseded, ActionState::Blocked]);
}

#[test]
fn what_comes_from_outside_changes_words_only() {
    let room = Room::honest();
    let says = |text: &str| FakeTool { answers: vec![text.into()], ..FakeTool::default() };
    room.talk.world.tool("hotel.search", says("nothing"));
    let (duty, session) = room.duty("3000.00 each, 8200.00 in all, 3 times");
    // Its end would differ: that is the user's.
    let until = "2027-06-01T00:00:00Z";
    room.talk.world.tool("hotel.search", says(&format!("moved: A room in Kowloon; {until}")));
    room.slot(session);
    let proposals = room.talk.read(|tx, owner| store::proposal::all(tx, owner, 9));
    let states: Vec<_> = proposals.iter().map(|proposal| proposal.state).collect();
    assert_eq!((versions(&room, duty).len(), states), (1, vec![ProposalState::Confirmed]));

    // A version with that end, by the user's word; then the place alone moves.
    room.talk.world.tool("hotel.search", says("nothing"));
    let card = room.tap(move |cx, tx, device| {
        let version = store::duty::version(tx, duty)?;
        let text = store::event::body_text(tx, version.content)?;
        let text = text.replacen('{', &format!("{{\"until\":\"{until}\","), 1);
        let body = store::event::NewBody::text(
            cx.id(),
            text,
            "test".to_owned(),
            domain::event::Trust::User,
        );
        let content = body.id;
        let digest = store::event::put_body(tx, body)?;
        let like = store::proposal::all(tx, device.owner, 1)?.remove(0);
        let proposal = store::proposal::Proposal {
            id: cx.id(),
            kind: store::proposal::ProposalKind::ChangeDuty,
            duty: Some(duty),
            call_id: "by hand".into(),
            content,
            digest,
            state: ProposalState::Open,
            decided_by: None,
            expires_at: tx.now().plus_ms(60_000),
            created_at: tx.now(),
            ..like
        };
        store::proposal::insert(tx, &proposal)?;
        Ok(proposal.id)
    });
    assert!(matches!(confirm(&room, card), Decided::Done(_)));
    room.talk.world.tool("hotel.search", says(&format!("moved: A room in Kowloon; {until}")));
    room.slot(session);
    let last = versions(&room, duty).pop().unwrap();
    assert_eq!((last.n, last.origin), (3, Origin::External));
    let said = room.talk.said().pop().unwrap().1;
    assert_eq!(
        said,
        "News from outside changed what this duty goes by: Goal: \"A room is booked.\" becomes \"A room in \
         Kowloon\". What it may do is as before. Tell me if that is wrong."
    );
    let grants = room.talk.read(move |tx, _| store::grant::active(tx, duty));
    assert_eq!((grants.len(), grants[0].total_minor), (1, Some(820_000)));
}
