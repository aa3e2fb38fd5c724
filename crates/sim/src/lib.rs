//! The simulator: one thread, one seed, virtual time, the real store and the real stages, a scripted
//! model and a world that loses answers, answers late, repeats and reorders (DESIGN section 10).
//!
//! It calls the very claims and records that production calls, one at a time, and plays what happens
//! between them. Every run leaves a plain history that an independent program judges.

pub mod attack;
pub mod crash;
pub mod dump;
pub mod history;
pub mod judge;
pub mod points;
pub mod sim;
pub mod stories;
pub mod story;
pub mod world;

mod crew;
mod errands;
mod idle;
mod path;
mod person;
mod senders;
mod turn;
