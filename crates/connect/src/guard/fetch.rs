//! One fetch: hop by hop, each to an address that was checked.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{self, HeaderMap, HeaderName};
use url::{Host, Url};

use super::error::{host_of, reason};
use super::{Client, Conditions, Fetched, GuardError, address, tls};

/// Addresses of one host that are checked and tried. A host with more is refused as it is strange.
const ADDRESSES_MAX: usize = 64;
/// Bytes of a header value that is kept.
const KEPT_BYTES_MAX: usize = 1_024;
/// Bytes of a `Retry-After` that is kept.
const RETRY_AFTER_BYTES_MAX: usize = 64;

/// Follows redirects until there is an answer. `url` has passed [`address::check`].
pub(super) async fn follow(
    client: &Client,
    mut url: Url,
    conditions: &Conditions,
) -> Result<Fetched, GuardError> {
    for _ in 0..=client.limits.redirects_max {
        let addresses = checked_addresses(client, &url).await?;
        let response = ask(client, &url, addresses, conditions).await?;
        match response.status().as_u16() {
            301 | 302 | 303 | 307 | 308 => {
                url = next_hop(&url, response.headers())?;
                address::check(&url, &client.allowed)?;
            }
            _ => return read(client, url, response).await,
        }
    }
    Err(GuardError::Redirects { redirects_max: client.limits.redirects_max })
}

/// Looks the host up once and refuses it if any of its addresses is not public.
async fn checked_addresses(client: &Client, url: &Url) -> Result<Vec<SocketAddr>, GuardError> {
    let found: Vec<IpAddr> = match url.host() {
        Some(Host::Ipv4(ip)) => vec![ip.into()],
        Some(Host::Ipv6(ip)) => vec![ip.into()],
        Some(Host::Domain(name)) => look_up(client, name.trim_end_matches('.')).await?,
        None => Vec::new(),
    };
    let port = url.port_or_known_default().unwrap_or_default();
    let mut checked = Vec::with_capacity(found.len());
    for ip in found {
        let address = address::canonical(SocketAddr::new(ip, port));
        address::check_ip(url, address, &client.allowed)?;
        checked.push(address);
    }
    Ok(checked)
}

async fn look_up(client: &Client, name: &str) -> Result<Vec<IpAddr>, GuardError> {
    let limit_ms = client.limits.connect_ms;
    let lookup = client.resolver.resolve(name);
    let found = tokio::time::timeout(Duration::from_millis(limit_ms), lookup)
        .await
        .map_err(|_| GuardError::TimedOut { host: name.to_owned(), limit_ms })?;
    let failed = |reason: String| GuardError::Lookup { host: name.to_owned(), reason };
    match found {
        Ok(found) if found.is_empty() => Err(failed("it has no address".to_owned())),
        Ok(found) if found.len() > ADDRESSES_MAX => {
            Err(failed(format!("it has more than {ADDRESSES_MAX} addresses")))
        }
        Ok(found) => Ok(found),
        Err(error) => Err(failed(error.to_string().chars().take(200).collect())),
    }
}

/// Answers every question with the addresses that were checked.
struct Pinned(Vec<SocketAddr>);

