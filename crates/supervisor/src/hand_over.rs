//! Hands over processes that outlive the program they were started by, from one supervisor to
//! another.
//!
//! `tidemark run` ends with the program that was named, as a shell expects. If other processes of
//! its tree are still there (a daemon, a background job), it starts `tidemark keep`, hands it
//! everything over its standard input, and goes. The processes notice nothing: they keep their
//! connections, and what they start from then on finds a supervisor at the socket. When the last
//! one ends, so does the keeper, and the swap file is gone.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use tidemark_partition::{Divider, Rule};

use crate::folder::PrivateFolder;
use crate::tree::{MemberState, Tree};

/// The time after the last process has ended in which another may come: a process that is not
/// managed itself may be about to start one that is.
const LINGERING: Duration = Duration::from_secs(1);

/// The number of files that travel with a message. The kernel takes 253.
const FILES_PER_MESSAGE: usize = 64;

/// The length of a message, which says how much is still to come.
const MESSAGE_BYTES: usize = 16;

/// The state that is handed over beside open files.
#[derive(Debug, Serialize, Deserialize)]
struct Estate {
    folder: PrivateFolder,
    has_decisions: bool,
    has_calls: bool,
    /// The name of the rule by which memory is divided, and the frames left to each.
    division: (String, u64),
    members: Vec<MemberState>,
}

/// Takes over what is handed over at `socket`, and stays until the last process has ended.
///
/// # Errors
/// Nothing is handed over there.
pub fn keep(socket: BorrowedFd<'_>) -> std::io::Result<()> {
    let (mut tree, _folder) = receive(socket)?;
    let mut last_seen = Instant::now();
    while last_seen.elapsed() < LINGERING {
        tree.wait();
        if tree.is_needed() {
            last_seen = Instant::now();
        }
    }
    tree.close();
    Ok(())
}

/// Starts a keeper for `tree`, whose socket is in `folder`.
pub fn hand_over(tree: Tree, folder: PrivateFolder) -> std::io::Result<()> {
    let (here, there) = UnixStream::pair()?;
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg("keep")
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(there)));
    // A pipe that waits for the end of the output must not wait for the keeper; nor should what is
    // typed at the terminal reach it.
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0);
    command.spawn()?;
    let (divider, has_decisions) = (tree.divider(), tree.has_decisions());
    let has_calls = tree.has_calls();
    let (members, files) = tree.hand_over()?;
    let estate = Estate {
        folder,
        has_decisions,
        has_calls,
        division: (divider.rule.name().into(), divider.frames_min),
        members,
    };
    let text = serde_json::to_vec(&estate)?;
    // From here on the folder is the keeper's to remove.
    std::mem::forget(estate.folder);
    send(here.as_fd(), &text, &files)
}

fn send(socket: BorrowedFd<'_>, text: &[u8], files: &[OwnedFd]) -> std::io::Result<()> {
    let mut head = [0; MESSAGE_BYTES];
    head[..8].copy_from_slice(&(text.len() as u64).to_le_bytes());
    head[8..].copy_from_slice(&(files.len() as u64).to_le_bytes());
    sendmsg(
        socket,
        &[IoSlice::new(&head)],
        &mut Default::default(),
        SendFlags::NOSIGNAL,
    )?;
    for files in files.chunks(FILES_PER_MESSAGE) {
        let files: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_PER_MESSAGE))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let has_room = ancillary.push(SendAncillaryMessage::ScmRights(&files));
        assert!(has_room, "the space is made for that many");
        sendmsg(
            socket,
            &[IoSlice::new(&[0])],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        )?;
    }
    let mut rest = text;
    while !rest.is_empty() {
        let sent = rustix::net::send(socket, rest, SendFlags::NOSIGNAL)?;
        rest = &rest[sent..];
    }
    Ok(())
}

fn receive(socket: BorrowedFd<'_>) -> std::io::Result<(Tree, PrivateFolder)> {
    let mut head = [0; MESSAGE_BYTES];
    receive_all(socket, &mut head)?;
    let word = |at: usize| {
        let bytes = head[at..at + 8].try_into().expect("eight bytes");
        usize::try_from(u64::from_le_bytes(bytes)).unwrap_or(usize::MAX)
    };
    let (text_bytes, files_due) = (word(0), word(8));
    if text_bytes > 1 << 24 || files_due > 1 << 12 {
        return Err(std::io::ErrorKind::InvalidData.into());
    }
    let mut files = vec![];
    while files.len() < files_due {
        let before = files.len();
        receive_files(socket, &mut files)?;
        if files.len() == before {
            return Err(std::io::ErrorKind::InvalidData.into());
        }
    }
    let mut text = vec![0; text_bytes];
    receive_all(socket, &mut text)?;
    let estate: Estate = serde_json::from_slice(&text)?;
    let mut tree = Tree::take_over(
        estate.members,
        files,
        estate.has_decisions,
        estate.has_calls,
    )?;
    let (rule, frames_min) = estate.division;
    tree.divide_by(Divider {
        rule: Rule::find(&rule).ok_or(std::io::ErrorKind::InvalidData)?,
        frames_min,
    });
    Ok((tree, estate.folder))
}

fn receive_files(socket: BorrowedFd<'_>, files: &mut Vec<OwnedFd>) -> std::io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_PER_MESSAGE))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut parts = [IoSliceMut::new(&mut byte)];
    recvmsg(socket, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(more) = message {
            files.extend(more);
        }
    }
    Ok(())
}

fn receive_all(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> std::io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        let read = rustix::io::read(socket, &mut bytes[filled..])?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        filled += read;
    }
    Ok(())
}
