//! The documents say what the code does: their pictures are the state machines, their links lead
//! somewhere, and the README begins with the two commands that everyone needs.

use std::collections::BTreeSet;
use std::path::Path;

use domain::state::{MACHINES, Machine};

use crate::{SourceFile, assert_none, files, root};

/// An arrow of a picture. `*` stands for the point before the first state and after the last.
type Arrow = (String, String);

/// One `stateDiagram-v2` of a page.
struct Picture {
    /// The page and the line it begins at.
    place: String,
    /// What the line `%% machine: ` names.
    machine: Option<String>,
    arrows: Vec<Arrow>,
    /// Lines that are no arrow.
    odd: Vec<String>,
}

/// The code blocks of a page that are of one language, with the number of their first line.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<(usize, Vec<&'a str>)> {
    let (mut found, mut open): (Vec<(usize, Vec<&str>)>, Option<bool>) = (Vec::new(), None);
    for (at, line) in text.lines().enumerate() {
        match (line.strip_prefix("```"), open) {
            (Some(named), None) => {
                let wanted = named.trim() == language;
                if wanted {
                    found.push((at + 2, Vec::new()));
                }
                open = Some(wanted);
            }
            (Some(_), Some(_)) => open = None,
            (None, Some(true)) => found.last_mut().expect("an open block").1.push(line),
            (None, Some(false) | None) => {}
        }
    }
    found
}

fn pictures(page: &SourceFile) -> Vec<Picture> {
    let mut found = Vec::new();
    for (at, lines) in blocks(&page.text, "mermaid") {
        if !lines.iter().any(|line| line.trim().starts_with("stateDiagram")) {
            continue;
        }
        let place = format!("{}:{at}", page.path);
        let mut picture = Picture { place, machine: None, arrows: Vec::new(), odd: Vec::new() };
        for line in lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty()) {
            if let Some(name) = line.strip_prefix("%% machine: ") {
                picture.machine = Some(name.to_owned());
            } else if let Some((from, rest)) = line.split_once(" --> ") {
                let to = rest.split_once(':').map_or(rest, |(to, _label)| to).trim();
                let end = |state: &str| if state == "[*]" { "*" } else { state }.to_owned();
                picture.arrows.push((end(from), end(to)));
            } else if line != "stateDiagram-v2" {
                picture.odd.push(line.to_owned());
            }
        }
        found.push(picture);
    }
    found
}

/// All arrows that the picture of a machine has: to each initial state, each move, and from each
/// state that nothing leads out of.
fn arrows_of(machine: &Machine) -> BTreeSet<Arrow> {
    let arrow = |from: &str, to: &str| (from.to_owned(), to.to_owned());
    let first = machine.initial.iter().map(|state| arrow("*", state));
    let moves = machine.moves.iter().map(|(from, to)| arrow(from, to));
    let last = machine.states.iter().filter(|state| machine.is_terminal(state));
    first.chain(moves).chain(last.map(|state| arrow(state, "*"))).collect()
}

fn compare(picture: &Picture, machine: &Machine) -> Vec<String> {
    let drawn: BTreeSet<Arrow> = picture.arrows.iter().cloned().collect();
    let wanted = arrows_of(machine);
    let say = |(from, to): &Arrow, what: &str| {
        format!("{}: {} {from} --> {to} {what}", picture.place, machine.table)
    };
    let mut findings: Vec<String> =
        drawn.difference(&wanted).map(|arrow| say(arrow, "is drawn, but is no move")).collect();
    findings.extend(wanted.difference(&drawn).map(|arrow| say(arrow, "is missing")));
    if drawn.len() != picture.arrows.len() {
        findings.push(format!("{}: an arrow is drawn twice", picture.place));
    }
    findings
}

/// Every picture is that of a machine, and every machine has one.
fn wrong_pictures(pages: &[SourceFile], machines: &[Machine]) -> Vec<String> {
    let pictures: Vec<Picture> = pages.iter().flat_map(pictures).collect();
    let mut findings = Vec::new();
    for picture in &pictures {
        let named = |machine: &&Machine| picture.machine.as_deref() == Some(machine.table);
        match machines.iter().find(named) {
            Some(machine) => findings.extend(compare(picture, machine)),
            None => findings.push(format!("{}: names no machine that exists", picture.place)),
        }
        findings.extend(
            picture.odd.iter().map(|line| format!("{}: \"{line}\" is no arrow", picture.place)),
        );
    }
    for machine in machines {
        let named = |picture: &&Picture| picture.machine.as_deref() == Some(machine.table);
        let count = pictures.iter().filter(named).count();
        if count != 1 {
            findings.push(format!("{} has {count} pictures instead of one", machine.table));
        }
    }
    findings
}

