//! Connections that break: in COMMIT, inside a closure, and with the whole server.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use store::{Database, OwnerTx, Result, StoreError};
use testkit::postgres::TestPostgres;
use testkit::postgres_proxy::{Cut, PostgresProxy};
use testkit::stores::Harness;

use crate::fixtures::*;
use crate::raw::Raw;

/// A store behind a proxy that can lose a COMMIT.
fn behind_proxy(inline: bool) -> Option<(Harness, PostgresProxy)> {
    let server = TestPostgres::start_or_skip()?;
    let proxy = PostgresProxy::start(&server.database().unwrap()).unwrap();
    let h = Harness::new(Database::Postgres(proxy.url().to_owned()), None, inline, |_| {});
    Some((h, proxy))
}

/// A closure that counts how often it is run.
fn counted(
    h: &Harness,
    times: &Arc<AtomicU32>,
) -> (base::BodyId, impl FnOnce(&mut OwnerTx<'_, '_>) -> Result<i64> + Send + 'static) {
    let (id, put) = put(h, "once");
    let times = times.clone();
    (id, move |tx: &mut OwnerTx<'_, '_>| {
        times.fetch_add(1, Ordering::SeqCst);
        put(tx)?;
        Ok(tx.seq())
    })
}

#[test]
fn a_commit_that_never_arrived_is_an_error_and_is_not_run_again() {
    for inline in [false, true] {
        let Some((h, proxy)) = behind_proxy(inline) else { return };
        let times = Arc::new(AtomicU32::new(0));
        let (id, work) = counted(&h, &times);
        proxy.cut_next_commit(Cut::Before);
        let answer = h.write(work);
        assert_eq!(answer, Err(StoreError::Unavailable("the commit did not happen".into())));
        assert_eq!((proxy.cuts(), times.load(Ordering::SeqCst)), (1, 1));
        assert_eq!((is_stored(&h, id), change_seq(&h)), (false, 0));
        let (id, work) = counted(&h, &times);
        assert_eq!(h.write(work), Ok(1));
        assert!(is_stored(&h, id));
    }
}

#[test]
fn a_commit_whose_answer_was_lost_is_found_by_its_witness_and_counts_once() {
    for inline in [false, true] {
        let Some((h, proxy)) = behind_proxy(inline) else { return };
        let mut signals = h.store.signals();
        let times = Arc::new(AtomicU32::new(0));
        let (id, work) = counted(&h, &times);
        proxy.cut_next_commit(Cut::After);
        assert_eq!(h.write(work), Ok(1));
        assert_eq!((proxy.cuts(), times.load(Ordering::SeqCst)), (1, 1));
        assert_eq!((is_stored(&h, id), change_seq(&h)), (true, 1));
        assert_eq!(signals.try_recv(), Ok(store::Signal { owner: h.owner, seq: 1 }));
        let (_, work) = counted(&h, &times);
        assert_eq!(h.write(work), Ok(2));
    }
}

#[test]
fn a_lost_commit_is_not_taken_for_another_writers() {
    let Some((h, proxy)) = behind_proxy(false) else { return };
    const WRITERS: usize = 6;
    const CUTS: usize = 8;
    // While others write to the same owner, every number may be taken by one of them.
    let outcomes: Vec<(base::BodyId, Result<i64>)> = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (h, proxy) = (&h, &proxy);
                scope.spawn(move || {
                    let one = |n: usize| {
                        if writer == 0 {
                            let cut = if n.is_multiple_of(2) { Cut::Before } else { Cut::After };
                            proxy.cut_next_commit(cut);
                        }
                        let (id, work) = counted(h, &Arc::default());
                        (id, h.write(work))
                    };
                    (0..CUTS).map(one).collect::<Vec<_>>()
                })
            })
            .collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    assert!(proxy.cuts() > 0);
    let mut numbers: Vec<i64> = Vec::new();
    for (id, outcome) in &outcomes {
        assert_eq!(is_stored(&h, *id), outcome.is_ok(), "{outcome:?}");
        numbers.extend(outcome.as_ref().ok());
    }
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=change_seq(&h)).collect::<Vec<_>>());
}

#[test]
fn a_lost_commit_without_a_witness_is_told_as_unknown() {
    let Some((h, proxy)) = behind_proxy(false) else { return };
    let source =
        store::source::Source { id: h.id(), name: "second".into(), ..h.source_record(h.timer) };
    let id = source.id;
    proxy.cut_next_commit(Cut::After);
    let answer = h.unowned(move |tx| store::source::insert(tx, &source));
    assert_eq!(answer, Err(StoreError::OutcomeUnknown));
    // Read back, as the error says.
    assert!(h.read(move |tx| store::source::get(tx, id)).is_ok());
}

/// Ends every connection of the store on the server's side.
const CUT_ALL: &str = "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name = 'adjutant'";

#[test]
fn a_connection_that_breaks_inside_a_closure_leaves_nothing_and_is_made_again() {
    let Some(h) = Harness::postgres(false, |_| {}) else { return };
    let (database, owner) = (h.database.clone(), h.owner);
    let (half, put_half) = put(&h, "half");
    let broken = h.write(move |tx| {
        put_half(tx)?;
        assert!(Raw::open(&database).number(CUT_ALL) > 0);
        store::owner::get(tx, owner).map(|_| ())
    });
    assert!(matches!(broken, Err(StoreError::Unavailable(_))), "{broken:?}");
    assert_eq!((is_stored(&h, half), change_seq(&h)), (false, 0));
    let (next, put_next) = put(&h, "next");
    h.write(put_next).unwrap();
    assert!(is_stored(&h, next));
}

