//! The emulated machine: how it is started, and how it ends.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use tidemark_results::refusal::plain;
use tidemark_results::{Refusal, refuse};

/// The program that emulates the machine.
pub const EMULATOR: &str = "qemu-system-x86_64";
/// The device by which Linux lends its processor to a virtual machine.
const KVM: &str = "/dev/kvm";
/// The number of lines of the console that are shown again when the machine does not end.
const LINES_SHOWN: usize = 12;
/// The number of the kernel's own lines that are shown again when it refuses or fails.
const LINES_TOLD: usize = 2;
/// The memory of the kernel beside that of programs, and for each eight bytes of that one more.
const KERNEL_BYTES: u64 = 48 << 20;
/// The time after this process at which the one that watches over the machine ends it.
const ORPHAN_S: u64 = 10;
/// The interval at which the limit is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// A machine to be started.
pub struct Machine {
    /// The memory of programs.
    pub memory_bytes: u64,
    /// The volume.
    pub image: PathBuf,
    /// True if writes to the volume are kept.
    pub is_image_kept: bool,
    /// The swap disk.
    pub swap: PathBuf,
    /// The kernel's command line.
    pub parameters: String,
    /// For how long it may run.
    pub limit_s: u64,
    /// The processor.
    pub processor: Processor,
}

/// The processor of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Processor {
    /// An emulated one, whose time is counted in instructions.
    Emulated,
    /// The host's own, by KVM.
    Hosts,
}

/// The files of the kernel's other outputs.
pub struct Outputs {
    /// The decisions of the core.
    pub decisions: PathBuf,
    /// The file of the counts.
    pub statistics: PathBuf,
}

/// The end of the first program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// With status 0.
    Success,
    /// With another, or the kernel has ended it.
    Failure,
}

impl Machine {
    /// Runs the machine to its end and shows its console.
    pub fn run(&self, outputs: &Outputs) -> Result<End, Refusal> {
        let mut child = match self.command(outputs)?.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                refuse!("`{EMULATOR}` is not installed; as root: apt-get install qemu-system-x86")
            }
            Err(error) => refuse!("`{EMULATOR}`: {}", plain(&error)),
        };
        let shown = show(
            &mut child,
            Instant::now() + Duration::from_secs(self.limit_s),
        );
        if !shown.is_over {
            // `timeout` hands the signal on, which `Child::kill` could not be.
            let pid = rustix::process::Pid::from_child(&child);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let status = child.wait();
        if !shown.is_over {
            let last = shown.last_lines();
            refuse!(
                "no end after {} s; the console's last lines: {last}",
                self.limit_s
            );
        }
        match status {
            Ok(status) => judge(status, &shown),
            Err(error) => refuse!("`{EMULATOR}`: {}", plain(&error)),
        }
    }

    fn command(&self, outputs: &Outputs) -> Result<Command, Refusal> {
        let memory = self.memory_bytes + self.memory_bytes / 8 + KERNEL_BYTES;
        // If this process is killed, the machine still ends when its time is over.
        let mut command = Command::new("timeout");
        command.args([(self.limit_s + ORPHAN_S).to_string().as_str(), EMULATOR]);
        // A small machine without firmware tables: its disks are where the kernel looks for them.
        let machine = "microvm,acpi=off,auto-kernel-cmdline=off";
        command.args(["-machine", machine]);
        command.args(match self.processor {
            // Virtual time is counted in instructions, whatever else this host does.
            Processor::Emulated => &[
                "-accel",
                "tcg",
                "-cpu",
                "qemu64",
                "-icount",
                "shift=1,sleep=off",
            ][..],
            // The kernel needs nothing that a host may lack of the oldest 64-bit processors.
            Processor::Hosts => &["-accel", "kvm", "-cpu", "qemu64,check=off"],
        });
        command.args(["-m", &format!("{}M", memory.div_ceil(1 << 20))]);
        command.args([
            "-nodefaults",
            "-no-user-config",
            "-no-reboot",
            "-display",
            "none",
        ]);
        command.args(["-serial", "stdio", "-monitor", "none"]);
        command.args(["-global", "virtio-mmio.force-legacy=false"]);
        command.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
        let logs = [
            ("log", "0xe9", &outputs.decisions),
            ("count", "0xe8", &outputs.statistics),
        ];
        for (name, port, path) in logs {
            let path = escape(path);
            command.args(["-chardev", &format!("file,id={name},path={path}")]);
            command.args([
                "-device",
                &format!("isa-debugcon,iobase={port},chardev={name}"),
            ]);
        }
        let volume_mode = match self.is_image_kept {
            true => "cache=writeback",
            false => "snapshot=on",
        };
        let disks = [(&self.image, volume_mode), (&self.swap, "cache=unsafe")];
        for (number, (path, mode)) in disks.into_iter().enumerate() {
            let path = escape(path);
            let drive = format!("if=none,id=disk{number},file={path},format=raw,{mode}");
            let device =
                format!("virtio-blk-device,drive=disk{number},bus=virtio-mmio-bus.{number}");
            command.args(["-drive", &drive, "-device", &device]);
        }
        command.arg("-kernel").arg(find_kernel()?.join("kernel"));
        command.args(["-append", &self.parameters]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        Ok(command)
    }
}

