import { describe, expect, it } from 'vitest';
import { renderClientConf, renderGroup } from './configuration.ts';
import { stampOf, type PublishedShare } from './share-state.ts';

const settings = {
  ...{ regionId: 7, group: '10.77.2.1', port: 2049, pool: 'volumes', user: 'cloudyard' },
  ...{ cephConf: '/etc/ceph/ceph.conf', clientConf: '/data/ceph.conf' },
};
const id = '2b6e0a3e-4d6b-4a52-9f0e-0d6cf1d3c001';
const share: PublishedShare = {
  ...{ group: '10.77.2.1', exportId: 4, filesystem: 'shares', path: '/volumes/cloudyard-7/x/y' },
  ...{ user: `cloudyard.7.${id}`, key: 'AQ==', rootSquash: true, access: [{ network: '10.0.0.0/8', mode: 'ro' }] },
  sizeGib: 1,
};

describe('the configuration of a group', () => {
  it('has an identity that depends on the group only', () => {
    const text = renderGroup(settings, new Map());
    for (const line of [
      'Bind_addr = 10.77.2.1;',
      'Server_Scope = "cloudyard-7";',
      'Server_Owner = "10.77.2.1";',
      'namespace = "cloudyard.7.nfs.10.77.2.1";',
      'nodeid = "cloudyard-7-10.77.2.1";',
      'RecoveryBackend = rados_ng;',
    ]) {
      expect(text).toContain(line);
    }
  });

  it('exports each share with the user of that share, and denies by default', () => {
    const text = renderGroup(settings, new Map([[id, share]]));
    expect(text).toContain(`Name = CEPH; User_Id = "cloudyard.7.${id}"; Secret_Access_Key = "AQ==";`);
    expect(text).toContain('Access_Type = NONE;');
    expect(text).toContain('Squash = root_squash;');
    expect(text.match(/CLIENT \{.*\}/g)).toEqual([
      'CLIENT { Clients = 10.77.2.1; Access_Type = MDONLY_RO; Squash = no_root_squash; Protocols = 4; }',
      'CLIENT { Clients = 10.0.0.0/8; Access_Type = RO; Protocols = 4; }',
    ]);
  });

  it('labels the clients of Ceph, which fencing finds them by', () => {
    expect(renderClientConf('[global]\nfsid = x\n', settings)).toBe(
      '[global]\nfsid = x\n\n[client]\nclient_metadata = cloudyard_nfs_group=7/10.77.2.1\n',
    );
  });
});

describe('the stamp of a state', () => {
  it('changes with everything that a server serves', () => {
    const changes: Partial<PublishedShare>[] = [
      { access: [] },
      { access: [{ network: '10.0.0.0/8', mode: 'rw' }] },
      { rootSquash: false },
      { path: '/other' },
      { key: 'Ag==' },
    ];
    const stamps = [{}, ...changes].map((change) => stampOf({ ...share, ...change }));
    expect(new Set(stamps).size).toBe(stamps.length);
    expect(stampOf({ ...share })).toBe(stampOf(JSON.parse(JSON.stringify(share)) as PublishedShare));
  });
});
