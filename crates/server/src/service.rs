//! `adjutant service`: the server as a unit of systemd, started with the machine and kept to its own folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context as _;
use serde_json::json;

use crate::cli::{ServiceArgs, ServiceCommand};
use crate::client::Exit;
use crate::config::{Config, Env};
use crate::serve;

const NAME: &str = "adjutant.service";

/// Whose systemd it is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Manager {
    /// The person's own.
    User,
    /// The machine's; the server runs as this user.
    System(String),
}

impl Manager {
    fn of(args: &ServiceArgs) -> Manager {
        args.system_as.clone().map_or(Manager::User, Manager::System)
    }

    /// Where its units are.
    fn folder(&self, env: Env<'_>) -> anyhow::Result<PathBuf> {
        let set = |name: &str| env(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        match self {
            Manager::System(_) => Ok("/etc/systemd/system".into()),
            Manager::User => set("XDG_CONFIG_HOME")
                .or_else(|| set("HOME").map(|home| home.join(".config")))
                .map(|folder| folder.join("systemd/user"))
                .context("HOME is not set, so there is no folder for units; set HOME"),
        }
    }

    fn words(&self, rest: &[&str]) -> Vec<String> {
        let own = matches!(self, Manager::User).then_some("--user");
        own.iter().chain(rest).map(|word| (*word).to_owned()).collect()
    }

    /// Has systemd do something. The error says what it said.
    fn ask(&self, rest: &[&str]) -> Result<String, String> {
        let words = self.words(rest);
        let output = Command::new("systemctl").args(&words).output();
        let output = output.map_err(|error| format!("systemctl cannot be started ({error})"))?;
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        match output.status.success() {
            true => Ok(said(&output.stdout)),
            // `is-active` says it on standard output.
            false => Err([said(&output.stderr), said(&output.stdout)].join(" ").trim().to_owned()),
        }
    }

    /// The same for a person to type.
    fn command(&self, rest: &[&str]) -> String {
        format!("systemctl {}", self.words(rest).join(" "))
    }
}

/// A path as one word of a unit's line.
fn word(path: &Path, of_command: bool) -> anyhow::Result<String> {
    let shown = path.display();
    let text = path.to_str().with_context(|| format!("{shown} is not UTF-8; use another path"))?;
    if text.chars().any(char::is_control) {
        anyhow::bail!("{text:?} has a character that no unit can hold; use another path");
    }
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    // Variables are put in only there.
    let text = if of_command { text.replace('$', "$$") } else { text };
    Ok(format!("\"{text}\""))
}

/// The whole unit.
fn unit(program: &Path, config: &Config, manager: &Manager) -> anyhow::Result<String> {
    let Some(file) = &config.file else {
        anyhow::bail!("there is no configuration file; write one, or name it with --config");
    };
    let keys = file.with_file_name("key.env");
    let (target, run_as, after) = match manager {
        Manager::User => ("default.target", String::new(), ""),
        Manager::System(user) => {
            let is_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
            if user.is_empty() || !user.chars().all(is_name) {
                anyhow::bail!(
                    "{user:?} is no user's name; name the user that owns the data folder"
                );
            }
            let after = "Wants=network-online.target\nAfter=network-online.target\n";
            ("multi-user.target", format!("User={user}\nCapabilityBoundingSet=\n"), after)
        }
    };
    let (program, file) = (word(program, true)?, word(file, true)?);
    // A single path up to the end of the line; only what stands for something else is escaped.
    let keys = keys.display().to_string().replace('%', "%%");
    let data = word(&config.data_dir, false)?;
    Ok(format!(
        "[Unit]\n\
         Description=Adjutant, a personal agent\n\
         {after}\
         # It is started again for as long as it takes; doctor and the log say why it ended.\n\
         StartLimitIntervalSec=0\n\
         \n\
         [Service]\n\
         Type=exec\n\
         ExecStart={program} --config {file} serve\n\
         # Keys that the configuration names by a variable, one NAME=value a line, mode 0600.\n\
         EnvironmentFile=-{keys}\n\
         {run_as}\
         Restart=on-failure\n\
         # Twice as long each time, from 2 s to 5 min; before systemd 254 always 2 s.\n\
         RestartSec=2\n\
         RestartSteps=8\n\
         RestartMaxDelaySec=300\n\
         TimeoutStopSec=30\n\
         UMask=0077\n\
         # It writes into its own folder alone. Its tool servers too: add the folders that they need.\n\
         ProtectSystem=strict\n\
         ProtectHome=read-only\n\
         ReadWritePaths={data}\n\
         PrivateTmp=yes\n\
         NoNewPrivileges=yes\n\
         RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK\n\
         RestrictSUIDSGID=yes\n\
         RestrictRealtime=yes\n\
         LockPersonality=yes\n\
         SystemCallArchitectures=native\n\
         # With all its tool servers.\n\
         MemoryMax=2G\n\
         TasksMax=1024\n\
         \n\
         [Install]\n\
         WantedBy={target}\n"
    ))
}

/// Carries one of the words out; the answer is for standard output.
pub fn run(
    command: &ServiceCommand,
    config: &Config,
    env: Env<'_>,
) -> anyhow::Result<(String, Exit)> {
    match command {
        ServiceCommand::Install(args) => install(args, config, env),
        ServiceCommand::Uninstall(args) => uninstall(args, env),
        ServiceCommand::Status(args) => status(args, env),
    }
}

fn install(args: &ServiceArgs, config: &Config, env: Env<'_>) -> anyhow::Result<(String, Exit)> {
    let manager = Manager::of(args);
    let text = unit(&std::env::current_exe()?, config, &manager)?;
    if args.print {
        let shown = if args.json { format!("{}\n", json!({"unit": text})) } else { text };
        return Ok((shown, Exit::Ok));
    }
    let file = manager.folder(env)?.join(NAME);
    let steps: [&[&str]; 2] = [&["daemon-reload"], &["enable", "--now", NAME]];
    let (asked, written) = match manager.ask(&["--version"]) {
        Ok(_) => {
            write(&file, &text, config, &manager)?;
            (steps.iter().try_for_each(|step| manager.ask(step).map(drop)), true)
        }
        Err(why) => (Err(why), false),
    };
    let commands = steps.map(|step| manager.command(step));
    let linger = matches!(manager, Manager::User).then_some("loginctl enable-linger");
    if args.json {
        let said = json!({
            "installed": asked.is_ok(),
            "why_not": asked.as_ref().err(),
            "file": file,
            "written": written,
            "unit": text,
            "commands": commands,
            "also": linger,
        });
        return Ok((format!("{said}\n"), exit(asked.is_ok())));
    }
    let file = file.display();
    let linger =
        linger.map(|linger| format!("To have it run also while you are not logged in: {linger}\n"));
    let linger = linger.unwrap_or_default();
    Ok(match asked {
        Ok(()) => {
            let look = manager.command(&["status", NAME]);
            (format!("Installed and started: {file}\nLook at it: {look}\n{linger}"), Exit::Ok)
        }
        Err(why) => {
            let save = if written { "It is saved as" } else { "Save it as" };
            let [reload, enable] = commands;
            let said = format!(
                "{text}\nsystemd did not take this unit: {why}\n{save} {file}, then run:\n  {reload}\n  \
                 {enable}\n{linger}"
            );
            (said, Exit::Error)
        }
    })
}

/// Writes the unit, and makes the folders that it needs to start.
fn write(file: &Path, text: &str, config: &Config, manager: &Manager) -> anyhow::Result<()> {
    let folder = &config.data_dir;
    match manager {
        Manager::User => {
            serve::private_folder(folder).map_err(|error| serve::data_folder(&error, folder))?;
        }
        Manager::System(user) if !folder.is_dir() => {
            anyhow::bail!("{} is not there; make it as {user}", folder.display());
        }
        Manager::System(_) => {}
    }
    let cannot = |error: std::io::Error| {
        anyhow::anyhow!("cannot write {} ({error}); run it as whoever may", file.display())
    };
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(cannot)?;
    }
    std::fs::write(file, text).map_err(cannot)
}