/// The folder with the kernel.
pub fn find_kernel() -> Result<PathBuf, Refusal> {
    tidemark_parts::KERNEL.find()
}

/// Returns the processor of this machine, where its KVM can be opened.
pub fn find_kvm() -> Result<Processor, Refusal> {
    let opened = std::fs::OpenOptions::new().read(true).write(true).open(KVM);
    match opened {
        Ok(_) => Ok(Processor::Hosts),
        Err(error) => refuse!("`{KVM}`: {}", plain(&error)),
    }
}

/// A path among the emulator's options, where a comma ends a value unless it is doubled.
fn escape(path: &std::path::Path) -> String {
    path.display().to_string().replace(',', ",,")
}

/// The lines seen of the console.
struct Shown {
    text: Vec<u8>,
    /// The machine has ended by itself.
    is_over: bool,
}

impl Shown {
    fn last_lines(&self) -> String {
        let text = String::from_utf8_lossy(&self.text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(LINES_SHOWN)..].join(" | ")
    }

    /// The last lines of the kernel itself.
    fn told(&self) -> String {
        let text = String::from_utf8_lossy(&self.text);
        let lines: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("kernel: "))
            .collect();
        lines[lines.len().saturating_sub(LINES_TOLD)..].join(" | ")
    }
}

/// Shows the console until it is closed or the time is over.
fn show(child: &mut Child, deadline: Instant) -> Shown {
    let console = follow(child);
    let mut shown = Shown {
        text: vec![],
        is_over: false,
    };
    loop {
        match console.recv_timeout(LOOK) {
            Ok(bytes) => {
                let mut out = std::io::stdout().lock();
                // A closed console does not keep the machine from its end.
                let _ = out.write_all(&bytes).and_then(|()| out.flush());
                shown.text.extend_from_slice(&bytes);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                shown.is_over = true;
                return shown;
            }
        }
        if Instant::now() >= deadline {
            return shown;
        }
    }
}

/// Passes the output of the machine through a channel, which ends with the machine.
fn follow(child: &mut Child) -> Receiver<Vec<u8>> {
    let mut console = child.stdout.take().expect("its output is a pipe");
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = console.read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    receiver
}

/// The emulator's status is twice the kernel's value, and one.
fn judge(status: ExitStatus, shown: &Shown) -> Result<End, Refusal> {
    match status.code() {
        Some(0x21) => Ok(End::Success),
        Some(0x25) => Ok(End::Failure),
        Some(0x23) => refuse!("the kernel found a fault in itself: {}", shown.told()),
        // As shells and `timeout` say it.
        Some(127) => {
            refuse!("`{EMULATOR}` is not installed; as root: apt-get install qemu-system-x86")
        }
        Some(0x27) => refuse!("the kernel can't run so: {}", shown.told()),
        _ => refuse!(
            "`{EMULATOR}` ended early ({status}): {}",
            shown.last_lines()
        ),
    }
}
