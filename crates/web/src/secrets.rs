//! The secrets of sources, apart from the records: in files that only this user can read.
//!
//! A source has one secret, or two for a day while its sender is given the new one. Absent here: any
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
    /// Makes `secret` the newest; what was newest stays valid until `until`. Repeated, it changes
    /// nothing.
    fn rotate(&self, source: SourceId, secret: &Secret, until: Timestamp) -> Result<()>;
    /// Forgets all of a source; none are no error.
    fn remove(&self, source: SourceId) -> Result<()>;
}

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

/// The newest first, and one former one at most: of two changes in a day the older secret ends at once.
fn rotated(kept: Vec<Kept>, secret: &Secret, until: Timestamp) -> Vec<Kept> {
    if kept.first().is_some_and(|newest| newest.secret == secret.expose()) {
        return kept;
    }
    let former = kept.into_iter().next().map(|former| Kept { until: Some(until), ..former });
    std::iter::once(first(secret)).chain(former).collect()
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

    fn rotate(&self, source: SourceId, secret: &Secret, until: Timestamp) -> Result<()> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = match self.kept(source) {
            // What cannot be read is what a new secret mends.
            Err(SecretsError::Corrupt(_)) => Vec::new(),
            kept => kept?,
        };
        self.keep(source, &rotated(kept, secret, until))
    }

    fn remove(&self, source: SourceId) -> Result<()> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        match std::fs::remove_file(self.file(source)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// The same in memory, for tests.
#[derive(Default)]
pub struct SecretMemory(Mutex<BTreeMap<SourceId, Vec<Kept>>>);

impl SecretMemory {
    /// How many sources have one.
    pub fn count(&self) -> usize {
        self.held().len()
    }

    fn held(&self) -> std::sync::MutexGuard<'_, BTreeMap<SourceId, Vec<Kept>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Secrets for SecretMemory {
    fn read(&self, source: SourceId, now: Timestamp) -> Result<Vec<Secret>> {
        Ok(valid(self.held().get(&source).map_or(&[], Vec::as_slice), now))
    }

    fn put(&self, source: SourceId, secret: &Secret) -> Result<()> {
        self.held().insert(source, vec![first(secret)]);
        Ok(())
    }

    fn rotate(&self, source: SourceId, secret: &Secret, until: Timestamp) -> Result<()> {
        let mut held = self.held();
        let kept = held.remove(&source).unwrap_or_default();
        held.insert(source, rotated(kept, secret, until));
        Ok(())
    }

    fn remove(&self, source: SourceId) -> Result<()> {
        self.held().remove(&source);
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
    fn both_places_keep_one_secret_two_for_a_while_and_none_after() {
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
            for _ in 0..2 {
                place.rotate(source, &secret("two"), at(10)).expect("changed");
                assert_eq!(texts(place.read(source, at(9))), ["two", "one"]);
            }
            assert_eq!(texts(place.read(source, at(10))), ["two"]);
            place.rotate(source, &secret("three"), at(20)).expect("changed");
            assert_eq!(texts(place.read(source, at(9))), ["three", "two"]);
            place.remove(source).expect("removed");
            place.remove(source).expect("removed twice is removed");
            assert_eq!(texts(place.read(source, at(0))), [""; 0]);
        }
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
        place.rotate(source, &secret, now).expect("a new secret mends it");
        assert_eq!(texts(place.read(source, now)), ["one"]);
    }
}
