//! `top` in a real terminal (tmux): its display, its keys, and how it leaves the terminal.

use crate::cli::Home;
use crate::cli::tmux::Window;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const USUAL: (u16, u16) = (80, 24);

fn home() -> Home {
    let home = Home::with(&["web", "--rate", "10/day", "--concurrency", "3"]);
    home.tool(&["init", "api", "--rate", "5000/h", "--algorithm", "gcra"]).succeeds();
    home
}

fn top(home: &Home, variables: &[(&str, &str)]) -> Window {
    let window = Window::new(home, USUAL, variables);
    window.line("shmlimit top; echo code=$?");
    window.until("GRANT/s");
    window
}

#[test]
fn top_shows_limiters_users_and_waiting_calls_live() {
    let home = home();
    let window = top(&home, &[]);
    window.until("2 limiters");
    window.until("5000/5000");
    window.keys(&["Down"]);
    window.until("─ web  ready");
    window.until(">web");
    let (mut child, _out, _) = home.start(&["run", "web", "--", "sh", "-c", "echo ready; read -r _"]);
    // One by one: a screen may be seen while it is being drawn.
    for part in
        ["1 of 3", "9/10", "9 of 10 requests left", "full again in", "processes 1", "waiting 0", "HOLDS"]
    {
        window.until(part);
    }
    window.until(&child.id().to_string());
    window.until("100%");
    home.tool(&["init", "third", "--rate", "1/s"]).succeeds();
    window.until("3 limiters");
    window.keys(&["?"]);
    window.until("any key closes");
    window.keys(&["x"]);
    window.wait("the help is gone", |text| !text.contains("any key closes"));
    window.keys(&["/"]);
    window.line("thi");
    window.until("1 of 3 limiters");
    window.keys(&["Escape"]);
    window.keys(&["Tab", "Tab"]);
    window.until("no call is waiting");
    window.keys(&["s", "p", "5"]);
    window.until("by trouble  every 5s  PAUSED");
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn top_disturbs_no_limiter_and_recreates_none() {
    let home = home();
    home.tool(&["run", "tmdb", "--", "true"]).succeeds();
    let before = home.status("web");
    let window = top(&home, &[("SHMLIMIT_RATE_BASE", "20")]);
    window.until("3 limiters");
    window.keys(&["End"]);
    window.until("─ web  ready");
    let after = home.status("web");
    for key in ["counts", "in_flight", "queue", "resets"] {
        assert_eq!(before[key], after[key]);
    }
    assert_eq!(home.status("tmdb")["rate"], 35.0);
    std::fs::remove_file(home.path().join("web.shm")).unwrap();
    window.until("it was removed");
    assert!(!home.names().contains(&"web.shm".to_owned()), "the observer created the limiter again");
    home.tool(&["init", "web", "--rate", "7/day"]).succeeds();
    window.until("7 of 7 requests left");
    home.tool(&["init", "web", "--rate", "8/day", "--replace"]).succeeds();
    window.until("8 of 8 requests left");
    let file = home.path().join("api.shm");
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, "no segment at all").unwrap();
    window.until("unreadable");
    window.keys(&["Home"]);
    window.until("─ api  unreadable");
    window.until("api.shm");
    window.keys(&["q"]);
    window.until("code=0");
}

#[test]
fn every_way_to_end_top_restores_the_terminal() {
    let home = home();
    let window = Window::new(&home, USUAL, &[]);
    let modes = window.modes();
    for key in ["q", "Escape", "C-c"] {
        window.line("clear; shmlimit top; echo code=$?");
        window.until("GRANT/s");
        window.keys(&[key]);
        let text = window.until("code=0");
        assert!(!text.contains("GRANT/s"), "{key}: {text}");
        window.is_clean(&modes);
    }
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT] {
        window.line("clear; shmlimit top; echo code=$?");
        window.until("GRANT/s");
        kill(Pid::from_raw(window.child("shmlimit")), signal).unwrap();
        // The signal itself ends it, as its sender expects. After Ctrl-C the shell prints no exit code.
        match signal {
            Signal::SIGINT => window.wait("the prompt", |text| text.trim_end().ends_with('$')),
            _ => window.until(&format!("code={}", 128 + signal as i32)),
        };
        window.is_clean(&modes);
    }
}

