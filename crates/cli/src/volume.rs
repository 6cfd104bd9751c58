//! `tidemark volume`: VMUFAT volumes in files, which small kernels mount.
//!
//! An image is read whole, changed in memory, and put in its own place when all is done: a command
//! that fails or is killed leaves the volume as it was.

mod image;
mod view;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use tidemark_supervisor::program::plain;
use tidemark_vmufat::{BLOCK_BYTES, Copying, Image, Kind, Layout, NewFile, Timestamp, Volume};

use self::image::{moment, name_of, new_name, open, opened, save};
use crate::exit::{Exit, Refusal, refuse};
use crate::files::Files;
use crate::output;
use crate::output::say;
use crate::traces::Output;

/// Makes and fills VMUFAT volumes, the file system of memory cards, for small kernels
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status of `check`: 0 if nothing is wrong, 1 if something was found, mended \
    or not, 2 if it could not be done."
)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

/// The things that can be done to a volume.
#[derive(Debug, Subcommand)]
enum Action {
    /// Makes an empty volume
    Make(Make),
    /// Lists the files of a volume
    Ls(List),
    /// Copies files into a volume
    ///
    /// Files take whole blocks of 512 bytes: the last is filled with zeros. A file of the same name
    /// is replaced.
    Put(Put),
    /// Copies a file out of a volume
    ///
    /// A volume has whole blocks of 512 bytes and no length of the last: the copy ends with the
    /// zeros that filled it, unless `--trim` leaves them out.
    Get(Get),
    /// Deletes files of a volume
    Rm(Remove),
    /// Finds damage of a volume, and repairs it with `--repair`
    Check(Check),
}

#[derive(Debug, Args)]
struct Make {
    /// The file for the volume
    image: PathBuf,
    /// The number of blocks of 512 bytes it has, 256 to 65536; 256 are a memory card
    #[arg(long, value_name = "NUMBER", default_value_t = 256)]
    blocks: u32,
    /// Let files use the blocks that a memory card hides
    #[arg(long)]
    all_blocks: bool,
    /// Its creation date, in place of now: YYYY-MM-DD, or YYYY-MM-DDTHH:MM:SS
    #[arg(long, value_name = "DATE")]
    date: Option<String>,
    /// Replace IMAGE if it exists
    #[arg(long)]
    force: bool,
}

