//! The four clients: which programs they are on this machine, and how they are started.
//!
//! Each client is the same program in both halves and makes at most a fixed number of calls per second. With shmlimit
//! it also asks before each call and reports each 429. Without shmlimit, its reaction to a 429 is its [`RetryStyle`].

use crate::platform;
use std::env;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The number of programs.
pub const CLIENTS: usize = 4;
/// The name of the limiter.
pub const LIMITER: &str = "demo";

/// The part of the demo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    Without,
    With,
}

impl Half {
    pub fn as_str(self) -> &'static str {
        match self {
            Half::Without => "without",
            Half::With => "with",
        }
    }

    pub fn parse(word: &str) -> Option<Half> {
        [Half::Without, Half::With].into_iter().find(|half| half.as_str() == word)
    }
}

/// How programs react to a 429 without a limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryStyle {
    /// They try again at their next turn, so they do not exceed the limit as far as they know.
    Naive,
    /// They wait as long as the response says.
    Polite,
}

impl RetryStyle {
    pub fn as_str(self) -> &'static str {
        match self {
            RetryStyle::Naive => "naive",
            RetryStyle::Polite => "polite",
        }
    }

    pub fn to_text(self) -> &'static str {
        match self {
            RetryStyle::Naive => "tries again at its next turn",
            RetryStyle::Polite => "waits as long as it is told",
        }
    }
}

/// The kind of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Shell,
    Python,
    Perl,
    Rust,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Shell => "sh + curl",
            Kind::Python => "python3",
            Kind::Perl => "perl",
            Kind::Rust => "rust",
        }
    }

    /// Describes how the program uses shmlimit.
    pub fn description(self) -> &'static str {
        match self {
            Kind::Shell => "a loop around `shmlimit run`",
            Kind::Python | Kind::Perl => "a script that asks `shmlimit acquire`",
            Kind::Rust => "this tool once more, as a program with the library",
        }
    }

    fn needs(self) -> &'static [&'static str] {
        match self {
            Kind::Shell => &["sh", "curl", "sleep"],
            Kind::Python => &["python3"],
            Kind::Perl => &["perl"],
            Kind::Rust => &[],
        }
    }
}

/// Returns the kinds of clients that this machine can run. Our own binary replaces the others.
pub fn available() -> [Kind; CLIENTS] {
    let there = |kind: Kind| kind.needs().iter().all(|program| in_path(program));
    [Kind::Shell, Kind::Python, Kind::Perl, Kind::Rust]
        .map(|kind| if there(kind) { kind } else { Kind::Rust })
}

fn in_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| platform::is_executable(&directory, program))
}

/// The arguments of every client.
pub struct ClientArgs<'p> {
    pub half: Half,
    pub client: usize,
    pub server: SocketAddr,
    /// The calls per second that it wants to make.
    pub wants: u32,
    pub retry_style: RetryStyle,
    pub directory: &'p Path,
    /// The path of this tool.
    pub tool: &'p Path,
}

impl ClientArgs<'_> {
    fn gap(&self) -> Duration {
        Duration::from_secs(1) / self.wants
    }

    /// Returns the command of a program of this kind.
    pub fn command(&self, kind: Kind) -> Command {
        let mut command = match kind {
            Kind::Shell => script("sh", &["-c", SHELL, "demo"]),
            Kind::Python => script("python3", &["-ISc", PYTHON]),
            Kind::Perl => script("perl", &["-e", PERL]),
            Kind::Rust => {
                let mut command = Command::new(self.tool);
                command.args(["demo", "--act-as", "program"]);
                command
            }
        };
        command.arg(self.server.to_string()).arg(self.half.as_str()).arg(self.client.to_string());
        command.arg(format!("{:.6}", self.gap().as_secs_f64())).arg(self.retry_style.as_str());
        // The user's settings must not affect the demo's limiter, and a proxy must not affect the calls to its
        // server.
        let ours = |name: &OsString| {
            name.to_str()
                .is_some_and(|name| ["SHMLIMIT", "ANIVAULT_"].iter().any(|own| name.starts_with(own)))
        };
        for (name, _) in env::vars_os().filter(|(name, _)| ours(name)) {
            command.env_remove(name);
        }
        command.env("no_proxy", "*").env("NO_PROXY", "*");
        command.env("SHMLIMIT_DIR", self.directory).env("SHMLIMIT", self.tool);
        // All processes that a program starts share one turn in the queue.
        command.env("SHMLIMIT_GROUP", format!("{} {}", kind.name(), self.client));
        command
    }
}

