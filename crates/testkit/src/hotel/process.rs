//! The hotel vendor as a process: an MCP server over stdio, with a state that outlives it.
//!
//! With a state file, the file is the vendor: each call locks it, reads it, changes it and replaces it
//! before an answer is given. So a killed process has forgotten nothing, a process that lingers after its
//! client was killed can undo nothing, and several processes are one vendor.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base::Clock;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, ListToolsResult, PaginatedRequestParams, RequestId, ServerCapabilities,
    ServerConfig, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::{ServerHandler, ServiceExt as _};
use serde_json::{Map, Value, json};

use super::{Faults, Hotel, HotelOptions, Repeated, Reply, Tool, UNDESCRIBED};

/// How long a call that gets no answer hangs.
const HANG: Duration = Duration::from_secs(60);
/// Calls whose request ids are kept, so that an answer can come again.
const IDS_MAX: usize = 100;

/// How a process hosts the vendor.
#[derive(Debug, Clone, Default)]
pub struct ProcessOptions {
    /// The seed of a new vendor. A state file keeps the seed that it began with.
    pub seed: u64,
    /// What a new vendor promises. A state file keeps what it began with.
    pub options: HotelOptions,
    /// Where the state is kept; without it the vendor dies with the process.
    pub state: Option<PathBuf>,
    /// A plan of faults ([`Faults`] as JSON), read anew at each call. A file that is missing is an honest
    /// vendor.
    pub faults: Option<PathBuf>,
}

impl ProcessOptions {
    /// Reads `--seed N`, `--state FILE` and `--faults FILE`, for programs without a command line of
    /// their own.
    ///
    /// # Errors
    /// For another option, or one without a value that fits.
    pub fn from_arguments(mut arguments: impl Iterator<Item = String>) -> io::Result<Self> {
        let mut options = ProcessOptions::default();
        while let Some(name) = arguments.next() {
            let wrong = || {
                let text = format!("{name}: write --seed NUMBER, --state FILE or --faults FILE");
                io::Error::new(ErrorKind::InvalidInput, text)
            };
            let value = arguments.next().ok_or_else(wrong)?;
            match name.as_str() {
                "--seed" => options.seed = value.parse().map_err(|_| wrong())?,
                "--state" => options.state = Some(value.into()),
                "--faults" => options.faults = Some(value.into()),
                _ => return Err(wrong()),
            }
        }
        Ok(options)
    }
}

/// The vendor in a state file; `None` if there is no such file yet. A file is never seen half written.
///
/// # Errors
/// When it cannot be read or holds no vendor.
pub fn read_state(path: &Path) -> io::Result<Option<Hotel>> {
    let Some(text) = read_if_there(path)? else { return Ok(None) };
    serde_json::from_str(&text).map(Some).map_err(|error| {
        let text = format!("{} holds no hotel vendor ({error}); remove it", path.display());
        io::Error::new(ErrorKind::InvalidData, text)
    })
}

fn read_if_there(path: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => {
            Err(io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display())))
        }
    }
}

/// Replaces the state file. What the kernel has outlives a kill of the process, which is all that is
/// promised, so nothing waits for the disk.
fn write_state(path: &Path, hotel: &Hotel) -> io::Result<()> {
    let beside = with_ending(path, "new");
    fs::write(&beside, serde_json::to_vec(hotel)?)?;
    fs::rename(&beside, path)
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Hosts a [`Hotel`] behind the protocol.
struct Host {
    options: ProcessOptions,
    clock: Arc<dyn Clock>,
    /// The SDK answers calls at the same time; one call changes the state at once and never awaits.
    inner: Mutex<Inner>,
}

struct Inner {
    hotel: Hotel,
    /// The latest calls of this connection: the vendor's number and the protocol's.
    ids: BTreeMap<u64, RequestId>,
}

impl Host {
    /// One call, durable when this returns.
    fn call(&self, id: RequestId, tool: &str, arguments: &Map<String, Value>) -> io::Result<Reply> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let inner = &mut *inner;
        // Held until the new state is in place: another process may be the same vendor.
        let lock = self.options.state.as_ref().map(|path| File::create(with_ending(path, "lock")));
        let lock = lock.transpose()?;
        if let (Some(path), Some(lock)) = (&self.options.state, &lock) {
            lock.lock()?;
            if let Some(hotel) = read_state(path)? {
                inner.hotel = hotel;
            }
        }
        inner.hotel.set_faults(self.faults()?);
        let before = inner.hotel.requests().len();
        let reply = inner.hotel.call(self.clock.now(), tool, arguments);
        if let Some(path) = &self.options.state {
            write_state(path, &inner.hotel)?;
        }
        if let Some(request) = inner.hotel.requests().get(before) {
            inner.ids.insert(request.call, id);
        }
        while inner.ids.len() > IDS_MAX {
            inner.ids.pop_first();
        }
        if let Some(repeated) = inner.hotel.take_repeated() {
            repeat(&inner.ids, repeated)?;
        }
        Ok(reply)
    }

    fn faults(&self) -> io::Result<Faults> {
        let Some(path) = &self.options.faults else { return Ok(Faults::default()) };
        let Some(text) = read_if_there(path)? else { return Ok(Faults::default()) };
        Faults::parse(&text).map_err(io::Error::other)
    }
}

