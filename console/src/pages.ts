import { apiKeys } from './api-keys/page.ts';
import { audit } from './audit/page.ts';
import { clients } from './clients/page.ts';
import { development } from './development/page.ts';
import { fileShares } from './file-shares/page.ts';
import { hosts } from './hosts/page.ts';
import { lifecyclePolicies } from './lifecycle-policies/page.ts';
import { loadBalancers } from './load-balancers/page.ts';
import { networks } from './networks/page.ts';
import { notifications } from './notifications/page.ts';
import { overview } from './overview/page.ts';
import { prices } from './prices/page.ts';
import { projects } from './projects/page.ts';
import { pullSecrets } from './pull-secrets/page.ts';
import { quotaAudit } from './quota-audit/page.ts';
import { quotas } from './quotas/page.ts';
import { regions } from './regions/page.ts';
import { registries } from './registries/page.ts';
import { secrets } from './secrets/page.ts';
import { snapshots } from './snapshots/page.ts';
import { subnets } from './subnets/page.ts';
import { tasks } from './tasks/page.ts';
import { tokens } from './tokens/page.ts';
import type { Page } from './ui/page.ts';
import { userActions } from './user-actions/page.ts';
import { volumes } from './volumes/page.ts';
import { webhooks } from './webhooks/page.ts';
import { workers } from './workers/page.ts';

/** Every page of the console, in the order of the navigation. A new page is its folder and one line here. */
export const pages: readonly Page[] = [
  overview,
  tasks,
  fileShares,
  volumes,
  snapshots,
  lifecyclePolicies,
  loadBalancers,
  networks,
  subnets,
  secrets,
  registries,
  apiKeys,
  pullSecrets,
  quotas,
  prices,
  webhooks,
  notifications,
  userActions,
  audit,
  tokens,
  projects,
  clients,
  regions,
  workers,
  hosts,
  quotaAudit,
  development,
];
