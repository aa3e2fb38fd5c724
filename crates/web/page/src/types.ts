// The records of the HTTP contract (openapi.json), as the page reads them.

import type { Lang } from "./clock.js";

/** RFC 3339 time. */
export type Time = string;

export type UserState = "received" | "delivered" | "read" | "handled" | "failed";
export type AgentState = "generated" | "queued" | "sending" | "delivered" | "uncertain" | "dropped";

export interface Entry {
  seq: number;
  kind: "user" | "agent" | "notice";
  id: string;
  text: string;
  at: Time;
  state: UserState | AgentState;
  duty: string | null;
  proposal: string | null;
  action: string | null;
  /** The card that the person asks about. */
  about: About | null;
  late: boolean;
}

/** A card, by its kind. */
export type About = { action: string } | { proposal: string };

export interface Money {
  minor: number;
  currency: string;
  text: string;
}
export interface GrantUse {
  count: number;
  amount: Money | null;
}
/** What a duty may do without asking again. */
export interface Grant {
  id: string;
  tool: string;
  words: string;
  state: "active" | "ended";
  times: number;
  each: Money | null;
  total: Money | null;
  recipients: string[];
  until_at: Time | null;
  reserved: GrantUse;
  spent: GrantUse;
  left: GrantUse;
}

export type ActionState =
  | "proposed"
  | "awaiting_approval"
  | "authorized"
  | "admitted"
  | "dispatched"
  | "unknown"
  | "accepted"
  | "effective"
  | "blocked"
  | "denied"
  | "expired"
  | "superseded"
  | "withdrawn"
  | "cancelled"
  | "abandoned";
export type Effect =
  "read" | "reversible" | "paid" | "commitment" | "outward" | "authority" | "human";
export type ApprovalState =
  "requested" | "granted" | "denied" | "expired" | "cancelled" | "consumed" | "voided";
export interface Approval {
  id: string;
  state: ApprovalState;
  words: string;
  /** Whose it is; a supervisor's stands besides one of the others. */
  of: "user" | "policy" | "supervisor";
  /** The same once they decided. */
  by: "user" | "policy" | "supervisor" | null;
  device: string | null;
  device_name: string | null;
  reason: string | null;
  template: string;
  /** The same as it was before whoever released it. */
  shown: string | null;
  until_at: Time;
  moved_at: Time;
}
export interface Attempt {
  n: number;
  operation_id: string;
  state: "registered" | "accepted" | "blocked" | "unknown";
  words: string;
  reason: string | null;
  receipt: string | null;
  created_at: Time;
  moved_at: Time;
}
/** An outside effect that is or was intended; the list leaves its attempts out. */
export interface Action {
  id: string;
  duty: string | null;
  title: string | null;
  task_version: string | null;
  tool: string;
  effect: Effect;
  tier: string | null;
  /** How its card is worded. */
  template: string;
  state: ActionState;
  words: string;
  what: string;
  card: { label: string; value: string }[];
  amount: Money | null;
  recipients: string[];
  digest: string;
  reason: string | null;
  expires_at: Time | null;
  if_nothing: string | null;
  afterwards: string | null;
  undo_ms: number;
  not_before: Time | null;
  receipt: string | null;
  authority: "outside" | "user" | null;
  contradicted: boolean;
  escalated_at: Time | null;
  compensates: string | null;
  created_at: Time;
  moved_at: Time;
  approvals: Approval[];
  /** Whose word is still asked for. */
  asked: ("user" | "supervisor")[];
  attempts?: Attempt[];
  seq: number;
}

export interface Condition {
  text: string;
  evidence: string;
  authority: string;
}
export type WaitState = "open" | "satisfied" | "timed_out" | "cancelled";
export interface Wait {
  id: string;
  kind: string;
  key: string;
  due_at: Time | null;
  state: WaitState;
}
export type ScheduleState = "active" | "paused" | "closed" | "expired";
export interface Schedule {
  id: string;
  words: string;
  prompt: string;
  next_slot: Time | null;
  state: ScheduleState;
  late_last: boolean;
  check: Check | null;
}
/** What a program looked at before anybody is woken. */
export interface Check {
  looked: number;
  woke: number;
  failed: number;
  last: Time | null;
  state: string | null;
}
export interface Subscription {
  id: string;
  source: string;
  name: string;
  topic: string | null;
  mode: "wake" | "background";
  prompt: string;
  until_at: Time | null;
  state: ScheduleState;
}
export type Stands = string;
export interface Situation {
  id: string;
  event: string | null;
  matter: string;
  taken_on_by: string | null;
  words: string;
  due_at: Time;
  created_at: Time;
}
export type RunState =
  "running" | "lost" | "sleeping" | "completed" | "interrupted" | "budget_exhausted" | "failed";
export interface Run {
  id: string;
  state: RunState;
  started_at: Time;
  ended_at: Time | null;
  steps: number;
  input_tokens: number;
  output_tokens: number;
  micro_usd: number;
}

export type DutyState = "active" | "close_proposed" | "stopped" | "closed";
export interface Duty {
  id: string;
  title: string;
  state: DutyState;
  version: number;
  goal: string;
  conditions: Condition[];
  created_at: Time;
  next_wake: Time | null;
  waits: Wait[];
  schedules: Schedule[];
  ends_at: Time | null;
  pause: { id: string; everything: boolean } | null;
  subscriptions: Subscription[];
  situations: Situation[];
  grants: Grant[];
  runs: Run[];
  spent_micro_usd: number;
  state_line: string;
}

