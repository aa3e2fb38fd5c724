//! `adjutant serve`: wiring of the running system.

use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Clock, IdSource, SystemClock};
use connect::{ConnectLimits, Connectors, Manifest, ServerConfig};
use engine::pump::Hints;
use engine::setup::Seed;
use model::{ChatModel, Prices, WireModel, WireSettings};
use store::device::Device;
use store::{Options, Store, StoreError};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::config::{Config, Database, Env, McpConfig, McpServer, ModelConfig, SearchProvider};
use crate::demo::Stage;
use crate::{listen, machine};

/// Runs the server until it is told to stop. `stage` is set when the demo started it.
pub async fn run(config: Config, stage: Option<Arc<Stage>>) -> anyhow::Result<()> {
    private_folder(&config.data_dir).map_err(|error| data_folder(&error, &config.data_dir))?;
    let _lock = lock(&config.data_dir)?;
    if matches!(config.database, Database::Sqlite) {
        let path = config.data_dir.join(DATABASE);
        private_database(&path).map_err(|error| data_folder(&error, &config.data_dir))?;
    }
    let clock: Arc<dyn Clock> = match &stage {
        Some(stage) => stage.clock.clone(),
        None => Arc::new(SystemClock),
    };
    let ids = Arc::new(IdSource::new(crate::seed()?));
    let models = models(&config)?;
    let outside = Arc::new(outside(&config)?);
    let secrets = web::secrets::SecretFolder::open(&config.secrets_folder())
        .map_err(|error| data_folder(&error, &config.secrets_folder()))?;
    let incarnation = ids.next(clock.now());
    let options = options(&config, clock.clone(), incarnation);
    let store = open(options).await?;
    let cx = engine::Context {
        store,
        clock,
        ids,
        limits: config.limits.clone(),
        incarnation,
        model: models.main,
        small: models.small,
        reviewer: models.reviewer,
        max_output_tokens: config.model.as_ref().map_or(4_096, output_tokens),
        world: outside.clone(),
    };
    let seed = Seed {
        name: config.owner.name.clone().unwrap_or_else(|| "you".into()),
        zone: config.owner.zone.clone().unwrap_or_else(|| "UTC".into()),
        language: config.owner.language,
    };
    let owner = engine::setup::owner(&cx, seed).await?;
    if engine::put_back::settle(&cx).await? > 0 {
        tracing::warn!(
            "the records come from a backup; everything is paused until its person lifts that"
        );
    }
    sweep(&cx, &secrets, &config).await?;
    let listener = TcpListener::bind(config.listen).await.map_err(|error| {
        let at = config.listen;
        anyhow::anyhow!(
            "cannot listen on {at} ({error}); set another `listen` or stop what uses it"
        )
    })?;
    let address = listener.local_addr()?;
    welcome(&cx, &config, owner.id, address).await?;

    let (stopping, stop) = watch::channel(false);
    let hints = Arc::new(Hints::default());
    let mut pump = tokio::spawn(engine::pump::run(cx.clone(), hints.clone(), stop.clone()));
    if let Some(stage) = &stage {
        tokio::spawn(stage.clone().keep_time(cx.clone(), hints.clone()));
    }
    if matches!(config.database, Database::Sqlite) {
        tokio::spawn(watch_disk(cx.clone(), config.data_dir.clone(), stop.clone()));
    }
    let demo = stage.map(|stage| stage as Arc<dyn web::Demo>);
    let state = web::WebState {
        cx: cx.clone(),
        owner: owner.id,
        listen: address,
        data_dir: config.data_dir.clone(),
        secrets: Arc::new(secrets),
        hints,
        watcher: watcher(&cx, &config)?,
        machine: machine::gauges(config.data_dir.clone()),
        demo,
    };
    let router = web::router_until(state, stop.clone());
    let serving = tokio::spawn(listen::serve(listener, router, stop, listen::HEADER_MS));
    tokio::select! {
        told = told_to_stop() => told?,
        _ = &mut pump => anyhow::bail!("a stage of the engine died; see the log above"),
    }
    tracing::info!("stopping");
    stopping.send_replace(true);
    // What is under way reaches its next record, or is found by the next start.
    let limit = std::time::Duration::from_secs(5);
    drop(tokio::time::timeout(limit, async { tokio::join!(pump, serving) }).await);
    outside.connectors.shutdown().await;
    Ok(())
}

