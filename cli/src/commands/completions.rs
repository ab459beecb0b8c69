//! `completions`: writes scripts with which a shell completes verbs, options and limiter names.

use crate::open;
use crate::options::Location;
use crate::ui::failure::Failure;
use crate::ui::output;
use crate::verb_trait::{Command, Example, Names, Tool};
use clap::ArgAction;
use clap_complete::Shell;
use shmlimit::{Limiter, config, presets};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
                        shmlimit completions bash > ~/.local/share/bash-completion/completions/shmlimit\n  \
                        shmlimit completions zsh > ~/.zfunc/_shmlimit      (with fpath+=~/.zfunc before compinit)\n  \
                        shmlimit completions fish > ~/.config/fish/completions/shmlimit.fish\n  \
                        shmlimit completions powershell >> $PROFILE")]
pub struct Completions {
    /// The shell
    #[arg(value_parser = ["bash", "zsh", "fish", "powershell"], required_unless_present = "names")]
    pub shell: Option<String>,
    /// For the scripts themselves: the names that may follow a verb
    #[arg(long, hide = true, value_parser = [LIMITERS, PRESETS, ALL, KEYS])]
    names: Option<String>,
    /// For the scripts themselves: the limiter whose keys are wanted
    #[arg(long, hide = true, requires = "names", allow_hyphen_values = true)]
    of: Option<String>,
}

/// The values of `--names` for limiter names: existing limiters, presets that could be created, and both.
const LIMITERS: &str = "limiters";
const PRESETS: &str = "presets";
const ALL: &str = "all";
/// The value of `--names` for the keys that can be set in a limiter.
const KEYS: &str = "keys";

