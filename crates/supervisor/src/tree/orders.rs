//! Orders: what is asked of a run at its control socket, carried out.

use tidemark_core::id::PAGE_BYTES;
use tidemark_partition::FRAMES_MIN;
use tidemark_results::control::{Reply, Request};
use tidemark_results::text::bytes;
use tidemark_results::{Refusal, metrics, refuse};
use tidemark_tasks::{By, Stage};

use super::{Settings, Tree};
use crate::load_controls;
use crate::management::MEMORY_BYTES_MIN;
use crate::requests::Requests;
use crate::time::now_ns;
use crate::timeline::Timeline;

/// The name, in a timeline, of the cause of what is done by request at the control socket.
const REQUEST: &str = "a request";

impl Tree {
    /// Takes requests from here on, for a run that was begun with these `settings`.
    pub fn take_requests(&mut self, requests: Requests, settings: Settings) {
        self.requests = requests;
        self.settings = settings;
    }

    /// Writes a timeline from here on.
    pub fn keep_timeline(&mut self, timeline: Option<Timeline>) {
        self.timeline = timeline;
    }

    /// Writes the state of tasks to the timeline, if there is one.
    pub(super) fn note_timeline(&mut self) {
        if let Some(mut timeline) = self.timeline.take() {
            timeline.note(&self.observe(), now_ns());
            self.timeline = Some(timeline);
        }
    }

    pub(super) fn end_timeline(&mut self) {
        self.note_timeline();
        let timeline = self.timeline.take();
        self.notes
            .extend(timeline.and_then(|timeline| timeline.end(now_ns())));
    }

    /// Has the timeline show that something was done to a task, or to the run.
    pub(super) fn mark(&mut self, name: &str, pid: Option<u32>) {
        if let Some(timeline) = &mut self.timeline {
            timeline.mark(name, pid, REQUEST, now_ns());
        }
    }

    /// Has the timeline show that a task is suspended for `by`, or goes on.
    pub(super) fn mark_suspension(&mut self, pid: u32, is_suspended: bool, by: By) {
        let by = match by {
            By::Request => REQUEST.to_owned(),
            By::Control => format!("load control {}", self.settings.load_control),
        };
        if let Some(timeline) = &mut self.timeline {
            timeline.mark_suspension(pid, is_suspended, &by, now_ns());
        }
    }

    /// Takes no more requests, and undoes what lasts of those that were carried out.
    pub(super) fn end_requests(&mut self) {
        self.requests = Requests::default();
        self.resume_all();
    }

    /// Carries out what is asked for, and moves replies along.
    pub(super) fn serve_requests(&mut self) {
        let mut requests = std::mem::take(&mut self.requests);
        requests.step(&mut |request| self.carry_out(request));
        self.requests = requests;
    }

    fn carry_out(&mut self, request: Request) -> Reply {
        match request {
            Request::Stats => Reply::Stats(Box::new(self.observe())),
            Request::Metrics => Reply::Metrics(metrics::open_metrics(&self.observe())),
            Request::Budget { bytes } => self.change_budget(bytes).into(),
            Request::Suspend { pid } => self.suspend(pid).into(),
            Request::Resume { pid } => self.resume(pid).into(),
            Request::Evict { pid } => self.evict(pid).into(),
            Request::Map { pid, cells } => match self.map(pid, cells) {
                Ok(map) => Reply::Map(Box::new(map)),
                Err(refusal) => Reply::Refused(refusal.to_string()),
            },
            Request::LoadControl { name: None } => {
                Reply::LoadControl(self.settings.load_control.into())
            }
            Request::LoadControl { name: Some(name) } => self.change_load_control(&name).into(),
            Request::Policy { name: None } => Reply::Policy(self.settings.policy.clone()),
            Request::Policy { name: Some(name) } => Reply::Refused(format!(
                "`policy {name}`: the policy can't be changed while tasks run; it is `{}`, and \
                 another run can begin with another",
                self.settings.policy
            )),
        }
    }

