// Drawn here, so that no icon package is needed. Always beside a word, so hidden from readers.

import type { ComponentChildren } from "preact";

function Icon({ children }: { children: ComponentChildren }) {
  return (
    <svg
      class="icon"
      viewBox="0 0 24 24"
      aria-hidden="true"
      fill="none"
      stroke="currentColor"
      stroke-width="1.8"
      stroke-linecap="round"
      stroke-linejoin="round"
    >
      {children}
    </svg>
  );
}

export const ChatIcon = () => (
  <Icon>
    <path d="M4 6.5Q4 4 6.5 4h11Q20 4 20 6.5v7q0 2.5-2.5 2.5H11l-4.5 4v-4Q4 16 4 13.5z" />
  </Icon>
);
export const NowIcon = () => (
  <Icon>
    <circle cx="12" cy="12" r="8.5" />
    <path d="M12 7v5l3.5 2" />
  </Icon>
);
export const DutiesIcon = () => (
  <Icon>
    <path d="M4.5 6.5 6 8l3-3M4.5 13 6 14.5l3-3M4.5 19.5 6 21l3-3" />
    <path d="M12.5 7H20M12.5 13.5H20M12.5 20H20" />
  </Icon>
);
export const MoreIcon = () => (
  <Icon>
    <path d="M4 7h9M17 7h3M4 17h3M11 17h9" />
    <circle cx="15" cy="7" r="2" />
    <circle cx="9" cy="17" r="2" />
  </Icon>
);
export const SendIcon = () => (
  <Icon>
    <path d="M12 19V5M6 11l6-6 6 6" />
  </Icon>
);
export const BackIcon = () => (
  <Icon>
    <path d="M15 5l-7 7 7 7" />
  </Icon>
);
export const PlugIcon = () => (
  <Icon>
    <path d="M9 3v5M15 3v5M6.5 8h11v3.5a5.5 5.5 0 0 1-11 0zM12 17v4" />
  </Icon>
);
export const WaitIcon = () => (
  <Icon>
    <circle cx="12" cy="12" r="8" />
    <path d="M12 7.5V12l3 2" />
  </Icon>
);
export const CheckIcon = () => (
  <Icon>
    <path d="M5 12.5 10 17l9-10" />
  </Icon>
);
export const StopIcon = () => (
  <Icon>
    <rect x="6.5" y="6.5" width="11" height="11" rx="2" />
  </Icon>
);
export const CrossIcon = () => (
  <Icon>
    <path d="M7 7l10 10M17 7 7 17" />
  </Icon>
);
export const AskIcon = () => (
  <Icon>
    <circle cx="12" cy="12" r="8" />
    <path d="M12 8v5M12 16v.2" />
  </Icon>
);
export const MoonIcon = () => (
  <Icon>
    <path d="M19 14.5A7.5 7.5 0 0 1 9.5 5a7.5 7.5 0 1 0 9.5 9.5z" />
  </Icon>
);
export const RunIcon = () => (
  <Icon>
    <path d="M8 5.5v13l10-6.5z" />
  </Icon>
);
export const HoldIcon = () => (
  <Icon>
    <path d="M9 5v14M15 5v14" />
  </Icon>
);