/// The targets of a page's links, without those in code.
fn links(text: &str) -> Vec<&str> {
    let (mut found, mut code) = (Vec::new(), false);
    for line in text.lines() {
        if line.starts_with("```") {
            code = !code;
        } else if !code {
            let parts = line.split("](").skip(1);
            found.extend(parts.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target));
        }
    }
    found
}

/// Links that start at a page and lead to no file of the project.
fn dead_links(page: &SourceFile, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let outside = |target: &str| target.contains("://") || target.starts_with('#');
    let folder = Path::new(&page.path).parent().unwrap_or(Path::new(""));
    let mut findings = Vec::new();
    for target in links(&page.text).into_iter().filter(|target| !outside(target)) {
        let file = target.split('#').next().unwrap_or_default();
        let mut path = Vec::new();
        for part in folder.join(file).iter().map(|part| part.to_string_lossy().into_owned()) {
            match part.as_str() {
                ".." => drop(path.pop()),
                "." => {}
                _ => path.push(part),
            }
        }
        if !exists(&path.join("/")) {
            findings.push(format!("{}: {target} leads nowhere", page.path));
        }
    }
    findings
}

/// The first code block of the README holds the two commands, each at the beginning of a line.
fn missing_commands(readme: &str) -> Vec<String> {
    let first: Vec<&str> = readme
        .lines()
        .skip_while(|line| !line.starts_with("```"))
        .skip(1)
        .take_while(|line| !line.starts_with("```"))
        .collect();
    ["cargo run --release -- demo", "./test"]
        .into_iter()
        .filter(|command| {
            let is_it = |line: &&str| line.split('#').next().unwrap_or_default().trim() == *command;
            !first.iter().any(is_it)
        })
        .map(|command| format!("README.md: its first code block lacks the line {command}"))
        .collect()
}

fn pages() -> Vec<SourceFile> {
    let is_page =
        |path: &str| path == "README.md" || (path.starts_with("docs/") && path.ends_with(".md"));
    files().into_iter().filter(|file| is_page(&file.path)).collect()
}

#[test]
fn pictures_are_the_state_machines() {
    let remedy = "Draw what domain::state::MACHINES says, below the line %% machine: TABLE.";
    assert_none(&wrong_pictures(&pages(), MACHINES), remedy);
}

#[test]
fn links_lead_to_files() {
    let exists = |path: &str| root().join(path).exists();
    let findings: Vec<String> = pages().iter().flat_map(|page| dead_links(page, exists)).collect();
    assert_none(&findings, "Correct the link, or add the file.");
}

#[test]
fn the_readme_begins_with_the_two_commands() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("README.md");
    assert_none(&missing_commands(&readme), "They are what a newcomer looks for.");
}

#[test]
fn bad_pages_are_found() {
    const DOOR: Machine = Machine {
        table: "door",
        states: &["open", "shut", "gone"],
        initial: &["open"],
        moves: &[("open", "shut"), ("shut", "open"), ("shut", "gone")],
    };
    let page = |arrows: &str| {
        let text = format!("```mermaid\n%% machine: door\nstateDiagram-v2\n{arrows}\n```\n");
        vec![SourceFile::sample("docs/door.md", &text)]
    };
    let good =
        "[*] --> open: made\nopen --> shut\nshut --> open: by hand\nshut --> gone\ngone --> [*]";
    let found = |arrows: &str| wrong_pictures(&page(arrows), &[DOOR]);
    assert_eq!(found(good), [""; 0]);
    assert_eq!(
        found(&good.replace("\nshut --> gone", "")),
        ["docs/door.md:2: door shut --> gone is missing"]
    );
    assert_eq!(
        found(&format!("{good}\ngone --> open")),
        ["docs/door.md:2: door gone --> open is drawn, but is no move"]
    );
    assert_eq!(found(&good.replace("[*] --> open", "[*] --> shut")).len(), 2);
    assert_eq!(found(&format!("{good}\nnote left")), ["docs/door.md:2: \"note left\" is no arrow"]);
    assert_eq!(
        found(&format!("{good}\nopen --> shut")),
        ["docs/door.md:2: an arrow is drawn twice"]
    );
    assert_eq!(wrong_pictures(&[], &[DOOR]), ["door has 0 pictures instead of one"]);
    assert_eq!(wrong_pictures(&page(good), &[]), ["docs/door.md:2: names no machine that exists"]);

    let text =
        "[a](b.md#c) [d](../e.rs)\n```\n[in](code.md)\n```\n[f](https://example.com) [g](no.md)";
    let there = |path: &str| ["docs/b.md", "e.rs"].contains(&path);
    let found = dead_links(&SourceFile::sample("docs/a.md", text), there);
    assert_eq!(found, ["docs/a.md: no.md leads nowhere"]);

    let first = "```sh\ncargo run --release -- demo # it\n./test\n```\n";
    assert_eq!(missing_commands(first), [""; 0]);
    assert_eq!(missing_commands(&format!("```\nls\n```\n{first}")).len(), 2);
}
