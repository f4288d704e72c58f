/** Creates the accounts of the programs before the tests, if root runs them: a fast test may not start `useradd`. */
import { ACCOUNTS, accountFor } from '../src/drivers/confined.ts';

export default function setup(): void {
  for (const program of Object.keys(ACCOUNTS) as (keyof typeof ACCOUNTS)[]) accountFor(program);
}
