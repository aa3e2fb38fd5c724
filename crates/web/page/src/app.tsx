// The shell: status strip, one view, and the way to the others (tabs on a phone, a rail on a desk).

import * as s from "./state.js";
import { Chat } from "./views/chat.js";
import { DemoStrip } from "./views/demo.js";
import { Duties } from "./views/duties.js";
import { Held } from "./views/hold.js";
import { Now } from "./views/now.js";
import { More } from "./views/more.js";
import { Pair } from "./views/pair.js";
import { Strip } from "./views/strip.js";
import { ChatIcon, DutiesIcon, MoreIcon, NowIcon } from "./views/icons.js";

type Tab = "now" | "chat" | "duties" | "more";

function tabOf(route: string): Tab {
  if (route.startsWith("#/now")) return "now";
  if (route.startsWith("#/duties")) return "duties";
  return route.startsWith("#/more") ? "more" : "chat";
}

export function App() {
  if (s.pairing.value === null) return <Pair />;
  const tab = tabOf(s.route.value);
  return (
    <div class="shell">
      <header class="top">
        <Strip />
        <Held />
        <DemoStrip />
      </header>
      <Tabs tab={tab} />
      <main class={`view view-${tab}`}>{view(tab)}</main>
    </div>
  );
}

function view(tab: Tab) {
  switch (tab) {
    case "now":
      return <Now />;
    case "chat":
      return <Chat />;
    case "duties":
      return <Duties chosen={/^#\/duties\/(.+)$/.exec(s.route.value)?.[1] ?? null} />;
    case "more":
      return <More event={/^#\/more\/events\/(.+)$/.exec(s.route.value)?.[1] ?? null} />;
  }
}

function Tabs({ tab }: { tab: Tab }) {
  const words = s.words.value;
  const tabs = [
    { name: "now", href: "#/now", text: words.tabNow, icon: <NowIcon /> },
    { name: "chat", href: "#/chat", text: words.tabChat, icon: <ChatIcon /> },
    { name: "duties", href: "#/duties", text: words.tabDuties, icon: <DutiesIcon /> },
    { name: "more", href: "#/more", text: words.tabMore, icon: <MoreIcon /> },
  ];
  return (
    <nav class="tabs" aria-label={words.regions}>
      <span class="brand" aria-hidden="true">
        Adjutant
      </span>
      {tabs.map((item) => (
        <a key={item.name} href={item.href} aria-current={item.name === tab ? "page" : undefined}>
          {item.icon}
          <span>{item.text}</span>
        </a>
      ))}
    </nav>
  );
}
