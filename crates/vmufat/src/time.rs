//! Time stamps: eight bytes of two decimal digits each.

/// Days from the first of March of the year 0 to the first of January 1970.
const DAYS_TO_1970: u64 = 719_468;

/// A time stamp as a volume has it: century, year, month, day, hour, minute, second, weekday.
///
/// Cards have stamps that are no dates; these are kept as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub [u8; 8]);

/// A date and a time of day, of no time zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Civil {
    /// 0 to 9999.
    pub year: u16,
    /// 1 to 12.
    pub month: u8,
    /// 1 to 31.
    pub day: u8,
    /// 0 to 23.
    pub hour: u8,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
}

impl Timestamp {
    /// The stamp of a date, with its weekday, if there is such a date.
    pub fn new(civil: Civil) -> Option<Timestamp> {
        let weekday = civil.weekday()?;
        let [century, year] = [civil.year / 100, civil.year % 100].map(|part| part as u8);
        let Civil {
            month,
            day,
            hour,
            minute,
            second,
            ..
        } = civil;
        let parts = [century, year, month, day, hour, minute, second, weekday];
        Some(Timestamp(
            parts.map(|part| ((part / 10) << 4) | (part % 10)),
        ))
    }

    /// The stamp of a moment in seconds since 1970, in universal time; the last there is for later
    /// moments than that.
    ///
    /// The calendar runs from March to February, so that a leap day comes last
    /// (E. G. Richards, Mapping Time, 1998).
    pub fn from_unix(seconds: u64) -> Timestamp {
        // 9999-12-31T23:59:59.
        let seconds = seconds.min(253_402_300_799);
        let (days, second) = (seconds / 86_400 + DAYS_TO_1970, seconds % 86_400);
        let (era, day_of_era) = (days / 146_097, days % 146_097);
        let leaps = day_of_era / 1460 + day_of_era / 146_096 - day_of_era / 36_524;
        let year_of_era = (day_of_era - leaps) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_of_year + 2) / 153;
        let month = (month_from_march + 2) % 12 + 1;
        let civil = Civil {
            year: (era * 400 + year_of_era + u64::from(month <= 2)) as u16,
            month: month as u8,
            day: (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u8,
            hour: (second / 3600) as u8,
            minute: (second / 60 % 60) as u8,
            second: (second % 60) as u8,
        };
        Timestamp::new(civil).expect("days since 1970 make a date")
    }

    /// The date, if the bytes are one.
    pub fn civil(&self) -> Option<Civil> {
        let mut parts = [0; 8];
        for (part, byte) in parts.iter_mut().zip(self.0) {
            let (tens, ones) = (byte >> 4, byte & 15);
            if tens > 9 || ones > 9 {
                return None;
            }
            *part = tens * 10 + ones;
        }
        let [century, year, month, day, hour, minute, second, _] = parts;
        let civil = Civil {
            year: u16::from(century) * 100 + u16::from(year),
            month,
            day,
            hour,
            minute,
            second,
        };
        civil.weekday().map(|_| civil)
    }
}

impl Civil {
    /// The numbers of a date like `2026-11-25` or `2026-11-25T22:05:59`, which may be none of the
    /// calendar.
    pub fn parse(text: &str) -> Option<Civil> {
        let (date, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00:00"));
        let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
        let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
        Some(Civil {
            year,
            month: month as u8,
            day: day as u8,
            hour: hour as u8,
            minute: minute as u8,
            second: second as u8,
        })
    }

    /// The weekday from Monday = 0, if there is such a date.
    fn weekday(&self) -> Option<u8> {
        let is_time = self.hour < 24 && self.minute < 60 && self.second < 60;
        let is_date = self.year <= 9999
            && (1..=12).contains(&self.month)
            && (1..=self.month_days()).contains(&self.day);
        (is_time && is_date).then(|| {
            let is_early = self.month <= 2;
            // January and February count as the end of the year before; 400 years have whole weeks.
            let year = u32::from(self.year) + 400 - u32::from(is_early);
            let month_from_march = (u32::from(self.month) + 9) % 12;
            let days = year * 365 + year / 4 - year / 100
                + year / 400
                + (153 * month_from_march + 2) / 5
                + u32::from(self.day - 1);
            // The first of March of the year 0 is a Wednesday.
            ((days + 2) % 7) as u8
        })
    }

    fn month_days(&self) -> u8 {
        let is_leap = self.year.is_multiple_of(4)
            && (!self.year.is_multiple_of(100) || self.year.is_multiple_of(400));
        match self.month {
            4 | 6 | 9 | 11 => 30,
            2 if is_leap => 29,
            2 => 28,
            _ => 31,
        }
    }
}

/// Three numbers of these widths with a separator between.
fn numbers(text: &str, separator: char, widths: [usize; 3]) -> Option<[u16; 3]> {
    let mut parts = text.split(separator);
    let mut found = [0; 3];
    for (number, width) in found.iter_mut().zip(widths) {
        let part = parts.next()?;
        let is_good = part.len() == width && part.bytes().all(|digit| digit.is_ascii_digit());
        *number = part.parse().ok().filter(|_| is_good)?;
    }
    parts.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_decimal_digits_with_the_weekday_from_monday() {
        let stamp = Timestamp::from_unix(0);
        assert_eq!(stamp.0, [0x19, 0x70, 1, 1, 0, 0, 0, 3]);
        // A Friday.
        let stamp = Timestamp::from_unix(912_124_859);
        assert_eq!(stamp.0, [0x19, 0x98, 0x11, 0x27, 0, 0, 0x59, 4]);
        let leap = Timestamp::from_unix(951_782_400 + 3661);
        assert_eq!(leap.0, [0x20, 0, 2, 0x29, 1, 1, 1, 1]);
    }

    #[test]
    fn every_day_of_a_calendar_s_round_follows_the_one_before() {
        let mut last = Timestamp::from_unix(0);
        for day in 1..150_000 {
            let next = Timestamp::from_unix(day * 86_400);
            assert_eq!(next.0[7], (last.0[7] + 1) % 7, "{next:?}");
            let (before, after) = (last.civil().unwrap(), next.civil().unwrap());
            assert!(before < after);
            assert!(after.day == before.day + 1 || after.day == 1);
            last = next;
        }
    }

    #[test]
    fn what_is_no_date_has_none() {
        let good = [0x20, 0x14, 9, 0x11, 2, 0x42, 0x42, 3];
        assert!(Timestamp(good).civil().is_some());
        for (at, byte) in [
            (0, 0xff),
            (2, 0),
            (2, 0x13),
            (3, 0x31),
            (4, 0x24),
            (6, 0x60),
            (1, 0x1a),
        ] {
            let mut bad = good;
            bad[at] = byte;
            assert_eq!(Timestamp(bad).civil(), None, "{bad:x?}");
        }
        let last = Timestamp::from_unix(u64::MAX);
        assert_eq!(last.civil().unwrap().year, 9999);
    }
}
