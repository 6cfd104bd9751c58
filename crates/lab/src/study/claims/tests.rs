use super::*;

fn measured(values: &[(f64, Ending)]) -> Vec<Measurement> {
    let numbered = values.iter().enumerate();
    let each = numbered.map(|(at, &(value, ending))| Measurement {
        run: format!("run {at}"),
        ending,
        metrics: [
            ("page_ins".to_owned(), value),
            ("page_outs".to_owned(), 10.0),
        ]
        .into(),
        ..Measurement::default()
    });
    each.collect()
}

fn complete(values: &[f64]) -> Vec<Measurement> {
    let values: Vec<(f64, Ending)> = values.iter().map(|&v| (v, Ending::Complete)).collect();
    measured(&values)
}

fn claim(rule: Rule) -> Claim {
    Claim {
        text: "a claim".into(),
        strength: "strong".into(),
        metric: "page_ins".into(),
        over_metric: None,
        rule,
        reasons: ["r", "p", "n"].map(|reason| Some(reason.into())),
    }
}

fn verdict(rule: Rule, values: &[f64]) -> Verdict {
    judge(&claim(rule), &complete(values)).verdict
}

fn ratio(published: f64) -> Rule {
    let (of, over) = (0, 1);
    Rule::Ratio {
        of,
        over,
        published,
    }
}

#[test]
fn a_ratio_needs_its_direction_and_its_size() {
    for (values, published, expected) in [
        ([120.0, 10.0], 12.37, Verdict::Reproduced),
        ([40.0, 10.0], 12.37, Verdict::Reproduced),
        ([38.0, 10.0], 12.37, Verdict::Partly),
        ([400.0, 10.0], 12.37, Verdict::Partly),
        ([9.0, 10.0], 12.37, Verdict::Not),
        ([10.0, 10.0], 12.37, Verdict::Not),
        ([10.0, 10.0], 0.9, Verdict::Not),
        ([9.0, 10.0], 0.943, Verdict::Reproduced),
        ([5.0, 10.0], 0.943, Verdict::Partly),
        ([10.2, 10.0], 1.10, Verdict::Partly),
        ([10.4, 10.0], 1.10, Verdict::Reproduced),
        ([10.0, 0.0], 12.37, Verdict::Partly),
        ([0.0, 10.0], 0.5, Verdict::Partly),
        ([0.0, 0.0], 0.5, Verdict::Unknown),
    ] {
        assert_eq!(verdict(ratio(published), &values), expected, "{values:?}");
    }
}

#[test]
fn a_run_that_was_cut_gives_a_bound() {
    let cut = |of, over| judge(&claim(ratio(2.0)), &measured(&[(30.0, of), (10.0, over)]));
    let found = cut(Ending::GivenUp, Ending::Complete);
    assert_eq!((found.ours, found.bound), (Some(3.0), Bound::AtLeast));
    assert_eq!(cut(Ending::Complete, Ending::GivenUp).bound, Bound::AtMost);
    let both = cut(Ending::GivenUp, Ending::Stuck);
    assert_eq!((both.ours, both.verdict), (None, Verdict::Unknown));
}

#[test]
fn the_reason_is_that_of_the_verdict() {
    let found = judge(&claim(ratio(12.0)), &complete(&[9.0, 10.0]));
    assert_eq!(found.reason.as_deref(), Some("n"));
    let found = judge(&claim(ratio(12.0)), &complete(&[0.0, 0.0]));
    assert_eq!(found.reason, None);
}

#[test]
fn the_divisor_may_be_another_metric() {
    let mut claim = claim(Rule::Ratio {
        of: 0,
        over: 0,
        published: 0.64,
    });
    claim.over_metric = Some("page_outs".into());
    let found = judge(&claim, &complete(&[5.0]));
    assert_eq!(
        (found.ours, found.verdict),
        (Some(0.5), Verdict::Reproduced)
    );
    assert_eq!(found.values[1].value, Some(10.0));
}

