//! Chinese: simplified, traditional (folded to simplified) and the commonest Cantonese.

use std::sync::LazyLock;

use super::entries;
use super::fold::Clause;

/// How many characters a `*` stands for at most.
const GAP_CHARS_MAX: usize = 12;
/// What a `%` stands for: how a day that is yet to come begins.
const DAYS: [&str; 19] = [
    "下周",
    "下个",
    "下星期",
    "下礼拜",
    "下月",
    "下次",
    "下季",
    "明天",
    "明日",
    "明年",
    "明早",
    "后天",
    "后面",
    "以后",
    "周",
    "星期",
    "礼拜",
    "0月",
    "0号",
];
/// What stands for something harmless that was taken out.
const TAKEN_OUT: char = '\u{1}';

/// The traditional characters that the lexicons need, each with its simplified form.
const TRADITIONAL: &str = "別别訂订發发買买動动銷销暫暂緩缓終终斷断錯错罷罢廢废關关閉闭結结凍冻請请絕绝駁驳對对慮虑變变遲迟後后擱搁壓压問问\
     認认確确決决諗谂陣阵會会過过經经為为爲为貴贵剎刹說说説说這这個个給给來来還还沒没無无視视開开車车場场費费電电產产\
     區区級级類类識识緊紧邊边間间幾几時时點点飛飞機机應应該该讓让嗎吗麼么樣样實实當当棄弃計计劃划單单準准許许從从轉转\
     帳账賬账錢钱貨货郵邮講讲處处觀观頭头總总談谈興兴猶犹糾纠審审謹谨靜静萬万兩两係系須须嚴严懸悬馬马維维狀状樓楼預预\
     麵面餘余顧顾盜盗詐诈騙骗壞坏慘惨誤误節节兒儿聽听師师養养務务臨临選选與与於于裡里裏里裝装條条們们聲声氣气線线極极\
     樂乐歡欢聯联繫系隨随錄录鐘钟長长門门陽阳陰阴階阶險险離离難难靈灵領领頻频題题顏颜額额風风飯饭驗验髮发鬆松換换調调順顺禮礼";

static FOLDED: LazyLock<Vec<(char, char)>> = LazyLock::new(|| {
    let letters: Vec<char> = TRADITIONAL.chars().collect();
    letters.chunks_exact(2).filter_map(|two| Some((*two.first()?, *two.last()?))).collect()
});

/// The simplified form of a character, as far as the lexicons need it.
pub(super) fn simplified(c: char) -> char {
    FOLDED
        .iter()
        .find(|(traditional, _)| *traditional == c)
        .map_or(c, |(_, simplified)| *simplified)
}

/// Something harmless, and what must not stand around it.
struct Harmless {
    not_before: Vec<char>,
    text: Vec<char>,
    /// Of these none may follow, or one must.
    after: After,
}

/// What may stand right after something harmless.
enum After {
    NoneOf(Vec<char>),
    OneOf(Vec<char>),
}

/// In [`Harmless::not_before`]: the beginning of the clause. In [`After::OneOf`]: its end.
const BEGINS: char = '^';
const ENDS: char = '$';

static STOPS: LazyLock<Vec<(&'static str, Vec<char>)>> = LazyLock::new(|| {
    entries(include_str!("chinese_stops.txt"))
        .map(|entry| (entry, entry.chars().collect()))
        .collect()
});
/// The longest first, so that the most exact one is taken.
static HARMLESS: LazyLock<Vec<Harmless>> = LazyLock::new(|| {
    let mut all: Vec<Harmless> =
        entries(include_str!("chinese_harmless.txt")).map(harmless).collect();
    all.sort_by_key(|harmless| std::cmp::Reverse(harmless.text.len()));
    all
});

fn harmless(entry: &str) -> Harmless {
    let (before, rest) = match entry.strip_prefix("[^").and_then(|rest| rest.split_once(']')) {
        Some((before, rest)) => (before, rest),
        None => ("", entry),
    };
    let these = |after: &str| after.trim_end_matches(']').chars().collect();
    let (text, after) = match (rest.split_once("[="), rest.split_once("[^")) {
        (Some((text, after)), _) => (text, After::OneOf(these(after))),
        (None, Some((text, after))) => (text, After::NoneOf(these(after))),
        (None, None) => (rest, After::NoneOf(Vec::new())),
    };
    Harmless { not_before: before.chars().collect(), text: text.chars().collect(), after }
}

