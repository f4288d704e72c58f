import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useLockReason } from '../api/session.ts';
import { driversQuery } from '../api/drivers.ts';
import { CodeBlock, CopyableText } from '../ui/copy.tsx';
import { Card, DetailPage, Properties } from '../ui/detail-page.tsx';
import { FailureReason } from '../ui/failure-reason.tsx';
import { formatGib } from '../ui/numbers.ts';
import { ActionLinks } from '../ui/page-head.tsx';
import { usePageActions } from '../ui/page-actions.ts';
import { resourceTabs } from '../ui/resource-tabs.tsx';
import { useScope } from '../ui/scope.tsx';
import { Ago } from '../ui/time.tsx';
import { AccessRules } from './access-rules.tsx';
import { type FileShare, fileShareQuery, usageQuery } from './data.ts';
import { Usage } from './usage.tsx';

export function FileShareDetail() {
  const { id } = useParams({ strict: false }) as { id: string };
  const scope = useScope();
  usePageActions([
    { title: 'Edit this file share', to: scope.path('file-shares', id, 'edit') },
    { title: 'Extend this file share', to: scope.path('file-shares', id, 'extend') },
    { title: 'Add an access rule', to: scope.path('file-shares', id, 'access-rules', 'new') },
    { title: 'Delete this file share', to: scope.path('file-shares', id, 'delete') },
  ]);
  return (
    <DetailPage
      crumbs={[{ title: 'File shares', to: scope.path('file-shares') }]}
      query={useQuery(fileShareQuery(scope, id))}
      driverKind="file shares"
      titleOf={(share) => share.name}
      statusOf={(share) => share.status}
      notice={(share) => <FailureReason id={share.id} status={share.status} />}
      actions={(share) => <Actions share={share} />}
      tabs={(share) => [
        { key: 'overview', title: 'Overview', render: () => <Overview share={share} /> },
        { key: 'access', title: 'Access rules', render: () => <AccessRules share={share} /> },
        ...resourceTabs({ tags: share.tags, table: 'file_shares', id: share.id }),
      ]}
    />
  );
}

function Actions({ share }: { share: FileShare }) {
  const scope = useScope();
  const reason = useLockReason(share, 'file share');
  const to = (action: string) => scope.path('file-shares', share.id, action);
  return <ActionLinks actions={{ edit: 'Edit', extend: 'Extend', delete: 'Delete' }} to={to} disabledReason={reason} />;
}

function Overview({ share }: { share: FileShare }) {
  const scope = useScope();
  const { data: usage } = useQuery(usageQuery(scope, share.id));
  return (
    <>
      <Card title="Properties">
        <Properties
          items={{
            Size: formatGib(share.size),
            Used: usage && <Usage share={share} usage={usage.get(share.id)} />,
            Type: share.type_name,
            Protocol: share.protocol,
            'Root of clients': share.share_settings.root_squash ? 'mapped to an unprivileged user' : 'keeps its rights',
            Network: <Link to={scope.path('networks', share.network_id)}>{share.network_name}</Link>,
            Created: <Ago at={share.created_at} />,
            ID: <CopyableText text={share.id} what="ID" />,
            'Connection point': share.connection_point && (
              <CopyableText text={share.connection_point} what="connection point" />
            ),
          }}
        />
      </Card>
      <Mount share={share} />
    </>
  );
}

/** A directory name from the name of the share; `share` where no character of it remains. */
function mountPoint(name: string): string {
  const directory = name.toLowerCase().replace(/[^a-z0-9._-]+/g, '-');
  return `/mnt/${directory.replace(/^[.-]+/, '') || 'share'}`;
}

const NFS_PORT = 2049;

/** The mount options of the region: with the port if it is not the standard one. */
function useMountOptions(): string {
  const { region } = useScope();
  const { data } = useQuery(driversQuery);
  const driver = data?.drivers.find((each) => each.kind === 'file shares' && each.region_ids.includes(region));
  const port = driver?.port ?? NFS_PORT;
  return port === NFS_PORT ? 'nfsvers=4.1' : `nfsvers=4.1,port=${port}`;
}

function Mount({ share }: { share: FileShare }) {
  const target = share.connection_point;
  const directory = mountPoint(share.name);
  const options = useMountOptions();
  return (
    <Card title="Mount">
      <div className="card-body stack">
        {target === null ? (
          <p className="muted">The share can be mounted once it is available.</p>
        ) : (
          <>
            <p className="muted">
              Run these commands on a machine that an access rule allows. Debian and Ubuntu need the package{' '}
              <code>nfs-common</code>.
            </p>
            <CodeBlock
              what="mount commands"
              text={`sudo mkdir -p ${directory}\nsudo mount -t nfs -o ${options} ${target} ${directory}`}
            />
            <p className="muted">To mount it at every start, add this line to /etc/fstab:</p>
            <CodeBlock what="fstab line" text={`${target} ${directory} nfs ${options},_netdev 0 0`} />
          </>
        )}
      </div>
    </Card>
  );
}
