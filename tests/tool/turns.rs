//! The order of turns when several programs wait: groups of processes, and the order of arrival.

use crate::cli::commands::{READY, script};
use crate::cli::queue::{Holder, open, start_waiting, wait_until, waiting};
use crate::cli::{Home, ONE};
use shmlimit::Request;
use std::io::{BufRead, BufReader, Write};
use std::process::Child;
use std::sync::mpsc::channel;

/// A number of processes so large that the other side would get nothing if each were a party. There are fewer where
/// starting a process is slow.
const MANY: usize = if cfg!(windows) { 12 } else { 24 };
/// Fewer grants than there are processes in the group, each of which has one turn.
const GRANTS: usize = if cfg!(windows) { 10 } else { 20 };

/// Many processes beside one process with one thread.
struct Contest {
    home: Home,
    holder: Holder,
    /// Each prints a line at its turn, and holds the permit until it is told to go on.
    many: Vec<Child>,
    /// Tells a process to go on, by the number of the process that printed the line.
    tell: Tell,
}

type Tell = Box<dyn FnMut(&mut [Child], usize)>;

impl Contest {
    /// Starts `count` processes, each in its own session.
    fn apart(count: usize, options: &[&str], variables: &[(&str, &str)]) -> Contest {
        let home = Home::with(&ONE);
        let holder = Holder::new(&home, "one");
        let command = [&["run", "one"], options, &["--"], &READY].concat();
        let many = (0..count).map(|_| start_waiting(&home, "one", &command, variables)).collect();
        let tell = |many: &mut [Child], who: usize| {
            many[who].stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        };
        Contest { home, holder, many, tell: Box::new(tell) }
    }

    /// How many of the first `grants` grants the many processes got. Before any permit is returned, the other side is
    /// seen waiting, so that neither side misses a turn because it started late.
    fn turns_of_the_many(mut self, grants: usize) -> usize {
        let (send, said) = channel();
        let (tell, told) = channel();
        for (who, child) in self.many.iter_mut().enumerate() {
            let (out, send) = (BufReader::new(child.stdout.take().unwrap()), send.clone());
            std::thread::spawn(move || {
                out.lines().map_while(Result::ok).try_for_each(|_| send.send(Some(who)))
            });
        }
        let limiter = open(&self.home, "one");
        let alone = std::thread::spawn(move || {
            loop {
                let grant = limiter.acquire(&Request::new()).unwrap();
                // The channel is closed only at the end of the test.
                if send.send(None).is_err() || told.recv().is_err() {
                    return;
                }
                drop(grant);
            }
        });
        let me = std::process::id();
        let home = &self.home;
        let sees = |wanted: &dyn Fn(&[u32]) -> bool| {
            wait_until(home, "one", |status| wanted(&waiting(status)));
        };
        sees(&|queue| queue.contains(&me));
        self.holder.let_go();
        let mut turns = 0;
        for _ in 0..grants {
            if let Some(who) = said.recv().unwrap() {
                turns += 1;
                sees(&|queue| queue.contains(&me));
                (self.tell)(&mut self.many, who);
            } else {
                sees(&|queue| queue.iter().any(|pid| *pid != me));
                tell.send(()).unwrap();
            }
        }
        drop((tell, said));
        for mut child in self.many {
            end(&mut child);
            child.wait().unwrap();
        }
        alone.join().unwrap();
        turns
    }
}

/// Kills a child with all processes that it has started.
#[cfg(unix)]
fn end(child: &mut Child) {
    use nix::sys::signal::{Signal, killpg};
    killpg(nix::unistd::Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL).unwrap();
}

/// Kills a child; its command ends with it. A child that was told to go on may already have exited.
#[cfg(windows)]
fn end(child: &mut Child) {
    let _ = child.kill();
}

