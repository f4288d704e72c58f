/** URL paths of an API server for the hosts of regions and their clients. */
export const registryPaths = {
  token: '/cloudyard/v1/registry_token',
  events: '/cloudyard/v1/registry_events',
};
