//! The secrets of sources, apart from the records: in files that only this user can read.
//!
//! A source has one secret, and for a day after a change the former one too, since its sender must be
//! told first; of several changes in a day all of these, up to a bound. Absent here: any
//! answer that holds one. What is kept is read by the check of a signature and by nothing else.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use base::{Secret, SourceId, Timestamp};
use serde::{Deserialize, Serialize};

/// Why a secret could not be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// The folder or a file in it cannot be used.
    #[error(
        "the secrets of the sources cannot be used ({0}); see that the folder secrets in the data folder is yours and its disk not full"
    )]
    Io(#[from] std::io::Error),
    /// A file is not as this program writes it.
    #[error(
        "the secret of source {0} is unreadable; give the source a new one with \"adjutant source rotate\""
    )]
    Corrupt(SourceId),
}

type Result<T> = std::result::Result<T, SecretsError>;

/// Where the secrets of sources are kept.
pub trait Secrets: Send + Sync {
    /// Those that are valid at `now`, the newest first; none if the source has none.
    fn read(&self, source: SourceId, now: Timestamp) -> Result<Vec<Secret>>;
    /// Keeps the first secret of a source, or takes the place of all of them.
    fn put(&self, source: SourceId, secret: &Secret) -> Result<()>;
    /// Makes `secret` the newest; what was newest stays valid until `until`, and those before it as
    /// long as they were. What has ended at `now` is forgotten. Repeated, it changes nothing.
    fn rotate(
        &self,
        source: SourceId,
        secret: &Secret,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Rotation>;
    /// Takes a change back that was not put on record: forgets `secret`, and the one before it is the
    /// newest again.
    fn withdraw(&self, source: SourceId, secret: &Secret) -> Result<()>;
    /// Forgets all of a source; none are no error.
    fn remove(&self, source: SourceId) -> Result<()>;
}

/// What came of a change of a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotation {
    /// The secret is the newest.
    Newest {
        /// It was not before.
        changed: bool,
        /// How long the one before it stays valid; `None`: there is none.
        former_until: Option<Timestamp>,
    },
    /// It is one of the former ones, and a newer one has taken its place. Nothing was changed.
    Former,
    /// [`FORMER_MAX`] former secrets are valid still, the first of them until then. Nothing was
    /// changed: a sender may be using any of them.
    TooMany {
        /// When the first of them ends.
        until: Timestamp,
    },
}

/// Former secrets of a source that may be valid at once.
pub const FORMER_MAX: usize = 3;

/// One secret as it is kept. It has no `Debug`, so that it cannot be logged by mistake.
#[derive(Clone, Serialize, Deserialize)]
struct Kept {
    secret: String,
    /// Valid before this; `None`: for good.
    until: Option<Timestamp>,
}

fn valid(kept: &[Kept], now: Timestamp) -> Vec<Secret> {
    let lasting = kept.iter().filter(|kept| kept.until.is_none_or(|until| now < until));
    lasting.filter_map(|kept| Secret::new(&kept.secret).ok()).collect()
}

/// Puts a secret before the others, the newest first; no former one ends by that.
fn rotated(kept: &mut Vec<Kept>, secret: &Secret, now: Timestamp, until: Timestamp) -> Rotation {
    kept.retain(|kept| kept.until.is_none_or(|until| now < until));
    match kept.iter().position(|known| known.secret == secret.expose()) {
        Some(0) => {
            let former_until = kept.get(1).and_then(|former| former.until);
            return Rotation::Newest { changed: false, former_until };
        }
        Some(_) => return Rotation::Former,
        None => {}
    }
    if kept.len() > FORMER_MAX {
        let until = kept.iter().filter_map(|former| former.until).min().unwrap_or(until);
        return Rotation::TooMany { until };
    }
    let former_until = kept.first_mut().map(|newest| {
        newest.until = Some(until);
        until
    });
    kept.insert(0, first(secret));
    Rotation::Newest { changed: true, former_until }
}

