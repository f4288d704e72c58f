import { expect, it, onTestFinished, vi } from 'vitest';
import { requires } from '../../../test/requires.ts';
import { silentLogger } from '../../platform/log.ts';
import { createCephBridge } from './bridge.ts';
import { imagesOf } from './images.ts';

it.skipIf(!requires('util-linux'))(
  'a rollback that takes days is not abandoned, because it would run twice',
  async () => {
    // Connects, and responds to the first request when the second one arrives.
    const process = `read settings; echo '{"ready":{}}'; read one; read two; echo '{"id":1}'; echo '{"id":2}'; read end`;
    const bridge = createCephBridge({ conf: '', user: '', prefix: ['sh', '-c', process], log: silentLogger });
    await bridge.start();
    onTestFinished(() => bridge.stop());
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    onTestFinished(() => void vi.useRealTimers());
    const images = imagesOf(bridge, 'volumes');
    const failed = vi.fn<(error: Error) => void>();
    const rollback = images.rollBack(1, 'image', 'snapshot').catch(failed);
    // Until the request is sent.
    await new Promise(setImmediate);
    await vi.advanceTimersByTimeAsync(3 * 24 * 3600 * 1000);
    await images.rename('image', 'other');
    await rollback;
    expect(failed).not.toHaveBeenCalled();
  },
);
