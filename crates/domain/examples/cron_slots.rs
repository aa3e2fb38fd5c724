//! Prints the slots of cron expressions, for the comparison with another program (tests/cron).
//!
//! A line of its input is a zone, an instant in seconds since 1970, how many slots after it, and an
//! expression, with tabs between. A line of its output has the slots in seconds since 1970, or `!` and
//! why the expression is refused.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufWriter, Write as _};

use base::Timestamp;
use domain::schedule::{Cron, Rule, zone};

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        writeln!(out, "{}", answer(&line?)?)?;
    }
    out.flush()?;
    Ok(())
}

fn answer(line: &str) -> Result<String, Error> {
    let mut fields = line.splitn(4, '\t');
    let mut field = || fields.next().ok_or("a line has four fields with tabs between");
    let zone = zone(field()?)?;
    let mut after = Timestamp::from_micros(field()?.parse::<i64>()? * 1_000_000);
    let count: usize = field()?.parse()?;
    let rule = match Cron::read(field()?) {
        Ok(cron) => Rule::Cron(cron),
        Err(error) => return Ok(format!("! {error}")),
    };
    let mut slots = String::new();
    for _ in 0..count {
        after = rule.next_after(&zone, after)?;
        write!(slots, "{} ", after.micros() / 1_000_000)?;
    }
    Ok(slots)
}
