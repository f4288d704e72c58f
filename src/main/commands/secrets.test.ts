import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { secretCommands } from './secrets.ts';
import { useCommands } from './test-command.ts';

const { folder, run } = useCommands(secretCommands);

it('a rotation with --lost before the first start of a server has nothing to replace, and creates no key file', async () => {
  const rotate = ['secrets', 'rotate-key', '--lost'];
  await expect(run(rotate)).rejects.toThrow(
    '--lost has nothing to replace: no server has created the keys of registries yet; start a server',
  );
  expect(existsSync(join(folder, 'secret.keys'))).toBe(false);
});
