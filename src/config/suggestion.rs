//! Finds the known word that a mistyped word probably meant.

/// The candidate that a mistyped word most likely meant; `None` if no candidate is close.
///
/// ```
/// assert_eq!(shmlimit::config::nearest("tmbd", ["tvdb", "tmdb", "omdb-free"]), Some("tmdb"));
/// assert_eq!(shmlimit::config::nearest("github", ["tmdb"]), None);
/// ```
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The number of characters to insert, delete, change or swap with a neighbour.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    rows[0] = (0..=b.len()).collect();
    for i in 1..=a.len() {
        rows[i][0] = i;
        for j in 1..=b.len() {
            let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = change.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = least;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_count_edits_and_swaps() {
        for (a, b, edits) in
            [("", "", 0), ("a", "", 1), ("tmbd", "tmdb", 1), ("limt", "limit", 1), ("abc", "xyz", 3)]
        {
            assert_eq!(distance(a, b), edits, "{a} {b}");
        }
    }
}
