//! The doctor's look at the other models, and at what comes in: the secrets of sources, and each source
//! by what it received.

use std::os::unix::fs::PermissionsExt as _;

use base::Timestamp;

use super::{Check, Verdict, one_line};
use crate::client::world::{Source, Sources};
use crate::client::{Client, fetch};
use crate::config::{Config, Env, ModelConfig};

/// Which model says whom an event concerns, which one reviews actions, and whether their keys are there.
pub(super) fn other_models(config: &Config, env: Env<'_>) -> [Check; 2] {
    let check = |name: &str, model: &Option<ModelConfig>, without: &str| match model {
        None => Check::ok(name, format!("none is set, so [model] {without}")),
        Some(model) => match model.key(env) {
            Ok(_) => Check::ok(name, format!("{} at {}", model.model, model.base_url)),
            Err(problem) => Check::from_error(name, &problem.to_string()),
        },
    };
    [
        check("small model", &config.small, "says which duty an event concerns"),
        check("reviewer", &config.reviewer, "reviews what a grant would let through"),
    ]
}

/// Whether anybody else can read the secrets of sources.
pub(super) fn secrets(config: &Config) -> Check {
    let name = "secrets of sources";
    let folder = config.secrets_folder();
    let shown = folder.display();
    let open = |mode: u32| mode & 0o077 != 0;
    let mode = |path: &std::path::Path| {
        std::fs::metadata(path).map(|data| data.permissions().mode() & 0o777)
    };
    let of_folder = match mode(&folder) {
        Ok(mode) => mode,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Check::ok(name, format!("{shown} will be made at the first start"));
        }
        Err(error) => {
            let found = format!("{shown} cannot be looked at ({error})");
            return Check::new(name, Verdict::Failed, found, format!("chown -R $USER {shown}"));
        }
    };
    if open(of_folder) {
        let found = format!("{shown} has mode {of_folder:04o}, others can look into it");
        return Check::new(name, Verdict::Failed, found, format!("chmod 700 {shown}"));
    }
    let files: Vec<_> = std::fs::read_dir(&folder).into_iter().flatten().flatten().collect();
    let readable = files.iter().filter(|file| mode(&file.path()).is_ok_and(open)).count();
    match readable {
        0 => Check::ok(name, format!("{} in {shown}, readable by you alone", files.len())),
        count => {
            let found = format!("{count} of {} in {shown} are readable by others", files.len());
            Check::new(name, Verdict::Failed, found, format!("chmod 600 {shown}/*"))
        }
    }
}

/// Each source by what it received. `now` is the server's.
pub(super) async fn sources(client: &Client, now: Option<Timestamp>) -> Vec<Check> {
    match fetch::<Sources>(client, &["v1", "sources"], &[]).await {
        Ok(all) => all.sources.iter().map(|source| source_check(source, now)).collect(),
        Err(error) => vec![Check::from_error("sources", &one_line(&error.to_string()))],
    }
}

/// Deliveries refused within this time are worth a look.
const REFUSED_MS: u64 = 24 * 3_600_000;

fn source_check(source: &Source, now: Option<Timestamp>) -> Check {
    let name = format!("source {}", source.name);
    let received = match source.received_at {
        Some(at) => format!("last received {at}"),
        None => "never received anything".to_owned(),
    };
    let test = format!("adjutant source test {}", source.name);
    if source.secret.as_deref().is_some_and(|state| state != "kept") {
        let remedy = format!("adjutant source rotate {}", source.name);
        return Check::new(&name, Verdict::Failed, "its secret is not there", remedy);
    }
    if source.failures > 0 {
        let found = format!("{received}; {} looks in a row failed", source.failures);
        return Check::new(&name, Verdict::Failed, found, test);
    }
    if source.silent {
        let found = format!("{received}, which is longer ago than you expect");
        return Check::new(&name, Verdict::Warning, found, test);
    }
    let recent = |at: Timestamp| now.is_none_or(|now| now < at.plus_ms(REFUSED_MS));
    if let Some(at) = source.refused_at.filter(|at| recent(*at)) {
        let found = format!("{received}; {} refused, last {at}", source.refused);
        let remedy = "compare the secret at the sender; adjutant source rotate makes a new one";
        return Check::new(&name, Verdict::Warning, found, remedy);
    }
    Check::ok(&name, received)
}
