//! What only the demo answers; elsewhere there is nothing at these addresses.

use axum::Json as Sent;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::App;
use crate::body::{Empty, Json};
use crate::problem::Problem;

/// Where the story stands.
pub(crate) async fn state(State(app): State<App>) -> Result<Sent<Value>, Problem> {
    let demo = app.web.demo.as_ref().ok_or_else(|| Problem::missing("demo"))?;
    Ok(Sent(demo.state()))
}

/// Pulls the plug: the process ends here, most likely before it can answer.
pub(crate) async fn plug(
    State(app): State<App>,
    Json(Empty {}): Json<Empty>,
) -> Result<(StatusCode, Sent<Value>), Problem> {
    let demo = app.web.demo.as_ref().ok_or_else(|| Problem::missing("demo"))?;
    demo.plug();
    Ok((StatusCode::ACCEPTED, Sent(json!({}))))
}
