//! Sentences that are on record, or made where nobody knows who will read them, in Chinese: reasons,
//! refusals, problems. They are kept in English, since the model reads them too; what a person reads is
//! put into their language here. A sentence that stands in no line of the tables is shown as it is: the
//! words of a vendor or of a person are theirs.

use super::Language;

/// One template in both languages. `{}` stands for words of others, or a number; `{+}` for a part, or a sentence,
/// of these tables.
type Template = (&'static str, &'static str);

/// A sentence of this program in the language of its reader. What a person typed is never asked for here.
pub fn said(english: &str, language: Language) -> String {
    match language {
        Language::En => english.to_owned(),
        Language::Zh => found(SENTENCES, english).unwrap_or_else(|| english.to_owned()),
    }
}

/// What a notice names, in Chinese: a part of a sentence, or one.
pub(super) fn named(english: &str) -> String {
    inner(english).unwrap_or_else(|| english.to_owned())
}

/// What stands inside another sentence.
fn inner(english: &str) -> Option<String> {
    found(SENTENCES, english).or_else(|| found(PARTS, english))
}

fn found(table: &[Template], english: &str) -> Option<String> {
    table.iter().find_map(|(template, wanted)| {
        let found = parts(template, english)?;
        Some(filled(wanted, &found))
    })
}

/// What stands in each place of a template, if the text is one of it; sentences are put into Chinese.
fn parts(template: &str, text: &str) -> Option<Vec<String>> {
    let mut pieces = template.split('{');
    let mut rest = text.strip_prefix(pieces.next()?)?;
    let mut found = Vec::new();
    let mut pieces = pieces.peekable();
    while let Some(piece) = pieces.next() {
        let (kind, after) = piece.split_once('}')?;
        let end = match (pieces.peek(), after.is_empty()) {
            (None, true) => rest.len(),
            (None, false) => rest.strip_suffix(after)?.len(),
            (Some(_), _) => rest.find(after)?,
        };
        let (part, more) = rest.split_at(end);
        rest = more.strip_prefix(after)?;
        found.push(if kind == "+" { inner(part)? } else { part.to_owned() });
    }
    rest.is_empty().then_some(found)
}

fn filled(template: &str, found: &[String]) -> String {
    let mut text = String::new();
    for (at, piece) in template.split("{}").enumerate() {
        if at > 0 {
            text.push_str(found.get(at - 1).map_or("", String::as_str));
        }
        text.push_str(piece);
    }
    text
}

