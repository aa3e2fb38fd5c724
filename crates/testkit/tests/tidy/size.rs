//! Small rooms: functions of about 70 lines, files of about 600 (STYLE).

use crate::{SourceFile, assert_none, files};

const FUNCTION_LINES: usize = 70;
const FUNCTION_LINES_MAX: usize = 120;
const FILE_LINES: usize = 600;
const FILE_LINES_MAX: usize = 800;
const CODE: &[&str] = &["rs", "ts", "tsx", "css", "mjs", "py", "sh"];

/// Something large: where it is and how many lines it has.
#[derive(Debug, PartialEq, Eq)]
struct Large {
    place: String,
    lines: usize,
}

fn is_code(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, extension)| CODE.contains(&extension))
}

fn large_files(files: &[SourceFile], above: usize) -> Vec<Large> {
    let code = files.iter().filter(|file| is_code(&file.path));
    code.map(|file| Large { place: file.path.clone(), lines: file.text.lines().count() })
        .filter(|large| large.lines > above)
        .collect()
}

/// The functions of a formatted Rust file. Its formatting is what makes this simple: a function
/// ends at the first brace that stands as far in as its first line.
fn large_functions(file: &SourceFile, above: usize) -> Vec<Large> {
    let lines: Vec<&str> = file.text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = line.len() - line.trim_start().len();
        let end = lines[start..].iter().position(|line| {
            let ending = line.trim_end();
            let stands_as_far_in = line.len() - line.trim_start().len() == indent;
            stands_as_far_in && (ending.ends_with('}') || ending.ends_with(';'))
        });
        let count = end.map_or(1, |end| end + 1);
        if count > above {
            let place = format!("{}:{} {name}", file.path, start + 1);
            found.push(Large { place, lines: count });
        }
    }
    found
}

/// The name of the function whose first line this is.
fn function_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().peekable();
    let before = ["pub", "pub(crate)", "pub(super)", "const", "async", "unsafe", "extern", "\"C\""];
    while words.next_if(|word| before.contains(word)).is_some() {}
    if words.next() != Some("fn") {
        return None;
    }
    words.next()?.split(['(', '<']).next()
}

fn print(what: &str, all: &[Large]) {
    for large in all {
        println!("{what} of {} lines: {}", large.lines, large.place);
    }
}

fn too_large(all: Vec<Large>, most: usize) -> Vec<String> {
    all.into_iter()
        .filter(|large| large.lines > most)
        .map(|large| format!("{} has {} lines, at most {most}", large.place, large.lines))
        .collect()
}

#[test]
fn files_are_small_rooms() {
    let large = large_files(&files(), FILE_LINES);
    print("file", &large);
    assert_none(&too_large(large, FILE_LINES_MAX), "Split by noun.");
}

#[test]
fn functions_are_small_rooms() {
    let rust = files().into_iter().filter(|file| file.path.ends_with(".rs"));
    let large: Vec<Large> = rust.flat_map(|file| large_functions(&file, FUNCTION_LINES)).collect();
    print("function", &large);
    assert_none(&too_large(large, FUNCTION_LINES_MAX), "Push ifs up and fors down.");
}

#[test]
fn a_large_file_is_found() {
    let file = |path| SourceFile::sample(path, &"x\n".repeat(9));
    let all = [file("a.rs"), file("a.json"), SourceFile::sample("b.py", "x\n")];
    assert_eq!(large_files(&all, 8), [Large { place: "a.rs".to_owned(), lines: 9 }]);
    assert_eq!(too_large(large_files(&all, 8), 8), ["a.rs has 9 lines, at most 8"]);
    assert_eq!(too_large(large_files(&all, 8), 9), [""; 0]);
}

#[test]
fn a_large_function_is_found() {
    let text = "\
trait T {
    fn declared(&self) -> u8;
}
fn empty() {}
impl X {
    fn short(self) -> bool { true }
    pub(crate) async fn long<A>(
        self,
    ) -> u8 {
        if true {
            0
        }
        1
    }
}
/// fn in words
fn short() {
    1;
}
";
    assert_eq!(
        large_functions(&SourceFile::sample("a.rs", text), 3),
        [Large { place: "a.rs:7 long".to_owned(), lines: 8 }]
    );
}
