/** The files in packaging/monitoring: valid, and about metrics that exist. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { root } from '../src/platform/program-files.ts';
import { createMetrics } from '../src/platform/metrics.ts';
import { useCloudyard } from './harness.ts';
import { requires } from './requires.ts';

const folder = join(root, 'packaging', 'monitoring');
const guide = readFileSync(join(root, 'docs', 'guides', 'monitoring.md'), 'utf8');

interface Rule {
  alert: string;
  expr: string;
}

const rules = (
  parse(readFileSync(join(folder, 'alerts.yaml'), 'utf8')) as { groups: { rules: Rule[] }[] }
).groups.flatMap((group) => group.rules);

interface Panel {
  title: string;
  targets?: { expr: string }[];
}

const dashboard = JSON.parse(readFileSync(join(folder, 'grafana-dashboard.json'), 'utf8')) as { panels: Panel[] };
const panels = dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => ({ title, expr })));

const metricsIn = (text: string) => [...new Set(text.match(/\b(cloudyard|process)_[a-z_]+/g))];

/** The names of all metrics that servers and workers can have. */
async function knownMetrics(): Promise<Set<string>> {
  const metrics = createMetrics();
  const space = { freeBytes: 1, totalBytes: 1, reserveBytes: 1 };
  metrics.watchDisk(() => space as ReturnType<Parameters<typeof metrics.watchDisk>[0]>);
  metrics.watchLoadBalancers(() => ({ reloads: 0, runtimeChanges: 0 }));
  metrics.watchSchedules(
    async () => 0,
    async () => 0,
  );
  metrics.watchApiKeys(() => ({ keys: 0, ageSeconds: 0 }));
  metrics.watchQueue(async () => ({ ready: 0, delayed: 0, running: 0, oldestSeconds: 0 }));
  metrics.watchCertificate(() => ({ healthy: true, detail: '', expiresAt: null }));
  metrics.watchHosts(async () => [{ regionId: 1, name: 'h1', leaseSeconds: 1, pendingChanges: 0 }]);
  metrics.watchBackups(async () => ({ lastSuccessSeconds: 0, lateSeconds: 0, hasFailed: false }));
  metrics.watchDatabase('api', { $client: { totalCount: 1, idleCount: 1, waitingCount: 0 } } as Parameters<
    typeof metrics.watchDatabase
  >[1]);
  return namesOf(await metrics.text());
}

function namesOf(text: string): Set<string> {
  const types = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  return new Set(
    types.flatMap(([, name, type]) =>
      type === 'histogram' ? ['_bucket', '_sum', '_count'].map((suffix) => name + suffix) : [name!],
    ),
  );
}

describe('the alert rules', () => {
  it.skipIf(!requires('prometheus'))('are valid, and fire as their tests say', () => {
    const promtool = (...args: string[]) =>
      execFileSync('promtool', args, { cwd: folder, encoding: 'utf8', stdio: 'pipe' });
    expect(promtool('check', 'rules', '--lint=all', '--lint-fatal', 'alerts.yaml')).toContain(`${rules.length} rules`);
    expect(promtool('test', 'rules', 'alerts.test.yaml')).toContain('SUCCESS');
  });

  it.each(rules)('$alert is about metrics that exist, and is in the guide', async ({ alert, expr }) => {
    const known = await knownMetrics();
    expect(metricsIn(expr).filter((name) => !known.has(name))).toEqual([]);
    expect(guide).toContain(`\`${alert}\``);
  });
});

describe('the dashboard', () => {
  it.each(panels)('$title is about metrics that exist', async ({ expr }) => {
    const known = await knownMetrics();
    expect(metricsIn(expr).length).toBeGreaterThan(0);
    expect(metricsIn(expr).filter((name) => !known.has(name))).toEqual([]);
  });

  it.skipIf(!requires('prometheus'))('has valid queries', () => {
    const variables = { $__rate_interval: '5m', $job: 'cloudyard' };
    const record = panels.map(({ expr }, i) => ({
      record: `panel:${i}`,
      expr: Object.entries(variables).reduce((text, [name, value]) => text.replaceAll(name, value), expr),
    }));
    const temporary = mkdtempSync(join(tmpdir(), 'cloudyard-monitoring-'));
    const file = join(temporary, 'panels.json');
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'panels', rules: record }] }));
    onTestFinished(() => rmSync(temporary, { recursive: true }));
    const output = execFileSync('promtool', ['check', 'rules', file], { encoding: 'utf8', stdio: 'pipe' });
    expect(output).toContain(`${panels.length} rules found`);
  });
});

describe('/metrics', () => {
  const cloudyard = useCloudyard({ driver: null });

  it('has no gauge whose value is unknown', async () => {
    const metrics = createMetrics();
    metrics.watchCertificate(() => ({ healthy: true, detail: '', expiresAt: null }));
    metrics.watchQueue(() => Promise.reject(new Error('database down')));
    const samples = (await metrics.text()).match(/^cloudyard_(tls|queue)\w+/gm);
    expect(samples).toEqual(['cloudyard_tls_certificate_faults']);
  });

  it('has only metrics that the guide explains', async () => {
    const { body } = await cloudyard.get('/metrics', { token: null });
    const exposed = [...namesOf(body)].filter((name) => name.startsWith('cloudyard_'));
    expect(exposed.length).toBeGreaterThan(10);
    const known = await knownMetrics();
    for (const name of exposed) expect(known).toContain(name);
    for (const name of known) {
      if (name.startsWith('cloudyard_')) expect(guide).toContain(`\`${name.replace(/_(bucket|sum|count)$/, '')}`);
    }
  });
});
