//! The space-time product: how much memory a program holds for how long.
//!
//! Memory is held while the program runs, while it waits for pages, and while the policy works.
//! Denning's estimate counts the first alone. Leaving out the others flatters a policy that pages
//! or manages much; so here every part is counted, and the estimate stands beside the whole.
//!
//! A fixed-space policy holds its frames all the time. A variable-space policy holds what is
//! resident: while it waits for a page, the set with that page in it.

use super::residence::Totals;

/// The costs of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// A tick of virtual time, in ns: an instruction, or a reference.
    pub tick_ns: f64,
    /// The wait for a page that was resident before, in ns.
    pub page_in_ns: f64,
    /// The wait for a page that never was, in ns: to be filled with zeros, or read from a file.
    pub first_use_ns: f64,
    /// The policy's work at a fault, in ns.
    pub choice_ns: f64,
    /// The policy's work to look at one resident page for its use, in ns.
    pub scan_page_ns: f64,
    /// Virtual time from one look at all resident pages to the next, in ticks; 0 for never.
    pub scan_every_ticks: u64,
}

/// Memory held over time, in page-nanoseconds, by what the time was spent on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SpaceTime {
    /// While the program ran.
    pub running: f64,
    /// While it waited for pages.
    pub waiting: f64,
    /// While the policy worked.
    pub managing: f64,
    /// The program's whole time, in ns: run, wait and management.
    pub elapsed_ns: f64,
}

impl SpaceTime {
    /// The space-time product.
    pub fn total(&self) -> f64 {
        self.running + self.waiting + self.managing
    }

    /// Denning's estimate: memory held in virtual time, without page-in delay and management.
    pub fn without_delays(&self) -> f64 {
        self.running
    }

    /// By which factor the estimate is too low.
    pub fn understated(&self) -> f64 {
        self.total() / self.without_delays()
    }

    /// Memory held, averaged over the whole time, in pages.
    pub fn pages_mean(&self) -> f64 {
        self.total() / self.elapsed_ns
    }
}

/// The space-time of a policy with `pages` frames for a program of `duration_ticks` that has
/// `first` first uses and `returns` page-ins.
pub fn fixed_space(
    pages: u64,
    duration_ticks: u64,
    first: u64,
    returns: u64,
    costs: &Costs,
) -> SpaceTime {
    let held = pages as f64;
    let running_ns = duration_ticks as f64 * costs.tick_ns;
    let waiting_ns = first as f64 * costs.first_use_ns + returns as f64 * costs.page_in_ns;
    let scans = costs.scans_in(duration_ticks as f64);
    let managing_ns =
        (first + returns) as f64 * costs.choice_ns + scans * held * costs.scan_page_ns;
    SpaceTime {
        running: held * running_ns,
        waiting: held * waiting_ns,
        managing: held * managing_ns,
        elapsed_ns: running_ns + waiting_ns + managing_ns,
    }
}

/// The space-time of a variable-space policy whose run had the sums `totals`.
pub fn variable_space(totals: &Totals, costs: &Costs) -> SpaceTime {
    let running_ns = totals.duration as f64 * costs.tick_ns;
    let waiting_ns =
        totals.first as f64 * costs.first_use_ns + totals.returns as f64 * costs.page_in_ns;
    let managing_ns = totals.faults() as f64 * costs.choice_ns
        + costs.scans_in(totals.page_time as f64) * costs.scan_page_ns;
    let at_faults = (totals.pages_at_first + totals.pages_at_returns) as f64;
    SpaceTime {
        running: totals.page_time as f64 * costs.tick_ns,
        waiting: totals.pages_at_first as f64 * costs.first_use_ns
            + totals.pages_at_returns as f64 * costs.page_in_ns,
        // A look at `n` pages takes as long as `n` looks, for which `n` pages are held.
        managing: at_faults * costs.choice_ns
            + costs.scans_in(totals.square_time as f64) * costs.scan_page_ns,
        elapsed_ns: running_ns + waiting_ns + managing_ns,
    }
}

impl Costs {
    /// `amount_ticks` summed over the looks only, instead of over all ticks.
    fn scans_in(&self, amount_ticks: f64) -> f64 {
        match self.scan_every_ticks {
            0 => 0.0,
            every => amount_ticks / every as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::reference_string::ReferenceString;
    use super::super::working_set::run_working_set;
    use super::*;

    const COSTS: Costs = Costs {
        tick_ns: 2.0,
        page_in_ns: 100.0,
        first_use_ns: 10.0,
        choice_ns: 5.0,
        scan_page_ns: 1.0,
        scan_every_ticks: 10,
    };

    #[test]
    fn a_fixed_space_is_held_all_the_time() {
        let cost = fixed_space(3, 50, 3, 4, &COSTS);
        // 100 ns of running, 430 of waiting, 35 + 15 of management.
        assert_eq!(cost.elapsed_ns, 580.0);
        assert_eq!(
            (cost.running, cost.waiting, cost.managing),
            (300.0, 1290.0, 150.0)
        );
        assert_eq!(cost.total(), 3.0 * 580.0);
        assert_eq!(cost.pages_mean(), 3.0);
        assert_eq!(cost.without_delays(), 300.0);
        assert_eq!(cost.understated(), 5.8);
    }

    #[test]
    fn a_variable_space_is_held_as_it_is_at_each_fault() {
        // Window 2: one, two and three pages at first uses; 0 comes back when 1 and it have left.
        let totals = run_working_set(ReferenceString::new(&[0, 1, 0, 2, 2, 0], 3), 2);
        assert_eq!((totals.first, totals.returns), (3, 1));
        assert_eq!(
            (totals.pages_at_first, totals.pages_at_returns),
            (1 + 2 + 3, 2)
        );
        let free_scans = Costs {
            scan_page_ns: 0.0,
            ..COSTS
        };
        let cost = variable_space(&totals, &free_scans);
        assert_eq!(cost.waiting, 6.0 * 10.0 + 2.0 * 100.0);
        assert_eq!(cost.managing, 8.0 * 5.0);
        assert_eq!(cost.running, totals.page_time as f64 * 2.0);
    }

    #[test]
    fn a_constant_variable_space_costs_what_a_fixed_one_does() {
        let totals = Totals {
            duration: 1000,
            first: 0,
            returns: 10,
            page_time: 7000,
            square_time: 49_000,
            pages_max: 7,
            pages_at_first: 0,
            pages_at_returns: 70,
        };
        assert_eq!(
            variable_space(&totals, &COSTS),
            fixed_space(7, 1000, 0, 10, &COSTS)
        );
    }

    #[test]
    fn without_costs_the_estimate_is_the_whole() {
        let free = Costs {
            page_in_ns: 0.0,
            first_use_ns: 0.0,
            choice_ns: 0.0,
            scan_every_ticks: 0,
            ..COSTS
        };
        let cost = fixed_space(3, 50, 3, 4, &free);
        assert_eq!(cost.total(), cost.without_delays());
    }
}
