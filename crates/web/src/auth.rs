//! Who asks, from where: the token of a device, the server's own names, and pairing (DESIGN section 9).

use std::net::{IpAddr, SocketAddr};
use std::sync::PoisonError;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use base::{Digest, Timestamp};
use domain::words::Language;
use engine::{control, setup};
use serde::Deserialize;
use serde_json::json;
use store::device::{self, Device};
use store::owner::PrincipalKind;

use crate::App;
use crate::body::{Json, check_name};
use crate::problem::Problem;
use crate::routes::{self, Access};

/// A device whose token was shown with this request.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// As the store had it when the request came. A write reads it again under the owner's lock.
    pub device: Device,
    /// By which it is read again.
    pub token: Digest,
}

/// Lets a request on only if it was sent to one of the server's own names and, when a page sent it,
/// by the server's own page. A name that somebody else points at this address is none of ours.
pub(crate) async fn place(State(app): State<App>, request: Request, next: Next) -> Response {
    // What is signed by its sender may come through a proxy under any name; no page may send it.
    let any_name = routes::is_hook(request.uri());
    match check_place(app.web.listen, request.uri(), request.headers(), any_name) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn check_place(
    listen: SocketAddr,
    uri: &Uri,
    headers: &HeaderMap,
    any_name: bool,
) -> Result<(), Problem> {
    let hosts: Vec<_> = headers.get_all(header::HOST).iter().collect();
    let authority = uri.authority().map(|authority| authority.as_str());
    let known = |name: &str| is_own(listen, name);
    let host_ok = matches!(hosts[..], [host] if host.to_str().is_ok_and(known));
    if !any_name && (!host_ok || !authority.is_none_or(known)) {
        return Err(Problem::forbidden(format!(
            "This server answers only to its own address. Open http://{listen} instead."
        )));
    }
    let own_page = |origin: &str| origin.strip_prefix("http://").is_some_and(known);
    let foreign = |origin: &axum::http::HeaderValue| !origin.to_str().is_ok_and(own_page);
    if headers.get_all(header::ORIGIN).iter().any(foreign) {
        return Err(Problem::forbidden(format!(
            "Pages of other sites may not use this server. Open http://{listen} instead."
        )));
    }
    Ok(())
}

/// Whether `name`, as `host` or `host:port`, is one of the server's own.
fn is_own(listen: SocketAddr, name: &str) -> bool {
    let bare = if listen.port() == 80 {
        name.strip_suffix(":80").unwrap_or(name)
    } else {
        match name.strip_suffix(&format!(":{}", listen.port())) {
            Some(bare) => bare,
            None => return false,
        }
    };
    let address = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(bare);
    match address.parse::<IpAddr>() {
        Ok(ip) => ip == listen.ip() || [IpAddr::from([127, 0, 0, 1]), LOOPBACK_6].contains(&ip),
        Err(_) => bare.eq_ignore_ascii_case("localhost"),
    }
}

const LOOPBACK_6: IpAddr = IpAddr::V6(std::net::Ipv6Addr::LOCALHOST);

/// Lets a request on only with the token of a device that is not revoked, and that speaks for one of those who
/// may ask this.
pub(crate) async fn device(
    State((app, access)): State<(App, Access)>,
    mut request: Request,
    next: Next,
) -> Response {
    match caller(&app, request.headers()).await.and_then(|caller| allowed(caller, access)) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(problem) => problem.into_response(),
    }
}

fn allowed(caller: Caller, access: Access) -> Result<Caller, Problem> {
    match (access, caller.device.kind) {
        (Access::Supervisor, PrincipalKind::User | PrincipalKind::Policy) => {
            Err(Problem::forbidden(control::RULES))
        }
        (Access::Device, PrincipalKind::Supervisor | PrincipalKind::Policy) => {
            Err(Problem::forbidden(
                "A supervisor's device sees and ends its own rules and decides what asks for its approval, \
                 and nothing else of the owner's. Use a device of the owner for this.",
            ))
        }
        (Access::Open | Access::Signed | Access::Watcher | Access::Anyone, _)
        | (Access::Supervisor, PrincipalKind::Supervisor)
        | (Access::Device, PrincipalKind::User) => Ok(caller),
    }
}

