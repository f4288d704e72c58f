/** A driver under the tests of its contract. */
export interface Subject<D> {
  driver: D;
  /** Kills the process without a stop and returns the driver of the next one. */
  crash(): Promise<D>;
  cleanUp(): Promise<void>;
}

/** A driver that changes nothing on the host. */
export const simulatedSubject =
  <D>(create: () => D) =>
  async (): Promise<Subject<D>> => ({
    driver: create(),
    crash: async () => create(),
    cleanUp: async () => undefined,
  });

/** A driver whose programs outlive its process, and are adopted by the next one. */
export function adoptingSubject<D extends { stop(): Promise<void>; release(): Promise<void> }>(host: {
  driver(): D;
  cleanUp(): void | Promise<void>;
}): Subject<D> {
  let driver = host.driver();
  return {
    driver,
    async crash() {
      await driver.release();
      driver = host.driver();
      return driver;
    },
    cleanUp: () => driver.stop().finally(host.cleanUp),
  };
}
