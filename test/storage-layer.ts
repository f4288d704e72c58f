/**
 * A layer under the file operations of the modules under test, which can fail an operation or record what is durable. A test
 * file puts it in place with
 *
 *     vi.mock('node:fs/promises', async (original) => (await import('../../test/storage-layer.ts')).layered(await original()));
 *     vi.mock('node:fs', async (original) => (await import('../../test/storage-layer.ts')).layered(await original()));
 *
 * Operations are those that change files or make them durable; reads pass through.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

export interface FileOperation {
  name: string;
  /** Paths, or the descriptor of an open file. */
  targets: (string | number)[];
  /** Writes half of the data, if the operation writes any. */
  writeHalf?: () => unknown;
}

/** Runs instead of each operation. It may throw, and has to call `perform` otherwise. */
export type Around = (operation: FileOperation, perform: () => unknown) => unknown;

let around: Around | null = null;
const withinLayer = new AsyncLocalStorage<boolean>();

/** Runs `work` with the layer active. Operations of `layer` itself pass through. */
export async function withLayer<T>(layer: Around, work: () => Promise<T>): Promise<T> {
  around = layer;
  try {
    return await work();
  } finally {
    around = null;
  }
}

type Functions = Record<string, any>;

const pathOperations = [
  ...['rename', 'rm', 'mkdir', 'writeFile', 'truncate', 'copyFile', 'unlink', 'link', 'chmod', 'chown'],
  ...['renameSync', 'rmSync', 'mkdirSync', 'writeFileSync', 'unlinkSync', 'linkSync', 'chmodSync', 'chownSync'],
];
const descriptorOperations = ['fsyncSync', 'writeSync', 'ftruncateSync'];
const handleOperations = ['sync', 'datasync', 'writeFile', 'write', 'truncate', 'chown', 'chmod'];

/** The module with its operations behind the layer. */
export function layered(module: Functions): Functions {
  const copy: Functions = { ...module };
  for (const name of [...pathOperations, ...descriptorOperations]) {
    if (typeof module[name] === 'function') copy[name] = behindLayer(module[name], name);
  }
  if (typeof module['open'] === 'function' && module['FileHandle'] === undefined && !module['openSync']) {
    copy['open'] = async (...args: unknown[]) => {
      const isWrite = typeof args[1] === 'string' && /[wa+]/.test(args[1]);
      const open = () => module['open'](...args);
      const handle =
        isWrite && around ? await passThrough({ name: 'open', targets: [args[0] as string] }, open) : await open();
      return layeredHandle(handle);
    };
  }
  if (module['openSync']) {
    copy['openSync'] = (...args: unknown[]) => {
      const isWrite = typeof args[1] === 'string' && /[wa+]/.test(args[1]);
      const open = () => module['openSync'](...args);
      return isWrite && around ? passThrough({ name: 'openSync', targets: [args[0] as string] }, open) : open();
    };
  }
  return { ...copy, default: copy };
}

function behindLayer(operation: (...args: any[]) => unknown, name: string) {
  return (...args: any[]) => {
    const perform = () => operation(...args);
    if (!around) return perform();
    const targets = /rename|copyFile|^link/.test(name) ? args.slice(0, 2) : args.slice(0, 1);
    const writeHalf = name.startsWith('write')
      ? () => operation(args[0], halfOf(args[1]), ...args.slice(2))
      : undefined;
    return passThrough({ name, targets, ...(writeHalf && { writeHalf }) }, perform);
  };
}

function layeredHandle(handle: Functions): Functions {
  return new Proxy(handle, {
    get(target, name) {
      const value = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      const method = value.bind(target) as (...args: any[]) => unknown;
      if (!handleOperations.includes(String(name))) return method;
      return (...args: any[]) => {
        if (!around) return method(...args);
        const writeHalf = String(name).startsWith('write') ? () => method(halfOf(args[0])) : undefined;
        const operation = { name: `file.${String(name)}`, targets: [target['fd'] as number] };
        return passThrough({ ...operation, ...(writeHalf && { writeHalf }) }, () => method(...args));
      };
    },
  });
}

function passThrough(operation: FileOperation, perform: () => unknown): unknown {
  const layer = around;
  // What a layer does by itself passes through.
  return layer && !withinLayer.getStore() ? withinLayer.run(true, () => layer(operation, perform)) : perform();
}

function halfOf(data: string | Uint8Array): string | Uint8Array {
  return data.slice(0, Math.floor(data.length / 2));
}

interface Fault {
  code: string;
  /** Half of the data is written before. */
  half?: boolean;
  /** The operation is performed before. */
  after?: boolean;
}

export const storageFaults = {
  'ENOSPC at': { code: 'ENOSPC' },
  'EIO at': { code: 'EIO' },
  'a short write at': { code: 'ENOSPC', half: true },
  'EIO after': { code: 'EIO', after: true },
} as const satisfies Record<string, Fault>;

export type StorageFault = keyof typeof storageFaults;

/** Runs `work` with one fault, at operation number `at` from 1. Returns the failed operation; null if there were fewer. */
export async function withFault(
  fault: StorageFault,
  at: number,
  work: () => Promise<unknown>,
): Promise<{ operation: FileOperation | null; error: unknown }> {
  let count = 0;
  let operation: FileOperation | null = null;
  const layer: Around = (each, perform) => {
    count += 1;
    if (count !== at) return perform();
    operation = each;
    return fail(storageFaults[fault], each, perform);
  };
  const error = await withLayer(layer, async () => work().then(() => null)).catch((cause: unknown) => cause);
  return { operation, error };
}

function fail({ code, half, after }: Fault, { name, writeHalf }: FileOperation, perform: () => unknown): unknown {
  const error = Object.assign(new Error(`${code}: injected`), { code });
  const partial = half ? writeHalf : after ? perform : undefined;
  if (!name.endsWith('Sync')) return Promise.resolve(partial?.()).then(() => Promise.reject(error));
  partial?.();
  throw error;
}