#[derive(Debug, Args)]
struct List {
    /// The volume; `-` for standard input
    image: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Put {
    /// The volume
    image: PathBuf,
    /// The files that go in
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The name of the file there, in at most 12 bytes, of which `\xNN` is any [default: its
    /// own name]
    #[arg(long)]
    name: Option<String>,
    /// A game for the card's own processor, stored in one piece from block 0 on
    #[arg(long)]
    game: bool,
    /// Mark it as protected from copying to other cards
    #[arg(long)]
    protect: bool,
    /// Its creation date, in place of now: YYYY-MM-DD, or YYYY-MM-DDTHH:MM:SS
    #[arg(long, value_name = "DATE")]
    date: Option<String>,
}

#[derive(Debug, Args)]
struct Get {
    /// The volume; `-` for standard input
    image: PathBuf,
    /// The file's name there
    name: String,
    /// The output file; `-` for standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Leave out the zeros at the end of the last block
    #[arg(long)]
    trim: bool,
}

#[derive(Debug, Args)]
struct Remove {
    /// The volume
    image: PathBuf,
    /// The files' names there
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
}

#[derive(Debug, Args)]
struct Check {
    /// The volume; `-` for standard input
    image: PathBuf,
    /// Mend what is found
    #[arg(long)]
    repair: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Files for Arguments {
    fn reads(&self) -> Vec<PathBuf> {
        match &self.action {
            Action::Ls(List { image, .. }) | Action::Get(Get { image, .. }) => vec![image.clone()],
            Action::Check(check) if !check.repair => vec![check.image.clone()],
            Action::Put(put) => put.files.clone(),
            // What is changed in its place is written alone.
            Action::Make(_) | Action::Rm(_) | Action::Check(_) => vec![],
        }
    }

    fn writes(&self) -> Vec<(&'static str, PathBuf)> {
        match &self.action {
            Action::Get(get) => vec![("-o", get.output.clone())],
            Action::Make(Make { image, .. })
            | Action::Put(Put { image, .. })
            | Action::Rm(Remove { image, .. }) => vec![("IMAGE", image.clone())],
            Action::Check(check) if check.repair => vec![("IMAGE", check.image.clone())],
            Action::Ls(_) | Action::Check(_) => vec![],
        }
    }
}

/// Does what was asked for.
pub fn run(arguments: Arguments) -> Result<Exit, Refusal> {
    match arguments.action {
        Action::Make(arguments) => make(&arguments),
        Action::Ls(arguments) => list(&arguments),
        Action::Put(arguments) => put(&arguments),
        Action::Get(arguments) => get(&arguments),
        Action::Rm(arguments) => remove(&arguments),
        Action::Check(arguments) => check(&arguments),
    }
}

fn make(arguments: &Make) -> Result<Exit, Refusal> {
    let Make { image, blocks, .. } = arguments;
    let (Some(layout), Some(empty)) = (Layout::new(*blocks), Image::zeroed(*blocks)) else {
        refuse!("`--blocks {blocks}`: a volume has 256 to 65536 blocks");
    };
    let layout = match arguments.all_blocks {
        true => layout.without_hidden(),
        false => layout,
    };
    let made = moment(arguments.date.as_deref())?;
    let is_there = std::fs::metadata(image).is_ok_and(|found| found.is_file() && found.len() > 0);
    if is_there && !arguments.force {
        refuse!(
            "`{}`: is there already; name another file, or replace it with `--force`",
            image.display()
        );
    }
    let volume = opened(image, Volume::format(empty, layout, made))?;
    save(image, volume)
}

fn list(arguments: &List) -> Result<Exit, Refusal> {
    let (name, volume) = open(&arguments.image)?;
    output::print(&match arguments.json {
        true => view::list_json(&volume),
        false => view::list(&name, &volume),
    });
    if !volume.findings().is_empty() {
        let path = arguments.image.display();
        say!("tidemark: `{name}`: is damaged; `tidemark volume check {path}` says how");
    }
    Ok(Exit::Fine)
}

fn put(arguments: &Put) -> Result<Exit, Refusal> {
    let created = moment(arguments.date.as_deref())?;
    if let (Some(name), [_, second, ..]) = (&arguments.name, &arguments.files[..]) {
        refuse!(
            "`--name {name}`: is for one file; put `{}` by itself",
            second.display()
        );
    }
    let mut volume = image::open_for_change(&arguments.image)?;
    for path in &arguments.files {
        let file = new_file(arguments, path, created)?;
        let bytes = image::read_file(path)?;
        let written = volume.write(&file, &bytes);
        opened(&arguments.image, written)?;
    }
    save(&arguments.image, volume)
}

fn new_file(arguments: &Put, path: &Path, created: Timestamp) -> Result<NewFile, Refusal> {
    Ok(NewFile {
        name: match &arguments.name {
            Some(name) => name_of(name)?,
            None => new_name(path)?,
        },
        kind: match arguments.game {
            true => Kind::Game,
            false => Kind::Data,
        },
        copying: match arguments.protect {
            true => Copying::Forbidden,
            false => Copying::Allowed,
        },
        created,
    })
}

fn get(arguments: &Get) -> Result<Exit, Refusal> {
    let (_, mut volume) = open(&arguments.image)?;
    let read = volume.read(&name_of(&arguments.name)?);
    let mut bytes = opened(&arguments.image, read)?;
    let filling = filling(&bytes);
    if arguments.trim {
        bytes.truncate(bytes.len() - filling);
    } else if filling > 0 {
        say!(
            "tidemark: `{}`: ends with {filling} zeros that may be filling, since a volume has \
             whole blocks of {BLOCK_BYTES} bytes; `--trim` leaves them out",
            arguments.name
        );
    }
    let output = Output::open(&arguments.output, false)?;
    let mut out = output.writer()?;
    match out.write_all(&bytes).and_then(|()| out.flush()) {
        Ok(()) => {}
        // A reader that has gone away wants no more.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        Err(error) => refuse!("`{}`: {}", arguments.output.display(), plain(&error)),
    }
    drop(out);
    output.close()?;
    Ok(Exit::Fine)
}

/// The number of zeros at the end of the last block.
fn filling(bytes: &[u8]) -> usize {
    let last = bytes.rchunks(BLOCK_BYTES).next().unwrap_or_default();
    last.iter().rev().take_while(|byte| **byte == 0).count()
}

fn remove(arguments: &Remove) -> Result<Exit, Refusal> {
    let mut volume = image::open_for_change(&arguments.image)?;
    for name in &arguments.names {
        let deleted = volume.delete(&name_of(name)?);
        opened(&arguments.image, deleted)?;
    }
    save(&arguments.image, volume)
}

fn check(arguments: &Check) -> Result<Exit, Refusal> {
    let (name, mut volume) = match arguments.repair {
        true => (
            arguments.image.display().to_string(),
            image::open_for_change(&arguments.image)?,
        ),
        false => open(&arguments.image)?,
    };
    let findings = match arguments.repair {
        true => opened(&arguments.image, volume.repair())?,
        false => volume.findings().to_vec(),
    };
    let text = match arguments.json {
        true => view::check_json(&volume, &findings, arguments.repair),
        false => view::check(&name, &volume, &findings, arguments.repair),
    };
    if findings.is_empty() {
        output::print(&text);
        return Ok(Exit::Fine);
    }
    if arguments.repair {
        save(&arguments.image, volume)?;
    }
    output::print(&text);
    Ok(Exit::Found)
}
