// The records of the HTTP contract (openapi.json), as the page reads them.

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
  late: boolean;
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
  runs: Run[];
  spent_micro_usd: number;
  state_line: string;
}

export type ProposalState = "open" | "confirmed" | "declined" | "withdrawn" | "expired";
export interface Proposal {
  id: string;
  kind: "new_duty" | "close_duty";
  duty: string | null;
  title: string;
  goal: string;
  conditions: Condition[];
  schedules: { words: string; prompt: string; first: Time | null }[];
  ends_at: Time | null;
  until: Time | null;
  if_nothing: string;
  digest: string;
  state: ProposalState;
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
  name: string;
  zone: string;
  device: string;
  seq: number;
  month: Month;
  now: Time;
  demo: boolean;
}

export interface Device {
  id: string;
  name: string;
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
}