export interface Pause {
  id: string;
  duty: string | null;
  title: string | null;
  by: "user" | "policy";
  created_at: Time;
}
export interface Hold {
  id: string;
  event: string;
  text: string;
  verdict: "stop" | "not_a_stop" | null;
  asked_at: Time | null;
  created_at: Time;
}
export type Dial = "off" | "observe" | "auto";
/** What is stopped, paused and held. */
export interface Control {
  system_stop: boolean;
  pauses: Pause[];
  holds: Hold[];
  dial: Dial;
  seq: number;
}

export type SourceKind = "webhook" | "folder" | "feed" | "url";
export interface Source {
  id: string;
  name: string;
  kind: SourceKind;
  secret: "kept" | "missing" | "unreadable" | null;
  every_ms: number | null;
  received_at: Time | null;
  silent: boolean;
  refused: number;
  refused_at: Time | null;
  looked_at: Time | null;
  next_look_at: Time | null;
  failures: number;
  last_event: string | null;
}

/** Everything on record about one event. */
export interface Trace {
  event: {
    id: string;
    kind: string;
    external_id: string;
    topic: string | null;
    key: string | null;
    trust: "outside" | "system" | "user";
    excerpt: string;
    received_at: Time;
    late: boolean;
    disposition: string | null;
    handled_at: Time | null;
  };
  source: { id: string; name: string; kind: string };
  origin: string | null;
  links: {
    how: "wait" | "subscription" | "attribution" | "dial";
    record: string;
    duty: string | null;
    title: string | null;
  }[];
  attribution: {
    model: string;
    candidates: { duty: string; title: string; chosen: boolean }[];
    answer: string | null;
    refused: string | null;
  } | null;
  related: { event: string; duty: string | null; disposition: string | null }[];
  work_item: {
    state: string;
    received_at: Time;
    delivered_at: Time | null;
    read_at: Time | null;
    done_at: Time | null;
  } | null;
  runs: {
    id: string;
    duty: string | null;
    state: RunState;
    reason: string | null;
    started_at: Time;
    ended_at: Time | null;
    messages: { id: string; state: AgentState; text: string; at: Time }[];
  }[];
  proactive: { dial: Dial; situation: string; reach: string; disturb: string } | null;
  words: string[];
}

export interface PlannedSchedule {
  words: string;
  prompt: string;
  first: Time | null;
  run_missed: "once" | "skip";
  /** The call that a program makes first; its arguments as JSON text, whole. */
  check: { tool: string; arguments: string; words: string } | null;
}
export interface PlannedSubscription {
  source: string;
  topic: string | null;
  mode: "wake" | "background";
  prompt: string;
  words: string;
}
export type ProposalState = "open" | "confirmed" | "declined" | "withdrawn" | "expired";
export type ProposalKind = "new_duty" | "change_duty" | "close_duty";
export interface Proposal {
  id: string;
  kind: ProposalKind;
  duty: string | null;
  title: string;
  goal: string;
  conditions: Condition[];
  schedules: PlannedSchedule[];
  subscriptions: PlannedSubscription[];
  /** In words, each. */
  grants: string[];
  reach: string | null;
  /** What a new version would change, in words, each. */
  changes: string[];
  ends_at: Time | null;
  until: Time | null;
  why: string;
  if_nothing: string;
  afterwards: string;
  digest: string;
  state: ProposalState;
  /** Where it stands, in the owner's language. */
  words: string;
  created_at: Time;
}

export interface Month {
  model_calls: number;
  wakeups: number;
  input_tokens: number;
  cached_tokens: number;
  output_tokens: number;
  micro_usd: number;
  cap_micro_usd: number | null;
}
export interface Me {
  owner: string;
  of: "user" | "supervisor";
  name: string;
  zone: string;
  /** In which language the server speaks, and this page with it. */
  language: Lang;
  device: string;
  seq: number;
  month: Month;
  now: Time;
  demo: boolean;
}

export interface Device {
  id: string;
  name: string;
  of: "user" | "supervisor";
  created_at: Time;
  revoked_at: Time | null;
  this: boolean;
}
export interface Offer {
  code: string;
  link: string;
  expires_at: Time;
}

export interface DemoSummary {
  wakeups: number;
  model_calls: number;
  messages: number;
  plugs: number;
  lost: number;
  doubled: number;
}
export interface Demo {
  day: number;
  of_days: number;
  virtual_now: Time;
  plugs: number;
  story: string;
  done: boolean;
  summary: DemoSummary | null;
}

export interface Change {
  seq: number;
  noun: string;
  id: string;
}
export interface Changes {
  changes: Change[];
  seq: number;
  more: boolean;
}
export interface Chat {
  entries: Entry[];
  seq: number;
  more: boolean;
}
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  /** What changed about the card that was tapped. */
  stale?: Stale;
}

/** A tap that came too late: the differences, and the card that counts now. */
export interface Stale {
  changes: string[];
  card: Action | Proposal;
}

/** How the person decided on the cards of one tool. */
export interface Decisions {
  tool: string;
  shown: number;
  approved: number;
  edited: number;
  refused: number;
  expired: number;
  open: number;
  median_seconds: number | null;
}