    /// Changes the memory of all tasks together, and divides it anew.
    fn change_budget(&mut self, budget_bytes: u64) -> Result<String, Refusal> {
        let tasks = (self.members.len() + self.awaited.len()) as u64;
        let least = MEMORY_BYTES_MIN.max(tasks * FRAMES_MIN * PAGE_BYTES);
        let most = self.shared.frames_max() * PAGE_BYTES;
        let asked = bytes(budget_bytes);
        if budget_bytes < least {
            let least = bytes(least);
            refuse!("a budget of {asked} is too small; the least is {least}");
        }
        if budget_bytes > most {
            let most = bytes(most);
            refuse!(
                "a budget of {asked} is too large; the most is {most}: begin a run that may have \
                 more"
            );
        }
        self.shared.set_frames_total(budget_bytes / PAGE_BYTES);
        self.mark(&format!("budget {asked}"), None);
        self.divide();
        let resident = self.shared.frames_resident() * PAGE_BYTES;
        let now = bytes(budget_bytes / PAGE_BYTES * PAGE_BYTES);
        Ok(match resident > budget_bytes {
            true => {
                let resident = bytes(resident);
                format!("the budget is {now}; {resident} are in use, and the rest is on its way")
            }
            false => format!("the budget is {now}"),
        })
    }

    /// Puts another load control in place of the one there is, whose tasks all go on.
    fn change_load_control(&mut self, name: &str) -> Result<String, Refusal> {
        let found = load_controls::find(name);
        let entry = found.map_err(|refusal| Refusal::new(format!("`load-control`: {refusal}")))?;
        let name = entry.description.name;
        if name == self.settings.load_control {
            return Ok(format!("the load control is `{name}`, as before"));
        }
        if let Some(why) = self.settings.unsuspendable {
            refuse!("`load-control {name}`: tasks can't be suspended: {why}");
        }
        // Marks of those that go on name the one that suspended them.
        self.control_load_by(entry);
        self.settings.load_control = name;
        self.mark(&format!("load control {name}"), None);
        self.divide();
        Ok(format!("the load control is `{name}`"))
    }

    fn suspend(&mut self, pid: u32) -> Result<String, Refusal> {
        let place = self.find_task(pid)?;
        if let Some(why) = self.settings.unsuspendable {
            refuse!("task {pid} can't be suspended: {why}");
        }
        if !self.members[place].is_answered() {
            refuse!("task {pid} can't be suspended: it waits for its first memory");
        }
        if self.is_suspended_by(&self.members[place], By::Request) {
            return Ok(format!("task {pid} is suspended, as before"));
        }
        self.request_suspension(place, true);
        Ok(format!("task {pid} is suspended"))
    }

    fn resume(&mut self, pid: u32) -> Result<String, Refusal> {
        let place = self.find_task(pid)?;
        let member = &self.members[place];
        let is_requested = self.is_suspended_by(member, By::Request);
        if self.is_suspended_by(member, By::Control) && !is_requested {
            let name = self.settings.load_control;
            refuse!("task {pid} is suspended by load control `{name}`, and has its turn by itself");
        }
        if !is_requested {
            return Ok(format!("task {pid} is not suspended, as before"));
        }
        self.request_suspension(place, false);
        Ok(format!("task {pid} goes on"))
    }

    fn evict(&mut self, pid: u32) -> Result<String, Refusal> {
        let place = self.find_task(pid)?;
        let task = self.members[place].task;
        match self.steward.stage(task) {
            None | Some(Stage::Coming) => refuse!("task {pid} has no memory yet"),
            Some(Stage::Suspended) => {
                return Ok(format!("task {pid} is suspended, and paged out as such"));
            }
            Some(Stage::Running | Stage::Evicting) => {}
        }
        self.mark("evict", Some(pid));
        self.tell_steward(|steward, now, words| steward.handle_eviction(now, words, task));
        Ok(format!("task {pid} is being paged out"))
    }

    pub(super) fn find_task(&self, pid: u32) -> Result<usize, Refusal> {
        let place = self.members.iter().position(|it| it.hello.pid == pid);
        match place {
            Some(place) => Ok(place),
            None => refuse!("there is no task {pid}; `stats` names those that there are"),
        }
    }
}
