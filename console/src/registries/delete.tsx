import { useSearch } from '@tanstack/react-router';
import { DeleteDialog } from '../ui/form/delete-dialog.tsx';
import { useScope } from '../ui/scope.tsx';
import { CurrentUser } from './current-user.tsx';
import { CurrentRegistry, KIND, REGISTRY, registryParams, USER } from './data.ts';

const REPOSITORY = `${REGISTRY}/repositories/{repository_name}`;
const ARTIFACT = `${REPOSITORY}/artifacts/{digest}`;

/** What a deletion inside a registry names in the URL: names contain slashes. */
interface Target {
  readonly repository?: string;
  readonly digest?: string;
  readonly tag?: string;
}

export function DeleteRegistry() {
  const scope = useScope();
  return (
    <CurrentRegistry>
      {(registry) => (
        <DeleteDialog
          kind="registry"
          name={registry.name}
          queryKind={KIND}
          listPath={scope.path('registries')}
          call={{ operationId: 'deleteRegistry', path: REGISTRY, params: registryParams(scope, registry.id) }}
        >
          All images and users of the registry are deleted. This cannot be undone.
        </DeleteDialog>
      )}
    </CurrentRegistry>
  );
}

export function DeleteRepository() {
  const scope = useScope();
  const { repository = '' } = useSearch({ strict: false }) as Target;
  return (
    <CurrentRegistry>
      {(registry) => (
        <DeleteDialog
          kind="repository"
          name={repository}
          queryKind={KIND}
          listPath={scope.path('registries', registry.id)}
          listSearch={{ tab: 'repositories' }}
          call={{
            operationId: 'deleteRegistryRepository',
            path: REPOSITORY,
            params: { ...registryParams(scope, registry.id), repository_name: repository },
          }}
        >
          All images of the repository are deleted. This cannot be undone.
        </DeleteDialog>
      )}
    </CurrentRegistry>
  );
}

export function DeleteArtifact() {
  const scope = useScope();
  const { repository = '', digest = '' } = useSearch({ strict: false }) as Target;
  return (
    <CurrentRegistry>
      {(registry) => (
        <DeleteDialog
          kind="artifact"
          name={digest.slice(0, 'sha256:'.length + 12)}
          queryKind={KIND}
          listPath={scope.path('registries', registry.id)}
          listSearch={{ tab: 'repositories', repository }}
          call={{
            operationId: 'deleteRegistryArtifact',
            path: ARTIFACT,
            params: { ...registryParams(scope, registry.id), repository_name: repository, digest },
          }}
        >
          The artifact is deleted from {repository} with its tags. This cannot be undone.
        </DeleteDialog>
      )}
    </CurrentRegistry>
  );
}

export function DeleteTag() {
  const scope = useScope();
  const { repository = '', digest = '', tag = '' } = useSearch({ strict: false }) as Target;
  return (
    <CurrentRegistry>
      {(registry) => (
        <DeleteDialog
          kind="tag"
          name={tag}
          queryKind={KIND}
          listPath={scope.path('registries', registry.id)}
          listSearch={{ tab: 'repositories', repository }}
          call={{
            operationId: 'deleteRegistryTag',
            path: `${ARTIFACT}/tags/{tag_name}`,
            params: { ...registryParams(scope, registry.id), repository_name: repository, digest, tag_name: tag },
          }}
        >
          The artifact and its other tags are kept.
        </DeleteDialog>
      )}
    </CurrentRegistry>
  );
}

export function DeleteUser() {
  const scope = useScope();
  return (
    <CurrentUser>
      {(registry, user) => (
        <DeleteDialog
          kind="user"
          name={user.name}
          queryKind={KIND}
          listPath={scope.path('registries', registry.id)}
          listSearch={{ tab: 'users' }}
          call={{
            operationId: 'deleteRegistryUser',
            path: USER,
            params: { ...registryParams(scope, registry.id), user_id: user.id },
          }}
        >
          The user cannot log in from now on. Clients that are logged in lose access within minutes.
        </DeleteDialog>
      )}
    </CurrentUser>
  );
}
