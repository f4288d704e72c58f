/** Continuous traffic that records failures. */
import { type Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

export type Traffic = ReturnType<typeof startTraffic>;

/** About two thousand requests a second at most, however many are under way: more would take the CPU time of the server. */
const pauseMs = (loops: number) => Math.max(2, loops / 2);

/** `loops` requests are under way at a time. */
export function startTraffic(one: () => Promise<void>, loops = 4) {
  const failures: string[] = [];
  let [answered, stopped] = [0, false];
  const loop = async () => {
    while (!stopped) {
      await one().then(
        () => (answered += 1),
        (error: NodeJS.ErrnoException) => failures.push(error.code ?? error.message),
      );
      await sleep(pauseMs(loops));
    }
  };
  const running = Promise.all(Array.from({ length: loops }, loop));
  return {
    answered: () => answered,
    /** Errors of failed requests, in order. */
    failures: () => failures,
    async stop(): Promise<void> {
      stopped = true;
      await running;
    },
  };
}

/** Sends one request. Rejects if the status is not 200. */
export function requestTo(address: string, port: number, agent: Agent | false = false): Promise<void> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: address, port, agent, timeout: 5000 }, (response) => {
      response.resume().once('error', reject);
      response.once('end', () => {
        if (response.statusCode === 200) resolve();
        else reject(new Error(`status ${response.statusCode}`));
      });
    });
    sent.once('error', reject).once('timeout', () => sent.destroy(new Error('no response within 5 s')));
    sent.end();
  });
}
