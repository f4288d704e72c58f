import { useQuery } from '@tanstack/react-query';
import { Link, useParams } from '@tanstack/react-router';
import { useNotAdminReason, useSession } from '../api/session.ts';
import { CopyableText } from '../ui/copy.tsx';
import { Card, DetailPage, Properties } from '../ui/detail-page.tsx';
import { usePageActions } from '../ui/page-actions.ts';
import { ActionLink } from '../ui/page-head.tsx';
import { auditTab } from '../ui/resource-tabs.tsx';
import { projectsQuery, useScope } from '../ui/scope.tsx';
import { FullDate } from '../ui/time.tsx';
import { nameOf, type Token, tokenQuery } from './data.ts';

export function TokenDetail() {
  const { token: id } = useParams({ strict: false }) as { token: string };
  const scope = useScope();
  const query = useQuery(tokenQuery(id));
  const revoke = scope.path('tokens', id, 'revoke');
  usePageActions(query.data?.state === 'revoked' ? [] : [{ title: 'Revoke this token', to: revoke }]);
  return (
    <DetailPage
      crumbs={[{ title: 'Tokens', to: scope.path('tokens') }]}
      query={query}
      titleOf={nameOf}
      statusOf={(token) => token.state}
      actions={(token) => <Revoke token={token} to={revoke} />}
      tabs={(token) => [
        { key: 'overview', title: 'Overview', render: () => <Overview token={token} /> },
        auditTab({ table: 'tokens', id: token.id }),
      ]}
    />
  );
}

function Revoke({ token, to }: { token: Token; to: string }) {
  const reason = useNotAdminReason();
  const isRevoked = token.state === 'revoked' ? 'The token is revoked' : null;
  return (
    <ActionLink to={to} className="danger" disabledReason={reason ?? isRevoked}>
      Revoke
    </ActionLink>
  );
}

function Overview({ token }: { token: Token }) {
  const scope = useScope();
  const session = useSession();
  const projects = useQuery(projectsQuery).data?.results ?? [];
  const nameOfProject = (id: number) => projects.find((project) => project.id === id)?.name ?? String(id);
  const changes = (
    <Link to={scope.path('audit')} search={{ token_id: String(token.id) } as never}>
      Changes by this token
    </Link>
  );
  return (
    <Card title="Properties" actions={changes}>
      <Properties
        items={{
          'Key ID': <CopyableText text={token.key_id} what="key ID" />,
          Role: token.role,
          Projects: <bdi>{token.project_ids?.map(nameOfProject).join(', ') ?? 'all'}</bdi>,
          Client: token.client_id,
          Created: <FullDate at={token.created_at} />,
          'Last used': token.last_used_at === null ? 'never' : <FullDate at={token.last_used_at} />,
          Expires: token.expires_at === null ? 'never' : <FullDate at={token.expires_at} />,
          Session: token.id === session.token_id ? 'you are signed in with it' : null,
          ID: token.id,
        }}
      />
    </Card>
  );
}
