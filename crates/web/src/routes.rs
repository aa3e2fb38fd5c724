//! Every operation of the API in one table; the router is built from it, and a test compares it with
//! `openapi.json` both ways.

use axum::Router;
use axum::http::Uri;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};

use crate::{
    App, actions, answer, audit, auth, changes, chat, control, copy, demo, devices, duties, events,
    hooks, me, messages, metrics, proposals, rules, sources, stream, tools,
};

/// The methods that the API uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Reads; changes nothing.
    Get,
    /// Writes.
    Post,
    /// Takes something away.
    Delete,
}

impl Verb {
    /// As in a request line.
    pub const fn word(self) -> &'static str {
        match self {
            Verb::Get => "GET",
            Verb::Post => "POST",
            Verb::Delete => "DELETE",
        }
    }

    const fn filter(self) -> MethodFilter {
        match self {
            Verb::Get => MethodFilter::GET,
            Verb::Post => MethodFilter::POST,
            Verb::Delete => MethodFilter::DELETE,
        }
    }
}

/// Who may call an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anyone who reaches the address by one of its own names.
    Open,
    /// Anyone who signs what they send, by whatever name they reach the address: it may be a proxy's.
    Signed,
    /// Whoever watches the machine, by the token that the server left for that alone.
    Watcher,
    /// A paired device of the user, by its token.
    Device,
    /// A paired device of the supervisor.
    Supervisor,
    /// A paired device of either; what it sees and may do, its principal says.
    Anyone,
}

/// One operation.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// Its method.
    pub verb: Verb,
    /// Its path, in the spelling of OpenAPI.
    pub path: &'static str,
    /// Who may call it. The check is a layer around the handler, so no handler can forget it.
    pub access: Access,
    handler: fn(MethodFilter) -> MethodRouter<App>,
}

const fn route(
    verb: Verb,
    path: &'static str,
    access: Access,
    handler: fn(MethodFilter) -> MethodRouter<App>,
) -> Route {
    Route { verb, path, access, handler }
}

use Access::{Anyone, Device, Open, Signed, Supervisor, Watcher};
use Verb::{Delete, Get, Post};

/// Where webhooks are delivered to.
const HOOKS: &str = "/v1/hooks/";

/// Whether an address is that of a webhook.
pub(crate) fn is_hook(uri: &Uri) -> bool {
    uri.path().starts_with(HOOKS)
}

