//! Time: ticks of the interval timer, and the processor's time stamp measured against it.

use super::processor::{read_port, time_stamp, write_port};

/// The timer's own frequency.
const TIMER_HZ: u64 = 1_193_182;
/// The interval of its interrupts: as often as programs take turns.
pub const TICK_NS: u64 = 10_000_000;
const COUNTS: u64 = TIMER_HZ * TICK_NS / 1_000_000_000;
const CHANNEL: u16 = 0x40;
const COMMAND: u16 = 0x43;
/// For how many ticks the time stamp is measured.
const MEASURED_TICKS: u32 = 2;

/// The time since the machine's clock was measured.
pub struct Clock {
    began: u64,
    cycles_per_tick: u64,
}

impl Clock {
    /// Starts the timer and measures the time stamp: a few hundredths of a second.
    pub fn start() -> Clock {
        write_port(COMMAND, 0x34);
        write_port(CHANNEL, COUNTS as u8);
        write_port(CHANNEL, (COUNTS >> 8) as u8);
        await_turn();
        let began = time_stamp();
        (0..MEASURED_TICKS).for_each(|_| await_turn());
        let cycles_per_tick = (time_stamp() - began) / u64::from(MEASURED_TICKS);
        Clock {
            began,
            cycles_per_tick: cycles_per_tick.max(1),
        }
    }

    /// Nanoseconds since the start.
    pub fn now_ns(&self) -> u64 {
        let cycles = time_stamp() - self.began;
        let (ticks, rest) = (cycles / self.cycles_per_tick, cycles % self.cycles_per_tick);
        ticks * TICK_NS + rest * TICK_NS / self.cycles_per_tick
    }
}

/// Waits until the timer's counter begins anew.
fn await_turn() {
    let mut before = read_counter();
    loop {
        let now = read_counter();
        // It counts down.
        if now > before {
            return;
        }
        before = now;
    }
}

fn read_counter() -> u16 {
    write_port(COMMAND, 0);
    let low = read_port(CHANNEL);
    u16::from(read_port(CHANNEL)) << 8 | u16::from(low)
}