impl reqwest::dns::Resolve for Pinned {
    fn resolve(&self, _name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let addresses: reqwest::dns::Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

/// Asks one host. The client is made for this one request, because its only addresses are pinned.
async fn ask(
    client: &Client,
    url: &Url,
    addresses: Vec<SocketAddr>,
    conditions: &Conditions,
) -> Result<reqwest::Response, GuardError> {
    let connect = Duration::from_millis(client.limits.connect_ms);
    let pinned = tls::builder(client.tls.clone(), connect)
        .dns_resolver(Arc::new(Pinned(addresses)))
        .pool_max_idle_per_host(0)
        .build()
        .map_err(|error| GuardError::Setup { reason: reason(error) })?;
    let mut request = pinned
        .get(url.clone())
        .header(header::ACCEPT, "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
        .header(header::ACCEPT_ENCODING, "identity");
    if let Some(etag) = &conditions.etag {
        request = request.header(header::IF_NONE_MATCH, etag);
    }
    if let Some(last_modified) = &conditions.last_modified {
        request = request.header(header::IF_MODIFIED_SINCE, last_modified);
    }
    let response = request.send().await.map_err(|error| {
        let host = host_of(url);
        match error.is_connect() {
            true => GuardError::Connect { host, reason: reason(error) },
            false => GuardError::Broken { host, reason: reason(error) },
        }
    })?;
    let header_bytes: usize =
        response.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    let limit_bytes = client.limits.header_bytes_max;
    if header_bytes > limit_bytes {
        return Err(GuardError::HeadersTooLarge { host: host_of(url), limit_bytes });
    }
    Ok(response)
}

/// Where a redirect leads, in checked form but for its host.
fn next_hop(from: &Url, headers: &HeaderMap) -> Result<Url, GuardError> {
    let nowhere = || GuardError::Location { host: host_of(from) };
    let location = headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
    let location = location.ok_or_else(nowhere)?;
    address::check_text(location)?;
    let to = from.join(location).map_err(|_| nowhere())?;
    let to = address::parse(to.as_str())?;
    if from.scheme() == "https" && to.scheme() == "http" {
        return Err(GuardError::Downgrade { host: host_of(from) });
    }
    Ok(to)
}

async fn read(
    client: &Client,
    url: Url,
    mut response: reqwest::Response,
) -> Result<Fetched, GuardError> {
    let host = || host_of(&url);
    let encoding = response.headers().get(header::CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(GuardError::Encoded { host: host() });
    }
    let limit_bytes = client.limits.body_bytes_max;
    let too_large = || GuardError::BodyTooLarge { host: host(), limit_bytes };
    if response.content_length().is_some_and(|length| length > limit_bytes as u64) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    let broken = |error| GuardError::Broken { host: host(), reason: reason(error) };
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if chunk.len() > limit_bytes - body.len() {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    let headers = response.headers();
    let (media, charset) = media_of(kept(headers, header::CONTENT_TYPE, KEPT_BYTES_MAX));
    let marks = Conditions {
        etag: kept(headers, header::ETAG, KEPT_BYTES_MAX),
        last_modified: kept(headers, header::LAST_MODIFIED, KEPT_BYTES_MAX),
    };
    let retry_after = kept(headers, header::RETRY_AFTER, RETRY_AFTER_BYTES_MAX);
    let status = response.status().as_u16();
    Ok(Fetched { final_url: url, status, media, charset, marks, retry_after, body })
}

/// A header's value, unless it is not text or longer than `bytes_max`.
fn kept(headers: &HeaderMap, name: HeaderName, bytes_max: usize) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    (value.len() <= bytes_max).then(|| value.to_owned())
}

/// `Text/HTML; Charset="GBK"` as `text/html` and `gbk`.
fn media_of(content_type: Option<String>) -> (String, Option<String>) {
    let content_type = content_type.unwrap_or_default().to_ascii_lowercase();
    let mut parts = content_type.split(';').map(str::trim);
    let media = parts.next().unwrap_or_default().to_owned();
    let charset = parts.find_map(|part| part.strip_prefix("charset="));
    (media, charset.map(|charset| charset.trim_matches(['"', '\'']).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(from: &str, location: &'static str) -> Result<String, GuardError> {
        let headers =
            HeaderMap::from_iter([(header::LOCATION, header::HeaderValue::from_static(location))]);
        next_hop(&Url::parse(from).unwrap(), &headers).map(String::from)
    }

    #[test]
    fn a_redirect_never_leaves_https() {
        let host = || "a.example.com".to_owned();
        let from = "https://a.example.com/x/y?z#f";
        assert_eq!(hop(from, "../b#there"), Ok("https://a.example.com/b".to_owned()));
        assert_eq!(hop(from, "//b.example.com"), Ok("https://b.example.com/".to_owned()));
        assert_eq!(hop(from, "http://b.example.com"), Err(GuardError::Downgrade { host: host() }));
        assert_eq!(hop(from, "http://["), Err(GuardError::Location { host: host() }));
        let scheme = || "file".to_owned();
        assert_eq!(hop(from, "file:///etc/passwd"), Err(GuardError::Scheme { scheme: scheme() }));
        let nowhere = next_hop(&Url::parse(from).unwrap(), &HeaderMap::new());
        assert_eq!(nowhere, Err(GuardError::Location { host: host() }));
        let up = hop("http://a.example.com", "https://a.example.com/");
        assert_eq!(up, Ok("https://a.example.com/".to_owned()));
    }

    #[test]
    fn media_types_are_taken_apart() {
        let media = |text: &str| media_of(Some(text.to_owned()));
        let expect =
            |media: &str, charset: Option<&str>| (media.to_owned(), charset.map(str::to_owned));
        assert_eq!(media("Text/HTML; Charset=\"GBK\""), expect("text/html", Some("gbk")));
        assert_eq!(media("text/plain;a=b; charset=x"), expect("text/plain", Some("x")));
        assert_eq!(media_of(None), expect("", None));
    }
}
