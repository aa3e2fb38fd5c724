//! The server's process: its environment, its error stream, and its end.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::connectors::Command as Config;
use crate::error::ConnectError;

/// What a server inherits of our environment; keys and tokens of others stay here.
const INHERITED: [&str; 3] = ["PATH", "HOME", "LANG"];
/// Lines of one process's error stream that are logged; the rest is read and thrown away.
const LOGGED_LINES_MAX: usize = 200;

/// A running process. Dropping it kills it together with the processes it started.
///
/// If this process is killed itself, the pipe to the server's standard input closes with it, which
/// tells an MCP server to end.
pub(crate) struct Process {
    child: Child,
}

impl Process {
    /// Starts the server in a process group of its own.
    pub(crate) fn start(
        server: &str,
        config: &Config,
    ) -> Result<(Process, ChildStdin, ChildStdout), ConnectError> {
        let failed = |reason: String| ConnectError::Start {
            server: server.to_owned(),
            command: config.program.clone(),
            reason,
        };
        let inherited = INHERITED.iter().filter_map(|name| Some((*name, std::env::var_os(name)?)));
        let mut child = Command::new(&config.program)
            .args(&config.args)
            .env_clear()
            .envs(inherited)
            .envs(&config.env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| failed(error.to_string()))?;
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(drain(server.to_owned(), stderr));
        }
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let process = Process { child };
        match (stdin, stdout) {
            (Some(stdin), Some(stdout)) => Ok((process, stdin, stdout)),
            _ => Err(failed("its standard streams are missing".to_owned())),
        }
    }

    /// Waits for the process to end by itself, then kills what is left. Its input must be closed.
    pub(crate) async fn end(mut self, limit: Duration) {
        if timeout(limit, self.child.wait()).await.is_err() {
            tracing::debug!("a connector ignored the end of its input and is killed");
            self.kill();
            // A killed process ends at once, unless the system itself is stuck.
            let _ = timeout(limit, self.child.wait()).await;
        }
    }

    /// Kills the whole process group, unless the process has been waited for already.
    fn kill(&self) {
        // There is an id exactly while the child has not been waited for, so it can not have been
        // given to another process yet.
        let id = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(id) = id {
            // It may have ended by itself: then there is nothing left to kill.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads the error stream to its end, so that the server never blocks on it, and logs its start.
async fn drain(server: String, stderr: impl AsyncRead + Unpin) {
    let mut reader = BufReader::with_capacity(1024, stderr);
    let mut logged = 0;
    while let Ok(bytes) = reader.fill_buf().await {
        if bytes.is_empty() {
            return;
        }
        if logged < LOGGED_LINES_MAX {
            for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                logged += 1;
                tracing::debug!(server, line = %String::from_utf8_lossy(line), "connector log");
            }
        }
        let read = bytes.len();
        reader.consume(read);
    }
}