/// The store. The PostgreSQL client blocks, so opening happens off the runtime's threads.
async fn open(options: Options) -> anyhow::Result<Store> {
    let store = tokio::task::spawn_blocking(move || Store::open(options)).await?;
    if let Err(StoreError::Unavailable(why)) = &store {
        anyhow::bail!(
            "the database cannot be reached ({why}); see that it runs and that database.url is right"
        );
    }
    Ok(store?)
}

/// Something in the data folder cannot be written: the fact, its cause, the remedy.
pub fn data_folder(error: &std::io::Error, path: &Path) -> anyhow::Error {
    let path = path.display();
    anyhow::anyhow!("cannot write {path} ({error}); set data_dir to a folder that is yours")
}

/// One process per data folder: SQLite's leases rest on it.
pub fn lock(data_dir: &Path) -> anyhow::Result<File> {
    let path = data_dir.join("lock");
    let file = File::create(&path).map_err(|error| data_folder(&error, &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => anyhow::bail!(
            "another adjutant uses {}; stop it, or set another data_dir",
            data_dir.display()
        ),
        Err(TryLockError::Error(error)) => anyhow::bail!(
            "cannot lock {} ({error}); set data_dir to a folder on a disk of this machine",
            path.display()
        ),
    }
}

fn options(config: &Config, clock: Arc<dyn Clock>, incarnation: base::Incarnation) -> Options {
    let (database, node, database_time) = match &config.database {
        Database::Sqlite => {
            (store::Database::Sqlite(config.data_dir.join(DATABASE)), "local".to_owned(), false)
        }
        Database::Postgresql { url, node } => {
            (store::Database::Postgres(url.expose().to_owned()), node.clone(), true)
        }
    };
    Options {
        database,
        clock,
        incarnation,
        node,
        inline: false,
        database_time,
        gate: None,
        on_fatal: Arc::new(|why| {
            tracing::error!(why, "ending: what is on disk must be read anew");
            std::process::exit(70);
        }),
        pages_max: None,
    }
}

/// The model of the turn, the one that says which matter an event concerns, and the reviewer.
struct Models {
    main: Arc<dyn ChatModel>,
    small: Arc<dyn ChatModel>,
    reviewer: Arc<dyn ChatModel>,
}

fn models(config: &Config) -> anyhow::Result<Models> {
    let Some(settings) = &config.model else {
        let usual = Path::new("~/.config/adjutant/adjutant.toml");
        anyhow::bail!(
            "no model is set up. Add a [model] section to {} (see docs/adjutant.example.toml), or \
             look at the demo first: adjutant demo",
            config.file.as_deref().unwrap_or(usual).display()
        );
    };
    let main: Arc<dyn ChatModel> = Arc::new(chat(settings)?);
    let role = |settings: &Option<ModelConfig>| -> anyhow::Result<Arc<dyn ChatModel>> {
        Ok(match settings {
            None => main.clone(),
            Some(settings) => Arc::new(chat(settings)?),
        })
    };
    let (small, reviewer) = (role(&config.small)?, role(&config.reviewer)?);
    Ok(Models { main, small, reviewer })
}

fn chat(settings: &ModelConfig) -> anyhow::Result<WireModel> {
    let env = |name: &str| std::env::var(name).ok();
    let http = model::http_client(std::time::Duration::from_secs(10))?;
    let local = WireSettings::local(&settings.base_url, &settings.model, settings.context_tokens);
    let prices = Prices {
        input: settings.input_per_million,
        cached: settings.cached_per_million,
        output: settings.output_per_million,
    };
    let (wire, key) = (settings.wire, settings.key(&env)?);
    let (output_field, effort) = (settings.output_field, settings.effort.clone());
    Ok(WireModel::new(http, WireSettings { wire, key, output_field, effort, prices, ..local }))
}

/// The world as the stages read it: the tool servers, the open web, and what is polled. Addresses that
/// somebody else chose go through one guarded client; of this machine's own, those of the file.
fn outside(config: &Config) -> anyhow::Result<engine::world::Outside> {
    let resolver = Arc::new(connect::guard::SystemResolver);
    let limits = connect::guard::GuardLimits::default();
    let client = connect::guard::Client::new(resolver, limits, config.fetch_allow.clone())?;
    let text_bytes_max = config.limits.tool_text_bytes;
    let limits = connect::web::WebLimits { text_bytes_max, ..Default::default() };
    let web = connect::web::Web::new(client.clone(), search(config)?, limits)?;
    let limits = ConnectLimits::from(&config.limits);
    let connectors = Connectors::new(connectors(config)?, limits)?.with_web(web)?;
    Ok(engine::world::Outside { connectors, client })
}

fn search(config: &Config) -> anyhow::Result<Option<connect::web::Search>> {
    let Some(settings) = &config.search else { return Ok(None) };
    let env = |name: &str| std::env::var(name).ok();
    let base_url = settings.base_url.parse()?;
    Ok(Some(match (settings.provider, settings.key.fetch("search", &env)?) {
        (SearchProvider::Brave, Some(key)) => connect::web::Search::Brave { base_url, key },
        (SearchProvider::Searxng, _) | (SearchProvider::Brave, None) => {
            connect::web::Search::Searxng { base_url }
        }
    }))
}

fn output_tokens(model: &ModelConfig) -> u32 {
    u32::try_from(model.max_output_tokens).unwrap_or(u32::MAX)
}

fn connectors(config: &Config) -> anyhow::Result<Vec<ServerConfig>> {
    let env = |name: &str| std::env::var(name).ok();
    config.mcp.iter().map(|server| connector(server, &env)).collect()
}

/// One tool server with its manifest, read and checked.
pub fn connector(mcp: &McpConfig, env: Env<'_>) -> anyhow::Result<ServerConfig> {
    let manifest = match &mcp.manifest {
        None => Manifest::parse("")?,
        Some(path) => {
            let shown = path.display();
            let text = std::fs::read_to_string(path).map_err(|error| {
                anyhow::anyhow!(
                    "its manifest {shown} cannot be read ({error}); correct mcp.manifest"
                )
            })?;
            Manifest::parse(&text).map_err(|error| {
                anyhow::anyhow!("its manifest {shown}: {error}; correct that file")
            })?
        }
    };
    let reach = match &mcp.server {
        McpServer::Program { command, args, env } => connect::Reach::Command(connect::Command {
            program: command.display().to_string(),
            args: args.clone(),
            env: env.iter().map(|(k, v)| (k.clone(), v.expose().to_owned())).collect(),
        }),
        McpServer::Address { url, key } => connect::Reach::Http(connect::Address {
            url: url.clone(),
            key: key.fetch("mcp", env)?,
            http: model::http_client(std::time::Duration::from_secs(10))?,
        }),
    };
    Ok(ServerConfig { name: mcp.name.clone(), reach, manifest })
}

/// Takes away what belongs to nobody: a copy that was being made at a crash, and secrets without a source.
async fn sweep(
    cx: &engine::Context,
    secrets: &web::secrets::SecretFolder,
    config: &Config,
) -> anyhow::Result<()> {
    web::forget_copy(&config.data_dir).map_err(|error| data_folder(&error, &config.data_dir))?;
    let read = |tx: &mut store::Tx<'_>| {
        let (mut in_use, mut since) = (Vec::new(), base::Timestamp::from_micros(i64::MAX));
        for owner in store::owner::all(tx)? {
            let sources = store::source::in_use(tx, owner.id, i64::MAX)?;
            in_use.extend(sources.into_iter().map(|source| source.id));
            since = since.min(owner.created_at);
        }
        Ok((in_use, since))
    };
    let (in_use, since) = cx.store.read(read).await?;
    let swept = secrets
        .sweep(&in_use, since)
        .map_err(|error| data_folder(&error, &config.secrets_folder()))?;
    if swept > 0 {
        tracing::info!(swept, "files of secrets that belong to no source were taken away");
    }
    Ok(())
}

