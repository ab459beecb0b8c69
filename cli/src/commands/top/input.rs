//! Handles keys, and keeps what the user chose.

use super::model::Model;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::time::Duration;

/// The intervals that `+` and `-` select.
const INTERVALS: [u64; 7] = [250, 500, 1000, 2000, 5000, 10_000, 60_000];

/// The choices of the user.
pub struct App {
    /// The name of the selected limiter. A name stays valid when other limiters appear or disappear.
    pub selected: Option<String>,
    pub focus: Pane,
    pub sort: Sort,
    /// Whether late, refused and waiting programs come first, instead of those with the largest share.
    pub by_trouble: bool,
    /// Whether equal programs share a line.
    pub fold: bool,
    pub every: Duration,
    pub paused: bool,
    pub help: bool,
    pub filter: String,
    /// Whether the user is typing the filter.
    pub typing: bool,
    /// The first visible line of the lower table. Drawing keeps it within bounds.
    pub scroll: usize,
    /// The number of lines of a page. Drawing sets it.
    pub page: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pane {
    Limiters,
    Users,
    Queue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    Name,
    Trouble,
    Grants,
    Refusals,
    Waiting,
}

/// The effect of a key on the event loop.
#[derive(Debug, PartialEq, Eq)]
pub enum KeyAction {
    Stay,
    Quit,
    /// Suspend `top` and return to the shell.
    Stop,
}

impl Default for App {
    fn default() -> App {
        App {
            selected: None,
            focus: Pane::Limiters,
            sort: Sort::Name,
            by_trouble: false,
            fold: true,
            every: Duration::from_secs(1),
            paused: false,
            help: false,
            filter: String::new(),
            typing: false,
            scroll: 0,
            page: 10,
        }
    }
}

impl Sort {
    pub const fn as_str(self) -> &'static str {
        match self {
            Sort::Name => "name",
            Sort::Trouble => "trouble",
            Sort::Grants => "grants",
            Sort::Refusals => "refusals",
            Sort::Waiting => "waiting",
        }
    }

    const fn next(self) -> Sort {
        match self {
            Sort::Name => Sort::Trouble,
            Sort::Trouble => Sort::Grants,
            Sort::Grants => Sort::Refusals,
            Sort::Refusals => Sort::Waiting,
            Sort::Waiting => Sort::Name,
        }
    }
}

