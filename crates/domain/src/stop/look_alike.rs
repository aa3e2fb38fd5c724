//! Letters that only look like Latin ones, read as what they look like: whoever writes a stop in mathematical,
//! circled, small or accented letters, or with a Cyrillic or Greek one among them, means a stop all the same.
//! A word of another language that is turned into a stop so costs one question.

/// Latin letters, each with what looks like it: of Cyrillic, Greek and Armenian, small capitals, raised
/// letters, and letters with marks. Capitals stand here where they look like another letter than the small.
const LIKE: [(char, &str); 26] = [
    ('a', "аαᴀᵃɑàáâãäåāăąǎǟǡǻȁȃȧḁạảấầẩẫậắằẳẵặ"),
    ('b', "ьвΒʙᵇḃḅḇƀ"),
    ('c', "сϲᴄᶜçćĉċčḉ"),
    ('d', "ԁᴅᵈďḋḍḏḑḓđ"),
    ('e', "еεᴇᵉєèéêëēĕėęěȅȇȩḕḗḙḛḝẹẻẽếềểễệ"),
    ('f', "ꜰᶠḟ"),
    ('g', "ɢᵍɡĝğġģǧǵḡ"),
    ('h', "нһΗʜʰհĥȟḣḥḧḩḫẖħ"),
    ('i', "іιɪⁱìíîïĩīĭįǐȉȋḭḯỉịı"),
    ('j', "јϳᴊʲĵǰ"),
    ('k', "кκᴋᵏķǩḱḳḵ"),
    ('l', "ӏʟˡĺļľḷḹḻḽł"),
    ('m', "мΜᴍᵐḿṁṃ"),
    ('n', "пηɴⁿոΝñńņňǹṅṇṉṋ"),
    ('o', "оοᴏᵒօσòóôõöōŏőơǒǫǭȍȏȫȭȯȱṍṏṑṓọỏốồổỗộớờởỡợøɵ"),
    ('p', "рρᴘᵖṕṗ"),
    ('q', "ԛ"),
    ('r', "гʀʳŕŗřȑȓṙṛṝṟ"),
    ('s', "ѕꜱˢśŝşšșṡṣṥṧṩẛ"),
    ('t', "тτᴛᵗţťțṫṭṯṱẗŧ"),
    ('u', "υᴜᵘսμùúûüũūŭůűųưǔǖǘǚǜȕȗṳṵṷṹṻụủứừửữự"),
    ('v', "νᴠᵛѵṽṿ"),
    ('w', "ԝѡωᴡʷŵẁẃẅẇẉẘ"),
    ('x', "хχˣẋẍ"),
    ('y', "уүγΥʏʸýÿŷȳẏẙỳỵỷỹ"),
    ('z', "ζᴢᶻźżžẑẓẕ"),
];

/// Letters of mathematics that stand outside their own block, each before its plain form.
const LETTERLIKE: &str = "ℬBℰEℱFℋHℐIℒLℳMℛRℯEℊGℴOℭCℌHℑIℜRℨZℂCℍHℕNℙPℚQℝRℤZℎHℓL";

/// Characters of compatibility blocks that mean a stop.
const HAN: [(char, char); 2] = [('\u{F967}', '不'), ('\u{2F4C}', '止')];

/// The first letters of alphabets in order: in brackets, circled, in squares, as a flag's letters.
const RUNS: [u32; 8] = [0x249C, 0x24B6, 0x24D0, 0x1F110, 0x1F130, 0x1F150, 0x1F170, 0x1F1E6];

/// The Latin letter that a character looks like, else the character.
pub(super) fn latin(c: char) -> char {
    if c.is_ascii() {
        return c;
    }
    if let Some((_, han)) = HAN.iter().find(|(compatible, _)| *compatible == c) {
        return *han;
    }
    let code = u32::from(c);
    match code {
        // Mathematical alphabets: capitals and small letters in turn.
        0x1D400..=0x1D6A3 => letter((code - 0x1D400) % 26),
        0x1D6A8..=0x1D7C9 => greek((code - 0x1D6A8) % 58),
        0x1D7CE..=0x1D7FF => char::from_digit((code - 0x1D7CE) % 10, 10).unwrap_or(c),
        _ => match RUNS.iter().find(|first| (**first..**first + 26).contains(&code)) {
            Some(first) => letter(code - first),
            None => like(c),
        },
    }
}

/// The letter of the alphabet by its place.
fn letter(place: u32) -> char {
    char::from_u32(u32::from('a') + place).unwrap_or(' ')
}

/// A letter of the mathematical Greek alphabets by its place: 25 capitals, nabla, then the small ones.
fn greek(place: u32) -> char {
    let first = if place < 25 { 0x391 } else { 0x3B1 - 26 };
    char::from_u32(first + place).map_or(' ', like)
}

fn like(c: char) -> char {
    let mut letterlike = LETTERLIKE.chars();
    while let (Some(odd), Some(plain)) = (letterlike.next(), letterlike.next()) {
        if odd == c {
            return plain;
        }
    }
    let small = c.to_lowercase().next().unwrap_or(c);
    let looks = |c: char| LIKE.iter().find(|(_, like)| like.contains(c)).map(|(latin, _)| *latin);
    looks(c).or_else(|| looks(small)).unwrap_or(c)
}