#[test]
fn idle_connections_that_broke_are_noticed_before_they_are_used() {
    let Some(h) = Harness::postgres(false, |_| {}) else { return };
    for round in 0..5 {
        // All writers and readers get a connection, which then breaks behind their back.
        for _ in 0..6 {
            h.write(|_| Ok(())).unwrap();
            h.read(|_| Ok(())).unwrap();
        }
        assert!(Raw::beside(&h).number(CUT_ALL) > 0);
        let (id, put) = put(&h, "after");
        assert_eq!(h.write(put), Ok(()), "round {round}");
        assert!(is_stored(&h, id));
    }
}

#[test]
fn a_statement_that_failed_leaves_its_connection_and_its_prepared_statements_usable() {
    let Some(h) = Harness::postgres(true, |_| {}) else { return };
    for _ in 0..3 {
        let wait = wait(&h, "call-1");
        let twice = h.write(move |tx| {
            store::wait::insert(tx, &wait)?;
            store::wait::insert(tx, &wait)
        });
        assert!(matches!(twice, Err(StoreError::Duplicate(_))), "{twice:?}");
    }
    let mut raw = Raw::beside(&h);
    let ours = "FROM pg_stat_activity WHERE application_name = 'adjutant'
        AND datname = current_database()";
    assert_eq!(raw.number(&format!("SELECT count(*) {ours}")), 1);
    let started = raw.texts(&format!("SELECT backend_start::text {ours}"));
    let wait = wait(&h, "call-1");
    h.write(move |tx| store::wait::insert(tx, &wait)).unwrap();
    assert_eq!(raw.texts(&format!("SELECT backend_start::text {ours}")), started);
}

/// Starts the server whose process this was again, in the same way.
struct Stopped {
    program: std::path::PathBuf,
    arguments: Vec<String>,
    user: (u32, u32),
    folder: std::path::PathBuf,
}

impl Stopped {
    /// Ends a server at once, as a crash would.
    fn stop(server: &TestPostgres) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        let folder = server.folder().unwrap().join("data");
        let pid_file = folder.join("postmaster.pid");
        let text = std::fs::read_to_string(&pid_file).unwrap();
        let pid = text.lines().next().unwrap().to_owned();
        let process = std::path::PathBuf::from(format!("/proc/{pid}"));
        let owner = std::fs::metadata(&process).unwrap();
        let command = std::fs::read(process.join("cmdline")).unwrap();
        let mut words = command
            .split(|byte| *byte == 0)
            .map(|word| String::from_utf8(word.to_vec()).unwrap())
            .collect::<Vec<_>>();
        words.pop();
        let stopped = Stopped {
            program: std::fs::read_link(process.join("exe")).unwrap(),
            arguments: words.split_off(1),
            user: (owner.uid(), owner.gid()),
            folder,
        };
        let quit = Command::new("kill").args(["-QUIT", &pid]).status().unwrap();
        assert!(quit.success());
        while process.join("exe").exists() && std::fs::read_link(process.join("exe")).is_ok() {
            std::thread::yield_now();
        }
        stopped
    }

    fn start(&self) -> Child {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(&self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if std::fs::metadata("/proc/self").is_ok() && self.user.0 != current_user() {
            command.uid(self.user.0).gid(self.user.1);
        }
        command.spawn().unwrap()
    }
}

fn current_user() -> u32 {
    use std::os::unix::fs::MetadataExt as _;
    std::fs::metadata("/proc/self").unwrap().uid()
}

#[test]
fn a_server_that_is_started_again_has_what_was_acknowledged_and_is_found_again() {
    if TestPostgres::start_or_skip().is_none() {
        return;
    }
    let server = TestPostgres::start_own().unwrap();
    let h = Harness::new(Database::Postgres(server.database().unwrap()), None, false, |_| {});
    let (kept, put_kept) = put(&h, "kept");
    h.write(put_kept).unwrap();
    let stopped = Stopped::stop(&server);
    let (lost, put_lost) = put(&h, "lost");
    let down = h.write(put_lost);
    assert!(matches!(down, Err(StoreError::Unavailable(_))), "{down:?}");
    let mut process = stopped.start();
    let back = loop {
        let (id, put_back) = put(&h, "back");
        match h.write(put_back) {
            Ok(()) => break id,
            // Refused while it starts; nothing was written, so another body is tried.
            Err(StoreError::Unavailable(_)) => assert!(process.try_wait().unwrap().is_none()),
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!([kept, lost, back].map(|id| is_stored(&h, id)), [true, false, true]);
    assert_eq!(change_seq(&h), 2);
    drop(h);
    drop(server);
    process.wait().unwrap();
}

#[test]
fn a_claim_that_is_still_on_its_way_when_its_node_starts_again_is_void() {
    let Some(h) = Harness::postgres(false, |_| {}) else { return };
    let (mut former, mut beside) = (Raw::beside(&h), Raw::beside(&h));
    // What a process had under way when it was killed: all but its COMMIT has been done.
    let claim = "BEGIN; SELECT 1 FROM owner FOR UPDATE; UPDATE session SET lease_until = 1,
        holder = (SELECT incarnation FROM node WHERE name = 'test')";
    former.run(claim).unwrap();
    let options = h.options();
    let start = std::thread::spawn(move || store::Store::open(options).map(drop));
    let waits = "SELECT COUNT(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    while beside.number(waits) == 0 && !start.is_finished() {
        std::thread::yield_now();
    }
    former.run("COMMIT").unwrap();
    assert_eq!(start.join().unwrap(), Ok(()));
    let main = h.main;
    assert_eq!(h.read(move |tx| store::session::get(tx, main)).unwrap().holder, None);
}
