//! `help`: explains a topic in a few lines, or a verb. The texts are in `topics/`.

use crate::ui::failure::Failure;
use crate::ui::output;
use crate::verb_trait::{Command, Example, Tool};
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use shmlimit::config::nearest;
use std::ffi::OsStr;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = after_help())]
pub struct Help {
    /// A topic or a verb [default: a list of both]
    #[arg(value_name = "TOPIC", hide_possible_values = true)]
    pub topic: Option<String>,
}

/// A topic: its name, one line for the list, and its text.
struct Topic {
    name: &'static str,
    about: &'static str,
    text: &'static str,
}

macro_rules! topics {
    ($($name:literal $about:literal),* $(,)?) => {
        &[$(Topic { name: $name, about: $about, text: include_str!(concat!("topics/", $name, ".txt")) }),*]
    };
}

const TOPICS: &[Topic] = topics! {
    "rates" "Limit calls per time and calls in flight; count costs",
    "waiting" "Wait for a call, with a timeout or not at all",
    "retry-after" "Stop all programs when the API says: try again later",
    "breaker" "Slow down and stop while the API fails",
    "queue" "Which waiting call goes first",
    "files" "Where limiters are, and who shares them",
    "json" "Output for programs",
    "exit-codes" "What the exit codes mean",
    "scripts" "Loops, xargs and retries in a shell",
};

impl Command for Help {
    const EXAMPLES: &'static [Example] = &[("Read about exit codes:", "shmlimit help exit-codes")];
    const USES_DIRECTORY: bool = false;

    fn run(&self, tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        let mut command = (tool.arguments)();
        command.build();
        match self.topic.as_deref() {
            None => output::text(&list(&command))?,
            Some(name) => output::text(&explain(&mut command, name)?)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The topics and verbs for completions. The parser accepts any word, because `help` itself suggests a correction.
#[derive(Clone)]
pub struct Words(Vec<&'static str>);

impl Words {
    pub fn new(verbs: impl Iterator<Item = &'static str>) -> Words {
        Words(TOPICS.iter().map(|topic| topic.name).chain(verbs).collect())
    }
}

impl TypedValueParser for Words {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

fn line(name: &str, about: &str) -> String {
    format!("  {name:11}  {about}\n")
}

fn after_help() -> String {
    let topics: String = TOPICS.iter().map(|topic| line(topic.name, topic.about)).collect();
    format!("Topics:\n{topics}")
}

fn list(command: &clap::Command) -> String {
    let about = |verb: &clap::Command| verb.get_about().map(ToString::to_string).unwrap_or_default();
    let verbs: String = command.get_subcommands().map(|verb| line(verb.get_name(), &about(verb))).collect();
    format!("{}\nVerbs:\n{verbs}\nRead one: shmlimit help TOPIC, shmlimit help VERB\n", after_help())
}

fn explain(command: &mut clap::Command, name: &str) -> Result<String, Failure> {
    if let Some(topic) = TOPICS.iter().find(|topic| topic.name == name) {
        return Ok(topic.text.to_owned());
    }
    if let Some(verb) = command.find_subcommand_mut(name) {
        return Ok(verb.render_long_help().to_string());
    }
    let verbs = command.get_subcommands().map(clap::Command::get_name);
    let near = nearest(&name.to_lowercase(), TOPICS.iter().map(|topic| topic.name).chain(verbs));
    let meant = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    Err(Failure::Usage(format!("no topic or verb {name:?}{meant}\nall topics and verbs: shmlimit help")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_short_and_begin_with_a_command() {
        for Topic { name, about, text } in TOPICS {
            assert!(text.lines().count() <= 25, "{name} is too long");
            assert!(text.lines().all(|line| line.len() <= 80), "{name} is too wide");
            let first = text.lines().next().unwrap_or_default();
            assert!(first.starts_with("  ") && first.contains("shmlimit "), "{name}: {first}");
            assert!(!about.ends_with('.') && about.len() < 60, "{about}");
        }
    }
}
