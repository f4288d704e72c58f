/**
 * Decides whether a history of concurrent operations is linearizable: whether each operation can have taken effect at one instant
 * between its request and its response, so that a sequential specification explains all responses.
 *
 * The algorithm of Wing and Gong (1993) with the memoization of Lowe (2017): depth first over the operations that may be next,
 * never twice with the same set of operations done and the same state.
 */

export interface Operation<In, Out> {
  input: In;
  /** Null: no response arrived. The operation may have taken effect at any time after its request, or never. */
  output: Out | null;
  /** Milliseconds. */
  called: number;
  returned: number;
}

export interface Specification<State, In, Out> {
  initial: State;
  /** The possible states after the operation; none: this output is impossible in this state. */
  step(state: State, input: In, output: Out | null): State[];
  /** Equal states have equal keys. */
  keyOf(state: State): string;
}

type Verdict =
  | { linearizable: true }
  /** The longest sequence that could be explained, and the operations that could not follow it. */
  | { linearizable: false; explained: number[]; stuck: number[] };

export function check<State, In, Out>(
  { initial, step, keyOf }: Specification<State, In, Out>,
  history: readonly Operation<In, Out>[],
): Verdict {
  const order = history.map((_, i) => i).sort((a, b) => history[a]!.called - history[b]!.called);
  const end = (i: number) => (history[i]!.output === null ? Number.POSITIVE_INFINITY : history[i]!.returned);
  const done = new Uint8Array(history.length);
  const visited = new Set<string>();
  let explained: number[] = [];
  let stuck = order;
  const path: number[] = [];

  /** An operation may be next if it was called before every other one that is not done has returned. */
  const nextOnes = (): number[] => {
    const open = order.filter((i) => done[i] === 0);
    const firstEnd = Math.min(...open.map(end));
    return open.filter((i) => history[i]!.called <= firstEnd);
  };

  const visit = (state: State): boolean => {
    const next = nextOnes();
    if (next.every((i) => history[i]!.output === null)) return true;
    const memo = `${bitsOf(done)} ${keyOf(state)}`;
    if (visited.has(memo)) return false;
    visited.add(memo);
    if (path.length >= explained.length) [explained, stuck] = [[...path], next];
    for (const i of next) {
      const { input, output } = history[i]!;
      done[i] = 1;
      path.push(i);
      for (const after of step(state, input, output)) if (visit(after)) return true;
      path.pop();
      done[i] = 0;
    }
    return false;
  };
  return visit(initial) ? { linearizable: true } : { linearizable: false, explained, stuck };
}

function bitsOf(done: Uint8Array): string {
  let bits = '';
  for (let i = 0; i < done.length; i += 16) {
    let code = 0;
    for (let j = 0; j < 16; j++) code |= (done[i + j] ?? 0) << j;
    bits += String.fromCharCode(code);
  }
  return bits;
}

/** The history around the point that cannot be explained, for the message of a test. */
export function textOf<In, Out>(history: readonly Operation<In, Out>[], verdict: Verdict): string {
  if (verdict.linearizable) return 'linearizable';
  const line = (i: number) => {
    const { input, output, called, returned } = history[i]!;
    const times = `${called.toFixed(1)} to ${output === null ? 'the end' : returned.toFixed(1)}`;
    return `  ${times}: ${JSON.stringify(input)} returned ${JSON.stringify(output)}`;
  };
  return [
    'explained, in this order (the last 20):',
    ...verdict.explained.slice(-20).map(line),
    'then none of these is possible:',
    ...verdict.stuck.map(line),
  ].join('\n');
}
