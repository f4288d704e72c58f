/** Operations that answer with the ids of tasks. A test compares them with openapi.json. */
const taskOperations = new Set(
  `
    addLbPoolMember attachVolume attachVolumeV1 createFileShare createL7Policy createL7Rule createLbPool
    createLbPoolHealthMonitor createLbPoolMember createListener createLoadBalancer createLoadBalancerMetadata
    createNetwork createSecret createSecretV1 createSnapshot createSubnet createVolume deleteFileShare deleteL7Policy
    deleteL7Rule deleteLbPool deleteLbPoolMember deleteListener deleteLoadBalancer deleteLoadBalancerMetadataItem
    deleteNetwork deleteProject deleteSecret deleteSnapshot deleteSubnet deleteVolume detachVolume detachVolumeV1
    extendFileShare extendVolume failoverLoadBalancer removeLbPoolMember replaceLbPoolMembers
    replaceLoadBalancerMetadata resizeLoadBalancer runLifecyclePolicy updateFileShare updateL7Policy updateL7Rule updateLbPool
    updateLbPoolHealthMonitor updateLbPoolMember updateLbPoolV1 updateListener updateLoadBalancer updateNetwork
  `.split(/\s+/),
);

export function answersWithTasks(operationId: string): boolean {
  return taskOperations.has(operationId);
}
