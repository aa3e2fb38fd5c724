//! `adjutant backup` and `adjutant restore`: the whole installation in one file, and the way back.
//!
//! Both work on the files of this machine and ask no server: whoever may read the data folder may do this.

use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};

use base::{Clock as _, SystemClock, Timestamp};
use serde_json::{Value, json};
use store::backup::{self, Files, Sound};

use crate::cli::{BackupArgs, RestoreArgs};
use crate::config::{Config, Database, KeySource, McpServer};
use crate::serve;

/// A file in the folder of secrets that is larger is none of ours.
const SECRET_BYTES_MAX: u64 = 16_384;

/// What of a set-up is in no backup: its file, and the keys that it names.
fn left_out(config: &Config) -> Vec<String> {
    let file = config.file.iter().map(|file| file.display().to_string());
    let models = [&config.model, &config.small, &config.reviewer];
    let models = models.into_iter().flatten().map(|model| &model.key);
    let search = config.search.iter().map(|search| &search.key);
    let tools = config.mcp.iter().filter_map(|mcp| match &mcp.server {
        McpServer::Program { .. } => None,
        McpServer::Address { key, .. } => Some(key),
    });
    let keys = models.chain(search).chain(tools).filter_map(|key| match key {
        KeySource::None => None,
        KeySource::Env(name) => Some(format!("the variable {name}")),
        KeySource::File(path) => Some(path.display().to_string()),
    });
    let manifests = config.mcp.iter().filter_map(|mcp| mcp.manifest.as_ref());
    let manifests = manifests.map(|path| path.display().to_string());
    let mut all: Vec<String> = file.chain(keys).chain(manifests).collect();
    let mut seen = std::collections::BTreeSet::new();
    all.retain(|name| seen.insert(name.clone()));
    all
}

/// Where the records of this installation are, if they are in a file.
fn records(config: &Config, instead: &str) -> anyhow::Result<PathBuf> {
    match &config.database {
        Database::Sqlite => Ok(config.data_dir.join(serve::DATABASE)),
        Database::Postgresql { .. } => anyhow::bail!(
            "the records are in PostgreSQL; {instead}, as docs/operations.md says under Backup"
        ),
    }
}

/// The files of secrets as they are now; a half-written one belongs to nobody.
fn secrets(folder: &Path) -> std::io::Result<Files> {
    let mut files = Files::new();
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(files),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let (Ok(name), data) = (entry.file_name().into_string(), entry.metadata()) else {
            continue;
        };
        // One that went meanwhile is nobody's any more.
        let Ok(data) = data else { continue };
        if !data.is_file() || data.len() > SECRET_BYTES_MAX || name.ends_with(".new") {
            continue;
        }
        match std::fs::read(entry.path()) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            bytes => drop(files.insert(name, bytes?)),
        }
    }
    Ok(files)
}

/// Makes a backup, looks whether it is sound, and only then gives it its name.
pub fn back_up(args: &BackupArgs, config: &Config) -> anyhow::Result<String> {
    let from = records(config, "make the backup with pg_dump")?;
    let to = std::path::absolute(&args.file)?;
    let shown = to.display();
    if to.symlink_metadata().is_ok() {
        anyhow::bail!("{shown} is there already; name a new file");
    }
    let making = suffixed(&to, ".part");
    // What a killed one left of it.
    store::forget_copy(&making)?;
    let folder = config.secrets_folder();
    backup::back_up(&from, &making, SystemClock.now(), || secrets(&folder))?;
    let sound = match backup::verify(&making) {
        Ok(sound) => sound,
        Err(error) => {
            store::forget_copy(&making)?;
            return Err(error.into());
        }
    };
    // Unlike a rename a link takes no file's place; some disks have none.
    match std::fs::hard_link(&making, &to) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            std::fs::rename(&making, &to)?;
        }
        linked => linked?,
    }
    store::forget_copy(&making)?;
    sync_folder(&to)?;
    let left_out = left_out(config);
    if args.json {
        return Ok(format!("{}\n", as_json(&to, &sound, &left_out)));
    }
    let mut text = format!("Backup {shown}: {}", in_words(&sound));
    let _ =
        writeln!(text, "Keep it where nobody else can read it: it holds everything that you said.");
    not_in_it(&mut text, &left_out);
    Ok(text)
}

/// Puts a backup into a data folder without a database, or only looks whether it is sound.
pub fn restore(args: &RestoreArgs, config: &Config) -> anyhow::Result<String> {
    let sound = backup::verify(&args.file)?;
    let left_out = left_out(config);
    let mut said = as_json(&args.file, &sound, &left_out);
    let mut text = format!("{} is sound: {}", args.file.display(), in_words(&sound));
    if !args.check {
        put_back(&args.file, config)?;
        said["data_dir"] = json!(config.data_dir);
        let _ = write!(
            text,
            "Put back into {}. What was done after that time is not on record and may have happened, so \
             the next start pauses everything and tells you what to look at.\nStart it: adjutant serve\n",
            config.data_dir.display()
        );
        not_in_it(&mut text, &left_out);
    }
    Ok(if args.json { format!("{said}\n") } else { text })
}

fn put_back(from: &Path, config: &Config) -> anyhow::Result<()> {
    let to = records(config, "put the records back with pg_restore")?;
    let folder = &config.data_dir;
    serve::private_folder(folder).map_err(|error| serve::data_folder(&error, folder))?;
    let _lock = serve::lock(folder)?;
    for end in ["", "-wal", "-shm", "-journal"] {
        if suffixed(&to, end).symlink_metadata().is_ok() {
            anyhow::bail!(
                "{} holds a database; move the folder away (mv {0} {0}.old) or set another data_dir",
                folder.display()
            );
        }
    }
    let making = suffixed(&to, ".part");
    store::forget_copy(&making)?;
    let files = backup::put_back(from, &making)?;
    let secrets = config.secrets_folder();
    serve::private_folder(&secrets).map_err(|error| serve::data_folder(&error, &secrets))?;
    for (name, bytes) in &files {
        // The name is a file's in that folder and no way out of it.
        if Path::new(name).file_name().is_some_and(|last| last == name.as_str()) {
            serve::write_private(&secrets.join(name), bytes)?;
        }
    }
    std::fs::rename(&making, &to)?;
    sync_folder(&to)
}

/// Makes sure that a file's name is on disk too.
fn sync_folder(file: &Path) -> anyhow::Result<()> {
    match file.parent() {
        Some(folder) => Ok(File::open(folder)?.sync_all()?),
        None => Ok(()),
    }
}

fn suffixed(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn as_json(file: &Path, sound: &Sound, left_out: &[String]) -> Value {
    json!({
        "file": file,
        "taken_at": sound.taken_at,
        "schema": sound.schema,
        "owners": sound.owners,
        "audit_entries": sound.audited,
        "secrets": sound.files,
        "bytes": sound.bytes,
        "not_in_it": left_out,
    })
}

fn in_words(sound: &Sound) -> String {
    let Sound { taken_at, schema, audited, files, bytes, .. } = sound;
    let taken_at = Timestamp::to_string(taken_at);
    format!(
        "{} KiB, taken {taken_at}, schema {schema}. Every page, reference and {audited} entries of the \
         audit chain were checked; secrets of {files} sources are in it.\n",
        bytes >> 10
    )
}

fn not_in_it(text: &mut String, left_out: &[String]) {
    if !left_out.is_empty() {
        let _ = writeln!(text, "Not in it; keep these too: {}", left_out.join(", "));
    }
}
