//! The contents of a module: the names and types of its functions, and of those it may import.
//!
//! Version 1 of the interface, as `docs/formats/policy-module-v1.md` describes it for those who
//! write modules. All numbers are integers; a frame is an `i32` that is read as unsigned.

use std::fmt;

use tidemark_core::seams::policy::{Arrival, Cause, Departure, Sees};
use wasmi::{Caller, Error, Instance, Linker, Store, StoreLimits, TypedFunc, WasmParams};
use wasmi::{WasmResults, errors::HostError};

use crate::module::Wrong;

/// The module that imports are from.
pub const IMPORTS: &str = "tidemark";
/// Says that this is a policy of this version, and what it must see.
pub const SEES: &str = "tidemark_policy_v1";
/// The answer of a call that names no frame.
pub const NONE: i32 = -1;

/// Every function a module may export, with its type.
pub const EXPORTS: [(&str, &str); 17] = [
    (SEES, "() -> i32"),
    ("summary", "() -> i32"),
    ("lineage", "() -> i32"),
    ("start", "(i32, i32, i64)"),
    ("page_entered", "(i32, i32, i64, i32, i32, i32)"),
    ("page_left", "(i32, i32, i64, i32)"),
    ("choose", "() -> i32"),
    ("page_rescued", "(i32)"),
    ("page_missed", "(i32, i64)"),
    ("page_referenced", "(i32)"),
    ("page_foreseen", "(i32, i64)"),
    ("clock_moved", "(i32, i64)"),
    ("space_ended", "(i32)"),
    ("trim", "() -> i32"),
    ("clean", "() -> i32"),
    ("tick", "()"),
    ("resize", "(i32)"),
];

/// The state from which imports are answered at once, without leaving the module.
#[derive(Debug, Default)]
pub struct State {
    /// The limits of the module's memory.
    pub limits: StoreLimits,
    /// The time of the event, in nanoseconds.
    pub now_ns: i64,
    /// The number of frames that hold nothing.
    pub frames_free: i32,
    /// The number of pages that are being written.
    pub laundry: i32,
    /// True if the first answer about a page that has come says nothing of a second use.
    pub answers_arrival: i32,
}

/// A question about a frame. The call is suspended until it has been answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Question {
    /// The question.
    pub about: About,
    /// The frame.
    pub frame: u32,
}

/// The questions that can be asked about a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum About {
    /// True if it holds a page that may leave.
    MayLeave,
    /// True if it was used since this was last asked.
    Referenced,
    /// Its page is to be unmapped.
    Unmap,
    /// True if its page must be written.
    Modified,
    /// True if its page may have to be written.
    MayBeModified,
}

impl fmt::Display for Question {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("asks about a frame where none can be asked about")
    }
}

impl HostError for Question {}

/// The functions of a module.
#[derive(Clone, Copy)]
pub struct Calls {
    /// Says what the policy must see.
    pub sees: TypedFunc<(), i32>,
    /// Makes the tables: the most frames there can be, those there are, the seed.
    pub start: Option<TypedFunc<(i32, i32, i64), ()>>,
    /// Frame, object, index, cause, space, whether it is external.
    pub page_entered: TypedFunc<(i32, i32, i64, i32, i32, i32), ()>,
    /// Frame, object, index, departure.
    pub page_left: TypedFunc<(i32, i32, i64, i32), ()>,
    /// Names a frame.
    pub choose: TypedFunc<(), i32>,
    /// Frame.
    pub page_rescued: Option<TypedFunc<i32, ()>>,
    /// Object, index.
    pub page_missed: Option<TypedFunc<(i32, i64), ()>>,
    /// Frame.
    pub page_referenced: Option<TypedFunc<i32, ()>>,
    /// Frame, the tick of its next use.
    pub page_foreseen: Option<TypedFunc<(i32, i64), ()>>,
    /// Space, ticks.
    pub clock_moved: Option<TypedFunc<(i32, i64), ()>>,
    /// Space.
    pub space_ended: Option<TypedFunc<i32, ()>>,
    /// Names a frame.
    pub trim: Option<TypedFunc<(), i32>>,
    /// Names a frame.
    pub clean: Option<TypedFunc<(), i32>>,
    /// Time has passed.
    pub tick: Option<TypedFunc<(), ()>>,
    /// The number of frames now.
    pub resize: Option<TypedFunc<i32, ()>>,
}