/// Tokens have 64 characters; what is much longer is none and is not even hashed.
const TOKEN_BYTES_MAX: usize = 256;

/// Lets a request on only with the token of whoever watches the machine; it opens nothing else.
pub(crate) async fn watcher(State(app): State<App>, request: Request, next: Next) -> Response {
    match shown(request.headers()) == Some(app.web.watcher) {
        true => next.run(request).await,
        false => Problem::unauthorized().into_response(),
    }
}

/// The digest of the token that a request shows. Only digests are compared: how long that takes tells nothing
/// about any token.
fn shown(headers: &HeaderMap) -> Option<Digest> {
    let shown: Vec<_> = headers.get_all(header::AUTHORIZATION).iter().collect();
    let [shown] = shown[..] else { return None };
    let (scheme, token) = shown.to_str().ok()?.split_once(' ')?;
    let is_token = scheme.eq_ignore_ascii_case("bearer") && token.len() <= TOKEN_BYTES_MAX;
    is_token.then(|| Digest::of(token.trim().as_bytes()))
}

async fn caller(app: &App, headers: &HeaderMap) -> Result<Caller, Problem> {
    let refused = Problem::unauthorized;
    let token = shown(headers).ok_or_else(refused)?;
    let device = app.web.cx.store.read(move |tx| device::by_token(tx, token)).await?;
    device.map(|device| Caller { device, token }).ok_or_else(refused)
}

/// What pairing asks.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PairRequest {
    code: String,
    name: String,
}

/// Wrong codes within one window of time, so that nobody can try them all.
#[derive(Debug, Default)]
pub(crate) struct Tries {
    since: Option<Timestamp>,
    wrong: u32,
}

const WRONG_CODES_MAX: u32 = 10;
const WINDOW_MS: u64 = 60_000;
const WINDOW_S: u32 = 60;

impl Tries {
    /// Takes one try, or refuses it. A right code gives it back.
    fn take(&mut self, now: Timestamp) -> bool {
        // A clock that went back begins a new window, else it might never end.
        let over = |since: Timestamp| now >= since.plus_ms(WINDOW_MS) || now < since;
        if self.since.is_none_or(over) {
            *self = Tries { since: Some(now), wrong: 0 };
        }
        self.wrong = self.wrong.saturating_add(1);
        self.wrong <= WRONG_CODES_MAX
    }
}

/// Exchanges a one-time code for a device and its token, which is shown this once.
pub(crate) async fn pair(
    State(app): State<App>,
    headers: HeaderMap,
    Json(asked): Json<PairRequest>,
) -> Result<Response, Problem> {
    let name = check_name("the device", &asked.name)?;
    let now = app.web.cx.clock.now();
    let tries = || app.tries.lock().unwrap_or_else(PoisonError::into_inner);
    if !tries().take(now) {
        let detail = "Too many wrong codes. Wait a minute, then make a new code with \"adjutant pair\" where \
             the server runs, or on a paired page under More.";
        return Err(Problem::too_many(detail, WINDOW_S));
    }
    let accepted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
    let language = accepted.map(Language::of_locale);
    let redeem = move |cx: &engine::Context, tx: &mut store::OwnerTx<'_, '_>| {
        setup::redeem(cx, tx, &asked.code, &name, language)
    };
    let paired = app.web.cx.write(app.web.owner, redeem).await?.ok_or_else(|| {
        Problem::forbidden(
            "This code is wrong, used or too old. Make a new one with \"adjutant pair\" where the \
             server runs, or on a paired page under More.",
        )
    })?;
    let mut tries = tries();
    tries.wrong = tries.wrong.saturating_sub(1);
    let body = json!({
        "device": paired.device.id,
        "token": paired.token.expose(),
        "owner": paired.device.owner,
    });
    Ok((StatusCode::CREATED, axum::Json(body)).into_response())
}
