//! Shell scripts against a real server: `curl` runs through `shmlimit run`, and `shmlimit record` gets its headers
//! (R73, R118, R120, R123).

use crate::cli::Home;
use crate::util::boot_time;
use crate::util::crash::{NAME, builder};
use crate::util::server::client::{request, start};
use crate::util::server::{Answer, Server, breaker};
use shmlimit::{Limiter, Policy};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SECOND: u64 = 1_000_000_000;

/// One call as a script makes it: it waits for the limiter, makes the call, and records the outcome for all. Prints
/// the output of `record`.
const CALL: &str = r#"
    headers=$(mktemp) || exit 1
    if "$TOOL" run "$NAME" --exit 0=none -- curl -s --max-time 1 -o /dev/null -D "$headers" "$URL$1"; then
        "$TOOL" record "$NAME" --headers "$headers" --json
    else
        case $? in
            75) echo refused ;;
            28) "$TOOL" record "$NAME" --error read_timeout --json ;;
            52) "$TOOL" record "$NAME" --error connection --json ;;
            *) exit 1 ;;
        esac
    fi
    rm -f "$headers"
"#;

struct Scripts {
    home: Home,
    server: Server,
    limiter: Limiter,
}

impl Scripts {
    fn with(policy: Policy) -> Scripts {
        let home = Home::new();
        let limiter = builder(home.path()).policy(policy).create().unwrap();
        Scripts { home, server: Server::start(), limiter }
    }

    fn start(&self, path: &str) -> Child {
        Command::new("sh")
            .args(["-c", CALL, "sh", path])
            .env("TOOL", crate::cli::binary())
            .env("NAME", NAME)
            .env("URL", format!("http://127.0.0.1:{}", self.server.port()))
            .env("SHMLIMIT_DIR", self.home.path())
            .env("TMPDIR", self.home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Makes a call. Returns the output of `record`.
    fn call(&self, path: &str) -> serde_json::Value {
        end_of(self.start(path))
    }
}

fn end_of(script: Child) -> serde_json::Value {
    let output = script.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("a script said {text:?}"))
}

#[test]
fn r118_a_script_that_gets_a_retry_after_of_2_seconds_stops_every_other_program() {
    let scripts = Scripts::with(breaker(1000, Some(1), |_| {}));
    let mut program = start(scripts.home.path(), &scripts.server);
    scripts.server.plan("/a", [Answer::retry_after(429, "2")]);
    let before = boot_time();
    let said = scripts.call("/a");
    assert_eq!(
        (said["outcome_class"].as_str(), said["wait_source"].as_str()),
        (Some("429"), Some("retry_after"))
    );
    assert!(request(&mut program, "try").starts_with("refused retry_after "));
    // A script and a program with the library both wait.
    let script = scripts.start("/a");
    program.send("call /a");
    assert!(program.receive().ends_with(" ok -"));
    assert_eq!(end_of(script)["outcome_class"], "ok");
    let seen = scripts.server.seen();
    assert_eq!(seen.len(), 3);
    assert!(seen[1].at >= before + 2 * SECOND, "called before the gate opened: {seen:?}");
}

#[test]
fn r120_scripts_and_programs_share_one_breaker() {
    let scripts =
        Scripts::with(breaker(1000, Some(4), |breaker| breaker.sleep_min = Duration::from_millis(200)));
    let mut program = start(scripts.home.path(), &scripts.server);
    assert!(request(&mut program, "call /status/429").ends_with(" 429 -"));
    assert_eq!(scripts.call("/status/404")["outcome_class"], "ignored");
    assert_eq!(scripts.call("/status/429")["state"], "normal");
    let third = scripts.call("/status/429");
    assert_eq!((&third["state"], &third["transitions"][0]), (&"throttle".into(), &"consec_429".into()));
    assert!(request(&mut program, "call /status/429").ends_with(" 429 -"));
    assert_eq!(scripts.call("/status/429")["state"], "sleep");
    // New calls wait until the sleep is over, and probe: five of them, in any order.
    let before = scripts.server.seen().len();
    let waiting = [(); 2].map(|()| scripts.start("/a"));
    assert!(request(&mut program, "call /a").contains(" ok "));
    for script in waiting {
        assert_eq!(end_of(script)["outcome_class"], "ok");
    }
    assert_eq!(scripts.call("/a")["state"], "half_open");
    assert_eq!(scripts.call("/a")["state"], "normal");
    assert_eq!(scripts.server.seen().len(), before + 5);
    let condition = scripts.limiter.snapshot().unwrap().condition;
    let causes: Vec<&str> = condition.transitions.iter().map(|one| one.reason.as_str()).collect();
    assert_eq!(causes, ["consec_429", "consec_429", "sleep_expired", "probe_ok"]);
}

#[test]
fn r122_a_script_reports_the_network_errors_of_curl() {
    let scripts = Scripts::with(breaker(1000, Some(4), |_| {}));
    scripts.server.plan("/hang", [Answer::Hang]);
    scripts.server.plan("/break", [Answer::Close]);
    assert_eq!(scripts.call("/hang")["outcome_class"], "net");
    assert_eq!(scripts.call("/break")["outcome_class"], "net");
    let now = scripts.limiter.snapshot().unwrap();
    assert_eq!((now.condition.outcomes.net, now.condition.samples, now.in_flight), (2, 2, 0));
}