#[test]
fn an_order_is_judged_by_its_pairs() {
    let order = |values: &[f64]| verdict(Rule::Order((0..values.len()).collect()), values);
    assert_eq!(order(&[1.0, 2.0, 3.0]), Verdict::Reproduced);
    assert_eq!(order(&[1.0, 1.001, 3.0]), Verdict::Reproduced);
    assert_eq!(order(&[1.0, 1.001, 1.002]), Verdict::Not);
    assert_eq!(order(&[2.0, 1.0, 3.0]), Verdict::Partly);
    assert_eq!(order(&[3.0, 1.0, 2.0]), Verdict::Not);
    assert_eq!(order(&[1.0, 2.0]), Verdict::Reproduced);
}

#[test]
fn equal_and_value_allow_a_factor() {
    let equal = |value| {
        let (of, over, within) = (0, 1, 1.02);
        verdict(Rule::Equal { of, over, within }, &[value, 100.0])
    };
    assert_eq!(equal(101.9), Verdict::Reproduced);
    assert_eq!(equal(97.0), Verdict::Partly);
    assert_eq!(equal(105.0), Verdict::Not);
    let value = |value| {
        let (of, published, within) = (0, 0.55, 1.25);
        let rule = Rule::Value {
            of,
            published,
            within,
        };
        verdict(rule, &[value])
    };
    assert_eq!(value(0.6), Verdict::Reproduced);
    assert_eq!(value(0.3), Verdict::Partly);
    assert_eq!(value(0.1), Verdict::Not);
}

#[test]
fn a_slope_is_that_of_the_logarithms() {
    let slope = |power: i32| {
        let sizes = [1_u32, 2, 4];
        let mut measured = complete(&sizes.map(|size| f64::from(size).powi(power)));
        for (measured, size) in measured.iter_mut().zip(sizes) {
            measured.memory_bytes = u64::from(size) << 20;
        }
        let rule = Rule::Slope {
            places: vec![0, 1, 2],
            by: By::Memory,
            published: -4.0,
        };
        judge(&claim(rule), &measured)
    };
    let found = slope(-3);
    assert!((found.ours.unwrap() + 3.0).abs() < 1e-9);
    assert_eq!(found.verdict, Verdict::Reproduced);
    assert_eq!(slope(-1).verdict, Verdict::Partly);
    assert_eq!(slope(2).verdict, Verdict::Not);
}

#[test]
fn bounds_hold_on_their_side() {
    let most = |value| {
        let (of, over, published) = (0, None, 0.001);
        let rule = Rule::AtMost {
            of,
            over,
            published,
        };
        verdict(rule, &[value])
    };
    assert_eq!(most(0.0005), Verdict::Reproduced);
    assert_eq!(most(0.003), Verdict::Partly);
    assert_eq!(most(0.1), Verdict::Not);
    let least = |value| {
        let (of, over, published) = (0, Some(1), 2.5);
        let rule = Rule::AtLeast {
            of,
            over,
            published,
        };
        verdict(rule, &[value, 10.0])
    };
    assert_eq!(least(30.0), Verdict::Reproduced);
    assert_eq!(least(10.0), Verdict::Partly);
    assert_eq!(least(5.0), Verdict::Not);
}

#[test]
fn who_never_ends_is_unfinished_and_who_is_slow_nearly() {
    let unfinished = |time, ending| {
        let (of, over) = (0, Some(1));
        let values = [(time, ending), (10.0, Ending::Complete)];
        judge(&claim(Rule::Unfinished { of, over }), &measured(&values)).verdict
    };
    assert_eq!(unfinished(30.0, Ending::GivenUp), Verdict::Reproduced);
    assert_eq!(unfinished(300.0, Ending::Complete), Verdict::Partly);
    assert_eq!(unfinished(30.0, Ending::Complete), Verdict::Not);
}