fn uninstall(args: &ServiceArgs, env: Env<'_>) -> anyhow::Result<(String, Exit)> {
    let manager = Manager::of(args);
    let file = manager.folder(env)?.join(NAME);
    if !file.exists() {
        anyhow::bail!("{} is not there; nothing was done", file.display());
    }
    let stop: &[&str] = &["disable", "--now", NAME];
    if args.print {
        return Ok((format!("{}\nrm {}\n", manager.command(stop), file.display()), Exit::Ok));
    }
    // A unit whose file went before it was stopped would run on and be found by nobody.
    manager.ask(stop).map_err(|why| {
        anyhow::anyhow!("systemd did not stop it ({why}); run: {}", manager.command(stop))
    })?;
    std::fs::remove_file(&file)?;
    manager.ask(&["daemon-reload"]).map_err(|why| {
        anyhow::anyhow!("{} is gone, but systemd did not look again: {why}", file.display())
    })?;
    let said = match args.json {
        true => format!("{}\n", json!({"installed": false, "file": file})),
        false => format!("Stopped and taken away: {}\nThe records stay.\n", file.display()),
    };
    Ok((said, Exit::Ok))
}

fn status(args: &ServiceArgs, env: Env<'_>) -> anyhow::Result<(String, Exit)> {
    let manager = Manager::of(args);
    let file = manager.folder(env)?.join(NAME);
    let ask = |what| manager.ask(&[what, NAME]).unwrap_or_else(|why| why);
    let (enabled, active) = (ask("is-enabled"), ask("is-active"));
    let runs = active == "active";
    let said = if args.json {
        let installed = file.exists();
        let said = json!({
            "installed": installed, "file": file, "enabled": enabled, "active": active, "runs": runs,
        });
        format!("{said}\n")
    } else {
        let there = if file.exists() { "" } else { " is not there" };
        format!("Unit     {}{there}\nAt boot  {enabled}\nNow      {active}\n", file.display())
    };
    Ok((said, exit(runs)))
}

fn exit(done: bool) -> Exit {
    if done { Exit::Ok } else { Exit::Error }
}

#[cfg(test)]
mod tests;
