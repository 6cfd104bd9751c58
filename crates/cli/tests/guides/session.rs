//! Sessions: the commands of one page, typed into one shell.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::page::{Command, Page, When};
use crate::support::Folder;
use crate::{needs, pattern, root, tool};

/// The longest time that the commands of a page may take that do not say that they take minutes.
const LIMIT: Duration = Duration::from_secs(400);
/// The same for all commands of a page.
const LIMIT_FULL: Duration = Duration::from_secs(4 * 3600);
/// The folder for temporary files, as pages call it; here a page has its own.
const TMP: &str = "/tmp";
/// The folder of traces, as pages call it.
const TRACES: &str = "/tmp/tides";

/// The end of a command.
pub struct Outcome {
    /// `None` if it was not over when the time was, or the shell ended before.
    pub status: Option<i32>,
    /// All that it printed, on stdout and stderr.
    pub printed: String,
}

impl Outcome {
    /// The way in which the command did something else than its page says.
    pub fn difference(&self, command: &Command, page: &[String]) -> Option<String> {
        let Command { text, status, .. } = command;
        match self.status {
            Some(ended) if ended == *status => {}
            Some(ended) => {
                return Some(format!(
                    "`{text}` ended with {ended} in place of {status}:\n{}",
                    self.printed
                ));
            }
            None => return Some(format!("`{text}` did not end:\n{}", self.printed)),
        }
        if pattern::agrees(page, &self.printed) {
            return None;
        }
        Some(format!(
            "`{text}` printed\n{}\nwhere the page has\n{}\n",
            self.printed.trim_end(),
            page.join("\n")
        ))
    }
}

/// The commands that are typed before a page's own: those of README that make the folder in which
/// the page is typed.
pub fn prologue(page: &Page) -> Vec<String> {
    if !page.is_typed_among_traces() {
        return vec!["export PATH=\"$PWD/target/release:$PATH\"".into()];
    }
    let readme = Page::read(&root().join("README.md"));
    let made = readme
        .commands
        .iter()
        .position(|one| one.text.contains(TRACES));
    let made = made.expect("README makes the folder of traces");
    let kept = readme.commands[..=made + 1].iter();
    kept.filter(|one| one.when == When::Always)
        .map(|one| one.text.clone())
        .collect()
}

/// Types a page's commands. The answer has one outcome for each, or `None` for those that are not
/// run here. `None` in place of all where the machine lacks what they need.
pub fn run(page: &Page, prologue: &[String]) -> Option<Vec<Option<Outcome>>> {
    if !needs::are_met(&["bash", "valgrind", "python3"]) {
        return None;
    }
    let recorder = tool::recorder()?;
    let name = page.path.file_stem().expect("a page is a file");
    let folder = Folder::new(&format!("guide-{}", name.to_string_lossy()));
    make_clone(&folder);
    let runs: Vec<bool> = page.commands.iter().map(is_run).collect();
    let script = script(page, prologue, &runs, &folder.0);
    let path = folder.path("script");
    std::fs::write(&path, script).unwrap();
    let mut shell = shell(&path);
    let log = std::fs::File::create(folder.path("shell.log")).unwrap();
    shell
        .current_dir(folder.0.join("clone"))
        .env("TIDEMARK_RECORDER", recorder)
        .env("XDG_CACHE_HOME", folder.0.join("cache"))
        .env("LC_ALL", "C.UTF-8")
        .env("COLUMNS", "140")
        .env_remove("TIDEMARK_GOLDEN")
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .process_group(0);
    let mut child = shell.spawn().unwrap();
    let limit = if needs::is_full() { LIMIT_FULL } else { LIMIT };
    await_end(&mut child, limit);
    let outcome = |(number, runs): (usize, &bool)| runs.then(|| read(&folder.0, number));
    Some(runs.iter().enumerate().map(outcome).collect())
}

/// A copy of the repository, in which commands may change files, with what the build made. At full
/// size commands build there, so that it has copies of that, too.
fn make_clone(folder: &Folder) {
    let built = needs::tidemark().parent().expect("it lies in a folder");
    let mut copy = std::process::Command::new("bash");
    copy.args(["-euc", CLONE, "bash"])
        .args([&root(), built, &folder.0.join("clone")])
        .env("IS_FULL", needs::is_full().to_string());
    assert!(copy.status().unwrap().success(), "{copy:?}");
}

