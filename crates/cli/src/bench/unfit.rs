//! Settings of a measurement that do not fit, as options.

use tidemark_hostbench::plan::Unfit;

use crate::exit::Refusal;

/// The refusal of a setting that does not fit, by its option.
pub fn unfit(unfit: Unfit) -> Refusal {
    let option = match unfit.setting {
        "workload" => "workload".to_owned(),
        setting => format!("--{setting}"),
    };
    Refusal::new(format!("`{option}` {}", unfit.told))
}