impl Calls {
    /// Finds the functions of `instance`.
    ///
    /// # Errors
    /// If one that is needed is missing, or one has another type.
    pub fn find(store: &Store<State>, instance: Instance) -> Result<Calls, Wrong> {
        Ok(Calls {
            sees: need(store, instance, SEES)?,
            start: find(store, instance, "start")?,
            page_entered: need(store, instance, "page_entered")?,
            page_left: need(store, instance, "page_left")?,
            choose: need(store, instance, "choose")?,
            page_rescued: find(store, instance, "page_rescued")?,
            page_missed: find(store, instance, "page_missed")?,
            page_referenced: find(store, instance, "page_referenced")?,
            page_foreseen: find(store, instance, "page_foreseen")?,
            clock_moved: find(store, instance, "clock_moved")?,
            space_ended: find(store, instance, "space_ended")?,
            trim: find(store, instance, "trim")?,
            clean: find(store, instance, "clean")?,
            tick: find(store, instance, "tick")?,
            resize: find(store, instance, "resize")?,
        })
    }

    /// The name of the call that a policy which sees that much can't do without, if it is missing.
    pub fn find_missing(&self, sees: Sees) -> Option<&'static str> {
        match sees {
            Sees::References if self.page_referenced.is_none() => Some("page_referenced"),
            Sees::Future if self.page_foreseen.is_none() => Some("page_foreseen"),
            Sees::Faults | Sees::Bits | Sees::References | Sees::Future => None,
        }
    }
}

/// The function `name` of `instance`, which must be there.
fn need<P: WasmParams, R: WasmResults>(
    store: &Store<State>,
    instance: Instance,
    name: &'static str,
) -> Result<TypedFunc<P, R>, Wrong> {
    let missing = Wrong::MissingExport {
        name,
        signature: signature_of(name),
    };
    find(store, instance, name)?.ok_or(missing)
}

/// The function `name` of `instance`, if it is there.
pub fn find<P: WasmParams, R: WasmResults>(
    store: &Store<State>,
    instance: Instance,
    name: &'static str,
) -> Result<Option<TypedFunc<P, R>>, Wrong> {
    let Some(found) = instance.get_func(store, name) else {
        return Ok(None);
    };
    let typed = found.typed(store).map_err(|_| Wrong::WrongExport {
        name,
        signature: signature_of(name),
    })?;
    Ok(Some(typed))
}

/// Links the functions that a module may import.
pub fn link(linker: &mut Linker<State>) -> Result<(), Error> {
    for (name, about) in [
        ("may_leave", About::MayLeave),
        ("take_referenced", About::Referenced),
        ("is_modified", About::Modified),
        ("may_be_modified", About::MayBeModified),
    ] {
        linker.func_wrap(IMPORTS, name, move |frame: i32| ask::<i32>(about, frame))?;
    }
    linker.func_wrap(IMPORTS, "unmap", |frame: i32| {
        ask::<()>(About::Unmap, frame)
    })?;
    let now = |caller: Caller<'_, State>| caller.data().now_ns;
    linker.func_wrap(IMPORTS, "now", now)?;
    let free = |caller: Caller<'_, State>| caller.data().frames_free;
    linker.func_wrap(IMPORTS, "frames_free", free)?;
    let laundry = |caller: Caller<'_, State>| caller.data().laundry;
    linker.func_wrap(IMPORTS, "laundry", laundry)?;
    let arrival = |caller: Caller<'_, State>| caller.data().answers_arrival;
    linker.func_wrap(IMPORTS, "answers_arrival", arrival)?;
    Ok(())
}

/// The information that a policy sees, by its number.
pub fn sees(number: i32) -> Option<Sees> {
    match number {
        0 => Some(Sees::Faults),
        1 => Some(Sees::Bits),
        2 => Some(Sees::References),
        3 => Some(Sees::Future),
        _ => None,
    }
}

/// The numbers that tell an arrival: object, index, cause, space, whether it is external.
pub fn arrival(arrival: &Arrival) -> (i32, i64, i32, i32, i32) {
    let cause = match arrival.cause {
        Cause::ZeroFill => 0,
        Cause::ZeroAhead => 1,
        Cause::Fetched => 2,
        Cause::Prefetched => 3,
        Cause::Copied => 4,
        Cause::Adopted => 5,
        Cause::Kept => 6,
        Cause::Cleaned => 7,
    };
    let page = arrival.page;
    (
        page.object.0.cast_signed(),
        page.index.cast_signed(),
        cause,
        arrival.space.0.cast_signed(),
        i32::from(arrival.is_external),
    )
}

/// The number that tells a departure.
pub fn departure(departure: Departure) -> i32 {
    match departure {
        Departure::Evicted => 0,
        Departure::Discarded => 1,
    }
}

fn ask<T>(about: About, frame: i32) -> Result<T, Error> {
    let frame = frame.cast_unsigned();
    Err(Error::host(Question { about, frame }))
}

fn signature_of(name: &str) -> &'static str {
    let known = EXPORTS.iter().find(|(known, _)| *known == name);
    known.expect("each name looked up is in the list").1
}
