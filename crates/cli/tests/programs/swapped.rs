//! The contents of the swap file of a run.

use std::process::Command;
use std::time::Duration;

use super::scratch::Scratch;
use super::{child, needs};

const LIMIT: Duration = Duration::from_secs(60);

/// Fills twice its memory with a text, and looks for the text in the swap file, which the
/// supervisor has open. Says whether it was found, and how many pages still have it.
const SEARCHER: &str = "import os, sys
data = bytearray(b'marked for swap.' * (1 << 21))
files = f'/proc/{os.getppid()}/fd/'
links = {files + name: os.readlink(files + name) for name in os.listdir(files)}
swap, = [name for name, target in links.items() if target.startswith(sys.argv[1])]
found = 0
with open(swap, 'rb') as file:
    while part := file.read(1 << 20):
        found += part.count(b'marked for swap.' * 4)
print(found > 1000, sum(data[::4096]) // ord('m'))";

/// Changes all pages of 32 MiB a few times, in half of that, and prints their sum.
const CHURNER: &str = "import random
data, total = bytearray(random.Random(1).randbytes(1 << 20)) * 32, 0
for turn in range(3):
    for at in range(0, len(data), 4096):
        data[at] = (data[at] + 1) & 255
        total += data[at]
print(total)";

/// A limit that its owner may raise again: others take a privilege.
#[test]
fn a_limit_on_the_files_that_the_program_writes_is_none_on_swap() {
    if !needs::are_met(&["bash", "python3"]) {
        return;
    }
    let scratch = Scratch::new("swapped-limited");
    let script = "ulimit -S -f 100; exec python3 -c \"$0\"";
    let limited = ["-c", script, CHURNER];
    let mut natively = Command::new("bash");
    natively.args(limited);
    let native = child::run(natively, &scratch.join("native"), LIMIT);
    let mut command = Command::new(needs::tidemark());
    command.args([
        "run",
        "--memory",
        "16M",
        "--store",
        "file",
        "--swap-size",
        "256M",
        "--",
    ]);
    command.arg("bash").args(limited);
    let outcome = child::run(command, &scratch.join("managed"), LIMIT);
    let outcome = outcome.expect_code(0, "it goes on");
    assert_eq!(outcome.output_text(), native.output_text());
}

#[test]
fn the_swap_file_shows_nothing_of_the_program_unless_that_is_wanted() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let scratch = Scratch::new("swapped");
    let folder = scratch.folder("swap");
    for (option, found) in [(None, "False"), (Some("--swap-plain"), "True")] {
        let mut command = Command::new(needs::tidemark());
        command.args(["run", "--memory", "16M", "--store", "file"]);
        command.args(["--swap-size", "64M", "--swap"]);
        command.arg(&folder).args(option);
        command.args(["--", "python3", "-c", SEARCHER]).arg(&folder);
        let outcome = child::run(command, scratch.path(), LIMIT);
        let outcome = outcome.expect_code(0, "it finds the swap file");
        assert_eq!(
            outcome.output_text(),
            format!("{found} 8192\n"),
            "{option:?}"
        );
    }
}
