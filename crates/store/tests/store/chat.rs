//! What a person is told and what a person said: the states of a message, and the chat.

use domain::state::{MessageState, WorkItemState};
use store::StoreError;
use store::message::Entry;
use testkit::stores::Harness;

use crate::fixtures::*;

#[test]
fn a_message_is_delivered_once_and_its_call_speaks_once() {
    everywhere(|h| {
        let mut message = message(&h, "call-1", h.id(), 1);
        let (stored, id) = (message.clone(), message.id);
        let mut again = stored.clone();
        again.id = h.id();
        h.write(move |tx| store::message::insert(tx, &stored)).unwrap();
        let twice = h.write(move |tx| store::message::insert(tx, &again));
        assert!(matches!(twice, Err(StoreError::Duplicate(_))), "{twice:?}");
        let waiting = || h.read(|tx| store::message::undelivered(tx, 9)).unwrap();
        assert_eq!(waiting(), [message.clone()]);
        let (one, two) = (h.id(), h.id());
        let deliver = |to| h.write(move |tx| store::message::delivered(tx, id, to)).unwrap();
        // Not before it was offered.
        assert!(!deliver(one));
        let queued = h.clock.advance_ms(1);
        let queue = || h.write(move |tx| store::message::queue(tx, id)).unwrap();
        assert_eq!([queue(), queue()], [true, false]);
        let sent = h.clock.advance_ms(1);
        let send = || h.write(move |tx| store::message::send(tx, id)).unwrap();
        assert_eq!([send(), send()], [true, false]);
        assert_eq!(waiting(), []);
        let delivered = h.clock.advance_ms(1);
        assert_eq!([deliver(one), deliver(two)], [true, false]);
        message.state = MessageState::Delivered;
        message.queued_at = Some(queued);
        message.sent_at = Some(sent);
        message.delivered_at = Some(delivered);
        message.delivered_to = Some(one);
        message.moved_at = delivered;
        assert_eq!(h.read(move |tx| store::message::get(tx, id)), Ok(message));
    });
}

/// A message of the user under change number `seq`, with its item.
fn said(h: &Harness, text: &str, seq: i64, state: WorkItemState) -> store::event::Event {
    let body = new_body(h, text);
    let mut event = event(h, h.device, text);
    event.body = body.id;
    event.seq = seq;
    let item = work_item(h, event.id, state);
    let stored = event.clone();
    h.write(move |tx| {
        store::event::put_body(tx, body)?;
        store::event::accept(tx, &stored)?;
        store::work_item::insert(tx, &item)
    })
    .unwrap();
    event
}

#[test]
fn the_chat_is_one_line_of_both_sides_and_pages_either_way() {
    everywhere(|h| {
        use base::Id as _;
        let asked = said(&h, "hello", 1, WorkItemState::Pending);
        let body = new_body(&h, "good day");
        let answer = message(&h, "call-1", body.id, 2);
        let stored = answer.clone();
        h.write(move |tx| {
            store::event::put_body(tx, body)?;
            store::message::insert(tx, &stored)
        })
        .unwrap();
        let more = said(&h, "thanks", 3, WorkItemState::Unrouted);
        let user = |event: &store::event::Event, text: &str| Entry {
            seq: event.seq,
            kind: "user".into(),
            id: event.id.uuid(),
            text: text.into(),
            at: event.received_at,
            state: "received".into(),
            duty: event.duty,
            proposal: None,
            action: None,
            about: None,
            late: true,
        };
        let agent = Entry {
            seq: 2,
            kind: "agent".into(),
            id: answer.id.uuid(),
            text: "good day".into(),
            at: answer.created_at,
            state: "generated".into(),
            duty: answer.duty,
            proposal: answer.proposal,
            action: answer.action,
            about: None,
            late: true,
        };
        let all = [user(&asked, "hello"), agent, user(&more, "thanks")];
        let owner = h.owner;
        let after =
            |seq, most| h.read(move |tx| store::message::chat_after(tx, owner, seq, most)).unwrap();
        let before = |seq, most| {
            h.read(move |tx| store::message::chat_before(tx, owner, seq, most)).unwrap()
        };
        assert_eq!(
            [after(0, 9), after(0, 2), after(1, 1)],
            [all.to_vec(), all[..2].to_vec(), all[1..2].to_vec()]
        );
        assert_eq!(
            [before(99, 9), before(99, 2), before(2, 9)],
            [all.to_vec(), all[1..].to_vec(), all[..1].to_vec()]
        );
        for entry in &all {
            let id = entry.id;
            let one = h.read(move |tx| store::message::chat_entry(tx, owner, id));
            assert_eq!(one.as_ref(), Ok(entry));
        }
        let (id, stranger) = (all[0].id, h.id());
        let foreign = h.read(move |tx| store::message::chat_entry(tx, stranger, id));
        assert_eq!(foreign, Err(StoreError::Missing("message")));
    });
}
