-- Records of the first release (DESIGN section 5). Times are microseconds UTC; ids are UUIDv7.
-- Guards for every column `state` are generated from domain's transition tables, not written here.

CREATE TABLE node (
  name TEXT COLLATE "C" PRIMARY KEY,
  incarnation UUID NOT NULL,
  started_at BIGINT NOT NULL
);

CREATE TABLE owner (
  id UUID PRIMARY KEY,
  name TEXT NOT NULL,
  zone TEXT NOT NULL,
  -- The number of the last change and the head of the audit chain: the commit wrapper advances both.
  change_seq BIGINT NOT NULL,
  audit_seq BIGINT NOT NULL,
  audit_head BYTEA NOT NULL,
  main_session UUID NOT NULL,
  timer_source UUID NOT NULL,
  -- How far the agent goes by itself where no duty asks for it.
  dial TEXT NOT NULL CHECK (dial IN ('off', 'observe', 'auto')),
  language TEXT CHECK (language IN ('en', 'zh')),
  month_cap_micro_usd BIGINT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE TABLE principal (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('user', 'supervisor', 'policy')),
  name TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX principal_kind ON principal (owner, kind);

CREATE TABLE device (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  principal UUID NOT NULL,
  -- Of that principal.
  kind TEXT NOT NULL CHECK (kind IN ('user', 'supervisor')),
  source UUID NOT NULL,
  name TEXT NOT NULL,
  token_digest BYTEA NOT NULL UNIQUE,
  -- Made by the server itself, its token left in the data folder: whoever has it runs the machine.
  operator BOOLEAN NOT NULL,
  created_at BIGINT NOT NULL,
  revoked_at BIGINT
);

CREATE TABLE pairing (
  code_digest BYTEA PRIMARY KEY,
  owner UUID NOT NULL,
  -- Whose device it makes.
  kind TEXT NOT NULL CHECK (kind IN ('user', 'supervisor')),
  expires_at BIGINT NOT NULL,
  used_at BIGINT
);

-- What a client wrote under which of its ids, and the first answer it got.
CREATE TABLE request (
  device UUID NOT NULL,
  id UUID NOT NULL,
  owner UUID NOT NULL,
  digest BYTEA NOT NULL,
  answer TEXT NOT NULL,
  at BIGINT NOT NULL,
  PRIMARY KEY (device, id)
);

CREATE TABLE source (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  kind TEXT NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  trust TEXT NOT NULL CHECK (trust IN ('outside', 'system', 'user')),
  state TEXT NOT NULL,
  -- How it is reached, as JSON without secrets; NULL for devices and timers.
  config TEXT,
  cursor TEXT,
  -- Polled every so often; NULL for what is pushed.
  every_ms BIGINT CHECK (every_ms > 0),
  next_look_at BIGINT,
  looked_at BIGINT,
  failures BIGINT NOT NULL,
  -- Silence for longer than this is a fault.
  expect_ms BIGINT CHECK (expect_ms > 0),
  received_at BIGINT,
  last_event UUID,
  -- Deliveries that were not accepted: bad signatures, bad bodies.
  refused BIGINT NOT NULL,
  refused_at BIGINT,
  created_at BIGINT NOT NULL,
  moved_at BIGINT NOT NULL,
  CHECK ((every_ms IS NULL) = (next_look_at IS NULL))
);
CREATE UNIQUE INDEX source_name ON source (owner, kind, name) WHERE state = 'active';
-- What the user set up is called by its name alone.
CREATE UNIQUE INDEX source_chosen ON source (owner, name) WHERE state = 'active' AND config IS NOT NULL;
CREATE INDEX source_owner ON source (owner, created_at);
CREATE INDEX source_look ON source (next_look_at) WHERE state = 'active';

CREATE TABLE body (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  bytes BYTEA,
  digest BYTEA NOT NULL,
  media TEXT NOT NULL,
  provenance TEXT NOT NULL,
  trust TEXT NOT NULL CHECK (trust IN ('outside', 'system', 'user')),
  created_at BIGINT NOT NULL,
  erased_at BIGINT,
  CHECK ((bytes IS NULL) = (erased_at IS NOT NULL))
);

CREATE TABLE session (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  agent TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('main', 'duty')),
  -- The fencing token: grows with every claim. A commit of a worker names it (P2).
  fence BIGINT NOT NULL CHECK (fence >= 0),
  holder UUID,
  lease_until BIGINT,
  -- Not claimed before: back-off after a model that could not be asked.
  not_before BIGINT NOT NULL,
  model_failures BIGINT NOT NULL,
  runs BIGINT NOT NULL,
  -- The first run that the history window still holds, and the stored prefix.
  window_start BIGINT NOT NULL,
  prefix UUID,
  prefix_digest BYTEA,
  created_at BIGINT NOT NULL,
  CHECK ((holder IS NULL) = (lease_until IS NULL))
);
CREATE INDEX session_lease ON session (lease_until) WHERE lease_until IS NOT NULL;
CREATE INDEX session_owner ON session (owner);

