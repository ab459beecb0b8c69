//! A real terminal: a tmux window with a shell, in which tests type and read.

use crate::cli::{Home, binary};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Long enough for a busy machine. A failing test may take this long.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// A shell in its own window. Its tmux server ends with it.
pub struct Window {
    socket: String,
}

impl Window {
    /// A window of this size, with these variables added to the environment.
    pub fn new(home: &Home, (width, height): (u16, u16), variables: &[(&str, &str)]) -> Window {
        static WINDOWS: AtomicU32 = AtomicU32::new(0);
        let number = WINDOWS.fetch_add(1, Ordering::Relaxed);
        let window = Window { socket: format!("shmlimit-{}-{number}", std::process::id()) };
        let mut command = Command::new("tmux");
        command.args(["-L", &window.socket, "-f", "/dev/null", "-u", "new-session", "-d"]);
        command.args(["-x", &width.to_string(), "-y", &height.to_string()]);
        command.args([
            "env",
            "-u",
            "NO_COLOR",
            "-u",
            "LC_ALL",
            "-u",
            "LC_CTYPE",
            "LANG=C.UTF-8",
            "PS1=$ ",
            "HISTFILE=",
        ]);
        command.arg(format!("SHMLIMIT_DIR={}", home.path().display()));
        let folder = Path::new(binary()).parent().unwrap().display();
        command.arg(format!("PATH={folder}:{}", std::env::var("PATH").unwrap()));
        command.args(variables.iter().map(|(name, value)| format!("{name}={value}")));
        command.args(["bash", "--norc", "--noprofile"]);
        let started = command.stdin(Stdio::null()).status();
        assert!(started.expect("these tests need tmux").success());
        window.until("$");
        window
    }

    fn tmux(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux").args(["-L", &self.socket]).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// Types a line and Enter.
    pub fn line(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
        self.keys(&["Enter"]);
    }

    /// Types keys by their names.
    pub fn keys(&self, names: &[&str]) {
        self.tmux(&[&["send-keys"], names].concat());
    }

    pub fn resize(&self, width: u16, height: u16) {
        self.tmux(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
    }

    /// The visible text.
    pub fn text(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    /// The visible text with the escape sequences for colours.
    pub fn colours(&self) -> String {
        self.tmux(&["capture-pane", "-p", "-e"])
    }

    /// Waits until `wanted` holds, and returns the visible text.
    #[track_caller]
    pub fn wait(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + WAIT_TIMEOUT;
        loop {
            let text = self.text();
            if wanted(&text) {
                return text;
            }
            assert!(Instant::now() < end, "{what} is not in the window:\n{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until this text is visible.
    #[track_caller]
    pub fn until(&self, part: &str) -> String {
        self.wait(part, |text| text.contains(part))
    }

    /// The process id of the shell's child with this name, once it exists.
    pub fn child(&self, name: &str) -> i32 {
        let shell = self.tmux(&["display-message", "-p", "#{pane_pid}"]).trim().to_owned();
        let end = Instant::now() + WAIT_TIMEOUT;
        loop {
            let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children")).unwrap();
            let named = children.split_whitespace().find(|pid| {
                std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name)
            });
            if let Some(pid) = named {
                return pid.parse().unwrap();
            }
            assert!(Instant::now() < end, "no {name} in the window:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Asserts that the shell has its terminal back as it was: its modes, the cursor, the normal screen.
    #[track_caller]
    pub fn is_clean(&self, modes: &str) {
        assert_eq!(self.modes(), modes);
        assert_eq!(self.tmux(&["display-message", "-p", "#{cursor_flag} #{alternate_on}"]).trim(), "1 0");
    }

    /// The terminal modes that the shell gives to its commands.
    pub fn modes(&self) -> String {
        self.line("clear; echo modes=$(stty -g | cksum)=");
        let text = self
            .wait("modes", |text| text.lines().any(|line| line.starts_with("modes=") && line.ends_with('=')));
        text.lines().find(|line| line.starts_with("modes=")).unwrap().to_owned()
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}
