/** Remedies of drivers: for a checkout, a package, and a unit of systemd. */
import { describe, expect, it } from 'vitest';
import { remedyFor, unitOf } from './remedy.ts';

const checkout = { start: 'npm start', program: 'npm run -s cloudyard --', service: null };
const installed = { start: 'cloudyard start', program: 'cloudyard', service: null };
const unit = 'cloudyard-worker@1.service';
const settings = `its EnvironmentFile (systemctl cat ${unit})`;
const service = { ...installed, service: { units: unit, settings, unit } };

describe('a remedy', () => {
  it.each([
    [
      'CLOUDYARD_NFS_PORT=12049 npm start',
      'CLOUDYARD_NFS_PORT=12049 cloudyard start',
      'systemctl restart cloudyard-worker@1.service    # after you have set CLOUDYARD_NFS_PORT=12049 in its EnvironmentFile (systemctl cat cloudyard-worker@1.service)',
    ],
    [
      'sudo modprobe loop && sudo npm start',
      'sudo modprobe loop && sudo cloudyard start',
      'sudo modprobe loop && systemctl restart cloudyard-worker@1.service    # after you have set User=root CapabilityBoundingSet=~ by systemctl edit cloudyard-worker@1.service',
    ],
    [
      'sudo systemctl disable --now nfs-ganesha.service && npm start',
      'sudo systemctl disable --now nfs-ganesha.service && cloudyard start',
      'sudo systemctl disable --now nfs-ganesha.service && systemctl restart cloudyard-worker@1.service',
    ],
    ['apt-get install haproxy', 'apt-get install haproxy', 'apt-get install haproxy'],
    ['npm run cloudyard -- doctor', 'cloudyard doctor', 'cloudyard doctor'],
  ])('%s is for an installed program "%s"', (remedy, withProgram, withUnit) => {
    expect(remedyFor(remedy, installed)).toBe(withProgram);
    expect(remedyFor(remedy, service)).toBe(withUnit);
    expect(remedyFor(withUnit, service)).toBe(withUnit);
  });

  it('is for the services of a package if root runs a command of it', () => {
    const [units, settings] = ["cloudyard-serve 'cloudyard-worker@*'", '/etc/cloudyard/cloudyard.env'];
    const packaged = { ...installed, service: { units, settings, unit: null } };
    expect(remedyFor('CLOUDYARD_NFS_PORT=12049 npm start', packaged)).toBe(
      `systemctl restart ${units}    # after you have set CLOUDYARD_NFS_PORT=12049 in ${settings}`,
    );
    expect(remedyFor('sudo modprobe loop && sudo npm start', packaged)).toBe(
      `sudo modprobe loop && systemctl restart ${units}`,
    );
    expect(remedyFor('apt-get install haproxy && npm start', packaged)).toBe(
      `apt-get install haproxy && systemctl restart ${units}`,
    );
  });

  it('of a checkout is unchanged; several starts are one', () => {
    expect(remedyFor('sudo npm start', checkout)).toBe('sudo npm start');
    expect(remedyFor('CLOUDYARD_NFS_PORT=12049 npm start && sudo npm start', checkout)).toBe(
      'sudo CLOUDYARD_NFS_PORT=12049 npm start',
    );
  });
});

describe('the unit of this process', () => {
  const cgroup = '0::/system.slice/system-cloudyard\\x2dworker.slice/cloudyard-worker@1.service\n';

  it('is that of its control group, if systemd started it or its launcher', () => {
    expect(unitOf({ SYSTEMD_EXEC_PID: String(process.pid) }, cgroup)).toBe('cloudyard-worker@1.service');
    expect(unitOf({ SYSTEMD_EXEC_PID: String(process.ppid) }, cgroup)).toBe('cloudyard-worker@1.service');
  });

  it('is none for a process that a person started, also in a shell of a service', () => {
    expect(unitOf({}, cgroup)).toBeNull();
    expect(unitOf({ SYSTEMD_EXEC_PID: '1' }, cgroup)).toBeNull();
    expect(unitOf({ SYSTEMD_EXEC_PID: String(process.pid) }, '0::/user.slice/session-1.scope\n')).toBeNull();
  });
});
