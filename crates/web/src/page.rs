//! The web page, embedded in the binary: its files, and the headers they are served with.
//!
//! Absent here: any template and any data. The page is the same bytes for everybody; what it shows
//! comes over the HTTP API with a device's own token.

include!(concat!(env!("OUT_DIR"), "/page_assets.rs"));

/// Whether this binary carries the page. If not, `/` answers with a text that says so, and the
/// server says so at start.
pub const AVAILABLE: bool = BUILT;

/// What a browser may do with the page: only files and connections of this same server, no inline
/// script or style, no frame around it, no form that leaves it.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; \
     style-src 'self'; connect-src 'self'; img-src 'self' data:; manifest-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'";

/// Cache rule for files whose name carries a hash of their content.
const KEEP: &str = "public, max-age=31536000, immutable";
/// Cache rule for everything else: a new binary must show its own page at once.
const NO_STORE: &str = "no-store";

const WITHOUT_PAGE: &[u8] = b"<!doctype html><meta charset=\"utf-8\"><title>Adjutant</title>\
    <p>Adjutant runs, but this binary was built without the web page.</p>\
    <p>Install Node 20.19 or newer with npm and build again, or use the command line: \
    <code>adjutant help</code></p>";

/// One file of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asset {
    /// The file as it goes over the wire.
    pub bytes: &'static [u8],
    /// Value of `Content-Type`.
    pub content_type: &'static str,
    /// The name carries a hash of the content, so it may be cached for ever.
    pub immutable: bool,
}

/// The file at a request path (`/`, `/icon.svg`, `/assets/…`), or `None` if the page has none there.
#[must_use]
pub fn asset(path: &str) -> Option<Asset> {
    let name = if path == "/" { "/index.html" } else { path };
    if !AVAILABLE && name == "/index.html" {
        let content_type = content_type(name);
        return Some(Asset { bytes: WITHOUT_PAGE, content_type, immutable: false });
    }
    FILES.iter().find(|(file, _)| *file == name).map(|(file, bytes)| Asset {
        bytes,
        content_type: content_type(file),
        immutable: file.starts_with("/assets/"),
    })
}

/// Every header of an answer that carries `asset`, names in lower case.
#[must_use]
pub fn headers(asset: &Asset) -> [(&'static str, &'static str); 7] {
    [
        ("content-type", asset.content_type),
        ("cache-control", if asset.immutable { KEEP } else { NO_STORE }),
        ("content-security-policy", CONTENT_SECURITY_POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ]
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain; charset=utf-8",
        Some("webmanifest") => "application/manifest+json",
        Some(_) | None => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_the_index_names_is_there_and_hashed_ones_are_immutable() {
        let index = asset("/").expect("an index with or without the page");
        assert_eq!(index.content_type, "text/html; charset=utf-8");
        assert!(!index.immutable);
        let text = std::str::from_utf8(index.bytes).expect("UTF-8");
        let named: Vec<&str> =
            text.split('"').filter(|part| part.starts_with('/') && part.len() > 1).collect();
        assert_eq!(named.is_empty(), !AVAILABLE, "{named:?}");
        for name in named {
            let file = asset(name).unwrap_or_else(|| panic!("{name} is not embedded"));
            assert_eq!(file.immutable, name.starts_with("/assets/"), "{name}");
            assert_ne!(file.content_type, "application/octet-stream", "{name}");
        }
    }

    #[test]
    fn only_listed_paths_are_served() {
        for path in ["", "/nothing", "/../Cargo.toml", "//index.html", "/assets/", "/package.json"]
        {
            assert_eq!(asset(path), None, "{path}");
        }
    }

    #[test]
    fn the_page_needs_nothing_that_its_policy_forbids() {
        let text = asset("/").map(|index| String::from_utf8_lossy(index.bytes).into_owned());
        let text = text.unwrap_or_default();
        assert!(!text.contains("<style") && !text.contains(" style="), "inline style");
        assert!(!text.contains("<script>"), "inline script");
        for file in FILES.iter().filter(|(name, _)| name.ends_with(".js")) {
            let script = String::from_utf8_lossy(file.1);
            assert!(!script.contains("eval("), "{} evaluates text", file.0);
        }
    }

    #[test]
    fn headers_follow_the_cache_rule() {
        let cache = |immutable| {
            let asset = Asset { bytes: b"", content_type: "text/css; charset=utf-8", immutable };
            headers(&asset).into_iter().find(|(name, _)| *name == "cache-control")
        };
        assert_eq!(cache(true), Some(("cache-control", KEEP)));
        assert_eq!(cache(false), Some(("cache-control", "no-store")));
    }
}
