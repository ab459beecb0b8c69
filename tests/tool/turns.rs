//! Whose turn it is when several programs wait: groups of processes, and the order of arrival.

use crate::cli::Home;
use crate::cli::commands::{READY, script};
use crate::cli::queue::{Holder, open, start_waiting, wait_until, waiting};
use shmlimit::Request;
use std::io::{BufRead, BufReader, Write};
use std::process::Child;
use std::sync::mpsc::channel;

/// One call at a time, and no rule in the way: the order of turns is all there is.
const ONE: [&str; 3] = ["one", "--concurrency", "1"];
/// So many that they would leave the other side nothing if each were a party. Where starting a process takes long there
/// are fewer.
const MANY: usize = if cfg!(windows) { 12 } else { 24 };
/// Fewer than there are of the many, who have one turn each.
const GRANTS: usize = if cfg!(windows) { 10 } else { 20 };

/// Many processes beside one with one thread.
struct Contest {
    home: Home,
    holder: Holder,
    /// Each says a line when it is its turn, and holds the permit until told to go on.
    many: Vec<Child>,
    /// Where they are told so; by the number of the one who said the line.
    tell: Tell,
}

type Tell = Box<dyn FnMut(&mut [Child], usize)>;

impl Contest {
    /// So many processes, each in a session of its own.
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

    /// Says how many of the first `grants` the many got. Before anybody gives the permit back, the other side is seen
    /// waiting, so that neither misses a turn because it was slow to come.
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
                // The end of the test is the only reason why nobody listens.
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

/// With all that it has started.
#[cfg(unix)]
fn end(child: &mut Child) {
    use nix::sys::signal::{Signal, killpg};
    killpg(nix::unistd::Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL).unwrap();
}

/// The command ends with it. One of them may just have been told to go on, and be gone.
#[cfg(windows)]
fn end(child: &mut Child) {
    let _ = child.kill();
}

/// Two parties take turns: half each. On an overloaded machine one is now and then late and passed over, so a good
/// deal is allowed for; as many parties as processes would leave the other side nothing. (Exact shares are tested
/// where time is virtual.)
#[track_caller]
fn assert_half(turns: usize, grants: usize) {
    assert!((grants / 4..=grants - grants / 4).contains(&turns), "{turns} of {grants} turns for the many");
}

#[cfg(unix)] // xargs, and a FIFO because it gives those it starts no input
#[test]
fn r143_fifty_under_xargs_are_one_party_beside_one_process() {
    use nix::sys::stat::Mode;
    use std::process::{Command, Stdio};
    let home = Home::with(&ONE);
    let holder = Holder::new(&home, "one");
    let go = home.path().join("go");
    nix::unistd::mkfifo(&go, Mode::S_IRWXU).unwrap();
    // Open for reading too, so that there is no end of file between two turns.
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
fn r143_a_group_by_name_is_one_party_though_its_sessions_differ() {
    assert_half(Contest::apart(MANY, &["--group", "crawl"], &[]).turns_of_the_many(GRANTS), GRANTS);
    let variable = [("SHMLIMIT_GROUP", "crawl")];
    assert_half(Contest::apart(MANY, &[], &variable).turns_of_the_many(GRANTS), GRANTS);
}

#[cfg(unix)] // under one window, as here, they are one party on Windows
#[test]
fn r143_sessions_without_a_group_are_parties_of_their_own() {
    let turns = Contest::apart(16, &[], &[]).turns_of_the_many(15);
    assert!(turns >= 13, "{turns} of 15 turns for sixteen parties beside one");
    // What is named is named by hand first, then by the environment.
    let named = [("SHMLIMIT_GROUP", "other")];
    assert_half(Contest::apart(MANY, &["--group", "crawl"], &named).turns_of_the_many(GRANTS), GRANTS);
}

/// Who is served in which order when two groups come one after the other, each process seen waiting before the next
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

/// On a busy machine one may look so late that it is passed over; the same not in every of ten rounds.
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
