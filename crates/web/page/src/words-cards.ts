// What the card of a question says of its own: its title, its buttons and who decided. The rest is the
// server's.

import type { Approval, ProposalKind } from "./types.js";
import type { Words } from "./words.js";

/** What a card of each kind says that the others do not. */
export function decisionWords(kind: ProposalKind, words: Words) {
  switch (kind) {
    case "new_duty":
      return {
        title: words.cardNew,
        yes: words.startYes,
        no: words.startNo,
      };
    case "change_duty":
      return {
        title: words.cardChange,
        yes: words.changeYes,
        no: words.changeNo,
      };
    case "close_duty":
      return {
        title: words.cardClose,
        yes: words.closeYes,
        no: words.closeNo,
      };
  }
}

/** Who gave a release, or did not; nothing for one that the person is asked. */
export function approvedBy(approval: Approval, words: Words): string {
  switch (approval.by) {
    case "policy":
      return words.byGrant;
    case "supervisor":
      return words.bySupervisor;
    case "user":
      return approval.device_name === null ? words.byYou : words.byYouOn(approval.device_name);
    case null:
      return approval.of === "supervisor" ? words.ofSupervisor : "";
  }
}

/** The decisions that count: the last of the person or the policy, and the last of the supervisor. */
export function lastDecisions(approvals: Approval[]): Approval[] {
  const decided = approvals.filter((approval) => approval.by !== null);
  const last = (besides: boolean) =>
    decided.findLast((approval) => (approval.of === "supervisor") === besides);
  return [last(false), last(true)].filter((approval) => approval !== undefined);
}
