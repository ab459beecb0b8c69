use super::*;
use crate::commands::top::input::Sort;
use crate::ui::layout::ScreenStyle;
use crate::ui::output::Paint;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use shmlimit::config::ConfigSource;
use shmlimit::{Limiter, Outcome, Request};
use std::time::Duration;

fn theme(blocks: bool) -> Theme {
    Theme { screen: ScreenStyle { width: 80, paint: Paint::PLAIN, blocks, cuts: true }, colours: true }
}

/// A limiter that has been used, one with a breaker and a closed gate, and one that cannot be read.
fn model(directory: &tempfile::TempDir) -> Model {
    let open = |name: &str, source: ConfigSource| {
        Limiter::builder(name).directory(directory.path()).config(source).open().unwrap()
    };
    let web = open("web", ConfigSource::default().setting("rate", "1000/day").setting("concurrency", "3"));
    let tmdb = Limiter::builder("tmdb").directory(directory.path()).open().unwrap();
    let mut model = Model::default();
    let held = web.try_acquire(&Request::new()).unwrap();
    for at in 0..20 {
        (0..at).for_each(|_| web.try_acquire(&Request::new()).unwrap().release().unwrap());
        let headers = [("Retry-After", "3600")];
        tmdb.record(&Outcome::http(429, &headers)).unwrap();
        let mut observations: Vec<_> = [&tmdb, &web]
            .map(|one| (one.name().to_owned(), one.snapshot().map_err(|e| e.to_string())))
            .into();
        observations.push(("bad".to_owned(), Err("is damaged".to_owned())));
        model.update(Duration::from_secs(at), observations);
    }
    drop(held);
    model
}

