//! Reads the tables of a page.

use std::collections::BTreeMap;

/// One table.
pub struct Table {
    columns: Vec<String>,
    pub rows: Vec<Row>,
}

/// One row: its cells by column.
#[derive(Clone)]
pub struct Row {
    cells: Vec<(String, String)>,
}

pub fn tables(page: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let mut before = "";
    for line in page.lines() {
        let cells = || line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned());
        if line.starts_with("| ---") {
            continue;
        }
        if line.starts_with('|') && !before.starts_with('|') {
            tables.push(Table { columns: cells().collect(), rows: Vec::new() });
        } else if line.starts_with('|')
            && let Some(table) = tables.last_mut()
        {
            table.rows.push(Row { cells: table.columns.iter().cloned().zip(cells()).collect() });
        }
        before = line;
    }
    tables
}

impl Table {
    pub fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|name| name == column)
    }
}

/// The words in backticks.
fn quoted(cell: &str) -> impl Iterator<Item = String> + '_ {
    cell.split('`').skip(1).step_by(2).map(str::to_owned)
}

impl Row {
    fn cell(&self, column: &str) -> &str {
        self.cells.iter().find(|(name, _)| name == column).map_or("", |(_, cell)| cell)
    }

    /// The word of the row: its first cell.
    pub fn word(&self) -> &str {
        self.cells.first().map_or("", |(_, cell)| cell.trim_matches('`'))
    }

    /// The names in a column.
    pub fn names(&self, column: &str) -> Vec<String> {
        quoted(self.cell(column)).collect()
    }

    /// `a`=`B` in a column.
    pub fn pairs(&self, column: &str) -> BTreeMap<String, String> {
        let names = self.names(column);
        names.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
    }

    /// Whether the last column says why the names of this door are other words.
    pub fn explains(&self, door: &str) -> bool {
        self.cell("Why a name differs")
            .split(';')
            .any(|reason| reason.trim().starts_with(&format!("{door}: ")))
    }
}
