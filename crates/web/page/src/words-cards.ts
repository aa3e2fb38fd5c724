// What the card of a question says: its title, why it is asked, what follows, its buttons, its end.

import type { ProposalKind, ProposalState } from "./types.js";
import type { Words } from "./words.js";

export function proposalEndWords(
  kind: ProposalKind,
  state: ProposalState,
  words: Words,
): string {
  const { confirmed, declined } = decisionWords(kind, words);
  switch (state) {
    case "open":
    case "withdrawn":
    case "expired":
      return words.proposalStates[state];
    case "confirmed":
      return confirmed;
    case "declined":
      return declined;
  }
}

/** What a card of each kind says that the others do not. */
export function decisionWords(kind: ProposalKind, words: Words) {
  switch (kind) {
    case "new_duty":
      return {
        title: words.cardNew,
        why: words.whyNew,
        after: words.afterNew,
        yes: words.startYes,
        no: words.startNo,
        confirmed: words.confirmedNew,
        declined: words.declinedNew,
      };
    case "change_duty":
      return {
        title: words.cardChange,
        why: words.whyChange,
        after: words.afterChange,
        yes: words.changeYes,
        no: words.changeNo,
        confirmed: words.confirmedChange,
        declined: words.declinedChange,
      };
    case "close_duty":
      return {
        title: words.cardClose,
        why: words.whyClose,
        after: words.afterClose,
        yes: words.closeYes,
        no: words.closeNo,
        confirmed: words.confirmedClose,
        declined: words.declinedClose,
      };
  }
}
