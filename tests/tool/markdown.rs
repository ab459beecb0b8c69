//! The parts of a Markdown page that readers click and type: headings, links, code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A page: its text without fenced blocks, and the blocks.
pub struct Page {
    /// The path from the root of the repository.
    pub path: PathBuf,
    text: String,
    pub blocks: Vec<Block>,
}

/// A fenced block.
pub struct Block {
    pub language: String,
    pub text: String,
    /// Whether another block follows at once, which then is the output of this one.
    pub answered: bool,
}

/// The front pages, and all pages of `docs`.
pub fn pages(root: &Path) -> Vec<Page> {
    let mut paths: Vec<PathBuf> = ["README.md", "ffi/python/README.md", "examples/simulate/README.md"]
        .map(PathBuf::from)
        .into_iter()
        .collect();
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(root.join(&path)).unwrap();
        Page::parse(path, &text)
    };
    paths.into_iter().map(read).collect()
}

impl Page {
    pub fn parse(path: PathBuf, source: &str) -> Page {
        let mut page = Page { path, text: String::new(), blocks: Vec::new() };
        let mut open: Option<Block> = None;
        let mut closed_just_now = false;
        for line in source.lines() {
            match (&mut open, line.strip_prefix("```")) {
                (None, Some(language)) => {
                    if let Some(last) = page.blocks.last_mut() {
                        last.answered = closed_just_now;
                    }
                    open =
                        Some(Block { language: language.to_owned(), text: String::new(), answered: false });
                }
                (Some(_), Some(_)) => page.blocks.extend(open.take()),
                (Some(block), None) => block.text += &format!("{line}\n"),
                (None, None) => page.text += &format!("{line}\n"),
            }
            closed_just_now = open.is_none() && line.starts_with("```");
        }
        assert!(open.is_none(), "{}: a block is not closed", page.path.display());
        page
    }

    /// The pieces of the text in turns: text, `code span`, text, and so on.
    fn pieces(&self) -> impl Iterator<Item = (bool, &str)> {
        self.text.lines().flat_map(|line| line.split('`').enumerate()).map(|(i, piece)| (i % 2 == 1, piece))
    }

    pub fn spans(&self) -> Vec<String> {
        self.pieces().filter(|(is_code, _)| *is_code).map(|(_, piece)| piece.to_owned()).collect()
    }

    /// The targets of links and pictures, except those on other sites.
    pub fn links(&self) -> Vec<String> {
        let mut links = Vec::new();
        for line in self.text.lines() {
            // The text of a link may contain code, so replace code instead of removing it.
            let pieces = line.split('`').enumerate();
            let plain: String = pieces.map(|(i, piece)| if i % 2 == 1 { "code" } else { piece }).collect();
            for (at, _) in plain.match_indices("](") {
                let link = plain[at + 2..].split([')', ' ']).next().unwrap_or_default();
                if !link.contains("://") && !link.starts_with("mailto:") {
                    links.push(link.to_owned());
                }
            }
        }
        links
    }

    /// The anchors that GitHub gives the headings.
    pub fn anchors(&self) -> BTreeSet<String> {
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        let heading = |line: &str| {
            let rest = line.trim_start_matches('#');
            (rest.len() < line.len()).then(|| rest.strip_prefix(' ').map(slug))?
        };
        let name = |slug: String| {
            let count = times.entry(slug.clone()).or_default();
            *count += 1;
            if *count == 1 { slug } else { format!("{slug}-{}", *count - 1) }
        };
        self.text.lines().filter_map(heading).map(name).collect()
    }
}

fn slug(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    heading.trim().to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()
}
