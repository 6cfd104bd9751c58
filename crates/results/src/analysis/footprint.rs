//! The footprint: memory that is touched over time, beside what is allocated and mapped.

use serde::{Deserialize, Serialize};

use super::csv_option;

/// Memory touched, allocated and mapped, in equal intervals of virtual time. Amounts are in pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footprint {
    /// The virtual time of an interval; the last may be shorter.
    pub interval: u64,
    /// The intervals, in order.
    pub intervals: Vec<Interval>,
    /// Memory that was mapped at any time, by label, those with most pages that were never touched
    /// first; none where the trace tells no mappings.
    pub regions: Vec<MappedRegion>,
}

/// One interval. What processes share is touched once, and is mapped in each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// The time at which it begins.
    pub from: u64,
    /// Different pages touched in it.
    pub touched: u64,
    /// Of those, the ones that were never touched before.
    pub new: u64,
    /// Pages that are mapped at its end and belong to no file, as heap and anonymous memory; absent
    /// where the trace tells no mappings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated: Option<u64>,
    /// All pages that are mapped at its end, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mapped: Option<u64>,
}

/// The memory that was mapped under one label, in all processes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedRegion {
    /// A file's path, `[heap]`, `[stack]` or `anonymous`.
    pub label: String,
    /// Pages that were mapped at any time.
    pub mapped: u64,
    /// Of those, the ones that were touched.
    pub touched: u64,
}

impl Footprint {
    /// The intervals, a line each.
    pub fn to_csv(&self) -> String {
        let mut text = String::from("time,touched_pages,new_pages,allocated_pages,mapped_pages\n");
        for interval in &self.intervals {
            text.push_str(&format!(
                "{},{},{},{},{}\n",
                interval.from,
                interval.touched,
                interval.new,
                csv_option(interval.allocated),
                csv_option(interval.mapped),
            ));
        }
        text
    }

    /// Pages touched from the beginning to the end of each interval.
    pub fn touched_so_far(&self) -> Vec<u64> {
        let mut sum = 0;
        let intervals = self.intervals.iter();
        let sums = intervals.map(|interval| {
            sum += interval.new;
            sum
        });
        sums.collect()
    }
}

impl MappedRegion {
    /// Pages that were mapped and never touched.
    pub fn never_touched(&self) -> u64 {
        self.mapped.saturating_sub(self.touched)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_pages_add_up_and_what_is_not_known_is_left_out_of_csv() {
        let interval = |from, touched, new, mapped| Interval {
            from,
            touched,
            new,
            allocated: mapped,
            mapped,
        };
        let footprint = Footprint {
            interval: 10,
            intervals: vec![interval(0, 3, 3, Some(9)), interval(10, 4, 2, None)],
            regions: vec![],
        };
        assert_eq!(footprint.touched_so_far(), [3, 5]);
        let lines: Vec<String> = footprint.to_csv().lines().map(Into::into).collect();
        assert_eq!(lines[1..], ["0,3,3,9,9", "10,4,2,,"]);
    }
}
