//! `man`: writes the manual pages, which are generated from the texts of --help.

use crate::options::VARIABLES;
use crate::ui::failure::Failure;
use crate::ui::output;
use crate::verb_trait::{Command, Example, Tool, VerbInfo};
use shmlimit::config::nearest;
use shmlimit::environment;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "Read one:     shmlimit man run | man -l -\n\
                        Install all:  shmlimit man --to /usr/local/share/man/man1")]
pub struct Man {
    /// Print the page of this verb [default: the page of shmlimit itself]
    #[arg(conflicts_with = "to")]
    pub verb: Option<String>,
    /// Write all pages into this directory, which is created if necessary
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
}

impl Command for Man {
    const EXAMPLES: &'static [Example] = &[("Read the page of a verb:", "shmlimit man run | man -l -")];
    const USES_DIRECTORY: bool = false;

    fn run(&self, tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        let command = pages((tool.arguments)());
        match (&self.to, &self.verb) {
            (Some(directory), _) => write_all(tool.verbs, &command, directory)?,
            (None, None) => output::text(&page(tool.verbs, &command)?)?,
            (None, Some(verb)) => output::text(&page(tool.verbs, find(&command, verb)?)?)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Builds the command with everything that clap adds when it runs.
fn pages(command: clap::Command) -> clap::Command {
    let command = command.subcommand_help_heading("VERBS");
    // Options that `-h` hides would appear here without their description.
    let mut command = command.mut_args(|arg| arg.hide_short_help(false));
    command.build();
    command
}

fn find<'c>(command: &'c clap::Command, verb: &str) -> Result<&'c clap::Command, Failure> {
    command.find_subcommand(verb).ok_or_else(|| {
        let near = nearest(verb, command.get_subcommands().map(clap::Command::get_name));
        let meant = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
        Failure::Usage(format!("no verb {verb:?}{meant}\nall verbs: shmlimit help"))
    })
}

fn write_all(verbs: &[VerbInfo], command: &clap::Command, directory: &Path) -> Result<(), Failure> {
    let failed = |path: &Path, error: io::Error| {
        Failure::Usage(format!("cannot write {}: {error}; name another directory with --to", path.display()))
    };
    std::fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
    for command in std::iter::once(command).chain(command.get_subcommands()) {
        let path = directory.join(format!("{}.1", title(command)));
        std::fs::write(&path, page(verbs, command)?).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

/// Returns the page's title: `shmlimit` or `shmlimit-run`.
fn title(command: &clap::Command) -> String {
    command.get_display_name().unwrap_or(command.get_name()).to_owned()
}

fn page(verbs: &[VerbInfo], command: &clap::Command) -> Result<String, Failure> {
    let title = title(command);
    let verb = title.strip_prefix("shmlimit-");
    let man = clap_mangen::Man::new(command.clone());
    let mut roff = Vec::new();
    man.render_name_section(&mut roff)?;
    man.render_synopsis_section(&mut roff)?;
    man.render_description_section(&mut roff)?;
    man.render_options_section(&mut roff)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut roff)?;
    }
    // The date is left empty: a page is as old as the program that writes it.
    let version = env!("CARGO_PKG_VERSION");
    let mut page = format!(".TH {} 1 \"\" \"shmlimit {version}\" \"User Commands\"\n", title.to_uppercase());
    // After the list of an argument's values, clap writes one break more than strict man readers accept.
    page += &String::from_utf8_lossy(&roff).replace(".br\n\n.br\n", ".sp\n");
    let notes = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    // The main page has its own section on exit codes, so these notes would repeat it.
    if let (Some(_), false) = (verb, notes.is_empty()) {
        let paragraphs: Vec<String> = notes.split("\n\n").map(paragraph).collect();
        page += ".SH NOTES\n";
        page += &paragraphs.join(".PP\n");
    }
    page += EXIT_STATUS;
    page += &environment_section();
    page += FILES;
    page += &examples(verbs, verb);
    page += &see_also(command, verb);
    Ok(page)
}

/// Text of several lines keeps its line breaks. A single line is filled.
fn paragraph(text: &str) -> String {
    let text = text.trim_matches('\n');
    if text.contains('\n') { format!(".nf\n{}.fi\n", escaped(text)) } else { escaped(text) }
}

/// Escapes text, so that a dot at the start of a line or a backslash is not a roff command.
fn escaped(text: &str) -> String {
    let line = |line: &str| {
        let line = line.replace('\\', "\\e").replace('-', "\\-");
        match line.starts_with(['.', '\'']) {
            true => format!("\\&{line}\n"),
            false => line + "\n",
        }
    };
    text.lines().map(line).collect()
}

const EXIT_STATUS: &str = r".SH EXIT STATUS
.TP
0
Done, or granted. An output pipe that its reader closed also counts as success.
.TP
75
Refused for now: try again later. The option \-E of
.B run
and
.B acquire
chooses another code.
.TP
2
Usage or configuration error; trying again does not help.
.TP
1
Any other error.
.PP
.B shmlimit run
returns the exit code of its command; 127 if it is not found, 126 if it cannot be run.
";

const FILES: &str = r".SH FILES
.TP
.I NAME.shm
A limiter, in the directory of the limiters.
.TP
.I ratelimit.lock
Locked briefly while a limiter is created, replaced or removed. Programs that have a limiter open hold a shared lock of
one byte of it. Do not delete it while limiters are used.
.TP
.I .NAME.removed
Left by
.B rm \-\-force
while programs have the limiter open: the next limiter of that name starts with full buckets and deletes this file.
.TP
.I /var/run/shmlimit
The directory, if it exists and is shared with this user.
.TP
.I /var/tmp/shmlimit\-UID
The directory otherwise.
.TP
.I /dev/shm/shmlimit\-UID
The directory where
.I /var/tmp
is missing, or on a file system on which no limiter works, as in most containers.
";

fn environment_section() -> String {
    let settings: Vec<String> =
        environment::variables().filter(|name| name.starts_with("SHMLIMIT_")).collect();
    let others: String =
        VARIABLES.iter().map(|(name, meaning)| format!(".TP\n.B {name}\n{meaning}\n")).collect();
    format!(
        ".SH ENVIRONMENT\n{others}.PP\nThese change settings of a limiter with a five\\-state breaker, for all \
         programs that share it, when a program opens it\nto make calls:\n{}.\nThe same names may begin with \
         ANIVAULT_.\n",
        settings.join(",\n")
    )
}

/// The shortest tour, for the main page.
const TOUR: &[Example] = &[
    (
        "Call an API from a shell, within one budget for the whole machine:",
        "shmlimit run tmdb -- curl -fsS https://api.example/3/movie/550",
    ),
    (
        "Create a limiter, and see which programs use it:",
        "shmlimit init api --rate 35/s --concurrency 4\nshmlimit status api",
    ),
];

fn examples(verbs: &[VerbInfo], verb: Option<&str>) -> String {
    let examples = match verb {
        None => TOUR,
        Some(verb) => match verbs.iter().find(|known| known.name == verb) {
            Some(known) => known.examples,
            None => return String::new(),
        },
    };
    let one = |(what, how): &(&str, &str)| {
        format!(".PP\n{}.PP\n.RS 4\n.nf\n{}.fi\n.RE\n", escaped(what), escaped(how))
    };
    // Strict man readers reject a paragraph macro right after a heading.
    let text: String = examples.iter().map(one).collect();
    format!(".SH EXAMPLES\n{}", text.strip_prefix(".PP\n").unwrap_or(&text))
}

fn see_also(command: &clap::Command, verb: Option<&str>) -> String {
    let pages: Vec<String> = match verb {
        Some(_) => vec!["shmlimit".to_owned()],
        None => command.get_subcommands().map(title).collect(),
    };
    let reference = |page: &String| format!(".BR {} (1),\n", page.replace('-', "\\-"));
    let all: String = pages.iter().map(reference).collect();
    format!(".SH SEE ALSO\n{all}.BR flock (1)\n")
}
