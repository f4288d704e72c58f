import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import firstWords from '../client/first-words.json' with { type: 'json' };
import type { Io } from '../client/io.ts';
import { buildProgram } from '../client/program.ts';
import { operandNames, operationById, table } from '../client/table.ts';
import { clientTable, clientTableText, commandOf } from './client-table.ts';
import { commands } from './commands/list.ts';
import { declaredApi } from './openapi-document.ts';
import { root } from '../platform/program-files.ts';

const document = JSON.parse(readFileSync(join(root, 'openapi.json'), 'utf8'));
const io: Io = { env: {}, out: () => {}, err: { write: () => {} }, readInput: async () => '' };

describe('the commands of the client', () => {
  it('are generated from openapi.json', async () => {
    // The declarations register the words of their patterns.
    await declaredApi();
    const text = readFileSync(join(root, 'src/client/operations.json'), 'utf8');
    expect(text).toBe(clientTableText(clientTable(document, commands)));
  });

  it('reach every operation of the API, with all its parameters', async () => {
    const ids = Object.values<Record<string, { operationId: string }>>(document.paths)
      .flatMap((methods) => Object.values(methods))
      .map(({ operationId }) => operationId);
    expect(ids.length).toBeGreaterThan(150);
    expect(table.operations.map(({ id }) => id)).toEqual(ids);
    for (const id of ids) {
      const { command, path, query = {}, body } = operationById(id);
      let leaf: Command | undefined = await buildProgram(command, io);
      for (const word of command) leaf = leaf?.commands.find((child) => child.name() === word);
      expect([id, leaf?.registeredArguments.length]).toEqual([id, operandNames(path).length]);
      const flags = leaf!.options.map(({ long }) => long);
      expect([id, new Set(flags).size]).toEqual([id, flags.length]);
      const reserved = ['timeout', 'wait', 'region', 'project', 'output', 'body'];
      for (const name of Object.keys(query).filter((name) => !reserved.includes(name))) {
        expect([id, ...flags]).toContain(`--${name.replaceAll('_', '-')}`);
      }
      if (body) expect([id, ...flags]).toContain('--body');
    }
  });

  it('have no first word of an operator command', () => {
    const ofOperator = new Set(commands.map(({ name }) => name.split(' ')[0]));
    expect(firstWords.filter((word) => ofOperator.has(word))).toEqual([]);
    expect(firstWords).toEqual(expect.arrayContaining(Object.keys(table.groups)));
  });
});

describe('commandOf', () => {
  const shapes = Object.keys(document.components.schemas);

  it.each([
    ['createFileShareAccessRule', 'file-share access-rule create'],
    ['listLifecyclePolicies', 'lifecycle-policy list'],
    ['getApiKey', 'api-key show'],
    ['updateLoadBalancerV1', 'load-balancer update-v1'],
    ['checkVolumeLimits', 'volume check-limits'],
    ['addLbPoolMember', 'pool member add'],
    ['listFileShareUsage', 'file-share list-usage'],
  ])('of %s is %s', (id, command) => expect(commandOf(id, shapes).join(' ')).toBe(command));

  it('of a new resource has the name of its shape', () => {
    expect(commandOf('createObjectBucket', [...shapes, 'ObjectBucket'])).toEqual(['object-bucket', 'create']);
  });

  it('refuses an operation of an unknown resource', () => {
    expect(() => commandOf('listFloatingIps', shapes)).toThrow(
      'operation listFloatingIps has no command: add its noun to',
    );
  });
});
