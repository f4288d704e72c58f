/** Every kind of quota, regional and global, with what a unit of it counts. */
const regional = {
  baremetal_basic_count: 'basic bare metal servers',
  baremetal_gpu_a100_count: 'bare metal servers with A100 GPU',
  baremetal_gpu_h100_count: 'bare metal servers with H100 GPU',
  baremetal_gpu_h200_count: 'bare metal servers with H200 GPU',
  baremetal_gpu_l40s_count: 'bare metal servers with L40S GPU',
  baremetal_hf_count: 'high-frequency bare metal servers',
  baremetal_infrastructure_count: 'infrastructure bare metal servers',
  baremetal_network_count: 'bare metal networks',
  baremetal_storage_count: 'storage bare metal servers',
  caas_container_count: 'containers',
  caas_cpu_count: 'container mCPU',
  caas_gpu_count: 'container GPUs',
  caas_ram_size: 'container memory, MB',
  cluster_count: 'Kubernetes clusters',
  cpu_count: 'vCPUs',
  dbaas_postgres_cluster_count: 'managed database clusters',
  external_ip_count: 'external IPs',
  faas_cpu_count: 'function mCPU',
  faas_function_count: 'functions',
  faas_namespace_count: 'function namespaces',
  faas_ram_size: 'function memory, MB',
  firewall_count: 'firewalls',
  floating_count: 'floating IPs',
  gpu_count: 'GPUs',
  gpu_virtual_a100_count: 'virtual A100 GPU cards',
  gpu_virtual_h100_count: 'virtual H100 GPU cards',
  gpu_virtual_h200_count: 'virtual H200 GPU cards',
  gpu_virtual_l40s_count: 'virtual L40S GPU cards',
  image_count: 'images',
  image_size: 'images size, GiB',
  ipu_count: 'IPUs',
  laas_topic_count: 'log-service topics',
  loadbalancer_count: 'load balancers',
  network_count: 'networks',
  ram: 'RAM, GiB',
  registry_count: 'registries',
  registry_storage: 'registry storage, GiB',
  router_count: 'routers',
  secret_count: 'secrets',
  servergroup_count: 'placement groups',
  sfs_count: 'file shares',
  sfs_size: 'file shares size, GiB',
  shared_vm_count: 'basic VMs',
  slurm_cluster_count: 'Slurm clusters',
  snapshot_schedule_count: 'snapshot schedules',
  subnet_count: 'subnets',
  vm_count: 'dedicated instances',
  volume_count: 'volumes',
  volume_size: 'volumes size, GiB',
  volume_snapshots_count: 'snapshots',
  volume_snapshots_size: 'snapshots size, GiB',
} as const;

const global = {
  inference_cpu_millicore_count: 'inference mCPU',
  inference_gpu_a100_count: 'inference A100 GPUs',
  inference_gpu_h100_count: 'inference H100 GPUs',
  inference_gpu_l40s_count: 'inference L40S GPUs',
  inference_instance_count: 'inference instances',
  inference_public_model_api_key_count: 'API keys of public inference models',
  keypair_count: 'SSH key pairs',
  project_count: 'projects',
} as const;

type RegionalKind = keyof typeof regional;
type GlobalKind = keyof typeof global;
export type Kind = RegionalKind | GlobalKind;

export const regionalKinds = Object.keys(regional) as RegionalKind[];
export const globalKinds = Object.keys(global) as GlobalKind[];
/** What each kind counts, with its unit, for people. */
export const meaningOfKind: Record<Kind, string> = { ...regional, ...global };

/** The region id of the counters of global kinds; no region has it. */
export const globalRegion = 0;
