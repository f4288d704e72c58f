import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useReadOnlyReason } from '../api/session.ts';
import { CopyButton } from '../ui/copy.tsx';
import { Card } from '../ui/detail-page.tsx';
import { Rows } from '../ui/list-page.tsx';
import { useListState } from '../ui/list-state.ts';
import { formatBytes } from '../ui/numbers.ts';
import { ActionLink } from '../ui/page-head.tsx';
import { useScope } from '../ui/scope.tsx';
import { Ago } from '../ui/time.tsx';
import { pullCommand } from './commands.ts';
import { type Artifact, artifactsQuery, dateOrNever, type Registry, repositoriesQuery } from './data.ts';

/** The repositories, or the artifacts of the one that the URL names. */
export function Repositories({ registry }: { registry: Registry }) {
  const repository = useListState().get('repository');
  if (repository !== '') return <Artifacts registry={registry} repository={repository} />;
  return <RepositoryList registry={registry} />;
}

function RepositoryList({ registry }: { registry: Registry }) {
  const scope = useScope();
  return (
    <Card title="Repositories">
      <Rows
        title="Repositories"
        query={useQuery(repositoriesQuery(scope, registry.id))}
        rowKey={(repository) => repository.id}
        textOf={(repository) => repository.name}
        empty={{ title: 'No repositories', text: 'The first push of an image creates its repository.' }}
        columns={[
          {
            key: 'name',
            title: 'Name',
            kind: 'name',
            sortBy: ({ name }) => name,
            render: ({ name }) => (
              <Link to="." search={{ tab: 'repositories', repository: name } as never}>
                {name}
              </Link>
            ),
          },
          { key: 'artifacts', title: 'Artifacts', kind: 'number', render: (repository) => repository.artifact_count },
          { key: 'pulls', title: 'Pulls', kind: 'number', render: (repository) => repository.pull_count },
          { key: 'updated', title: 'Changed', render: (repository) => <Ago at={repository.updated_at} /> },
          {
            key: 'actions',
            title: 'Actions',
            kind: 'actions',
            render: ({ name }) => (
              <Deletion registry={registry} what="repository" search={{ repository: name }}>
                Delete<span className="visually-hidden"> {name}</span>
              </Deletion>
            ),
          },
        ]}
      />
    </Card>
  );
}

function Artifacts({ registry, repository }: { registry: Registry; repository: string }) {
  const scope = useScope();
  const back = (
    <Link className="button small" to="." search={{ tab: 'repositories' } as never}>
      All repositories
    </Link>
  );
  return (
    <Card title={repository} actions={back}>
      <Rows
        title={`Artifacts of ${repository}`}
        query={useQuery(artifactsQuery(scope, registry.id, repository))}
        rowKey={(artifact) => artifact.id}
        textOf={({ digest, tags }) => [digest, ...tags.map(({ name }) => name)].join(' ')}
        empty={{ title: 'No artifacts', text: 'The next push of an image adds one.' }}
        columns={[
          { key: 'digest', title: 'Digest', render: ({ digest }) => <Digest digest={digest} /> },
          {
            key: 'tags',
            title: 'Tags',
            kind: 'wrap',
            render: (artifact) => <Tags registry={registry} repository={repository} artifact={artifact} />,
          },
          { key: 'size', title: 'Size', kind: 'number', render: (artifact) => formatBytes(artifact.size) },
          { key: 'pushed', title: 'Pushed', render: (artifact) => <Ago at={artifact.pushed_at} /> },
          { key: 'pulled', title: 'Pulled', render: (artifact) => <Ago at={dateOrNever(artifact.pulled_at)} /> },
          {
            key: 'actions',
            title: 'Actions',
            kind: 'actions',
            render: ({ digest }) => (
              <Deletion registry={registry} what="artifact" search={{ repository, digest }}>
                Delete<span className="visually-hidden"> {digest}</span>
              </Deletion>
            ),
          },
        ]}
      />
    </Card>
  );
}

function Digest({ digest }: { digest: string }) {
  return (
    <span className="row">
      <code title={digest}>{digest.slice(0, 'sha256:'.length + 12)}</code>
      <CopyButton text={digest} what="digest" />
    </span>
  );
}

interface TagsProps {
  readonly registry: Registry;
  readonly repository: string;
  readonly artifact: Artifact;
}

function Tags({ registry, repository, artifact }: TagsProps) {
  if (artifact.tags.length === 0) return <span className="muted">none</span>;
  return (
    <ul>
      {artifact.tags.map(({ name }) => (
        <li key={name} className="row">
          <code>{name}</code>
          <CopyButton text={pullCommand(registry, repository, name)} what={`pull command of ${name}`} />
          <Deletion registry={registry} what="tag" search={{ repository, digest: artifact.digest, tag: name }}>
            Delete<span className="visually-hidden"> tag {name}</span>
          </Deletion>
        </li>
      ))}
    </ul>
  );
}

interface DeletionProps {
  readonly registry: Registry;
  readonly what: 'repository' | 'artifact' | 'tag';
  readonly search: Readonly<Record<string, string>>;
  readonly children: ReactNode;
}

/** Opens the dialog of a deletion, with its target as parameters of the URL. */
function Deletion({ registry, what, search, children }: DeletionProps) {
  return (
    <ActionLink
      to={useScope().path('registries', registry.id, `delete-${what}`)}
      search={{ tab: 'repositories', ...search }}
      className="quiet small danger"
      disabledReason={useReadOnlyReason()}
    >
      {children}
    </ActionLink>
  );
}