/// Forgets a secret; what is the newest then is valid for good, as it was.
fn withdrawn(kept: &mut Vec<Kept>, secret: &Secret) {
    kept.retain(|kept| kept.secret != secret.expose());
    if let Some(newest) = kept.first_mut() {
        newest.until = None;
    }
}

fn first(secret: &Secret) -> Kept {
    Kept { secret: secret.expose().to_owned(), until: None }
}

/// A folder of mode 0700 with a file of mode 0600 for each source.
#[derive(Debug)]
pub struct SecretFolder {
    path: PathBuf,
    /// Held over read, change and rename of one file, so that two changes do not lose one another.
    changing: Mutex<()>,
}

/// The largest file that is one of ours.
const FILE_BYTES_MAX: u64 = 16_384;

impl SecretFolder {
    /// Makes the folder if it is not there, and closes it to everybody else.
    ///
    /// # Errors
    /// If it cannot be made or is not ours.
    pub fn open(path: &Path) -> std::io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))?;
        Ok(SecretFolder { path: path.to_owned(), changing: Mutex::default() })
    }

    /// Takes away what a crash left behind: half-written files, and the secrets of sources that are not in use,
    /// whose record was refused or removed before the file was. A secret that is older than the records,
    /// `since`, is left alone: they may be the wrong ones. So are files of other names. To be called
    /// before anything is written here. Gives how many went.
    ///
    /// # Errors
    /// If the folder cannot be read or a file not be removed.
    pub fn sweep(&self, in_use: &[SourceId], since: Timestamp) -> std::io::Result<usize> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut swept = 0;
        let is_newer = |entry: &std::fs::DirEntry| {
            let changed = entry.metadata()?.modified()?.duration_since(std::time::UNIX_EPOCH);
            let micros = changed.map_or(0, |changed| changed.as_micros());
            Ok::<_, std::io::Error>(i64::try_from(micros).is_ok_and(|at| at >= since.micros()))
        };
        for entry in std::fs::read_dir(&self.path)? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let (of, half) = match name.strip_suffix(".new") {
                Some(of) => (of, true),
                None => (name, false),
            };
            let Ok(source) = of.parse::<SourceId>() else { continue };
            if half || (!in_use.contains(&source) && is_newer(&entry)?) {
                std::fs::remove_file(self.path.join(name))?;
                swept += 1;
            }
        }
        Ok(swept)
    }

    fn file(&self, source: SourceId) -> PathBuf {
        self.path.join(source.to_string())
    }

    fn kept(&self, source: SourceId) -> Result<Vec<Kept>> {
        let file = match File::open(self.file(source)) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let mut text = String::new();
        file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
        serde_json::from_str(&text).map_err(|_| SecretsError::Corrupt(source))
    }

    fn forget(&self, source: SourceId) -> Result<()> {
        match std::fs::remove_file(self.file(source)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Written beside and renamed, so that there is always a whole file.
    fn keep(&self, source: SourceId, kept: &[Kept]) -> Result<()> {
        let text = serde_json::to_string(kept).map_err(|_| SecretsError::Corrupt(source))?;
        let next = self.path.join(format!("{source}.new"));
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&next)?;
        // One that was left behind by a crash keeps its mode when it is opened again.
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&next, self.file(source))?;
        Ok(File::open(&self.path)?.sync_all()?)
    }
}

impl Secrets for SecretFolder {
    fn read(&self, source: SourceId, now: Timestamp) -> Result<Vec<Secret>> {
        Ok(valid(&self.kept(source)?, now))
    }

    fn put(&self, source: SourceId, secret: &Secret) -> Result<()> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.keep(source, &[first(secret)])
    }

    fn rotate(
        &self,
        source: SourceId,
        secret: &Secret,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Rotation> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = match self.kept(source) {
            // What cannot be read is what a new secret mends.
            Err(SecretsError::Corrupt(_)) => Vec::new(),
            kept => kept?,
        };
        let rotation = rotated(&mut kept, secret, now, until);
        if matches!(rotation, Rotation::Newest { changed: true, .. }) {
            self.keep(source, &kept)?;
        }
        Ok(rotation)
    }

    fn withdraw(&self, source: SourceId, secret: &Secret) -> Result<()> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept = self.kept(source)?;
        withdrawn(&mut kept, secret);
        match kept.is_empty() {
            true => self.forget(source),
            false => self.keep(source, &kept),
        }
    }

    fn remove(&self, source: SourceId) -> Result<()> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.forget(source)
    }
}