/// Sends the answer to an earlier request of this connection once more, past the SDK, which answers each
/// request once. Both write whole lines through the one lock of the standard output.
fn repeat(ids: &BTreeMap<u64, RequestId>, repeated: Repeated) -> io::Result<()> {
    let Some(id) = ids.get(&repeated.call) else { return Ok(()) };
    let Some(result) = result_of(repeated.reply) else { return Ok(()) };
    let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result });
    let mut out = io::stdout().lock();
    out.write_all(format!("{answer}\n").as_bytes())?;
    out.flush()
}

fn result_of(reply: Reply) -> Option<CallToolResult> {
    let blocks = |text: String| vec![ContentBlock::text(text)];
    match reply {
        Reply::Answer { json, is_error: true } => {
            Some(CallToolResult::error(blocks(json.to_string())))
        }
        Reply::Answer { json, is_error: false } => {
            Some(CallToolResult::success(blocks(json.to_string())))
        }
        Reply::Garbage(text) => Some(CallToolResult::success(blocks(text))),
        Reply::Lost => None,
    }
}

impl ServerHandler for Host {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("hotel", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let described = Tool::ALL.map(offered).into_iter();
        Ok(ListToolsResult::with_all_items(described.chain([undescribed()]).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let failed = |error: io::Error| ErrorData::internal_error(error.to_string(), None);
        let reply = self.call(context.id.clone(), &request.name, &arguments).map_err(failed)?;
        if let Some(result) = result_of(reply) {
            return Ok(result.into());
        }
        // Whichever comes first ends the silence: the client gave up, or the bound of the hang.
        tokio::select! {
            () = context.ct.cancelled() => {}
            () = tokio::time::sleep(HANG) => {}
        }
        Err(ErrorData::internal_error("no answer came", None))
    }
}

/// The schema of a tool's arguments, as the server says it.
pub fn parameters(tool: &str) -> Option<Map<String, Value>> {
    let tool = Tool::ALL.into_iter().find(|known| known.as_str() == tool)?;
    Some(offered(tool).input_schema.as_ref().clone())
}

/// A tool as the server describes it.
fn offered(tool: Tool) -> rmcp::model::Tool {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let (quote, guest) = (text("the id of an offer"), text("the name of the guest"));
    let (day, reference) = (text("YYYY-MM-DD"), text("your own reference"));
    let guests = json!({ "type": "integer", "minimum": 1, "maximum": 6 });
    let (description, properties) = match tool {
        Tool::SearchHotels => (
            "Offers rooms; a price is held until its valid_until.",
            json!({ "city": text("where"), "check_in": day, "check_out": day, "guests": guests }),
        ),
        Tool::BookHotel => (
            "Books an offer. The same reference within 24 hours gives the first booking.",
            json!({ "quote": quote, "client_ref": reference, "guest": guest }),
        ),
        Tool::FindBooking => ("Finds a booking.", json!({ "client_ref": reference })),
        Tool::CancelBooking => (
            "Cancels a booking, under a reference of its own.",
            json!({ "confirmation_number": text("the booking's"), "client_ref": reference }),
        ),
        Tool::FindCancellation => ("Finds a cancellation.", json!({ "client_ref": reference })),
    };
    let required: Vec<&String> = properties.as_object().into_iter().flat_map(Map::keys).collect();
    let schema = Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("required".to_owned(), json!(required)),
        ("properties".to_owned(), properties),
    ]);
    rmcp::model::Tool::new(tool.as_str(), description, schema)
}

/// The tool that no manifest describes. Its own hints are a lie.
fn undescribed() -> rmcp::model::Tool {
    let text = json!({ "type": "string", "description": "what it says" });
    let schema = Map::from_iter([
        ("type".to_owned(), json!("object")),
        ("required".to_owned(), json!(["text"])),
        ("properties".to_owned(), json!({ "text": text })),
    ]);
    let hints = ToolAnnotations::new().read_only(true).idempotent(true);
    rmcp::model::Tool::new(UNDESCRIBED, "Leaves a note at the desk.", schema).annotate(hints)
}

/// Serves the vendor on the standard streams until the input ends.
///
/// # Errors
/// When a state or a plan of faults is there but cannot be read, or when the other side does not open the
/// connection as MCP asks.
pub async fn serve_stdio(options: ProcessOptions, clock: Arc<dyn Clock>) -> io::Result<()> {
    let hotel = Hotel::new(options.seed, options.options);
    let inner = Mutex::new(Inner { hotel, ids: BTreeMap::new() });
    let host = Host { options, clock, inner };
    host.faults()?;
    if let Some(path) = &host.options.state {
        read_state(path)?;
    }
    let service = host.serve(rmcp::transport::stdio()).await.map_err(io::Error::other)?;
    service.waiting().await.map_err(io::Error::other)?;
    Ok(())
}