/// How often the disk is looked at.
const DISK_MS: u64 = 10_000;

/// Looks at the disk of the records until it is told to stop.
async fn watch_disk(cx: engine::Context, folder: PathBuf, mut stop: watch::Receiver<bool>) {
    loop {
        let of = folder.clone();
        let free = tokio::task::spawn_blocking(move || machine::free_bytes(&of)).await;
        let taken = match free {
            Ok(Ok(free)) => engine::disk::measured(&cx, free).await.map_err(|e| e.to_string()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = taken {
            tracing::warn!(error, "the disk could not be looked at; it is tried again");
        }
        tokio::select! {
            () = tokio::time::sleep(std::time::Duration::from_millis(DISK_MS)) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

/// The digest of the token of whoever watches the machine; it is left in the data folder at the first start.
fn watcher(cx: &engine::Context, config: &Config) -> anyhow::Result<base::Digest> {
    let file = config.data_dir.join("metrics.token");
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    let token = match kept.trim() {
        "" => {
            let token = base::Digest::of(&cx.ids.bytes::<32>()).to_string();
            write_private(&file, token.as_bytes()).map_err(|error| data_folder(&error, &file))?;
            token
        }
        kept => kept.to_owned(),
    };
    Ok(base::Digest::of(token.as_bytes()))
}

/// Leaves the command line its token, and prints a one-time link while no other device is paired.
async fn welcome(
    cx: &engine::Context,
    config: &Config,
    owner: base::OwnerId,
    listen: SocketAddr,
) -> anyhow::Result<()> {
    let read = move |tx: &mut store::Tx<'_>| {
        let user = store::owner::principal(tx, owner, store::owner::PrincipalKind::User)?.id;
        let mut devices = store::device::all(tx, owner)?;
        devices.retain(|device| device.principal == user);
        Ok(devices)
    };
    let devices = cx.store.read(read).await?;
    let file = config.token_file();
    // Whoever can write here may speak for the owner: a token that is lost, or was revoked because it
    // had become known, is replaced by another one.
    if !is_known(&devices, &file) {
        let paired =
            cx.write(owner, |cx, tx| engine::setup::add_operator(cx, tx, COMMAND_LINE)).await?;
        write_private(&file, paired.token.expose().as_bytes())
            .map_err(|error| data_folder(&error, &file))?;
    }
    let mut out = std::io::stdout().lock();
    writeln!(out, "adjutant {} listens on http://{listen}", env!("CARGO_PKG_VERSION"))?;
    if !web::page::AVAILABLE {
        writeln!(
            out,
            "This build has no page (npm was missing at its build); the command line does everything."
        )?;
    }
    drop(out);
    let others = |device: &&Device| device.revoked_at.is_none() && device.name != COMMAND_LINE;
    if devices.iter().filter(others).count() == 0 {
        let code = cx.write(owner, engine::setup::offer_code).await?.code;
        let mut out = std::io::stdout().lock();
        writeln!(out, "To pair a browser, open this link within 15 minutes; it works once:")?;
        writeln!(out, "open: http://{listen}/#code={code}")?;
    }
    std::io::stdout().lock().flush()?;
    Ok(())
}

/// Where the records are, in the data folder.
pub const DATABASE: &str = "adjutant.db";
const COMMAND_LINE: &str = "command line";

/// Whether the token in the file is that of a device that has access.
fn is_known(devices: &[Device], file: &Path) -> bool {
    let Ok(token) = std::fs::read_to_string(file) else { return false };
    let token = base::Digest::of(token.trim().as_bytes());
    devices.iter().any(|device| device.revoked_at.is_none() && device.token_digest == token)
}

/// The records are nobody else's: only this user can enter the folder.
pub fn private_folder(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700))
}

/// SQLite gives its other files the mode of the database's, so that is made before it.
fn private_database(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    File::options().write(true).create(true).truncate(false).mode(0o600).open(path).map(|_| ())
}

/// Writes a file that nobody else may read, whole or not at all.
pub fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let next = path.with_extension("new");
    let mut file =
        File::options().write(true).create(true).truncate(true).mode(0o600).open(&next)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(next, path)
}

/// Until Ctrl-C or SIGTERM.
pub async fn told_to_stop() -> anyhow::Result<()> {
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted?,
        _ = terminate.recv() => {}
    }
    Ok(())
}