/// The first entry found in `clauses`.
pub(super) fn find(clauses: &[Clause]) -> Option<&'static str> {
    let is_list = clauses.len() > 1;
    clauses
        .iter()
        .find_map(|clause| occurs(&without_harmless(&clause.han, is_list)))
        .or_else(|| scattered(clauses))
}

/// Characters that were set apart: "取。消", "算，了".
fn scattered(clauses: &[Clause]) -> Option<&'static str> {
    let single = clauses.iter().any(|clause| clause.han.len() == 1);
    let all: Vec<char> = clauses.iter().flat_map(|clause| clause.han.iter().copied()).collect();
    if single { occurs(&without_harmless(&all, false)) } else { None }
}

fn without_harmless(clause: &[char], is_list: bool) -> Vec<char> {
    let mut kept = Vec::with_capacity(clause.len());
    let mut at = 0;
    while at < clause.len() {
        let length = harmless_at(clause, at, is_list);
        kept.push(if length > 0 {
            TAKEN_OUT
        } else {
            clause.get(at).copied().unwrap_or(TAKEN_OUT)
        });
        at += length.max(1);
    }
    kept
}

/// The length of what is harmless at this place; 0 if nothing is.
fn harmless_at(clause: &[char], at: usize, is_list: bool) -> usize {
    let rest = clause.get(at..).unwrap_or_default();
    let before = at.checked_sub(1).and_then(|at| clause.get(at));
    // A question of the form 要不要, 得唔得; 该不该 is doubt and 停不停 speaks of a stop.
    if let [a, '不' | '唔', b, ..] = rest
        && a == b
        && !matches!(a, '不' | '唔' | '该' | '停')
    {
        return 3;
    }
    // "Apples, bananas and so on": 等等 at the end of a list.
    if let ['等', '等', '都' | '的', ..] = rest
        && is_list
        && before.is_some()
    {
        return 2;
    }
    let fits = |harmless: &&Harmless| {
        let after = rest.get(harmless.text.len());
        let before = before.copied().unwrap_or(BEGINS);
        let follows = |letters: &Vec<char>| letters.contains(after.unwrap_or(&ENDS));
        let negation = matches!(harmless.text.first(), Some('不' | '唔'));
        let hidden = negation && matches!(after, Some('了' | '啦' | '喇' | '咗'))
            || harmless.not_before.contains(&before)
            || match &harmless.after {
                After::NoneOf(letters) => follows(letters),
                After::OneOf(letters) => !follows(letters),
            };
        !hidden && rest.starts_with(&harmless.text)
    };
    HARMLESS.iter().find(fits).map_or(0, |harmless| harmless.text.len())
}

fn occurs(clause: &[char]) -> Option<&'static str> {
    let stands = |stop: &[char]| match stop {
        ['^', stop @ ..] => begins(stop, clause),
        stop => (0..clause.len()).any(|at| begins(stop, clause.get(at..).unwrap_or_default())),
    };
    STOPS.iter().find(|(_, stop)| stands(stop)).map(|(entry, _)| *entry)
}

/// Whether `clause` begins with `stop`.
fn begins(stop: &[char], clause: &[char]) -> bool {
    match stop {
        [] => true,
        ['$'] => clause.is_empty(),
        ['*', rest @ ..] => (0..=GAP_CHARS_MAX.min(clause.len()))
            .any(|gap| begins(rest, clause.get(gap..).unwrap_or_default())),
        ['%', rest @ ..] => DAYS.iter().any(|day| {
            let day: Vec<char> = day.chars().collect();
            clause.strip_prefix(day.as_slice()).is_some_and(|clause| begins(rest, clause))
        }),
        [first, rest @ ..] => {
            clause.split_first().is_some_and(|(c, clause)| c == first && begins(rest, clause))
        }
    }
}
