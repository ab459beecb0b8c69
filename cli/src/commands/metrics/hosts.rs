//! Checks the Host header of requests against DNS rebinding.
//!
//! A web page can make its own host name resolve to this machine and then read the answers of a local server. Its
//! requests still name the page's host, so the server refuses requests for foreign hosts.

use std::net::{IpAddr, SocketAddr};

/// The hosts that requests may name.
#[derive(Debug)]
pub struct Hosts {
    names: Vec<String>,
    any: bool,
    /// Whether every IP address is accepted. An address cannot be rebound, and a server that other machines can reach
    /// may not know all of its addresses.
    addresses: bool,
}

impl Hosts {
    /// Returns the hosts of a server that listens on this address, whose name was given as `named`, and those of
    /// `--allow-host`.
    pub fn new(address: SocketAddr, named: Option<&str>, allowed: &[String]) -> Hosts {
        let names = named.into_iter().chain(allowed.iter().map(String::as_str)).map(plain).collect();
        let any = allowed.iter().any(|host| host == "*");
        Hosts { names, any, addresses: !address.ip().is_loopback() }
    }

    /// Returns whether the server answers a request that names this host.
    pub fn has(&self, host: &str) -> bool {
        let host = plain(host);
        let is_own_address = |address: IpAddr| self.addresses || address.to_canonical().is_loopback();
        self.any
            || host == "localhost"
            || self.names.contains(&host)
            || host.parse().is_ok_and(is_own_address)
    }
}

/// Normalises a host for comparison: lower case, without brackets and trailing dot.
fn plain(host: &str) -> String {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// Returns the host of `host:port` if it is valid.
pub fn without_port(text: &str) -> Option<&str> {
    let end = match text.starts_with('[') {
        true => text.find(']')? + 1,
        false => text.find(':').unwrap_or(text.len()),
    };
    let (host, port) = text.split_at(end);
    let is_port = |port: &str| port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
    (is_host(host) && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))).then_some(host)
}

fn is_host(text: &str) -> bool {
    let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    match inside {
        Some(address) => matches!(address.parse(), Ok(IpAddr::V6(_))),
        None => {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
            !text.is_empty() && text.len() <= 255 && text.bytes().all(is_plain)
        }
    }
}

/// Parses the value of `--allow-host`.
pub fn allowed(text: &str) -> Result<String, String> {
    let bare = matches!(text.parse(), Ok(IpAddr::V6(_)));
    match text == "*" || bare || is_host(text) {
        true => Ok(text.to_owned()),
        false => {
            Err("must be a name or an address without a port, such as metrics.example.org, or * for any"
                .to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(address: &str, named: Option<&str>, allowed: &[&str]) -> Hosts {
        let allowed: Vec<String> = allowed.iter().map(|host| (*host).to_owned()).collect();
        Hosts::new(address.parse().unwrap(), named, &allowed)
    }

    #[test]
    fn loopback_server_answers_only_for_loopback_hosts() {
        let own = hosts("127.0.0.1:9464", None, &[]);
        for host in ["localhost", "LOCALHOST.", "127.0.0.1", "127.9.9.9", "[::1]", "[::ffff:127.0.0.1]"] {
            assert!(own.has(host), "{host}");
        }
        for host in
            ["evil.example", "localhost.evil.example", "10.0.0.1", "[fe80::1]", "", "127.0.0.1.evil.example"]
        {
            assert!(!own.has(host), "{host}");
        }
    }

    #[test]
    fn other_names_must_be_allowed_and_other_addresses_need_another_listener() {
        let open = hosts("0.0.0.0:9464", Some("box.lan"), &["metrics.example.org"]);
        for host in ["10.0.0.1", "[fe80::1]", "box.LAN", "metrics.example.org", "localhost"] {
            assert!(open.has(host), "{host}");
        }
        assert!(!open.has("evil.example"));
        assert!(hosts("127.0.0.1:1", None, &["10.0.0.1"]).has("10.0.0.1"));
        assert!(hosts("127.0.0.1:1", None, &["*"]).has("evil.example"));
    }

    #[test]
    fn host_is_parsed_without_its_port() {
        for (text, host) in [
            ("a:1", "a"),
            ("a", "a"),
            ("[::1]:9464", "[::1]"),
            ("[::1]", "[::1]"),
            ("10.0.0.1:80", "10.0.0.1"),
        ] {
            assert_eq!(without_port(text), Some(host));
        }
        for wrong in ["", ":1", "a:x", "a b", "user@a", "[::1", "[x]:1", "a:1:2", "a/b", "ü", "a:123456"] {
            assert_eq!(without_port(wrong), None, "{wrong}");
        }
        for wrong in ["", "a:1", "http://a", "a b"] {
            assert!(allowed(wrong).is_err(), "{wrong}");
        }
        assert!(["*", "a.b", "::1", "[::1]", "10.0.0.1"].iter().all(|host| allowed(host).is_ok()));
    }
}