/// Checks that two parties share the turns equally. The tolerance is large, because on an overloaded machine a party
/// is sometimes late and passed over. With one party per process, the other side would get nothing. (Tests with
/// virtual time check exact shares.)
#[track_caller]
fn assert_half(turns: usize, grants: usize) {
    assert!((grants / 4..=grants - grants / 4).contains(&turns), "{turns} of {grants} turns for the many");
}

#[cfg(unix)] // needs xargs, and a FIFO because xargs gives its commands no input
#[test]
fn r143_fifty_under_xargs_are_one_party_beside_one_process() {
    use nix::sys::stat::Mode;
    use std::process::{Command, Stdio};
    let home = Home::with(&ONE);
    let holder = Holder::new(&home, "one");
    let go = home.path().join("go");
    nix::unistd::mkfifo(&go, Mode::S_IRWXU).unwrap();
    // Also open for reading, so that there is no end of file between two turns.
    let mut fifo = std::fs::File::options().read(true).write(true).open(&go).unwrap();
    let turn = "echo many; read -r _ <\"$0\"";
    let line = format!("seq 50 | xargs -P 50 -n 1 {} run one -- sh -c '{turn}' \"$0\"", crate::cli::binary());
    let many = Command::new("setsid")
        .args(["sh", "-c", &line, go.to_str().unwrap()])
        .env("SHMLIMIT_DIR", home.path())
        .env_remove("SHMLIMIT_GROUP")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until(&home, "one", |status| waiting(status).len() == 50);
    let tell = move |_: &mut [Child], _| fifo.write_all(b"\n").unwrap();
    let contest = Contest { home, holder, many: vec![many], tell: Box::new(tell) };
    assert_half(contest.turns_of_the_many(40), 40);
}

#[test]
fn r143_a_named_group_is_one_party_across_sessions() {
    assert_half(Contest::apart(MANY, &["--group", "crawl"], &[]).turns_of_the_many(GRANTS), GRANTS);
    let variable = [("SHMLIMIT_GROUP", "crawl")];
    assert_half(Contest::apart(MANY, &[], &variable).turns_of_the_many(GRANTS), GRANTS);
}

#[cfg(unix)] // on Windows all processes under one window, as here, are one party
#[test]
fn r143_each_session_without_a_group_is_its_own_party() {
    let turns = Contest::apart(16, &[], &[]).turns_of_the_many(15);
    assert!(turns >= 13, "{turns} of 15 turns for sixteen parties beside one");
    // The option takes precedence over the environment variable.
    let named = [("SHMLIMIT_GROUP", "other")];
    assert_half(Contest::apart(MANY, &["--group", "crawl"], &named).turns_of_the_many(GRANTS), GRANTS);
}

/// The order of service when two groups come one after the other. Each process is seen waiting before the next one
/// starts.
fn order(fairness: &str) -> String {
    let home = Home::with(&["one", "--concurrency", "1", "--fairness", fairness]);
    let holder = Holder::new(&home, "one");
    let log = home.path().join("log");
    let start = |who: &str| {
        let line = format!("echo {who}>>{}", log.display());
        let send = script(&line);
        start_waiting(&home, "one", &[&["run", "one", "--group", who, "--"][..], &send].concat(), &[])
    };
    let all: Vec<Child> = ["a", "a", "a", "b", "b", "b"].map(start).into();
    holder.let_go();
    for mut child in all {
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    std::fs::read_to_string(log).unwrap().split_whitespace().collect()
}

/// On a busy machine a call may look so late that it is passed over, but not in every one of ten rounds.
#[track_caller]
fn assert_once(fairness: &str, wanted: &str) {
    let orders: Vec<String> = (0..10).map(|_| order(fairness)).take_while(|order| order != wanted).collect();
    assert!(orders.len() < 10, "never {wanted}: {orders:?}");
}

#[test]
fn r131_fifo_serves_in_the_order_of_arrival() {
    assert_once("fifo", "aaabbb");
}

#[test]
fn r131_process_fairness_serves_two_groups_in_turn() {
    assert_once("process", "ababab");
}
