import { quiet } from './quiet.ts';

/**
 * Measures sides in turn (A B A B …), so that other load affects all sides equally. Each round has its own ratio, and the
 * median of the rounds counts.
 */
type Sides<Name extends string> = Record<Name, () => Promise<number>>;

export async function interleave<Name extends string>(
  rounds: number,
  sides: Sides<Name>,
): Promise<Record<Name, number[]>> {
  const names = Object.keys(sides) as Name[];
  const figures = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Name, number[]>;
  for (let round = 0; round < rounds; round++) {
    await quiet();
    for (const name of names) figures[name].push(await sides[name]());
  }
  return figures;
}

export function ratios(values: number[], toValues: number[]): number[] {
  return values.map((value, round) => value / toValues[round]!);
}

export function median(values: number[]): number {
  return quantile(values, 0.5);
}

/** The `q` quantile. */
export function quantile(values: number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)]!;
}

export function spread(values: number[]): [low: number, high: number] {
  return [Math.min(...values), Math.max(...values)];
}
