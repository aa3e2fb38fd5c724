// A tap meant for what was there before must not decide: buttons ignore input for a moment after they
// appear or move, and pointer-down and -up must hit the same, unmoved button.

import { useEffect, useRef } from "preact/hooks";
import type { RefObject, TargetedEvent } from "preact";

const FRESH_MS = 600;
const UNMOVED_PX = 3;

export interface Guard {
  /** Belongs on the bar of buttons. */
  bar: RefObject<HTMLDivElement | null>;
  /** What each button gets. */
  button: (act: () => void) => {
    onPointerDown: (event: TargetedEvent<HTMLButtonElement>) => void;
    onClick: (event: TargetedEvent<HTMLButtonElement, MouseEvent>) => void;
  };
}

/** `key` names what is decided: whenever it changes, the buttons are fresh again. */
export function useGuard(key: string): Guard {
  const bar = useRef<HTMLDivElement>(null);
  const moved = useRef(performance.now());
  const down = useRef<DOMRect | null>(null);
  useEffect(() => {
    moved.current = performance.now();
    down.current = null;
    // Whatever grows around the bar may push it under a finger.
    const around = bar.current?.closest(".column, .detail article, .now");
    if (!around) return;
    const watch = new ResizeObserver(() => {
      moved.current = performance.now();
    });
    watch.observe(around);
    return () => watch.disconnect();
  }, [key]);
  const button = (act: () => void) => ({
    onPointerDown: (event: TargetedEvent<HTMLButtonElement>) => {
      down.current = event.currentTarget.getBoundingClientRect();
    },
    onClick: (event: TargetedEvent<HTMLButtonElement, MouseEvent>) => {
      const from = down.current;
      const at = event.currentTarget.getBoundingClientRect();
      down.current = null;
      // The keyboard and assistive tools click without a pointer.
      const still =
        event.detail === 0 ||
        (from !== null &&
          Math.abs(from.top - at.top) <= UNMOVED_PX &&
          Math.abs(from.left - at.left) <= UNMOVED_PX);
      if (still && performance.now() - moved.current >= FRESH_MS) act();
    },
  });
  return { bar, button };
}
