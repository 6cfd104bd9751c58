//! Engines by their handles, and the settings that C gives.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidemark_regions::{Builder, Engine, SWAP_BYTES};
use tidemark_stores::{Behind, Choice};

use crate::status::Trouble;
use crate::types::{tidemark_engine, tidemark_settings};

static ENGINES: Mutex<Engines> = Mutex::new(Engines {
    known: BTreeMap::new(),
    made: 0,
    chosen: None,
    default: None,
});

/// The engines that handles name.
pub(crate) struct Engines {
    known: BTreeMap<usize, Engine>,
    /// The number of handles so far: none is given out twice.
    made: usize,
    /// The handle of the one in use.
    chosen: Option<usize>,
    /// The one in use where none was chosen.
    default: Option<Engine>,
}

impl Engines {
    /// Gives an engine a handle.
    pub(crate) fn add(engine: Engine) -> *mut tidemark_engine {
        let mut engines = Engines::lock();
        engines.made += 1;
        let handle = engines.made;
        engines.known.insert(handle, engine);
        handle as *mut tidemark_engine
    }

    /// Takes a handle back.
    pub(crate) fn remove(handle: *mut tidemark_engine) -> Result<(), Trouble> {
        let removed = {
            let mut engines = Engines::lock();
            let removed = engines.known.remove(&(handle as usize));
            engines.chosen = engines.chosen.filter(|&chosen| chosen != handle as usize);
            removed
        };
        // Its end may wait for its thread: without the lock.
        removed.map(drop).ok_or_else(unknown)
    }

    /// Makes the engine of `handle` the one in use, or the default engine without one.
    pub(crate) fn choose(handle: *mut tidemark_engine) -> Result<(), Trouble> {
        let mut engines = Engines::lock();
        if !handle.is_null() && !engines.known.contains_key(&(handle as usize)) {
            return Err(unknown());
        }
        engines.chosen = (!handle.is_null()).then_some(handle as usize);
        Ok(())
    }

    /// The engine that a handle names, or the one in use.
    pub(crate) fn find(handle: *mut tidemark_engine) -> Result<Engine, Trouble> {
        let mut engines = Engines::lock();
        let named = (!handle.is_null()).then_some(handle as usize);
        if let Some(handle) = named.or(engines.chosen) {
            return engines.known.get(&handle).cloned().ok_or_else(unknown);
        }
        if let Some(default) = &engines.default {
            return Ok(default.clone());
        }
        let made = Engine::builder().start()?;
        engines.default = Some(made.clone());
        Ok(made)
    }

    fn lock() -> MutexGuard<'static, Engines> {
        ENGINES.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unknown() -> Trouble {
    Trouble::argument("`engine` is not open; needs one of `tidemark_open`")
}

/// The builder with `settings`.
///
/// # Safety
/// Its texts end with a zero byte, or are null.
pub(crate) unsafe fn builder(settings: Option<tidemark_settings>) -> Result<Builder, Trouble> {
    let mut builder = Engine::builder();
    let Some(settings) = settings else {
        return Ok(builder);
    };
    if settings.memory > 0 {
        builder = builder.memory(settings.memory);
    }
    if settings.swap_size > 0 {
        builder = builder.swap_size(settings.swap_size);
    }
    // SAFETY: the caller's.
    let (policy, folder, store) = unsafe {
        (
            utf8("policy", settings.policy)?,
            text(settings.swap_folder),
            utf8("store", settings.store)?,
        )
    };
    if let Some(policy) = policy {
        builder = builder.policy(policy);
    }
    if let Some(folder) = folder {
        builder = builder.swap_folder(Path::new(OsStr::from_bytes(folder.to_bytes())));
    }
    match store {
        Some(store) => with_store(builder, store, settings.swap_size),
        None => Ok(builder),
    }
}

/// The builder with a store for pages that leave.
fn with_store(builder: Builder, name: &str, bytes: u64) -> Result<Builder, Trouble> {
    let choice = Choice::parse(name);
    let choice =
        choice.map_err(|needs| Trouble::argument(format!("`store` is `{name}`; {needs}")))?;
    let builder = match choice.is_compressed {
        true => builder.compress(),
        false => builder,
    };
    match choice.behind {
        Behind::Nothing => Ok(builder.compress_alone()),
        Behind::File => Ok(builder),
        Behind::Server(address) => {
            let bytes = if bytes > 0 { bytes } else { SWAP_BYTES };
            Ok(builder.store(tidemark_stores::swap(&address, bytes)?))
        }
    }
}

/// A text of the argument `name`.
///
/// # Safety
/// It ends with a zero byte, or is null.
pub(crate) unsafe fn utf8<'a>(
    name: &str,
    given: *const c_char,
) -> Result<Option<&'a str>, Trouble> {
    // SAFETY: the caller's.
    let given = unsafe { text(given) }.map(CStr::to_str).transpose();
    given.map_err(|_| Trouble::argument(format!("`{name}` is not UTF-8; needs a text that is")))
}

/// # Safety
/// It ends with a zero byte, or is null.
pub(crate) unsafe fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    // SAFETY: the caller's; it is not null.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}