/// Every operation.
pub const ROUTES: &[Route] = &[
    route(Get, "/", Open, |m| on(m, answer::index)),
    route(Get, "/health", Open, |m| on(m, me::health)),
    route(Get, "/healthz", Open, |m| on(m, metrics::lives)),
    route(Get, "/readyz", Open, |m| on(m, metrics::ready)),
    route(Get, "/metrics", Watcher, |m| on(m, metrics::show)),
    route(Get, "/openapi.json", Open, |m| on(m, answer::openapi)),
    route(Post, "/v1/pair", Open, |m| on(m, auth::pair)),
    route(Get, "/v1/me", Anyone, |m| on(m, me::me)),
    route(Post, "/v1/owner", Device, |m| on(m, me::set)),
    route(Post, "/v1/codes", Device, |m| on(m, devices::offer)),
    route(Get, "/v1/devices", Anyone, |m| on(m, devices::list)),
    route(Post, "/v1/devices/{id}/revoke", Anyone, |m| on(m, devices::revoke)),
    route(Post, "/v1/messages", Device, |m| on(m, messages::send)),
    route(Post, "/v1/receipts", Device, |m| on(m, messages::receipts)),
    route(Get, "/v1/chat", Device, |m| on(m, chat::list)),
    route(Get, "/v1/chat/{id}", Device, |m| on(m, chat::one)),
    route(Get, "/v1/changes", Device, |m| on(m, changes::list)),
    route(Get, "/v1/stream", Device, |m| on(m, stream::open)),
    route(Get, "/v1/duties", Device, |m| on(m, duties::list)),
    route(Get, "/v1/duties/{id}", Device, |m| on(m, duties::one)),
    route(Post, "/v1/duties/{id}/stop", Device, |m| on(m, duties::stop)),
    route(Post, "/v1/duties/{id}/resume", Device, |m| on(m, duties::resume)),
    route(Get, "/v1/proposals", Device, |m| on(m, proposals::list)),
    route(Get, "/v1/proposals/{id}", Device, |m| on(m, proposals::one)),
    route(Post, "/v1/proposals/{id}/confirm", Device, |m| on(m, proposals::confirm)),
    route(Post, "/v1/proposals/{id}/decline", Device, |m| on(m, proposals::decline)),
    route(Get, "/v1/actions", Anyone, |m| on(m, actions::list)),
    route(Get, "/v1/actions/{id}", Anyone, |m| on(m, actions::one)),
    route(Get, "/v1/decisions", Device, |m| on(m, actions::log)),
    route(Get, "/v1/actions/{id}/explain", Device, |m| on(m, actions::explain)),
    route(Get, "/v1/audit/verify", Device, |m| on(m, audit::verified)),
    route(Get, "/v1/copy", Device, |m| on(m, copy::records)),
    route(Get, "/v1/tools", Device, |m| on(m, tools::list)),
    route(Post, "/v1/actions/{id}/approve", Anyone, |m| on(m, actions::approve)),
    route(Post, "/v1/actions/{id}/deny", Anyone, |m| on(m, actions::deny)),
    route(Post, "/v1/actions/{id}/withdraw", Device, |m| on(m, actions::withdraw)),
    route(Post, "/v1/actions/{id}/state", Device, |m| on(m, actions::state)),
    route(Get, "/v1/rules", Anyone, |m| on(m, rules::list)),
    route(Post, "/v1/rules", Supervisor, |m| on(m, rules::add)),
    route(Post, "/v1/rules/{id}/end", Supervisor, |m| on(m, rules::end)),
    route(Post, "/v1/hooks/{id}", Signed, |m| on(m, hooks::take)),
    route(Get, "/v1/sources", Device, |m| on(m, sources::list)),
    route(Post, "/v1/sources", Device, |m| on(m, sources::add)),
    route(Delete, "/v1/sources/{id}", Device, |m| on(m, sources::remove)),
    route(Post, "/v1/sources/{id}/test", Device, |m| on(m, sources::test)),
    route(Post, "/v1/sources/{id}/rotate", Device, |m| on(m, sources::rotate)),
    route(Get, "/v1/events", Device, |m| on(m, events::list)),
    route(Get, "/v1/events/{id}", Device, |m| on(m, events::trace)),
    route(Get, "/v1/observed", Device, |m| on(m, events::observed)),
    route(Get, "/v1/control", Device, |m| on(m, control::show)),
    route(Post, "/v1/pauses", Device, |m| on(m, control::pause)),
    route(Post, "/v1/pauses/{id}/lift", Device, |m| on(m, control::lift)),
    route(Post, "/v1/holds/{id}/release", Device, |m| on(m, control::release)),
    route(Post, "/v1/holds/{id}/promote", Device, |m| on(m, control::promote)),
    route(Post, "/v1/system-stop", Device, |m| on(m, control::system_stop)),
    route(Get, "/v1/demo", Device, |m| on(m, demo::state)),
    route(Post, "/v1/demo/plug", Device, |m| on(m, demo::plug)),
];

/// The router of the table.
pub(crate) fn table(app: &App) -> Router<App> {
    ROUTES.iter().fold(Router::new(), |router, route| {
        let handler = (route.handler)(route.verb.filter());
        router.route(
            route.path,
            match route.access {
                Access::Open | Access::Signed => handler,
                Access::Watcher => {
                    handler.route_layer(from_fn_with_state(app.clone(), auth::watcher))
                }
                Access::Device | Access::Supervisor | Access::Anyone => {
                    let state = (app.clone(), route.access);
                    handler.route_layer(from_fn_with_state(state, auth::device))
                }
            },
        )
    })
}