impl App {
    /// Returns the names to list, in order.
    pub fn order<'m>(&self, model: &'m Model) -> Vec<&'m str> {
        let filter = self.filter.to_lowercase();
        let mut all: Vec<_> =
            model.tracks.iter().filter(|(name, _)| name.to_lowercase().contains(&filter)).collect();
        // The names are sorted, and a stable sort keeps that order among equals.
        all.sort_by(|(_, a), (_, b)| match self.sort {
            Sort::Name => std::cmp::Ordering::Equal,
            Sort::Trouble => b.trouble().cmp(&a.trouble()),
            Sort::Grants => b.rate().grants.total_cmp(&a.rate().grants),
            Sort::Refusals => b.rate().refusals.total_cmp(&a.rate().refusals),
            Sort::Waiting => b.waiting().cmp(&a.waiting()),
        });
        all.into_iter().map(|(name, _)| name.as_str()).collect()
    }

    /// Returns the selected line of the list; `None` if the list is empty.
    pub fn line(&self, order: &[&str]) -> Option<usize> {
        let chosen = self.selected.as_deref().and_then(|name| order.iter().position(|one| *one == name));
        chosen.or((!order.is_empty()).then_some(0))
    }

    pub fn key(&mut self, key: KeyEvent, model: &Model) -> KeyAction {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => return KeyAction::Quit,
            KeyCode::Char('z') if control => return KeyAction::Stop,
            _ if control => {}
            code if self.typing => self.type_filter(code),
            // The key that closes the help has no other effect.
            _ if self.help => self.help = false,
            KeyCode::Char('q') => return KeyAction::Quit,
            KeyCode::Esc if self.filter.is_empty() => return KeyAction::Quit,
            KeyCode::Esc => self.filter.clear(),
            code => self.choose(code, model),
        }
        KeyAction::Stay
    }

    fn choose(&mut self, code: KeyCode, model: &Model) {
        match code {
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.help = true,
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('t') => self.by_trouble = !self.by_trouble,
            KeyCode::Char('f') => self.fold = !self.fold,
            KeyCode::Char('+') => self.every = self.step(1),
            KeyCode::Char('-') => self.every = self.step(-1),
            KeyCode::Char(digit @ '1'..='9') => {
                self.every = Duration::from_secs(u64::from(digit as u8 - b'0'));
            }
            KeyCode::Tab => self.show(match self.focus {
                Pane::Limiters => Pane::Users,
                Pane::Users => Pane::Queue,
                Pane::Queue => Pane::Limiters,
            }),
            KeyCode::BackTab => self.show(match self.focus {
                Pane::Limiters => Pane::Queue,
                Pane::Users => Pane::Limiters,
                Pane::Queue => Pane::Users,
            }),
            KeyCode::Enter => {
                self.show(if self.focus == Pane::Limiters { Pane::Users } else { Pane::Limiters });
            }
            KeyCode::Up | KeyCode::Char('k') => self.go(-1, model),
            KeyCode::Down | KeyCode::Char('j') => self.go(1, model),
            KeyCode::PageUp => self.go(-(self.page.max(1) as isize), model),
            KeyCode::PageDown => self.go(self.page.max(1) as isize, model),
            KeyCode::Home | KeyCode::Char('g') => self.go(isize::MIN, model),
            KeyCode::End | KeyCode::Char('G') => self.go(isize::MAX, model),
            _ => {}
        }
    }

    fn type_filter(&mut self, code: KeyCode) {
        match code {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.filter.clear();
                self.typing = false;
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(letter) if self.filter.len() < 64 => self.filter.push(letter),
            _ => {}
        }
    }

    fn show(&mut self, pane: Pane) {
        self.focus = pane;
        self.scroll = 0;
    }

    /// Returns the next longer or shorter interval.
    fn step(&self, way: i64) -> Duration {
        let now = u64::try_from(self.every.as_millis()).unwrap_or(u64::MAX);
        let next = match way {
            1.. => INTERVALS.into_iter().find(|one| *one > now),
            _ => INTERVALS.into_iter().rev().find(|one| *one < now),
        };
        next.map_or(self.every, Duration::from_millis)
    }

    fn go(&mut self, lines: isize, model: &Model) {
        if self.focus != Pane::Limiters {
            self.scroll = self.scroll.saturating_add_signed(lines);
            return;
        }
        let order = self.order(model);
        if let Some(line) = self.line(&order) {
            let line = line.saturating_add_signed(lines).min(order.len() - 1);
            self.selected = Some(order[line].to_owned());
            self.scroll = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(names: &[&str]) -> Model {
        let mut model = Model::default();
        let observations = names.iter().map(|name| ((*name).to_owned(), Err("damaged".to_owned()))).collect();
        model.update(Duration::ZERO, observations);
        model
    }

    fn press(app: &mut App, model: &Model, codes: &[KeyCode]) -> KeyAction {
        codes.iter().map(|code| app.key(KeyEvent::from(*code), model)).last().unwrap()
    }

    fn letters(text: &str) -> Vec<KeyCode> {
        text.chars().map(KeyCode::Char).collect()
    }

    #[test]
    fn the_selection_moves_and_stays_on_the_list() {
        let (mut app, model) = (App::default(), model(&["a", "b", "c"]));
        let selected = |app: &App| app.line(&app.order(&model)).unwrap();
        assert_eq!(selected(&app), 0);
        for (code, line) in [
            (KeyCode::Up, 0),
            (KeyCode::Down, 1),
            (KeyCode::Char('j'), 2),
            (KeyCode::Down, 2),
            (KeyCode::Home, 0),
            (KeyCode::End, 2),
            (KeyCode::PageUp, 0),
            (KeyCode::PageDown, 2),
            (KeyCode::Char('k'), 1),
        ] {
            press(&mut app, &model, &[code]);
            assert_eq!(selected(&app), line, "{code:?}");
        }
        press(&mut app, &self::model(&[]), &[KeyCode::Down]);
        assert_eq!(app.line(&[]), None);
    }

    #[test]
    fn the_selected_one_may_vanish() {
        let mut app = App::default();
        press(&mut app, &model(&["a", "b"]), &[KeyCode::Down]);
        let others = model(&["a", "c"]);
        assert_eq!(app.line(&app.order(&others)), Some(0));
    }

    #[test]
    fn there_are_three_ways_out_and_one_aside() {
        let model = model(&["a"]);
        for code in [KeyCode::Char('q'), KeyCode::Esc] {
            assert_eq!(press(&mut App::default(), &model, &[code]), KeyAction::Quit);
        }
        let control = |letter| KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL);
        let mut app = App { typing: true, ..App::default() };
        assert_eq!(app.key(control('c'), &model), KeyAction::Quit);
        assert_eq!(app.key(control('z'), &model), KeyAction::Stop);
    }

    #[test]
    fn any_key_ends_the_help_and_does_nothing_else() {
        let (mut app, model) = (App::default(), model(&["a"]));
        assert_eq!(press(&mut app, &model, &letters("?q")), KeyAction::Stay);
        assert!(!app.help);
    }

    #[test]
    fn a_filter_is_typed_and_taken_back() {
        let (mut app, model) = (App::default(), model(&["tmdb", "tvdb", "github"]));
        press(&mut app, &model, &letters("/TVq"));
        assert_eq!(app.order(&model), Vec::<&str>::new());
        press(&mut app, &model, &[KeyCode::Backspace, KeyCode::Enter]);
        assert_eq!(app.order(&model), ["tvdb"]);
        assert_eq!(press(&mut app, &model, &[KeyCode::Esc]), KeyAction::Stay);
        assert_eq!(app.order(&model).len(), 3);
    }

    #[test]
    fn the_interval_is_a_digit_or_steps() {
        let (mut app, model) = (App::default(), model(&[]));
        press(&mut app, &model, &letters("7"));
        assert_eq!(app.every.as_secs(), 7);
        press(&mut app, &model, &letters("-"));
        assert_eq!(app.every.as_secs(), 5);
        press(&mut app, &model, &letters("---------"));
        assert_eq!(app.every.as_millis(), 250);
        press(&mut app, &model, &letters("+++++++++"));
        assert_eq!(app.every.as_secs(), 60);
    }

    #[test]
    fn panes_take_turns_and_sorting_comes_back_to_names() {
        let (mut app, model) = (App::default(), model(&["a"]));
        press(&mut app, &model, &[KeyCode::Tab, KeyCode::Tab]);
        assert_eq!(app.focus, Pane::Queue);
        press(&mut app, &model, &[KeyCode::Tab, KeyCode::BackTab, KeyCode::Enter]);
        assert_eq!(app.focus, Pane::Limiters);
        press(&mut app, &model, &letters("sssss"));
        assert_eq!(app.sort, Sort::Name);
        press(&mut app, &model, &letters("ptf"));
        assert!(app.paused && app.by_trouble && !app.fold);
    }
}
