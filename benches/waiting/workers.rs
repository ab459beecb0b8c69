//! Worker processes: they get ready together, start together, and report their results.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

/// The first argument of a worker.
pub const FLAG: &str = "--worker";

/// A worker that has been started.
pub struct Worker {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Worker {
    /// Starts this program again, as the worker that these words select.
    pub fn start(words: &[&str]) -> Worker {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.arg(FLAG).args(words);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a worker");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Worker { child, output }
    }

    /// Reads the next line that the worker prints.
    pub fn receive(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line from a worker");
        line.trim().to_owned()
    }

    /// Reads the numbers in the next line that the worker prints.
    pub fn receive_numbers(&mut self) -> Vec<f64> {
        let line = self.receive();
        let numbers: Result<_, _> = line.split_whitespace().map(str::parse).collect();
        numbers.unwrap_or_else(|_| panic!("a worker said {line:?}"))
    }

    /// Sends a line to the worker.
    pub fn send(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("piped");
        writeln!(input, "{line}").and_then(|()| input.flush()).expect("a listening worker");
    }

    /// The worker's process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Worker {
    /// Ends the worker, so that no worker outlives the benchmark, whatever it is waiting for.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Called by a worker: reports that it is ready, and returns the benchmark's answer.
pub fn ready() -> String {
    println!("ready");
    receive()
}

/// Called by a worker: reads a line from the benchmark.
pub fn receive() -> String {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a line from the benchmark");
    line.trim().to_owned()
}
