//! Notices that the server itself writes: fact first, then time, then what can be done.

use super::Language;
use super::said::named;

/// Notices that the server itself writes; they contain no text of a model (USR-01).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice<'a> {
    /// A work item was given up.
    Poison {
        /// Fruitless runs.
        attempts: u32,
        /// What it was.
        what: &'a str,
    },
    /// A run reached its budget.
    Budget {
        /// Which budget and how much, as `40 of 40 steps`.
        what: &'a str,
    },
    /// The month's cap is reached: no run starts until it is raised or the month ends.
    MonthCap {
        /// How much, as `US$5.00 of US$5.00`.
        what: &'a str,
    },
    /// The model cannot be asked.
    Model {
        /// The class and remedy.
        reason: &'a str,
    },
    /// A polled source cannot be read.
    Source {
        /// Its name.
        name: &'a str,
        /// Why, with the remedy.
        reason: &'a str,
    },
    /// A source has been silent for longer than the user expects.
    Silent {
        /// Its name.
        name: &'a str,
        /// Since when.
        since: &'a str,
    },
    /// A connector is broken in a way that waiting does not mend.
    Connector {
        /// Its name.
        name: &'a str,
        /// Why.
        reason: &'a str,
    },
    /// A message holds everything back for longer than it should.
    Held {
        /// Since when.
        since: &'a str,
    },
    /// The model and the stop check do not agree about a message.
    IsItAStop {
        /// The message.
        said: &'a str,
    },
    /// What was sent has no answer yet.
    BeingChecked {
        /// The operation.
        what: &'a str,
    },
    /// Facts from outside were taken into a new version of a duty.
    Adopted {
        /// What differs.
        lines: &'a str,
    },
    /// The records were put back from a backup.
    PutBack {
        /// When it was taken.
        taken: &'a str,
    },
    /// The disk gets full.
    DiskLow {
        /// What is left.
        free: &'a str,
        /// Below which nothing new is taken in.
        least: &'a str,
    },
    /// Nothing new from outside is taken in, for want of room.
    DiskFull {
        /// What is left.
        free: &'a str,
    },
    /// A state lasts too long.
    Stuck {
        /// What.
        what: &'a str,
        /// Since when.
        since: &'a str,
    },
}