-- Every change of a session's prefix, with its cause: one without is a defect (CTX-05).
CREATE TABLE prefix_change (
  owner UUID NOT NULL,
  session UUID NOT NULL,
  run_n BIGINT NOT NULL,
  digest BYTEA NOT NULL,
  window_start BIGINT NOT NULL,
  -- The digest of each section of the prefix, to see which one changed.
  sections TEXT NOT NULL,
  cause TEXT NOT NULL CHECK (cause <> ''),
  at BIGINT NOT NULL,
  PRIMARY KEY (session, run_n)
);

CREATE TABLE event (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  source UUID NOT NULL,
  external_id TEXT COLLATE "C" NOT NULL,
  kind TEXT NOT NULL,
  key TEXT COLLATE "C",
  topic TEXT COLLATE "C",
  trust TEXT NOT NULL CHECK (trust IN ('outside', 'system', 'user')),
  body UUID NOT NULL,
  digest BYTEA NOT NULL,
  -- URLs that the ingress found in it, as a JSON list; they become objects of the run that reads it.
  links TEXT,
  -- What it belongs to by its source's own word: a schedule's or wait's session.
  session UUID,
  duty UUID,
  late BOOLEAN NOT NULL,
  received_at BIGINT NOT NULL,
  -- The owner's change number; 0 for what was accepted without the owner's lock.
  seq BIGINT NOT NULL,
  about TEXT,
  disposition TEXT,
  handled_at BIGINT,
  CHECK ((disposition IS NULL) = (handled_at IS NULL)),
  CHECK (disposition <> '')
);
CREATE UNIQUE INDEX event_external ON event (source, external_id);
CREATE INDEX event_key ON event (owner, kind, key) WHERE key IS NOT NULL;
CREATE INDEX event_chat ON event (owner, seq) WHERE kind = 'user_message';
CREATE INDEX event_owner ON event (owner, received_at, id);

-- Which matters an event concerns, and by whose word (EVT-11).
CREATE TABLE event_link (
  event UUID NOT NULL,
  session UUID NOT NULL,
  owner UUID NOT NULL,
  duty UUID,
  how TEXT NOT NULL CHECK (how IN ('wait', 'subscription', 'attribution', 'dial')),
  -- The wait, subscription or attribution.
  record UUID NOT NULL,
  at BIGINT NOT NULL,
  PRIMARY KEY (event, session, record)
);

-- What the small model said to which of the router's candidates an event belongs (EVT-09).
CREATE TABLE attribution (
  event UUID PRIMARY KEY,
  owner UUID NOT NULL,
  -- The candidates' duty ids, as a JSON list in the order shown.
  candidates TEXT NOT NULL,
  model TEXT NOT NULL,
  answer UUID,
  -- The duties taken from its answer, as a JSON list.
  chosen TEXT NOT NULL,
  -- Why the answer, or a part of it, did not count.
  refused TEXT,
  at BIGINT NOT NULL
);

CREATE TABLE work_item (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  event UUID NOT NULL UNIQUE,
  session UUID,
  class TEXT CHECK (class IN ('user', 'external', 'timer', 'background')),
  state TEXT NOT NULL,
  attempts BIGINT NOT NULL CHECK (attempts >= 0),
  run UUID,
  -- The four points of DUR-24: received, delivered into a run, read by the model, handled.
  created_at BIGINT NOT NULL,
  delivered_at BIGINT,
  read_at BIGINT,
  done_at BIGINT,
  moved_at BIGINT NOT NULL,
  CHECK (state IN ('unrouted', 'attributing', 'done') OR (session IS NOT NULL AND class IS NOT NULL)),
  CHECK (state <> 'claimed' OR run IS NOT NULL)
);
CREATE INDEX work_item_unrouted ON work_item (created_at) WHERE state = 'unrouted';
CREATE INDEX work_item_attributing ON work_item (moved_at) WHERE state = 'attributing';
CREATE INDEX work_item_pending ON work_item (session, class, created_at) WHERE state = 'pending';
CREATE INDEX work_item_background ON work_item (session, created_at) WHERE state = 'background';
CREATE INDEX work_item_claimed ON work_item (run) WHERE state = 'claimed';
CREATE INDEX work_item_run ON work_item (run, created_at) WHERE run IS NOT NULL;

