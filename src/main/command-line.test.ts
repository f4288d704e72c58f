import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { settingNames } from './settings.ts';
import { closest } from './closest.ts';
import { command, type Command, helpOf, parseCommandLine } from './command-line.ts';
import { commands } from './commands/list.ts';
import { programOf } from './program.ts';
import { root } from '../platform/program-files.ts';
import { UsageError } from './usage-error.ts';

const errorOf = (args: string[], of: Command[] = commands) => {
  try {
    parseCommandLine(of, args);
    return null;
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    return { message: error.message, usage: error.usage };
  }
};

const createToken =
  'usage: cloudyard token create [--client N] [--role reader|member|admin] [--project N]... [--expires WHEN] [--name TEXT]';
const hostGroup = 'usage: cloudyard host list|drain|undrain|forget';
const all = 'usage: cloudyard COMMAND    # cloudyard help lists the commands';

describe('a wrong command line', () => {
  it.each<[string[], string, string]>([
    [['strat'], 'strat is not a command; did you mean start?', all],
    [['volumes', 'list'], 'volumes is not a command; did you mean volume?', all],
    [['xyzzy'], 'xyzzy is not a command', all],
    [['token'], 'token needs a command', 'usage: cloudyard token create|list|revoke'],
    [['token', '--all'], 'token needs a command', 'usage: cloudyard token create|list|revoke'],
    [['token', 'lst'], 'token lst is not a command; did you mean list?', 'usage: cloudyard token create|list|revoke'],
    [['secrets'], 'secrets needs a command', 'usage: cloudyard secrets rotate-key [--prepare] [--use ID] [--lost]'],
    [['token', 'create', '--rol', 'a'], "unknown option '--rol'", createToken],
    [['token', 'create', 'x'], "unexpected argument 'x'", createToken],
    [['token', 'revoke'], 'ID is required', 'usage: cloudyard token revoke ID'],
    [['token', 'revoke', '1', '2'], "unexpected argument '2'", 'usage: cloudyard token revoke ID'],
    [['client', 'create'], 'NAME is required', 'usage: cloudyard client create NAME...'],
    [['client', 'weight', '1'], 'WEIGHT is required', 'usage: cloudyard client weight ID WEIGHT'],
    [['host', 'dran', '1', 'h2'], 'host dran is not a command; did you mean drain?', hostGroup],
    [['host', 'h2'], 'host h2 is not a command', hostGroup],
    [['host', '--region'], '--region requires a value', 'usage: cloudyard host --region N'],
    [['worker'], '--region is required', 'usage: cloudyard worker --region N [--region N]...'],
    [['backup', '--to', ''], '--to requires a value', expect.stringContaining('backup') as never],
    [['restore', '--from='], '--from requires a value', expect.stringContaining('restore') as never],
    [['worker', '--region'], '--region requires a value', expect.stringContaining('worker') as never],
  ])('%j gets one line of error and the usage of that command', (args, message, usage) => {
    expect(errorOf(args)).toEqual({ message, usage });
  });

  it('that the command itself refuses gets the usage of that command', async () => {
    const refuse = async () => {
      throw new UsageError('N must be even');
    };
    const given = [command({ name: 'count', operands: 'N', summary: 'Count', run: refuse })];
    const running = parseCommandLine(given, ['count', '3']).run({} as never);
    await expect(running).rejects.toMatchObject({ message: 'N must be even', usage: 'usage: cloudyard count N' });
  });

  it('does not hide another error of a command', async () => {
    // A program that failed has its exit status as its code.
    for (const error of [new Error('database down'), Object.assign(new Error('initdb failed'), { code: 1 })]) {
      const fail = () => Promise.reject(error);
      const given = [command({ name: 'count', summary: 'Count', run: fail })];
      await expect(parseCommandLine(given, ['count']).run({} as never)).rejects.toBe(error);
    }
  });
});

