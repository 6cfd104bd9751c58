use super::super::catalog::Catalog;
use super::super::file::parse;
use super::*;

const HEAD: &str = "title = \"t\"\nsource = \"S\"\nclaimed = \"c\"\nmemory = [\"50%\", \"80%\"]\n\
                    systems = [\"gnumach\", \"tidemark\"]\ntrace = [{ name = \"a\" }]\n";

fn plan(rest: &str) -> Result<Plan, String> {
    let file = parse("x.toml", &format!("{HEAD}{rest}"))?;
    Plan::new("x", file, Mode::Quick).map_err(|refusal| refusal.to_string())
}

fn claim(rest: &str) -> String {
    format!("[[claim]]\ntext = \"c\"\nmetric = \"page_ins\"\n{rest}")
}

#[test]
fn every_experiment_can_be_planned_in_both_modes() {
    let catalog = Catalog::new(None).unwrap();
    for name in catalog.names() {
        for mode in [Mode::Quick, Mode::Full] {
            let plan = Plan::new(name, catalog.read(name).unwrap(), mode).unwrap();
            assert!(!plan.claims.is_empty(), "{name}");
            for trace in &plan.file.trace {
                for file in &trace.files {
                    assert!(catalog.workload_file(file).is_some(), "{name}: {file}");
                }
            }
        }
    }
}

#[test]
fn claims_find_their_runs() {
    let rest = claim(
        "kind = \"ratio\"\nof = \"gnumach in 50%\"\nover = \"tidemark\"\nmemory = \"80%\"\n\
         published = 2.0\n",
    );
    let plan = plan(&rest).unwrap();
    assert_eq!(plan.trials.len(), 4);
    let (of, over, published) = (0, 3, 2.0);
    assert_eq!(
        plan.claims[0].rule,
        Rule::Ratio {
            of,
            over,
            published
        }
    );
}

#[test]
fn what_is_wrong_is_told_with_its_claim() {
    for (rest, told) in [
        (
            "kind = \"ratio\"\nof = \"gnumach\"\n",
            "say which with `memory`",
        ),
        (
            "kind = \"ratio\"\nof = \"gnumech\"\n",
            "no run is called `gnumech`",
        ),
        (
            "kind = \"ratio\"\nof = \"gnumach in 50%\"\n",
            "needs `over`",
        ),
        (
            "kind = \"order\"\norder = [\"gnumach\"]\n",
            "two runs or more",
        ),
        (
            "kind = \"slope\"\nof = \"gnumach\"\npublished = 1\n",
            "three measurements",
        ),
    ] {
        let refusal = plan(&claim(rest)).err().unwrap();
        assert!(
            refusal.starts_with("experiment `x`: claim `c`: "),
            "{refusal}"
        );
        assert!(refusal.contains(told), "{refusal}");
    }
}

#[test]
fn what_is_not_there_is_told() {
    let with_claim = |rest: &str| {
        format!(
            "{rest}{}",
            claim("kind = \"value\"\nof = \"x\"\npublished = 1\n")
        )
    };
    for (rest, told) in [
        ("[[run]]\nsystem = \"gnumatch\"\n", "gnumach"),
        ("[[run]]\nsystem = \"gnumach\"\n", "two runs are called"),
        (
            "[[run]]\nname = \"x\"\nsystem = \"gnumach\"\npolicy = \"fito\"\n",
            "fifo",
        ),
        (
            "[[run]]\nname = \"x\"\nsystem = \"gnumach\"\nload = \"tokn\"\n",
            "load control",
        ),
        (
            "[[run]]\nname = \"x\"\nsystem = \"gnumach\"\ncosts = { air = 1 }\n",
            "`costs.air`",
        ),
        ("[machine]\ndisk = \"tape\"\n", "disk tape"),
        ("[machine]\nyear = \"1970\"\n", "`year` is 1970"),
        (
            "[[program]]\ntrace = \"b\"\n",
            "no `[[trace]]` is called so",
        ),
        (
            "[[program]]\ntrace = \"a\"\nadvice = \"good\"\n",
            "`advice` is good",
        ),
    ] {
        let refusal = plan(&with_claim(rest)).err().unwrap();
        assert!(refusal.contains(told), "{rest}: {refusal}");
    }
}

#[test]
fn runs_have_their_own_sizes_and_times() {
    let rest = "[[run]]\nname = \"x\"\nsystem = \"osf-mk\"\nmemory = [\"64M\"]\ntimes = [1, 4]\n\
                clusters = { most = 1 }\nload = \"task-swapper\"\nadvice = \"sequential\"\n";
    let claim = claim("kind = \"equal\"\nof = \"x times 1\"\nover = \"x times 4\"\n");
    let plan = plan(&format!("{rest}{claim}")).unwrap();
    let own = plan.trials.iter().filter(|draft| draft.run == "x");
    let own: Vec<(&str, u32)> = own
        .map(|draft| (draft.memory.as_str(), draft.times))
        .collect();
    assert_eq!(own, [("64M", 1), ("64M", 4)]);
    let terms = plan.trials.last().unwrap().terms.as_ref().unwrap();
    assert_eq!(terms.clusters.most, Some(1));
    assert_eq!(terms.load.as_deref(), Some("task-swapper"));
    assert_eq!(terms.programs[0].advice.as_deref(), Some("sequential"));
}
