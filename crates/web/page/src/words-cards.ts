// What the card of a question says of its own: its title and its buttons. The rest is the server's.

import type { ProposalKind } from "./types.js";
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
