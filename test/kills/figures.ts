/** What a run counts. */
export interface Figures {
  /** Acknowledged operations. */
  operations: number;
  /** Comparisons of everything that a client has with the model. */
  comparisons: number;
  /** Requests that got no answer because a process was killed; they were repeated. */
  unanswered: number;
  statuses: Record<number, number>;
  /** Number of kills by kind of process. */
  kills: Record<string, number>;
  /** Milliseconds from a kill to the next answer of the API, by kind of process. */
  silences: Record<string, number[]>;
  /** Lost, doubled, stuck or otherwise wrong. */
  failures: string[];
}

export const noFigures = (): Figures => ({
  operations: 0,
  comparisons: 0,
  unanswered: 0,
  statuses: {},
  kills: {},
  silences: {},
  failures: [],
});

/** The value below which this share of the values is. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
