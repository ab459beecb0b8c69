//! A script that is written while it runs: every answer comes at once, and the reader may close the pipe.

use super::{Simulation, TMDB};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

fn start(simulation: &Simulation) -> std::process::Child {
    Command::new(assert_cmd::cargo::cargo_bin!("shmlimit"))
        .arg("simulate")
        .arg("--config")
        .arg(simulation.path("c.toml"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn each_line_is_answered_before_the_next_is_asked_for() {
    let simulation = Simulation::new(TMDB);
    let mut child = start(&simulation);
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    for i in 0..20 {
        writeln!(input, "{}", if i == 7 { "nonsense" } else { r#"{"op":"acquire","cost":0}"# }).unwrap();
        let mut line = String::new();
        // This read would wait for ever if the answer were held back.
        output.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["i"], i);
        assert_eq!(answer.get("error").is_some(), i == 7);
    }
    drop(input);
    assert_eq!(child.wait().unwrap().code(), Some(1), "one line was invalid");
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

#[test]
fn a_reader_that_closes_the_pipe_is_not_a_failure() {
    let simulation = Simulation::new(TMDB);
    let mut child = start(&simulation);
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    writeln!(input, "{{\"op\":\"acquire\"}}").unwrap();
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    drop(output);
    // The simulation notices the closed pipe at its next answer and exits, so a later write fails.
    for _ in 0..1000 {
        if writeln!(input, "{{\"op\":\"acquire\"}}").is_err() {
            break;
        }
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
