//! Which URLs, names, ports and addresses may be reached at all.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use url::{Host, Url};

use super::error::host_of;
use super::{GuardError, URL_BYTES_MAX};

/// Ports from 1024 on that are known for something else than pages: what the Fetch standard blocks,
/// and the usual ports of databases, remote control and cluster services.
const PORTS_REFUSED: &[u16] = &[
    1080, 1099, 1433, 1521, 1719, 1720, 1723, 2049, 2181, 2375, 2376, 2379, 2380, 3128, 3306, 3389,
    3659, 4045, 4190, 5060, 5061, 5432, 5672, 5900, 5984, 5985, 5986, 6000, 6379, 6566, 6665, 6666,
    6667, 6668, 6669, 6679, 6697, 7001, 8500, 9042, 9092, 9200, 9300, 10080, 10250, 10255, 11211,
    27017, 27018, 27019, 50070,
];

/// Last labels of names that are not public (RFC 6761, 6762, 8375, 9476 and common use).
const LOCAL_NAMES: &[&str] = &[
    "localhost",
    "local",
    "internal",
    "intranet",
    "lan",
    "home",
    "corp",
    "private",
    "localdomain",
    "home.arpa",
    "alt",
    "onion",
    "consul",
];

/// IPv4 blocks that are not public: (network, length of its prefix, kind).
const BLOCKS_V4: &[([u8; 4], u32, &str)] = &[
    ([0, 0, 0, 0], 8, "this network"),
    ([10, 0, 0, 0], 8, "private"),
    ([100, 64, 0, 0], 10, "carrier NAT"),
    ([127, 0, 0, 0], 8, "loopback"),
    ([168, 63, 129, 16], 32, "cloud metadata"),
    ([169, 254, 169, 254], 32, "cloud metadata"),
    ([169, 254, 0, 0], 16, "link-local"),
    ([172, 16, 0, 0], 12, "private"),
    ([192, 0, 0, 0], 24, "protocol assignments"),
    ([192, 0, 2, 0], 24, "documentation"),
    ([192, 88, 99, 0], 24, "6to4 relay"),
    ([192, 168, 0, 0], 16, "private"),
    ([198, 18, 0, 0], 15, "benchmarking"),
    ([198, 51, 100, 0], 24, "documentation"),
    ([203, 0, 113, 0], 24, "documentation"),
    ([224, 0, 0, 0], 4, "multicast"),
    ([240, 0, 0, 0], 4, "reserved"),
];

/// IPv6 blocks that are not public, by name; what is not global unicast at all is refused besides.
const BLOCKS_V6: &[([u16; 8], u32, &str)] = &[
    ([0, 0, 0, 0, 0, 0, 0, 0], 128, "unspecified"),
    ([0, 0, 0, 0, 0, 0, 0, 1], 128, "loopback"),
    ([0, 0, 0, 0, 0, 0, 0, 0], 96, "IPv4-compatible"),
    ([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, "local NAT64"),
    ([0x100, 0, 0, 0, 0, 0, 0, 0], 64, "discard"),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, "Teredo"),
    ([0x2001, 2, 0, 0, 0, 0, 0, 0], 48, "benchmarking"),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, "protocol assignments"),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, "documentation"),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, "6to4"),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, "documentation"),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, "unique local"),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, "link-local"),
    ([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, "site-local"),
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, "multicast"),
];

/// Why an address is not public; `None` if it is. An IPv4 address inside an IPv6 one counts as itself
/// where the network would deliver it (mapped, NAT64, ISATAP); other transition forms are refused.
pub fn not_public(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(ip) => not_public_v4(ip),
        IpAddr::V6(ip) => match embedded(ip) {
            Some(inner) => not_public_v4(inner),
            None => not_public_v6(ip),
        },
    }
}

fn not_public_v4(ip: Ipv4Addr) -> Option<&'static str> {
    let within = |network: [u8; 4], length: u32| {
        (ip.to_bits() ^ Ipv4Addr::from(network).to_bits()) >> (32 - length) == 0
    };
    let block = BLOCKS_V4.iter().find(|(network, length, _)| within(*network, *length));
    block.map(|(_, _, what)| *what)
}

