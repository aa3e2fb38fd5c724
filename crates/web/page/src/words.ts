// Every word of the page, in English and Chinese. Grammar: fact first, then time, then what is
// open, then the next step. Past tense only with evidence. State words follow the record's state
// and claim no more than it does.

import type { Lang } from "./clock.js";
import { actionsEn, actionsZh } from "./words-actions.js";
import type {
  Action,
  AgentState,
  DutyState,
  Entry,
  PlannedSchedule,
  PlannedSubscription,
  RunState,
  ScheduleState,
  SourceKind,
  UserState,
  WaitState,
} from "./types.js";

const en = {
  tabChat: "Chat",
  tabDuties: "Duties",
  tabMore: "More",
  regions: "Main",
  quietStrip: "Nothing needs you",
  needsYou: (n: number) => `Needs you: ${n}`,
  live: "Up to date",
  connecting: "Connecting…",
  offline: (at: string) => `No connection · this page shows ${at}`,
  offlineNever: "No connection · trying again",
  plugged: "Plug pulled · restarting…",
  otherLang: "中文",
  otherLangLabel: "Switch to Chinese",

  pairTitle: "Pair this device",
  pairLead: "Adjutant runs on your own computer. A pairing code proves that this browser is yours.",
  pairHow: "A paired device makes the code under More; where Adjutant runs, “adjutant pair” does.",
  pairCode: "Pairing code",
  pairName: "Name of this device",
  pairButton: "Pair this device",
  pairing: "Pairing…",
  pairRefused:
    "This code is wrong, used or too old. Make a new one under More on a paired device, or with “adjutant pair” where Adjutant runs.",
  pairUnreachable: "Adjutant does not answer. Start it on its computer, then try again.",
  pairRevoked: "This device is no longer paired. Ask for a new code to pair it again.",
  pairShape: "A code has eight letters or digits, like ABCD-EFGH.",
  sentBefore: "This may have arrived under the earlier pairing, so it was not sent again.",

  chatLog: "Conversation",
  composer: "Message to Adjutant",
  composerHint: "Write to Adjutant",
  send: "Send",
  earlier: "Earlier messages",
  speaker: { user: "You", agent: "Adjutant", notice: "Notice" },
  today: "Today",
  toNewest: "To the newest",
  chatEmpty: "No messages yet. Say what Adjutant should look after, and until when.",
  tooLong: "Too long for one message: 32,000 bytes is the limit. Nothing was sent.",
  outboxFull: "200 messages wait for a connection. This one stays here until they are sent.",
  notSent: "Not sent yet – goes when connected",
  notSentStay: "Not sent",
  takeBack: "Back to the composer",
  discard: "Discard",
  user: {
    received: "Received · not picked up yet",
    delivered: "Handed to its session · not read yet",
    read: "Read · not dealt with yet",
    handled: "Dealt with",
    failed: "Not dealt with: the work on it ended early. Your message is kept.",
  } satisfies Record<UserState, string>,
  agentStates: {
    generated: "Written, not sent yet",
    queued: "In the outbox, not sent yet",
    sending: "Being handed over",
    delivered: "Delivered",
    uncertain: "Delivery uncertain: it may or may not have reached you before",
    dropped: "Not delivered: no longer applied",
  } satisfies Record<AgentState, string>,
  late: "Later than planned",

  groups: {
    needs: "Needs you",
    working: "Working",
    waiting: "Waiting",
    quiet: "Quiet",
    ended: "Ended",
  },
  dutyEmpty: "No duties yet. Ask for one in the chat; nothing starts before you agree.",
  nextWake: (at: string) => `Next wake-up ${at}`,
  noWake: "No wake-up planned",
  back: "All duties",
  goal: "What is asked",
  doneWhen: "Done when",
  waitingFor: "Waiting for",
  plan: "Planned wake-ups",
  reach: "Used so far",
  runs: "Wake-ups so far",
  evidence: (what: string) => `Evidence: ${what}`,
  authority: (who: string) => `Decided by: ${who}`,
  noConditions: "No end is named: it runs until you stop it.",
  noWaits: "Nothing is awaited.",
  noPlan: "No wake-up is planned.",
  noRuns: "It has not woken up yet.",
  due: (at: string) => `until ${at}`,
  next: (at: string) => `next ${at}`,
  lateLast: "the last one came later than planned",
  steps: (n: number) => (n === 1 ? "1 step" : `${n} steps`),
  tokens: (input: string, output: string) => `${input} tokens in, ${output} out`,
  version: (n: number) => `Version ${n}`,
  since: (at: string) => `since ${at}`,
  spent: "Spent",
  dutyGone: "This duty is not in the records of this server.",
  dutyStates: {
    active: "Active",
    close_proposed: "Waiting for your decision: end it or keep it",
    stopped: "Stopped",
    closed: "Closed",
  } satisfies Record<DutyState, string>,
  stop: "Stop",
  stopAsk: "Stop this duty",
  stopKeep: "Keep it running",
  resume: "Resume",
  stopWhat: (plans: number, waits: number) =>
    "No new wake-ups. " +
    (plans + waits > 0 ? `Planned: ${plans}, awaited: ${waits}; none of them will wake it. ` : "") +
    "What was already sent stands. Resume brings it back.",
  stopping: "Stop requested · not confirmed yet",
  stopOffline: "Not stopped yet – no connection",
  resuming: "Resume requested · not confirmed yet",

  waitStates: {
    open: "Not come yet",
    satisfied: "Came",
    timed_out: "Its time passed, nothing came",
    cancelled: "No longer awaited",
  } satisfies Record<WaitState, string>,
  scheduleStates: {
    active: "Active",
    paused: "Paused: the duty is stopped",
    closed: "Ended",
    expired: "Ended: its last day passed",
  } satisfies Record<ScheduleState, string>,
  runStates: {
    running: "Running",
    lost: "Its process is gone; it is taken up again",
    sleeping: "The model cannot be asked now; tried again later",
    completed: "Finished",
    interrupted: "Ended early; a later one took it over",
    budget_exhausted: "Stopped: its own budget used up. What it reached is kept.",
    failed: "Ended by an error",
  } satisfies Record<RunState, string>,

  cardNew: (title: string) => `Start a duty: ${title}`,
  cardChange: (title: string) => `Change a duty: ${title}`,
  cardClose: (title: string) => `End a duty: ${title}`,
  cardGoal: "What it will do",
  cardDone: "Done when",
  cardPlan: "Wakes up",
  first: (at: string) => `first ${at}`,
  missedSkipped: "A time that is missed is left out",
  checkCalls: (tool: string, given: string) => `Calls first: ${tool} with ${given}`,
  checkOnlyIf: (what: string) => `Wakes only if: ${what}`,
  deadline: (at: string, left: string) => (left ? `by ${at} (${left})` : `by ${at}`),
  deadlinePassed: (at: string) => `The time for an answer ended ${at}.`,
  noDeadline: "No deadline",
  cardUntil: "Deadline",
  cardEnds: "Ends",
  noEnd: "When you say that it is done, or stop it",
  ifNothing: "If you do nothing",
  whyAsked: "Why you are asked",
  changes: "What changes",
  afterwards: "Afterwards",
  startYes: "Start this duty",
  startNo: "Don't start",
  changeYes: "Change this duty",
  changeNo: "Leave it as it is",
  closeYes: "End this duty",
  closeNo: "Keep it running",
  details: "All details",
  digest: "Digest",
  asked: "Asked",
  deciding: "Sent · no answer yet",
  cardOffline: "No connection. A decision is never sent later by itself; decide when connected.",
  cardBroken: "The connection broke before an answer. It was read again and is still open.",

  demoDay: (day: number, of: number) => `Day ${day} of ${of}`,
  pull: "Pull the plug",
  plugs: (n: number) => `Plugs pulled: ${n}`,
  pullWhat: "Kills the server process at once, without a warning to it.",
  demoLabel: "Demonstration on a fast clock",
  demoDone: "The story is told",
  sumWakeups: "Wake-ups",
  sumCalls: "Model calls",
  sumMessages: "Messages",
  sumPlugs: "Plugs pulled",
  sumLost: "Lost",
  sumDoubled: "Doubled",

  month: "This month",
  wakeups: "Wake-ups",
  calls: "Model calls",
  input: "Tokens read",
  cached: "of these from the cache",
  output: "Tokens written",
  cost: "Cost",
  ofCap: (spent: string, cap: string) => `${spent} of ${cap}`,
  capEdit: "Change the cap",
  capLabel: "Cap for a month, in US dollars",
  capWhat:
    "Once it is reached, the model is asked nothing more until next month or a higher cap. 0 allows only what is free.",
  capYes: "Set this cap",
  capNo: "Leave it",
  capShape: "Write US dollars, such as 30 or 2.50.",
  noAnswer: "No answer. Look here again once connected; it may or may not have been done.",
  look: "Look",
  lookSystem: "As the system",
  lookLight: "Light",
  lookDark: "Dark",
  language: "Language",
  devices: "Devices",
  thisDevice: "this device",
  pairedAt: (at: string) => `paired ${at}`,
  revokedAt: (at: string) => `revoked ${at}`,
  revokedDevices: (n: number) => `Revoked: ${n}`,
  revoke: "Revoke",
  revokeYes: "Revoke this device",
  revokeNo: "Keep it",
  revokeWhat: (name: string) => `${name} is shut out at once. What it sent stands.`,
  revokeSelf: "This page is shut out at once. You need a new code to pair it again.",
  pairAnother: "Pair another device",
  pairAgain: "Make another code",
  codeLeft: (left: string) => `Works once · ${left}`,
  codeHow: "On the other device open Adjutant and type this code, or open this link there:",
  codeOver: "The time of this code has passed. Make another one.",
  pairedNow: (name: string) => `Paired: ${name}`,
  device: "This device",
  owner: "Owner",
  zone: "Zone",
  server: "Server",
  licences: "Licences of what this page is built from",
  forget: "Forget this pairing",
  forgetWhat: "Removes the key from this browser. Unsent messages go with it. Records stay.",
  forgetYes: "Forget it",
  forgetNo: "Keep it",
  rereadFailed: (detail: string) => `Could not read the records: ${detail}`,

  holdAll: "Hold everything",
  holdAsked: "Sent · no answer yet",
  holdOffline: "Not held yet: no connection. It goes first once connected.",
  heldLabel: "What is held",
  systemStop: "Stopped where Adjutant runs: you are answered, nothing else runs.",
  allPaused: (at: string) => `Everything is paused since ${at}. What was already sent stands.`,
  allPausedByWord: (at: string) =>
    `Everything is paused since ${at}: a message of yours says stop, or the records come from a backup. What was already sent stands.`,
  onePaused: (title: string, at: string) => `Paused since ${at}: ${title}`,
  lift: "Lift the pause",
  liftAll: "Lift it for everything",
  heldSince: (at: string) => `Held since ${at}:`,
  holdAsk: "Does this mean stop?",
  holdStop: "It means stop",
  holdNot: "Not a stop",
  pauseDuty: "Pause this duty",
  pausedAlone: "Paused: nothing runs for it until you lift this.",
  pausedWithAll: "Paused with everything else.",
  hears: "What it hears",
  everyTopic: "everything",
  readAlong: "read along, wakes nobody",
  situations: "Where things stand",
  lookAgain: (at: string) => `looked at again ${at}`,
  checked: (looked: number, woke: number) => `Looked ${looked} times, woke ${woke}`,
  lastLook: (at: string) => `last ${at}`,
  checkFailed: (n: number) => `could not be read: ${n}`,

  sources: "Sources",
  noSources: "No sources. Where Adjutant runs, “adjutant source add” makes one.",
  sourceKinds: {
    webhook: "Webhook",
    folder: "Folder",
    feed: "Feed",
    url: "Page",
  } satisfies Record<SourceKind, string>,
  received: (at: string) => `last received ${at}`,
  receivedNever: "never received anything",
  looked: (at: string) => `looked at ${at}`,
  lookedNever: "not looked at yet",
  silent: "Silent for longer than you expect",
  refused: (n: number, at: string) => `Refused: ${n}, last ${at}`,
  lookFailures: (n: number) => `Looks in a row that failed: ${n}`,
  noSecret: (name: string) => `No secret that can be used: adjutant source rotate ${name}`,
  lastEvent: "What became of the last event",
  backMore: "More",
  traceTitle: (source: string) => `An event from ${source}`,
  traceReceived: "Received",
  traceConcerns: "Concerns",
  traceQueue: "In the queue",
  traceRun: "Wake-up",
  traceNoted: "Noted",
  traceEnd: "What became of it",
  trusts: {
    outside: "Anyone may have written it",
    system: "Written by Adjutant",
    user: "Written by you",
  },
  hows: {
    wait: "something waited for it",
    subscription: "it hears this source",
    attribution: "the small model said so",
    dial: "the dial stands on auto",
  },
  concernsNothing: "No duty",
  modelAsked: (model: string, candidates: string, answer: string) =>
    `${model} was asked about ${candidates} and answered ${answer}`,
  didNotCount: "did not count:",
  listComma: ", ",
  alsoTold: "Also told to another duty",
  atReceived: "received",
  atDelivered: "delivered",
  atRead: "read",
  atDone: "done",
  saidNothing: "It said nothing.",
  notHandled: "Not handled yet",

  ...actionsEn,
};

