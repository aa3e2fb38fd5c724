//! One test body on both engines: a fresh store with an owner in it, a clock that stands still and a
//! seeded source of ids (DESIGN section 4, "one conformance suite").

#![expect(clippy::expect_used, reason = "a test's set-up fails by panicking")]

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Once, OnceLock};

use base::{
    Clock as _, Digest, EventId, Id, IdSource, Incarnation, MicroUsd, OwnerId, PrincipalId,
    SessionId, SourceId, Timestamp,
};
use domain::event::Trust;
use store::attempt::Registered;
use store::owner::{Owner, Principal, PrincipalKind};
use store::session::{Session, SessionKind};
use store::source::{Source, SourceKind};
use store::{Database, Options, OwnerTx, Permit, Result, Store, Tx};

use crate::clock::FakeClock;
use crate::postgres::TestPostgres;

/// Where every test's clock stands at first: 2026-11-30T08:00:00Z.
pub const START: Timestamp = Timestamp::from_micros(1_796_025_600_000_000);

/// The seed of every test's ids.
pub const SEED: [u8; 32] = [7; 32];

/// How a folder's name begins; its process and a number follow.
const FOLDER: &str = "adjutant-scratch-";

/// A folder that nobody else may read, gone when this is.
#[derive(Debug)]
pub struct TempFolder(PathBuf);

impl TempFolder {
    /// Makes an empty one.
    pub fn new() -> Self {
        TempFolder::within(&std::env::temp_dir()).expect("a temporary folder")
    }