/// The same in memory, for tests.
#[derive(Default)]
pub struct SecretMemory {
    held: Mutex<BTreeMap<SourceId, Vec<Kept>>>,
    full: std::sync::atomic::AtomicBool,
}

impl SecretMemory {
    /// How many sources have one.
    pub fn count(&self) -> usize {
        self.held().len()
    }

    /// From now on every change fails, as on a full disk, or no longer.
    pub fn fill(&self, full: bool) {
        self.full.store(full, std::sync::atomic::Ordering::SeqCst);
    }

    fn held(&self) -> std::sync::MutexGuard<'_, BTreeMap<SourceId, Vec<Kept>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) -> Result<std::sync::MutexGuard<'_, BTreeMap<SourceId, Vec<Kept>>>> {
        match self.full.load(std::sync::atomic::Ordering::SeqCst) {
            true => Err(SecretsError::Io(ErrorKind::StorageFull.into())),
            false => Ok(self.held()),
        }
    }
}

impl Secrets for SecretMemory {
    fn read(&self, source: SourceId, now: Timestamp) -> Result<Vec<Secret>> {
        Ok(valid(self.held().get(&source).map_or(&[], Vec::as_slice), now))
    }

    fn put(&self, source: SourceId, secret: &Secret) -> Result<()> {
        self.changed()?.insert(source, vec![first(secret)]);
        Ok(())
    }

    fn rotate(
        &self,
        source: SourceId,
        secret: &Secret,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Rotation> {
        Ok(rotated(self.changed()?.entry(source).or_default(), secret, now, until))
    }

    fn withdraw(&self, source: SourceId, secret: &Secret) -> Result<()> {
        let mut held = self.changed()?;
        let Some(kept) = held.get_mut(&source) else { return Ok(()) };
        withdrawn(kept, secret);
        if kept.is_empty() {
            held.remove(&source);
        }
        Ok(())
    }

    fn remove(&self, source: SourceId) -> Result<()> {
        self.changed()?.remove(&source);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::IdSource;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).expect("a file").permissions().mode() & 0o777
    }

    fn texts(kept: Result<Vec<Secret>>) -> Vec<String> {
        kept.expect("secrets").iter().map(|secret| secret.expose().to_owned()).collect()
    }

    #[test]
    fn both_places_keep_what_a_sender_may_still_use_and_nothing_after_it() {
        let folder = testkit::stores::TempFolder::new();
        let path = folder.path().join("secrets");
        let places: [Box<dyn Secrets>; 2] = [
            Box::new(SecretFolder::open(&path).expect("a folder")),
            Box::new(SecretMemory::default()),
        ];
        let source: SourceId = IdSource::new([3; 32]).next(Timestamp::from_micros(0));
        let secret = |text: &str| Secret::new(text).expect("a secret");
        let at = |second: i64| Timestamp::from_micros(second * 1_000_000);
        for place in &places {
            assert_eq!(texts(place.read(source, at(0))), [""; 0]);
            place.put(source, &secret("one")).expect("kept");
            let rotate = |text: &str, now: i64, until: i64| {
                place.rotate(source, &secret(text), at(now), at(until)).expect("an outcome")
            };
            let newest =
                |changed, until| Rotation::Newest { changed, former_until: Some(at(until)) };
            assert_eq!(rotate("two", 0, 10), newest(true, 10));
            assert_eq!(rotate("two", 1, 11), newest(false, 10), "a repeat changes nothing");
            assert_eq!(texts(place.read(source, at(9))), ["two", "one"]);
            // The sender may not have been told of the second one yet: the first one stays.
            assert_eq!(rotate("three", 5, 15), newest(true, 15));
            assert_eq!(rotate("four", 6, 16), newest(true, 16));
            assert_eq!(texts(place.read(source, at(9))), ["four", "three", "two", "one"]);
            assert_eq!(rotate("five", 9, 19), Rotation::TooMany { until: at(10) });
            assert_eq!(rotate("two", 9, 19), Rotation::Former);
            assert_eq!(texts(place.read(source, at(9))), ["four", "three", "two", "one"]);
            assert_eq!(rotate("five", 10, 20), newest(true, 20));
            assert_eq!(texts(place.read(source, at(10))), ["five", "four", "three", "two"]);
            place.withdraw(source, &secret("five")).expect("taken back");
            assert_eq!(texts(place.read(source, at(14))), ["four", "three", "two"]);
            assert_eq!(texts(place.read(source, at(99))), ["four"]);
            place.remove(source).expect("removed");
            place.remove(source).expect("removed twice is removed");
            assert_eq!(texts(place.read(source, at(0))), [""; 0]);
        }
    }

