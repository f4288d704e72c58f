/**
 * Token buckets for the requests a second of each client. The processes of one server share the buckets of the first one:
 * the others lease a few requests at a time, so the limit holds however the connections of a client are distributed.
 */
interface Rate {
  clientId: number;
  /** Requests a second that are allowed permanently. */
  perSecond: number;
  /** The size of the bucket. */
  burst: number;
}

export interface RequestRates {
  /** Takes one request. Returns 0, or the seconds until a request is allowed. */
  take(rate: Rate): number | Promise<number>;
}

export interface Lease {
  taken: number;
  /** The seconds until a request is allowed, if none was taken. */
  waitSeconds: number;
}

/** `now`: milliseconds, monotonic. */
export function createRateBuckets(now = () => performance.now()) {
  const buckets = new Map<number, { allowance: number; refilledAt: number }>();

  const lease = ({ clientId, perSecond, burst, count }: Rate & { count: number }): Lease => {
    const at = now();
    const bucket = buckets.get(clientId) ?? { allowance: burst, refilledAt: at };
    const allowance = Math.min(burst, bucket.allowance + ((at - bucket.refilledAt) / 1000) * perSecond);
    const taken = Math.min(count, Math.floor(allowance));
    buckets.set(clientId, { allowance: allowance - taken, refilledAt: at });
    return { taken, waitSeconds: taken > 0 ? 0 : Math.ceil((1 - allowance) / perSecond) };
  };
  return { lease, take: (rate: Rate): number => lease({ ...rate, count: 1 }).waitSeconds };
}

/** Each lease is this part of a bucket, or one request. */
const leasesOfBucket = 50;

/** Takes requests from the buckets of another process. */
export function leaseRates(lease: (request: Rate & { count: number }) => Promise<Lease>): RequestRates {
  const leased = new Map<number, { left: number; leasing: Promise<number> | null }>();
  return {
    take(rate) {
      const client = leased.get(rate.clientId) ?? { left: 0, leasing: null };
      leased.set(rate.clientId, client);
      const takeOne = (): number | Promise<number> => {
        if (client.left > 0) {
          client.left -= 1;
          return 0;
        }
        const count = Math.max(1, Math.floor(rate.burst / leasesOfBucket));
        client.leasing ??= lease({ ...rate, count })
          .then(({ taken, waitSeconds }) => {
            client.left += taken;
            return waitSeconds;
          })
          .finally(() => (client.leasing = null));
        return client.leasing.then((waitSeconds) => (waitSeconds > 0 ? waitSeconds : takeOne()));
      };
      return takeOne();
    },
  };
}