    /// Makes an empty one in memory, where the machine has that: for thousands of commits.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub fn in_memory() -> std::io::Result<Self> {
        static SWEPT: Once = Once::new();
        let memory = Some(PathBuf::from("/dev/shm")).filter(|memory| memory.is_dir());
        let base = memory.unwrap_or_else(std::env::temp_dir);
        SWEPT.call_once(|| forget_dead(&base));
        TempFolder::within(&base)
    }

    fn within(base: &Path) -> std::io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = base.join(format!("{FOLDER}{}-{count}", std::process::id()));
        // A process of the same number may have left one.
        drop(std::fs::remove_dir_all(&path));
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path)?;
        Ok(TempFolder(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

/// Takes away what killed processes left, where the machine says which processes there are.
fn forget_dead(base: &Path) {
    let processes = Path::new("/proc");
    if !processes.join("self").exists() {
        return;
    }
    for entry in std::fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let made_by = name.to_str().and_then(|name| name.strip_prefix(FOLDER)?.split('-').next());
        let made_by = made_by.filter(|number| number.parse::<u32>().is_ok());
        if made_by.is_some_and(|number| !processes.join(number).exists()) {
            // One that is somebody else's stays; nothing depends on it.
            drop(std::fs::remove_dir_all(entry.path()));
        }
    }
}

impl Default for TempFolder {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // A drop can tell nobody; what stays lies in the folder for temporary files.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// A store with an owner, and all that a test of it needs.
#[derive(Debug)]
pub struct Harness {
    /// The store. [`Harness::reopen`] puts another in its place.
    pub store: Store,
    /// Its clock.
    pub clock: Arc<FakeClock>,
    /// Makes ids.
    pub ids: IdSource,
    /// The owner's id.
    pub owner: OwnerId,
    /// The owner's user.
    pub user: PrincipalId,
    /// The rule's principal.
    pub policy: PrincipalId,
    /// The owner's conversation.
    pub main: SessionId,
    /// The source of timer events.
    pub timer: SourceId,
    /// The source of a device's messages.
    pub device: SourceId,
    /// Which database it is.
    pub database: Database,
    /// Without threads.
    pub inline: bool,
    /// The folder of the SQLite file.
    folder: Option<TempFolder>,
}

/// Databases that are made from nothing before one is kept to copy from: a process with one test, as
/// nextest starts them, has no use for a copy.
const MADE_ANEW: u32 = 2;

/// A database for one store. Bringing a schema up to date takes most of a small test's time, so that
/// from the third on they are copies of one that has it.
fn database(server: &TestPostgres) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    static UP_TO_DATE: OnceLock<String> = OnceLock::new();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    if count < MADE_ANEW {
        return server.database().expect("a database");
    }
    let original = UP_TO_DATE.get_or_init(|| {
        let url = server.database().expect("a database");
        let (clock, ids) = (Arc::new(FakeClock::new(START)), IdSource::new(SEED));
        let options = options(Database::Postgres(url.clone()), clock, &ids, true);
        drop(Store::open(options).expect("an open store"));
        url
    });
    let (address, name) = original.rsplit_once('/').expect("a URL with a database");
    let url = format!("{address}/{name}_{count}");
    let (beside, copy) = (server.url(), format!("CREATE DATABASE {name}_{count} TEMPLATE {name}"));
    // On a thread of its own, since the client may not be used where async code runs.
    let copied = std::thread::spawn(move || {
        postgres::Client::connect(&beside, postgres::NoTls)?.batch_execute(&copy)
    });
    copied.join().expect("no panic").expect("a copy of a database");
    url
}

/// Options for a store of a test.
pub fn options(database: Database, clock: Arc<FakeClock>, ids: &IdSource, inline: bool) -> Options {
    Options {
        database,
        incarnation: ids.next(clock.now()),
        clock,
        node: "test".into(),
        inline,
        database_time: false,
        gate: None,
        on_fatal: Arc::new(|text| panic!("{text}")),
        pages_max: None,
    }
}

impl Harness {
    /// A store with an owner in an empty database. `change` alters the options first.
    pub fn new(
        database: Database,
        folder: Option<TempFolder>,
        inline: bool,
        change: impl FnOnce(&mut Options),
    ) -> Self {
        let clock = Arc::new(FakeClock::new(START));
        let ids = IdSource::new(SEED);
        let mut options = options(database.clone(), clock.clone(), &ids, inline);
        change(&mut options);
        let store = Store::open(options).expect("an open store");
        let harness = Harness {
            store,
            owner: ids.next(START),
            user: ids.next(START),
            policy: ids.next(START),
            main: ids.next(START),
            timer: ids.next(START),
            device: ids.next(START),
            clock,
            ids,
            database,
            inline,
            folder,
        };
        harness.set_up();
        harness
    }

    /// A store on a SQLite file of its own.
    pub fn sqlite(inline: bool, change: impl FnOnce(&mut Options)) -> Self {
        let folder = TempFolder::new();
        let database = Database::Sqlite(folder.path().join("adjutant.db"));
        Harness::new(database, Some(folder), inline, change)
    }

    /// A store on a PostgreSQL database of its own; `None`, with a line that says so, where the
    /// variable asks to leave PostgreSQL out.
    pub fn postgres(inline: bool, change: impl FnOnce(&mut Options)) -> Option<Self> {
        let Some(server) = TestPostgres::start_or_skip() else {
            eprintln!("skipped: PostgreSQL because ADJUTANT_TEST_POSTGRES=skip");
            return None;
        };
        let url = database(&server);
        Some(Harness::new(Database::Postgres(url), None, inline, change))
    }

    /// The owner that every test has, as [`Harness::set_up`] wrote it.
    pub fn owner_record(&self) -> Owner {
        Owner {
            id: self.owner,
            name: "Ada".into(),
            zone: "Europe/Berlin".into(),
            change_seq: 0,
            audit_seq: 0,
            audit_head: Digest::ZERO,
            main_session: self.main,
            timer_source: self.timer,
            dial: domain::event::Dial::Observe,
            language: None,
            month_cap_micro_usd: MicroUsd(20_000_000),
            created_at: START,
        }
    }

    /// The owner's user and policy, as written.
    pub fn principals(&self) -> [Principal; 2] {
        let one = |id, kind, name: &str| Principal {
            id,
            owner: self.owner,
            kind,
            name: name.into(),
            created_at: START,
        };
        [
            one(self.user, PrincipalKind::User, "Ada"),
            one(self.policy, PrincipalKind::Policy, "rule"),
        ]
    }

    /// The owner's conversation, as written.
    pub fn main_record(&self) -> Session {
        new_session(self.main, self.owner, SessionKind::Main)
    }

    /// A source of the owner, as written.
    pub fn source_record(&self, id: SourceId) -> Source {
        let (kind, trust) = match id == self.timer {
            true => (SourceKind::Timer, Trust::System),
            false => (SourceKind::Device, Trust::User),
        };
        Source::new(id, self.owner, kind, "first", trust, START)
    }

    fn set_up(&self) {
        let (owner, principals, main) =
            (self.owner_record(), self.principals(), self.main_record());
        let sources = [self.source_record(self.timer), self.source_record(self.device)];
        self.unowned(move |tx| {
            store::owner::create(tx, &owner, &principals)?;
            store::session::insert(tx, &main)?;
            sources.iter().try_for_each(|source| store::source::insert(tx, source))
        })
        .expect("a set-up owner");
    }

    /// A new id.
    pub fn id<T: Id>(&self) -> T {
        self.ids.next(self.clock.now())
    }

    /// Decides and writes under the owner's lock, and waits for the answer.
    pub fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut OwnerTx<'_, '_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        block_on(self.store.write(self.owner, self.id::<EventId>().uuid(), work))
    }

    /// The same as admission does it: with the operator's row shared.
    pub fn admit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut OwnerTx<'_, '_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        block_on(self.store.admit(self.owner, self.id::<EventId>().uuid(), work))
    }

    /// The same as the dispatcher does it: what it registers becomes a permit.
    pub fn dispatch(
        &self,
        work: impl FnOnce(&mut OwnerTx<'_, '_>) -> Result<Option<Registered>> + Send + 'static,
    ) -> Result<Option<Permit>> {
        block_on(self.store.dispatch(self.owner, self.id::<EventId>().uuid(), work))
    }

    /// The same as the operator does it: with their row alone.
    pub fn operate<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut OwnerTx<'_, '_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        block_on(self.store.operate(self.owner, self.id::<EventId>().uuid(), work))
    }

    /// Writes without an owner's lock, and waits for the answer.
    pub fn unowned<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        block_on(self.store.write_unowned(work))
    }

    /// Reads, and waits for the answer.
    pub fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Tx<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        block_on(self.store.read(work))
    }

    /// Options for another start of a process on the same database.
    pub fn options(&self) -> Options {
        options(self.database.clone(), self.clock.clone(), &self.ids, self.inline)
    }

    /// Closes the store and opens the database again, as another start of the process would.
    #[must_use = "the harness is moved"]
    pub fn reopen(self, change: impl FnOnce(&mut Options)) -> Self {
        let mut options = self.options();
        change(&mut options);
        let Harness {
            store,
            clock,
            ids,
            owner,
            user,
            policy,
            main,
            timer,
            device,
            database,
            inline,
            folder,
        } = self;
        // SQLite: one process holds the file.
        drop(store);
        let store = Store::open(options).expect("a store that opens again");
        Harness {
            store,
            clock,
            ids,
            owner,
            user,
            policy,
            main,
            timer,
            device,
            database,
            inline,
            folder,
        }
    }

    /// The folder of the SQLite file.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(TempFolder::path)
    }
}