describe('a command line', () => {
  it('hands its options and operands to the command', async () => {
    const seen: unknown[] = [];
    const add = command({
      name: 'set add',
      operands: 'NUMBER...',
      summary: 'Add numbers',
      options: {
        to: { type: 'string', default: 'first', description: 'a set' },
        tag: { type: 'string', multiple: true, description: 'a tag' },
        force: { type: 'boolean', default: false, description: 'replace' },
      },
      run: async (_settings, values, operands) => void seen.push({ ...values }, operands),
    });
    await parseCommandLine([add], ['set', 'add', '1', '--tag', 'a', '2', '--tag=b', '--force']).run({} as never);
    expect(seen).toEqual([{ to: 'first', tag: ['a', 'b'], force: true }, ['1', '2']]);
  });
});

describe('docs/operating.md', () => {
  it('lists every command', () => {
    const page = readFileSync(join(root, 'docs', 'operating.md'), 'utf8');
    const listed = [...page.matchAll(/^\| `[^|]+/gm)].join('\n');
    expect(commands.filter(({ name }) => !listed.includes(`\`${name}`)).map(({ name }) => name)).toEqual([]);
  });
});

describe('help', () => {
  it('lists every command with its summary', () => {
    const text = helpOf(commands, []);
    expect(commands.filter(({ name, summary }) => !text.includes(name) || !text.includes(summary))).toEqual([]);
  });

  it('is that of the command, whatever values its options have', () => {
    const text = helpOf(commands, ['host', '--help']);
    expect(text).toMatch(/^usage: cloudyard host --region N\n/);
    expect(helpOf(commands, ['host', '--region', '1', '--help'])).toBe(text);
    expect(helpOf(commands, ['--help', 'host'])).toBe(text);
  });

  it('of a group lists the commands of that group alone', () => {
    const text = helpOf(commands, ['token', '--help']);
    expect(text).toContain('token revoke ID');
    expect(text).not.toContain('quota');
  });

  it.each(commands.map((each) => [each.name, each] as const))('of %s describes its options', (name, { options }) => {
    const text = helpOf(commands, name.split(' '));
    expect(text).toContain(`usage: cloudyard ${name}`);
    for (const [option, { description }] of Object.entries(options)) {
      expect(text).toContain(`--${option}`);
      expect(text).toContain(description);
    }
  });

  it('of a command that is also a group lists the commands of the group', () => {
    const text = helpOf(commands, ['host', '--help']);
    expect(text).toContain('usage: cloudyard host --region N');
    expect(text).toContain('host drain REGION NAME');
  });

  it('of an unknown command is a usage error', () => {
    expect(() => helpOf(commands, ['nothing'])).toThrow(UsageError);
  });
});

describe('the program in a remedy', () => {
  it('is the npm script, the command on the PATH, or the script of this checkout', () => {
    expect(programOf({ npm_lifecycle_event: 'start', PATH: '' })).toBe('npm run -s cloudyard --');
    expect(programOf({ npm_lifecycle_event: 'npx', PATH: '' })).toBe('npx cloudyard');
    expect(programOf({ npm_lifecycle_event: 'test', PATH: '' })).toBe(join(root, 'bin/cloudyard.mjs'));
    const folder = mkdtempSync(join(tmpdir(), 'cloudyard-path-'));
    writeFileSync(join(folder, 'cloudyard'), '');
    expect(programOf({ PATH: `/nowhere:${folder}` })).toBe('cloudyard');
    rmSync(folder, { recursive: true });
  });
});

describe('the closest names', () => {
  it.each([
    ['sfs_cuont', ['sfs_count', 'sfs_size', 'cpu_count'], ['sfs_count']],
    ['sfs_count_limit', ['sfs_count', 'sfs_size'], ['sfs_count']],
    [
      'snapshots',
      ['volume_snapshots_count', 'volume_snapshots_size', 'ram'],
      ['volume_snapshots_count', 'volume_snapshots_size'],
    ],
    ['CLOUDYARD_PROT', settingNames, ['CLOUDYARD_PORT']],
    ['shares', ['sfs_count', 'ram'], []],
    ['', ['ram'], []],
  ])('to %s', (name, known, found) => {
    expect(closest(name, known).slice(0, found.length || 1)).toEqual(found);
  });
});