#[test]
fn the_shell_gets_the_terminal_back_while_top_is_stopped() {
    let home = home();
    let window = Window::new(&home, USUAL, &[]);
    let modes = window.modes();
    window.line("clear; shmlimit top; echo code=$?");
    window.until("GRANT/s");
    let pid = Pid::from_raw(window.child("shmlimit"));
    for stop in [true, false] {
        if stop {
            window.keys(&["C-z"]);
        } else {
            kill(pid, Signal::SIGTSTP).unwrap();
        }
        window.wait("a prompt", |text| text.contains("Stopped") && text.trim_end().ends_with('$'));
        window.is_clean(&modes);
        window.line("clear; fg");
        window.until("GRANT/s");
    }
    // A program cannot notice SIGSTOP, so the terminal stays as it is. After continuing, the screen is drawn again.
    kill(pid, Signal::SIGSTOP).unwrap();
    window.wait("a prompt", |text| text.contains("Stopped") && text.trim_end().ends_with('$'));
    window.line("fg");
    window.wait("top", |text| text.contains("GRANT/s") && !text.contains("Stopped"));
    window.keys(&["q"]);
    window.wait("the prompt", |text| text.trim_end().ends_with('$'));
    window.is_clean(&modes);
}

#[test]
fn top_without_a_shell_ignores_a_stop() {
    let home = home();
    let window = Window::new(&home, USUAL, &[]);
    window.line("exec shmlimit top");
    window.until("GRANT/s");
    window.keys(&["C-z", "?"]);
    window.until("any key closes");
}

#[test]
fn top_ends_with_its_terminal() {
    let home = home();
    let window = top(&home, &[]);
    let pid = window.child("shmlimit");
    drop(window);
    let gone = || !std::path::Path::new(&format!("/proc/{pid}")).exists();
    let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while !gone() {
        assert!(std::time::Instant::now() < end, "it goes on without a terminal");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn top_works_in_a_terminal_of_any_size() {
    let home = home();
    let window = top(&home, &[]);
    for (width, height) in [(30, 10), (20, 2), (200, 50), (5, 5), (40, 8), (80, 24)] {
        window.resize(width, height);
        match (width, height) {
            (..40, _) | (_, ..8) => window.wait("too small", |text| text.starts_with("too")),
            _ => window.wait("a list", |text| text.contains("LIMITER") && text.contains("web")),
        };
    }
    window.keys(&["q"]);
    window.until("code=0");
}

#[test]
fn the_hint_without_limiters_is_readable_in_a_small_window() {
    let home = Home::new();
    let window = top(&home, &[]);
    window.until("Try in another terminal:");
    window.resize(20, 5);
    window.wait("all of it", |text| {
        text.split_whitespace().collect::<Vec<_>>().join(" ").contains("is needed")
    });
}

#[test]
fn in_a_wide_window_figures_stay_close_to_their_names() {
    let home = home();
    let window = top(&home, &[]);
    window.resize(300, 80);
    window.wait("close", |text| {
        text.lines().any(|line| line.contains("web ") && line.find("ready").is_some_and(|column| column < 40))
            && text.lines().any(|line| line.chars().count() > 250)
    });
}

#[test]
fn colours_and_blocks_appear_only_where_the_terminal_supports_them() {
    let home = home();
    let coloured = |window: &Window| {
        ["\x1b[31", "\x1b[32", "\x1b[33", "38;5;"].iter().any(|code| window.colours().contains(code))
    };
    let window = top(&home, &[]);
    window.until("█");
    assert!(coloured(&window));
    drop(window);
    let window = top(&home, &[("NO_COLOR", "1"), ("LANG", "C")]);
    let text = window.until("####");
    assert!(!coloured(&window));
    assert!(text.is_ascii(), "{text}");
}

#[test]
fn top_without_a_terminal_names_the_alternative() {
    let home = home();
    home.tool(&["top"]).fails(2, &["terminal", "shmlimit status --watch"]);
    let window = Window::new(&home, USUAL, &[]);
    window.line("TERM=dumb shmlimit top; echo code=$?");
    window.until("code=2");
    window.line("clear; shmlimit top wbe; echo code=$?");
    // The message is wider than the window.
    window.wait("the near name", |text| {
        text.replace('\n', "").contains("did you mean \"web\"?") && text.contains("code=2")
    });
}
