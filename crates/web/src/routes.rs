//! Every operation of the API in one table; the router is built from it, and a test compares it with
//! `openapi.json` both ways.

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{MethodFilter, MethodRouter, on};

use crate::{
    App, answer, auth, changes, chat, demo, devices, duties, me, messages, proposals, stream,
};

/// The methods that the API uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verb {
    /// Reads; changes nothing.
    Get,
    /// Writes.
    Post,
}

impl Verb {
    /// As in a request line.
    pub const fn word(self) -> &'static str {
        match self {
            Verb::Get => "GET",
            Verb::Post => "POST",
        }
    }

    const fn filter(self) -> MethodFilter {
        match self {
            Verb::Get => MethodFilter::GET,
            Verb::Post => MethodFilter::POST,
        }
    }
}

/// Who may call an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Anyone who reaches the address by one of its own names.
    Open,
    /// A paired device, by its token.
    Device,
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

use Access::{Device, Open};
use Verb::{Get, Post};

/// Every operation.
pub const ROUTES: &[Route] = &[
    route(Get, "/", Open, |m| on(m, answer::index)),
    route(Get, "/health", Open, |m| on(m, me::health)),
    route(Get, "/openapi.json", Open, |m| on(m, answer::openapi)),
    route(Post, "/v1/pair", Open, |m| on(m, auth::pair)),
    route(Get, "/v1/me", Device, |m| on(m, me::me)),
    route(Post, "/v1/owner", Device, |m| on(m, me::set)),
    route(Post, "/v1/codes", Device, |m| on(m, devices::offer)),
    route(Get, "/v1/devices", Device, |m| on(m, devices::list)),
    route(Post, "/v1/devices/{id}/revoke", Device, |m| on(m, devices::revoke)),
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
                Access::Open => handler,
                Access::Device => {
                    handler.route_layer(from_fn_with_state(app.clone(), auth::device))
                }
            },
        )
    })
}