/// A session that nobody has claimed yet.
pub fn new_session(id: SessionId, owner: OwnerId, kind: SessionKind) -> Session {
    Session {
        id,
        owner,
        agent: "adjutant".into(),
        kind,
        fence: 0,
        holder: None::<Incarnation>,
        lease_until: None,
        not_before: START,
        model_failures: 0,
        runs: 0,
        window_start: 0,
        prefix: None,
        prefix_digest: None,
        created_at: START,
    }
}

/// Runs a test's body on SQLite and on PostgreSQL, each with the store's own threads.
pub fn each_engine(test: impl Fn(Harness)) {
    on_both(false, test);
}

/// Runs a test's body on both engines in the simulator's mode: no threads, one connection.
pub fn each_engine_inline(test: impl Fn(Harness)) {
    on_both(true, test);
}

fn on_both(inline: bool, test: impl Fn(Harness)) {
    test(Harness::sqlite(inline, |_| {}));
    if let Some(harness) = Harness::postgres(inline, |_| {}) {
        test(harness);
    }
}

/// Waits for a future on this thread.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.expect("a runtime").block_on(future)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_goes_and_nothing_else() {
        let base = TempFolder::new();
        let mut dead = std::process::Command::new("true").spawn().expect("a process");
        dead.wait().expect("its end");
        let (dead, own) = (dead.id(), std::process::id());
        let names = ["demo-1".to_owned(), format!("{FOLDER}{own}-1"), format!("{FOLDER}{dead}-1")];
        for name in &names {
            std::fs::create_dir_all(base.path().join(name).join("within")).expect("a folder");
        }
        forget_dead(base.path());
        let left = std::fs::read_dir(base.path()).expect("the folder");
        let left = left.map(|entry| entry.expect("an entry").file_name().into_string());
        let mut left: Vec<String> = left.collect::<std::result::Result<_, _>>().expect("names");
        left.sort();
        assert_eq!(left, [&names[1], &names[0]].map(String::clone));
    }
}
