// One door to the server. Two kinds of failure, because they mean different things to the person:
// the server answered with a problem, or it could not be reached and the outcome is unknown.

import type { Lang } from "./clock.js";
import type { Problem, Stale } from "./types.js";

/** The server answered, and the answer is a problem (RFC 9457). */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly detail: string,
    /** What changed about the card that was tapped. */
    readonly stale: Stale | null = null,
  ) {
    super(`${status} ${detail}`);
  }
}

/** No answer: the request may or may not have arrived. */
export class Unreachable extends Error {}

const REPLY_WAIT_MS = 15_000;

export interface Caller {
  token: string | null;
  lang: Lang;
}

function headers(caller: Caller): Record<string, string> {
  const all: Record<string, string> = { "Accept-Language": caller.lang };
  if (caller.token !== null) all.Authorization = `Bearer ${caller.token}`;
  return all;
}

export async function call<T>(
  caller: Caller,
  method: "GET" | "POST",
  path: string,
  body?: unknown,
): Promise<T> {
  const request: RequestInit = {
    method,
    headers: headers(caller),
    cache: "no-store",
    credentials: "omit",
    signal: AbortSignal.timeout(REPLY_WAIT_MS),
  };
  if (body !== undefined) {
    request.body = JSON.stringify(body);
    request.headers = { ...headers(caller), "Content-Type": "application/json" };
  }
  let status = 0;
  let text = "";
  try {
    const response = await fetch(path, request);
    status = response.status;
    text = await response.text();
    if (response.ok) return (text === "" ? {} : JSON.parse(text)) as T;
  } catch (error) {
    throw new Unreachable(String(error));
  }
  throw new Refused(status, detailOf(text, status), staleOf(text));
}

function staleOf(text: string): Stale | null {
  try {
    return (JSON.parse(text) as Partial<Problem>).stale ?? null;
  } catch {
    return null;
  }
}

function detailOf(text: string, status: number): string {
  try {
    const problem = JSON.parse(text) as Partial<Problem>;
    return problem.detail ?? problem.title ?? `HTTP ${status}`;
  } catch {
    return `HTTP ${status}`;
  }
}

/** Opens the signal stream; the caller reads it and ends it through `abort`. */
export async function openStream(
  caller: Caller,
  abort: AbortSignal,
): Promise<ReadableStreamDefaultReader<Uint8Array>> {
  let response: Response;
  try {
    response = await fetch("/v1/stream", {
      headers: { ...headers(caller), Accept: "text/event-stream" },
      cache: "no-store",
      credentials: "omit",
      signal: abort,
    });
  } catch (error) {
    throw new Unreachable(String(error));
  }
  if (!response.ok || response.body === null) {
    throw new Refused(response.status, detailOf(await response.text(), response.status));
  }
  return response.body.getReader();
}

/** A random UUID; `randomUUID` is missing where the page came over plain HTTP from another host. */
export function newId(): string {
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20),
  ].join("-");
}
