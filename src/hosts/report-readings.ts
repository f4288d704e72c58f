/** Reports the readings of the parts to the worker; large ones less often, so that this takes at most a tenth of the time. */
import { promisify } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzip } from 'node:zlib';
import type { Db } from '../platform/db.ts';
import type { Logger } from '../platform/log.ts';
import * as store from './agent-store.ts';
import type { Incarnation } from './agent-store.ts';
import type { HostPart } from './part.ts';

interface ReportOptions {
  db: Db;
  host: Incarnation;
  parts: HostPart[];
  log: Logger;
}

const readingsMs = 1000;
/** Readings that do not change are written with every tenth turn. */
const unchangedReadings = 10;
const compress = promisify(gzip);

/** Runs until `over` aborts. */
export async function reportReadings({ db, host, parts, log }: ReportOptions, over: AbortSignal): Promise<void> {
  const reporting = parts.filter((part) => part.kind !== null && part.readings);
  const last = new Map<HostPart, { text: string; skipped: number }>();
  while (!over.aborted) {
    const startedAt = performance.now();
    for (const part of reporting) {
      try {
        const text = JSON.stringify(await part.readings!());
        const before = last.get(part);
        if (before && before.text === text && ++before.skipped < unchangedReadings) continue;
        await store.replaceReadings(db, host, part.kind!, (await compress(text)).toString('base64'));
        last.set(part, { text, skipped: 0 });
      } catch (error) {
        if (!over.aborted) log.debug({ err: error, part: part.title }, 'cannot report readings');
      }
    }
    const pause = Math.max(readingsMs, 9 * (performance.now() - startedAt));
    await sleep(pause, undefined, { signal: over }).catch(() => {});
  }
}