/// Copies the repository `$1` to `$3`, with what is in the folder of programs `$2`.
const CLONE: &str = r#"
mkdir -p "$3/target" "$3/.git"
cd "$1"
git ls-files -z --cached --others --exclude-standard |
    xargs -0 cp --parents --target-directory "$3"
cd "$3/target"
[[ ! -d $2/../kernel ]] || ln -s "$2/../kernel" .
for profile in release debug; do
    ln -s "$2" $profile
    [[ $IS_FULL == true ]] || continue
    rm $profile && mkdir $profile
    cp "$2/tidemark" "$2"/libtidemark_*.so $profile
done
[[ $IS_FULL == false || ! -d kernel ]] || { cp -rL kernel copy && rm kernel && mv copy kernel; }
"#;

fn is_run(command: &Command) -> bool {
    match &command.when {
        When::Always => true,
        When::Acceptance => needs::is_full(),
        When::With(program) => needs::is_full() || needs::find(program).is_some(),
    }
}

/// Returns true if a page can have a folder of its own for `/tmp`, so that `tidemark ctl` finds its
/// runs alone.
pub fn has_own_tmp() -> bool {
    let is_elsewhere =
        !Path::new(env!("CARGO_TARGET_TMPDIR")).starts_with("/tmp") && !root().starts_with("/tmp");
    needs::is_root() && is_elsewhere && needs::find("unshare").is_some()
}

/// The shell that types the script.
fn shell(script: &str) -> std::process::Command {
    let mut shell = std::process::Command::new("bash");
    shell.arg(script);
    if has_own_tmp() {
        shell = std::process::Command::new("unshare");
        shell.args(["--mount", "bash", script]);
        shell.env("OWN_TMP", Path::new(script).with_file_name("tmp"));
    }
    shell
}

fn script(page: &Page, prologue: &[String], runs: &[bool], folder: &Path) -> String {
    let (ends, tmp) = (folder.join("ends"), folder.join("tmp"));
    for made in [&ends, &tmp] {
        std::fs::create_dir(made).unwrap();
    }
    let (ends, tmp) = (ends.display(), tmp.display().to_string());
    let own = "[[ -z ${OWN_TMP:-} ]] || mount --bind \"$OWN_TMP\" /tmp 2>/dev/null || true\n";
    let mut script = own.to_owned();
    for line in prologue {
        script += &format!("{}\n", with_own_tmp(line, &tmp));
    }
    for (number, command) in page.commands.iter().enumerate() {
        if runs[number] {
            let text = with_own_tmp(&command.text, &tmp);
            script += &format!("{{\n{text}\n}} >{ends}/{number}.printed 2>&1\n");
            script += &format!("echo $? >{ends}/{number}.status\n");
        }
    }
    script
}

/// The command with `own` in place of the folder for temporary files, but not of `/var/tmp`.
fn with_own_tmp(command: &str, own: &str) -> String {
    let mut parts = command.split(TMP);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_within = text.ends_with(|byte: char| byte.is_alphanumeric());
        text += if is_within { TMP } else { own };
        text += part;
    }
    text
}

fn await_end(shell: &mut Child, limit: Duration) {
    let began = Instant::now();
    while shell.try_wait().unwrap().is_none() && began.elapsed() < limit {
        std::thread::sleep(Duration::from_millis(20));
    }
    // What a page leaves running does not outlive it.
    let group = Pid::from_child(shell);
    let _ = kill_process_group(group, Signal::KILL);
    shell.wait().unwrap();
}

/// Reads the end of a command, which has seen the page's own folder by the name that pages use.
fn read(folder: &Path, number: usize) -> Outcome {
    let own = folder.join("tmp").display().to_string();
    let file = |what: &str| -> PathBuf { folder.join(format!("ends/{number}.{what}")) };
    let status = std::fs::read_to_string(file("status")).ok();
    let printed = std::fs::read(file("printed")).unwrap_or_default();
    Outcome {
        status: status.and_then(|status| status.trim().parse().ok()),
        printed: String::from_utf8_lossy(&printed)
            .replace('\r', "")
            .replace(&own, TMP),
    }
}
