// The devices that may speak for the person: which there are, one more, one less.

import { useEffect, useState } from "preact/hooks";
import { offerCode, readDevices, revokeDevice } from "../actions.js";
import { leftWords, whenWords } from "../clock.js";
import * as s from "../state.js";
import type { Device, Offer } from "../types.js";

function when(at: string): string {
  return whenWords(at, s.now.value, s.zone.value, s.lang.value);
}

export function Devices() {
  const words = s.words.value;
  const all = s.devices.value;
  useEffect(() => void readDevices(), []);
  const paired = (all ?? []).filter((device) => device.revoked_at === null);
  const revoked = (all ?? []).filter((device) => device.revoked_at !== null);
  return (
    <section class="block">
      <h3>{words.devices}</h3>
      <ul>
        {paired.map((device) => (
          <Row key={device.id} device={device} />
        ))}
      </ul>
      {revoked.length > 0 && (
        <details class="revoked">
          <summary>{words.revokedDevices(revoked.length)}</summary>
          <ul>
            {revoked.map((device) => (
              <li key={device.id} class="past">
                {device.name}
                <span class="meta">{words.revokedAt(when(device.revoked_at ?? ""))}</span>
              </li>
            ))}
          </ul>
        </details>
      )}
      <div class="control">
        {s.offer.value !== null && <Code offer={s.offer.value} />}
        <button type="button" class="outline" onClick={() => void offerCode()}>
          {s.offer.value === null ? words.pairAnother : words.pairAgain}
        </button>
        <p class="note" role="status">
          {s.devicesNote.value ?? ""}
        </p>
      </div>
    </section>
  );
}

/** The code with what is left of its time; once that is over it says so and is not shown. */
function Code({ offer }: { offer: Offer }) {
  const words = s.words.value;
  const left = leftWords(offer.expires_at, s.now.value, s.lang.value);
  if (left === "") return <p class="note warn">{words.codeOver}</p>;
  return (
    <div class="offer">
      <p class="code" aria-label={words.pairCode}>
        {offer.code}
      </p>
      <p class="meta">{words.codeLeft(left)}</p>
      <p>{words.codeHow}</p>
      <p class="link-text">{offer.link}</p>
    </div>
  );
}

function Row({ device }: { device: Device }) {
  const words = s.words.value;
  const [asking, setAsking] = useState(false);
  // The supervisor's are for the supervisor, and for whoever runs the machine, to turn out.
  const theirs = device.of === "supervisor" && s.me.value?.of !== "supervisor";
  return (
    <li>
      <div class="device">
        <span>
          {device.name}
          <span class="meta">
            {device.this && `${words.thisDevice} · `}
            {theirs && `${words.ofSupervisor} · `}
            {words.pairedAt(when(device.created_at))}
          </span>
        </span>
        {!asking && !theirs && (
          <button
            type="button"
            class="outline"
            aria-label={`${words.revoke}: ${device.name}`}
            onClick={() => setAsking(true)}
          >
            {words.revoke}
          </button>
        )}
      </div>
      {asking && (
        <div class="control asking" role="group" aria-label={words.revokeYes}>
          <p>{device.this ? words.revokeSelf : words.revokeWhat(device.name)}</p>
          <div class="buttons">
            <button type="button" class="outline" onClick={() => setAsking(false)}>
              {words.revokeNo}
            </button>
            <button
              type="button"
              class="outline strong"
              onClick={() => {
                setAsking(false);
                void revokeDevice(device.id);
              }}
            >
              {words.revokeYes}
            </button>
          </div>
        </div>
      )}
    </li>
  );
}
