//! From arguments to everything a run needs. All that can be refused is refused here.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;

use tidemark_core::id::PAGE_BYTES;
use tidemark_lab::names::{Divider, find_live_policy};
use tidemark_live::control;
use tidemark_live::glob::Glob;
use tidemark_results::quantity;
use tidemark_results::text::bytes;
use tidemark_supervisor::host::{self, Lack, Way};
use tidemark_supervisor::jobs::JOBS_MAX;
use tidemark_supervisor::management::{MEMORY_BYTES_MIN, Management, STEP_POOL_BYTES};
use tidemark_supervisor::requests::{Door, Speech};
use tidemark_supervisor::swap::{self, NoSwap, Swap};
use tidemark_supervisor::{load_controls, program};

use super::{Arguments, Malloc, runtimes};
use crate::exit::{Refusal, refuse};
use crate::files::OutputFile;
use crate::mount::{self, Lender};

/// Everything a run needs.
#[derive(Debug)]
pub struct Plan {
    /// The program and its arguments.
    pub command: Command,
    /// The policy's name.
    pub policy: &'static str,
    /// The memory all processes may use together at first.
    pub memory_bytes: u64,
    /// The means to manage them; `None` if the program is to run unmanaged.
    pub management: Option<Management>,
    /// The store's name.
    pub store: String,
    /// The process that serves the store, if it is on a server.
    pub lender: Option<Lender>,
    /// The file for statistics.
    pub statistics_file: Option<OutputFile>,
    /// Remarks that a reader of the numbers may need.
    pub notes: Vec<String>,
}

impl Plan {
    /// Plans the run that `arguments` ask for.
    pub fn new(arguments: &Arguments) -> Result<Plan, Refusal> {
        let memory_bytes = plan_memory("--memory", &arguments.memory)?;
        let parse_swap = |text: &String| quantity::parse("--swap-size", text);
        let swap_bytes = arguments.swap_size.as_ref().map(parse_swap).transpose()?;
        let policy = find_live_policy(arguments.policy())
            .map_err(|refusal| Refusal::new(format!("`--policy`: {refusal}")))?
            .name;
        if arguments.locks && !arguments.summary && arguments.stats.is_none() {
            refuse!("`--locks`: shown by `--summary`, and in the file of `--stats`; add one");
        }
        check_files(arguments)?;
        let store = arguments.store_name()?;
        host::check_needs()?;
        let path = program::find(&arguments.program[0])?;
        let statistics_file = arguments
            .stats
            .as_deref()
            .map(OutputFile::new)
            .transpose()?;
        let nature = program::find_obstacle(&path)
            .map(|obstacle| format!("`{}` {}", path.display(), obstacle.reason()));
        let (mut notes, mut lender) = (vec![], None);
        let way = match nature {
            Some(obstacle) => Err(obstacle),
            None => find_way(arguments),
        };
        let management = match way {
            Ok(way) => {
                let (mut management, lent) =
                    manage(arguments, policy, &store, memory_bytes, swap_bytes)?;
                lender = lent;
                if let Way::UserMode(lack) = way {
                    notes.push(hold_calls(&mut management, &lack));
                }
                Some(management)
            }
            Err(obstacle) if arguments.allow_unmanaged => {
                notes.push(format!("the program ran unmanaged: {obstacle}"));
                None
            }
            Err(obstacle) => {
                refuse!("{obstacle}; `--allow-unmanaged` runs it without management")
            }
        };
        let mut command = Command::new(&path);
        std::os::unix::process::CommandExt::arg0(&mut command, &arguments.program[0]);
        command.args(&arguments.program[1..]);
        Ok(Plan {
            command,
            policy,
            memory_bytes,
            management,
            store,
            lender,
            statistics_file,
            notes,
        })
    }
}

