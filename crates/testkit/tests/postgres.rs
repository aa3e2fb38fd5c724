//! The PostgreSQL harness itself: a server starts, databases are apart, everything goes away, and
//! the proxy breaks exactly the COMMIT it was armed for.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "test helpers fail by panicking")]

use postgres::{Client, NoTls};
use testkit::postgres::{TestPostgres, Unavailable};
use testkit::postgres_proxy::{Cut, PostgresProxy};

const OUTSIDE: &str = "CREATE TABLE note (text text NOT NULL)";

fn client(url: &str) -> Client {
    Client::connect(url, NoTls).expect("a connection")
}

fn notes(url: &str) -> Vec<String> {
    let rows = client(url).query("SELECT text FROM note ORDER BY text", &[]).expect("rows");
    rows.iter().map(|row| row.get(0)).collect()
}

#[test]
fn two_databases_know_nothing_of_each_other() {
    let Some(server) = TestPostgres::start_or_skip() else { return };
    let (one, two) = (server.database().unwrap(), server.database().unwrap());
    assert_ne!(one, two);
    client(&one).batch_execute(OUTSIDE).unwrap();
    client(&one).batch_execute("INSERT INTO note VALUES ('here')").unwrap();
    client(&two).batch_execute(OUTSIDE).unwrap();
    assert_eq!((notes(&one), notes(&two)), (vec!["here".to_owned()], vec![]));
}

#[test]
fn a_database_can_be_made_from_async_code() {
    let Some(server) = TestPostgres::start_or_skip() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().build().unwrap();
    let made = runtime.block_on(async move { server.database() });
    assert!(made.is_ok(), "{made:?}");
}

#[test]
fn it_is_set_up_as_the_store_expects() {
    let Some(server) = TestPostgres::start_or_skip() else { return };
    let mut client = client(&server.database().unwrap());
    let mut show = |name: &str| -> String {
        client.query_one(&format!("SHOW {name}"), &[]).expect("a setting").get(0)
    };
    assert_eq!(
        [show("fsync"), show("synchronous_commit"), show("server_encoding"), show("lc_collate")],
        ["off", "on", "UTF8", "C"]
    );
}

#[test]
fn a_stopped_server_is_gone_with_its_folder() {
    if TestPostgres::start_or_skip().is_none() {
        return;
    }
    let server = TestPostgres::start_own().unwrap();
    let (url, folder) = (server.database().unwrap(), server.folder().unwrap().to_owned());
    client(&url).batch_execute(OUTSIDE).unwrap();
    assert!(folder.exists());
    drop(server);
    assert!(!folder.exists(), "{} is still there", folder.display());
    assert!(Client::connect(&url, NoTls).is_err(), "the server still answers");
}

#[test]
fn a_wrong_password_is_refused() {
    if TestPostgres::start_or_skip().is_none() {
        return;
    }
    let server = TestPostgres::start_own().unwrap();
    let (user, place) =
        server.url().split_once('@').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let (name, _) = user.rsplit_once(':').unwrap();
    assert!(Client::connect(&format!("{name}:wrong@{place}"), NoTls).is_err());
}

#[test]
fn a_url_that_is_none_is_refused_with_the_remedy() {
    let refused = TestPostgres::existing("localhost").unwrap_err();
    assert!(matches!(refused, Unavailable::Failed { .. }), "{refused}");
    assert!(refused.to_string().contains("postgres://user:password@host:port/database"));
}

/// Two transactions through the proxy; the first is cut. Answers whether each COMMIT seemed to
/// succeed, what the database then holds, and how many cuts there were.
fn commits(cut: Option<Cut>) -> Option<(bool, bool, Vec<String>, u32)> {
    let server = TestPostgres::start_or_skip()?;
    let url = server.database().unwrap();
    client(&url).batch_execute(OUTSIDE).unwrap();
    let proxy = PostgresProxy::start(&url).unwrap();
    let mut through = client(proxy.url());
    if let Some(cut) = cut {
        proxy.cut_next_commit(cut);
    }
    let commit = |client: &mut Client, text: &str| {
        let mut transaction = client.transaction().expect("BEGIN passes");
        transaction.execute("INSERT INTO note VALUES ($1)", &[&text]).expect("a row");
        transaction.commit().is_ok()
    };
    let first = commit(&mut through, "first");
    let second = commit(&mut client(proxy.url()), "second");
    Some((first, second, notes(&url), proxy.cuts()))
}

#[test]
fn the_proxy_passes_what_it_is_not_armed_for() {
    let Some(seen) = commits(None) else { return };
    assert_eq!(seen, (true, true, vec!["first".to_owned(), "second".to_owned()], 0));
}

#[test]
fn a_commit_cut_before_the_server_never_happened() {
    let Some(seen) = commits(Some(Cut::Before)) else { return };
    assert_eq!(seen, (false, true, vec!["second".to_owned()], 1));
}

#[test]
fn a_commit_cut_after_the_server_happened_unheard() {
    let Some(seen) = commits(Some(Cut::After)) else { return };
    assert_eq!(seen, (false, true, vec!["first".to_owned(), "second".to_owned()], 1));
}

#[test]
fn a_proxy_that_is_dropped_breaks_its_connections() {
    let Some(server) = TestPostgres::start_or_skip() else { return };
    let proxy = PostgresProxy::start(&server.database().unwrap()).unwrap();
    let mut through = client(proxy.url());
    through.batch_execute(OUTSIDE).unwrap();
    drop(proxy);
    assert!(through.batch_execute("INSERT INTO note VALUES ('late')").is_err());
}
