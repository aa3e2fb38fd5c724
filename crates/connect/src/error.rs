//! What can go wrong with a connector; each text says what to do next.

use crate::manifest::ManifestError;

/// Why the connectors' configuration was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A server's name that can not stand before the dot of a tool's name.
    #[error("connector name `{name}`: use 1 to 32 lower-case letters, digits, `_` or `-`")]
    Name {
        /// The refused name.
        name: String,
    },
    /// An address that can not be asked.
    #[error(
        "connector `{name}`: its address {problem}; correct mcp.url, mcp.key_env or mcp.key_file"
    )]
    Address {
        /// The connector.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The manifest of a built-in connector is not sound.
    #[error("built-in connector `{name}`: {problem}; this build is broken, install a released one")]
    BuiltIn {
        /// The connector.
        name: String,
        /// What is wrong with its manifest.
        problem: ManifestError,
    },
    /// Two servers of one name.
    #[error("two connectors are named `{name}`; give one of them another name")]
    Twice {
        /// The name.
        name: String,
    },
}

/// Why a connector did not answer. The texts are about reads: what the end of a call that acts proves is said by
/// [`Acted`](crate::Acted).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// No manifest has an entry of that name.
    #[error("there is no tool `{tool}` in any manifest; look in the list of tools")]
    UnknownTool {
        /// The name that was asked for.
        tool: String,
    },
    /// The process could not be started.
    #[error(
        "connector `{server}`: could not start `{command}`: {reason}. Check the command in the \
             configuration, and that it is installed and on PATH"
    )]
    Start {
        /// The connector.
        server: String,
        /// The program of the configuration.
        command: String,
        /// The system's words.
        reason: String,
    },
    /// There is no connection to the server's address, or nothing was ever answered there.
    #[error(
        "connector `{server}` cannot be reached at {place}: {reason}. Check mcp.url and whether the \
             server runs; a read may simply be asked again later"
    )]
    Unreachable {
        /// The connector.
        server: String,
        /// Its address, without what may be secret in it.
        place: String,
        /// The system's words, or the limit.
        reason: String,
    },
    /// The connection broke before the answer was whole.
    #[error(
        "the connection to connector `{server}` broke during `{during}` before its answer was whole. \
             Nothing is sent again by itself; a read may simply be asked anew"
    )]
    Broken {
        /// The connector.
        server: String,
        /// The method or tool that was under way.
        during: String,
    },
    /// The server answered with a status that is no success, and with nothing of the protocol.
    #[error("`{tool}` was answered with HTTP {status}. {}", status_remedy(*status))]
    Status {
        /// `server.tool`, or the method.
        tool: String,
        /// The status.
        status: u16,
    },
    /// An argument has to stand in a header of the request and is too long for that.
    #[error("`{argument}` of `{tool}` is longer than 4096 bytes, which is too long; shorten it")]
    TooLong {
        /// `server.tool`.
        tool: String,
        /// The argument.
        argument: String,
    },
    /// The process runs but did not answer the first request in time.
    #[error(
        "connector `{server}` did not answer `initialize` within {limit_ms} ms{garbage}. Run its \
             command by hand: it must speak MCP on stdin and stdout and write logs to stderr only"
    )]
    Silent {
        /// The connector.
        server: String,
        /// The limit, in milliseconds.
        limit_ms: u64,
        /// Empty, or a clause about lines on stdout that were not messages.
        garbage: String,
    },
    /// The process answered the first request with something else.
    #[error(
        "connector `{server}` failed at the start: {reason}. Check that its command starts an MCP \
             server of a revision from 2024-11-05 to 2025-11-25; at an address 2026-07-28 will do too"
    )]
    Handshake {
        /// The connector.
        server: String,
        /// What came instead.
        reason: String,
    },
    /// The process ended, or closed its end, while it was asked something.
    #[error(
        "connector `{server}` stopped during `{during}`{garbage}. It is started again at the next \
             call; a read may simply be repeated. Its last words are in the log at level debug"
    )]
    Stopped {
        /// The connector.
        server: String,
        /// The method or tool that was under way.
        during: String,
        /// Empty, or a clause about lines on stdout that were not messages.
        garbage: String,
    },
    /// The process failed several times in a row and is left alone for a while.
    #[error(
        "connector `{server}` failed {failures} times in a row; it is started again on a call in \
             {retry_ms} ms or later. If that goes on, run the check of the configuration"
    )]
    BackingOff {
        /// The connector.
        server: String,
        /// Failures in a row.
        failures: u32,
        /// Milliseconds until it may be started again.
        retry_ms: u64,
    },
    /// The answer did not come within the caller's limit.
    #[error("`{tool}` did not answer within {limit_ms} ms. Ask for less, or try again later")]
    TimedOut {
        /// `server.tool`, or the method.
        tool: String,
        /// The limit, in milliseconds.
        limit_ms: u64,
    },
    /// All places for calls under way were taken for the whole limit.
    #[error("connector `{server}` has {in_flight} calls under way already; try again later")]
    Busy {
        /// The connector.
        server: String,
        /// The number of places.
        in_flight: usize,
    },
    /// One message was longer than we are willing to hold.
    #[error(
        "connector `{server}` sent a message of more than {limit_bytes} bytes, which was refused \
             and the connection ended. Ask for less: a smaller range, fewer results, one page"
    )]
    TooLarge {
        /// The connector.
        server: String,
        /// The limit, in bytes.
        limit_bytes: usize,
    },
    /// The manifest names a tool that the server does not have.
    #[error(
        "the manifest has an entry for `{tool}`, but its server offers no such tool. Correct the \
             manifest, or update the server"
    )]
    NotOffered {
        /// `server.tool`.
        tool: String,
    },
    /// The server refused the request, most often because of its arguments.
    #[error("`{tool}` refused the call ({code}): {message}. Compare the arguments with its schema")]
    Rejected {
        /// `server.tool`, or the method.
        tool: String,
        /// The JSON-RPC error code.
        code: i32,
        /// The server's words, from outside and cut.
        message: String,
    },
    /// The server answered with something that is not a result we know.
    #[error("`{tool}` answered with {what}, which is not supported. Use another tool")]
    Unsupported {
        /// `server.tool`, or the method.
        tool: String,
        /// What came.
        what: String,
    },
    /// The server, or the service behind it, refuses the credentials we have for it. Nobody may go
    /// round it meanwhile (TOOL-08).
    #[error(
        "connector `{server}` refuses the key it was given: {reason}. Do not try another way to the \
             same service; tell the person, who can put a valid key into the configuration (for a tool \
             server mcp.key_env or mcp.key_file, or mcp.env of a program) and start again"
    )]
    Authentication {
        /// The connector.
        server: String,
        /// The status or the server's words, from outside and cut.
        reason: String,
    },
    /// [`crate::Connectors::shutdown`] was called.
    #[error("connector `{server}` is shut down with this process; start it again to use it")]
    ShutDown {
        /// The connector.
        server: String,
    },
}

fn status_remedy(status: u16) -> &'static str {
    match status {
        300..400 => "It moved: give its new address as mcp.url",
        408 | 429 | 500.. => "Try again later",
        _ => "Check that mcp.url is the address of its MCP endpoint",
    }
}