/// What stands inside a sentence, or is named by a notice, and never by itself: so short that a person's own
/// words could be taken for it. The narrower before the wider.
pub(super) const PARTS: &[Template] = &[
    // Where an action stands, inside other sentences.
    ("being looked at", "正在查看"),
    ("waiting for the person", "等你决定"),
    ("released, not sent yet", "已放行，尚未发出"),
    ("about to be sent", "即将发出"),
    ("sent, no answer yet", "已提交请求，尚无答复"),
    ("sent, being checked", "已提交请求，结果核对中"),
    ("confirmed, evidence is looked for", "对方已确认，正在查找凭据"),
    ("in force", "已生效"),
    ("did not happen", "没有发生"),
    ("refused by the person", "你已否决"),
    ("expired, nothing happened", "已过期，没有发生"),
    ("no longer wanted, nothing happened", "已不需要，没有发生"),
    ("withdrawn, nothing happened", "已撤回，没有发生"),
    ("stopped before it was sent", "发出前已停下"),
    ("given up, nothing happened", "已放弃，没有发生"),
    // Bounds of a grant.
    ("the grant has ended", "授权已结束"),
    ("the grant was for {+} only, and that is used up", "授权只有{}，已用完"),
    ("once", " 1 次"),
    ("twice", " 2 次"),
    ("{} times", " {} 次"),
    ("the grant is not in {}", "授权的币种不是 {}"),
    ("what it costs is not known from the connector's answers", "从对方的答复里看不出价格"),
    ("{} is more than the grant allows at once", "{} 超过授权的单次上限"),
    ("{} is more than the {} that the grant has left", "{} 超过授权剩余的 {}"),
    ("the grant does not name whoever receives it", "授权没有写明接收方"),
    ("the grant does not name {}", "授权里没有 {}"),
    // What a notice names.
    ("it does not answer just now", "暂时没有答复"),
    (
        "its server refuses the key. Set a valid key and restart",
        "对方服务器拒绝密钥。请设置有效的密钥并重启",
    ),
    (
        "the account there is used up. Add credit or raise its limit there",
        "那里的账户额度用尽。请充值或提高限额",
    ),
    ("the conversation is longer than it can read", "对话超出它能读取的长度"),
    ("it refuses this content", "它拒绝处理这些内容"),
    ("it answers in a way that is not understood", "它的答复无法理解"),
    ("{} of {} steps", "{} / {} 步"),
    ("{} of {} tokens of context", "上下文 {} / {} 个 token"),
    ("{} of {} tokens", "{} / {} 个 token"),
    ("{} of US${}", "{} / US${}"),
    ("a conversation cannot be worked on ({})", "一段对话无法继续处理（{}）"),
    ("work item {}", "待处理事项（{}）"),
    ("task version {}", "事务版本（{}）"),
    ("action {}", "操作（{}）"),
    ("run {}", "唤醒（{}）"),
    ("message {}", "消息（{}）"),
    ("proposal {}", "问题（{}）"),
    ("schedule {}", "计划（{}）"),
    ("duty {}", "事务（{}）"),
    ("wait {}", "等待（{}）"),
];

