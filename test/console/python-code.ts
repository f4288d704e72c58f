/**
 * A Python with the official SDK and a parser of HCL, which runs python_code.py for one test file. CLOUDYARD_TEST_PYTHON
 * selects it; .ci/run creates one.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll } from 'vitest';

const python = process.env['CLOUDYARD_TEST_PYTHON'] ?? 'python3';
const script = fileURLToPath(new URL('python_code.py', import.meta.url));

/** The reason to skip tests, for their name; null if they can run. Throws in CI. */
export function pythonSkipReason(): string | null {
  try {
    execFileSync(python, ['-c', 'import gcore, hcl2'], { stdio: 'ignore' });
    return null;
  } catch {
    const reason = `skipped: ${python} lacks gcore or python-hcl2; set CLOUDYARD_TEST_PYTHON to a Python with both`;
    if (process.env['CI']) throw new Error(`${reason}, and CI must not skip tests`);
    return reason;
  }
}

/** A method of the SDK. The path has parameters in braces. */
interface SdkMethod {
  name: string;
  method: string;
  path: string;
  parameters: string[];
  required: string[];
}

interface PythonCode {
  methods(): Promise<SdkMethod[]>;
  /** Runs text. The status is that of a refused request, 200 without one, and 0 after another exception. */
  run(text: string, token: string): Promise<{ status: number; body: any }>;
  /** The calls of methods that the text makes, with their arguments. Sends nothing. */
  calls(text: string): Promise<[string, Record<string, unknown>][]>;
  hcl(text: string): Promise<Record<string, any>>;
}

/** Call inside `describe`. One call runs at a time. */
export function usePythonCode(): PythonCode {
  let child: ChildProcess;
  let lines: AsyncIterator<string>;
  let errors = '';
  beforeAll(() => {
    child = spawn(python, [script], { stdio: ['pipe', 'pipe', 'pipe'] });
    child.stderr!.on('data', (data: Buffer) => (errors += data.toString()));
    lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  });
  afterAll(() => void child?.stdin!.end());
  const ask = async (...command: string[]) => {
    child.stdin!.write(`${JSON.stringify(command)}\n`);
    const { value, done } = await lines.next();
    if (done) throw new Error(errors);
    return JSON.parse(value);
  };
  return {
    methods: () => ask('methods'),
    run: (text, token) => ask('run', text, token),
    calls: (text) => ask('calls', text),
    hcl: (text) => ask('hcl', text),
  };
}