    #[test]
    fn what_a_crash_left_behind_is_swept_and_nothing_else() {
        let folder = testkit::stores::TempFolder::new();
        let path = folder.path().join("secrets");
        let place = SecretFolder::open(&path).expect("a folder");
        let ids = IdSource::new([3; 32]);
        let [used, gone]: [SourceId; 2] = [0, 1].map(|n| ids.next(Timestamp::from_micros(n)));
        let secret = Secret::new("one").expect("a secret");
        for source in [used, gone] {
            place.put(source, &secret).expect("kept");
            std::fs::write(path.join(format!("{source}.new")), "half").expect("a file");
        }
        std::fs::write(path.join("README"), "mine").expect("a file");
        // Records that were begun after the secret was kept are not those that it belongs to.
        let (first, far) = (Timestamp::from_micros(0), Timestamp::from_micros(i64::MAX));
        assert_eq!(place.sweep(&[used], far).expect("swept"), 2);
        assert_eq!(texts(place.read(gone, first)), ["one"]);
        std::fs::write(path.join(format!("{gone}.new")), "half").expect("a file");
        assert_eq!(place.sweep(&[used], first).expect("swept"), 2);
        let mut left: Vec<String> = std::fs::read_dir(&path)
            .expect("a folder")
            .map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned())
            .collect();
        left.sort_unstable();
        let mut wanted = vec![used.to_string(), "README".to_owned()];
        wanted.sort_unstable();
        assert_eq!(left, wanted);
        assert_eq!(texts(place.read(used, first)), ["one"]);
        assert_eq!(place.sweep(&[used], first).expect("swept"), 0);
    }

    #[test]
    fn nobody_else_can_read_the_folder_or_a_file_in_it() {
        let folder = testkit::stores::TempFolder::new();
        let path = folder.path().join("secrets");
        DirBuilder::new().mode(0o755).create(&path).expect("a folder");
        let place = SecretFolder::open(&path).expect("ours");
        let source: SourceId = IdSource::new([3; 32]).next(Timestamp::from_micros(0));
        let secret = Secret::new("one").expect("a secret");
        // What a crash left behind is closed to others too.
        let left = path.join(format!("{source}.new"));
        std::fs::write(&left, "half").expect("a file");
        std::fs::set_permissions(&left, std::fs::Permissions::from_mode(0o644)).expect("a mode");
        place.put(source, &secret).expect("kept");
        let files: Vec<_> = std::fs::read_dir(&path).expect("a folder").flatten().collect();
        assert_eq!(files.len(), 1);
        assert_eq!((mode(&path), mode(&files[0].path())), (0o700, 0o600));
        std::fs::write(files[0].path(), "nonsense").expect("a file");
        let now = Timestamp::from_micros(0);
        assert!(matches!(place.read(source, now), Err(SecretsError::Corrupt(id)) if id == source));
        place.rotate(source, &secret, now, now).expect("a new secret mends it");
        assert_eq!(texts(place.read(source, now)), ["one"]);
    }
}
