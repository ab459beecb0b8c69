use super::hint::{FILE_READ_ONLY, USER_MAPPED_FILE};
use super::*;

#[test]
fn r144_a_mismatch_suggests_an_update_first_and_a_removal_only_if_no_update_is_possible() {
    let text = |updatable| {
        let (name, directory) = ("api".to_owned(), PathBuf::from("/d"));
        Error::ConfigMismatch { name, directory, differences: "limit".to_owned(), updatable }.to_string()
    };
    let (hot, cold) = (text(true), text(false));
    let remedy = hot.lines().last().unwrap();
    assert!(remedy.starts_with("to change it for all programs, open it with on_mismatch = update"), "{hot}");
    assert!(hot.contains("to use it as it is, on_mismatch = adopt"), "{hot}");
    assert!(!hot.contains("rm api") && !hot.contains("replace"), "{hot}");
    assert!(cold.contains("open it with replace") && cold.contains("rm api --force, and"), "{cold}");
    assert!(cold.contains("on_mismatch = adopt") && !cold.contains("update"), "{cold}");
}

#[test]
fn remedies_name_what_a_program_can_do_besides_the_command() {
    let (name, directory) = ("api".to_owned(), PathBuf::from("/d"));
    let unknown = Error::UnknownLimiter { name: name.clone(), directory: directory.clone() }.to_string();
    assert!(unknown.ends_with("init api --rate 35/s, or give a rate when you open it"), "{unknown}");
    let problem = "it is too large".to_owned();
    let does_not_fit = Error::DoesNotFit { name, directory, problem }.to_string();
    assert!(
        does_not_fit.ends_with("--replace\n(in a program: open the limiter with the option `replace`)"),
        "{does_not_fit}"
    );
}

#[test]
fn the_list_of_codes_has_every_code_of_the_source() {
    let source = include_str!("../error.rs");
    let body = source.split_once("fn code(&self)").unwrap().1.split_once("fn errno").unwrap().0;
    let codes: Vec<&str> =
        body.split("=> \"").skip(1).filter_map(|arm| Some(arm.split_once('"')?.0)).collect();
    assert_eq!(codes, Error::CODES);
}

#[test]
fn windows_errors_about_read_only_and_mapped_files_include_a_remedy() {
    let text = |code| Error::io("open", "tmdb.shm")(io::Error::from_raw_os_error(code)).to_string();
    assert!(text(FILE_READ_ONLY).ends_with("attrib -r \"tmdb.shm\""), "{}", text(FILE_READ_ONLY));
    assert!(text(USER_MAPPED_FILE).contains("end them first"), "{}", text(USER_MAPPED_FILE));
}

#[test]
fn a_lock_holder_that_is_not_known_is_not_called_process_0_and_gets_no_command() {
    let (path, program) = (PathBuf::from("/d/api.shm"), "unknown".to_owned());
    let busy =
        Error::Busy { path, pid: 0, program, waited: Duration::from_secs(1), stopped: true }.to_string();
    assert!(
        busy.contains("a process that could not be identified has held the lock") && busy.contains("1000 ms")
    );
    assert!(!busy.contains("process 0") && !busy.contains("kill"), "{busy}");
}