fn picture(model: &Model, app: &mut App, theme: &Theme, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| all(frame, model, app, theme)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn the_screen_can_be_drawn_at_every_size() {
    let directory = tempfile::tempdir().unwrap();
    let (full, empty) = (model(&directory), Model::default());
    let ways = [
        (Pane::Limiters, "tmdb", true),
        (Pane::Users, "web", false),
        (Pane::Queue, "web", false),
        (Pane::Users, "bad", false),
    ];
    for width in [1, 2, 39, 40, 41, 69, 70, 80, 100, 200] {
        for height in [1, 2, 7, 8, 9, 12, 24, 60] {
            for (focus, name, help) in ways {
                let mut app = App { focus, help, selected: Some(name.to_owned()), ..App::default() };
                app.scroll = usize::MAX;
                picture(&full, &mut app, &theme(width % 2 == 0), width, height);
                picture(&empty, &mut app, &theme(false), width, height);
            }
        }
    }
    assert!(picture(&full, &mut App::default(), &theme(true), 39, 24).contains("too small"));
}

#[test]
fn a_usual_terminal_shows_state_rates_shares_and_keys() {
    let directory = tempfile::tempdir().unwrap();
    let model = model(&directory);
    let mut app = App { selected: Some("web".to_owned()), ..App::default() };
    let shown = picture(&model, &mut app, &theme(true), 80, 24);
    let me = std::process::id().to_string();
    for part in [
        "3 limiters",
        "sleep",
        "ready",
        "unreadable",
        "1/3",
        "19.0",
        "web",
        "in flight",
        "grants/s",
        "refusals/s",
        "errors",
        "PROGRAM",
        "100%",
        "q quit",
        me.as_str(),
        "█",
    ] {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    app.selected = Some("tmdb".to_owned());
    let shown = picture(&model, &mut app, &theme(true), 80, 24);
    for part in ["429", "sleep", "Retry-After", "recorded by", "next"] {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    app.selected = Some("bad".to_owned());
    assert!(picture(&model, &mut app, &theme(true), 80, 24).contains("is damaged"));
}

#[test]
fn exited_processes_are_shown_completely_in_80_columns() {
    let directory = tempfile::tempdir().unwrap();
    let source = ConfigSource::default().setting("rate", "1000/day");
    let web = Limiter::builder("web").directory(directory.path()).config(source).open().unwrap();
    let mut model = Model::default();
    for at in 0..3 {
        web.try_acquire(&Request::new()).unwrap().release().unwrap();
        let mut snapshot = web.snapshot().unwrap();
        snapshot.participants.clear();
        model.update(Duration::from_secs(at), vec![("web".to_owned(), Ok(snapshot))]);
    }
    let shown = picture(&model, &mut App::default(), &theme(true), 80, 24);
    assert!(shown.contains("(came and went) "), "{shown}");
}

#[test]
fn without_a_unicode_locale_the_screen_is_ascii() {
    let directory = tempfile::tempdir().unwrap();
    let model = model(&directory);
    for (help, name) in [(true, "web"), (false, "web"), (false, "tmdb"), (false, "bad")] {
        let mut app = App { help, selected: Some(name.to_owned()), ..App::default() };
        let shown = picture(&model, &mut app, &theme(false), 100, 30);
        let strange: String = shown.chars().filter(|letter| !letter.is_ascii()).collect();
        assert_eq!(strange, "", "{shown}");
    }
}

#[test]
fn limiters_can_be_sorted_by_name_grants_or_state() {
    let directory = tempfile::tempdir().unwrap();
    let model = model(&directory);
    let order = |sort| App { sort, ..App::default() }.order(&model).join(" ");
    assert_eq!(order(Sort::Name), "bad tmdb web");
    assert_eq!(order(Sort::Grants), "web bad tmdb");
    assert_eq!(order(Sort::Trouble), "bad tmdb web");
}

#[test]
fn large_numbers_are_abbreviated() {
    for (number, text) in [(9_999, "9999"), (10_000, "10k"), (12_345_678, "12M"), (1 << 48, "281474G")] {
        assert_eq!(short(number), text);
    }
    assert_eq!((per_second(34.96), per_second(12_000.0)), ("35.0".to_owned(), "12k".to_owned()));
}

#[test]
fn hostile_text_is_escaped_on_the_screen() {
    let mut model = Model::default();
    let observations = [("bad", "is \x1b[2J\u{9b}\u{202e}damaged"), ("ev\u{2066}il", "\u{200f}")];
    let observations = observations.map(|(name, error)| (name.to_owned(), Err(error.to_owned())));
    model.update(Duration::from_secs(1), observations.into());
    for name in ["bad", "ev\u{2066}il"] {
        let mut app = App { selected: Some(name.to_owned()), ..App::default() };
        let shown = picture(&model, &mut app, &theme(true), 80, 24);
        assert!(!shown.chars().any(|c| c != '\n' && is_unsafe(c)), "{shown:?}");
        assert!(shown.contains("ev\\u{2066}il"), "{shown}");
    }
}

#[test]
fn what_does_not_fit_is_marked() {
    let mut model = Model::default();
    let names = (0..30).map(|i| (format!("limiter-with-a-long-name-{i:02}"), Err("is damaged".to_owned())));
    model.update(Duration::ZERO, names.collect());
    let shown = picture(&model, &mut App::default(), &theme(true), 80, 24);
    let hidden = 30 - shown.lines().filter(|line| line.contains("limiter-wit…")).count();
    assert!(shown.contains(&format!(" … {hidden} more ({hidden} blocked)")), "{shown}");
    let mut app = App { selected: Some("limiter-with-a-long-name-20".to_owned()), ..App::default() };
    let shown = picture(&model, &mut app, &theme(true), 80, 24);
    assert!(shown.contains("above, ") && shown.contains(" below"), "{shown}");
}

/// Returns a snapshot of a limiter that this many processes of two programs use.
fn many_processes(directory: &tempfile::TempDir, processes: u32) -> Model {
    let source = ConfigSource::default().setting("rate", "1000/day");
    let web = Limiter::builder("web").directory(directory.path()).config(source).open().unwrap();
    web.try_acquire(&Request::new()).unwrap().release().unwrap();
    let mut snapshot = web.snapshot().unwrap();
    let me = snapshot.participants.remove(0);
    snapshot.participants = (0..processes)
        .map(|i| {
            let mut one = me.clone();
            (one.pid, one.program) =
                (100 + i, if i % 2 == 0 { "curl".to_owned() } else { format!("job-{i}") });
            one
        })
        .collect();
    let mut model = Model::default();
    model.update(Duration::ZERO, vec![("web".to_owned(), Ok(snapshot))]);
    model
}

#[test]
fn equal_programs_share_a_line_until_they_are_unfolded() {
    let directory = tempfile::tempdir().unwrap();
    let model = many_processes(&directory, 6);
    let shown = picture(&model, &mut App::default(), &theme(true), 80, 24);
    assert!(shown.contains("curl ×3") && shown.contains("processes 6 (by share)"), "{shown}");
    assert!(!shown.contains("…"), "all of it fits: {shown}");
    let mut app = App { fold: false, by_trouble: true, ..App::default() };
    let shown = picture(&model, &mut app, &theme(true), 80, 24);
    assert!(shown.contains(" 102 curl ") && !shown.contains('×'), "{shown}");
    assert!(shown.contains("(trouble first)"), "{shown}");
}

#[test]
fn a_table_that_is_cut_says_how_much_is_missing() {
    let directory = tempfile::tempdir().unwrap();
    let model = many_processes(&directory, 40);
    let shown = picture(&model, &mut App::default(), &theme(true), 80, 24);
    let rows = shown.lines().filter(|line| line.contains(" job-") || line.contains("curl ×20")).count();
    assert!(shown.contains(&format!("… {} more", 21 - rows)), "{rows} rows in\n{shown}");
    // A larger screen shows all of it, and the history fills the rest.
    let shown = picture(&model, &mut App::default(), &theme(true), 120, 60);
    assert!(!shown.contains('…'), "{shown}");
    let empty =
        shown.lines().rev().skip(1).take_while(|line| line.trim_matches([' ', '"']).is_empty()).count();
    assert!(empty <= 3, "{empty} empty lines in\n{shown}");
}