impl Notice<'_> {
    /// The sentence shown. Parameters that are sentences of this program are given in English.
    pub fn text(&self, language: Language) -> String {
        match language {
            Language::En => self.english(),
            Language::Zh => self.chinese(),
        }
    }

    fn chinese(&self) -> String {
        match self {
            Notice::Poison { attempts, what } => {
                format!("试了 {attempts} 次后放弃：{what}。其他事不受影响；要重试请再发一次。")
            }
            Notice::Budget { what } => {
                format!("已停：本次预算用尽（{}）。进度已保存；发一条消息即可继续。", named(what))
            }
            Notice::MonthCap { what } => format!(
                "暂缓：本月上限已用完（{}）。一切都保留着，下月继续。要现在继续，请提高上限：在页面的“更多”里，\
                 或用 adjutant set --cap-usd 数额。",
                named(what)
            ),
            Notice::Model { reason } => {
                format!("无法询问模型：{}。一切都保留着，之后自行继续。", named(reason))
            }
            Notice::Source { name, reason } => format!(
                "无法读取来源 {name}：“{}”。没有遗失，会继续尝试。见 adjutant source list。",
                named(reason)
            ),
            Notice::Silent { name, since } => format!(
                "{since} 起没有收到来自 {name} 的内容，超出你的预期。请看它是否还在发送，或用 adjutant source \
                 修改。"
            ),
            Notice::Connector { name, reason } => format!(
                "连接器 {name} 出了故障：“{}”。我不会绕道而行；需要它的事会等到它恢复。",
                named(reason)
            ),
            Notice::Held { since } => format!(
                "{since} 起暂缓：在确认你的消息是否要求停止之前，对外什么都不做。请在“当前”里点一下，或用 \
                 adjutant hold。"
            ),
            Notice::IsItAStop { said } => format!(
                "这是要求停止吗？“{said}”在你回答之前，对外什么都不做。请在“当前”里点一下，或用 adjutant hold。"
            ),
            Notice::BeingChecked { what } => {
                format!("核对中：{what}。已提交请求，结果尚不确定。我会查询，不会再次提交。")
            }
            Notice::Adopted { lines } => format!(
                "外部消息改变了这项事务的依据：{lines}。它可以做的事不变。如有不对请告诉我。"
            ),
            Notice::PutBack { taken } => format!(
                "已全部暂停：这些记录由 {taken} 的备份恢复。之后收到的、决定的、对外做的都不在其中，但可能已经                 发生。请先核实待决定的卡片和各项事务，以及此后撤销的设备（adjutant devices），再解除暂停：在                 “当前”里，或用 adjutant lift。"
            ),
            Notice::DiskLow { free, least } => format!(
                "服务器磁盘快满了：剩余 {free}。低于 {least} 时不再接收外部的新内容。请腾出空间。"
            ),
            Notice::DiskFull { free } => format!(
                "服务器磁盘几乎已满：剩余 {free}，不再接收外部的新内容。你的消息、决定和停止照常有效。请腾出空间，\
                 之后自行继续。"
            ),
            Notice::Stuck { what, since } => {
                format!("{since} 起无进展：{}。处理办法见 adjutant doctor。", named(what))
            }
        }
    }

    fn english(&self) -> String {
        match self {
            Notice::Poison { attempts, what } => format!(
                "I gave up on {what} after {attempts} tries. Nothing else is affected; send it again to retry."
            ),
            Notice::Budget { what } => {
                format!(
                    "Stopped: the budget of this one run is used up ({what}). What I reached is saved; \
                     send a message to go on."
                )
            }
            Notice::MonthCap { what } => {
                format!(
                    "On hold: this month's cap is used up ({what}). Everything is kept and goes on \
                     next month. To go on now, raise the cap: under More on the page, or with \
                     \"adjutant set --cap-usd AMOUNT\"."
                )
            }
            Notice::Model { reason } => {
                format!(
                    "I cannot reach the model: {reason}. Everything is kept and goes on by itself."
                )
            }
            Notice::Source { name, reason } => {
                format!(
                    "I cannot read the source {name}: {reason}. Nothing is lost; I go on trying. \
                     See \"adjutant source list\"."
                )
            }
            Notice::Silent { name, since } => {
                format!(
                    "Nothing has come from {name} since {since}, which is longer than you expect. \
                     Look whether it still sends, or change it with \"adjutant source\"."
                )
            }
            Notice::Connector { name, reason } => {
                format!(
                    "The connector {name} is broken: {reason}. I do not go round it by other ways; \
                     what needs it waits until it works again."
                )
            }
            Notice::Held { since } => {
                format!(
                    "Held since {since}: until it is settled whether your message says stop, nothing \
                     is done outside. Settle it with one tap under Now, or with \"adjutant hold\"."
                )
            }
            Notice::IsItAStop { said } => {
                format!(
                    "Does this mean stop? \"{said}\" Until you answer, nothing is done outside. \
                     Answer with one tap under Now, or with \"adjutant hold\"."
                )
            }
            Notice::BeingChecked { what } => {
                format!(
                    "Being checked: {what}. It was sent and no answer is certain yet. I look it up and \
                     do not send it again."
                )
            }
            Notice::Adopted { lines } => {
                format!(
                    "News from outside changed what this duty goes by: {lines}. What it may do is as \
                     before. Tell me if that is wrong."
                )
            }
            Notice::PutBack { taken } => {
                format!(
                    "Everything is paused: these records come from a backup of {taken}. What came in, was \
                     decided or was done outside after that is not in them, and may have happened all the \
                     same. Look at the open cards, at what your duties do, and at devices that you revoked \
                     since (\"adjutant devices\"); then lift the pause under Now, or with \"adjutant lift\"."
                )
            }
            Notice::DiskLow { free, least } => {
                format!(
                    "The server's disk gets full: {free} are left. Below {least} nothing new from \
                     outside is taken in. Make room there."
                )
            }
            Notice::DiskFull { free } => {
                format!(
                    "The server's disk is nearly full: {free} are left, and nothing new from outside is \
                     taken in. What you say, decide and stop counts as ever. Make room there; then it \
                     goes on by itself."
                )
            }
            Notice::Stuck { what, since } => {
                format!(
                    "No progress since {since}: {what}. See \"adjutant doctor\" for what to do."
                )
            }
        }
    }
}