/// Refuses a pattern of files that is none.
fn check_files(arguments: &Arguments) -> Result<(), Refusal> {
    if arguments.files_write && arguments.files.is_none() {
        refuse!(
            "`--files-write`: goes with `--files`; add it, at best with a pattern of the files \
             that this program alone writes to: `--files '*.dat' --files-write`"
        );
    }
    match &arguments.files {
        Some(None) if arguments.in_step => refuse!(
            "`--files`: in step a pattern must tell the program's files from its libraries, as for \
             the lab: `--files '*.dat'`"
        ),
        None | Some(None) => Ok(()),
        Some(Some(pattern)) => parse_files(pattern).map(|_| ()),
    }
}

/// Reads a pattern of files.
pub fn parse_files(pattern: &OsStr) -> Result<Glob, Refusal> {
    match Glob::parse(pattern.as_encoded_bytes()) {
        Ok(glob) => Ok(glob),
        Err(wrong) => refuse!("`--files {}`: {wrong}", pattern.display()),
    }
}

/// The management of the program that `arguments` name.
fn manage(
    arguments: &Arguments,
    policy: &str,
    store: &str,
    memory_bytes: u64,
    swap_bytes: Option<u64>,
) -> Result<(Management, Option<Lender>), Refusal> {
    let memory_bytes_max = plan_memory_max(arguments, memory_bytes)?;
    let (swap, lender) = plan_swap(arguments, store, swap_bytes, memory_bytes_max)?;
    let control = arguments.control.as_deref();
    let control = control.map(|path| Door::open("--control", path, Speech::Lines));
    let metrics = arguments.metrics.as_deref();
    let metrics = metrics.map(|place| Door::open_at_place("--metrics", place, Speech::Http));
    let doors = [control.transpose()?, metrics.transpose()?];
    let doors = doors.into_iter().flatten().collect();
    let open = |path: Option<&Path>| path.map(OutputFile::new).transpose();
    let log = open(arguments.log_decisions.as_deref())?;
    let timeline = open(arguments.timeline.as_deref())?;
    let load_control = load_controls::find(load_control(arguments))
        .map_err(|refusal| Refusal::new(format!("`--load-control`: {refusal}")))?;
    let divider = plan_division(arguments, memory_bytes_max)?;
    let shim = host::find_shim()?;
    let mut libraries = vec![];
    let mut environment = variables(arguments, policy, memory_bytes);
    if arguments.malloc == Some(Malloc::Pool) {
        // Before the engine's library: the loader initialises the last one first, and the
        // pool is to be mapped when the engine runs.
        libraries.push(host::find_pool(&shim)?);
        let pool_bytes = match arguments.in_step {
            true => STEP_POOL_BYTES,
            false => memory_bytes_max + swap.size_bytes,
        };
        environment.push((control::POOL, pool_bytes.to_string().into()));
    }
    libraries.push(shim);
    // The old log goes now: nothing is refused from here on.
    let decisions = log.map(OutputFile::into_log).transpose()?;
    let timeline = timeline.map(OutputFile::into_log).transpose()?;
    let management = Management {
        memory_bytes,
        memory_bytes_max,
        policy: policy.into(),
        store: store.into(),
        doors,
        swap,
        decisions: decisions.map(OwnedFd::from),
        timeline: timeline.map(OwnedFd::from),
        divider,
        load_control,
        jobs: plan_jobs(arguments),
        holds_calls: false,
        unsuspendable: find_suspension_obstacle(arguments),
        environment,
        libraries,
        is_spread: !arguments.in_step,
        module: tidemark_plugin::binary(policy),
    };
    Ok((management, lender))
}

