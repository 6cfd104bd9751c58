//! Programs in C: compiled against the header, linked both ways, and run.

use std::fs;
use std::mem::size_of;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tidemark_memory::{tidemark_failure, tidemark_pager, tidemark_settings, tidemark_statistics};
use tidemark_testing::{servers, skip, waits};

/// The longest time that a program may take.
const LIMIT: Duration = Duration::from_secs(60);

/// A folder that is removed at the end of its test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = format!("/var/tmp/tidemark-capi-{name}-{}", std::process::id());
        fs::create_dir(&path).unwrap();
        Folder(path.into())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server of Redis, which ends with its test.
struct Redis(Child, u16);

impl Redis {
    fn start(folder: &Folder) -> Redis {
        let port = servers::unused_port();
        let child = servers::redis_command(port, &folder.0).spawn().unwrap();
        servers::wait_for_redis(port, "PING", "+PONG");
        Redis(child, port)
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.1)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The folder of the libraries, which is that of this test.
fn built() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().unwrap();
    assert!(folder.join("libtidemark_memory.so").is_file(), "{folder:?}");
    folder.into()
}

/// Returns true if a program is there.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        skip(&format!("needs {program}"));
    }
    found
}

fn succeed(command: &mut Command) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {text}");
}

fn end(mut child: Child) -> Output {
    waits::for_end(&mut child, LIMIT);
    child.wait_with_output().unwrap()
}

fn compile(folder: &Folder, program: &Path, linked: &[&str]) -> PathBuf {
    let made = folder.0.join("program");
    let mut compiler = Command::new("cc");
    compiler.args([
        "-std=c11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pedantic",
        "-O1",
    ]);
    compiler.arg("-I").arg(here("include")).arg(program);
    compiler.arg("-o").arg(&made).arg("-L").arg(built());
    succeed(compiler.args(linked));
    made
}

fn run_program(name: &str, linked: &[&str]) {
    if !has("cc") {
        return;
    }
    let folder = Folder::new(name);
    let made = compile(&folder, &here("tests/program.c"), linked);
    let file = folder.0.join("file");
    run_made(&folder, &made, &[file.to_str().unwrap()], &SIZES);
}

/// The sizes of the structures that each program prints.
const SIZES: [usize; 2] = [
    size_of::<tidemark_settings>(),
    size_of::<tidemark_statistics>(),
];
const SIZES_OF_STORES: [usize; 2] = [size_of::<tidemark_pager>(), size_of::<tidemark_failure>()];

/// Runs a program that prints the library's version and the sizes of two structures.
fn run_made(folder: &Folder, made: &Path, arguments: &[&str], sizes: &[usize; 2]) {
    let mut program = Command::new(made);
    program.arg(&folder.0).args(arguments);
    program.env("LD_LIBRARY_PATH", built());
    program.stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = end(program.spawn().unwrap());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.code() == Some(77) {
        return skip(&text);
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    let [first, second] = sizes;
    let version = env!("CARGO_PKG_VERSION");
    assert!(
        text.starts_with(&format!("{version} {first} {second}\n")),
        "{text}"
    );
}

#[test]
fn a_program_that_is_linked_dynamically_uses_every_function() {
    run_program("shared", &["-ltidemark_memory", "-lpthread"]);
}

#[test]
fn a_program_that_is_linked_statically_uses_every_function() {
    let library = built().join("libtidemark_memory.a");
    let library = library.to_str().unwrap();
    run_program("static", &[library, "-lpthread", "-ldl", "-lm", "-lgcc_s"]);
}

#[test]
fn a_program_has_pagers_of_its_own_and_stores_on_a_server() {
    if !has("cc") {
        return;
    }
    let folder = Folder::new("stores");
    let linked = ["-ltidemark_memory", "-lpthread"];
    let made = compile(&folder, &here("tests/stores.c"), &linked);
    let server = has("redis-server").then(|| Redis::start(&folder));
    let url = server.as_ref().map_or(String::new(), Redis::url);
    let absent = format!("redis://127.0.0.1:{}/0/absent", servers::unused_port());
    run_made(&folder, &made, &[&url, &absent], &SIZES_OF_STORES);
}

#[test]
fn the_header_is_one_of_cpp_as_well() {
    if !has("c++") {
        return;
    }
    let folder = Folder::new("cpp");
    let source = folder.0.join("source.cpp");
    fs::write(
        &source,
        "#include <tidemark_memory.h>\nint main() { return tidemark_status(); }\n",
    )
    .unwrap();
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++11", "-Wall", "-Wextra", "-Werror", "-pedantic"]);
    compiler.args(["-fsyntax-only", "-I"]).arg(here("include"));
    succeed(compiler.arg(&source));
}

#[test]
fn pkg_config_finds_the_library_in_a_tree_that_was_moved() {
    if !has("pkg-config") {
        return;
    }
    let folder = Folder::new("pkg");
    let place = folder.0.join("lib/pkgconfig");
    fs::create_dir_all(&place).unwrap();
    fs::copy(here("tidemark-memory.pc"), place.join("tidemark-memory.pc")).unwrap();
    let ask = |options: &[&str]| {
        let mut asked = Command::new("pkg-config");
        let asked = asked.args(options).arg("tidemark-memory");
        let output = asked.env("PKG_CONFIG_PATH", &place).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{options:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(ask(&["--modversion"]).trim(), env!("CARGO_PKG_VERSION"));
    let found = ask(&["--cflags", "--libs"]);
    let include = found
        .split_whitespace()
        .find_map(|it| it.strip_prefix("-I"));
    let include = Path::new(include.unwrap()).to_path_buf();
    assert_eq!(
        fs::canonicalize(include.parent().unwrap()).unwrap(),
        folder.0
    );
    assert!(found.contains("-ltidemark_memory"), "{found}");
}