fn script(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

const SHELL: &str = r#"
api=http://$1 half=$2 who=$3 gap=$4 manner=$5
get() { curl -q -s -o /dev/null -w '%{http_code} %header{retry-after}' "$api/$1/$half/$who"; }
call() {
    case $half in
    with) "$SHMLIMIT" run demo -- curl -q -s -o /dev/null -w '%{http_code} %header{retry-after}' "$api/call/$half/$who" ;;
    *) get call ;;
    esac
}
get start >/dev/null || exit 1
while :; do
    answer=$(call) || exit 1
    wait=${answer#* }
    # An old curl cannot say what a header said.
    case $wait in '' | *[!0-9]*) wait=1 ;; esac
    case $half,$manner,$answer in
    *,200*) ;;
    with,*,429*) "$SHMLIMIT" record demo --quiet --status 429 --retry-after "$wait" ;;
    *,polite,429*) sleep "$wait" ;;
    *,429*) ;;
    *) exit 0 ;;
    esac
    sleep "$gap"
done
"#;

const PYTHON: &str = r#"
import os, subprocess, sys, time, urllib.error, urllib.request

server, half, who, gap, manner = sys.argv[1:]
shmlimit = os.environ["SHMLIMIT"]

def get(what):
    try:
        with urllib.request.urlopen(f"http://{server}/{what}/{half}/{who}", timeout=40) as answer:
            return answer.status, answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers

get("start")
while True:
    began = time.monotonic()
    if half == "with":
        subprocess.run([shmlimit, "acquire", "demo"], check=True)
    status, headers = get("call")
    if status == 429 and half == "with":
        told = ["--status", "429", "--retry-after", headers["Retry-After"]]
        subprocess.run([shmlimit, "record", "demo", "--quiet", *told], check=True)
    elif status == 429 and manner == "polite":
        time.sleep(int(headers["Retry-After"]))
    elif status not in (200, 429):
        break
    time.sleep(max(0, began + float(gap) - time.monotonic()))
"#;

const PERL: &str = r#"
use strict;
use IO::Socket::INET;
use Time::HiRes qw(sleep time);

my ($server, $half, $who, $gap, $manner) = @ARGV;
my $shmlimit = $ENV{SHMLIMIT};

sub get {
    my ($what) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => $server, Timeout => 40) or exit 1;
    print $socket "GET /$what/$half/$who HTTP/1.1\r\nHost: $server\r\nConnection: close\r\n\r\n";
    my $answer = join '', <$socket>;
    my ($status) = $answer =~ m{^HTTP/1.1 (\d+)} or exit 1;
    my ($wait) = $answer =~ m{^Retry-After: (\d+)}mi;
    return ($status, $wait);
}

get('start');
while (1) {
    my $began = time;
    system($shmlimit, 'acquire', 'demo') == 0 or exit 1 if $half eq 'with';
    my ($status, $wait) = get('call');
    if ($status == 429 && $half eq 'with') {
        system($shmlimit, 'record', 'demo', '--quiet', '--status', '429', '--retry-after', $wait);
    } elsif ($status == 429 && $manner eq 'polite') {
        sleep $wait;
    } elsif ($status != 200 && $status != 429) {
        exit 0;
    }
    my $left = $began + $gap - time;
    sleep $left if $left > 0;
}
"#;