/// The variables that engines read, and those that runtimes do.
fn variables(
    arguments: &Arguments,
    policy: &str,
    memory_bytes: u64,
) -> Vec<(&'static str, OsString)> {
    let mut variables: Vec<(&'static str, OsString)> = vec![
        (control::MEMORY, memory_bytes.to_string().into()),
        (control::POLICY, policy.into()),
        (control::MODE, super::mode(arguments).into()),
        (control::STORE, arguments.store().name().into()),
    ];
    let switches = [
        (arguments.in_step, control::IN_STEP),
        (arguments.locks, control::LOCKS),
        (arguments.swap_plain, control::PLAIN_SWAP),
        (arguments.files_write, control::FILES_WRITE),
    ];
    let asked = switches.iter().filter(|(is_asked, _)| *is_asked);
    variables.extend(asked.map(|&(_, name)| (name, "1".into())));
    if let Some(pattern) = &arguments.files {
        variables.push((control::FILES, pattern.clone().unwrap_or_default()));
    }
    if arguments.tell_runtimes {
        let variable = |name: &str| std::env::var(name).ok();
        variables.extend(runtimes::hints(memory_bytes, variable));
    }
    variables
}

/// Makes the swap file, or what stands for it where pages stay in memory.
fn plan_swap(
    arguments: &Arguments,
    store_name: &str,
    swap_bytes: Option<u64>,
    memory_bytes_max: u64,
) -> Result<(Swap, Option<Lender>), Refusal> {
    let store = arguments.store();
    if let Some(address) = arguments.store_address() {
        if arguments.swap.is_some() {
            refuse!("`--swap`: there is no swap file with `--store {store_name}`");
        }
        let mut lender = None;
        let swap = swap::on_server(swap_bytes, memory_bytes_max, |bytes| {
            let (file, lent) = mount::lend(address, bytes)?;
            lender = Some(lent);
            Ok(file)
        })
        .map_err(no_swap)?;
        return Ok((swap, lender));
    }
    if store.has_file() {
        let swap = swap::create(arguments.swap.as_deref(), swap_bytes, memory_bytes_max)
            .map_err(no_swap)?;
        return Ok((swap, None));
    }
    let options = [
        (arguments.swap.is_some(), "--swap"),
        (arguments.swap_size.is_some(), "--swap-size"),
        (arguments.swap_plain, "--swap-plain"),
    ];
    if let Some((_, option)) = options.iter().find(|(is_given, _)| *is_given) {
        refuse!(
            "`{option}`: there is no swap file with `--store {}`",
            store.name()
        );
    }
    let swap = swap::without_file(memory_bytes_max).map_err(no_swap)?;
    Ok((swap, None))
}

/// The refusal of swap, by its options.
fn no_swap(why: NoSwap) -> Refusal {
    Refusal::new(match &why {
        NoSwap::Place { path, told } => format!("`--swap {}`: {told}", path.display()),
        NoSwap::TooSmall { .. } => format!("`--swap-size`: {why}"),
        NoSwap::Limited { .. } => format!("{why} with `--swap-size`"),
        NoSwap::NoRoomForSize { .. } => format!("{why} with `--swap` or `--swap-size`"),
        NoSwap::NoFolder | NoSwap::NoRoom { .. } => format!("{why} with `--swap`"),
        NoSwap::Failed(told) => told.clone(),
    })
}

fn plan_memory_max(arguments: &Arguments, memory_bytes: u64) -> Result<u64, Refusal> {
    let Some(text) = &arguments.memory_max else {
        return Ok(memory_bytes);
    };
    let memory_bytes_max = plan_memory("--memory-max", text)?;
    if memory_bytes_max < memory_bytes {
        refuse!(
            "`--memory-max {text}`: less than `--memory {}`",
            arguments.memory
        );
    }
    Ok(memory_bytes_max)
}

fn plan_division(arguments: &Arguments, memory_bytes_max: u64) -> Result<Divider, Refusal> {
    let divider = arguments.division.divider(PAGE_BYTES)?;
    if divider.frames_min > memory_bytes_max / PAGE_BYTES {
        let least = &arguments.division.per_task_min;
        refuse!("`--per-task-min {least}`: more than all processes have together");
    }
    Ok(divider)
}