/// Every whole sentence, the narrower before the wider.
pub(super) const SENTENCES: &[Template] = &[
    // The end of some of the others.
    ("nobody has released it; the person decides on its card", "还没有人放行，请在卡片上决定"),
    ("{+}; the person decides on its card", "{}，请在卡片上决定"),
    // Why a person is asked.
    ("No grant of yours covers it.", "没有你的授权覆盖它。"),
    ("No grant of yours covers it: {+}.", "没有你的授权覆盖它：{}。"),
    (
        "The reviewer asks you to look: it gave no answer ({}).",
        "复核请你看一下：复核模型没有答复（{}）。",
    ),
    ("The reviewer asks you to look: it gave no reason.", "复核请你看一下：没有说明原因。"),
    (
        "The reviewer asks you to look: its answer could not be read.",
        "复核请你看一下：复核的答复无法读取。",
    ),
    ("The reviewer asks you to look: {}.", "复核请你看一下：“{}”。"),
    ("reviewer {}: {}", "复核 {}：{}"),
    (
        "This month's cap is used up, so the reviewer was not asked.",
        "本月上限已用完，因此没有询问复核。",
    ),
    ("Your supervisor asks that you decide on this yourself.", "你的主管要求由你本人决定。"),
    (
        "These records come from a backup, and this may have been sent since then: look there before you \
         decide.",
        "这些记录由备份恢复，此后这件事可能已经发出：请先到对方那里核实，再作决定。",
    ),
    (
        "it was to be tried again when the backup was taken, and may have been sent since then",
        "备份时它正要重试，此后可能已经发出",
    ),
    // Why an action may not go on.
    (
        "the operator has stopped everything; it goes on when they lift that",
        "运行者已停止一切，解除后继续",
    ),
    ("it is paused; the person lifts that", "已暂停，由你解除"),
    (
        "a message of the person holds everything back until it is settled",
        "你的一条消息让一切暂缓，待确认后继续",
    ),
    ("its duty is no longer in force", "所属事务已不再有效"),
    (
        "it serves an older version of the duty; propose it again for the one in force",
        "它属于事务的旧版本，需按现行版本重新提出",
    ),
    (
        "what it names has expired; search again and propose it anew",
        "所指的内容已过期，需重新查找再提出",
    ),
    (
        "`{}` is not what it was when it was issued; search again and propose it anew",
        "“{}”已与当初不同，需重新查找再提出",
    ),
    (
        "action {} uses the same offer already; wait for what comes of it",
        "操作 {} 已在使用同一份报价，等它的结果",
    ),
    (
        "action {} is on the same errand and not settled; wait for what comes of it",
        "操作 {} 正在办同一件事，尚未了结，等它的结果",
    ),
    ("its content is not what was released; propose it again", "内容与放行时不同，需重新提出"),
    (
        "the connector's manifest says something else of this tool now; propose it again",
        "连接器对这个工具的说明已变，需重新提出",
    ),
    (
        "a rule of the supervisor forbids it; do without it, or ask them about the rule",
        "主管的一条规则不允许，请不做此事，或向主管询问这条规则",
    ),
    (
        "a rule of the supervisor asks that the person decides on it; they do so on its card",
        "主管的一条规则要求由你本人决定，请在卡片上决定",
    ),
    (
        "the supervisor has not approved it; they decide on their own device",
        "主管尚未批准，主管在自己的设备上决定",
    ),
    // What became of an action.
    ("the supervisor refused it", "主管已否决"),
    ("the supervisor refused it: {}", "主管已否决：“{}”"),
    ("it was refused, and yet {} is there", "对方已拒绝，但 {} 确实存在"),
    ("it was refused, and yet {} was confirmed", "对方已拒绝，后来又确认了 {}"),
    ("a newer version of its duty is in force", "事务的新版本已生效"),
    ("its duty was stopped", "所属事务已停止"),
    ("its duty is closed", "所属事务已结束"),
    ("what it names has expired", "所指的内容已过期"),
    ("nobody decided in time", "期限内没有人决定"),
    ("the person refused it", "你已否决"),
    ("the person took it back", "你已撤回"),
    ("the person said so", "你这样说的"),
    ("no answer is on record", "没有收到答复的记录"),
    (
        "no answer is on record, and there is no way to look it up",
        "没有收到答复的记录，也没有办法查询",
    ),
    ("its vendor confirmed it; no evidence could be had yet", "对方已确认，暂时查不到凭据"),
    ("it was taken for not done, and yet {} is there", "原以为没有办成，但 {} 确实存在"),
    ("it was taken for not done, and yet {} was confirmed", "原以为没有办成，后来对方确认了 {}"),
    ("{} has ended without effect", "{} 已结束，没有生效"),
    ("{} was confirmed, and {} is there", "对方确认的是 {}，实际查到的是 {}"),
    ("{} was confirmed, and is not there", "对方确认了 {}，但查不到"),
    ("it is not there, and can no longer come", "查不到，也不会再有"),
    ("no manifest has an entry of this tool any more", "这个工具已没有说明"),
    (
        "no manifest has an entry of this tool, and its server does not offer what was released",
        "这个工具没有说明，它的服务器也不再提供当初放行的内容",
    ),
    ("the connector's manifest says something else of this tool now", "连接器对这个工具的说明已变"),
    ("the built-in connector only reads", "内置连接器只能读取"),
    ("it answered with something at `{}` that is no receipt", "答复里“{}”处的内容不是凭据"),
    ("it answered with a receipt and with a refusal", "答复里既有凭据又有拒绝"),
    ("it answered with a receipt, and that it failed", "答复里有凭据，又说失败了"),
    ("it answered that it failed", "对方答复说失败了"),
    ("it answered that it failed: {}", "对方答复说失败了：“{}”"),
    ("it answered what proves nothing by itself: {}", "对方的答复本身不能证明什么：“{}”"),
    ("it answered without a receipt", "答复里没有凭据"),
    ("its answer is not JSON", "答复的格式不对"),
    ("it answered with error {}: {}", "对方答复错误 {}：“{}”"),
    ("it answered with HTTP {}", "对方答复 HTTP {}"),
    ("it answered that it refuses the connector's key: {}", "对方拒绝连接器的密钥：“{}”"),
    ("it answered with {}", "对方答复：“{}”"),
    ("no answer came within {} ms", "{} 毫秒内没有答复"),
    ("the connector's process ended before it answered", "连接器的进程在答复之前结束"),
    ("the connection broke before the answer was whole", "连接在答复完整之前中断"),
    ("its answer had more than {} bytes", "答复超过 {} 字节"),
    ("the moment until which it could be sent had passed", "已过了可以发出的时刻"),
    ("its connector is not set up any more", "它的连接器已不再设置"),
    // Decisions that could not be taken.
    (
        "This is not what was shown to you. Open the card again and decide on what it says now.",
        "这与你看到的不一致。请重新打开卡片，按现在的内容决定。",
    ),
    (
        "It is paused, so nothing was released. Lift the pause, then release it again.",
        "已暂停，因此没有放行。请先解除暂停，再放行。",
    ),
    (
        "The operator has stopped everything, so nothing was released. Release it again when that is \
         lifted.",
        "运行者已停止一切，因此没有放行。解除之后请再放行。",
    ),
    ("The time for this decision has passed. Nothing was done.", "决定的时限已过，什么都没有做。"),
    (
        "The time for this decision has passed. Nothing was changed.",
        "决定的时限已过，什么都没有改变。",
    ),
    ("This can no longer be decided: it is {+}.", "已不能再决定：{}。"),
    (
        "It has been sent already; what became of it is being checked. It can then be undone by an \
         action of its own.",
        "已经发出，结果核对中。之后可以用另一项操作撤销。",
    ),
    (
        "It has happened already. It can be undone by an action of its own: ask for that.",
        "已经发生。可以用另一项操作撤销：请提出。",
    ),
    ("Nothing is left to take back: it is {+}.", "没有可以撤回的：{}。"),
    ("This is settled already: it is {+}.", "已经了结：{}。"),
    ("You have confirmed this already.", "你已经同意过了。"),
    ("You have declined this already. Nothing was changed.", "你已经否决过了，什么都没有改变。"),
    ("This no longer applies. Nothing was changed.", "已不适用，什么都没有改变。"),
    (
        "This was drafted for a version of the duty that is no longer in force. Ask for the change \
         again.",
        "这是按事务的旧版本拟的，旧版本已不再有效。请重新提出更改。",
    ),
    (
        "It cannot be closed yet, since it still owes: {}. Settle or take these back first.",
        "还不能结束，仍有未了结的：{}。请先了结或撤回。",
    ),
    ("This duty is closed; nothing runs.", "事务已结束，没有在运行的。"),
    (
        "This duty is closed. Ask for a new one; the old one stays readable.",
        "事务已结束。请提出新的，旧的仍可查看。",
    ),
    (
        "This message was taken for a stop already, and a pause stands. Lift the pause.",
        "这条消息已被当作停止，暂停仍在。请解除暂停。",
    ),
    ("A cap cannot be below zero; name another amount.", "上限不能小于零，请填别的数额。"),
    (
        "Only a device of the supervisor writes rules. Ask them; on the machine where the server runs, \
         \"adjutant pair --supervisor\" makes a code for such a device.",
        "只有主管的设备能写规则。请找主管；在服务器所在的机器上，adjutant pair --supervisor 会为这样的\
         设备生成配对码。",
    ),
    (
        "A supervisor's device sees and ends its own rules and decides what asks for its approval, and \
         nothing else of the owner's. Use a device of the owner for this.",
        "主管的设备只能查看和结束自己的规则，并决定需要主管批准的事。请用所有者的设备。",
    ),
    (
        "A device of the supervisor is revoked by another one of theirs, or by \"adjutant revoke\" on \
         the machine where the server runs; a device of the owner by the owner's own.",
        "主管的设备由主管的另一台设备移除，或在服务器所在的机器上用 adjutant revoke；所有者的设备由\
         所有者自己的设备移除。",
    ),
    (
        "Only whoever runs the machine lets a supervisor in: \"adjutant pair --supervisor\" there, with \
         the token that the server left in its data folder.",
        "只有运行这台机器的人能让主管加入：在那里运行 adjutant pair --supervisor，使用服务器放在数据\
         文件夹里的令牌。",
    ),
    ("This names no tool: {}.", "这里写的不是工具：{}。"),
    (
        "There are {} rules in force, the most there can be. End one first.",
        "已有 {} 条规则生效，不能更多。请先结束一条。",
    ),
    // Ways in.
    (
        "A source's name has 1 to {} letters, digits, \"-\" or \"_\".",
        "来源的名称由 1 到 {} 个字母、数字、“-”或“_”组成。",
    ),
    (
        "There is a source {} already. Choose another name, or remove that one first.",
        "已有名为 {} 的来源。请换一个名称，或先移除它。",
    ),
    ("There are {} sources; remove one first.", "已有 {} 个来源，请先移除一个。"),
    ("{} is from 10 s to 366 days.", "{} 的范围是 10 秒到 366 天。"),
    (
        "The source {} watches this folder already. Use that one, or remove it first.",
        "来源 {} 已在看这个文件夹。请用它，或先移除它。",
    ),
    ("This source was removed; add another one.", "这个来源已移除，请另外添加。"),
    (
        "The answer to this request is kept no longer; send it under a new id.",
        "这个请求的答复已不再保留，请用新的编号再发。",
    ),
    // Requests.
    (
        "This id was used for another message. Send this one under a new id.",
        "这个编号已用于另一条消息。请用新的编号发送。",
    ),
    (
        "This id was used for another request. Nothing was changed; send this one under a new id.",
        "这个编号已用于另一个请求，什么都没有改变。请用新的编号发送。",
    ),
    (
        "There is no such {}. Read the list again; it may have changed.",
        "没有这样的记录（{}）。请重新读取列表，可能已有变化。",
    ),
    (
        "text has {} bytes; a message has 1 to {}. Send a longer one in parts.",
        "这条消息有 {} 字节，一条消息是 1 到 {} 字节。更长的请分开发送。",
    ),
    (
        "Give {} a name of 1 to {} characters on one line.",
        "请给 {} 一个名称：一行之内，1 到 {} 个字符。",
    ),
    (
        "Too many wrong codes. Wait a minute, then make a new code with \"adjutant pair\" where the \
         server runs, or on a paired page under More.",
        "错误的配对码太多。请等一分钟，再用 adjutant pair 或在已配对页面的“更多”里生成新的。",
    ),
    (
        "Too many requests at once. Nothing happened; send this one again.",
        "同时的请求太多，什么都没有发生。请再发一次。",
    ),
    (
        "No answer in time. Send the same request again, with the same id: it is done once.",
        "没有及时答复。请用同一编号再发一次，只会做一次。",
    ),
    (
        "The store is busy or cannot be reached. Send the same request again, with the same id: it is \
         done once.",
        "数据库正忙或无法访问。请用同一编号再发一次，只会做一次。",
    ),
    (
        "The disk of the server is full and nothing was written. Free some space, then send the same \
         request again.",
        "服务器磁盘已满，什么都没有写入。请腾出空间后再发一次。",
    ),
    (
        "The server is stopping. Send the same request again once it runs.",
        "服务器正在停止。恢复运行后请再发一次。",
    ),
    (
        "The stage {} has not passed for a minute, or not yet. If that lasts, look at the log and start \
         the server again.",
        "阶段 {} 一分钟内没有完成一轮，或尚未开始。如果持续如此，请查看日志并重启服务器。",
    ),
    (
        "This is a defect of the server; nothing was changed. Its log names it; run \"adjutant \
         doctor\".",
        "这是服务器的缺陷，什么都没有改变。日志里有记录，请运行 adjutant doctor。",
    ),
    (
        "The changes after that number are no longer kept. Read everything again.",
        "那之后的变化已不再保留。请全部重新读取。",
    ),
    ("The body is over {} bytes. Send less at once.", "内容超过 {} 字节。请一次少发一些。"),
];
