"""Writes a Cargo workspace into the working folder: eight crates that know nothing of each other,
each with types and traits enough to keep the compiler busy for some seconds, and a program of all.
"""

from pathlib import Path

CRATES = 8
TYPES = 30

DERIVES = "Clone, Debug, Default, PartialEq, PartialOrd, Eq, Ord, Hash"


def write(path: str, text: str) -> None:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def manifest(name: str, dependencies: list[str]) -> str:
    lines = "".join(f'{it} = {{ path = "../{it}" }}\n' for it in dependencies)
    return f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\n{lines}'


def library(number: int) -> str:
    parts = ["use std::collections::BTreeMap;\n"]
    for index in range(TYPES):
        fields = ", ".join(f"pub f{at}: Vec<(u{8 << at % 4}, String)>" for at in range(1 + index % 6))
        parts.append(
            f"#[derive({DERIVES})]\npub struct T{index} {{ {fields} }}\n"
            f"impl T{index} {{\n"
            f"    pub fn sum(seed: u64) -> u64 {{\n"
            f"        let mut map = BTreeMap::new();\n"
            f"        for at in 0..{3 + index % 5} {{\n"
            f"            let mut it = T{index}::default();\n"
            f"            it.f0.push((seed as u8, format!(\"{{at}}-{index}\")));\n"
            f"            map.insert(it, at * {number});\n"
            f"        }}\n"
            f"        map.iter().map(|(it, n)| n + format!(\"{{it:?}}\").len() as u64).sum()\n"
            f"    }}\n}}\n"
        )
    calls = " + ".join(f"T{index}::sum(seed)" for index in range(TYPES))
    parts.append(f"pub fn all(seed: u64) -> u64 {{ {calls} }}\n")
    return "\n".join(parts)


names = [f"part{number}" for number in range(1, CRATES + 1)]
members = ", ".join(f'"{name}"' for name in [*names, "app"])
write("Cargo.toml", f'[workspace]\nresolver = "2"\nmembers = [{members}]\n')
for number, name in enumerate(names, start=1):
    write(f"{name}/Cargo.toml", manifest(name, []))
    write(f"{name}/src/lib.rs", library(number))
write("app/Cargo.toml", manifest("app", names))
calls = " + ".join(f"{name}::all({at})" for at, name in enumerate(names))
write("app/src/main.rs", f'fn main() {{\n    println!("{{}}", {calls});\n}}\n')
