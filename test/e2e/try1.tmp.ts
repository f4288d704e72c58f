import { openYard, until } from '/work/main/test/processes.ts';
const y = await openYard({ CLOUDYARD_FILE_SHARE_DRIVER: process.argv[2] ?? 'simulated' });
let t = Date.now();
const s = await y.start(['start']);
console.log('started', Date.now() - t, s.stdout());
const nets = (await y.get('/cloud/v1/networks/1/1')).body; const net = nets.results[0].id; const n = 200;
let next = 0; const acks: any[] = []; const statuses: Record<string, number> = {};
let killed = false;
const kill = process.argv[3];
const created = async () => { while (next < n) { const i = next++; 
  const a = await y.insist('POST', '/cloud/v1/file_shares/1/1', { name: `share-${i}`, protocol: 'NFS', size: 1, network: { network_id: net }, access: [{ip_address:'127.0.0.1', access_mode:'rw'}] });
  statuses[a.status] = (statuses[a.status] ?? 0) + 1; acks.push(a);
  if (kill && acks.length >= 60 && !killed) { killed = true; const pid = (y.pids() as any)[kill]; console.log('killing', kill, pid); process.kill(pid, 'SIGKILL'); }
} };
t = Date.now();
await Promise.all(Array.from({ length: 16 }, created));
console.log('acknowledged', acks.length, Date.now() - t, statuses);
const ends = await Promise.all(acks.map((a) => y.ended(a, 120)));
console.log('ended', Date.now() - t, ends.filter((e) => e.state === 'FINISHED').length, ends.filter((e) => e.state !== 'FINISHED').slice(0, 3));
console.log(y.pids(), y.mounts().length);
console.log(await y.sql(`select key, locked_by, attempts, last_error, run_at from graphile_worker.jobs limit 3`), await y.sql(`select pid, granted, objid, classid from pg_locks where locktype='advisory'`));
const lv: any = {}; for (const l of s.log()) { const k = `${l.level} ${l.msg} ${(l as any).err?.message ?? ''}`.slice(0, 200); lv[k] = (lv[k] ?? 0) + 1; }
console.log(lv);
t = Date.now();
const e = await s.stop(); console.log('stopped', e.code, e.signal, Date.now() - t, e.stderr.slice(0, 2000), y.pids(), y.mounts());
y.cleanUp();
process.exit();