CREATE TABLE run (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  session UUID NOT NULL REFERENCES session (id),
  n BIGINT NOT NULL,
  duty UUID,
  task_version UUID,
  state TEXT NOT NULL,
  fence BIGINT NOT NULL,
  harness TEXT NOT NULL,
  model TEXT NOT NULL,
  prefix_digest BYTEA NOT NULL,
  window_start BIGINT NOT NULL,
  steps BIGINT NOT NULL,
  claim_steps BIGINT NOT NULL,
  tokens BIGINT NOT NULL,
  input_tokens BIGINT NOT NULL,
  cached_tokens BIGINT NOT NULL,
  output_tokens BIGINT NOT NULL,
  micro_usd BIGINT NOT NULL,
  reason TEXT,
  started_at BIGINT NOT NULL,
  ended_at BIGINT,
  moved_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX run_number ON run (session, n);
CREATE UNIQUE INDEX run_open ON run (session) WHERE state IN ('running', 'lost', 'sleeping');
CREATE INDEX run_duty ON run (duty, started_at) WHERE duty IS NOT NULL;

CREATE TABLE step (
  run UUID NOT NULL REFERENCES run (id),
  n BIGINT NOT NULL CHECK (n >= 0),
  owner UUID NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('tail', 'model', 'tool')),
  tool TEXT,
  -- The step of the ladder that a tool's result came from, and the model's reason (TOOL-06).
  level TEXT CHECK (level IN ('records', 'connector', 'web')),
  why TEXT,
  call_id TEXT COLLATE "C",
  answer_id TEXT COLLATE "C",
  harness TEXT NOT NULL,
  model TEXT NOT NULL,
  request_digest BYTEA,
  body UUID NOT NULL,
  digest BYTEA NOT NULL,
  tokens BIGINT NOT NULL,
  at BIGINT NOT NULL,
  PRIMARY KEY (run, n),
  CHECK ((kind = 'tool') = (call_id IS NOT NULL))
);
CREATE UNIQUE INDEX step_call ON step (run, call_id) WHERE call_id IS NOT NULL;

CREATE TABLE duty (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  agent TEXT NOT NULL,
  session UUID NOT NULL REFERENCES session (id),
  state TEXT NOT NULL,
  proposal UUID NOT NULL UNIQUE,
  created_at BIGINT NOT NULL,
  moved_at BIGINT NOT NULL
);
CREATE INDEX duty_owner ON duty (owner, created_at);
CREATE INDEX duty_open ON duty (owner) WHERE state <> 'closed';
CREATE UNIQUE INDEX duty_session ON duty (session);