fn plan_memory(option: &str, text: &str) -> Result<u64, Refusal> {
    let memory_bytes = quantity::parse(option, text)?;
    let least = MEMORY_BYTES_MIN >> 20;
    if memory_bytes < MEMORY_BYTES_MIN && quantity::is_bare(text) {
        refuse!(
            "`{option} {text}`: a number without a unit is in bytes, and the least that works is \
             {least}M; write `{text}M` for MiB"
        );
    }
    if memory_bytes < MEMORY_BYTES_MIN {
        refuse!("`{option} {text}`: too small; the least that works is {least}M");
    }
    if memory_bytes / PAGE_BYTES > u64::from(u32::MAX) {
        let most = bytes(u64::from(u32::MAX) * PAGE_BYTES);
        refuse!("`{option} {text}`: too large; the most is {most}");
    }
    Ok(memory_bytes - memory_bytes % PAGE_BYTES)
}

/// The most jobs that a job server is to offer, if there is to be one.
fn plan_jobs(arguments: &Arguments) -> Option<u32> {
    let usual = || u32::try_from(host::processors()).unwrap_or(JOBS_MAX);
    let jobs = arguments.jobserver?;
    Some(jobs.unwrap_or_else(usual).min(JOBS_MAX))
}

/// The name of the load control.
fn load_control(arguments: &Arguments) -> &str {
    let usual = match find_suspension_obstacle(arguments) {
        None => load_controls::DEFAULT,
        Some(_) => load_controls::NONE,
    };
    arguments.load_control.as_deref().unwrap_or(usual)
}

/// Finds the reason why the run's processes can't be suspended.
fn find_suspension_obstacle(arguments: &Arguments) -> Option<&'static str> {
    match (arguments.in_thread, arguments.in_step) {
        (true, _) => {
            Some("with `--in-thread` its system calls would fail while it is out of memory")
        }
        (_, true) => Some("with `--in-step` it waits for nothing but its own faults"),
        (false, false) => None,
    }
}

/// Finds the way in which faults can be served on this host, or the reason why no program can be
/// managed, in one line.
fn find_way(arguments: &Arguments) -> Result<Way, String> {
    let special = [
        (arguments.in_thread, "--in-thread"),
        (arguments.in_step, "--in-step"),
        (arguments.files.is_some(), "--files"),
    ];
    if arguments.in_thread {
        let lack = host::find_lack(true);
        return lack.map_or(Ok(Way::Full), |lack| Err(lack.to_string()));
    }
    let way = host::find_way().map_err(|lack| lack.to_string())?;
    match (&way, special.iter().find(|(is_asked, _)| *is_asked)) {
        (Way::UserMode(lack), Some((_, option))) => {
            Err(format!("`{option}` needs all faults: {lack}"))
        }
        _ => Ok(way),
    }
}

/// Has the program's system calls held up until their memory is there, and says so.
fn hold_calls(management: &mut Management, lack: &Lack) -> String {
    management.holds_calls = true;
    management.environment.push((control::CALLS, "1".into()));
    format!(
        "{}, and system calls held up until their memory is there, which is slower: {lack}",
        host::IN_USER_MODE
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_memory_is_refused_with_the_least_that_works() {
        let told = plan_memory("--memory", "4K").unwrap_err().to_string();
        assert_eq!(told, "`--memory 4K`: too small; the least that works is 4M");
        assert_eq!(plan_memory("--memory", "4M"), Ok(4 << 20));
    }

    #[test]
    fn found_c_a_number_without_a_unit_is_said_to_be_bytes() {
        let told = plan_memory("--memory", "24").unwrap_err().to_string();
        assert!(
            told.contains("in bytes") && told.contains("`24M`"),
            "{told}"
        );
    }

    #[test]
    fn memory_is_whole_pages() {
        let memory_bytes = plan_memory("--memory", "5000000");
        assert_eq!(memory_bytes, Ok(5_000_000 / 4096 * 4096));
    }
}