export type Words = typeof en;

const zh: Words = {
  tabChat: "对话",
  tabDuties: "事务",
  tabMore: "更多",
  regions: "主导航",
  quietStrip: "没有需要你处理的事",
  needsYou: (n) => `等你决定：${n} 件`,
  live: "已是最新",
  connecting: "正在连接…",
  offline: (at) => `没有连接 · 当前显示的是 ${at} 的情况`,
  offlineNever: "没有连接 · 正在重连",
  plugged: "电源已拔 · 正在重启…",
  otherLang: "English",
  otherLangLabel: "切换到英文",

  pairTitle: "配对这台设备",
  pairLead: "Adjutant 在你自己的电脑上运行。配对码用来证明这个浏览器是你的。",
  pairHow: "已配对的设备可在“更多”里生成配对码；在运行 Adjutant 的电脑上用 adjutant pair。",
  pairCode: "配对码",
  pairName: "这台设备的名称",
  pairButton: "配对这台设备",
  pairing: "正在配对…",
  pairRefused:
    "配对码有误、已用过或已过期。请在已配对设备的“更多”里重新生成，或在运行 Adjutant 的电脑上用 adjutant pair。",
  pairUnreachable: "Adjutant 没有应答。请先在它的电脑上启动，然后再试。",
  pairRevoked: "这台设备的配对已失效。请取得新的配对码重新配对。",
  pairShape: "配对码由 8 个字母或数字组成，例如 ABCD-EFGH。",
  sentBefore: "这条消息可能已在上次配对时送达，因此没有再次发送。",

  chatLog: "对话记录",
  composer: "写给 Adjutant 的消息",
  composerHint: "写给 Adjutant",
  send: "发送",
  earlier: "更早的消息",
  speaker: { user: "你", agent: "Adjutant", notice: "通知" },
  today: "今天",
  toNewest: "到最新",
  chatEmpty: "还没有消息。告诉 Adjutant 要照看什么、到什么时候为止。",
  tooLong: "超出单条消息的上限 32,000 字节，没有发出。",
  outboxFull: "已有 200 条消息在等待连接。这条先留在这里。",
  notSent: "尚未发出，联网后发送",
  notSentStay: "没有发出",
  takeBack: "放回输入框",
  discard: "丢弃",
  user: {
    received: "已收下 · 尚未取用",
    delivered: "已交给会话 · 尚未读取",
    read: "已读取 · 尚未处理完",
    handled: "已处理",
    failed: "未能处理：这次工作提前结束。你的消息仍保存着。",
  },
  agentStates: {
    generated: "已写好，尚未发出",
    queued: "待发，尚未发出",
    sending: "正在送出",
    delivered: "已送达",
    uncertain: "是否送达不确定：之前可能到了，也可能没到",
    dropped: "未送达：已不适用",
  },
  late: "晚于计划",

  groups: {
    needs: "等你决定",
    working: "进行中",
    waiting: "等待中",
    quiet: "安静",
    ended: "已结束",
  },
  dutyEmpty: "还没有事务。在对话里提出即可；你同意之前不会开始。",
  nextWake: (at) => `下次唤醒 ${at}`,
  noWake: "没有计划中的唤醒",
  back: "全部事务",
  goal: "委托内容",
  doneWhen: "完成条件",
  waitingFor: "正在等待",
  plan: "计划中的唤醒",
  reach: "已用",
  runs: "历次唤醒",
  evidence: (what) => `依据：${what}`,
  authority: (who) => `由谁认定：${who}`,
  noConditions: "没有写明终点：一直进行到你停止为止。",
  noWaits: "没有在等待的事。",
  noPlan: "没有计划中的唤醒。",
  noRuns: "还没有被唤醒过。",
  due: (at) => `最迟 ${at}`,
  next: (at) => `下次 ${at}`,
  lateLast: "上一次晚于计划",
  steps: (n) => `${n} 步`,
  tokens: (input, output) => `读入 ${input} 个 token，写出 ${output} 个`,
  version: (n) => `第 ${n} 版`,
  since: (at) => `始于 ${at}`,
  spent: "花费",
  dutyGone: "这台服务器的记录里没有这项事务。",
  dutyStates: {
    active: "有效",
    close_proposed: "等你决定：结束还是继续",
    stopped: "已停止",
    closed: "已结束",
  },
  stop: "停止",
  stopAsk: "停止这项事务",
  stopKeep: "继续进行",
  resume: "恢复",
  stopWhat: (plans, waits) =>
    "不再有新的唤醒。" +
    (plans + waits > 0 ? `计划 ${plans} 个、等待 ${waits} 个，都不会再唤醒它。` : "") +
    "已经发出的仍然有效。之后可以恢复。",
  stopping: "已提交停止 · 尚未确认",
  stopOffline: "尚未停止：没有连接",
  resuming: "已提交恢复 · 尚未确认",

  waitStates: {
    open: "尚未等到",
    satisfied: "已等到",
    timed_out: "时间已过，没有等到",
    cancelled: "不再等待",
  },
  scheduleStates: {
    active: "有效",
    paused: "暂停：事务已停止",
    closed: "已结束",
    expired: "已结束：最后一天已过",
  },
  runStates: {
    running: "进行中",
    lost: "进程中断，会自行接续",
    sleeping: "暂时无法询问模型，稍后再试",
    completed: "已完成",
    interrupted: "提前结束，由后一次接续",
    budget_exhausted: "已停：本次预算用尽。进度已保存。",
    failed: "因错误结束",
  },

  cardNew: (title) => `开始一项事务：${title}`,
  cardChange: (title) => `更改一项事务：${title}`,
  cardClose: (title) => `结束一项事务：${title}`,
  cardGoal: "会做什么",
  cardDone: "完成条件",
  cardPlan: "何时唤醒",
  first: (at) => `首次 ${at}`,
  missedSkipped: "错过的时间不补",
  checkCalls: (tool, given) => `先调用：${tool}，参数 ${given}`,
  checkOnlyIf: (what) => `仅在此时唤醒：${what}`,
  deadline: (at, left) => (left ? `${at} 前（${left}）` : `${at} 前`),
  deadlinePassed: (at) => `答复时间已于 ${at} 截止。`,
  noDeadline: "没有期限",
  cardUntil: "期限",
  cardEnds: "何时结束",
  noEnd: "你确认完成或停止时",
  ifNothing: "如果你不处理",
  whyAsked: "为什么问你",
  changes: "改动内容",
  afterwards: "之后",
  startYes: "开始这项事务",
  startNo: "不开始",
  changeYes: "更改这项事务",
  changeNo: "保持不变",
  closeYes: "结束这项事务",
  closeNo: "继续进行",
  details: "全部细节",
  digest: "摘要值",
  asked: "提出时间",
  deciding: "已提交 · 尚无答复",
  cardOffline: "没有连接。决定不会留到以后自动发送，请联网后再决定。",
  cardBroken: "连接在答复之前中断。已重新读取，仍在等你决定。",

  demoDay: (day, of) => `第 ${day} 天，共 ${of} 天`,
  pull: "拔掉电源",
  plugs: (n) => `已拔 ${n} 次`,
  pullWhat: "立即杀掉服务器进程，不给它任何预告。",
  demoLabel: "快钟演示",
  demoDone: "故事讲完了",
  sumWakeups: "唤醒",
  sumCalls: "模型调用",
  sumMessages: "消息",
  sumPlugs: "拔电源",
  sumLost: "丢失",
  sumDoubled: "重复",

  month: "本月",
  wakeups: "唤醒",
  calls: "模型调用",
  input: "读入 token",
  cached: "其中来自缓存",
  output: "写出 token",
  cost: "费用",
  ofCap: (spent, cap) => `${spent} / ${cap}`,
  capEdit: "修改上限",
  capLabel: "每月上限（美元）",
  capWhat: "用到上限后不再询问模型，直到下月或上限提高。0 表示只用免费的。",
  capYes: "设为此上限",
  capNo: "不改",
  capShape: "请填美元数额，例如 30 或 2.50。",
  noAnswer: "没有答复，可能已完成也可能没有。联网后请再看这里。",
  look: "外观",
  lookSystem: "跟随系统",
  lookLight: "浅色",
  lookDark: "深色",
  language: "语言",
  devices: "设备",
  thisDevice: "这台设备",
  pairedAt: (at) => `配对于 ${at}`,
  revokedAt: (at) => `撤销于 ${at}`,
  revokedDevices: (n) => `已撤销：${n}`,
  revoke: "撤销",
  revokeYes: "撤销这台设备",
  revokeNo: "保留",
  revokeWhat: (name) => `立即停止 ${name} 的访问。它已发出的仍然有效。`,
  revokeSelf: "这个页面会立即失去访问。要重新配对需要新的配对码。",
  pairAnother: "配对另一台设备",
  pairAgain: "再生成一个",
  codeLeft: (left) => `只能用一次 · ${left}`,
  codeHow: "在另一台设备上打开 Adjutant 并输入此码，或在那里打开这个链接：",
  codeOver: "配对码已过期。请再生成一个。",
  pairedNow: (name) => `已配对：${name}`,
  device: "这台设备",
  owner: "所有者",
  zone: "时区",
  server: "服务器",
  licences: "本页所用软件的许可证",
  forget: "忘记这次配对",
  forgetWhat: "从这个浏览器移除密钥，未发出的消息一并移除。记录不受影响。",
  forgetYes: "忘记",
  forgetNo: "保留",
  rereadFailed: (detail) => `无法读取记录：${detail}`,

  holdAll: "全部暂停",
  holdAsked: "已提交 · 尚无答复",
  holdOffline: "尚未暂停：没有连接。联网后最先发送。",
  heldLabel: "暂停与搁置",
  systemStop: "已在运行 Adjutant 的电脑上停止：只回复你，其余都不运行。",
  allPaused: (at) => `${at} 起全部暂停。已经发出的仍然有效。`,
  allPausedByWord: (at) => `${at} 起全部暂停：你的一条消息要求停止，或记录由备份恢复。已经发出的仍然有效。`,
  onePaused: (title, at) => `${at} 起暂停：${title}`,
  lift: "解除暂停",
  liftAll: "解除全部暂停",
  heldSince: (at) => `${at} 起搁置：`,
  holdAsk: "这是要求停止吗？",
  holdStop: "是要停止",
  holdNot: "不是停止",
  pauseDuty: "暂停这项事务",
  pausedAlone: "已暂停：解除之前不会运行。",
  pausedWithAll: "已随全部事务暂停。",
  hears: "接收来源",
  everyTopic: "全部主题",
  readAlong: "顺带读取，不唤醒",
  situations: "目前情况",
  lookAgain: (at) => `${at} 再看`,
  checked: (looked, woke) => `看过 ${looked} 次，唤醒 ${woke} 次`,
  lastLook: (at) => `最近 ${at}`,
  checkFailed: (n) => `读取失败 ${n} 次`,

  sources: "来源",
  noSources: "还没有来源。在运行 Adjutant 的电脑上用 adjutant source add 添加。",
  sourceKinds: { webhook: "Webhook", folder: "文件夹", feed: "订阅源", url: "网页" },
  received: (at) => `最近收到 ${at}`,
  receivedNever: "从未收到",
  looked: (at) => `最近查看 ${at}`,
  lookedNever: "还没有查看过",
  silent: "沉默时间已超出预期",
  refused: (n, at) => `拒收 ${n} 次，最近 ${at}`,
  lookFailures: (n) => `连续 ${n} 次查看失败`,
  noSecret: (name) => `没有可用的密钥：adjutant source rotate ${name}`,
  lastEvent: "最近一个事件的去向",
  backMore: "更多",
  traceTitle: (source) => `来自 ${source} 的事件`,
  traceReceived: "收到",
  traceConcerns: "涉及",
  traceQueue: "排队",
  traceRun: "唤醒",
  traceNoted: "记下",
  traceEnd: "结果",
  trusts: {
    outside: "任何人都可能写的",
    system: "由 Adjutant 写的",
    user: "由你写的",
  },
  hows: {
    wait: "有事务在等它",
    subscription: "事务接收这个来源",
    attribution: "由小模型判断",
    dial: "主动程度为自动",
  },
  concernsNothing: "不涉及任何事务",
  modelAsked: (model, candidates, answer) => `已问 ${model}：${candidates}；答复 ${answer}`,
  didNotCount: "未采纳：",
  listComma: "、",
  alsoTold: "也告知了另一项事务",
  atReceived: "收到",
  atDelivered: "取用",
  atRead: "读取",
  atDone: "处理完",
  saidNothing: "没有说话。",
  notHandled: "尚未处理",

  ...actionsZh,
};