CREATE TABLE task_version (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  duty UUID NOT NULL REFERENCES duty (id),
  n BIGINT NOT NULL CHECK (n >= 1),
  state TEXT NOT NULL,
  -- Title, goal, conditions and schedules as the user confirmed them; never edited (DEL-03).
  content UUID NOT NULL,
  digest BYTEA NOT NULL,
  conditions BIGINT NOT NULL CHECK (conditions >= 1),
  until_at BIGINT,
  -- By the user's wish, or adopted from an event of outside, which may change facts only (DEL-22).
  origin TEXT NOT NULL CHECK (origin IN ('user', 'external')),
  confirmed_by UUID NOT NULL,
  created_at BIGINT NOT NULL,
  moved_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX task_version_number ON task_version (duty, n);
CREATE UNIQUE INDEX task_version_current ON task_version (duty) WHERE state = 'current';

CREATE TABLE wait (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  session UUID NOT NULL,
  duty UUID,
  task_version UUID,
  run UUID NOT NULL,
  call_id TEXT COLLATE "C" NOT NULL,
  cause_event UUID,
  kind TEXT COLLATE "C" NOT NULL,
  key TEXT COLLATE "C" NOT NULL,
  due_at BIGINT NOT NULL,
  state TEXT NOT NULL,
  satisfied_by UUID,
  created_at BIGINT NOT NULL,
  moved_at BIGINT NOT NULL,
  CHECK ((state = 'satisfied') = (satisfied_by IS NOT NULL))
);
CREATE UNIQUE INDEX wait_call ON wait (run, call_id);
CREATE INDEX wait_key ON wait (owner, kind, key) WHERE state = 'open';
CREATE INDEX wait_due ON wait (due_at) WHERE state = 'open';
CREATE INDEX wait_session ON wait (session) WHERE state = 'open';
CREATE INDEX wait_met ON wait (satisfied_by) WHERE satisfied_by IS NOT NULL;
CREATE INDEX wait_ended ON wait (owner, kind, key) WHERE state <> 'open';

CREATE TABLE schedule (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  duty UUID NOT NULL REFERENCES duty (id),
  task_version UUID NOT NULL,
  session UUID NOT NULL,
  rule TEXT NOT NULL,
  prompt UUID NOT NULL,
  run_missed TEXT NOT NULL CHECK (run_missed IN ('once', 'skip')),
  -- A read call and a comparison that decide by program whether anybody is woken.
  check_spec UUID,
  check_last UUID,
  next_slot BIGINT NOT NULL,
  last_slot BIGINT,
  last_late BOOLEAN NOT NULL,
  until_at BIGINT,
  state TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  moved_at BIGINT NOT NULL
);
CREATE INDEX schedule_due ON schedule (next_slot) WHERE state = 'active';
CREATE INDEX schedule_duty ON schedule (duty);

CREATE TABLE check_run (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  schedule UUID NOT NULL REFERENCES schedule (id),
  slot BIGINT NOT NULL,
  late BOOLEAN NOT NULL,
  missed BIGINT NOT NULL,
  state TEXT NOT NULL,
  attempts BIGINT NOT NULL,
  -- What was read, or why nothing could be.
  answer UUID,
  created_at BIGINT NOT NULL,
  moved_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX check_run_slot ON check_run (schedule, slot);
CREATE INDEX check_run_due ON check_run (moved_at) WHERE state = 'due';

CREATE TABLE subscription (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  duty UUID NOT NULL REFERENCES duty (id),
  task_version UUID NOT NULL,
  session UUID NOT NULL,
  source UUID NOT NULL REFERENCES source (id),
  -- Exact, or a prefix that ends in ".*"; NULL: everything.
  topic TEXT COLLATE "C",
  mode TEXT NOT NULL CHECK (mode IN ('wake', 'background')),
  prompt UUID NOT NULL,
  until_at BIGINT,
  state TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  moved_at BIGINT NOT NULL
);
CREATE INDEX subscription_source ON subscription (source) WHERE state = 'active';
CREATE INDEX subscription_duty ON subscription (duty);

-- Ids that the tool layer issued: tools that ask for one accept nothing else (TOOL-15).
CREATE TABLE object (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  session UUID NOT NULL,
  task_version UUID,
  kind TEXT COLLATE "C" NOT NULL,
  value TEXT COLLATE "C" NOT NULL,
  -- What was known of it when it was issued, and the digest of that.
  snapshot UUID,
  digest BYTEA NOT NULL,
  run UUID NOT NULL,
  call_id TEXT COLLATE "C",
  provenance TEXT NOT NULL,
  expires_at BIGINT,
  created_at BIGINT NOT NULL
);
CREATE INDEX object_value ON object (session, value, created_at);

-- Judgements of where matters stand (PRO-02). Each is a row of its own; the newest of a matter counts.
CREATE TABLE situation (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  session UUID NOT NULL,
  duty UUID,
  task_version UUID,
  run UUID NOT NULL,
  call_id TEXT COLLATE "C" NOT NULL,
  event UUID,
  -- The matter and who has taken it on, as JSON.
  body UUID NOT NULL,
  stands TEXT NOT NULL,
  part TEXT NOT NULL,
  step TEXT NOT NULL,
  set_version BIGINT NOT NULL,
  due_at BIGINT NOT NULL,
  wait UUID NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX situation_call ON situation (run, call_id);
CREATE INDEX situation_owner ON situation (owner, created_at);

CREATE TABLE pause (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  -- NULL: everything of the owner.
  duty UUID,
  state TEXT NOT NULL,
  placed_by UUID NOT NULL,
  lifted_by UUID,
  created_at BIGINT NOT NULL,
  moved_at BIGINT NOT NULL
);
CREATE INDEX pause_active ON pause (owner, duty) WHERE state = 'active';
CREATE UNIQUE INDEX pause_duty ON pause (duty) WHERE state = 'active' AND duty IS NOT NULL;
CREATE UNIQUE INDEX pause_all ON pause (owner) WHERE state = 'active' AND duty IS NULL;

-- One row per message of the user that may be a stop (DESIGN section 7).
CREATE TABLE hold (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  event UUID NOT NULL UNIQUE,
  state TEXT NOT NULL,
  -- What the model said of the message: 'stop', 'not_a_stop', or nothing yet.
  verdict TEXT CHECK (verdict IN ('stop', 'not_a_stop')),
  decided_by UUID,
  pause UUID,
  asked_at BIGINT,
  created_at BIGINT NOT NULL,
  moved_at BIGINT NOT NULL
);
CREATE INDEX hold_placed ON hold (owner, created_at) WHERE state = 'placed';

-- What the dial let the agent do by itself, or would have (PRO-01).
CREATE TABLE proactive (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  event UUID NOT NULL UNIQUE,
  dial TEXT NOT NULL CHECK (dial IN ('off', 'observe', 'auto')),
  situation TEXT NOT NULL,
  disturb TEXT NOT NULL,
  reach TEXT NOT NULL,
  release TEXT NOT NULL,
  at BIGINT NOT NULL
);
CREATE INDEX proactive_owner ON proactive (owner, at);

CREATE TABLE proposal (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  session UUID NOT NULL,
  run UUID NOT NULL,
  call_id TEXT COLLATE "C" NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('new_duty', 'change_duty', 'close_duty')),
  duty UUID,
  content UUID NOT NULL,
  digest BYTEA NOT NULL,
  template TEXT NOT NULL,
  state TEXT NOT NULL,
  decided_by UUID,
  expires_at BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  moved_at BIGINT NOT NULL,
  CHECK ((kind = 'new_duty') = (duty IS NULL))
);
CREATE UNIQUE INDEX proposal_call ON proposal (run, call_id);
CREATE INDEX proposal_due ON proposal (expires_at) WHERE state = 'open';
CREATE INDEX proposal_owner ON proposal (owner, created_at);
CREATE UNIQUE INDEX proposal_close ON proposal (duty) WHERE state = 'open' AND kind = 'close_duty';

-- What was allowed in advance. The word of the noun, grant, is one of SQL's own.
CREATE TABLE grants (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  duty UUID NOT NULL REFERENCES duty (id),
  task_version UUID NOT NULL,
  tool TEXT COLLATE "C" NOT NULL,
  times BIGINT NOT NULL CHECK (times >= 1),
  currency TEXT,
  each_minor BIGINT CHECK (each_minor >= 0),
  total_minor BIGINT CHECK (total_minor >= 0),
  -- Who may receive, as a JSON list.
  recipients TEXT NOT NULL,
  until_at BIGINT,
  state TEXT NOT NULL,
  -- Reserved at admission, kept while unknown, settled by the receipt.
  reserved_count BIGINT NOT NULL CHECK (reserved_count >= 0),
  reserved_minor BIGINT NOT NULL CHECK (reserved_minor >= 0),
  spent_count BIGINT NOT NULL CHECK (spent_count >= 0),
  spent_minor BIGINT NOT NULL CHECK (spent_minor >= 0),
  confirmed_by UUID NOT NULL,
  created_at BIGINT NOT NULL,
  moved_at BIGINT NOT NULL,
  CHECK ((currency IS NULL) = (total_minor IS NULL)),
  CHECK (each_minor IS NULL OR total_minor IS NOT NULL)
);
CREATE INDEX grants_duty ON grants (duty, created_at);

-- What a supervisor asks of the actions that it covers. Written once; it can only be ended.
CREATE TABLE rule (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  tool TEXT COLLATE "C" NOT NULL CHECK (tool <> ''),
  effect TEXT,
  above_minor BIGINT CHECK (above_minor >= 0),
  currency TEXT,
  demand TEXT NOT NULL CHECK (demand IN ('person', 'supervisor', 'forbid')),
  state TEXT NOT NULL,
  made_by UUID NOT NULL REFERENCES principal (id),
  ended_by UUID REFERENCES principal (id),
  created_at BIGINT NOT NULL,
  moved_at BIGINT NOT NULL,
  CHECK ((above_minor IS NULL) = (currency IS NULL))
);
CREATE INDEX rule_active ON rule (owner, created_at) WHERE state = 'active';

-- An intended outside effect. Admitted is the intent to send.
CREATE TABLE action (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  session UUID NOT NULL REFERENCES session (id),
  duty UUID,
  task_version UUID,
  run UUID NOT NULL,
  call_id TEXT COLLATE "C" NOT NULL,
  tool TEXT COLLATE "C" NOT NULL,
  effect TEXT NOT NULL,
  -- The bytes that were frozen, and what is checked against limits, read from them once.
  content UUID NOT NULL,
  digest BYTEA NOT NULL,
  errand TEXT COLLATE "C" NOT NULL,
  minor BIGINT CHECK (minor >= 0),
  currency TEXT,
  compensates UUID,
  expires_at BIGINT,
  created_at BIGINT NOT NULL,
  state TEXT NOT NULL,
  tier TEXT CHECK (tier IN ('r2', 'r3', 'r4', 'r5', 'r6')),
  reason TEXT,
  draws_on UUID REFERENCES grants (id),
  approval UUID,
  not_before BIGINT,
  due_at BIGINT,
  tries BIGINT NOT NULL CHECK (tries >= 0),
  sent_at BIGINT,
  receipt TEXT,
  authority TEXT CHECK (authority IN ('outside', 'user')),
  contradicted BOOLEAN NOT NULL,
  escalated_at BIGINT,
  moved_at BIGINT NOT NULL,
  CHECK ((duty IS NULL) = (task_version IS NULL)),
  CHECK ((minor IS NULL) = (currency IS NULL)),
  CHECK (state IN ('proposed', 'awaiting_approval', 'expired', 'superseded', 'withdrawn', 'denied')
    OR approval IS NOT NULL),
  CHECK (state NOT IN ('dispatched', 'unknown', 'accepted', 'effective') OR sent_at IS NOT NULL),
  CHECK (state NOT IN ('accepted', 'effective') OR receipt IS NOT NULL OR authority = 'user')
);
CREATE UNIQUE INDEX action_call ON action (run, call_id);
CREATE INDEX action_due ON action (state, due_at) WHERE due_at IS NOT NULL;
-- What a program has to move on soon: the sweeper asks since when it has not.
CREATE INDEX action_hurried ON action (state, moved_at) WHERE state IN ('proposed', 'admitted', 'dispatched');
CREATE INDEX action_owner ON action (owner, created_at);
CREATE INDEX action_duty ON action (duty, created_at) WHERE duty IS NOT NULL;
CREATE INDEX action_session ON action (session, state);
CREATE INDEX action_authorized ON action (owner) WHERE state = 'authorized';
-- Two sendings of one errand cannot be under way at once.
CREATE UNIQUE INDEX action_errand ON action (session, tool, errand) WHERE state IN ('admitted', 'dispatched');

CREATE TABLE action_object (
  action UUID NOT NULL REFERENCES action (id),
  argument TEXT COLLATE "C" NOT NULL,
  owner UUID NOT NULL,
  kind TEXT COLLATE "C" NOT NULL,
  value TEXT COLLATE "C" NOT NULL,
  PRIMARY KEY (action, argument)
);
CREATE INDEX action_object_value ON action_object (owner, kind, value);

-- Who released an action: a person, or the policy within a grant, and where a rule asks for it the
-- supervisor besides. Of one action, used at most once.
CREATE TABLE approval (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  action UUID NOT NULL REFERENCES action (id),
  kind TEXT NOT NULL CHECK (kind IN ('user', 'policy', 'supervisor')),
  digest BYTEA NOT NULL,
  task_version UUID,
  until_at BIGINT NOT NULL,
  rests_on UUID REFERENCES grants (id),
  template TEXT NOT NULL,
  -- What the card was worded with when they tapped, as their device says.
  shown TEXT,
  created_at BIGINT NOT NULL,
  state TEXT NOT NULL,
  decided_by UUID,
  device UUID,
  decided_at BIGINT,
  reason TEXT,
  moved_at BIGINT NOT NULL,
  CHECK (state NOT IN ('granted', 'denied', 'consumed') OR decided_by IS NOT NULL),
  CHECK ((kind = 'policy') = (rests_on IS NOT NULL)),
  CHECK (device IS NOT NULL OR kind = 'policy' OR state NOT IN ('granted', 'consumed'))
);
CREATE INDEX approval_action ON approval (action, created_at);
CREATE INDEX approval_owner ON approval (owner, created_at);
CREATE INDEX approval_supervisor ON approval (owner, action) WHERE kind = 'supervisor';
CREATE UNIQUE INDEX approval_open ON approval (action)
  WHERE state IN ('requested', 'granted') AND kind <> 'supervisor';
CREATE UNIQUE INDEX approval_besides ON approval (action)
  WHERE state IN ('requested', 'granted') AND kind = 'supervisor';

-- Each actual sending, on record before anything leaves.
CREATE TABLE attempt (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  action UUID NOT NULL REFERENCES action (id),
  n BIGINT NOT NULL CHECK (n >= 1),
  operation_id TEXT COLLATE "C" NOT NULL,
  dispatcher UUID NOT NULL,
  send_by BIGINT NOT NULL,
  answer_by BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  state TEXT NOT NULL,
  reason TEXT,
  receipt TEXT,
  answer UUID,
  moved_at BIGINT NOT NULL,
  CHECK (send_by > created_at AND answer_by >= send_by),
  CHECK (state <> 'accepted' OR receipt IS NOT NULL)
);
CREATE UNIQUE INDEX attempt_action ON attempt (action, n);

CREATE TABLE message (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  session UUID NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('agent', 'notice')),
  -- An agent's message has the call that made it, so that no call speaks twice.
  run UUID,
  call_id TEXT COLLATE "C",
  duty UUID,
  task_version UUID,
  proposal UUID,
  action UUID,
  late BOOLEAN NOT NULL,
  body UUID NOT NULL,
  state TEXT NOT NULL,
  reason TEXT,
  seq BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  queued_at BIGINT,
  sent_at BIGINT,
  delivered_at BIGINT,
  delivered_to UUID,
  moved_at BIGINT NOT NULL,
  CHECK ((kind = 'agent') = (run IS NOT NULL)),
  CHECK (state <> 'delivered' OR delivered_at IS NOT NULL)
);
CREATE UNIQUE INDEX message_call ON message (run, call_id) WHERE run IS NOT NULL;
CREATE INDEX message_chat ON message (owner, seq);
-- By state first: what was offered to a person who is away may be much, and the delivery stage passes it.
CREATE INDEX message_undelivered ON message (state, created_at)
  WHERE state IN ('generated', 'queued', 'sending', 'uncertain');

CREATE TABLE fault (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  key TEXT COLLATE "C" NOT NULL,
  detail TEXT NOT NULL,
  times BIGINT NOT NULL,
  state TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  moved_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX fault_open ON fault (owner, key) WHERE state = 'open';

CREATE TABLE ledger (
  id UUID PRIMARY KEY,
  owner UUID NOT NULL,
  month TEXT COLLATE "C" NOT NULL,
  -- NULL: the small model attributed an event.
  run UUID,
  duty UUID,
  kind TEXT NOT NULL CHECK (kind IN ('wakeup', 'model', 'attribution', 'review')),
  model TEXT NOT NULL,
  input_tokens BIGINT NOT NULL,
  cached_tokens BIGINT NOT NULL,
  output_tokens BIGINT NOT NULL,
  micro_usd BIGINT NOT NULL,
  at BIGINT NOT NULL
);
CREATE INDEX ledger_month ON ledger (owner, month);
CREATE INDEX ledger_duty ON ledger (duty) WHERE duty IS NOT NULL;

CREATE TABLE change (
  owner UUID NOT NULL,
  seq BIGINT NOT NULL,
  n BIGINT NOT NULL,
  noun TEXT NOT NULL,
  record UUID NOT NULL,
  -- The transaction's own id: by it a commit whose answer was lost is settled.
  txn UUID NOT NULL,
  PRIMARY KEY (owner, seq, n)
);

CREATE TABLE audit (
  owner UUID NOT NULL,
  n BIGINT NOT NULL,
  principal UUID,
  verb TEXT NOT NULL,
  noun TEXT NOT NULL,
  record UUID NOT NULL,
  digest BYTEA,
  hash BYTEA NOT NULL,
  at BIGINT NOT NULL,
  PRIMARY KEY (owner, n)
);
CREATE INDEX audit_record ON audit (owner, record);