fn not_public_v6(ip: Ipv6Addr) -> Option<&'static str> {
    let within = |network: [u16; 8], length: u32| {
        (ip.to_bits() ^ Ipv6Addr::from(network).to_bits()) >> (128 - length) == 0
    };
    let block = BLOCKS_V6.iter().find(|(network, length, _)| within(*network, *length));
    let unassigned = !within([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);
    block.map(|(_, _, what)| *what).or(unassigned.then_some("not global unicast"))
}

/// The IPv4 address to which a packet for `ip` would in the end go.
fn embedded(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, high, low] = ip.segments();
    let inner = || Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0xffff] => Some(inner()),
        [0x64, 0xff9b, 0, 0, 0, 0] => Some(inner()),
        // ISATAP delivers to the IPv4 address in its interface id; only a private one is of interest,
        // a public one is judged by its prefix.
        [_, _, _, _, 0 | 0x200, 0x5efe] => not_public_v4(inner()).map(|_| inner()),
        _ => None,
    }
}

/// An address in the form in which lists compare it: an IPv4-mapped one as IPv4.
pub(super) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Refuses a text that two readers may take for two URLs: the standard drops tabs and line ends in
/// silence and turns backslashes round.
pub(super) fn check_text(text: &str) -> Result<(), GuardError> {
    let no_url = |reason: String| Err(GuardError::NotAUrl { reason });
    if text.len() > URL_BYTES_MAX {
        return no_url(format!("it has more than {URL_BYTES_MAX} bytes"));
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\') {
        return no_url("it holds blanks, control characters or backslashes".to_owned());
    }
    Ok(())
}

/// Reads a URL strictly; its fragment, which is never sent, is dropped.
pub(super) fn parse(text: &str) -> Result<Url, GuardError> {
    check_text(text)?;
    let no_url = |error: url::ParseError| GuardError::NotAUrl { reason: error.to_string() };
    let mut url = Url::parse(text).map_err(no_url)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(GuardError::Scheme { scheme: url.scheme().chars().take(32).collect() });
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(GuardError::Credentials);
    }
    url.set_fragment(None);
    Ok(url)
}

/// Refuses what can be refused without asking anyone: ports, local names, literal addresses.
///
/// A name on the port of an allowed address is let through; its addresses are still checked.
pub(super) fn check(url: &Url, allowed: &[SocketAddr]) -> Result<(), GuardError> {
    let port = url.port_or_known_default().unwrap_or_default();
    let ip = match url.host() {
        Some(Host::Ipv4(ip)) => IpAddr::V4(ip),
        Some(Host::Ipv6(ip)) => IpAddr::V6(ip),
        Some(Host::Domain(_)) if allowed.iter().any(|address| address.port() == port) => {
            return Ok(());
        }
        Some(Host::Domain(name)) => {
            check_port(port)?;
            return check_name(name);
        }
        None => return Err(GuardError::NotAUrl { reason: "it has no host".to_owned() }),
    };
    check_ip(url, canonical(SocketAddr::new(ip, port)), allowed)
}

/// Refuses an address of the host of `url` unless it is public, on a port for pages, or allowed.
pub(super) fn check_ip(
    url: &Url,
    address: SocketAddr,
    allowed: &[SocketAddr],
) -> Result<(), GuardError> {
    if allowed.contains(&address) {
        return Ok(());
    }
    match not_public(address.ip()) {
        Some(what) => Err(GuardError::NotPublic { host: host_of(url), what }),
        None => check_port(address.port()),
    }
}

fn check_port(port: u16) -> Result<(), GuardError> {
    let fine = matches!(port, 80 | 443) || (port >= 1024 && !PORTS_REFUSED.contains(&port));
    if fine { Ok(()) } else { Err(GuardError::Port { port }) }
}

/// Refuses names without a dot and those of the local network. The parser made them lower-case.
fn check_name(name: &str) -> Result<(), GuardError> {
    let bare = name.trim_end_matches('.');
    let local = LOCAL_NAMES.iter().any(|local| {
        bare.strip_suffix(local).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    match local || !bare.contains('.') {
        true => Err(GuardError::LocalName { host: name.chars().take(253).collect() }),
        false => Ok(()),
    }
}
