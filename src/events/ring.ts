/** The latest events of a process, in the order of their commits. Positions count all events that it ever held. */
import type { ResourceEvent } from './source.ts';

interface Entry {
  event: ResourceEvent;
  /** As it is sent. */
  text: string;
}

/** Keeps the last `capacity` entries. */
export function createRing(capacity: number) {
  let entries: Entry[] = [];
  let tail = 0;
  let head = 0;
  /** The ID of the position `tail`, while no event has been dropped. */
  let startId: string | null = null;
  let lastId = '';

  return {
    /** The position of the next event. */
    head: () => head,
    /** The ID of the latest event. */
    lastId: () => lastId,
    /** Undefined if the event was dropped. */
    at: (position: number): Entry | undefined => (position < tail ? undefined : entries[position % capacity]),

    push(entry: Entry): void {
      entries[head % capacity] = entry;
      head += 1;
      lastId = entry.event.id;
      if (head - tail <= capacity) return;
      tail += 1;
      startId = null;
    },

    /** Drops all events: there may be a gap before the next one. Positions before it are no longer valid. */
    restart(id: string): void {
      entries = [];
      // A reader that has read everything may have missed an event, too.
      head += 1;
      tail = head;
      startId = lastId = id;
    },

    /** The position after the event with this ID; null if it is unknown or was dropped. */
    positionAfter(id: string): number | null {
      if (id === startId) return tail;
      for (let position = head - 1; position >= tail; position--) {
        if (entries[position % capacity]!.event.id === id) return position + 1;
      }
      return null;
    },

    isValid: (position: number) => position >= tail,
  };
}
