use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// A folder for one test, gone at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("tidemark-files-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path.canonicalize().unwrap())
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn an_output_appears_whole_or_not_at_all() {
    let folder = Folder::new("whole");
    let path = folder.file("stats.json", "old");
    let output = OutputFile::new(&path).unwrap();
    output.file().write_all(b"half").unwrap();
    drop(output);
    assert_eq!(read(&path), "old");
    write(&path, b"new").unwrap();
    assert_eq!(read(&path), "new");
    write(&folder.0.join("other"), b"other").unwrap();
    assert_eq!(folder.names(), ["other", "stats.json"]);
}

#[test]
fn a_file_system_without_nameless_files_will_do() {
    let folder = Folder::new("named");
    let target = folder.file("out", "old");
    let draft = draft_beside(&target);
    let make = || OutputFile {
        name: "out".into(),
        file: File::create(&draft).unwrap(),
        draft: Draft::Named {
            draft: draft.clone(),
            target: target.clone(),
        },
    };
    drop(make());
    assert_eq!((read(&target).as_str(), folder.names().len()), ("old", 1));
    make().write(b"new").unwrap();
    assert_eq!((read(&target).as_str(), folder.names().len()), ("new", 1));
}

#[test]
fn a_file_that_can_not_be_linked_is_copied() {
    let folder = Folder::new("copied");
    let mut file = open_draft(folder.0.join("out")).unwrap().0;
    file.write_all(b"text").unwrap();
    copy(&file, &folder.0.join("draft")).unwrap();
    assert_eq!(read(&folder.0.join("draft")), "text");
}

#[test]
fn an_output_keeps_the_rights_of_what_was_there() {
    let folder = Folder::new("rights");
    let path = folder.file("out", "old");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    write(&path, b"new").unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
}

#[test]
fn a_symbolic_link_stays_one_and_its_file_is_replaced() {
    let folder = Folder::new("links");
    let path = folder.file("real", "old");
    let link = folder.0.join("link");
    symlink("real", &link).unwrap();
    write(&link, b"new").unwrap();
    assert_eq!(read(&path), "new");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let nowhere = folder.0.join("nowhere");
    symlink("made", &nowhere).unwrap();
    write(&nowhere, b"new").unwrap();
    assert_eq!(read(&folder.0.join("made")), "new");
    symlink("circle", folder.0.join("circle")).unwrap();
    let told = write(&folder.0.join("circle"), b"x").unwrap_err();
    assert!(told.to_string().contains("circle"), "{told}");
}

#[test]
fn what_is_no_plain_file_is_written_to_and_stays_what_it_is() {
    write(Path::new("/dev/null"), b"text").unwrap();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    let folder = Folder::new("pipe");
    let pipe = folder.0.join("pipe");
    let rights = Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(CWD, &pipe, rustix::fs::FileType::Fifo, rights, 0).unwrap();
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || read(&pipe)
    });
    write(&pipe, b"text").unwrap();
    assert_eq!(reader.join().unwrap(), "text");
    assert_eq!(folder.names(), ["pipe"]);
    for stream in ["/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"] {
        // Harnesses send it to a pipe or a terminal, shells to a file.
        assert_eq!(find_place(Path::new(stream)).unwrap(), Place::Direct);
    }
}

#[test]
fn a_file_that_may_not_be_written_to_is_not_replaced() {
    let told = write(Path::new("/proc/version"), b"x").unwrap_err();
    assert!(told.to_string().contains("/proc/version"), "{told}");
    let told = write(Path::new("/no/such/folder/x"), b"x").unwrap_err();
    assert!(told.to_string().contains("/no/such/folder/x"), "{told}");
    assert!(write(Path::new("/"), b"x").is_err());
}

#[test]
fn an_output_that_is_an_input_is_found_by_any_name() {
    let folder = Folder::new("inputs");
    let path = folder.file("trace", "old");
    let (link, twin) = (folder.0.join("link"), folder.0.join("twin"));
    symlink(&path, &link).unwrap();
    fs::hard_link(&path, &twin).unwrap();
    let inputs: Vec<Input> = Input::new(&path).into_iter().collect();
    for output in [&path, &link, &twin] {
        let told = compare(&inputs, "-o it", identity_of_output(output)).unwrap_err();
        let told = told.to_string();
        let name = path.display();
        let expected =
            format!("`-o it`: is the same file as `{name}`, which is read; name another file");
        assert_eq!(told, expected);
    }
    let other = folder.file("other", "other");
    compare(&inputs, "-o it", identity_of_output(&other)).unwrap();
    compare(&inputs, "-o it", identity_of_output(&folder.0.join("none"))).unwrap();
}

#[test]
fn a_recording_keeps_what_was_there_and_gives_it_back_if_it_is_given_up() {
    let folder = Folder::new("recorded");
    let path = folder.file("a.tide", "first");
    let recorded = Recorded::begin(&path).unwrap();
    recorded.file().unwrap().write_all(b"second").unwrap();
    // As it stands if the process is killed now.
    let kept = folder.0.join("a.tide.old");
    assert_eq!(
        (read(&path), read(&kept)),
        ("second".into(), "first".into())
    );
    drop(recorded);
    assert_eq!((read(&path).as_str(), folder.names().len()), ("first", 1));
    let recorded = Recorded::begin(&path).unwrap();
    recorded.file().unwrap().write_all(b"third").unwrap();
    assert_eq!(recorded.keep(), Some(kept.clone()));
    assert_eq!((read(&path), read(&kept)), ("third".into(), "first".into()));
    let fresh = folder.0.join("b.tide");
    drop(Recorded::begin(&fresh).unwrap());
    assert!(!fresh.exists());
    assert_eq!(Recorded::begin(&fresh).unwrap().keep(), None);
    assert!(fresh.exists());
}

#[test]
fn a_log_takes_its_place_at_once_and_grows_at_its_end() {
    let folder = Folder::new("log");
    let path = folder.file("log", "old");
    let mut log = OutputFile::new(&path).unwrap().into_log().unwrap();
    let mut other = log.try_clone().unwrap();
    log.write_all(b"one\n").unwrap();
    other.write_all(b"two\n").unwrap();
    assert_eq!(read(&path), "one\ntwo\n");
    assert_eq!(folder.names(), ["log"]);
}