impl Command for Completions {
    const EXAMPLES: &'static [Example] = &[(
        "For bash, for this user:",
        "shmlimit completions bash > ~/.local/share/bash-completion/completions/shmlimit",
    )];
    const USES_DIRECTORY: bool = false;

    fn run(&self, tool: &Tool<'_>) -> Result<ExitCode, Failure> {
        let text = match (&self.names, self.shell.as_deref()) {
            (Some(which), _) if which == KEYS => keys(tool.location, self.of.as_deref()),
            (Some(which), _) => names(tool.location, which),
            (None, Some("zsh")) => zsh(tool),
            (None, Some("fish")) => plain(tool, Shell::Fish) + &fish_names(tool),
            (None, Some("powershell")) => powershell(tool),
            _ => plain(tool, Shell::Bash) + &bash_names(tool),
        };
        output::text(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

fn names(location: &Location, which: &str) -> String {
    let mut names = Vec::new();
    if which != PRESETS {
        names.extend(Limiter::list(location.dir.as_deref()).unwrap_or_default().names);
    }
    if which != LIMITERS {
        names.extend(presets::NAMES.map(str::to_owned));
    }
    names.sort();
    names.dedup();
    names.iter().map(|name| format!("{name}\n")).collect()
}

/// Lists the keys that can be set. If the limiter exists, its rules are included by name.
fn keys(location: &Location, limiter: Option<&str>) -> String {
    let policy = limiter.and_then(|name| open::observer(location, name).ok()??.policy().ok());
    let rules: Vec<String> = match &policy {
        Some(policy) => policy.rules().iter().map(|rule| rule.name.as_str().to_owned()).collect(),
        None => vec!["0".to_owned()],
    };
    let mut all = vec!["rate".to_owned()];
    for key in config::keys().iter().filter(|key| key.changeable).map(|key| key.key) {
        match key.split_once(".N.") {
            Some(("rules", field)) => all.extend(rules.iter().map(|rule| format!("rules.{rule}.{field}"))),
            Some((list, field)) => all.push(format!("{list}.0.{field}")),
            None => all.push(key.to_owned()),
        }
    }
    all.iter().map(|key| format!("{key}\n")).collect()
}

/// Returns the script that clap generates, with verbs, options and their values.
fn plain(tool: &Tool<'_>, shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut (tool.arguments)(), "shmlimit", &mut script);
    // Removes the options that only the scripts use, which Bash would offer.
    let offered = |line: &str| {
        if line.contains("opts=") {
            line.replace(" --names ", " ").replace(" --of ", " ")
        } else {
            line.to_owned()
        }
    };
    String::from_utf8_lossy(&script).lines().map(|line| offered(line) + "\n").collect()
}

/// A verb that takes limiter names: which names, and whether it takes several.
struct Naming {
    verb: String,
    which: &'static str,
    many: bool,
}

fn naming(tool: &Tool<'_>) -> Vec<Naming> {
    let command = (tool.arguments)();
    let naming = |verb: &clap::Command| {
        let first = verb.get_positionals().next()?;
        matches!(first.get_id().as_str(), "name" | "names").then(|| Naming {
            verb: verb.get_name().to_owned(),
            which: match tool
                .verbs
                .iter()
                .find(|known| known.name == verb.get_name())
                .map(|known| known.names)
            {
                Some(Names::Presets) => PRESETS,
                Some(Names::LimitersAndPresets) => ALL,
                Some(Names::Limiters) | None => LIMITERS,
            },
            many: matches!(first.get_action(), ArgAction::Append),
        })
    };
    command.get_subcommands().filter_map(naming).collect()
}

fn bash_names(tool: &Tool<'_>) -> String {
    let cases = |many: bool| {
        let arm = |one: &Naming| format!("            {}) which={} ;;\n", one.verb, one.which);
        naming(tool).iter().filter(|one| one.many == many).map(arm).collect::<String>()
    };
    format!(
        r#"
# Names of limiters, after the verbs that take them.
_shmlimit_names() {{
    _shmlimit "$@"
    local cur="${{COMP_WORDS[COMP_CWORD]}}" which="" i
    local -a dir=()
    [[ $cur == -* ]] && return
    for ((i = 1; i < COMP_CWORD; i++)); do
        case "${{COMP_WORDS[i]}}" in
            --dir) dir=(--dir "${{COMP_WORDS[++i]}}") ;;
            -*) ;;
            *) break ;;
        esac
    done
    ((i < COMP_CWORD)) || return
    if ((i == COMP_CWORD - 1)); then
        case "${{COMP_WORDS[i]}}" in
{}        esac
    fi
    [[ "${{COMP_WORDS[COMP_CWORD - 1]}}" == -* ]] || case "${{COMP_WORDS[i]}}" in
{}    esac
    local -a of=()
    if [[ "${{COMP_WORDS[i]}}" == set ]] && ((i == COMP_CWORD - 2)); then
        which=keys of=(--of "${{COMP_WORDS[i + 1]}}")
    fi
    [[ -n $which ]] || return
    local names
    names=$(shmlimit "${{dir[@]}}" completions --names "$which" "${{of[@]}}" 2>/dev/null) || return
    local -a found
    mapfile -t found < <(compgen -W "$names" -- "$cur")
    ((${{#found[@]}})) && COMPREPLY=("${{found[@]}}")
}}
complete -F _shmlimit_names -o bashdefault -o default shmlimit
"#,
        cases(false),
        cases(true)
    )
}

/// On Windows the user may type the command with its extension. The script does not offer the option that only
/// scripts use.
fn powershell(tool: &Tool<'_>) -> String {
    let script = plain(tool, Shell::PowerShell)
        .replace("-CommandName 'shmlimit' ", "-CommandName 'shmlimit', 'shmlimit.exe' ");
    let hidden = |line: &str| line.contains("'--names'") || line.contains("'--of'");
    script.lines().filter(|line| !hidden(line)).map(|line| format!("{line}\n")).collect()
}

fn fish_names(tool: &Tool<'_>) -> String {
    let line = |one: &Naming| {
        format!(
            "complete -c shmlimit -n \"__fish_shmlimit_using_subcommand {}\" -f -a \"(shmlimit completions --names {} 2>/dev/null)\"\n",
            one.verb, one.which
        )
    };
    let keys = "complete -c shmlimit -n \"__fish_shmlimit_using_subcommand set; and test (count (commandline -opc)) -eq 3\" \
                -f -a \"(shmlimit completions --names keys --of (commandline -opc)[3] 2>/dev/null)\"\n";
    naming(tool).iter().map(line).collect::<String>() + keys + &fish_words(tool)
}

/// Completes the words that may follow a verb, such as the topics of `help`. In the other shells clap completes them.
fn fish_words(tool: &Tool<'_>) -> String {
    let line = |verb: &clap::Command| {
        let words = verb.get_positionals().next()?.get_possible_values();
        let words: Vec<&str> = words.iter().map(clap::builder::PossibleValue::get_name).collect();
        (!words.is_empty()).then(|| {
            format!(
                "complete -c shmlimit -n \"__fish_shmlimit_using_subcommand {}\" -f -a \"{}\"\n",
                verb.get_name(),
                words.join(" ")
            )
        })
    };
    (tool.arguments)().get_subcommands().filter_map(line).collect()
}

/// In zsh each argument specifies its own completion. Arguments that take limiter names call a function instead of
/// the default.
fn zsh(tool: &Tool<'_>) -> String {
    let function = "_shmlimit_limiters() {\n    local -a names\n    names=(${(f)\"$(shmlimit completions --names all \
                    2>/dev/null)\"})\n    compadd -a names\n}\n\n\
                    _shmlimit_keys() {\n    local -a keys\n    keys=(${(f)\"$(shmlimit completions --names keys --of \
                    \"${line[1]}\" 2>/dev/null)\"})\n    compadd -a keys\n}\n\n";
    let script: String = plain(tool, Shell::Zsh)
        .lines()
        .map(|line| {
            let names = [":name -- ", ":names -- "].iter().any(|start| line.contains(start));
            let line =
                if names { line.replacen(":_default'", ":_shmlimit_limiters'", 1) } else { line.to_owned() };
            let keys = line.contains(":key -- ");
            if keys { line.replacen(":_default'", ":_shmlimit_keys'", 1) + "\n" } else { line + "\n" }
        })
        .collect();
    // The function goes before the end of the script, where the script calls itself.
    match script.rfind("if [ \"$funcstack[1]\"") {
        Some(end) => format!("{}{function}{}", &script[..end], &script[end..]),
        None => script + function,
    }
}
