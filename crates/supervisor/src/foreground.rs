//! The foreground: the processes that a user waits for at a terminal.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// Returns true if a process is in the foreground of its terminal, which is its standard input.
pub fn holds(pid: u32) -> bool {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some(terminal) = find_terminal(&line) else {
        return false;
    };
    let input = fs::metadata(format!("/proc/{pid}/fd/0"));
    input.is_ok_and(|input| input.rdev() == terminal)
}

/// The number of the terminal in whose foreground a process is, from its line in
/// `/proc/PID/stat`. The name, which may hold anything, ends with the last bracket.
fn find_terminal(line: &str) -> Option<u64> {
    let (_, rest) = line.rsplit_once(')')?;
    let mut words = rest.split_ascii_whitespace().skip(2);
    let mut next = || words.next()?.parse::<i64>().ok();
    let (group, _session, terminal, foreground) = (next()?, next()?, next()?, next()?);
    (group == foreground).then(|| u64::try_from(terminal).ok())?
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_line_tells_of_the_foreground() {
        let line = |group, foreground| format!("7 (a) b) R 1 {group} 7 34816 {foreground} 0 0");
        assert_eq!(find_terminal(&line(9, 9)), Some(34816));
        assert_eq!(find_terminal(&line(9, 8)), None);
        assert_eq!(
            find_terminal("7 (a) b) R 1 9 7 0 -1 0 0"),
            None,
            "it has none"
        );
        assert_eq!(find_terminal(""), None);
    }

    /// Begins three processes at a terminal: one that reads from it, one in the background, and
    /// one that reads from elsewhere; and prints their numbers.
    const TERMINAL: &str = "import os, pty, signal, sys, time
def sleep():
    signal.alarm(60)
    os.write(1, b'.')
    time.sleep(60)
first, terminal = pty.fork()
if first == 0:
    if os.fork() == 0:
        os.setpgid(0, 0)
    elif os.fork() == 0:
        os.dup2(os.open('/dev/null', os.O_RDONLY), 0)
    sleep()
said = b''
while said.count(b'.') < 3:
    said += os.read(terminal, 100)
children = open(f'/proc/{first}/task/{first}/children').read().split()
print(first, *children, flush=True)
sys.stdin.read()
for pid in (first, *children):
    os.kill(int(pid), 9)
";

    #[test]
    fn the_process_that_reads_from_its_terminal_in_front_is_in_the_foreground() {
        let child = Command::new("python3")
            .args(["-c", TERMINAL])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = child else {
            tidemark_testing::require(false, "python3 is not there");
            return;
        };
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let pids = line.split_whitespace().map(|pid| pid.parse().unwrap());
        let found: Vec<bool> = pids.map(holds).collect();
        assert_eq!(found, [true, false, false]);
        assert!(!holds(child.id()), "it has another input");
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
}
