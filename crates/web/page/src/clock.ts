// Times and amounts in words. The zone is the owner's, not the browser's; `now` is a parameter,
// because the demo runs on its own clock.

export type Lang = "en" | "zh";

const formatters = new Map<string, Intl.DateTimeFormat>();

interface Parts {
  year: string;
  month: string;
  day: string;
  weekday: string;
  time: string;
}

function parts(at: number, zone: string, lang: Lang): Parts {
  const key = `${lang} ${zone}`;
  let formatter = formatters.get(key);
  if (!formatter) {
    const locale = lang === "zh" ? "zh-CN" : "en-GB";
    formatter = new Intl.DateTimeFormat(locale, {
      timeZone: zone,
      year: "numeric",
      month: lang === "zh" ? "numeric" : "short",
      day: "numeric",
      weekday: "short",
      hour: "2-digit",
      minute: "2-digit",
      hourCycle: "h23",
    });
    formatters.set(key, formatter);
  }
  const found = new Map(formatter.formatToParts(at).map((part) => [part.type, part.value]));
  const get = (name: Intl.DateTimeFormatPartTypes) => found.get(name) ?? "";
  return {
    year: get("year"),
    month: get("month"),
    day: get("day"),
    weekday: get("weekday"),
    time: `${get("hour")}:${get("minute")}`,
  };
}

/** The zone if this browser knows it, else UTC: a wrong zone name must not blank the page. */
export function knownZone(zone: string): string {
  try {
    new Intl.DateTimeFormat("en", { timeZone: zone });
    return zone;
  } catch {
    return "UTC";
  }
}

export function timeWords(at: string | number, zone: string, lang: Lang): string {
  return parts(toMs(at), zone, lang).time;
}

export function dayWords(at: string | number, now: number, zone: string, lang: Lang): string {
  const then = parts(toMs(at), zone, lang);
  const today = parts(now, zone, lang);
  const year = then.year === today.year ? "" : then.year;
  if (lang === "zh") {
    return `${year ? `${year} 年 ` : ""}${then.month} 月 ${then.day} 日 ${then.weekday}`;
  }
  return `${then.weekday} ${then.day} ${then.month}${year ? ` ${year}` : ""}`;
}

const DAY_MS = 86_400_000;

/** "14:02" today, "tomorrow 09:00", else the day and the time. */
export function whenWords(at: string | number, now: number, zone: string, lang: Lang): string {
  const day = dayKey(at, zone);
  const time = timeWords(at, zone, lang);
  if (day === dayKey(now, zone)) return time;
  if (day === dayKey(now + DAY_MS, zone)) return `${lang === "zh" ? "明天" : "tomorrow"} ${time}`;
  if (day === dayKey(now - DAY_MS, zone)) return `${lang === "zh" ? "昨天" : "yesterday"} ${time}`;
  return `${dayWords(at, now, zone, lang)} ${time}`;
}

/** Names one day of the owner's calendar; equal for two times on the same day. */
export function dayKey(at: string | number, zone: string): string {
  const day = parts(toMs(at), zone, "en");
  return `${day.year} ${day.month} ${day.day}`;
}

/** "3 h left"; minutes only under an hour; the empty text once the time has passed. */
export function leftWords(at: string | number, now: number, lang: Lang): string {
  const left = toMs(at) - now;
  if (left <= 0) return "";
  const minutes = Math.max(1, Math.floor(left / 60_000));
  const hours = Math.floor(left / 3_600_000);
  const days = Math.floor(left / DAY_MS);
  if (lang === "zh") {
    if (days >= 2) return `还剩 ${days} 天`;
    return hours >= 1 ? `还剩 ${hours} 小时` : `还剩 ${minutes} 分钟`;
  }
  if (days >= 2) return `${days} days left`;
  return hours >= 1 ? `${hours} h left` : `${minutes} min left`;
}

/** Millionths of a dollar as "US$1.25"; four decimals below one cent. */
export function usdWords(micro: number): string {
  const small = micro !== 0 && Math.abs(micro) < 10_000;
  return `US$${(micro / 1_000_000).toFixed(small ? 4 : 2)}`;
}

/** Dollars as a person writes them, such as 30 or 2.50, in millionths; null if they are none. */
export function microOf(text: string): number | null {
  const match = /^(\d{1,9})(?:[.,](\d{1,6}))?$/.exec(text.trim());
  if (match === null) return null;
  return Number(match[1]) * 1_000_000 + Number((match[2] ?? "").padEnd(6, "0"));
}

/** A count with grouped digits: 12,345. */
export function numberWords(count: number, lang: Lang): string {
  return new Intl.NumberFormat(lang === "zh" ? "zh-CN" : "en-US").format(count);
}

/** The language of a message, for the `lang` attribute and its line breaking. */
export function langOf(text: string): Lang {
  return /[\u3400-\u9fff]/.test(text) ? "zh" : "en";
}

function toMs(at: string | number): number {
  const ms = typeof at === "number" ? at : Date.parse(at);
  return Number.isFinite(ms) ? ms : 0;
}
