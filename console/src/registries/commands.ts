import type { Registry } from './data.ts';

/** The host that docker logs in to: the URL without the prefix of the registry. */
function hostOf(registry: Registry): string {
  return registry.url.split('/')[0]!;
}

export function loginCommand(registry: Registry, user: string): string {
  return `docker login -u ${user} ${hostOf(registry)}`;
}

export function pushCommands(registry: Registry): string {
  const image = `${registry.url}/my-image:1.0`;
  return `docker tag my-image:1.0 ${image}\ndocker push ${image}`;
}

export function pullCommand(registry: Registry, repository: string, tag: string): string {
  return `docker pull ${registry.url}/${repository}:${tag}`;
}
