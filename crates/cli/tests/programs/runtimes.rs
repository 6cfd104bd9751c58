//! Runtimes with collectors and code generators of their own: Java and node.

use std::process::Command;
use std::time::Duration;

use super::scratch::Scratch;
use super::trial::Trial;
use super::{child, needs};

/// Keeps a map of strings and a list of arrays, throws half away, and prints a sum over the rest.
const JAVA: &str = r#"
import java.util.*;

public class Fill {
    public static void main(String[] arguments) throws Exception {
        int count = Integer.parseInt(arguments[0]);
        Map<String, Integer> table = new HashMap<>();
        List<int[]> arrays = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            table.put("key " + number, number * 7);
            if (number % 50 == 0) {
                int[] array = new int[1024];
                Arrays.fill(array, number);
                arrays.add(array);
            }
        }
        for (int number = 0; number < count; number += 2) table.remove("key " + number);
        Thread[] workers = new Thread[2];
        long[] sums = new long[2];
        for (int worker = 0; worker < 2; worker++) {
            final int at = worker;
            workers[at] = new Thread(() -> {
                for (int index = at; index < arrays.size(); index += 2)
                    for (int value : arrays.get(index)) sums[at] = sums[at] * 31 + value;
            });
            workers[at].start();
        }
        for (Thread worker : workers) worker.join();
        long total = 0;
        for (int number = 1; number < count; number += 2) total += table.get("key " + number);
        System.out.println(table.size() + " " + total + " " + sums[0] + " " + sums[1]);
    }
}
"#;

/// The same for node, with typed arrays outside its heap as well as objects inside it.
const NODE: &str = r"
const count = Number(process.argv[2]);
const table = new Map();
const arrays = [];
for (let number = 0; number < count; number++) {
  table.set('key ' + number, { number, text: 'value ' + number * 7 });
  if (number % 50 === 0) arrays.push(new Uint32Array(1024).fill(number));
}
for (let number = 0; number < count; number += 2) table.delete('key ' + number);
let total = 0;
for (const [key, value] of table) total = (total * 31 + key.length + value.number) % 1000000007;
for (const array of arrays) for (const value of array) total = (total * 31 + value) % 1000000007;
console.log(table.size, total);
";

#[test]
fn a_java_program_sums_the_same() {
    if !needs::are_met(&["java", "javac"]) {
        return;
    }
    let scratch = Scratch::new("java");
    let source = scratch.write("Fill.java", JAVA);
    let mut compile = Command::new("javac");
    compile.arg("-d").arg(scratch.path()).arg(source);
    child::run(compile, &scratch.join("javac"), Duration::from_secs(120)).expect_success("javac");
    let count = needs::size(200_000, 3_000_000).to_string();
    let path = scratch.path().display().to_string();
    let arguments = [
        "java",
        "-Xmx2g",
        "-Xshare:auto",
        "-cp",
        &path,
        "Fill",
        &count,
    ];
    Trial::new("java", &scratch, &arguments).compare();
}

#[test]
fn a_node_program_sums_the_same() {
    if !needs::are_met(&["node"]) {
        return;
    }
    let scratch = Scratch::new("node");
    let script = scratch.write("fill.js", NODE).display().to_string();
    let count = needs::size(120_000, 3_000_000).to_string();
    let arguments = ["node", "--max-old-space-size=4096", &script, &count];
    Trial::new("node", &scratch, &arguments).compare();
}
