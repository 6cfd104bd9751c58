//! CPython: a large dict, and the interpreter's own tests.

use super::needs;
use super::scratch::Scratch;
use super::trial::Trial;

/// Builds a dict of a few million entries, looks every one up, and prints a sum over all.
const DICT: &str = "
import sys
count = int(sys.argv[1])
table = {f'key {number}': number * 7 for number in range(count)}
assert len(table) == count
total = 0
for number in range(0, count, 3):
    assert table[f'key {number}'] == number * 7, number
for key in list(table)[::5]:
    total += table.pop(key)
for value in table.values():
    total = (total * 31 + value) % (1 << 61)
print(len(table), total)
";

/// Runs the tests named and prints each one's verdict, without times, in order of name. Some fail
/// on some machines whoever runs them: what counts is that the verdicts are the same.
const OWN_TESTS: &str = "
import subprocess, sys, xml.etree.ElementTree as tree
command = [sys.executable, '-m', 'test', '--junit-xml', 'verdicts.xml', *sys.argv[1:]]
run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
verdicts = []
for case in tree.parse('verdicts.xml').iter('testcase'):
    kind = [part.tag for part in case if part.tag in ('failure', 'error', 'skipped')]
    verdicts.append((case.get('name'), kind or ['ok']))
import os
os.remove('verdicts.xml')
for name, kind in sorted(verdicts):
    print(name, *kind)
print(len(verdicts), 'tests', 'status', run.returncode)
";

#[test]
fn a_large_dict_holds_what_was_put_in() {
    if !needs::are_met(&["python3"]) {
        return;
    }
    let scratch = Scratch::new("dict");
    let script = scratch.write("dict.py", DICT).display().to_string();
    let count = needs::size(150_000, 5_000_000).to_string();
    Trial::new("dict", &scratch, &[needs::python(), &script, &count]).compare();
}

#[test]
fn the_interpreters_own_tests_have_the_same_verdicts() {
    let quick = [
        "test_mmap",
        "test_array",
        "test_list",
        "test_dict",
        "test_heapq",
        "test_fork1",
    ];
    let slow = ["test_bytes", "test_subprocess", "test_threading"];
    if !needs::are_met(&["python3"]) {
        return;
    }
    let scratch = Scratch::new("own-tests");
    let script = scratch.write("own.py", OWN_TESTS).display().to_string();
    let mut arguments = vec![needs::python(), &script];
    arguments.extend(quick);
    if needs::is_full() {
        arguments.extend(slow);
    }
    Trial::new("own tests", &scratch, &arguments)
        .may_fit()
        .compare();
}