export const WORDS: Record<Lang, Words> = { en, zh };

/** The first of the browser's languages that the page speaks. */
export function pickLang(languages: readonly string[]): Lang {
  for (const language of languages) {
    if (language.toLowerCase().startsWith("zh")) return "zh";
    if (language.toLowerCase().startsWith("en")) return "en";
  }
  return "en";
}

export function entryStateWords(entry: Entry, words: Words): string {
  return entry.kind === "user"
    ? stateWords(words.user, entry.state as UserState)
    : stateWords(words.agentStates, entry.state as AgentState);
}

/** The operation with its price or its receiver, as title and button name it. */
export function actionNamed(action: Action, words: Words): string {
  if (action.amount !== null) return words.actFor(action.tool, wholeAmounts(action.amount.text));
  const [first, ...others] = action.recipients;
  if (first === undefined) return action.tool;
  const who = others.length === 0 ? first : words.actAndOthers(first, others.length);
  return words.actTo(action.tool, who);
}

/** An amount such as "HKD 2 600.00" is never parted at the end of a line. */
export function wholeAmounts(text: string): string {
  return text.replaceAll(/\b[A-Z]{3} -?\d[\d ]*\d(?:\.\d+)?|\b[A-Z]{3} \d/g, (amount) =>
    amount.replaceAll(" ", "\u00a0"),
  );
}

/** How a state looks: one colour means one thing everywhere. */
export function actionTone(
  action: Action,
): "open" | "moving" | "unknown" | "confirmed" | "bad" | "ended" {
  switch (action.state) {
    case "awaiting_approval":
      return "open";
    case "unknown":
      return "unknown";
    case "effective":
      return "confirmed";
    case "blocked":
    case "abandoned":
      return "bad";
    case "denied":
    case "expired":
    case "superseded":
    case "withdrawn":
    case "cancelled":
      return "ended";
    default:
      // Under way, or a state newer than this page.
      return "moving";
  }
}

/** What of a planned wake-up is authorised beside its times: one line each. */
export function planLines(plan: PlannedSchedule, words: Words): string[] {
  const lines = plan.run_missed === "skip" ? [words.missedSkipped] : [];
  if (plan.check !== null) {
    lines.push(words.checkCalls(plan.check.tool, plan.check.arguments));
    lines.push(words.checkOnlyIf(plan.check.words));
  }
  return lines;
}

/** Which events a new duty would hear. */
export function heardWords(heard: PlannedSubscription, words: Words): string {
  const topic = `${heard.source} · ${heard.topic ?? words.everyTopic}`;
  return heard.mode === "background" ? `${topic} · ${words.readAlong}` : topic;
}

/** Eight letters or digits with a dash in the middle, or null. */
export function tidyCode(typed: string): string | null {
  const bare = typed.toUpperCase().replace(/[^0-9A-Z]/g, "");
  return bare.length === 8 ? `${bare.slice(0, 4)}-${bare.slice(4)}` : null;
}

/** The code in `#code=ABCD-EFGH`, or null. */
export function codeInFragment(fragment: string): string | null {
  const match = /^#code=([^&]+)$/.exec(fragment);
  return match?.[1] === undefined ? null : tidyCode(match[1]);
}

/** The words for a state; one newer than this page is shown as the record has it. */
export function stateWords<S extends string>(known: Record<S, string>, state: S): string {
  return (known as Record<string, string>)[state] ?? state.replaceAll("_", " ");
}
