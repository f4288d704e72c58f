// Generated from openapi.json (npm run generate).
export interface paths {
    "/": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the name, the version and the links of the server */
        get: operations["getIndex"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Check liveness */
        get: operations["getHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Check readiness
         * @description The server is ready when its database responds within 3 seconds and can write, and its encryption keys are readable; otherwise the status is 503 with the reason.
         */
        get: operations["getReadiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz/drivers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List drivers and their status */
        get: operations["getDriverHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get metrics in the format of Prometheus */
        get: operations["getMetrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the OpenAPI document */
        get: operations["getOpenApi"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the session */
        get: operations["getSession"];
        put?: never;
        /**
         * Sign in
         * @description The response sets the cookie `cloudyard_session`, which scripts cannot read.
         */
        post: operations["createSession"];
        /** Sign out */
        delete: operations["deleteSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/sign_in": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the ways to sign in */
        get: operations["getSignInMethods"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/sign_in/oidc": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Send the browser to the OpenID Connect provider */
        get: operations["startSignIn"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/sign_in/oidc/callback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Finish the sign-in of a browser
         * @description The provider redirects the browser to this operation. The response sets the cookie of a session.
         */
        get: operations["finishSignIn"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/sign_in/device": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Start the sign-in of a program
         * @description The person confirms the code at the provider, in any browser.
         */
        post: operations["startDeviceSignIn"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/sign_in/device/token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Get the token of a confirmed sign-in */
        post: operations["finishDeviceSignIn"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List tokens
         * @description The newest token comes first.
         */
        get: operations["listTokens"];
        put?: never;
        /**
         * Create a token
         * @description Only this response contains the secret. The token has no more rights than that of the caller.
         */
        post: operations["createToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/tokens/{token_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a token */
        get: operations["getToken"];
        put?: never;
        post?: never;
        /**
         * Revoke a token
         * @description Every server refuses the token, and ends its sessions, within a second. Lists still show it.
         */
        delete: operations["revokeToken"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/tasks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List tasks
         * @description The newest task comes first by default.
         */
        get: operations["listTasks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/tasks/{project_id}/{region_id}/active": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the active tasks of a project
         * @description Lists tasks that have not ended. The newest comes first.
         */
        get: operations["listActiveTasks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/tasks/{task_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a task
         * @description With `wait` the response is sent as soon as the task ends.
         */
        get: operations["getTask"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/v1/tasks/{task_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a task
         * @description With `wait` the response is sent as soon as the task ends.
         */
        get: operations["getTaskShort"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/tasks/{task_id}/acknowledge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Acknowledge a task */
        post: operations["acknowledgeTask"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/tasks/acknowledge_all": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Acknowledge all tasks
         * @description The query limits it to the tasks of a project or region.
         */
        post: operations["acknowledgeAllTasks"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/tasks/acknowledge": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Acknowledge several tasks
         * @deprecated
         * @description Without IDs all tasks are acknowledged. Use `acknowledge_all`.
         */
        post: operations["acknowledgeTasks"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/projects": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List projects
         * @description Lists the projects that the token may see.
         */
        get: operations["listProjects"];
        put?: never;
        /** Create a project */
        post: operations["createProject"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/projects/{project_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a project */
        get: operations["getProject"];
        /**
         * Replace the name and description of a project
         * @deprecated
         * @description Use PATCH.
         */
        put: operations["replaceProject"];
        post?: never;
        /**
         * Delete a project
         * @description The project must not contain resources; the error names those that are left.
         */
        delete: operations["deleteProject"];
        options?: never;
        head?: never;
        /**
         * Update a project
         * @description Changes the name and description that the body contains.
         */
        patch: operations["updateProject"];
        trace?: never;
    };
    "/cloud/v1/regions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List regions */
        get: operations["listRegions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/regions/{region_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a region */
        get: operations["getRegion"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/hosts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List hosts
         * @description Ordered by region and name. Regions of one host have none.
         */
        get: operations["listHosts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/hosts/{region_id}/{host_name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a host */
        get: operations["getHost"];
        put?: never;
        post?: never;
        /**
         * Forget a host
         * @description Only when its lease has ended. An agent that starts again under this name joins as a new host.
         */
        delete: operations["forgetHost"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/hosts/{region_id}/{host_name}/drain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Drain a host
         * @description Its addresses and NFS groups move to other hosts, one group at a time. It stays drained until it is undrained.
         */
        post: operations["drainHost"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/hosts/{region_id}/{host_name}/undrain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Undrain a host
         * @description It takes addresses and NFS groups again.
         */
        post: operations["undrainHost"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/networks/{project_id}/{region_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List networks
         * @description The newest network comes first by default.
         */
        get: operations["listNetworks"];
        put?: never;
        /** Create a network */
        post: operations["createNetwork"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/networks/{project_id}/{region_id}/{network_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a network */
        get: operations["getNetwork"];
        put?: never;
        post?: never;
        /**
         * Delete a network
         * @description No resource may use the network; the error names those that do.
         */
        delete: operations["deleteNetwork"];
        options?: never;
        head?: never;
        /**
         * Update a network (v1)
         * @description Returns the network instead of a task.
         */
        patch: operations["updateNetworkV1"];
        trace?: never;
    };
    "/cloud/v2/networks/{project_id}/{region_id}/{network_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Update a network
         * @description Changes the name and tags that the body contains.
         */
        patch: operations["updateNetwork"];
        trace?: never;
    };
    "/cloud/v1/networks/{project_id}/{region_id}/{network_id}/metadata": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the tags of a network
         * @deprecated
         * @description Use the `tags` of the network instead.
         */
        get: operations["listNetworkMetadata"];
        /**
         * Replace the tags of a network
         * @deprecated
         * @description Use the `tags` of the network instead.
         */
        put: operations["replaceNetworkMetadata"];
        /**
         * Add or change tags of a network
         * @deprecated
         * @description Use the `tags` of the network instead.
         */
        post: operations["createNetworkMetadata"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/networks/{project_id}/{region_id}/{network_id}/metadata_item": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a tag of a network
         * @deprecated
         * @description Use the `tags` of the network instead.
         */
        get: operations["getNetworkMetadataItem"];
        put?: never;
        post?: never;
        /**
         * Delete a tag of a network
         * @deprecated
         * @description Use the `tags` of the network instead.
         */
        delete: operations["deleteNetworkMetadataItem"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/subnets/{project_id}/{region_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List subnets
         * @description Sorted by address range by default.
         */
        get: operations["listSubnets"];
        put?: never;
        /** Create a subnet */
        post: operations["createSubnet"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/subnets/{project_id}/{region_id}/{subnet_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a subnet */
        get: operations["getSubnet"];
        put?: never;
        post?: never;
        /**
         * Delete a subnet
         * @description No resource may use the subnet; the error names those that do.
         */
        delete: operations["deleteSubnet"];
        options?: never;
        head?: never;
        /**
         * Update a subnet
         * @description Changes the name, tags, gateway, DHCP, DNS servers and routes that the body contains.
         */
        patch: operations["updateSubnet"];
        trace?: never;
    };
    "/cloud/v1/subnets/{project_id}/{region_id}/{subnet_id}/metadata": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the tags of a subnet
         * @deprecated
         * @description Use the `tags` of the subnet instead.
         */
        get: operations["listSubnetMetadata"];
        /**
         * Replace the tags of a subnet
         * @deprecated
         * @description Use the `tags` of the subnet instead.
         */
        put: operations["replaceSubnetMetadata"];
        /**
         * Add or change tags of a subnet
         * @deprecated
         * @description Use the `tags` of the subnet instead.
         */
        post: operations["createSubnetMetadata"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/subnets/{project_id}/{region_id}/{subnet_id}/metadata_item": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a tag of a subnet
         * @deprecated
         * @description Use the `tags` of the subnet instead.
         */
        get: operations["getSubnetMetadataItem"];
        put?: never;
        post?: never;
        /**
         * Delete a tag of a subnet
         * @deprecated
         * @description Use the `tags` of the subnet instead.
         */
        delete: operations["deleteSubnetMetadataItem"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/availablenetworks/{project_id}/{region_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List networks with their subnets
         * @deprecated
         * @description The newest network comes first by default; subnets are sorted by address range.
         */
        get: operations["listAvailableNetworks"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v2/secrets/{project_id}/{region_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a certificate
         * @description Stores a certificate with its chain and its private key, all in PEM.
         */
        post: operations["createSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/secrets/{project_id}/{region_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List secrets
         * @description The oldest secret comes first. Payloads are omitted.
         */
        get: operations["listSecrets"];
        put?: never;
        /**
         * Create a secret of any type (v1)
         * @deprecated
         * @description For a certificate use v2.
         */
        post: operations["createSecretV1"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/secrets/{project_id}/{region_id}/{secret_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a secret
         * @description The payload is omitted.
         */
        get: operations["getSecret"];
        put?: never;
        post?: never;
        /**
         * Delete a secret
         * @description No resource may use the secret; the error names those that do.
         */
        delete: operations["deleteSecret"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/file_shares/{project_id}/{region_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List file shares
         * @description The oldest share comes first.
         */
        get: operations["listFileShares"];
        put?: never;
        /** Create a file share */
        post: operations["createFileShare"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/file_shares/{project_id}/{region_id}/{file_share_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a file share */
        get: operations["getFileShare"];
        put?: never;
        post?: never;
        /**
         * Delete a file share
         * @description Deletes the share with its data and access rules.
         */
        delete: operations["deleteFileShare"];
        options?: never;
        head?: never;
        /**
         * Update a file share (v1)
         * @deprecated
         * @description Returns the file share instead of a task. Use v3.
         */
        patch: operations["updateFileShareV1"];
        trace?: never;
    };
    "/cloudyard/v1/file_shares/{project_id}/{region_id}/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the used space of file shares
         * @description The worker measures shares every minute. Shares without a measurement are omitted: those of a simulated driver, of a host without size limits, and new ones.
         */
        get: operations["listFileShareUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v3/file_shares/{project_id}/{region_id}/{file_share_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Update a file share
         * @description Changes the name, tags and settings that the body contains. A larger `size` beside them is ignored: clients that send every changed field extend the share with their next request.
         */
        patch: operations["updateFileShare"];
        trace?: never;
    };
    "/cloud/v1/file_shares/{project_id}/{region_id}/{file_share_id}/extend": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Extend a file share
         * @description Clients see the new size without mounting again. A share cannot shrink.
         */
        post: operations["extendFileShare"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/file_shares/{project_id}/{region_id}/{file_share_id}/access_rule": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the access rules of a file share
         * @description The oldest rule comes first.
         */
        get: operations["listFileShareAccessRules"];
        put?: never;
        /**
         * Create an access rule of a file share
         * @description An access rule allows the hosts of a network to mount the share. Without access rules no host can mount it.
         */
        post: operations["createFileShareAccessRule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/file_shares/{project_id}/{region_id}/{file_share_id}/access_rule/{access_rule_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Delete an access rule of a file share */
        delete: operations["deleteFileShareAccessRule"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/file_shares/{project_id}/{region_id}/check_limits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Check the quota for a new file share
         * @description Lists the quotas that a new share of this size would exceed; the response is empty if there are none.
         */
        post: operations["checkFileShareLimits"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/file_shares/{project_id}/{region_id}/{file_share_id}/metadata": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the tags of a file share
         * @deprecated
         * @description Use the `tags` of the file share instead.
         */
        get: operations["listFileShareMetadata"];
        /**
         * Replace the tags of a file share
         * @deprecated
         * @description Use the `tags` of the file share instead.
         */
        put: operations["replaceFileShareMetadata"];
        /**
         * Add or change tags of a file share
         * @deprecated
         * @description Use the `tags` of the file share instead.
         */
        post: operations["createFileShareMetadata"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/file_shares/{project_id}/{region_id}/{file_share_id}/metadata_item": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a tag of a file share
         * @deprecated
         * @description Use the `tags` of the file share instead.
         */
        get: operations["getFileShareMetadataItem"];
        put?: never;
        post?: never;
        /**
         * Delete a tag of a file share
         * @deprecated
         * @description Use the `tags` of the file share instead.
         */
        delete: operations["deleteFileShareMetadataItem"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/loadbalancers/{project_id}/{region_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List load balancers */
        get: operations["listLoadBalancers"];
        put?: never;
        /**
         * Create a load balancer
         * @description Listeners and their pools can be created with it: one task creates everything or nothing.
         */
        post: operations["createLoadBalancer"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/loadbalancers/{project_id}/{region_id}/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the statuses of load balancers and their parts
         * @description The oldest load balancer comes first. The list is not paged.
         */
        get: operations["listLoadBalancerStatuses"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/loadbalancers/{project_id}/{region_id}/check_limits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Check the quota for a new load balancer
         * @description Lists the quotas that a new load balancer would exceed; the response is empty if there are none.
         */
        post: operations["checkLoadBalancerLimits"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/loadbalancers/{project_id}/{region_id}/{load_balancer_id}/check_limits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Check the quota for another load balancer
         * @description The response is that of `checkLoadBalancerLimits`; 404 when the load balancer does not exist.
         */
        post: operations["checkLoadBalancerLimitsBesides"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/loadbalancers/{project_id}/{region_id}/{load_balancer_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a load balancer */
        get: operations["getLoadBalancer"];
        put?: never;
        post?: never;
        /**
         * Delete a load balancer
         * @description Deletes the load balancer with its listeners and pools. A failed deletion can be repeated.
         */
        delete: operations["deleteLoadBalancer"];
        options?: never;
        head?: never;
        /**
         * Update a load balancer (v1)
         * @deprecated
         * @description Returns the load balancer instead of a task. Use v2.
         */
        patch: operations["updateLoadBalancerV1"];
        trace?: never;
    };
    "/cloud/v2/loadbalancers/{project_id}/{region_id}/{load_balancer_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Update a load balancer
         * @description Changes the name, tags and settings that the body contains. Without a change no task starts.
         */
        patch: operations["updateLoadBalancer"];
        trace?: never;
    };
    "/cloud/v1/loadbalancers/{project_id}/{region_id}/{load_balancer_id}/resize": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Change the flavor of a load balancer */
        post: operations["resizeLoadBalancer"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/loadbalancers/{project_id}/{region_id}/{load_balancer_id}/failover": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Fail over a load balancer
         * @description Compares the hosts with the requested configuration and repairs them. No instance changes. Use it to retry a failed task.
         */
        post: operations["failoverLoadBalancer"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/loadbalancers/{project_id}/{region_id}/{load_balancer_id}/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Get the traffic of a load balancer over time
         * @description The oldest point comes first. A point is a minute for periods of up to 5 hours, ten minutes for up to 48 hours, and otherwise an hour.
         */
        post: operations["getLoadBalancerMetrics"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/loadbalancers/{project_id}/{region_id}/{load_balancer_id}/traffic": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get requests, connections, bytes and errors of a load balancer over time
         * @description The proxy is read every 10 seconds, and the history is retained for a week. A simulated driver has no traffic: all values are 0.
         */
        get: operations["getLoadBalancerTraffic"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/loadbalancers/{project_id}/{region_id}/{load_balancer_id}/status": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the statuses of a load balancer and its parts */
        get: operations["getLoadBalancerStatus"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v2/loadbalancers/{project_id}/{region_id}/{load_balancer_id}/metadata": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Replace the tags of a load balancer
         * @deprecated
         * @description Use the `tags` of the load balancer instead.
         */
        put: operations["replaceLoadBalancerMetadata"];
        /**
         * Add or change tags of a load balancer
         * @deprecated
         * @description Use the `tags` of the load balancer instead.
         */
        post: operations["createLoadBalancerMetadata"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v2/loadbalancers/{project_id}/{region_id}/{load_balancer_id}/metadata_item": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete a tag of a load balancer
         * @deprecated
         * @description Use the `tags` of the load balancer instead.
         */
        delete: operations["deleteLoadBalancerMetadataItem"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/loadbalancers/{project_id}/{region_id}/{load_balancer_id}/metadata": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the tags of a load balancer
         * @deprecated
         * @description Use the `tags` of the load balancer instead.
         */
        get: operations["listLoadBalancerMetadata"];
        /**
         * Replace the tags of a load balancer (v1)
         * @deprecated
         * @description Use the `tags` of the load balancer instead.
         */
        put: operations["replaceLoadBalancerMetadataV1"];
        /**
         * Add or change tags of a load balancer (v1)
         * @deprecated
         * @description Use the `tags` of the load balancer instead.
         */
        post: operations["createLoadBalancerMetadataV1"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/loadbalancers/{project_id}/{region_id}/{load_balancer_id}/metadata_item": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a tag of a load balancer
         * @deprecated
         * @description Use the `tags` of the load balancer instead.
         */
        get: operations["getLoadBalancerMetadataItem"];
        put?: never;
        post?: never;
        /**
         * Delete a tag of a load balancer (v1)
         * @deprecated
         * @description Use the `tags` of the load balancer instead.
         */
        delete: operations["deleteLoadBalancerMetadataItemV1"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/lblisteners/{project_id}/{region_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List listeners
         * @description The oldest listener comes first.
         */
        get: operations["listListeners"];
        put?: never;
        /** Create a listener */
        post: operations["createListener"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/lblisteners/{project_id}/{region_id}/{listener_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a listener */
        get: operations["getListener"];
        put?: never;
        post?: never;
        /**
         * Delete a listener
         * @description The default pool remains unless `delete_default_pool` is true.
         */
        delete: operations["deleteListener"];
        options?: never;
        head?: never;
        /**
         * Rename a listener (v1)
         * @deprecated
         * @description Returns the listener instead of a task. Use v2.
         */
        patch: operations["updateListenerV1"];
        trace?: never;
    };
    "/cloud/v2/lblisteners/{project_id}/{region_id}/{listener_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Update a listener
         * @description Omitted fields are unchanged and lists are replaced. The protocol and port cannot change.
         */
        patch: operations["updateListener"];
        trace?: never;
    };
    "/cloud/v1/lbpools/{project_id}/{region_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List pools
         * @description The oldest pool comes first. Members are listed by ID unless `details` is true.
         */
        get: operations["listLbPools"];
        put?: never;
        /**
         * Create a pool
         * @description Send `listener_id`, `load_balancer_id` or both.
         */
        post: operations["createLbPool"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/lbpools/{project_id}/{region_id}/{pool_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a pool */
        get: operations["getLbPool"];
        put?: never;
        post?: never;
        /**
         * Delete a pool
         * @description Deletes the pool with its members and health monitor. The listener remains.
         */
        delete: operations["deleteLbPool"];
        options?: never;
        head?: never;
        /**
         * Update a pool (v1)
         * @deprecated
         * @description Equal to v2. Use v2.
         */
        patch: operations["updateLbPoolV1"];
        trace?: never;
    };
    "/cloud/v2/lbpools/{project_id}/{region_id}/{pool_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Update a pool
         * @description Omitted fields are unchanged, objects and lists are replaced, and null removes. Without a change no task starts.
         */
        patch: operations["updateLbPool"];
        trace?: never;
    };
    "/cloud/v1/lbpools/{project_id}/{region_id}/{pool_id}/healthmonitor": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the health monitor of a pool */
        get: operations["getLbPoolHealthMonitor"];
        put?: never;
        /**
         * Create the health monitor of a pool
         * @description Replaces an existing health monitor, which keeps its ID.
         */
        post: operations["createLbPoolHealthMonitor"];
        /**
         * Delete the health monitor of a pool
         * @description Answers when the host has applied the change, or after 5 seconds.
         */
        delete: operations["deleteLbPoolHealthMonitor"];
        options?: never;
        head?: never;
        /**
         * Update the health monitor of a pool
         * @description Omitted fields are unchanged.
         */
        patch: operations["updateLbPoolHealthMonitor"];
        trace?: never;
    };
    "/cloud/v1/lbpools/{project_id}/{region_id}/{pool_id}/member": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a member of a pool
         * @description Fails with 409 when the pool has a member with this address and port.
         */
        post: operations["createLbPoolMember"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/lbpools/{project_id}/{region_id}/{pool_id}/member/{member_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Delete a member of a pool */
        delete: operations["deleteLbPoolMember"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/loadbalancers/{project_id}/{region_id}/pools/{pool_id}/members": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the members of a pool */
        get: operations["listLbPoolMembers"];
        /**
         * Replace the members of a pool
         * @description A member whose address and port are in the new list keeps its ID and its connections.
         */
        put: operations["replaceLbPoolMembers"];
        /**
         * Add a member to a pool
         * @description Fails with 409 when the pool has a member with this address and port.
         */
        post: operations["addLbPoolMember"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/loadbalancers/{project_id}/{region_id}/pools/{pool_id}/members/{member_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a member of a pool */
        get: operations["getLbPoolMember"];
        put?: never;
        post?: never;
        /** Remove a member from a pool */
        delete: operations["removeLbPoolMember"];
        options?: never;
        head?: never;
        /**
         * Update a member of a pool
         * @description Omitted fields are unchanged. The address and port cannot change.
         */
        patch: operations["updateLbPoolMember"];
        trace?: never;
    };
    "/cloud/v1/l7policies/{project_id}/{region_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List L7 policies
         * @description The oldest policy comes first.
         */
        get: operations["listL7Policies"];
        put?: never;
        /** Create an L7 policy */
        post: operations["createL7Policy"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/l7policies/{project_id}/{region_id}/{l7policy_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get an L7 policy */
        get: operations["getL7Policy"];
        /**
         * Update an L7 policy with PUT
         * @deprecated
         * @description The same as PATCH, for older official clients.
         */
        put: operations["replaceL7Policy"];
        post?: never;
        /**
         * Delete an L7 policy
         * @description Deletes the policy with its rules. Later policies move up.
         */
        delete: operations["deleteL7Policy"];
        options?: never;
        head?: never;
        /**
         * Update an L7 policy
         * @description A new position moves the policies in between. Without a change no task starts.
         */
        patch: operations["updateL7Policy"];
        trace?: never;
    };
    "/cloud/v1/l7policies/{project_id}/{region_id}/{l7policy_id}/rules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the rules of an L7 policy
         * @description The oldest rule comes first.
         */
        get: operations["listL7Rules"];
        put?: never;
        /** Create a rule of an L7 policy */
        post: operations["createL7Rule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/l7policies/{project_id}/{region_id}/{l7policy_id}/rules/{l7rule_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a rule of an L7 policy */
        get: operations["getL7Rule"];
        /**
         * Update a rule of an L7 policy
         * @description Omitted fields are unchanged. Without a change no task starts.
         */
        put: operations["updateL7Rule"];
        post?: never;
        /** Delete a rule of an L7 policy */
        delete: operations["deleteL7Rule"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/volumes/{project_id}/{region_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List volumes
         * @description The oldest volume comes first.
         */
        get: operations["listVolumes"];
        put?: never;
        /**
         * Create a volume
         * @description The volume is empty, or has the data and the size of a snapshot.
         */
        post: operations["createVolume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/volumes/{project_id}/{region_id}/{volume_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a volume */
        get: operations["getVolume"];
        put?: never;
        post?: never;
        /**
         * Delete a volume
         * @description Deletes the volume with its data and its snapshots. Fails with 409 while a snapshot is being copied to a new volume.
         */
        delete: operations["deleteVolume"];
        options?: never;
        head?: never;
        /**
         * Update a volume
         * @description Changes the name and the tags that the body contains. `size` can only be repeated.
         */
        patch: operations["updateVolume"];
        trace?: never;
    };
    "/cloud/v1/volumes/{project_id}/{region_id}/{volume_id}/extend": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Extend a volume
         * @description A volume cannot shrink.
         */
        post: operations["extendVolume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/volumes/{project_id}/{region_id}/{volume_id}/retype": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Change the type of a volume
         * @description Types differ in their price only, so the change is done with the response.
         */
        post: operations["retypeVolume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/volumes/{project_id}/{region_id}/{volume_id}/attach": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Attach a volume to an instance
         * @deprecated
         * @description Always fails with 400: instances are not supported.
         */
        post: operations["attachVolumeV1"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/volumes/{project_id}/{region_id}/{volume_id}/detach": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Detach a volume from an instance
         * @deprecated
         * @description Always fails with 400: instances are not supported.
         */
        post: operations["detachVolumeV1"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v2/volumes/{project_id}/{region_id}/{volume_id}/attach": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Attach a volume to an instance
         * @description Always fails with 400: instances are not supported.
         */
        post: operations["attachVolume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v2/volumes/{project_id}/{region_id}/{volume_id}/detach": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Detach a volume from an instance
         * @description Always fails with 400: instances are not supported.
         */
        post: operations["detachVolume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/volumes/{project_id}/{region_id}/{volume_id}/revert": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Revert a volume to its newest snapshot
         * @description The response has no body and is sent before the data is restored. Poll the volume: `task_id` names the task until the revert ends. Data written after the snapshot is lost.
         */
        post: operations["revertVolume"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/volumes/{project_id}/{region_id}/{volume_id}/metadata": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the tags of a volume
         * @deprecated
         * @description Use the `tags` of the volume instead.
         */
        get: operations["listVolumeMetadata"];
        /**
         * Replace the tags of a volume
         * @deprecated
         * @description Use the `tags` of the volume instead.
         */
        put: operations["replaceVolumeMetadata"];
        /**
         * Add or change tags of a volume
         * @deprecated
         * @description Use the `tags` of the volume instead.
         */
        post: operations["createVolumeMetadata"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/volumes/{project_id}/{region_id}/{volume_id}/metadata_item": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a tag of a volume
         * @deprecated
         * @description Use the `tags` of the volume instead.
         */
        get: operations["getVolumeMetadataItem"];
        put?: never;
        post?: never;
        /**
         * Delete a tag of a volume
         * @deprecated
         * @description Use the `tags` of the volume instead.
         */
        delete: operations["deleteVolumeMetadataItem"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/snapshots/{project_id}/{region_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List snapshots
         * @description The oldest snapshot comes first.
         */
        get: operations["listSnapshots"];
        put?: never;
        /** Create a snapshot of a volume */
        post: operations["createSnapshot"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/snapshots/{project_id}/{region_id}/{snapshot_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a snapshot */
        get: operations["getSnapshot"];
        put?: never;
        post?: never;
        /** Delete a snapshot */
        delete: operations["deleteSnapshot"];
        options?: never;
        head?: never;
        /**
         * Update a snapshot
         * @description Changes the name and the tags that the body contains.
         */
        patch: operations["updateSnapshot"];
        trace?: never;
    };
    "/cloud/v1/snapshots/{project_id}/{region_id}/{snapshot_id}/metadata": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the tags of a snapshot
         * @deprecated
         * @description Use the `tags` of the snapshot instead.
         */
        get: operations["listSnapshotMetadata"];
        /**
         * Replace the tags of a snapshot
         * @deprecated
         * @description Use the `tags` of the resource instead.
         */
        put: operations["replaceSnapshotMetadata"];
        /**
         * Add or change tags of a snapshot
         * @deprecated
         * @description Use the `tags` of the snapshot instead.
         */
        post: operations["createSnapshotMetadata"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/snapshots/{project_id}/{region_id}/{snapshot_id}/metadata_item": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a tag of a snapshot
         * @deprecated
         * @description Use the `tags` of the snapshot instead.
         */
        get: operations["getSnapshotMetadataItem"];
        put?: never;
        post?: never;
        /**
         * Delete a tag of a snapshot
         * @deprecated
         * @description Use the `tags` of the snapshot instead.
         */
        delete: operations["deleteSnapshotMetadataItem"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/lifecycle_policy/{project_id}/{region_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List lifecycle policies
         * @description The oldest policy comes first.
         */
        get: operations["listLifecyclePolicies"];
        put?: never;
        /** Create a lifecycle policy */
        post: operations["createLifecyclePolicy"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/lifecycle_policy/{project_id}/{region_id}/{policy_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a lifecycle policy */
        get: operations["getLifecyclePolicy"];
        put?: never;
        post?: never;
        /**
         * Delete a lifecycle policy
         * @description The snapshots of the policy are kept, and no longer expire.
         */
        delete: operations["deleteLifecyclePolicy"];
        options?: never;
        head?: never;
        /**
         * Update a lifecycle policy
         * @description Renames, pauses or resumes the policy.
         */
        patch: operations["updateLifecyclePolicy"];
        trace?: never;
    };
    "/cloud/v1/lifecycle_policy/{project_id}/{region_id}/{policy_id}/add_schedules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Add schedules to a lifecycle policy
         * @description A schedule that equals an existing one is not added again.
         */
        post: operations["addLifecyclePolicySchedules"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/lifecycle_policy/{project_id}/{region_id}/{policy_id}/remove_schedules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Remove schedules from a lifecycle policy
         * @description The snapshots of the schedules are kept, and no longer expire. Unknown IDs are ignored.
         */
        post: operations["removeLifecyclePolicySchedules"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/lifecycle_policy/{project_id}/{region_id}/{policy_id}/run": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Run a lifecycle policy now
         * @description Each schedule runs at once, with its retention and names, besides its next run. Returns a task for each; a task ends when the snapshots are done, in ERROR if one failed. A paused policy is 409.
         */
        post: operations["runLifecyclePolicy"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/lifecycle_policy/{project_id}/{region_id}/{policy_id}/missed_runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the missed runs of a lifecycle policy
         * @description Runs that started late or not at all, and those that they replaced. The newest comes first.
         */
        get: operations["listLifecyclePolicyMissedRuns"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/lifecycle_policy/{project_id}/{region_id}/{policy_id}/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the runs of a lifecycle policy
         * @description The newest run comes first.
         */
        get: operations["listLifecyclePolicyRuns"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/schedule/{project_id}/{region_id}/{schedule_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a schedule of a lifecycle policy */
        get: operations["getLifecyclePolicySchedule"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Update a schedule of a lifecycle policy
         * @description No run starts because of a change: the next one is the first instant of the new schedule after it.
         */
        patch: operations["updateLifecyclePolicySchedule"];
        trace?: never;
    };
    "/cloud/v1/lifecycle_policy/{project_id}/{region_id}/{policy_id}/add_volumes_to_policy": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Add volumes to a lifecycle policy */
        put: operations["addLifecyclePolicyVolumes"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/lifecycle_policy/{project_id}/{region_id}/{policy_id}/remove_volumes_from_policy": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Remove volumes from a lifecycle policy
         * @description The snapshots of the volumes are kept, and no longer expire. Unknown IDs are ignored.
         */
        put: operations["removeLifecyclePolicyVolumes"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/lifecycle_policy/{project_id}/{region_id}/{policy_id}/forecast": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Forecast the runs of a lifecycle policy
         * @description Lists the next runs, and the existing snapshots that expire until the last of them.
         */
        get: operations["forecastLifecyclePolicy"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/lifecycle_policy/{project_id}/{region_id}/preview_schedule": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Preview the run times of a schedule
         * @description An interval starts at `from`.
         */
        post: operations["previewLifecyclePolicySchedule"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/lifecycle_policy/{project_id}/{region_id}/estimate_max_policy_usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Estimate the maximum usage of a lifecycle policy
         * @description Returns the largest number, size and price of the snapshots that the policy would keep at a time.
         */
        post: operations["estimateLifecyclePolicyUsage"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v2/pricing/{project_id}/{region_id}/lifecycle_policy": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Preview the maximum price of a lifecycle policy
         * @description Lists the price of each volume.
         */
        post: operations["previewLifecyclePolicyPrice"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/pricing/{project_id}/{region_id}/lifecycle_policy": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Preview the maximum price of a lifecycle policy (v1)
         * @deprecated
         * @description Returns one price for all volumes. Use v2.
         */
        post: operations["previewLifecyclePolicyPriceV1"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/registries/{project_id}/{region_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List registries
         * @description The oldest registry comes first.
         */
        get: operations["listRegistries"];
        put?: never;
        /** Create a registry */
        post: operations["createRegistry"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/registries/{project_id}/{region_id}/{registry_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a registry */
        get: operations["getRegistry"];
        put?: never;
        post?: never;
        /**
         * Delete a registry
         * @description Deletes the registry with its users and images. The response is sent when the images are deleted.
         */
        delete: operations["deleteRegistry"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/registries/{project_id}/{region_id}/{registry_id}/resize": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Change the storage limit of a registry
         * @description A limit below `storage_used` deletes nothing; it only rejects pushes.
         */
        patch: operations["resizeRegistry"];
        trace?: never;
    };
    "/cloud/v1/registries/{project_id}/{region_id}/check_limits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Check the quota for a new registry
         * @description Lists the quotas that a new registry with this limit would exceed; the response is empty if there are none.
         */
        post: operations["checkRegistryLimits"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/registries/{project_id}/{region_id}/{registry_id}/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the users of a registry
         * @description The oldest user comes first.
         */
        get: operations["listRegistryUsers"];
        put?: never;
        /**
         * Create a user of a registry
         * @description The response contains the secret, which no other response repeats.
         */
        post: operations["createRegistryUser"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/registries/{project_id}/{region_id}/{registry_id}/users/batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create several users of a registry
         * @description Creates all users or none. The response contains the secrets, which no other response repeats.
         */
        post: operations["createRegistryUsers"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/registries/{project_id}/{region_id}/{registry_id}/users/{user_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete a user of a registry
         * @description The user cannot log in from now on. Clients that are logged in lose access within minutes.
         */
        delete: operations["deleteRegistryUser"];
        options?: never;
        head?: never;
        /**
         * Update a user of a registry
         * @description Changes when the user expires, and whether it may push.
         */
        patch: operations["updateRegistryUser"];
        trace?: never;
    };
    "/cloud/v1/registries/{project_id}/{region_id}/{registry_id}/users/{user_id}/refresh_secret": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replace the secret of a user of a registry
         * @description The response contains the new secret, which no other response repeats. The old one is refused.
         */
        post: operations["refreshRegistryUserSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/registries/{project_id}/{region_id}/{registry_id}/repositories": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the repositories of a registry
         * @description Sorted by name.
         */
        get: operations["listRegistryRepositories"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/registries/{project_id}/{region_id}/{registry_id}/repositories/{repository_name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete a repository of a registry
         * @description Deletes the repository with its artifacts.
         */
        delete: operations["deleteRegistryRepository"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/registries/{project_id}/{region_id}/{registry_id}/repositories/{repository_name}/artifacts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the artifacts of a repository
         * @description The newest artifact comes first.
         */
        get: operations["listRegistryArtifacts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/registries/{project_id}/{region_id}/{registry_id}/repositories/{repository_name}/artifacts/{digest}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete an artifact of a repository
         * @description Deletes the artifact with its tags.
         */
        delete: operations["deleteRegistryArtifact"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/registries/{project_id}/{region_id}/{registry_id}/repositories/{repository_name}/artifacts/{digest}/tags/{tag_name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Delete a tag of an artifact
         * @description The artifact and its other tags are kept.
         */
        delete: operations["deleteRegistryTag"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/pricing/{project_id}/{region_id}/file_shares": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Preview the price of a file share */
        post: operations["previewFileSharePrice"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/pricing/{project_id}/{region_id}/volumes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Preview the price of a volume */
        post: operations["previewVolumePrice"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/pricing/{project_id}/{region_id}/snapshots": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Preview the price of a snapshot
         * @description The snapshot has the current size of the volume.
         */
        post: operations["previewSnapshotPrice"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v2/pricing/{project_id}/{region_id}/loadbalancers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Preview the price of a load balancer
         * @description Lists the price of each part.
         */
        post: operations["previewLoadBalancerPrice"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/pricing/{project_id}/{region_id}/loadbalancers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Preview the price of a load balancer (v1)
         * @deprecated
         * @description Returns one price for all parts. Use v2.
         */
        post: operations["previewLoadBalancerPriceV1"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/lbflavors/{project_id}/{region_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the flavors of load balancers
         * @description The smallest flavor comes first. A flavor changes the price of a load balancer only.
         */
        get: operations["listLoadBalancerFlavors"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/quota_audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Compare quota usage with the resources
         * @description Lists the usages that differ; `cloudyard quota audit --repair` corrects them.
         */
        get: operations["auditQuotas"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v2/client_quotas": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the quotas of the client
         * @description The client is that of the request's token.
         */
        get: operations["listClientQuotas"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v2/global_quotas/{client_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the global quotas of a client */
        get: operations["getGlobalQuotas"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v2/regional_quotas/{client_id}/{region_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the quotas of a client in a region */
        get: operations["getRegionalQuotas"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/clients/{client_id}/quotas": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Set the limits of a client
         * @description Null resets a limit to the default. Regional kinds need `region_id`, global kinds must not have it.
         */
        patch: operations["updateClientQuotas"];
        trace?: never;
    };
    "/cloud/v2/limits_request": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List quota requests
         * @description The newest request comes first. Admins of the operator see the requests of all clients.
         */
        get: operations["listQuotaRequests"];
        put?: never;
        /**
         * Create a quota request
         * @description A limit is at least 1 and at least the current usage. Limits in a region need its `region_id`.
         */
        post: operations["createQuotaRequest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v2/limits_request/{request_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a quota request */
        get: operations["getQuotaRequest"];
        put?: never;
        post?: never;
        /**
         * Delete a quota request
         * @description Withdraws a request that is in progress. A decided request cannot be deleted.
         */
        delete: operations["deleteQuotaRequest"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/limits_requests/{request_id}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Approve a quota request
         * @description Sets the requested limits and notifies the client.
         */
        post: operations["approveQuotaRequest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/limits_requests/{request_id}/decline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Decline a quota request
         * @description The limits do not change. The client is notified with the reason.
         */
        post: operations["declineQuotaRequest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/caas/keys/{project_id}/{region_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List API keys
         * @description Sorted by name.
         */
        get: operations["listApiKeys"];
        put?: never;
        /**
         * Create an API key
         * @description The response contains the secret, which no other response repeats.
         */
        post: operations["createApiKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/caas/keys/{project_id}/{region_id}/{key_name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get an API key */
        get: operations["getApiKey"];
        put?: never;
        post?: never;
        /**
         * Delete an API key
         * @description Servers reject the key from now on.
         */
        delete: operations["deleteApiKey"];
        options?: never;
        head?: never;
        /**
         * Update an API key
         * @description Changes the containers, the description and the expiry, or disables and enables the key.
         */
        patch: operations["updateApiKey"];
        trace?: never;
    };
    "/cloud/v1/caas/secrets/{project_id}/{region_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List pull secrets
         * @description Sorted by name, without passwords.
         */
        get: operations["listPullSecrets"];
        put?: never;
        /**
         * Create a pull secret
         * @description The login is not verified.
         */
        post: operations["createPullSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/caas/secrets/{project_id}/{region_id}/{secret_name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a pull secret
         * @description The response does not contain the password.
         */
        get: operations["getPullSecret"];
        put?: never;
        post?: never;
        /** Delete a pull secret */
        delete: operations["deletePullSecret"];
        options?: never;
        head?: never;
        /** Update a pull secret */
        patch: operations["updatePullSecret"];
        trace?: never;
    };
    "/cloudyard/v1/caas/secrets/{project_id}/{region_id}/{secret_name}/verify": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Verify a pull secret
         * @description Logs in to the registry and returns the result. An audit entry records the use of the password.
         */
        post: operations["verifyPullSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/caas/secrets/{project_id}/{region_id}/{secret_name}/dockerconfigjson": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the Docker configuration of a pull secret
         * @description The file `config.json` of Docker, which skopeo, Podman and Kubernetes also read. It contains the password. An audit entry records the request.
         */
        get: operations["getPullSecretDockerConfigJson"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v2/client_quotas/{client_id}/notification_threshold": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the notification threshold of a client
         * @description The response contains the last notification.
         */
        get: operations["getNotificationThreshold"];
        /** Set the notification threshold of a client */
        put: operations["setNotificationThreshold"];
        post?: never;
        /**
         * Reset the notification threshold of a client
         * @description The default applies again.
         */
        delete: operations["deleteNotificationThreshold"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/clients": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List clients
         * @description The oldest client comes first.
         */
        get: operations["listClients"];
        put?: never;
        /**
         * Create a client
         * @description With a default project, and a network in each region. Create a token for it with `createToken`.
         */
        post: operations["createClient"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/clients/{client_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a client */
        get: operations["getClient"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Update a client
         * @description Sets the name, and the e-mail addresses that receive the notifications of the client.
         */
        patch: operations["updateClient"];
        trace?: never;
    };
    "/cloudyard/v1/clients/{client_id}/notifications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the notifications of a client
         * @description The newest comes first by default, each with the state of its deliveries.
         */
        get: operations["listNotifications"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/clients/{client_id}/notifications/{notification_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a notification */
        get: operations["getNotification"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/clients/{client_id}/notifications/{notification_id}/deliveries/{delivery_id}/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Repeat a delivery
         * @description Sends the notification again to one receiver, under the same ID.
         */
        post: operations["replayDelivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/clients/{client_id}/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the webhooks of a client */
        get: operations["listWebhooks"];
        put?: never;
        /**
         * Create a webhook
         * @description Only this response contains the secret.
         */
        post: operations["createWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/clients/{client_id}/webhooks/{webhook_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get a webhook */
        get: operations["getWebhook"];
        put?: never;
        post?: never;
        /** Delete a webhook */
        delete: operations["deleteWebhook"];
        options?: never;
        head?: never;
        /**
         * Update a webhook
         * @description Changes the URL or the secret. Pending and repeated deliveries use the new values.
         */
        patch: operations["updateWebhook"];
        trace?: never;
    };
    "/cloudyard/v1/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the entries of the audit log
         * @description The newest entry comes first. As `csv` or `jsonl` (`format`, or `Accept: text/csv` or `application/x-ndjson`), the response is a stream of all entries that match. It is cut off when the token is revoked or expires.
         */
        get: operations["listAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Stream changes of resources
         * @description A stream of server-sent events. Each names a resource that was created, updated or deleted, by a request or by a worker; read it to see its state. A client that reconnects with `Last-Event-ID` gets the events since. `event: reset` means that events were missed: read everything again. `event: heartbeat` comes every 15 s. The stream ends when the token is revoked or expires.
         */
        get: operations["streamEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/user_actions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List user actions
         * @description The newest action comes first by default. Admins of the operator see the actions of all clients.
         */
        get: operations["listUserActions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/user_actions/subscribe": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Subscribe to user actions
         * @description A client has one subscription. It has the actions from now on.
         */
        post: operations["subscribeToUserActions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/user_actions/unsubscribe": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Unsubscribe from user actions
         * @description Deletes the subscription of the client. Actions that were not delivered yet are not sent.
         */
        post: operations["unsubscribeFromUserActions"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloud/v1/user_actions/subscriptions_list": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the subscriptions of the client */
        get: operations["listUserActionSubscriptions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/user_actions/{user_action_id}/delivery": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the delivery of a user action
         * @description The delivery to the subscription of the client; 404 for actions from before it.
         */
        get: operations["getUserActionDelivery"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/user_actions/{user_action_id}/delivery/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Repeat the delivery of a user action
         * @description Sends the action again under the same ID. More than 24 hours after the action it is attempted once.
         */
        post: operations["replayUserActionDelivery"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/dev/clock": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Get the clock */
        get: operations["getClock"];
        put?: never;
        /**
         * Move the clock
         * @description Advances the clock, sets it, or returns to the real time.
         */
        post: operations["moveClock"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/dev/faults": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List injected faults
         * @description The oldest fault comes first.
         */
        get: operations["listFaults"];
        put?: never;
        /**
         * Inject a fault
         * @description The next operations of a driver fail, stall or take longer.
         */
        post: operations["createFault"];
        /**
         * Clear all injected faults
         * @description Stalled operations continue.
         */
        delete: operations["clearFaults"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/dev/faults/{fault_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Clear an injected fault
         * @description Operations that it stalls continue.
         */
        delete: operations["deleteFault"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/registry_token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get a registry token
         * @description The header `Authorization: Basic` contains the name and the secret of the user.
         */
        get: operations["getRegistryToken"];
        put?: never;
        /**
         * Create a registry token
         * @description The same as `getRegistryToken`, in the form of OAuth 2.
         */
        post: operations["createRegistryToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/registry_events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Receive the events of a registry host
         * @description Registry hosts report pushes, pulls and deletions here.
         */
        post: operations["receiveRegistryEvents"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/authorize": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Authorize a request to a container
         * @description For proxies. The status is 204 if the key in the header `X-API-Key` opens the container; 401 and 403 have the reason in the header `X-Cloudyard-Reason`. The query names the container; without `name`, the headers `X-Container-Name`, `X-Container-Namespace`, `X-Container-Project` and `X-Container-Region` do.
         */
        get: operations["authorizeContainer"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/cloudyard/v1/authorize/{project_id}/{region_id}/{namespace}/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Authorize a request to a container in the path
         * @description For proxies that append the path of their client, such as Envoy. Other methods and longer paths have the same effect. The status is 200 if the key in the header `X-API-Key` opens the container; 401 and 403 have the reason in the header `X-Cloudyard-Reason`.
         */
        get: operations["authorizeContainerByPath"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        AcknowledgeTasks: {
            /** @description IDs of the tasks; null or absent: all tasks */
            task_ids?: string[] | null;
        };
        /** @description ID of the task that is changing the resource; null if it is not changing */
        ActiveTaskId: string | null;
        AddLifecyclePolicySchedules: {
            /** @description Schedules, at most 10 */
            schedules: components["schemas"]["CreateLifecyclePolicySchedule"][];
        };
        AllClientQuotas: {
            global_quotas: components["schemas"]["GlobalQuotas"];
            /** @description Quotas of each region */
            regional_quotas: components["schemas"]["RegionalQuotas"][];
        };
        /** @description Addresses and networks that may connect; null: all, an empty list: none. At most 100 entries */
        AllowedCidrs: string[] | null;
        ApiKey: {
            /** @description Name of the key */
            name: string;
            /** @description Containers that the key opens */
            containers: components["schemas"]["ApiKeyContainer"][];
            /**
             * Format: date-time
             * @description When the key was created
             */
            created_at: string;
            /** @description Text of the client */
            description: string;
            /**
             * Format: date-time
             * @description When the key expires; null: never
             */
            expire: string | null;
            /** @description Whether the key opens nothing for now */
            is_disabled: boolean;
            /**
             * @description Always `cloud`
             * @enum {unknown}
             */
            source: "cloud" | "iate";
            /**
             * @description State of the key; `pending`: this server has not read the key yet
             * @enum {unknown}
             */
            status: "active" | "disabled" | "expired" | "pending";
        };
        ApiKeyCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["ApiKey"][];
        };
        ApiKeyContainer: {
            /** @description Name of the container */
            name: string;
            /** @description Namespace of the container */
            namespace: string;
        };
        ApiKeyContainerInput: {
            /** @description Name of the container: 2 to 64 lowercase letters, digits and `-`, starting with a letter and not ending with `-` */
            name: string;
            /** @description Namespace of the container: 1 to 255 characters without control characters */
            namespace: string;
        };
        ApproveQuotaRequest: {
            /** @description For the client; part of the notification */
            reason?: string | null;
        };
        AttachVolume: {
            /**
             * Format: uuid
             * @description Rejected with 400: instances are not supported
             */
            instance_id: string;
            /** @description Accepted and ignored */
            attachment_tag?: string;
        };
        AuditChange: {
            /** @description Table of the row, such as `file_shares` */
            table: string;
            /** @description ID of the row; null: it has none, and all its columns are listed */
            id: unknown;
            /** @description The changed columns before the change, or null; secrets are redacted */
            before: {
                [key: string]: unknown;
            } | null;
            /** @description The changed columns after the change, or null; secrets are redacted */
            after: {
                [key: string]: unknown;
            } | null;
        };
        AuditEntry: {
            /** @description ID of the entry */
            id: number;
            /**
             * Format: date-time
             * @description When the change was made
             */
            at: string;
            /** @description operationId of the request, or name of the command */
            operation: string;
            /** @description Token of the request; null for a command on the host */
            token: components["schemas"]["AuditToken"] | null;
            /** @description ID of the client */
            client_id: number | null;
            /** @description ID of the project */
            project_id: number | null;
            /** @description ID of the region */
            region_id: number | null;
            /** @description ID of the request */
            request_id: string | null;
            /** @description Address, method, path and user agent, where known */
            origin: {
                [key: string]: string;
            };
            /** @description The rows that changed */
            changes: components["schemas"]["AuditChange"][];
        };
        AuditPage: {
            /** @description The entries of this page */
            results: components["schemas"]["AuditEntry"][];
            /** @description `before` of the next page; null on the last page */
            next: number | null;
        };
        AuditToken: {
            /** @description ID of the token */
            id: number;
            /** @description Name of the token */
            name: string | null;
        };
        AvailableNetwork: {
            /**
             * Format: uuid
             * @description ID of the network
             */
            id: string;
            /** @description Name of the network */
            name: string;
            /**
             * Format: date-time
             * @description When the network was created
             */
            created_at: string;
            /**
             * Format: uuid
             * @description ID of the task that created the network; null for a default network
             */
            creator_task_id: string | null;
            task_id: components["schemas"]["ActiveTaskId"];
            /** @description Whether this is the default network of the project */
            default: boolean | null;
            /** @description Always false */
            external: boolean;
            /** @description Maximum transmission unit in bytes */
            mtu: number;
            /** @description Always true */
            port_security_enabled: boolean;
            /** @description ID of the project */
            project_id: number | null;
            /** @description Name of the region */
            region: string;
            /** @description ID of the region */
            region_id: number;
            /** @description Random number; nothing depends on it */
            segmentation_id: number | null;
            /** @description Whether other projects can use the network */
            shared: boolean;
            /** @description Subnets, by address range */
            subnets: components["schemas"]["Subnet"][];
            /** @description Tags, by key */
            tags: components["schemas"]["Tag"][];
            /**
             * @deprecated
             * @description Use `tags`; the Terraform provider reads this name
             */
            metadata: components["schemas"]["Tag"][];
            /** @description `vlan` or `vxlan` */
            type: string;
            /**
             * Format: date-time
             * @description When the network last changed
             */
            updated_at: string;
        };
        AvailableNetworkCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["AvailableNetwork"][];
        };
        /** @description Certificate, chain and private key */
        CertificatePayload: {
            /**
             * Format: password
             * @description Certificate in PEM; certificates of the chain may follow
             */
            certificate: string;
            /**
             * Format: password
             * @description Certificates of the chain in PEM; may be empty
             */
            certificate_chain: string;
            /**
             * Format: password
             * @description Private key in PEM, not encrypted
             */
            private_key: string;
        };
        CheckFileShareLimits: {
            /** @description Size of the planned share in GiB */
            size: number;
        };
        CheckLoadBalancerLimits: {
            floating_ip?: components["schemas"]["CheckLoadBalancerLimitsFloatingIp"];
            /** @description Accepted and ignored */
            logging?: components["schemas"]["LoadBalancerLoggingInput"];
            /**
             * @description Accepted and ignored
             * @enum {unknown}
             */
            vip_ip_family?: "dual" | "ipv4" | "ipv6";
            /**
             * Format: uuid
             * @description Accepted and ignored
             */
            vip_network_id?: string;
            /**
             * Format: uuid
             * @description Accepted and ignored
             */
            vip_port_id?: string;
        };
        /** @description Floating IP of the planned load balancer */
        CheckLoadBalancerLimitsFloatingIp: {
            /**
             * @description `new` counts as another floating IP
             * @enum {unknown}
             */
            source: "existing" | "new";
            /**
             * Format: uuid
             * @description Accepted and ignored
             */
            existing_floating_id?: string;
        };
        CheckRegistryLimits: {
            /**
             * @description Storage limit of the planned registry in GiB
             * @default 0
             */
            storage_limit: number;
        };
        Client: {
            /** @description ID of the client */
            id: number;
            /** @description Name of the client */
            name: string;
            /** @description Addresses that receive notifications */
            emails: string[];
            /**
             * Format: date-time
             * @description When the client was created
             */
            created_at: string;
        };
        ClientCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["Client"][];
        };
        ClientQuotaFigures: components["schemas"]["RegionalQuotas"] & components["schemas"]["GlobalQuotas"];
        ClockNow: {
            /**
             * Format: date-time
             * @description The time of the clock
             */
            now: string;
        };
        ComingRun: {
            /**
             * Format: uuid
             * @description ID of the schedule
             */
            schedule_id: string;
            /** @description Time of the run in UTC */
            utc: string;
            /** @description The same time with the offset of the time zone of the schedule */
            local: string;
        };
        /** @description Where the region is */
        Coordinates: {
            /** @description Degrees north, as a decimal number */
            latitude: string;
            /** @description Degrees east, as a decimal number */
            longitude: string;
        };
        CreateApiKey: {
            /** @description 2 to 64 lowercase letters, digits and `-`, starting with a letter and not ending with `-`; unique in the project and region */
            name: string;
            /** @description Containers that the key opens, at most 10,000; a key without containers opens none */
            containers: components["schemas"]["ApiKeyContainerInput"][];
            /**
             * @description Any text
             * @default
             */
            description: string;
            /**
             * Format: iso-date-time
             * @description When the key expires, ISO 8601, UTC if it has no offset; null: never
             */
            expire?: string | null;
            /**
             * @description Whether the key opens nothing for now
             * @default false
             */
            is_disabled: boolean;
        };
        CreateClient: {
            /** @description Name of the client, unique, without control characters */
            name: string;
        };
        CreateFault: {
            /**
             * @description Kind of resource
             * @enum {unknown}
             */
            resource: "file_share" | "load_balancer" | "snapshot" | "volume";
            /**
             * @description Operation of the driver
             * @enum {unknown}
             */
            operation: "apply" | "remove";
            /**
             * @description How the operation fails
             * @enum {unknown}
             */
            mode: "fail" | "stall" | "slow";
            /**
             * @description Number of operations
             * @default 1
             */
            count: number;
            /** @description Duration of `slow` (default: 5) and `stall` (default: until it is cleared) */
            seconds?: number;
            /** @description Error message of the failed task */
            message?: string;
        };
        CreateFileShare: components["schemas"]["CreateStandardFileShare"] | components["schemas"]["CreateVastFileShare"];
        /**
         * @example {
         *       "access_mode": "rw",
         *       "ip_address": "10.0.0.0/24"
         *     }
         */
        CreateFileShareAccessRule: {
            /**
             * @description `ro`: read only; `rw`: read and write
             * @enum {unknown}
             */
            access_mode: "ro" | "rw";
            /**
             * Format: ip-network
             * @description Address or network that may mount the share
             */
            ip_address: string;
        };
        CreateL7Policy: {
            action: components["schemas"]["L7PolicyAction"];
            /** @description Name of the policy: 3 to 63 letters, digits, spaces, `.`, `_` and `-`, starting with a letter or digit and not ending with a space or `-`; empty by default */
            name?: components["schemas"]["Name"];
            /** @description Position among the policies of the listener, from 1. A new policy moves those from its position down; without a position, or with one beyond the end, it is the last */
            position?: number;
            /** @description Status of the redirect, 301, 302, 303, 307, 308, for REDIRECT_TO_URL and REDIRECT_PREFIX; 302 by default */
            redirect_http_code?: (301 | 302 | 303 | 307 | 308) | null;
            /**
             * Format: uuid
             * @description ID of the pool that gets the requests, for REDIRECT_TO_POOL: a pool of the same load balancer
             */
            redirect_pool_id?: string | null;
            /** @description URL that the path and query of the request are appended to, for REDIRECT_PREFIX */
            redirect_prefix?: string | null;
            /** @description URL that requests are redirected to, for REDIRECT_TO_URL */
            redirect_url?: string | null;
            tags?: components["schemas"]["L7Tags"];
            /**
             * Format: uuid
             * @description ID of an HTTP or TERMINATED_HTTPS listener
             */
            listener_id: string;
        };
        CreateL7Rule: {
            type: components["schemas"]["L7RuleType"];
            compare_type: components["schemas"]["L7RuleCompareType"];
            /** @description Value to compare with, 1 to 255 characters. FILE_TYPE: the extension (`jpg`); SSL_CONN_HAS_CERT: `True`; SSL_VERIFY_RESULT: the number of the result */
            value: string;
            /** @description Whether the result of the comparison is inverted; false by default */
            invert?: boolean;
            /** @description Name of the header or cookie, or field of the distinguished name (`CN`); required for HEADER, COOKIE, SSL_DN_FIELD. Empty or null: none */
            key?: string | null;
            tags?: components["schemas"]["L7Tags"];
        };
        CreateLbPool: {
            ca_secret_id?: components["schemas"]["MemberCaSecretId"];
            crl_secret_id?: components["schemas"]["MemberCrlSecretId"];
            secret_id?: components["schemas"]["MemberSecretId"];
            /** @description Keeps a client on the same member; null: off */
            session_persistence?: components["schemas"]["LbPoolSessionPersistenceInput"] | null;
            timeout_client_data?: components["schemas"]["LbPoolClientDataTimeout"];
            timeout_member_connect?: components["schemas"]["LbPoolMemberConnectTimeout"];
            timeout_member_data?: components["schemas"]["LbPoolMemberDataTimeout"];
            /** @description Health monitor; null: members are not checked */
            healthmonitor?: components["schemas"]["CreateLbPoolHealthMonitor"] | null;
            lb_algorithm: components["schemas"]["LbPoolAlgorithm"];
            /** @description Members, at most 1,000; none by default */
            members?: components["schemas"]["CreateLbPoolMember"][];
            name: components["schemas"]["Name"];
            protocol: components["schemas"]["LbPoolProtocol"];
            /**
             * Format: uuid
             * @description ID of the listener whose default pool this becomes; by default no listener uses it
             */
            listener_id?: string | null;
            /**
             * Format: uuid
             * @description ID of the load balancer; required without `listener_id`
             */
            load_balancer_id?: string | null;
            /**
             * Format: uuid
             * @deprecated
             * @description Use `load_balancer_id`
             */
            loadbalancer_id?: string | null;
        };
        /**
         * @example {
         *       "type": "HTTP",
         *       "url_path": "/healthz",
         *       "delay": 10,
         *       "timeout": 5,
         *       "max_retries": 3
         *     }
         */
        CreateLbPoolHealthMonitor: {
            /** @description Whether members are checked; true by default */
            admin_state_up?: boolean;
            /** @description Time between two checks of a member, in seconds */
            delay: number;
            /** @description Host name of HTTP and HTTPS checks, in the header `Host` and as the TLS server name */
            domain_name?: string | null;
            /** @description HTTP statuses of a healthy member: statuses and ranges, such as `200,202,300-302`; `200` by default */
            expected_codes?: string | null;
            /** @description Method of HTTP and HTTPS checks; `GET` by default */
            http_method?: components["schemas"]["HttpMethod"] | null;
            /** @description Version of HTTP and HTTPS checks; null: `1.1` with a `domain_name`, otherwise `1.0` */
            http_version?: ("1.0" | "1.1") | null;
            /** @description Number of successful checks in a row after which a member is up */
            max_retries: number;
            /** @description Number of failed checks in a row after which a member is down; 3 by default */
            max_retries_down?: number;
            /** @description Time limit of a check in seconds; less than `delay` */
            timeout: number;
            /** @description Path of HTTP and HTTPS checks; `/` by default */
            url_path?: string | null;
            /** @description Accepted and ignored */
            id?: string | null;
            /** @description Accepted and ignored */
            operating_status?: string | null;
            /** @description Accepted and ignored */
            provisioning_status?: string | null;
            type: components["schemas"]["HealthMonitorType"];
        };
        /**
         * @description Address and port identify the member within its pool
         * @example {
         *       "address": "10.0.0.11",
         *       "protocol_port": 8080,
         *       "weight": 2
         *     }
         */
        CreateLbPoolMember: {
            /**
             * Format: ip-address
             * @description IPv4 or IPv6 address; the region may limit the networks of members
             */
            address: string;
            /** @description Port that receives the traffic */
            protocol_port: number;
            /**
             * @description Whether the member gets traffic
             * @default true
             */
            admin_state_up: boolean;
            /**
             * @description Whether the member gets traffic only while all others are down
             * @default false
             */
            backup: boolean;
            /**
             * Format: uuid
             * @description Accepted and ignored
             */
            instance_id?: string | null;
            /**
             * Format: ip-address
             * @description Address that the health monitor checks; null: `address`
             */
            monitor_address?: string | null;
            /** @description Port that the health monitor checks; null: `protocol_port` */
            monitor_port?: number | null;
            /**
             * Format: uuid
             * @description ID of the subnet of the address; stored, nothing is routed
             */
            subnet_id?: string | null;
            /** @description Share of the traffic in proportion to the weights of the other members; 1 by default */
            weight?: number;
            /** @description Accepted and ignored */
            id?: string | null;
            /** @description Accepted and ignored */
            operating_status?: string | null;
            /** @description Accepted and ignored */
            provisioning_status?: string | null;
        };
        CreateLifecyclePolicy: {
            /**
             * @description Always `volume_snapshot`
             * @enum {unknown}
             */
            action: "volume_snapshot";
            /** @description 1 to 255 characters without control characters */
            name: string;
            /** @description Schedules, at most 10 */
            schedules?: components["schemas"]["CreateLifecyclePolicySchedule"][];
            /**
             * @description `active` (default), or `paused`: no schedule runs and no snapshot expires
             * @enum {unknown}
             */
            status?: "active" | "paused";
            /** @description IDs of volumes, at most 10,000 */
            volume_ids?: string[];
        };
        /**
         * @description A cron schedule needs at least one of `month`, `day`, `week`, `day_of_week`, `hour` and `minute`, an interval at least one of `weeks`, `days`, `hours` and `minutes`. Fields of the other type are rejected.
         * @example {
         *       "type": "cron",
         *       "day_of_week": "mon-fri",
         *       "hour": "3",
         *       "timezone": "Europe/Luxembourg",
         *       "max_quantity": 7
         *     }
         * @example {
         *       "type": "interval",
         *       "hours": 6,
         *       "retention_time": {
         *         "weeks": 2
         *       },
         *       "max_quantity": 100
         *     }
         */
        CreateLifecyclePolicySchedule: {
            /**
             * @description `cron`: at certain local times; `interval`: at a fixed distance from the creation of the schedule
             * @enum {unknown}
             */
            type: "cron" | "interval";
            /**
             * @description Number of snapshots of each volume that the schedule keeps
             * @default 2
             */
            max_quantity: number;
            /** @description Name of the snapshots; `{volume_id}`, `{lifecycle_policy_id}`, `{schedule_id}`, `{scheduled_at}` are replaced; by default "Snapshot of volume {volume_id} created by policy {lifecycle_policy_id}" */
            resource_name_template?: string | null;
            /** @description Age at which snapshots are deleted, the sum of the fields; null: no limit */
            retention_time?: components["schemas"]["CreateRetentionTime"] | null;
            /** @description cron: months, 1 to 12 or names such as `jan-mar` */
            month?: string | null;
            /** @description cron: days of the month, 1 to 31, `last`, or weekdays such as `2nd mon` and `last fri` */
            day?: string | null;
            /** @description cron: ISO weeks, 1 to 53 */
            week?: string | null;
            /** @description cron: weekdays, 0 (Monday) to 6 or names such as `mon-fri` */
            day_of_week?: string | null;
            /** @description cron: hours, 0 to 23 */
            hour?: string | null;
            /** @description cron: minutes, 0 to 59 */
            minute?: string | null;
            /** @description cron: IANA name of the time zone of the other fields; `UTC` by default */
            timezone?: string | null;
            /** @description interval: weeks between runs */
            weeks?: number | null;
            /** @description interval: days between runs */
            days?: number | null;
            /** @description interval: hours between runs */
            hours?: number | null;
            /** @description interval: minutes between runs */
            minutes?: number | null;
        };
        CreateListener: {
            name: components["schemas"]["Name"];
            protocol: components["schemas"]["ListenerProtocol"];
            /** @description Port number; one listener for each port, and another one for the same UDP port */
            protocol_port: number;
            allowed_cidrs?: components["schemas"]["AllowedCidrs"];
            /** @description Maximum number of open connections; more connections wait (UDP: are dropped). -1: 100,000, 0: no connections are accepted; 100,000 by default */
            connection_limit?: number;
            /** @description Whether requests to members get the headers `X-Forwarded-For`, `X-Forwarded-Port` and `X-Forwarded-Proto`; false by default, only for `HTTP` and `TERMINATED_HTTPS` */
            insert_x_forwarded?: boolean;
            /** @description ID of the secret with the certificate; required for `TERMINATED_HTTPS`, optional for `PROMETHEUS`, otherwise not supported. Empty: none */
            secret_id?: "" | string;
            /** @description IDs of secrets with further certificates, selected by the TLS server name; requires `secret_id` */
            sni_secret_id?: string[];
            timeout_client_data?: components["schemas"]["ListenerClientDataTimeout"];
            timeout_member_connect?: components["schemas"]["ListenerMemberConnectTimeout"];
            timeout_member_data?: components["schemas"]["ListenerMemberDataTimeout"];
            /** @description Users for HTTP basic authentication, at most 3; only for `HTTP`, `TERMINATED_HTTPS` and `PROMETHEUS` */
            user_list?: components["schemas"]["ListenerUser"][];
            /**
             * Format: uuid
             * @description ID of a pool of the load balancer that gets the traffic; no other listener may use it
             */
            default_pool_id?: string;
            /**
             * Format: uuid
             * @description ID of the load balancer; required
             */
            load_balancer_id?: string;
            /**
             * Format: uuid
             * @deprecated
             * @description Use `load_balancer_id`
             */
            loadbalancer_id?: string;
        };
        CreateLoadBalancer: {
            name: components["schemas"]["Name"];
            /**
             * @description Flavor, the first one of the region by default; flavors differ in price only
             * @example lb1-1-2
             */
            flavor?: string;
            floating_ip?: components["schemas"]["LoadBalancerFloatingIp"];
            /** @description Listeners with their pools, at most 51; none by default */
            listeners?: components["schemas"]["CreateNestedListener"][];
            logging?: components["schemas"]["LoadBalancerLoggingInput"];
            /**
             * @description Stored and returned without effect: members are always reached by their IP addresses (L3)
             * @enum {unknown}
             */
            preferred_connectivity?: "L2" | "L3";
            tags?: components["schemas"]["CreateTags"];
            /** @description Another name for `tags`, which the Terraform provider sends */
            metadata?: components["schemas"]["CreateTags"];
            /**
             * @description Family of the addresses; `ipv6` and `dual` require an IPv6 range of the region
             * @enum {unknown}
             */
            vip_ip_family?: "dual" | "ipv4" | "ipv6";
            /**
             * Format: uuid
             * @description ID of the network to show; by default the default network of the project. Nothing is routed
             */
            vip_network_id?: string;
            /**
             * Format: uuid
             * @description Not supported: the region assigns the address
             */
            vip_port_id?: string;
            /**
             * Format: uuid
             * @description ID of the subnet to show; by default the first one of the network. Ignored without `vip_network_id`
             */
            vip_subnet_id?: string;
        };
        CreateNestedLbPool: {
            ca_secret_id?: components["schemas"]["MemberCaSecretId"];
            crl_secret_id?: components["schemas"]["MemberCrlSecretId"];
            secret_id?: components["schemas"]["MemberSecretId"];
            /** @description Keeps a client on the same member; null: off */
            session_persistence?: components["schemas"]["LbPoolSessionPersistenceInput"] | null;
            timeout_client_data?: components["schemas"]["LbPoolClientDataTimeout"];
            timeout_member_connect?: components["schemas"]["LbPoolMemberConnectTimeout"];
            timeout_member_data?: components["schemas"]["LbPoolMemberDataTimeout"];
            /** @description Health monitor; null: members are not checked */
            healthmonitor?: components["schemas"]["CreateLbPoolHealthMonitor"] | null;
            lb_algorithm: components["schemas"]["LbPoolAlgorithm"];
            /** @description Members, at most 1,000; none by default */
            members?: components["schemas"]["CreateLbPoolMember"][];
            name: components["schemas"]["Name"];
            protocol: components["schemas"]["LbPoolProtocol"];
        };
        CreateNestedListener: {
            name: components["schemas"]["Name"];
            protocol: components["schemas"]["ListenerProtocol"];
            /** @description Port number; one listener for each port, and another one for the same UDP port */
            protocol_port: number;
            allowed_cidrs?: components["schemas"]["AllowedCidrs"];
            /** @description Maximum number of open connections; more connections wait (UDP: are dropped). -1: 100,000, 0: no connections are accepted; 100,000 by default */
            connection_limit?: number;
            /** @description Whether requests to members get the headers `X-Forwarded-For`, `X-Forwarded-Port` and `X-Forwarded-Proto`; false by default, only for `HTTP` and `TERMINATED_HTTPS` */
            insert_x_forwarded?: boolean;
            /** @description ID of the secret with the certificate; required for `TERMINATED_HTTPS`, optional for `PROMETHEUS`, otherwise not supported. Empty: none */
            secret_id?: "" | string;
            /** @description IDs of secrets with further certificates, selected by the TLS server name; requires `secret_id` */
            sni_secret_id?: string[];
            timeout_client_data?: components["schemas"]["ListenerClientDataTimeout"];
            timeout_member_connect?: components["schemas"]["ListenerMemberConnectTimeout"];
            timeout_member_data?: components["schemas"]["ListenerMemberDataTimeout"];
            /** @description Users for HTTP basic authentication, at most 3; only for `HTTP`, `TERMINATED_HTTPS` and `PROMETHEUS` */
            user_list?: components["schemas"]["ListenerUser"][];
            /** @description The default pool, at most one */
            pools?: components["schemas"]["CreateNestedLbPool"][];
        };
        CreateNetwork: {
            name: components["schemas"]["Name"];
            /** @description Accepted and ignored: packets are not routed */
            create_router?: boolean;
            /**
             * @description Type of the network; default: `vxlan`
             * @enum {unknown}
             */
            type?: "vlan" | "vxlan";
            tags?: components["schemas"]["CreateTags"];
            /** @description Another name for `tags`, which the Terraform provider sends */
            metadata?: components["schemas"]["CreateTags"];
        };
        CreateNewVolume: {
            name: components["schemas"]["Name"];
            /** @description Accepted and ignored */
            attachment_tag?: string;
            /** @description Rejected with 400: instances are not supported */
            instance_id_to_attach_to?: string;
            /** @description IDs of lifecycle policies that take snapshots of the volume */
            lifecycle_policy_ids?: components["schemas"]["IntegerId"][];
            tags?: components["schemas"]["CreateTags"];
            /** @description Another name for `tags`, which the Terraform provider sends */
            metadata?: components["schemas"]["CreateTags"];
            /** @description Type of the volume, one that the region offers; by default `standard`, or the type of the snapshot */
            type_name?: components["schemas"]["VolumeTypeName"];
            /** @description Size in GiB */
            size: number;
            /**
             * @description An empty volume
             * @enum {string}
             */
            source: "new-volume";
        };
        CreateProject: {
            name: components["schemas"]["Name"];
            /** @description Free text, up to 255 characters */
            description?: string | null;
            /** @description ID of the client of the token, the only one that is allowed */
            client_id?: components["schemas"]["FilterId"] | null;
            /** @description The state, which is always `ACTIVE`; older official clients send it */
            state?: "ACTIVE" | null;
        };
        CreatePullSecret: {
            /** @description 1 to 250 letters, digits, `.`, `_` and `-`; unique in the project and region */
            name: string;
            /** @description Registry as for `docker login`: `registry.example.com:5000`, `https://ghcr.io`, `docker.io`. Other text is accepted and cannot be used (`verify` says why), except credentials in a URL. */
            registry: string;
            /** @description User name at the registry, without control characters */
            login: string;
            /**
             * Format: password
             * @description Password or access token at the registry, without control characters
             */
            password: string;
        };
        CreateQuotaRequest: {
            /** @description Why the limits are needed */
            description: string;
            requested_limits: components["schemas"]["NewRequestedLimits"];
            /** @description ID of the client of the token, the only one that is allowed */
            client_id?: components["schemas"]["FilterId"] | null;
        };
        CreateRegistry: {
            /** @description 2 to 24 lowercase letters, digits and `-`, starting with a letter and not ending with `-`; unique in the project and region */
            name: string;
            /**
             * @description Storage limit in GiB
             * @default 5
             */
            storage_limit: number;
        };
        CreateRegistryUser: {
            /** @description 1 to 16 lowercase letters and digits; unique in the registry */
            name: string;
            /** @description Days until the user expires, from now; -1: never, 0: at once */
            duration: number;
            /**
             * @description Whether the user can only pull
             * @default false
             */
            read_only: boolean;
            /**
             * @description Up to 255 characters without control characters; generated when empty
             * @default
             */
            secret: string;
        };
        CreateRegistryUsers: {
            /** @description The users, at most 100, with different names */
            users: components["schemas"]["CreateRegistryUser"][];
        };
        CreateRetentionTime: {
            /** @description Weeks of the retention time */
            weeks?: number | null;
            /** @description Days of the retention time */
            days?: number | null;
            /** @description Hours of the retention time */
            hours?: number | null;
            /** @description Minutes of the retention time */
            minutes?: number | null;
        };
        CreateSecret: {
            /** @description 1 to 255 characters, none of them a control character */
            name: string;
            payload: components["schemas"]["CertificatePayload"];
            /**
             * Format: iso-date-time
             * @description From this ISO 8601 date on, resources cannot use the secret; UTC without a zone
             */
            expiration?: string | null;
        };
        CreateSecretV1: {
            /** @description 1 to 255 characters, none of them a control character */
            name: string;
            /**
             * @description Type of the secret; load balancers use certificates
             * @enum {unknown}
             */
            secret_type: "certificate" | "opaque" | "passphrase" | "private" | "public" | "symmetric";
            /**
             * Format: password
             * @description Base64. A certificate is a PKCS#12 bundle without a password, or PEM: a certificate with its private key, CA certificates, or revocation lists
             */
            payload: string;
            /**
             * @description Always `base64`
             * @enum {string}
             */
            payload_content_encoding: "base64";
            /** @description Media type of the payload, such as `application/octet-stream` */
            payload_content_type: string;
            /** @description Algorithm, for information */
            algorithm?: string | null;
            /** @description Length of the key in bits, for information */
            bit_length?: number | null;
            /** @description Mode of the algorithm, for information */
            mode?: string | null;
            /**
             * Format: iso-date-time
             * @description From this ISO 8601 date on, resources cannot use the secret; UTC without a zone
             */
            expiration?: string | null;
        };
        CreateSession: {
            /**
             * Format: password
             * @description An API token; the prefix `apikey ` is accepted
             */
            token: string;
        };
        CreateSnapshot: {
            name: components["schemas"]["Name"];
            /**
             * Format: uuid
             * @description ID of the volume
             */
            volume_id: string;
            /** @description Any text */
            description?: string | null;
            tags?: components["schemas"]["CreateTags"];
            /** @description Another name for `tags`, which the Terraform provider sends */
            metadata?: components["schemas"]["CreateTags"];
        };
        CreateStandardFileShare: {
            name: components["schemas"]["Name"];
            /**
             * @description Always `NFS`
             * @enum {string}
             */
            protocol: "NFS";
            /** @description Size in GiB */
            size: number;
            tags?: components["schemas"]["CreateTags"];
            /** @description Another name for `tags`, which the Terraform provider sends */
            metadata?: components["schemas"]["CreateTags"];
            share_settings?: components["schemas"]["FileShareSettingsInput"];
            network: components["schemas"]["FileShareNetwork"];
            /** @description Initial access rules; none by default */
            access?: components["schemas"]["CreateFileShareAccessRule"][];
            /**
             * @description Always `standard`
             * @enum {string}
             */
            type_name?: "standard";
            /**
             * @deprecated
             * @description Use `type_name`
             * @enum {string}
             */
            volume_type?: "default_share_type";
        };
        CreateSubnet: {
            /** @description Addresses of DNS servers; at most 16 */
            dns_nameservers?: string[] | null;
            /** @description Whether DHCP is on; default: true */
            enable_dhcp?: boolean;
            /**
             * Format: ip-address
             * @description Address of the gateway; null: no gateway
             */
            gateway_ip?: string | null;
            /** @description Static routes; at most 64 */
            host_routes?: components["schemas"]["HostRoute"][] | null;
            name: components["schemas"]["Name"];
            /**
             * Format: uuid
             * @description ID of the network
             */
            network_id: string;
            /**
             * Format: ip-cidr
             * @description Address range in CIDR notation
             */
            cidr: string;
            /**
             * @description Version of the Internet Protocol
             * @enum {unknown}
             */
            ip_version?: 4 | 6;
            /** @description Accepted and ignored: packets are not routed */
            connect_to_network_router?: boolean;
            /**
             * Format: uuid
             * @description Accepted and ignored: packets are not routed
             */
            router_id_to_connect?: string | null;
            tags?: components["schemas"]["CreateTags"];
            /** @description Another name for `tags`, which the Terraform provider sends */
            metadata?: components["schemas"]["CreateTags"];
        };
        /**
         * @description At most 64 tags as a map from key to value, each of 1 to 255 characters. Keys have no whitespace and no `=`; values have no space at the ends, no tab and no line break.
         * @example {
         *       "team": "web"
         *     }
         */
        CreateTags: {
            [key: string]: string;
        };
        CreateToken: {
            /** @description Any text without control characters; need not be unique */
            name: string;
            role: components["schemas"]["TokenRole"];
            /** @description Projects that the token is limited to; null: all projects of the client */
            project_ids?: components["schemas"]["IntegerId"][] | null;
            /**
             * Format: iso-date-time
             * @description When the token expires, ISO 8601, UTC if it has no offset; null: never
             */
            expires_at?: string | null;
            /** @description ID of the client; only the operator may name another client than its own */
            client_id?: components["schemas"]["IntegerId"];
        };
        CreateVastFileShare: {
            name: components["schemas"]["Name"];
            /**
             * @description Always `NFS`
             * @enum {string}
             */
            protocol: "NFS";
            /** @description Size in GiB */
            size: number;
            tags?: components["schemas"]["CreateTags"];
            /** @description Another name for `tags`, which the Terraform provider sends */
            metadata?: components["schemas"]["CreateTags"];
            share_settings?: components["schemas"]["FileShareSettingsInput"];
            /**
             * @description Always `vast`
             * @enum {string}
             */
            type_name?: "vast";
            /**
             * @deprecated
             * @description Use `type_name`
             * @enum {string}
             */
            volume_type?: "vast_share_type";
        };
        CreateVolume: components["schemas"]["CreateNewVolume"] | components["schemas"]["CreateVolumeFromSnapshot"] | components["schemas"]["CreateVolumeFromImage"];
        /** @description Rejected with 400: images are not supported */
        CreateVolumeFromImage: {
            name: components["schemas"]["Name"];
            /** @description Accepted and ignored */
            attachment_tag?: string;
            /** @description Rejected with 400: instances are not supported */
            instance_id_to_attach_to?: string;
            /** @description IDs of lifecycle policies that take snapshots of the volume */
            lifecycle_policy_ids?: components["schemas"]["IntegerId"][];
            tags?: components["schemas"]["CreateTags"];
            /** @description Another name for `tags`, which the Terraform provider sends */
            metadata?: components["schemas"]["CreateTags"];
            /** @description Type of the volume, one that the region offers; by default `standard`, or the type of the snapshot */
            type_name?: components["schemas"]["VolumeTypeName"];
            /**
             * Format: uuid
             * @description ID of the image
             */
            image_id: string;
            /** @description Size in GiB */
            size: number;
            /**
             * @description A volume with the data of an image
             * @enum {string}
             */
            source: "image";
        };
        CreateVolumeFromSnapshot: {
            name: components["schemas"]["Name"];
            /** @description Accepted and ignored */
            attachment_tag?: string;
            /** @description Rejected with 400: instances are not supported */
            instance_id_to_attach_to?: string;
            /** @description IDs of lifecycle policies that take snapshots of the volume */
            lifecycle_policy_ids?: components["schemas"]["IntegerId"][];
            tags?: components["schemas"]["CreateTags"];
            /** @description Another name for `tags`, which the Terraform provider sends */
            metadata?: components["schemas"]["CreateTags"];
            /** @description Type of the volume, one that the region offers; by default `standard`, or the type of the snapshot */
            type_name?: components["schemas"]["VolumeTypeName"];
            /** @description Size in GiB; the size of the snapshot, which is also the default */
            size?: number;
            /**
             * Format: uuid
             * @description ID of the snapshot to copy
             */
            snapshot_id: string;
            /**
             * @description A volume with the data of a snapshot
             * @enum {string}
             */
            source: "snapshot";
        };
        CreateWebhook: {
            /**
             * Format: uri
             * @description Absolute `https` or `http` URL with a host
             */
            url: string;
            /** @description Key of the signature (HMAC-SHA256) of each request; generated by default */
            secret?: string | null;
        };
        CreatedApiKey: components["schemas"]["ApiKey"] & {
            /** @description What clients send in the header `X-API-Key`; never returned again */
            secret: string;
        };
        CronSchedule: {
            /**
             * Format: uuid
             * @description ID of the schedule
             */
            id: string;
            /** @description Number of snapshots of each volume that the schedule keeps */
            max_quantity: number;
            /** @description Always `lifecycle_policy` */
            owner: string;
            /** @description ID of the lifecycle policy */
            owner_id: number;
            /** @description Name of the snapshots, with placeholders */
            resource_name_template: string;
            /** @description Age at which snapshots are deleted, the sum of the fields; null: no limit */
            retention_time: components["schemas"]["RetentionTime"] | null;
            /** @description ID of the token that created the schedule */
            user_id: number;
            /**
             * @description Always `cron`
             * @enum {string}
             */
            type: "cron";
            /** @description cron: months, 1 to 12 or names such as `jan-mar` */
            month: string | null;
            /** @description cron: days of the month, 1 to 31, `last`, or weekdays such as `2nd mon` and `last fri` */
            day: string | null;
            /** @description cron: ISO weeks, 1 to 53 */
            week: string | null;
            /** @description cron: weekdays, 0 (Monday) to 6 or names such as `mon-fri` */
            day_of_week: string | null;
            /** @description cron: hours, 0 to 23 */
            hour: string | null;
            /** @description cron: minutes, 0 to 59 */
            minute: string | null;
            /** @description cron: IANA name of the time zone of the other fields */
            timezone: string;
        };
        DataDirectoryStatus: {
            /** @description false: creates and pushes are refused with 507 */
            healthy: boolean;
            /** @description The folder, its free space and the reserve */
            detail: string;
            /** @description Free bytes of its filesystem */
            free_bytes: number;
            /** @description Size of its filesystem in bytes */
            total_bytes: number;
            /** @description The reserve in bytes: `CLOUDYARD_DISK_RESERVE` percent of the size */
            reserve_bytes: number;
            /** @description The ID of the worker process */
            worker: string;
            /** @description The regions of the worker; empty: deliveries only */
            region_ids: number[];
        };
        DeclineQuotaRequest: {
            /** @description For the client; part of the notification */
            reason: string;
        };
        Delivery: {
            /**
             * Format: uuid
             * @description ID of the delivery
             */
            id: string;
            /**
             * @description `email` or `webhook`
             * @enum {unknown}
             */
            channel: "email" | "webhook";
            /** @description E-mail address, or host of the webhook; the path of a webhook may be secret and is omitted */
            target: string;
            /**
             * Format: uuid
             * @description ID of the webhook; null for e-mail
             */
            webhook_id: string | null;
            state: components["schemas"]["DeliveryState"];
            /** @description Number of attempts */
            attempt_count: number;
            /** @description The last attempts, oldest first */
            attempts: components["schemas"]["DeliveryAttempt"][];
            /**
             * Format: date-time
             * @description When the next attempt is due; null when there is none
             */
            next_attempt_at: string | null;
            /**
             * Format: date-time
             * @description When the delivery succeeded or failed; null until then
             */
            ended_at: string | null;
        };
        DeliveryAttempt: {
            /**
             * Format: date-time
             * @description When the delivery was attempted
             */
            at: string;
            /** @description The response of the receiver, or why it was not reached */
            answer: string;
        };
        /**
         * @description `pending`, `delivered`, `simulated` (accepted by a simulated driver) or `failed` (not retried)
         * @enum {unknown}
         */
        DeliveryState: "pending" | "delivered" | "simulated" | "failed";
        DetachVolume: {
            /**
             * Format: uuid
             * @description Rejected with 400: instances are not supported
             */
            instance_id: string;
        };
        DeviceSignIn: {
            /** @description Send it to `POST /cloudyard/v1/sign_in/device/token` */
            device: string;
            /** @description The code that the person confirms */
            user_code: string;
            /** @description The page of the provider where the person confirms it */
            verification_uri: string;
            /** @description The same with the code, for a QR code or a link */
            verification_uri_complete: string | null;
            /** @description Seconds until the code expires */
            expires_in: number;
            /** @description Seconds between two requests for the token */
            interval: number;
        };
        DeviceToken: {
            /**
             * @description `pending` until the person has confirmed
             * @enum {unknown}
             */
            status: "pending" | "complete";
            /** @description The token `<id>$<secret>`; only this response contains it */
            token: string | null;
            /**
             * Format: date-time
             * @description When the token expires
             */
            expires_at: string | null;
        };
        DockerConfigAuth: {
            /** @description User name at the registry */
            username: string;
            /** @description Password at the registry */
            password: string;
            /** @description Base64 of `username:password` */
            auth: string;
        };
        DockerConfigJson: {
            /** @description Logins by registry; one entry */
            auths: {
                [key: string]: components["schemas"]["DockerConfigAuth"];
            };
        };
        DriverStatus: {
            /** @description The name of the driver: `ganesha`, `simulated` */
            driver: string;
            /** @description The kind of driver: `file shares`, `load balancers` */
            kind?: string;
            /** @description false: it is simulated */
            real: boolean;
            /** @description Whether it works at the moment */
            healthy: boolean;
            /** @description Function of the driver on its host, or the reason for the simulation */
            detail: string;
            /** @description Command that fixes the driver or replaces the simulation */
            remedy?: string;
            /** @description The port that clients of NFS connect to */
            port?: number;
            /** @description The ID of the worker process */
            worker: string;
            /** @description The regions of the worker; empty: deliveries only */
            region_ids: number[];
        };
        DriverStatuses: {
            /** @description One entry for each driver of each live worker */
            drivers: components["schemas"]["DriverStatus"][];
            /** @description One entry for each live worker of a region */
            time_zones: components["schemas"]["TimeZoneStatus"][];
            /** @description One entry for each live worker of a region */
            data_directories: components["schemas"]["DataDirectoryStatus"][];
        };
        ExistingFloatingIp: {
            /**
             * @description An existing floating IP
             * @enum {string}
             */
            source: "existing";
            /**
             * Format: uuid
             * @description ID of the floating IP
             */
            existing_floating_id: string;
        };
        ExpiringSnapshot: {
            /**
             * Format: uuid
             * @description ID of the snapshot
             */
            snapshot_id: string;
            /** @description Name of the snapshot */
            name: string;
            /**
             * Format: uuid
             * @description ID of the volume
             */
            volume_id: string;
            /**
             * Format: uuid
             * @description ID of the schedule
             */
            schedule_id: string;
            /** @description Size in GiB */
            size: number;
            /**
             * Format: date-time
             * @description When the policy deletes it, if the runs before succeed
             */
            expires_at: string;
        };
        ExtendFileShare: {
            /** @description New size in GiB; larger than the current one */
            size: number;
        };
        ExtendVolume: {
            /** @description New size in GiB; larger than the current one */
            size: number;
        };
        FailoverLoadBalancer: {
            /**
             * @description Accepted and ignored
             * @default false
             */
            force: boolean;
        };
        Fault: {
            /** @description ID of the fault */
            id: number;
            /** @description Kind of resource */
            resource: string;
            /**
             * @description Operation of the driver
             * @enum {unknown}
             */
            operation: "apply" | "remove";
            /**
             * @description How the operation fails
             * @enum {unknown}
             */
            mode: "fail" | "stall" | "slow";
            /** @description Number of operations */
            count: number;
            /** @description Number of operations that will still fail */
            remaining: number;
            /** @description Duration of `slow` and `stall` */
            seconds: number | null;
            /** @description Error message of the failed task */
            message: string | null;
        };
        FaultCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["Fault"][];
        };
        FileShare: {
            /**
             * Format: uuid
             * @description ID of the share
             */
            id: string;
            /** @description Name of the share */
            name: string;
            /** @description What clients mount, `host:/path`; null until available */
            connection_point: string | null;
            /** @description When the share was requested: ISO 8601, UTC, without a zone */
            created_at: string;
            /** @description Network of the share */
            network: {
                /**
                 * Format: uuid
                 * @description ID of the network
                 */
                network_id: string;
                /** @description Name of the network */
                network_name: string;
                /**
                 * Format: uuid
                 * @description ID of the subnet
                 */
                subnet_id: string;
                /** @description Name of the subnet */
                subnet_name: string;
            };
            /**
             * Format: uuid
             * @description ID of the network
             */
            network_id: string;
            /** @description Name of the network */
            network_name: string;
            /**
             * Format: uuid
             * @description ID of the subnet
             */
            subnet_id: string;
            /** @description Name of the subnet */
            subnet_name: string;
            /** @description Name of the share network */
            share_network_name: string | null;
            /** @description ID of the project */
            project_id: number;
            /** @description Name of the region */
            region: string;
            /** @description ID of the region */
            region_id: number;
            /**
             * Format: uuid
             * @description ID of the task that created the resource
             */
            creator_task_id: string;
            task_id: components["schemas"]["ActiveTaskId"];
            /** @description Always `NFS` */
            protocol: string;
            share_settings: components["schemas"]["FileShareSettings"];
            /** @description Size in GiB */
            size: number;
            /**
             * @description State of the share; `available` shares can be mounted, `error` shares failed and can be deleted
             * @enum {unknown}
             */
            status: "available" | "awaiting_transfer" | "backup_creating" | "backup_restoring" | "backup_restoring_error" | "creating" | "creating_from_snapshot" | "deleted" | "deleting" | "ensuring" | "error" | "error_deleting" | "extending" | "extending_error" | "inactive" | "manage_error" | "manage_starting" | "migrating" | "migrating_to" | "replication_change" | "reverting" | "reverting_error" | "shrinking" | "shrinking_error" | "shrinking_possible_data_loss_error" | "unmanage_error" | "unmanage_starting" | "unmanaged";
            /** @description Tags, by key */
            tags: components["schemas"]["Tag"][];
            /**
             * @description `standard` or `vast`; both are NFS shares. Only the request for a standard share names its network and its first access rules
             * @enum {unknown}
             */
            type_name: "standard" | "vast";
            /**
             * @deprecated
             * @description Use `type_name`
             * @enum {unknown}
             */
            volume_type: "default_share_type" | "vast_share_type";
        };
        FileShareAccessRule: {
            /**
             * Format: uuid
             * @description ID of the rule
             */
            id: string;
            /**
             * @description `ro`: read only; `rw`: read and write
             * @enum {unknown}
             */
            access_level: "ro" | "rw";
            /** @description Address or network that may mount the share */
            access_to: string;
            /**
             * @description `active` once the rule is in force
             * @enum {unknown}
             */
            state: "active" | "applying" | "denying" | "error" | "new" | "queued_to_apply" | "queued_to_deny";
        };
        FileShareAccessRuleCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["FileShareAccessRule"][];
        };
        FileShareCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["FileShare"][];
        };
        /** @description Network of a standard share */
        FileShareNetwork: {
            /**
             * Format: uuid
             * @description ID of the network
             */
            network_id: string;
            /**
             * Format: uuid
             * @description ID of the subnet; by default the first one of the network
             */
            subnet_id?: string;
        };
        /** @description Only the quotas that would be exceeded */
        FileShareRequiredQuota: {
            /** @description Limit of the number of shares */
            sfs_count_limit?: number;
            /** @description Number of shares requested */
            sfs_count_requested?: number;
            /** @description Number of shares in use */
            sfs_count_usage?: number;
            /** @description Limit of the size of all shares in GiB */
            sfs_size_limit?: number;
            /** @description Size requested in GiB */
            sfs_size_requested?: number;
            /** @description Size of all shares in GiB */
            sfs_size_usage?: number;
        };
        /** @description Settings of the share */
        FileShareSettings: {
            /**
             * @description `standard` or `vast`; both are NFS shares. Only the request for a standard share names its network and its first access rules
             * @enum {unknown}
             */
            type_name: "standard" | "vast";
            /** @description Whether the root user of clients is mapped to an unprivileged user; absent from standard shares for which it was never set, which do not map it */
            root_squash?: boolean;
            allowed_characters?: ("LCD" | "NPL") | null;
            path_length?: ("LCD" | "NPL") | null;
            /** @description Present in vast shares; always false */
            trash_access?: boolean;
        };
        /** @description Settings of the share */
        FileShareSettingsInput: {
            /**
             * @description Characters allowed in file names; vast shares only
             * @enum {unknown}
             */
            allowed_characters?: "LCD" | "NPL";
            /**
             * @description Limit of path lengths; vast shares only
             * @enum {unknown}
             */
            path_length?: "LCD" | "NPL";
            /** @description Whether the root user of clients is mapped to an unprivileged user */
            root_squash?: boolean;
            /**
             * @description Always false: shares have no trash; vast shares only
             * @enum {boolean}
             */
            trash_access?: false;
        };
        FileShareUsage: {
            /**
             * Format: uuid
             * @description ID of the share
             */
            file_share_id: string;
            /** @description Used space, including the metadata of the filesystem */
            used_bytes: number;
            /** @description Space of the filesystem */
            total_bytes: number;
        };
        FileShareUsageCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["FileShareUsage"][];
        };
        FilterId: number;
        FinishDeviceSignIn: {
            /** @description `device` of the sign-in that was started */
            device: string;
        };
        GetLoadBalancerMetrics: {
            /** @description Length of the period before now, in `time_unit`; traffic is retained for a week */
            time_interval: number;
            /**
             * @description Unit of `time_interval`
             * @enum {unknown}
             */
            time_unit: "day" | "hour";
        };
        /** @description Limits that hold everywhere */
        GlobalLimits: {
            /** @description Limit: inference mCPU */
            inference_cpu_millicore_count_limit?: number;
            /** @description Limit: inference A100 GPUs */
            inference_gpu_a100_count_limit?: number;
            /** @description Limit: inference H100 GPUs */
            inference_gpu_h100_count_limit?: number;
            /** @description Limit: inference L40S GPUs */
            inference_gpu_l40s_count_limit?: number;
            /** @description Limit: inference instances */
            inference_instance_count_limit?: number;
            /** @description Limit: API keys of public inference models */
            inference_public_model_api_key_count_limit?: number;
            /** @description Limit: SSH key pairs */
            keypair_count_limit?: number;
            /** @description Limit: projects */
            project_count_limit?: number;
        };
        /** @description Quotas that hold everywhere */
        GlobalQuotas: components["schemas"]["GlobalLimits"] & {
            /** @description Usage: inference mCPU */
            inference_cpu_millicore_count_usage?: number;
            /** @description Usage: inference A100 GPUs */
            inference_gpu_a100_count_usage?: number;
            /** @description Usage: inference H100 GPUs */
            inference_gpu_h100_count_usage?: number;
            /** @description Usage: inference L40S GPUs */
            inference_gpu_l40s_count_usage?: number;
            /** @description Usage: inference instances */
            inference_instance_count_usage?: number;
            /** @description Usage: API keys of public inference models */
            inference_public_model_api_key_count_usage?: number;
            /** @description Usage: SSH key pairs */
            keypair_count_usage?: number;
            /** @description Usage: projects */
            project_count_usage?: number;
        };
        /** @description Global quotas that reached the threshold */
        GlobalQuotasMessage: {
            inference_cpu_millicore_count_limit?: components["schemas"]["QuotaFigure"];
            inference_cpu_millicore_count_usage?: components["schemas"]["QuotaFigure"];
            inference_gpu_a100_count_limit?: components["schemas"]["QuotaFigure"];
            inference_gpu_a100_count_usage?: components["schemas"]["QuotaFigure"];
            inference_gpu_h100_count_limit?: components["schemas"]["QuotaFigure"];
            inference_gpu_h100_count_usage?: components["schemas"]["QuotaFigure"];
            inference_gpu_l40s_count_limit?: components["schemas"]["QuotaFigure"];
            inference_gpu_l40s_count_usage?: components["schemas"]["QuotaFigure"];
            inference_instance_count_limit?: components["schemas"]["QuotaFigure"];
            inference_instance_count_usage?: components["schemas"]["QuotaFigure"];
            inference_public_model_api_key_count_limit?: components["schemas"]["QuotaFigure"];
            inference_public_model_api_key_count_usage?: components["schemas"]["QuotaFigure"];
            keypair_count_limit?: components["schemas"]["QuotaFigure"];
            keypair_count_usage?: components["schemas"]["QuotaFigure"];
            project_count_limit?: components["schemas"]["QuotaFigure"];
            project_count_usage?: components["schemas"]["QuotaFigure"];
        };
        Health: {
            /** @description `ok` */
            status: string;
            /** @description The version of the server */
            version: string;
            tls?: components["schemas"]["TlsStatus"];
        };
        /**
         * @description How a member is checked. `HTTP`, `HTTPS`: a request; `K8S`: as `HTTP`; `TCP`: a connection; `TLS-HELLO`: a TLS handshake; `PING`: an ICMP echo; `UDP-CONNECT`: a datagram, for UDP pools. UDP pools support `PING` and `UDP-CONNECT`
         * @enum {unknown}
         */
        HealthMonitorType: "HTTP" | "HTTPS" | "K8S" | "PING" | "TCP" | "TLS-HELLO" | "UDP-CONNECT";
        Host: {
            /** @description ID of the region */
            region_id: number;
            /** @description Name of the host, unique in the region */
            name: string;
            /** @description Its address among the hosts */
            address: string;
            /** @description Network interface that gets the addresses that move; null: the interface with the address of the host */
            interface: string | null;
            /**
             * @description `draining`: its groups move to other hosts; `drained`: it holds none
             * @enum {unknown}
             */
            state: "active" | "draining" | "drained";
            /** @description Whether its lease has not ended */
            lease_valid: boolean;
            /**
             * Format: date-time
             * @description When its lease ends unless it is renewed
             */
            lease_until: string;
            /** @description Whether it has applied everything that is published, so that it may serve; false without a valid lease */
            converged: boolean;
            /** @description Number of changes that it has not applied */
            pending_changes: number;
            /** @description Address groups and NFS groups that it holds: `addresses-3`, `api`, `registry`, `nfs 10.77.2.1`; none without a valid lease */
            held_groups: string[];
            /** @description What it serves, as of its last report */
            drivers: components["schemas"]["HostDriver"][];
            /** @description Version of its agent */
            version: string;
            /**
             * Format: date-time
             * @description When it joined the region
             */
            joined_at: string;
            /**
             * Format: date-time
             * @description When its agent took the lease
             */
            started_at: string;
        };
        HostCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["Host"][];
        };
        HostDriver: {
            /** @description What it serves: `load balancers`, `file shares` */
            kind: string;
            /** @description The name of the driver: `haproxy`, `simulated` */
            driver: string;
            /** @description false: it is simulated */
            real: boolean;
            /** @description Whether it works at the moment */
            healthy: boolean;
            /** @description What it does on the host, or its problem */
            detail: string;
        };
        HostRoute: {
            /**
             * Format: ip-network
             * @description Destination network
             */
            destination: string;
            /**
             * Format: ip-address
             * @description Address of the router
             */
            nexthop: string;
        };
        /** @enum {unknown} */
        HttpMethod: "CONNECT" | "DELETE" | "GET" | "HEAD" | "OPTIONS" | "PATCH" | "POST" | "PUT" | "TRACE";
        IntegerId: number;
        IntervalSchedule: {
            /**
             * Format: uuid
             * @description ID of the schedule
             */
            id: string;
            /** @description Number of snapshots of each volume that the schedule keeps */
            max_quantity: number;
            /** @description Always `lifecycle_policy` */
            owner: string;
            /** @description ID of the lifecycle policy */
            owner_id: number;
            /** @description Name of the snapshots, with placeholders */
            resource_name_template: string;
            /** @description Age at which snapshots are deleted, the sum of the fields; null: no limit */
            retention_time: components["schemas"]["RetentionTime"] | null;
            /** @description ID of the token that created the schedule */
            user_id: number;
            /**
             * @description Always `interval`
             * @enum {string}
             */
            type: "interval";
            /** @description interval: weeks between runs */
            weeks: number | null;
            /** @description interval: days between runs */
            days: number | null;
            /** @description interval: hours between runs */
            hours: number | null;
            /** @description interval: minutes between runs */
            minutes: number | null;
        };
        L7Policy: {
            /**
             * Format: uuid
             * @description ID of the policy
             */
            id: string;
            operating_status: components["schemas"]["LoadBalancerOperatingStatus"];
            provisioning_status: components["schemas"]["LoadBalancerProvisioningStatus"];
            /** @description ID of the project */
            project_id: number;
            /** @description Name of the region */
            region: string;
            /** @description ID of the region */
            region_id: number;
            action: components["schemas"]["L7PolicyAction"];
            /**
             * Format: uuid
             * @description ID of the listener
             */
            listener_id: string;
            /** @description Name of the policy; empty by default */
            name: string;
            /** @description Position among the policies of the listener, from 1. A new policy moves those from its position down; without a position, or with one beyond the end, it is the last */
            position: number;
            /** @description Status of the redirect, 301, 302, 303, 307, 308, for REDIRECT_TO_URL and REDIRECT_PREFIX */
            redirect_http_code: number | null;
            /**
             * Format: uuid
             * @description ID of the pool that gets the requests, for REDIRECT_TO_POOL: a pool of the same load balancer
             */
            redirect_pool_id: string | null;
            /** @description URL that the path and query of the request are appended to, for REDIRECT_PREFIX */
            redirect_prefix: string | null;
            /** @description URL that requests are redirected to, for REDIRECT_TO_URL */
            redirect_url: string | null;
            /** @description Rules, at most 100; a request must match all. Without rules none matches */
            rules: components["schemas"]["L7RuleReference"][];
            /** @description Labels */
            tags: string[];
            /**
             * Format: uuid
             * @description ID of the task that locks the load balancer; null: not locked
             */
            task_id: string | null;
        };
        /**
         * @description What happens to requests that match all rules. `REJECT`: 403; `REDIRECT_TO_URL`: redirected to `redirect_url`; `REDIRECT_PREFIX`: redirected to `redirect_prefix` with their path and query; `REDIRECT_TO_POOL`: served by `redirect_pool_id`
         * @enum {unknown}
         */
        L7PolicyAction: "REDIRECT_PREFIX" | "REDIRECT_TO_POOL" | "REDIRECT_TO_URL" | "REJECT";
        L7PolicyCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["L7Policy"][];
        };
        L7PolicyStatus: {
            /**
             * Format: uuid
             * @description ID of the policy
             */
            id: string;
            operating_status: components["schemas"]["LoadBalancerOperatingStatus"];
            provisioning_status: components["schemas"]["LoadBalancerProvisioningStatus"];
            /** @description Name of the policy */
            name: string;
            /** @description Action of the policy */
            action: string;
            /** @description Position of the policy */
            position: number;
            /** @description Rules, the oldest first */
            rules: components["schemas"]["L7RuleStatus"][];
        };
        L7Rule: {
            /**
             * Format: uuid
             * @description ID of the rule
             */
            id: string;
            operating_status: components["schemas"]["LoadBalancerOperatingStatus"];
            provisioning_status: components["schemas"]["LoadBalancerProvisioningStatus"];
            /** @description ID of the project */
            project_id: number;
            /** @description Name of the region */
            region: string;
            /** @description ID of the region */
            region_id: number;
            compare_type: components["schemas"]["L7RuleCompareType"];
            /** @description Whether the result of the comparison is inverted */
            invert: boolean;
            /** @description Name of the header or cookie, or field of the distinguished name (`CN`); required for HEADER, COOKIE, SSL_DN_FIELD */
            key: string | null;
            /** @description Labels */
            tags: string[];
            /**
             * Format: uuid
             * @description ID of the task that locks the load balancer; null: not locked
             */
            task_id: string | null;
            type: components["schemas"]["L7RuleType"];
            /** @description Value to compare with, 1 to 255 characters. FILE_TYPE: the extension (`jpg`); SSL_CONN_HAS_CERT: `True`; SSL_VERIFY_RESULT: the number of the result */
            value: string;
        };
        L7RuleCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["L7Rule"][];
        };
        /**
         * @description How it is compared. FILE_TYPE: EQUAL_TO or REGEX; SSL_CONN_HAS_CERT, SSL_VERIFY_RESULT: EQUAL_TO. `REGEX`: the value contains a match of the PCRE2 pattern, found within 1,000 steps; values of 512 bytes or more do not match
         * @enum {unknown}
         */
        L7RuleCompareType: "CONTAINS" | "ENDS_WITH" | "EQUAL_TO" | "REGEX" | "STARTS_WITH";
        L7RuleReference: {
            /**
             * Format: uuid
             * @description ID of the rule
             */
            id: string;
            /** @description ID of the project */
            project_id: number;
            /** @description Name of the region */
            region: string;
            /** @description ID of the region */
            region_id: number;
        };
        L7RuleStatus: {
            /**
             * Format: uuid
             * @description ID of the rule
             */
            id: string;
            operating_status: components["schemas"]["LoadBalancerOperatingStatus"];
            provisioning_status: components["schemas"]["LoadBalancerProvisioningStatus"];
            /** @description Type of the rule */
            type: string;
        };
        /**
         * @description What is compared. `HOST_NAME`: the host without its port, in any case; `PATH`: without the query; `HEADER`, `COOKIE`: each value of `key`; `FILE_TYPE`: the end of the path after the last dot; `SSL_…`: the client certificate, for TERMINATED_HTTPS listeners. These request no client certificate, so SSL_CONN_HAS_CERT and SSL_DN_FIELD never match, and SSL_VERIFY_RESULT matches 0
         * @enum {unknown}
         */
        L7RuleType: "COOKIE" | "FILE_TYPE" | "HEADER" | "HOST_NAME" | "PATH" | "SSL_CONN_HAS_CERT" | "SSL_DN_FIELD" | "SSL_VERIFY_RESULT";
        /** @description Labels */
        L7Tags: string[];
        LbPool: {
            /**
             * Format: uuid
             * @description ID of the pool
             */
            id: string;
            operating_status: components["schemas"]["LoadBalancerOperatingStatus"];
            provisioning_status: components["schemas"]["LoadBalancerProvisioningStatus"];
            /**
             * Format: uuid
             * @description ID of the task that created the resource
             */
            creator_task_id: string;
            task_id: components["schemas"]["ActiveTaskId"];
            /** @description Name of the pool */
            name: string;
            /** @description Whether members get traffic */
            admin_state_up: boolean;
            /**
             * Format: uuid
             * @description ID of the secret with the CA certificates that verify the members, the root CA included; only for HTTPS pools
             */
            ca_secret_id: string | null;
            /**
             * Format: uuid
             * @description ID of the secret with the revocation lists of all CAs of the members, the root CA included; requires `ca_secret_id`
             */
            crl_secret_id: string | null;
            /** @description Health monitor; null: members are not checked */
            healthmonitor: components["schemas"]["LbPoolHealthMonitor"] | null;
            lb_algorithm: components["schemas"]["LbPoolAlgorithm"];
            /** @description The listener whose default pool this is, if any. Listeners whose L7 policies redirect to the pool are not shown */
            listeners: components["schemas"]["ListenerReference"][];
            /** @description The load balancer of the pool */
            loadbalancers: components["schemas"]["LoadBalancerReference"][];
            protocol: components["schemas"]["LbPoolProtocol"];
            /**
             * Format: uuid
             * @description ID of the secret with the client certificate that the members receive; only for HTTPS pools
             */
            secret_id: string | null;
            /** @description Keeps a client on the same member; null: off */
            session_persistence: components["schemas"]["LbPoolSessionPersistence"] | null;
            /** @description Time without data from the client after which the connection is closed, in milliseconds; null or 0: 50,000; the timeout of the listener takes precedence */
            timeout_client_data: number | null;
            /** @description Time limit for connecting to a member, in milliseconds; null or 0: that of the listener, or 5,000 */
            timeout_member_connect: number | null;
            /** @description Time without data from the member after which the connection is closed, in milliseconds; null or 0: that of the listener, or 50,000 */
            timeout_member_data: number | null;
            /** @description Members, in the order of the request */
            members: components["schemas"]["LbPoolMember"][];
        };
        /**
         * @description Which member gets a connection or request. `ROUND_ROBIN`: the next one; `LEAST_CONNECTIONS`: the one with the fewest connections; `SOURCE_IP`: the one that a hash of the client address selects
         * @enum {unknown}
         */
        LbPoolAlgorithm: "LEAST_CONNECTIONS" | "ROUND_ROBIN" | "SOURCE_IP";
        /** @description Time without data from the client after which the connection is closed, in milliseconds; null or 0: 50,000; the timeout of the listener takes precedence */
        LbPoolClientDataTimeout: number | null;
        LbPoolCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["ListedLbPool"][];
        };
        LbPoolHealthMonitor: {
            /**
             * Format: uuid
             * @description ID of the health monitor
             */
            id: string;
            operating_status: components["schemas"]["LoadBalancerOperatingStatus"];
            /** @description Provisioning status of the pool */
            provisioning_status: components["schemas"]["LoadBalancerProvisioningStatus"];
            /** @description Whether members are checked */
            admin_state_up: boolean;
            /** @description Time between two checks of a member, in seconds */
            delay: number;
            /** @description Host name of HTTP and HTTPS checks, in the header `Host` and as the TLS server name */
            domain_name: string | null;
            /** @description HTTP statuses of a healthy member: statuses and ranges, such as `200,202,300-302`; `200` by default */
            expected_codes: string | null;
            /** @description Method of HTTP and HTTPS checks; `GET` by default */
            http_method: string | null;
            /** @description Version of HTTP and HTTPS checks; null: `1.1` with a `domain_name`, otherwise `1.0` */
            http_version: string | null;
            /** @description Number of successful checks in a row after which a member is up */
            max_retries: number;
            /** @description Number of failed checks in a row after which a member is down; 3 by default */
            max_retries_down: number;
            /** @description Time limit of a check in seconds; less than `delay` */
            timeout: number;
            type: components["schemas"]["HealthMonitorType"];
            /** @description Path of HTTP and HTTPS checks; `/` by default */
            url_path: string | null;
        };
        LbPoolHealthMonitorStatus: {
            /**
             * Format: uuid
             * @description ID of the health monitor
             */
            id: string;
            operating_status: components["schemas"]["LoadBalancerOperatingStatus"];
            /** @description Provisioning status of the pool */
            provisioning_status: components["schemas"]["LoadBalancerProvisioningStatus"];
            /** @description Type of the checks */
            type: string;
        };
        LbPoolMember: {
            /**
             * Format: uuid
             * @description ID of the member
             */
            id: string;
            operating_status: components["schemas"]["LoadBalancerOperatingStatus"];
            /** @description Provisioning status of the pool */
            provisioning_status: components["schemas"]["LoadBalancerProvisioningStatus"];
            /** @description IPv4 or IPv6 address */
            address: string;
            /** @description Whether the member gets traffic */
            admin_state_up: boolean;
            /** @description Whether the member gets traffic only while all others are down */
            backup: boolean;
            /** @description Address that the health monitor checks; null: `address` */
            monitor_address: string | null;
            /** @description Port that the health monitor checks; null: `protocol_port` */
            monitor_port: number | null;
            /** @description Port that receives the traffic */
            protocol_port: number;
            /**
             * Format: uuid
             * @description ID of the subnet of the address
             */
            subnet_id: string | null;
            /** @description Share of the traffic in proportion to the weights of the other members */
            weight: number;
        };
        LbPoolMemberCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["LbPoolMember"][];
        };
        /** @description Time limit for connecting to a member, in milliseconds; null or 0: that of the listener, or 5,000 */
        LbPoolMemberConnectTimeout: number | null;
        /** @description Time without data from the member after which the connection is closed, in milliseconds; null or 0: that of the listener, or 50,000 */
        LbPoolMemberDataTimeout: number | null;
        LbPoolMemberReference: {
            /**
             * Format: uuid
             * @description ID of the member
             */
            id: string;
        };
        LbPoolMemberStatus: {
            /**
             * Format: uuid
             * @description ID of the member
             */
            id: string;
            operating_status: components["schemas"]["LoadBalancerOperatingStatus"];
            /** @description Provisioning status of the pool */
            provisioning_status: components["schemas"]["LoadBalancerProvisioningStatus"];
            /** @description IP address */
            address: string;
            /** @description Port number */
            protocol_port: number;
        };
        /**
         * @description Protocol of the members. It must fit the listener; `HTTPS` encrypts behind HTTP and TERMINATED_HTTPS listeners, `PROXY` and `PROXYV2` send the client address in a PROXY protocol header of version 1 or 2
         * @enum {unknown}
         */
        LbPoolProtocol: "HTTP" | "HTTPS" | "PROXY" | "PROXYV2" | "TCP" | "UDP";
        LbPoolSessionPersistence: {
            /** @description Name of the cookie. `APP_COOKIE`: required, the cookie that the members set. `HTTP_COOKIE`: the cookie that the proxy sets; `SRV_…` by default. Pools of one host name need different names */
            cookie_name: string | null;
            /** @description Netmask such as `255.255.255.0`: clients whose masked addresses are equal use the same member; only for `SOURCE_IP` in UDP pools */
            persistence_granularity: string | null;
            /** @description Time in seconds that an inactive client keeps its member at least; null or 0: no minimum. A hash of the address selects the member, so a client keeps it until the members change; only for `SOURCE_IP` in UDP pools */
            persistence_timeout: number | null;
            /**
             * @description How a client is recognized. `SOURCE_IP`: by its address; `HTTP_COOKIE`: by a cookie that the proxy sets; `APP_COOKIE`: by a cookie that the members set. Cookies require an HTTP or HTTPS pool
             * @enum {unknown}
             */
            type: "APP_COOKIE" | "HTTP_COOKIE" | "SOURCE_IP";
        };
        LbPoolSessionPersistenceInput: {
            /** @description Name of the cookie. `APP_COOKIE`: required, the cookie that the members set. `HTTP_COOKIE`: the cookie that the proxy sets; `SRV_…` by default. Pools of one host name need different names */
            cookie_name?: components["schemas"]["Name"] | null;
            /** @description Netmask such as `255.255.255.0`: clients whose masked addresses are equal use the same member; only for `SOURCE_IP` in UDP pools */
            persistence_granularity?: string | null;
            /** @description Time in seconds that an inactive client keeps its member at least; null or 0: no minimum. A hash of the address selects the member, so a client keeps it until the members change; only for `SOURCE_IP` in UDP pools */
            persistence_timeout?: number | null;
            /**
             * @description How a client is recognized. `SOURCE_IP`: by its address; `HTTP_COOKIE`: by a cookie that the proxy sets; `APP_COOKIE`: by a cookie that the members set. Cookies require an HTTP or HTTPS pool
             * @enum {unknown}
             */
            type: "APP_COOKIE" | "HTTP_COOKIE" | "SOURCE_IP";
        };
        LbPoolStatus: {
            /**
             * Format: uuid
             * @description ID of the pool
             */
            id: string;
            operating_status: components["schemas"]["LoadBalancerOperatingStatus"];
            provisioning_status: components["schemas"]["LoadBalancerProvisioningStatus"];
            /** @description Name of the pool */
            name: string;
            /** @description Health monitor, if any */
            health_monitor: components["schemas"]["LbPoolHealthMonitorStatus"] | null;
            /** @description Members */
            members: components["schemas"]["LbPoolMemberStatus"][];
        };
        LifecyclePolicy: {
            /**
             * @description Always `volume_snapshot`
             * @enum {unknown}
             */
            action: "volume_snapshot";
            /** @description ID of the policy */
            id: number;
            /** @description Name of the policy */
            name: string;
            /** @description ID of the project */
            project_id: number;
            /** @description ID of the region */
            region_id: number;
            /** @description Schedules, in the order of their creation */
            schedules: components["schemas"]["LifecyclePolicySchedule"][];
            /**
             * @description `active`, or `paused`: no schedule runs and no snapshot expires
             * @enum {unknown}
             */
            status: "active" | "paused";
            /** @description ID of the token that created the policy */
            user_id: number;
            /** @description Volumes of the policy; only with `need_volumes=true` */
            volumes?: components["schemas"]["LifecyclePolicyVolume"][];
        };
        LifecyclePolicyCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["LifecyclePolicy"][];
        };
        LifecyclePolicyForecast: {
            /** @description The next runs, soonest first; empty while the policy is paused */
            runs: components["schemas"]["ComingRun"][];
            /** @description Existing snapshots that expire until the last of these runs of their schedule, soonest first */
            expiring: components["schemas"]["ExpiringSnapshot"][];
        };
        LifecyclePolicyPrice: {
            currency_code: components["schemas"]["PriceCurrency"];
            /** @description Discount of the client in percent */
            discount: number | null;
            per_hour: components["schemas"]["LifecyclePolicyVolumePrices"];
            /** @description Prices of a month (730 hours), by volume */
            per_month: components["schemas"]["LifecyclePolicyVolumePrices"];
            price_status: components["schemas"]["PriceStatus"];
            /** @description Price of a month (730 hours) with tax and without discount */
            price_without_discount_per_month: number | null;
            /** @description Tax that the prices include, in percent; 0 when no price is shown */
            tax_percent: number;
            /** @description Price of an hour with tax */
            total_price_per_hour: number | null;
            /** @description Price of a month (730 hours) with tax */
            total_price_per_month: number | null;
        };
        LifecyclePolicyRun: {
            /**
             * Format: uuid
             * @description ID of the run
             */
            id: string;
            /**
             * Format: uuid
             * @description ID of the schedule
             */
            schedule_id: string;
            /**
             * Format: date-time
             * @description When the run was due
             */
            due_at: string;
            /**
             * Format: date-time
             * @description When the run started
             */
            started_at: string;
            /**
             * Format: date-time
             * @description When the last snapshot was done; null before that
             */
            done_at: string | null;
            /**
             * Format: uuid
             * @description ID of the task of the client that requested the run; null: the run was due
             */
            task_id: string | null;
            /** @description Snapshots that were created */
            snapshots: components["schemas"]["RunSnapshot"][];
            /** @description Older snapshots that expired because of this run and are gone */
            expired: components["schemas"]["RunSnapshot"][];
            /** @description Volumes whose snapshot failed */
            failed: components["schemas"]["RunFailure"][];
            /** @description Volumes whose snapshot is not done */
            pending: components["schemas"]["PendingRunSnapshot"][];
        };
        LifecyclePolicyRunCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["LifecyclePolicyRun"][];
        };
        /** @description Omitted fields of the request are null or have their defaults */
        LifecyclePolicySchedule: components["schemas"]["CronSchedule"] | components["schemas"]["IntervalSchedule"];
        LifecyclePolicyUsage: {
            /** @description Price of the largest size of all snapshots */
            max_cost: components["schemas"]["Price"];
            /** @description Largest number of snapshots of all volumes */
            max_volume_snapshot_count_usage: number;
            /** @description Largest number of snapshots of one volume */
            max_volume_snapshot_sequence_length: number;
            /** @description Largest size of all snapshots in GiB */
            max_volume_snapshot_size_usage: number;
        };
        LifecyclePolicyVolume: {
            /**
             * Format: uuid
             * @description ID of the volume
             */
            volume_id: string;
            /** @description Name of the volume */
            volume_name: string;
        };
        LifecyclePolicyVolumeIds: {
            /** @description IDs of volumes, at most 10,000 */
            volume_ids: string[];
        };
        LifecyclePolicyVolumePrice: {
            /** @description Discount of the client in percent */
            discount: number | null;
            /** @description Price of the snapshots of the volume with tax */
            price: number;
            type: components["schemas"]["VolumeTypeName"];
        };
        /** @description Prices of an hour, by volume */
        LifecyclePolicyVolumePrices: {
            /** @description Prices of the volumes, in the order of the request without duplicates; null: no price */
            volumes: (components["schemas"]["LifecyclePolicyVolumePrice"] | null)[];
        };
        ListedLbPool: {
            /**
             * Format: uuid
             * @description ID of the pool
             */
            id: string;
            operating_status: components["schemas"]["LoadBalancerOperatingStatus"];
            provisioning_status: components["schemas"]["LoadBalancerProvisioningStatus"];
            /**
             * Format: uuid
             * @description ID of the task that created the resource
             */
            creator_task_id: string;
            task_id: components["schemas"]["ActiveTaskId"];
            /** @description Name of the pool */
            name: string;
            /** @description Whether members get traffic */
            admin_state_up: boolean;
            /**
             * Format: uuid
             * @description ID of the secret with the CA certificates that verify the members, the root CA included; only for HTTPS pools
             */
            ca_secret_id: string | null;
            /**
             * Format: uuid
             * @description ID of the secret with the revocation lists of all CAs of the members, the root CA included; requires `ca_secret_id`
             */
            crl_secret_id: string | null;
            /** @description Health monitor; null: members are not checked */
            healthmonitor: components["schemas"]["LbPoolHealthMonitor"] | null;
            lb_algorithm: components["schemas"]["LbPoolAlgorithm"];
            /** @description The listener whose default pool this is, if any. Listeners whose L7 policies redirect to the pool are not shown */
            listeners: components["schemas"]["ListenerReference"][];
            /** @description The load balancer of the pool */
            loadbalancers: components["schemas"]["LoadBalancerReference"][];
            protocol: components["schemas"]["LbPoolProtocol"];
            /**
             * Format: uuid
             * @description ID of the secret with the client certificate that the members receive; only for HTTPS pools
             */
            secret_id: string | null;
            /** @description Keeps a client on the same member; null: off */
            session_persistence: components["schemas"]["LbPoolSessionPersistence"] | null;
            /** @description Time without data from the client after which the connection is closed, in milliseconds; null or 0: 50,000; the timeout of the listener takes precedence */
            timeout_client_data: number | null;
            /** @description Time limit for connecting to a member, in milliseconds; null or 0: that of the listener, or 5,000 */
            timeout_member_connect: number | null;
            /** @description Time without data from the member after which the connection is closed, in milliseconds; null or 0: that of the listener, or 50,000 */
            timeout_member_data: number | null;
            /** @description IDs of the members; members with `details` */
            members: (components["schemas"]["LbPoolMember"] | components["schemas"]["LbPoolMemberReference"])[];
        };
        Listener: {
            /**
             * Format: uuid
             * @description ID of the listener
             */
            id: string;
            operating_status: components["schemas"]["LoadBalancerOperatingStatus"];
            provisioning_status: components["schemas"]["LoadBalancerProvisioningStatus"];
            /**
             * Format: uuid
             * @description ID of the task that created the resource
             */
            creator_task_id: string;
            task_id: components["schemas"]["ActiveTaskId"];
            /** @description Name of the listener */
            name: string;
            /** @description Whether the listener accepts connections */
            admin_state_up: boolean;
            /** @description Addresses and networks that may connect; null: all, an empty list: none */
            allowed_cidrs: string[] | null;
            /** @description Maximum number of open connections; more connections wait (UDP: are dropped). -1: 100,000, 0: no connections are accepted */
            connection_limit: number;
            /** @description Headers that requests to members get: `X-Forwarded-…` with the value `true`, or none */
            insert_headers: {
                [key: string]: string;
            };
            /**
             * Format: uuid
             * @description ID of the load balancer
             */
            load_balancer_id: string | null;
            /** @description Number of pools that get its traffic: the default pool and those of L7 policies */
            pool_count: number | null;
            protocol: components["schemas"]["ListenerProtocol"];
            /** @description Port number */
            protocol_port: number;
            /** @description ID of the secret with the certificate */
            secret_id: string | null;
            /** @description IDs of the secrets with further certificates */
            sni_secret_id: string[] | null;
            /** @description Traffic counters, read from the proxy every 10 seconds; null without `show_stats` */
            stats: components["schemas"]["LoadBalancerStats"] | null;
            /** @description Time without data from the client after which the connection is closed, in milliseconds; null or 0: that of the pool, or 50,000 */
            timeout_client_data: number | null;
            /** @description Time limit for connecting to a member, in milliseconds; null or 0: 5,000; the timeout of the pool takes precedence */
            timeout_member_connect: number | null;
            /** @description Time without data from the member after which the connection is closed, in milliseconds; null or 0: 50,000; the timeout of the pool takes precedence */
            timeout_member_data: number | null;
            /** @description Users for HTTP basic authentication. Tokens with the role `reader` see `*` instead of a hash */
            user_list: components["schemas"]["ListenerUser"][];
        };
        /** @description Time without data from the client after which the connection is closed, in milliseconds; null or 0: that of the pool, or 50,000 */
        ListenerClientDataTimeout: number | null;
        ListenerCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["Listener"][];
        };
        /** @description Time limit for connecting to a member, in milliseconds; null or 0: 5,000; the timeout of the pool takes precedence */
        ListenerMemberConnectTimeout: number | null;
        /** @description Time without data from the member after which the connection is closed, in milliseconds; null or 0: 50,000; the timeout of the pool takes precedence */
        ListenerMemberDataTimeout: number | null;
        /**
         * @description Protocol of the clients. `HTTPS` passes TLS through to the members, `TERMINATED_HTTPS` decrypts it with the certificate `secret_id`, `PROMETHEUS` serves metrics of the load balancer at `/metrics`, over TLS with a `secret_id`, and has no pool
         * @enum {unknown}
         */
        ListenerProtocol: "HTTP" | "HTTPS" | "PROMETHEUS" | "TCP" | "TERMINATED_HTTPS" | "UDP";
        ListenerReference: {
            /**
             * Format: uuid
             * @description ID of the listener
             */
            id: string;
        };
        ListenerStatus: {
            /**
             * Format: uuid
             * @description ID of the listener
             */
            id: string;
            operating_status: components["schemas"]["LoadBalancerOperatingStatus"];
            provisioning_status: components["schemas"]["LoadBalancerProvisioningStatus"];
            /** @description Name of the listener */
            name: string;
            /** @description The default pool, if any */
            pools: components["schemas"]["LbPoolStatus"][];
            /** @description L7 policies, by position */
            l7policies: components["schemas"]["L7PolicyStatus"][];
        };
        ListenerUser: {
            /** @description crypt(3) hash of the password: `$1$`; `$5$` or `$6$` with at most 5,000 rounds; or bcrypt (`$2b$`) with a cost of 4 to 6. `openssl passwd -6` and `htpasswd -nB` print such hashes */
            encrypted_password: string;
            /** @description 3 to 32 letters, digits, spaces, `.`, `_` and `-`, starting with a letter or digit and not ending with a space or `-` */
            username: string;
        };
        LoadBalancer: {
            /**
             * Format: uuid
             * @description ID of the load balancer
             */
            id: string;
            operating_status: components["schemas"]["LoadBalancerOperatingStatus"];
            provisioning_status: components["schemas"]["LoadBalancerProvisioningStatus"];
            /** @description ID of the project */
            project_id: number;
            /** @description Name of the region */
            region: string;
            /** @description ID of the region */
            region_id: number;
            /**
             * Format: uuid
             * @description ID of the task that created the resource
             */
            creator_task_id: string;
            task_id: components["schemas"]["ActiveTaskId"];
            /** @description Name of the load balancer */
            name: string;
            /** @description Further addresses: the IPv6 address of a load balancer of the family `dual` */
            additional_vips: {
                /** @description IP address */
                ip_address: string;
                /**
                 * Format: uuid
                 * @description ID of the subnet
                 */
                subnet_id: string;
            }[];
            /** @description Whether the listeners accept connections */
            admin_state_up: boolean;
            /**
             * Format: date-time
             * @description When the load balancer was requested
             */
            created_at: string;
            /** @description Always null */
            ddos_profile: null;
            /** @description Flavor; null if the region has removed it */
            flavor: components["schemas"]["LoadBalancerFlavorDetails"] | null;
            /** @description Always empty */
            floating_ips: Record<string, never>[];
            /** @description Listeners, the oldest first */
            listeners: components["schemas"]["ListenerReference"][];
            /** @description Log settings, stored and returned without effect: no log service is connected */
            logging: components["schemas"]["LoadBalancerLogging"] | null;
            /**
             * @deprecated
             * @description Use `tags_v2`; the Terraform provider reads this name
             */
            metadata: components["schemas"]["Tag"][];
            /**
             * @description Stored and returned without effect: members are always reached by their IP addresses (L3)
             * @enum {unknown}
             */
            preferred_connectivity: "L2" | "L3";
            /** @description Traffic counters, read from the proxy every 10 seconds; null without `show_stats` */
            stats: components["schemas"]["LoadBalancerStats"] | null;
            /** @description Tags, by key */
            tags_v2: components["schemas"]["Tag"][];
            /**
             * Format: date-time
             * @description When the load balancer or one of its parts was last changed
             */
            updated_at: string | null;
            /** @description IP address of the load balancer */
            vip_address: string | null;
            /** @description Always null */
            vip_fqdn: null;
            vip_ip_family: ("dual" | "ipv4" | "ipv6") | null;
            /**
             * Format: uuid
             * @description ID of the address
             */
            vip_port_id: string | null;
            /** @description Addresses of the instances: in a region of one host the address of the load balancer, otherwise its hosts */
            vrrp_ips: {
                /** @description IP address */
                ip_address: string;
                /**
                 * Format: uuid
                 * @description ID of the subnet
                 */
                subnet_id: string;
                /**
                 * @description `STANDALONE` in a region of one host; otherwise `MASTER` for the host that has the address
                 * @enum {unknown}
                 */
                role: "BACKUP" | "MASTER" | "STANDALONE";
            }[];
        };
        LoadBalancerCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["LoadBalancer"][];
        };
        LoadBalancerFlavor: {
            /** @description ID of the flavor; the same as its name */
            flavor_id: string;
            /** @description Name of the flavor */
            flavor_name: string;
            /** @description Memory in MiB */
            ram: number;
            /** @description Number of virtual CPUs */
            vcpus: number;
            currency_code?: components["schemas"]["PriceCurrency"];
            /** @description Price of an hour with tax */
            price_per_hour?: number | null;
            /** @description Price of a month (730 hours) with tax */
            price_per_month?: number | null;
            price_status?: components["schemas"]["PriceStatus"];
        };
        LoadBalancerFlavorCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["LoadBalancerFlavor"][];
        };
        LoadBalancerFlavorDetails: {
            /** @description ID of the flavor, equal to its name */
            flavor_id: string;
            /** @description Name of the flavor */
            flavor_name: string;
            /** @description Nominal memory in MiB */
            ram: number;
            /** @description Nominal number of virtual processors */
            vcpus: number;
        };
        /** @description Not supported: requests with a floating IP are rejected */
        LoadBalancerFloatingIp: components["schemas"]["NewFloatingIp"] | components["schemas"]["ExistingFloatingIp"];
        LoadBalancerLogRetention: {
            /** @description Retention in days; null: no limit */
            period: number | null;
        };
        LoadBalancerLogRetentionInput: {
            /** @description Retention in days; null: no limit */
            period: number | null;
        };
        LoadBalancerLogging: {
            /** @description ID of the region of the log service */
            destination_region_id: number | null;
            /** @description Whether logging is requested */
            enabled: boolean;
            /** @description How long logs are retained; null: no limit */
            retention_policy: components["schemas"]["LoadBalancerLogRetention"] | null;
            /** @description Topic of the log service */
            topic_name: string | null;
        };
        /** @description Log settings, stored and returned without effect: no log service is connected */
        LoadBalancerLoggingInput: {
            /** @description ID of the region of the log service */
            destination_region_id?: components["schemas"]["IntegerId"] | null;
            /**
             * @description Whether logging is requested
             * @default false
             */
            enabled: boolean;
            /** @description How long logs are retained; null: no limit */
            retention_policy?: components["schemas"]["LoadBalancerLogRetentionInput"] | null;
            /** @description Topic of the log service */
            topic_name?: string | null;
        };
        /** @description At most 64 tags as a map from key to value: keys of 1 to 255 characters, values of up to 255 */
        LoadBalancerMetadata: {
            [key: string]: string;
        };
        /** @description Averages of one step: a minute, ten minutes or an hour */
        LoadBalancerMetrics: {
            /** @description Always null: unknown for a single load balancer */
            cpu_util: number | null;
            /** @description Always null: unknown for a single load balancer */
            memory_util: number | null;
            /** @description Bits sent to clients per second; `Bps` in the name is historical */
            network_Bps_egress: number | null;
            /** @description Bits received from clients per second; `Bps` in the name is historical */
            network_Bps_ingress: number | null;
            /** @description Always null: packets are not counted */
            network_pps_egress: number | null;
            /** @description Always null: packets are not counted */
            network_pps_ingress: number | null;
            /** @description Start of the step, RFC 3339 in UTC */
            time: string | null;
        };
        LoadBalancerMetricsCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["LoadBalancerMetrics"][];
        };
        /**
         * @description Health as the proxy sees it. `ONLINE`: works; `DEGRADED`: some members fail; `ERROR`: all active members fail; `NO_MONITOR`: works, but health is not checked; `DRAINING`: gets no new connections; `OFFLINE`: disabled, or not on the host
         * @enum {unknown}
         */
        LoadBalancerOperatingStatus: "DEGRADED" | "DRAINING" | "ERROR" | "NO_MONITOR" | "OFFLINE" | "ONLINE";
        LoadBalancerPrice: {
            currency_code: components["schemas"]["PriceCurrency"];
            /** @description Discount of the client in percent */
            discount_percent: number | null;
            price_status: components["schemas"]["PriceStatus"];
            /** @description Price of a month (730 hours) with tax and without discount */
            price_without_discount_per_month: number | null;
            /** @description Tax that the prices include, in percent; 0 when no price is shown */
            tax_percent: number;
            per_hour: components["schemas"]["LoadBalancerPriceByPart"];
            /** @description Prices of a month (730 hours) with tax, by part */
            per_month: components["schemas"]["LoadBalancerPriceByPart"];
            /** @description Price of an hour with tax */
            total_price_per_hour: number | null;
            /** @description Price of a month (730 hours) with tax */
            total_price_per_month: number | null;
        };
        /** @description Prices of an hour with tax, by part */
        LoadBalancerPriceByPart: {
            /** @description Price of the external IP address; always null */
            external_ip: number | null;
            /** @description Price of the flavor */
            flavor: number | null;
            /** @description Price of the floating IP; always null */
            floating_ip: number | null;
        };
        /**
         * @description Whether the host has the requested configuration. `ACTIVE`: it has; `PENDING_…`: a task is changing it; `ERROR`: the last task failed; `DELETED` is never used
         * @enum {unknown}
         */
        LoadBalancerProvisioningStatus: "ACTIVE" | "DELETED" | "ERROR" | "PENDING_CREATE" | "PENDING_DELETE" | "PENDING_UPDATE";
        LoadBalancerReference: {
            /**
             * Format: uuid
             * @description ID of the load balancer
             */
            id: string;
        };
        /** @description Only the quotas that would be exceeded */
        LoadBalancerRequiredQuota: {
            /** @description Limit of the number of load balancers */
            loadbalancer_count_limit?: number;
            /** @description Number of load balancers requested */
            loadbalancer_count_requested?: number;
            /** @description Number of load balancers in use */
            loadbalancer_count_usage?: number;
            /** @description Limit of the number of floating IPs */
            floating_count_limit?: number;
            /** @description Number of floating IPs requested */
            floating_count_requested?: number;
            /** @description Number of floating IPs in use */
            floating_count_usage?: number;
        };
        /** @description Traffic counters, read from the proxy every 10 seconds */
        LoadBalancerStats: {
            /** @description Number of open connections */
            active_connections: number;
            /** @description Bytes received from clients */
            bytes_in: number;
            /** @description Bytes sent to clients */
            bytes_out: number;
            /** @description Number of invalid or rejected requests */
            request_errors: number;
            /** @description Number of connections since the creation */
            total_connections: number;
        };
        LoadBalancerStatus: {
            /**
             * Format: uuid
             * @description ID of the load balancer
             */
            id: string;
            operating_status: components["schemas"]["LoadBalancerOperatingStatus"];
            provisioning_status: components["schemas"]["LoadBalancerProvisioningStatus"];
            /** @description Name of the load balancer */
            name: string;
            /** @description Listeners, the oldest first */
            listeners: components["schemas"]["ListenerStatus"][];
            /** @description Tags, by key */
            tags: components["schemas"]["Tag"][];
        };
        LoadBalancerStatusCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["LoadBalancerStatus"][];
        };
        LoadBalancerTrafficHistory: {
            /** @description Number of points */
            count: number;
            /** @description Points of whole steps, the oldest first */
            results: components["schemas"]["LoadBalancerTrafficPoint"][];
            /** @description Length of a step: 60 for periods of up to 5 hours, 600 for up to 48 hours, otherwise 3600 */
            step_seconds: number;
        };
        /** @description Sums of one step */
        LoadBalancerTrafficPoint: {
            /** @description Start of the step, RFC 3339 in UTC */
            time: string;
            /** @description HTTP requests; 0 for TCP and UDP listeners */
            requests: number;
            /** @description New connections */
            connections: number;
            /** @description Highest number of open connections among the readings */
            open_connections: number;
            /** @description Bytes received from clients */
            bytes_in: number;
            /** @description Bytes sent to clients */
            bytes_out: number;
            /** @description Invalid or rejected requests */
            request_errors: number;
            /** @description HTTP responses 5xx, and TCP and UDP connections that reached no member */
            server_errors: number;
        };
        /** @description ID of the secret with the CA certificates that verify the members, the root CA included; only for HTTPS pools */
        MemberCaSecretId: string | null;
        /** @description ID of the secret with the revocation lists of all CAs of the members, the root CA included; requires `ca_secret_id` */
        MemberCrlSecretId: string | null;
        /** @description ID of the secret with the client certificate that the members receive; only for HTTPS pools */
        MemberSecretId: string | null;
        MissedLifecyclePolicyRun: {
            /**
             * Format: uuid
             * @description ID of the schedule
             */
            schedule_id: string;
            /**
             * Format: date-time
             * @description When the run was due
             */
            due_at: string;
            /**
             * Format: date-time
             * @description When it started after all; null: it has not started
             */
            started_at: string | null;
            /** @description Number of later runs that it replaced; counted up to 1,000 */
            skipped: number;
            /** @description When the first 100 of them were due; empty if the schedule has changed since */
            skipped_at: string[];
        };
        MissedLifecyclePolicyRunCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["MissedLifecyclePolicyRun"][];
        };
        /** @description Exactly one of the fields */
        MoveClock: {
            /** @description Seconds to advance; work that becomes due is done */
            advance_seconds?: number;
            /**
             * Format: iso-date-time
             * @description The new time
             */
            set?: string;
            /**
             * @description Return to the real time
             * @enum {boolean}
             */
            real?: true;
        };
        MovedClock: {
            /**
             * Format: date-time
             * @description The time of the clock
             */
            now: string;
            /** @description Whether the work that became due is done; false: some of it took too long, hangs or was skipped because the clock jumped over it after 45 s, and the workers catch up */
            complete: boolean;
        };
        /** @description 3 to 63 letters, digits, spaces, `.`, `_` and `-`, starting with a letter or digit and not ending with a space or `-` */
        Name: string;
        Network: {
            /**
             * Format: uuid
             * @description ID of the network
             */
            id: string;
            /** @description Name of the network */
            name: string;
            /**
             * Format: date-time
             * @description When the network was created
             */
            created_at: string;
            /**
             * Format: uuid
             * @description ID of the task that created the network; null for a default network
             */
            creator_task_id: string | null;
            task_id: components["schemas"]["ActiveTaskId"];
            /** @description Whether this is the default network of the project */
            default: boolean | null;
            /** @description Always false */
            external: boolean;
            /** @description Maximum transmission unit in bytes */
            mtu: number;
            /** @description Always true */
            port_security_enabled: boolean;
            /** @description ID of the project */
            project_id: number | null;
            /** @description Name of the region */
            region: string;
            /** @description ID of the region */
            region_id: number;
            /** @description Random number; nothing depends on it */
            segmentation_id: number | null;
            /** @description Whether other projects can use the network */
            shared: boolean;
            /** @description IDs of the subnets */
            subnets: string[];
            /** @description Tags, by key */
            tags: components["schemas"]["Tag"][];
            /**
             * @deprecated
             * @description Use `tags`; the Terraform provider reads this name
             */
            metadata: components["schemas"]["Tag"][];
            /** @description `vlan` or `vxlan` */
            type: string;
            /**
             * Format: date-time
             * @description When the network last changed
             */
            updated_at: string;
        };
        NetworkCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["Network"][];
        };
        NewFloatingIp: {
            /**
             * @description A new floating IP
             * @enum {string}
             */
            source: "new";
        };
        /** @description The limits that are needed; at least one */
        NewRequestedLimits: {
            global_limits?: components["schemas"]["RequestedGlobalLimits"];
            /** @description Limits in regions; each entry needs a `region_id` */
            regional_limits?: components["schemas"]["RequestedRegionalLimits"][];
        };
        NewToken: components["schemas"]["Token"] & {
            /** @description The token `<id>$<secret>`; only this response contains it */
            token: string;
        };
        NewWebhook: {
            /**
             * Format: uuid
             * @description ID of the webhook
             */
            id: string;
            /** @description URL of the receiver, normalized */
            url: string;
            /**
             * Format: date-time
             * @description When the webhook was created
             */
            created_at: string;
            /** @description Key of the signature; only this response contains it */
            secret: string;
        };
        Notification: {
            /**
             * Format: uuid
             * @description ID of the notification
             */
            id: string;
            type: components["schemas"]["NotificationType"];
            /** @description ID of the client */
            client_id: number;
            /**
             * Format: date-time
             * @description When the notification was created
             */
            created_at: string;
            /** @description Subject line */
            subject: string;
            /** @description Machine-readable content; it depends on the type */
            data: {
                [key: string]: unknown;
            };
            /** @description One delivery for each receiver */
            deliveries: components["schemas"]["Delivery"][];
        };
        NotificationCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["Notification"][];
        };
        NotificationThreshold: {
            /** @description ID of the client */
            client_id: number;
            /** @description Percentage of the limit */
            threshold: number;
            /** @description The last notification, or null */
            last_message: components["schemas"]["QuotasMessage"] | null;
            /**
             * Format: date-time
             * @description When the last notification was sent, or null
             */
            last_sending: string | null;
        };
        /**
         * @description Type of a notification
         * @enum {unknown}
         */
        NotificationType: "backup_failed" | "backup_late" | "host_unhealthy" | "lifecycle_policy_run_failed" | "lifecycle_policy_run_missed" | "quota_request_approved" | "quota_request_declined" | "quota_threshold";
        /** @description OpenAPI 3.1 */
        OpenApiDocument: Record<string, never>;
        PendingRunSnapshot: {
            /**
             * Format: uuid
             * @description ID of the volume
             */
            volume_id: string;
            /**
             * Format: uuid
             * @description ID of the snapshot; null until it is requested
             */
            snapshot_id: string | null;
        };
        PreviewSchedule: {
            schedule: components["schemas"]["CreateLifecyclePolicySchedule"];
            /**
             * Format: iso-date-time
             * @description Only later run times are returned; by default the current time
             */
            from?: string;
            /**
             * @description Number of run times
             * @default 10
             */
            count: number;
        };
        Price: {
            currency_code: components["schemas"]["PriceCurrency"];
            /** @description Discount of the client in percent */
            discount_percent: number | null;
            price_status: components["schemas"]["PriceStatus"];
            /** @description Price of a month (730 hours) with tax and without discount */
            price_without_discount_per_month: number | null;
            /** @description Tax that the prices include, in percent; 0 when no price is shown */
            tax_percent: number;
            /** @description Price of an hour with tax */
            price_per_hour: number | null;
            /** @description Price of a month (730 hours) with tax */
            price_per_month: number | null;
        };
        /** @description Currency of the prices; null when no price is shown */
        PriceCurrency: ("AZN" | "EUR" | "USD") | null;
        PriceFileShare: {
            /** @description Size in GiB */
            size: number;
            /**
             * @description Always `new-file-share`
             * @enum {unknown}
             */
            source: "new-file-share";
            /**
             * @description Type of the share
             * @default standard
             * @enum {unknown}
             */
            type_name: "standard" | "vast";
        };
        PriceLifecyclePolicy: {
            /** @description Schedules, at most 10 */
            schedules?: components["schemas"]["CreateLifecyclePolicySchedule"][];
            /** @description IDs of volumes, at most 100 */
            volume_ids: string[];
        };
        PriceLoadBalancer: {
            /**
             * @description Flavor of the load balancer
             * @example lb1-1-2
             */
            flavor: string;
            /** @description Floating IP of the load balancer; floating IPs are not supported and have no price */
            floating_ip?: components["schemas"]["LoadBalancerFloatingIp"];
            /** @description Accepted and ignored */
            vip_ip_family?: ("dual" | "ipv4" | "ipv6") | null;
            /** @description Accepted and ignored */
            vip_network_id?: string | null;
            /** @description Accepted and ignored */
            vip_port_id?: string | null;
            /** @description Accepted and ignored */
            vip_subnet_id?: string | null;
        };
        PriceLoadBalancerV1: {
            /**
             * @description Flavor of the load balancer
             * @example lb1-1-2
             */
            flavor: string;
        };
        PriceSnapshot: {
            /**
             * Format: uuid
             * @description ID of the volume
             */
            volume_id: string;
        };
        /**
         * @description `show`: the prices are valid; `hide`: the price book has no price; `error`: the price book is faulty
         * @enum {unknown}
         */
        PriceStatus: "error" | "hide" | "show";
        PriceVolume: {
            /** @description Size in GiB; required unless a snapshot is given, whose size it must equal */
            size?: number | null;
            /**
             * Format: uuid
             * @description ID of the snapshot to copy; required with the source `snapshot`
             */
            snapshot_id?: string | null;
            /**
             * @description What the volume is created from; images are not supported and have no price
             * @enum {unknown}
             */
            source: "image" | "new-volume" | "snapshot";
            /** @description Type of the volume; by default that of the snapshot, or `standard` */
            type_name?: components["schemas"]["VolumeTypeName"] | null;
        };
        Project: {
            /** @description ID of the project */
            id: number;
            /** @description ID of the client that owns the project */
            client_id: number;
            /**
             * Format: date-time
             * @description When the project was created
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When the project was deleted; null for an existing project
             */
            deleted_at: string | null;
            /** @description Free text */
            description: string | null;
            /** @description Whether this is the client's default project, which cannot be deleted */
            is_default: boolean;
            /** @description Name of the project */
            name: string;
            /**
             * @description `ACTIVE`, or `DELETED` once it is deleted
             * @enum {unknown}
             */
            state: "ACTIVE" | "DELETED";
            /** @description Always null: changes of a project are done at once */
            task_id: string | null;
        };
        ProjectCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["Project"][];
        };
        PullSecret: {
            /** @description Name of the pull secret */
            name: string;
            /** @description Registry as in the request */
            registry: string;
            /** @description User name at the registry */
            login: string;
            /**
             * Format: date-time
             * @description When the pull secret last changed
             */
            updated_at: string;
        };
        PullSecretCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["PullSecret"][];
        };
        PullSecretVerification: {
            /** @description Whether the registry accepted the login and password */
            verified: boolean;
            /**
             * @description `accepted`: the login is valid; `refused`: it is not; `not_asked`: the registry needs no login; `no_registry`: the host is not a registry; `unreachable`: it does not respond; `not_allowed`: this server must not connect to it, or only without encryption; `unusable`: no client can use this registry or login
             * @enum {unknown}
             */
            outcome: "accepted" | "refused" | "not_asked" | "no_registry" | "unreachable" | "not_allowed" | "unusable";
            /** @description The result as text */
            message: string;
        };
        QuotaDrift: {
            /** @description ID of the client */
            client_id: number;
            /** @description ID of the region; null: a global quota */
            region_id: number | null;
            /** @description Kind of quota, such as `volume_count` */
            kind: string;
            /** @description The usage that limits are checked against */
            counted: number;
            /** @description The usage of the resources */
            in_use: number;
        };
        QuotaDriftCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["QuotaDrift"][];
        };
        /** @description Limit and usage of a quota */
        QuotaFigure: {
            /** @description Limit of the quota */
            limit: number;
            /** @description Usage of the quota */
            usage: number;
        };
        /** @description Limit: basic bare metal servers; null: the default */
        QuotaLimitOrDefault: number | null;
        QuotaRequest: {
            /** @description ID of the request */
            id: number;
            /** @description ID of the client */
            client_id: number;
            /** @description Why the limits are needed */
            description: string;
            requested_limits: components["schemas"]["RequestedLimits"];
            /**
             * @description `in progress`, `done` (approved) or `rejected`
             * @enum {unknown}
             */
            status: "done" | "in progress" | "rejected";
            /** @description What the operator wrote about the decision, or null */
            reason: string | null;
            /**
             * Format: date-time
             * @description When the request was created
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When the request was decided; null until then
             */
            updated_at: string | null;
        };
        QuotaRequestCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["QuotaRequest"][];
        };
        /** @description Quotas that reached the threshold */
        QuotasMessage: {
            global_quotas: components["schemas"]["GlobalQuotasMessage"];
            /** @description Quotas of each region that reached the threshold */
            regional_quotas: components["schemas"]["RegionalQuotasMessage"][];
        };
        Readiness: {
            /** @description `ready` */
            status: string;
        };
        Region: {
            /** @description ID of the region */
            id: number;
            /**
             * @description Always `core`
             * @enum {unknown}
             */
            access_level: "core" | "edge";
            /** @description Types of volumes; null unless `show_volume_types` is true */
            available_volume_types: string[] | null;
            coordinates: components["schemas"]["Coordinates"] | null;
            /** @description Country code, ISO 3166-1 alpha-2 */
            country: string;
            /**
             * Format: date-time
             * @description When the region was first declared
             */
            created_at: string;
            /**
             * Format: date-time
             * @deprecated
             * @description Use `created_at`
             */
            created_on: string;
            /** @description Always null */
            ddos_endpoint_id: number | null;
            /** @description Name of the region */
            display_name: string;
            /**
             * @description Always `public`
             * @enum {unknown}
             */
            endpoint_type: "admin" | "internal" | "public";
            /** @description Always null */
            external_network_id: string | null;
            /** @description Types of file shares that the region offers */
            file_share_types: ("standard" | "vast")[] | null;
            /** @description Whether the region has AI clusters; always false */
            has_ai: boolean;
            /** @description Whether the region has GPU clusters; always false */
            has_ai_gpu: boolean;
            /** @description Whether the region has bare metal servers; always false */
            has_baremetal: boolean;
            /** @description Whether the region has basic virtual machines; always false */
            has_basic_vm: boolean;
            /** @description Whether the region has managed databases; always false */
            has_dbaas: boolean;
            /** @description Whether the region has DDoS protection; always false */
            has_ddos: boolean;
            /** @description Whether the region has managed Kubernetes; always false */
            has_k8s: boolean;
            /** @description Whether the region has virtual machines; always false */
            has_kvm: boolean;
            /** @description Whether the region has file shares */
            has_sfs: boolean;
            /** @description Internal ID */
            keystone_id: number;
            /** @description Internal name */
            keystone_name: string;
            /** @description Always null */
            metrics_database_id: number | null;
            /** @description Short name for URLs */
            slug: string;
            /**
             * @description Always `ACTIVE`
             * @enum {unknown}
             */
            state: "ACTIVE" | "DELETED" | "DELETING" | "DELETION_FAILED" | "INACTIVE" | "MAINTENANCE" | "NEW";
            /** @description Always null */
            task_id: string | null;
            /** @description Internal name of the physical network */
            vlan_physical_network: string;
            zone: ("AMERICAS" | "APAC" | "EMEA" | "RUSSIA_AND_CIS") | null;
        };
        RegionCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["Region"][];
        };
        RegionalLimits: {
            /** @description ID of the region */
            region_id?: number;
            /** @description Limit: basic bare metal servers */
            baremetal_basic_count_limit?: number;
            /** @description Limit: bare metal servers with A100 GPU */
            baremetal_gpu_a100_count_limit?: number;
            /** @description Limit: bare metal servers with H100 GPU */
            baremetal_gpu_h100_count_limit?: number;
            /** @description Limit: bare metal servers with H200 GPU */
            baremetal_gpu_h200_count_limit?: number;
            /** @description Limit: bare metal servers with L40S GPU */
            baremetal_gpu_l40s_count_limit?: number;
            /** @description Limit: high-frequency bare metal servers */
            baremetal_hf_count_limit?: number;
            /** @description Limit: infrastructure bare metal servers */
            baremetal_infrastructure_count_limit?: number;
            /** @description Limit: bare metal networks */
            baremetal_network_count_limit?: number;
            /** @description Limit: storage bare metal servers */
            baremetal_storage_count_limit?: number;
            /** @description Limit: containers */
            caas_container_count_limit?: number;
            /** @description Limit: container mCPU */
            caas_cpu_count_limit?: number;
            /** @description Limit: container GPUs */
            caas_gpu_count_limit?: number;
            /** @description Limit: container memory, MB */
            caas_ram_size_limit?: number;
            /** @description Limit: Kubernetes clusters */
            cluster_count_limit?: number;
            /** @description Limit: vCPUs */
            cpu_count_limit?: number;
            /** @description Limit: managed database clusters */
            dbaas_postgres_cluster_count_limit?: number;
            /** @description Limit: external IPs */
            external_ip_count_limit?: number;
            /** @description Limit: function mCPU */
            faas_cpu_count_limit?: number;
            /** @description Limit: functions */
            faas_function_count_limit?: number;
            /** @description Limit: function namespaces */
            faas_namespace_count_limit?: number;
            /** @description Limit: function memory, MB */
            faas_ram_size_limit?: number;
            /** @description Limit: firewalls */
            firewall_count_limit?: number;
            /** @description Limit: floating IPs */
            floating_count_limit?: number;
            /** @description Limit: GPUs */
            gpu_count_limit?: number;
            /** @description Limit: virtual A100 GPU cards */
            gpu_virtual_a100_count_limit?: number;
            /** @description Limit: virtual H100 GPU cards */
            gpu_virtual_h100_count_limit?: number;
            /** @description Limit: virtual H200 GPU cards */
            gpu_virtual_h200_count_limit?: number;
            /** @description Limit: virtual L40S GPU cards */
            gpu_virtual_l40s_count_limit?: number;
            /** @description Limit: images */
            image_count_limit?: number;
            /** @description Limit: images size, GiB */
            image_size_limit?: number;
            /** @description Limit: IPUs */
            ipu_count_limit?: number;
            /** @description Limit: log-service topics */
            laas_topic_count_limit?: number;
            /** @description Limit: load balancers */
            loadbalancer_count_limit?: number;
            /** @description Limit: networks */
            network_count_limit?: number;
            /** @description Limit: RAM, GiB */
            ram_limit?: number;
            /** @description Limit: registries */
            registry_count_limit?: number;
            /** @description Limit: registry storage, GiB */
            registry_storage_limit?: number;
            /** @description Limit: routers */
            router_count_limit?: number;
            /** @description Limit: secrets */
            secret_count_limit?: number;
            /** @description Limit: placement groups */
            servergroup_count_limit?: number;
            /** @description Limit: file shares */
            sfs_count_limit?: number;
            /** @description Limit: file shares size, GiB */
            sfs_size_limit?: number;
            /** @description Limit: basic VMs */
            shared_vm_count_limit?: number;
            /** @description Limit: Slurm clusters */
            slurm_cluster_count_limit?: number;
            /** @description Limit: snapshot schedules */
            snapshot_schedule_count_limit?: number;
            /** @description Limit: subnets */
            subnet_count_limit?: number;
            /** @description Limit: dedicated instances */
            vm_count_limit?: number;
            /** @description Limit: volumes */
            volume_count_limit?: number;
            /** @description Limit: volumes size, GiB */
            volume_size_limit?: number;
            /** @description Limit: snapshots */
            volume_snapshots_count_limit?: number;
            /** @description Limit: snapshots size, GiB */
            volume_snapshots_size_limit?: number;
        };
        RegionalQuotas: components["schemas"]["RegionalLimits"] & {
            /** @description Usage: basic bare metal servers */
            baremetal_basic_count_usage?: number;
            /** @description Usage: bare metal servers with A100 GPU */
            baremetal_gpu_a100_count_usage?: number;
            /** @description Usage: bare metal servers with H100 GPU */
            baremetal_gpu_h100_count_usage?: number;
            /** @description Usage: bare metal servers with H200 GPU */
            baremetal_gpu_h200_count_usage?: number;
            /** @description Usage: bare metal servers with L40S GPU */
            baremetal_gpu_l40s_count_usage?: number;
            /** @description Usage: high-frequency bare metal servers */
            baremetal_hf_count_usage?: number;
            /** @description Usage: infrastructure bare metal servers */
            baremetal_infrastructure_count_usage?: number;
            /** @description Usage: bare metal networks */
            baremetal_network_count_usage?: number;
            /** @description Usage: storage bare metal servers */
            baremetal_storage_count_usage?: number;
            /** @description Usage: containers */
            caas_container_count_usage?: number;
            /** @description Usage: container mCPU */
            caas_cpu_count_usage?: number;
            /** @description Usage: container GPUs */
            caas_gpu_count_usage?: number;
            /** @description Usage: container memory, MB */
            caas_ram_size_usage?: number;
            /** @description Usage: Kubernetes clusters */
            cluster_count_usage?: number;
            /** @description Usage: vCPUs */
            cpu_count_usage?: number;
            /** @description Usage: managed database clusters */
            dbaas_postgres_cluster_count_usage?: number;
            /** @description Usage: external IPs */
            external_ip_count_usage?: number;
            /** @description Usage: function mCPU */
            faas_cpu_count_usage?: number;
            /** @description Usage: functions */
            faas_function_count_usage?: number;
            /** @description Usage: function namespaces */
            faas_namespace_count_usage?: number;
            /** @description Usage: function memory, MB */
            faas_ram_size_usage?: number;
            /** @description Usage: firewalls */
            firewall_count_usage?: number;
            /** @description Usage: floating IPs */
            floating_count_usage?: number;
            /** @description Usage: GPUs */
            gpu_count_usage?: number;
            /** @description Usage: virtual A100 GPU cards */
            gpu_virtual_a100_count_usage?: number;
            /** @description Usage: virtual H100 GPU cards */
            gpu_virtual_h100_count_usage?: number;
            /** @description Usage: virtual H200 GPU cards */
            gpu_virtual_h200_count_usage?: number;
            /** @description Usage: virtual L40S GPU cards */
            gpu_virtual_l40s_count_usage?: number;
            /** @description Usage: images */
            image_count_usage?: number;
            /** @description Usage: images size, GiB */
            image_size_usage?: number;
            /** @description Usage: IPUs */
            ipu_count_usage?: number;
            /** @description Usage: log-service topics */
            laas_topic_count_usage?: number;
            /** @description Usage: load balancers */
            loadbalancer_count_usage?: number;
            /** @description Usage: networks */
            network_count_usage?: number;
            /** @description Usage: RAM, GiB */
            ram_usage?: number;
            /** @description Usage: registries */
            registry_count_usage?: number;
            /** @description Usage: registry storage, GiB */
            registry_storage_usage?: number;
            /** @description Usage: routers */
            router_count_usage?: number;
            /** @description Usage: secrets */
            secret_count_usage?: number;
            /** @description Usage: placement groups */
            servergroup_count_usage?: number;
            /** @description Usage: file shares */
            sfs_count_usage?: number;
            /** @description Usage: file shares size, GiB */
            sfs_size_usage?: number;
            /** @description Usage: basic VMs */
            shared_vm_count_usage?: number;
            /** @description Usage: Slurm clusters */
            slurm_cluster_count_usage?: number;
            /** @description Usage: snapshot schedules */
            snapshot_schedule_count_usage?: number;
            /** @description Usage: subnets */
            subnet_count_usage?: number;
            /** @description Usage: dedicated instances */
            vm_count_usage?: number;
            /** @description Usage: volumes */
            volume_count_usage?: number;
            /** @description Usage: volumes size, GiB */
            volume_size_usage?: number;
            /** @description Usage: snapshots */
            volume_snapshots_count_usage?: number;
            /** @description Usage: snapshots size, GiB */
            volume_snapshots_size_usage?: number;
        };
        RegionalQuotasMessage: {
            /** @description ID of the region */
            region_id: components["schemas"]["IntegerId"];
            /** @description Name of the region */
            region_name: string;
            baremetal_basic_count_limit?: components["schemas"]["QuotaFigure"];
            baremetal_basic_count_usage?: components["schemas"]["QuotaFigure"];
            baremetal_gpu_a100_count_limit?: components["schemas"]["QuotaFigure"];
            baremetal_gpu_a100_count_usage?: components["schemas"]["QuotaFigure"];
            baremetal_gpu_h100_count_limit?: components["schemas"]["QuotaFigure"];
            baremetal_gpu_h100_count_usage?: components["schemas"]["QuotaFigure"];
            baremetal_gpu_h200_count_limit?: components["schemas"]["QuotaFigure"];
            baremetal_gpu_h200_count_usage?: components["schemas"]["QuotaFigure"];
            baremetal_gpu_l40s_count_limit?: components["schemas"]["QuotaFigure"];
            baremetal_gpu_l40s_count_usage?: components["schemas"]["QuotaFigure"];
            baremetal_hf_count_limit?: components["schemas"]["QuotaFigure"];
            baremetal_hf_count_usage?: components["schemas"]["QuotaFigure"];
            baremetal_infrastructure_count_limit?: components["schemas"]["QuotaFigure"];
            baremetal_infrastructure_count_usage?: components["schemas"]["QuotaFigure"];
            baremetal_network_count_limit?: components["schemas"]["QuotaFigure"];
            baremetal_network_count_usage?: components["schemas"]["QuotaFigure"];
            baremetal_storage_count_limit?: components["schemas"]["QuotaFigure"];
            baremetal_storage_count_usage?: components["schemas"]["QuotaFigure"];
            caas_container_count_limit?: components["schemas"]["QuotaFigure"];
            caas_container_count_usage?: components["schemas"]["QuotaFigure"];
            caas_cpu_count_limit?: components["schemas"]["QuotaFigure"];
            caas_cpu_count_usage?: components["schemas"]["QuotaFigure"];
            caas_gpu_count_limit?: components["schemas"]["QuotaFigure"];
            caas_gpu_count_usage?: components["schemas"]["QuotaFigure"];
            caas_ram_size_limit?: components["schemas"]["QuotaFigure"];
            caas_ram_size_usage?: components["schemas"]["QuotaFigure"];
            cluster_count_limit?: components["schemas"]["QuotaFigure"];
            cluster_count_usage?: components["schemas"]["QuotaFigure"];
            cpu_count_limit?: components["schemas"]["QuotaFigure"];
            cpu_count_usage?: components["schemas"]["QuotaFigure"];
            dbaas_postgres_cluster_count_limit?: components["schemas"]["QuotaFigure"];
            dbaas_postgres_cluster_count_usage?: components["schemas"]["QuotaFigure"];
            external_ip_count_limit?: components["schemas"]["QuotaFigure"];
            external_ip_count_usage?: components["schemas"]["QuotaFigure"];
            faas_cpu_count_limit?: components["schemas"]["QuotaFigure"];
            faas_cpu_count_usage?: components["schemas"]["QuotaFigure"];
            faas_function_count_limit?: components["schemas"]["QuotaFigure"];
            faas_function_count_usage?: components["schemas"]["QuotaFigure"];
            faas_namespace_count_limit?: components["schemas"]["QuotaFigure"];
            faas_namespace_count_usage?: components["schemas"]["QuotaFigure"];
            faas_ram_size_limit?: components["schemas"]["QuotaFigure"];
            faas_ram_size_usage?: components["schemas"]["QuotaFigure"];
            firewall_count_limit?: components["schemas"]["QuotaFigure"];
            firewall_count_usage?: components["schemas"]["QuotaFigure"];
            floating_count_limit?: components["schemas"]["QuotaFigure"];
            floating_count_usage?: components["schemas"]["QuotaFigure"];
            gpu_count_limit?: components["schemas"]["QuotaFigure"];
            gpu_count_usage?: components["schemas"]["QuotaFigure"];
            gpu_virtual_a100_count_limit?: components["schemas"]["QuotaFigure"];
            gpu_virtual_a100_count_usage?: components["schemas"]["QuotaFigure"];
            gpu_virtual_h100_count_limit?: components["schemas"]["QuotaFigure"];
            gpu_virtual_h100_count_usage?: components["schemas"]["QuotaFigure"];
            gpu_virtual_h200_count_limit?: components["schemas"]["QuotaFigure"];
            gpu_virtual_h200_count_usage?: components["schemas"]["QuotaFigure"];
            gpu_virtual_l40s_count_limit?: components["schemas"]["QuotaFigure"];
            gpu_virtual_l40s_count_usage?: components["schemas"]["QuotaFigure"];
            image_count_limit?: components["schemas"]["QuotaFigure"];
            image_count_usage?: components["schemas"]["QuotaFigure"];
            image_size_limit?: components["schemas"]["QuotaFigure"];
            image_size_usage?: components["schemas"]["QuotaFigure"];
            ipu_count_limit?: components["schemas"]["QuotaFigure"];
            ipu_count_usage?: components["schemas"]["QuotaFigure"];
            laas_topic_count_limit?: components["schemas"]["QuotaFigure"];
            laas_topic_count_usage?: components["schemas"]["QuotaFigure"];
            loadbalancer_count_limit?: components["schemas"]["QuotaFigure"];
            loadbalancer_count_usage?: components["schemas"]["QuotaFigure"];
            network_count_limit?: components["schemas"]["QuotaFigure"];
            network_count_usage?: components["schemas"]["QuotaFigure"];
            ram_limit?: components["schemas"]["QuotaFigure"];
            ram_usage?: components["schemas"]["QuotaFigure"];
            registry_count_limit?: components["schemas"]["QuotaFigure"];
            registry_count_usage?: components["schemas"]["QuotaFigure"];
            registry_storage_limit?: components["schemas"]["QuotaFigure"];
            registry_storage_usage?: components["schemas"]["QuotaFigure"];
            router_count_limit?: components["schemas"]["QuotaFigure"];
            router_count_usage?: components["schemas"]["QuotaFigure"];
            secret_count_limit?: components["schemas"]["QuotaFigure"];
            secret_count_usage?: components["schemas"]["QuotaFigure"];
            servergroup_count_limit?: components["schemas"]["QuotaFigure"];
            servergroup_count_usage?: components["schemas"]["QuotaFigure"];
            sfs_count_limit?: components["schemas"]["QuotaFigure"];
            sfs_count_usage?: components["schemas"]["QuotaFigure"];
            sfs_size_limit?: components["schemas"]["QuotaFigure"];
            sfs_size_usage?: components["schemas"]["QuotaFigure"];
            shared_vm_count_limit?: components["schemas"]["QuotaFigure"];
            shared_vm_count_usage?: components["schemas"]["QuotaFigure"];
            slurm_cluster_count_limit?: components["schemas"]["QuotaFigure"];
            slurm_cluster_count_usage?: components["schemas"]["QuotaFigure"];
            snapshot_schedule_count_limit?: components["schemas"]["QuotaFigure"];
            snapshot_schedule_count_usage?: components["schemas"]["QuotaFigure"];
            subnet_count_limit?: components["schemas"]["QuotaFigure"];
            subnet_count_usage?: components["schemas"]["QuotaFigure"];
            vm_count_limit?: components["schemas"]["QuotaFigure"];
            vm_count_usage?: components["schemas"]["QuotaFigure"];
            volume_count_limit?: components["schemas"]["QuotaFigure"];
            volume_count_usage?: components["schemas"]["QuotaFigure"];
            volume_size_limit?: components["schemas"]["QuotaFigure"];
            volume_size_usage?: components["schemas"]["QuotaFigure"];
            volume_snapshots_count_limit?: components["schemas"]["QuotaFigure"];
            volume_snapshots_count_usage?: components["schemas"]["QuotaFigure"];
            volume_snapshots_size_limit?: components["schemas"]["QuotaFigure"];
            volume_snapshots_size_usage?: components["schemas"]["QuotaFigure"];
        };
        Registry: {
            /** @description ID of the registry */
            id: number;
            /** @description Name of the registry */
            name: string;
            /**
             * Format: date-time
             * @description When the registry was created
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When the registry last changed
             */
            updated_at: string;
            /** @description Number of repositories */
            repo_count: number;
            /** @description Storage limit in GiB */
            storage_limit: number;
            /** @description Storage in use in bytes; each blob is counted once */
            storage_used: number;
            /** @description Prefix of image names, `host:port/prefix`; an image is `<url>/<repository>:<tag>` */
            url: string;
        };
        RegistryArtifact: {
            /** @description ID of the artifact */
            id: number;
            /** @description Digest of the manifest, `sha256:<hex>` */
            digest: string;
            /** @description ID of the registry */
            registry_id: number;
            /** @description ID of the repository */
            repository_id: number;
            /** @description Size in bytes of the manifest and of everything that it refers to. That of an index includes the sizes of its images; a layer of several images counts for each */
            size: number;
            /**
             * Format: date-time
             * @description When it was last pushed
             */
            pushed_at: string;
            /**
             * Format: date-time
             * @description When it was last pulled; `0001-01-01T00:00:00Z`: never
             */
            pulled_at: string;
            /** @description Tags of the artifact */
            tags: components["schemas"]["RegistryTag"][];
        };
        RegistryArtifactCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["RegistryArtifact"][];
        };
        RegistryCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["Registry"][];
        };
        RegistryRepository: {
            /** @description ID of the repository */
            id: number;
            /** @description Name of the repository without the prefix of the registry */
            name: string;
            /** @description ID of the registry */
            registry_id: number;
            /** @description Number of artifacts */
            artifact_count: number;
            /** @description Number of pulls */
            pull_count: number;
            /**
             * Format: date-time
             * @description When the repository was first pushed to
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When the repository last changed
             */
            updated_at: string;
        };
        RegistryRepositoryCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["RegistryRepository"][];
        };
        /** @description Only the quotas that would be exceeded */
        RegistryRequiredQuota: {
            /** @description Limit of the number of registries */
            registry_count_limit?: number;
            /** @description Number of registries requested */
            registry_count_requested?: number;
            /** @description Number of registries in use */
            registry_count_usage?: number;
            /** @description Limit of the sum of all storage limits in GiB */
            registry_storage_limit?: number;
            /** @description Storage limit requested in GiB */
            registry_storage_requested?: number;
            /** @description Sum of all storage limits in GiB */
            registry_storage_usage?: number;
        };
        RegistryTag: {
            /** @description ID of the tag */
            id: number;
            /** @description Name of the tag */
            name: string;
            /** @description ID of the artifact */
            artifact_id: number;
            /** @description ID of the repository */
            repository_id: number;
            /**
             * Format: date-time
             * @description When it was last pushed
             */
            pushed_at: string;
            /**
             * Format: date-time
             * @description When it was last pulled; `0001-01-01T00:00:00Z`: never
             */
            pulled_at: string;
        };
        RegistryToken: {
            /** @description The token, a JWT */
            token: string;
            /** @description The same token, as OAuth 2 names it */
            access_token: string;
            /** @description Seconds until the token expires */
            expires_in: number;
            /**
             * Format: date-time
             * @description When the token was issued
             */
            issued_at: string;
        };
        RegistryTokenForm: {
            /** @description Always `password` */
            grant_type?: string;
            /** @description Name of the registry host */
            service?: string;
            /** @description Requested access, `repository:<name>:<actions>`; several are separated by spaces */
            scope?: string;
            /** @description Name of the user, or `apikey` */
            username?: string;
            /** @description Secret of the user, or a token of this API under the name `apikey` */
            password?: string;
        };
        RegistryUser: {
            /** @description ID of the user */
            id: number;
            /** @description Name with which the user logs in */
            name: string;
            /**
             * Format: date-time
             * @description When the user was created
             */
            created_at: string;
            /** @description Days from the last request that set it until the user expires; -1: never */
            duration: number;
            /**
             * Format: date-time
             * @description When the user expires; `9999-12-31T00:00:00Z`: never
             */
            expires_at: string;
            /** @description Whether the user can only pull */
            read_only: boolean;
        };
        RegistryUserCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["RegistryUser"][];
        };
        RegistryUserWithSecret: {
            /** @description ID of the user */
            id: number;
            /** @description Name with which the user logs in */
            name: string;
            /**
             * Format: date-time
             * @description When the user was created
             */
            created_at: string;
            /** @description Days from the last request that set it until the user expires; -1: never */
            duration: number;
            /**
             * Format: date-time
             * @description When the user expires; `9999-12-31T00:00:00Z`: never
             */
            expires_at: string;
            /** @description Whether the user can only pull */
            read_only: boolean;
            /** @description Secret with which the user logs in; never returned again */
            secret: string;
        };
        /** @description All new users in `results`; the other fields are those of the first one */
        RegistryUsersWithSecrets: {
            /** @description ID of the user */
            id: number;
            /** @description Name with which the user logs in */
            name: string;
            /**
             * Format: date-time
             * @description When the user was created
             */
            created_at: string;
            /** @description Days from the last request that set it until the user expires; -1: never */
            duration: number;
            /**
             * Format: date-time
             * @description When the user expires; `9999-12-31T00:00:00Z`: never
             */
            expires_at: string;
            /** @description Whether the user can only pull */
            read_only: boolean;
            /** @description Secret with which the user logs in; never returned again */
            secret: string;
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["RegistryUserWithSecret"][];
        };
        RemoveLifecyclePolicySchedules: {
            /** @description IDs of schedules of the policy */
            schedule_ids: string[];
        };
        RenameListener: {
            name: components["schemas"]["Name"];
        };
        ReplaceLbPoolHealthMonitor: {
            /** @description Whether members are checked; true by default */
            admin_state_up?: boolean;
            /** @description Time between two checks of a member, in seconds */
            delay: number;
            /** @description Host name of HTTP and HTTPS checks, in the header `Host` and as the TLS server name */
            domain_name?: string | null;
            /** @description HTTP statuses of a healthy member: statuses and ranges, such as `200,202,300-302`; `200` by default */
            expected_codes?: string | null;
            /** @description Method of HTTP and HTTPS checks; `GET` by default */
            http_method?: components["schemas"]["HttpMethod"] | null;
            /** @description Version of HTTP and HTTPS checks; null: `1.1` with a `domain_name`, otherwise `1.0` */
            http_version?: ("1.0" | "1.1") | null;
            /** @description Number of successful checks in a row after which a member is up */
            max_retries: number;
            /** @description Number of failed checks in a row after which a member is down; 3 by default */
            max_retries_down?: number;
            /** @description Time limit of a check in seconds; less than `delay` */
            timeout: number;
            /** @description Path of HTTP and HTTPS checks; `/` by default */
            url_path?: string | null;
            /** @description Accepted and ignored */
            id?: string | null;
            /** @description Accepted and ignored */
            operating_status?: string | null;
            /** @description Accepted and ignored */
            provisioning_status?: string | null;
            /** @description Type of the checks; null: the current type. Required for a new monitor */
            type?: components["schemas"]["HealthMonitorType"] | null;
        };
        ReplaceLbPoolMembers: components["schemas"]["CreateLbPoolMember"][];
        /** @description Tags as a map from key to value; a key with null is ignored */
        ReplaceLoadBalancerTags: {
            [key: string]: string | null;
        };
        /** @description Limits that hold everywhere */
        RequestedGlobalLimits: {
            /** @description Limit: inference mCPU */
            inference_cpu_millicore_count_limit?: number;
            /** @description Limit: inference A100 GPUs */
            inference_gpu_a100_count_limit?: number;
            /** @description Limit: inference H100 GPUs */
            inference_gpu_h100_count_limit?: number;
            /** @description Limit: inference L40S GPUs */
            inference_gpu_l40s_count_limit?: number;
            /** @description Limit: inference instances */
            inference_instance_count_limit?: number;
            /** @description Limit: API keys of public inference models */
            inference_public_model_api_key_count_limit?: number;
            /** @description Limit: SSH key pairs */
            keypair_count_limit?: number;
            /** @description Limit: projects */
            project_count_limit?: number;
        };
        /** @description The limits that were requested */
        RequestedLimits: {
            global_limits?: components["schemas"]["GlobalLimits"];
            /** @description Limits in regions */
            regional_limits?: components["schemas"]["RegionalLimits"][];
        };
        RequestedRegionalLimits: {
            /** @description ID of the region */
            region_id?: components["schemas"]["IntegerId"];
            /**
             * @deprecated
             * @description Ignored
             */
            baremetal_gpu_count_limit?: number;
            /** @description Limit: basic bare metal servers */
            baremetal_basic_count_limit?: number;
            /** @description Limit: bare metal servers with A100 GPU */
            baremetal_gpu_a100_count_limit?: number;
            /** @description Limit: bare metal servers with H100 GPU */
            baremetal_gpu_h100_count_limit?: number;
            /** @description Limit: bare metal servers with H200 GPU */
            baremetal_gpu_h200_count_limit?: number;
            /** @description Limit: bare metal servers with L40S GPU */
            baremetal_gpu_l40s_count_limit?: number;
            /** @description Limit: high-frequency bare metal servers */
            baremetal_hf_count_limit?: number;
            /** @description Limit: infrastructure bare metal servers */
            baremetal_infrastructure_count_limit?: number;
            /** @description Limit: bare metal networks */
            baremetal_network_count_limit?: number;
            /** @description Limit: storage bare metal servers */
            baremetal_storage_count_limit?: number;
            /** @description Limit: containers */
            caas_container_count_limit?: number;
            /** @description Limit: container mCPU */
            caas_cpu_count_limit?: number;
            /** @description Limit: container GPUs */
            caas_gpu_count_limit?: number;
            /** @description Limit: container memory, MB */
            caas_ram_size_limit?: number;
            /** @description Limit: Kubernetes clusters */
            cluster_count_limit?: number;
            /** @description Limit: vCPUs */
            cpu_count_limit?: number;
            /** @description Limit: managed database clusters */
            dbaas_postgres_cluster_count_limit?: number;
            /** @description Limit: external IPs */
            external_ip_count_limit?: number;
            /** @description Limit: function mCPU */
            faas_cpu_count_limit?: number;
            /** @description Limit: functions */
            faas_function_count_limit?: number;
            /** @description Limit: function namespaces */
            faas_namespace_count_limit?: number;
            /** @description Limit: function memory, MB */
            faas_ram_size_limit?: number;
            /** @description Limit: firewalls */
            firewall_count_limit?: number;
            /** @description Limit: floating IPs */
            floating_count_limit?: number;
            /** @description Limit: GPUs */
            gpu_count_limit?: number;
            /** @description Limit: virtual A100 GPU cards */
            gpu_virtual_a100_count_limit?: number;
            /** @description Limit: virtual H100 GPU cards */
            gpu_virtual_h100_count_limit?: number;
            /** @description Limit: virtual H200 GPU cards */
            gpu_virtual_h200_count_limit?: number;
            /** @description Limit: virtual L40S GPU cards */
            gpu_virtual_l40s_count_limit?: number;
            /** @description Limit: images */
            image_count_limit?: number;
            /** @description Limit: images size, GiB */
            image_size_limit?: number;
            /** @description Limit: IPUs */
            ipu_count_limit?: number;
            /** @description Limit: log-service topics */
            laas_topic_count_limit?: number;
            /** @description Limit: load balancers */
            loadbalancer_count_limit?: number;
            /** @description Limit: networks */
            network_count_limit?: number;
            /** @description Limit: RAM, GiB */
            ram_limit?: number;
            /** @description Limit: registries */
            registry_count_limit?: number;
            /** @description Limit: registry storage, GiB */
            registry_storage_limit?: number;
            /** @description Limit: routers */
            router_count_limit?: number;
            /** @description Limit: secrets */
            secret_count_limit?: number;
            /** @description Limit: placement groups */
            servergroup_count_limit?: number;
            /** @description Limit: file shares */
            sfs_count_limit?: number;
            /** @description Limit: file shares size, GiB */
            sfs_size_limit?: number;
            /** @description Limit: basic VMs */
            shared_vm_count_limit?: number;
            /** @description Limit: Slurm clusters */
            slurm_cluster_count_limit?: number;
            /** @description Limit: snapshot schedules */
            snapshot_schedule_count_limit?: number;
            /** @description Limit: subnets */
            subnet_count_limit?: number;
            /** @description Limit: dedicated instances */
            vm_count_limit?: number;
            /** @description Limit: volumes */
            volume_count_limit?: number;
            /** @description Limit: volumes size, GiB */
            volume_size_limit?: number;
            /** @description Limit: snapshots */
            volume_snapshots_count_limit?: number;
            /** @description Limit: snapshots size, GiB */
            volume_snapshots_size_limit?: number;
        };
        ResizeLoadBalancer: {
            /**
             * @description New flavor; flavors differ in price only
             * @example lb1-1-2
             */
            flavor: string;
        };
        ResizeRegistry: {
            /**
             * @description New storage limit in GiB
             * @default 5
             */
            storage_limit: number;
        };
        ResourceEvent: {
            /** @description Opaque ID of the event, the same on all servers */
            id: string;
            /** @description Kind of the resource, such as `file_share` */
            kind: string;
            /** @description ID of the resource */
            resource_id: string;
            /**
             * @description What happened to it
             * @enum {unknown}
             */
            change: "created" | "updated" | "deleted";
            /** @description ID of the client; null if the resource belongs to none */
            client_id: number | null;
            /** @description ID of the project; null if the resource belongs to none */
            project_id: number | null;
            /** @description ID of the region; null if the resource belongs to none */
            region_id: number | null;
            /** @description ID of the task that the change belongs to */
            task_id: string | null;
            /**
             * Format: date-time
             * @description When the change was made
             */
            at: string;
        };
        /** @description Number of all matches, on this page or not */
        ResultCount: number;
        RetentionTime: {
            /** @description Weeks of the retention time */
            weeks: number | null;
            /** @description Days of the retention time */
            days: number | null;
            /** @description Hours of the retention time */
            hours: number | null;
            /** @description Minutes of the retention time */
            minutes: number | null;
        };
        RetypeVolume: {
            /**
             * @description New type, one that the region offers
             * @enum {unknown}
             */
            volume_type: "ssd_hiiops" | "standard";
        };
        RunFailure: {
            /**
             * Format: uuid
             * @description ID of the volume
             */
            volume_id: string;
            /** @description Why the volume has no snapshot */
            message: string;
        };
        RunLifecyclePolicy: {
            /** @description Only these schedules; by default all */
            schedule_ids?: string[];
        };
        RunSnapshot: {
            /**
             * Format: uuid
             * @description ID of the volume
             */
            volume_id: string;
            /**
             * Format: uuid
             * @description ID of the snapshot
             */
            snapshot_id: string;
        };
        SchedulePreview: {
            /** @description The next run times; fewer than `count` if the schedule ends */
            runs: components["schemas"]["ScheduleRunTime"][];
        };
        ScheduleRunTime: {
            /** @description Time of the run in UTC */
            utc: string;
            /** @description The same time with the offset of the time zone of the schedule */
            local: string;
        };
        Secret: {
            /**
             * Format: uuid
             * @description ID of the secret
             */
            id: string;
            /** @description Name of the secret */
            name: string;
            /**
             * @description Type of the secret; load balancers use certificates
             * @enum {unknown}
             */
            secret_type: "certificate" | "opaque" | "passphrase" | "private" | "public" | "symmetric";
            /** @description `ACTIVE` */
            status: string;
            /** @description Algorithm */
            algorithm: string | null;
            /** @description Length of the key in bits */
            bit_length: number | null;
            /** @description Mode of the algorithm */
            mode: string | null;
            /** @description Media types of the payload */
            content_types: {
                [key: string]: string;
            } | null;
            /**
             * Format: date-time
             * @description When the secret was created
             */
            created: string;
            /**
             * Format: date-time
             * @description From this date on, resources cannot use the secret; null: no limit
             */
            expiration: string | null;
        };
        SecretCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["Secret"][];
        };
        /** @description Name, version and links of the server */
        ServerIndex: {
            /** @description The name of the software */
            name: string;
            /** @description The version of the server */
            version: string;
            links: components["schemas"]["ServerLinks"];
        };
        /** @description Paths on this server */
        ServerLinks: {
            /** @description The web console; absent if this server does not serve it */
            console?: string;
            /** @description The API reference, a web page */
            reference: string;
            /** @description The OpenAPI document */
            openapi: string;
            /** @description Liveness */
            health: string;
            /** @description Readiness */
            readiness: string;
            /** @description The drivers of all workers and their status */
            drivers: string;
        };
        Session: {
            /** @description ID of the token */
            token_id: number;
            /** @description Name of the token; may be empty */
            token_name: string;
            /** @description ID of the client */
            client_id: number;
            /** @description Name of the client */
            client_name: string;
            /**
             * @description Role of the token
             * @enum {unknown}
             */
            role: "reader" | "member" | "admin";
            /** @description Whether the client operates this Cloudyard */
            is_operator: boolean;
            /** @description Projects that the token is limited to; null: all of the client */
            project_ids: number[] | null;
            /**
             * Format: date-time
             * @description When the session ends even if it is used
             */
            expires_at: string;
            /** @description Seconds without a request after which the session ends */
            idle_timeout_seconds: number;
            /** @description Send it in the header `X-CSRF-Token` of requests that change something */
            csrf_token: string;
            /** @description Whether the server runs in development mode */
            is_development: boolean;
        };
        SetNotificationThreshold: {
            /**
             * @description Percentage of the limit
             * @default 80
             */
            threshold: number;
            /** @description Ignored */
            last_message?: components["schemas"]["QuotasMessage"] | null;
            /**
             * Format: iso-date-time
             * @description Ignored
             */
            last_sending?: string | null;
        };
        SignInMethods: {
            /** @description Whether people can sign in with an OpenID Connect provider */
            oidc: boolean;
            /** @description URL of the provider */
            issuer: string | null;
        };
        Snapshot: {
            /**
             * Format: uuid
             * @description ID of the snapshot
             */
            id: string;
            /** @description Name of the snapshot */
            name: string;
            /**
             * Format: date-time
             * @description When the snapshot was requested
             */
            created_at: string;
            /** @description Text of the request that created the snapshot */
            description: string | null;
            /**
             * @deprecated
             * @description Use `tags`; the Terraform provider reads this name
             */
            metadata: {
                [key: string]: string;
            };
            /** @description ID of the project */
            project_id: number;
            /** @description Name of the region */
            region: string;
            /** @description ID of the region */
            region_id: number;
            /**
             * Format: uuid
             * @description ID of the task that created the resource
             */
            creator_task_id: string;
            task_id: components["schemas"]["ActiveTaskId"];
            /** @description Size in GiB: that of the volume when the snapshot was requested */
            size: number;
            /**
             * @description State of the snapshot; only `available` snapshots can be copied or restored
             * @enum {unknown}
             */
            status: "available" | "backing-up" | "creating" | "deleted" | "deleting" | "error" | "error_deleting" | "restoring" | "unmanaging";
            /** @description Tags, by key; snapshots of a lifecycle policy have the read-only tag `created_by_policy` */
            tags: components["schemas"]["Tag"][];
            /**
             * Format: date-time
             * @description When the snapshot last changed
             */
            updated_at: string;
            /**
             * Format: uuid
             * @description ID of the volume
             */
            volume_id: string;
        };
        SnapshotCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["Snapshot"][];
        };
        Subnet: {
            /**
             * Format: uuid
             * @description ID of the subnet
             */
            id: string;
            /** @description Name of the subnet */
            name: string;
            /** @description Number of free addresses */
            available_ips: number | null;
            /** @description Address range in CIDR notation */
            cidr: string;
            /**
             * Format: date-time
             * @description When the subnet was created
             */
            created_at: string;
            /**
             * Format: uuid
             * @description ID of the task that created the subnet; null for a default subnet
             */
            creator_task_id: string | null;
            task_id: components["schemas"]["ActiveTaskId"];
            /** @description Addresses of DNS servers */
            dns_nameservers: string[];
            /** @description Whether DHCP is on */
            enable_dhcp: boolean;
            /** @description Address of the gateway; null: no gateway */
            gateway_ip: string | null;
            /**
             * @deprecated
             * @description Always false
             */
            has_router: boolean;
            /** @description Static routes */
            host_routes: {
                /** @description Destination network */
                destination: string;
                /** @description Address of the router */
                nexthop: string;
            }[];
            /**
             * @description Version of the Internet Protocol
             * @enum {unknown}
             */
            ip_version: 4 | 6;
            /**
             * Format: uuid
             * @description ID of the network
             */
            network_id: string;
            /** @description ID of the project */
            project_id: number;
            /** @description Name of the region */
            region: string;
            /** @description ID of the region */
            region_id: number;
            /** @description Tags, by key */
            tags: components["schemas"]["Tag"][];
            /**
             * @deprecated
             * @description Use `tags`; the Terraform provider reads this name
             */
            metadata: components["schemas"]["Tag"][];
            /** @description Number of addresses */
            total_ips: number | null;
            /**
             * Format: date-time
             * @description When the subnet last changed
             */
            updated_at: string;
        };
        SubnetCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["Subnet"][];
        };
        SubscribeToUserActions: {
            /**
             * Format: uri
             * @description URL that begins with `https://` or `http://`
             */
            url: string;
            /** @description Name of a header of each call, as HTTP allows it: without spaces and colons */
            auth_header_name: string;
            /** @description Value of that header, printable ASCII without spaces at the ends. It is also the key of the signature (HMAC-SHA256) of each call */
            auth_header_value: string;
        };
        Tag: {
            /** @description Key of the tag */
            key: string;
            /** @description Whether the system manages the tag */
            read_only: boolean;
            /** @description Value of the tag */
            value: string;
        };
        TagCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["Tag"][];
        };
        Task: {
            /**
             * Format: uuid
             * @description ID of the task
             */
            id: string;
            /**
             * @description State of the task
             * @enum {unknown}
             */
            state: "ERROR" | "FINISHED" | "NEW" | "RUNNING";
            /** @description What the task does, such as `create_volume` */
            task_type: string;
            /** @description Kind of the resource, such as `volume` */
            resource_kind: string;
            /** @description ID of the resource */
            resource_id: string;
            /** @description Why the task failed, for people; null otherwise */
            error: string | null;
            /** @description IDs of the resources that the task creates, by kind, such as `{"volumes": ["<id>"]}` */
            created_resources: {
                [key: string]: (string | number)[];
            } | null;
            /** @description Parameters of the task, such as the ID of its resource (`volume_id`); they depend on its type */
            data: {
                [key: string]: unknown;
            } | null;
            /** @description The final state; null until the task ends */
            detailed_state: ("FINISHED" | "ERROR") | null;
            /** @description When the task was created */
            created_on: string | null;
            /** @description When the task last changed */
            updated_on: string | null;
            /** @description When the task ended; null until then */
            finished_on: string | null;
            /** @description When the task was acknowledged; null until then */
            acknowledged_at: string | null;
            /** @description ID of the token that acknowledged the task */
            acknowledged_by: number | null;
            /** @description ID of the client whose resource the task changes */
            client_id: number | null;
            /** @description ID of the client of the token */
            user_client_id: number | null;
            /** @description ID of the token that started the task */
            user_id: number;
            /** @description ID of the project */
            project_id: number | null;
            /** @description ID of the region */
            region_id: number | null;
            /** @description ID of the request that started the task */
            request_id: string | null;
            /** @description ID of the job, for the operator */
            job_id: string | null;
            /** @description ID of the lifecycle policy that started the task */
            lifecycle_policy_id: number | null;
            /** @description ID of the schedule that started the task */
            schedule_id: string | null;
        };
        TaskCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["Task"][];
        };
        TaskIds: {
            /** @description IDs of the tasks; each operation starts one */
            tasks: string[];
        };
        TimeZoneStatus: {
            /** @description Release of the IANA time zone database that schedules follow, and its source */
            detail: string;
            /** @description The ID of the worker process */
            worker: string;
            /** @description The regions of the worker; empty: deliveries only */
            region_ids: number[];
        };
        /** @description The certificate of this server, if it serves HTTPS */
        TlsStatus: {
            /** @description false: the certificate has expired, or a new one cannot be used */
            healthy: boolean;
            /** @description The names of the certificate, or its problem */
            detail: string;
            /**
             * Format: date-time
             * @description When the certificate expires; null: there is none yet
             */
            expires_at: string | null;
        };
        Token: {
            /** @description ID of the token */
            id: number;
            /** @description The part of the token before the `$` */
            key_id: string;
            /** @description ID of the client */
            client_id: number;
            /** @description Name of the token; may be empty */
            name: string;
            role: components["schemas"]["TokenRole"];
            /** @description Projects that the token is limited to; null: all projects of the client */
            project_ids: number[] | null;
            /**
             * @description Only `active` tokens are accepted
             * @enum {unknown}
             */
            state: "active" | "expired" | "revoked";
            /**
             * Format: date-time
             * @description When the token was created
             */
            created_at: string;
            /**
             * Format: date-time
             * @description When the token expires; null: never
             */
            expires_at: string | null;
            /**
             * Format: date-time
             * @description When the token was revoked
             */
            revoked_at: string | null;
            /**
             * Format: date-time
             * @description When a request last had the token, up to a minute late; null: never
             */
            last_used_at: string | null;
        };
        TokenCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["Token"][];
        };
        /**
         * @description `reader` reads, `member` also changes, `admin` also manages projects, tokens and webhooks
         * @enum {unknown}
         */
        TokenRole: "reader" | "member" | "admin";
        /** @description Omitted fields are unchanged */
        UpdateApiKey: {
            /** @description Containers that the key opens, at most 10,000; a key without containers opens none; null: none */
            containers?: components["schemas"]["ApiKeyContainerInput"][] | null;
            /** @description Any text; null: none */
            description?: string | null;
            /**
             * Format: iso-date-time
             * @description When the key expires, ISO 8601, UTC if it has no offset; null: never
             */
            expire?: string | null;
            /** @description Whether the key opens nothing for now; null: unchanged */
            is_disabled?: boolean | null;
        };
        UpdateClient: {
            /** @description New name, unique, without control characters; only the operator may set it */
            name?: string;
            /** @description Addresses that receive notifications; at most 20 */
            emails?: string[];
        };
        UpdateClientQuotas: {
            /** @description ID of the region, for regional kinds */
            region_id?: components["schemas"]["IntegerId"];
            baremetal_basic_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: bare metal servers with A100 GPU; null: the default */
            baremetal_gpu_a100_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: bare metal servers with H100 GPU; null: the default */
            baremetal_gpu_h100_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: bare metal servers with H200 GPU; null: the default */
            baremetal_gpu_h200_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: bare metal servers with L40S GPU; null: the default */
            baremetal_gpu_l40s_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: high-frequency bare metal servers; null: the default */
            baremetal_hf_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: infrastructure bare metal servers; null: the default */
            baremetal_infrastructure_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: bare metal networks; null: the default */
            baremetal_network_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: storage bare metal servers; null: the default */
            baremetal_storage_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: containers; null: the default */
            caas_container_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: container mCPU; null: the default */
            caas_cpu_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: container GPUs; null: the default */
            caas_gpu_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: container memory, MB; null: the default */
            caas_ram_size_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: Kubernetes clusters; null: the default */
            cluster_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: vCPUs; null: the default */
            cpu_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: managed database clusters; null: the default */
            dbaas_postgres_cluster_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: external IPs; null: the default */
            external_ip_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: function mCPU; null: the default */
            faas_cpu_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: functions; null: the default */
            faas_function_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: function namespaces; null: the default */
            faas_namespace_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: function memory, MB; null: the default */
            faas_ram_size_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: firewalls; null: the default */
            firewall_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: floating IPs; null: the default */
            floating_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: GPUs; null: the default */
            gpu_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: virtual A100 GPU cards; null: the default */
            gpu_virtual_a100_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: virtual H100 GPU cards; null: the default */
            gpu_virtual_h100_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: virtual H200 GPU cards; null: the default */
            gpu_virtual_h200_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: virtual L40S GPU cards; null: the default */
            gpu_virtual_l40s_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: images; null: the default */
            image_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: images size, GiB; null: the default */
            image_size_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: IPUs; null: the default */
            ipu_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: log-service topics; null: the default */
            laas_topic_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: load balancers; null: the default */
            loadbalancer_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: networks; null: the default */
            network_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: RAM, GiB; null: the default */
            ram_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: registries; null: the default */
            registry_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: registry storage, GiB; null: the default */
            registry_storage_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: routers; null: the default */
            router_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: secrets; null: the default */
            secret_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: placement groups; null: the default */
            servergroup_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: file shares; null: the default */
            sfs_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: file shares size, GiB; null: the default */
            sfs_size_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: basic VMs; null: the default */
            shared_vm_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: Slurm clusters; null: the default */
            slurm_cluster_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: snapshot schedules; null: the default */
            snapshot_schedule_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: subnets; null: the default */
            subnet_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: dedicated instances; null: the default */
            vm_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: volumes; null: the default */
            volume_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: volumes size, GiB; null: the default */
            volume_size_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: snapshots; null: the default */
            volume_snapshots_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: snapshots size, GiB; null: the default */
            volume_snapshots_size_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: inference mCPU; null: the default */
            inference_cpu_millicore_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: inference A100 GPUs; null: the default */
            inference_gpu_a100_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: inference H100 GPUs; null: the default */
            inference_gpu_h100_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: inference L40S GPUs; null: the default */
            inference_gpu_l40s_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: inference instances; null: the default */
            inference_instance_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: API keys of public inference models; null: the default */
            inference_public_model_api_key_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: SSH key pairs; null: the default */
            keypair_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
            /** @description Limit: projects; null: the default */
            project_count_limit?: components["schemas"]["QuotaLimitOrDefault"];
        };
        UpdateFileShare: {
            name?: components["schemas"]["Name"];
            share_settings?: components["schemas"]["FileShareSettingsInput"];
            /** @description The current size in GiB; to change it, use the operation `extend` */
            size?: number;
            tags?: components["schemas"]["UpdateTags"];
        };
        /** @description The target of the action is required; other omitted fields are unchanged */
        UpdateL7Policy: {
            action: components["schemas"]["L7PolicyAction"];
            /** @description Name of the policy: 3 to 63 letters, digits, spaces, `.`, `_` and `-`, starting with a letter or digit and not ending with a space or `-`; empty by default. It may be empty only if the policy has no name */
            name?: string;
            /** @description Position among the policies of the listener, from 1. A new policy moves those from its position down; without a position, or with one beyond the end, it is the last */
            position?: number;
            /** @description Status of the redirect, 301, 302, 303, 307, 308, for REDIRECT_TO_URL and REDIRECT_PREFIX; 302 by default */
            redirect_http_code?: (301 | 302 | 303 | 307 | 308) | null;
            /**
             * Format: uuid
             * @description ID of the pool that gets the requests, for REDIRECT_TO_POOL: a pool of the same load balancer
             */
            redirect_pool_id?: string | null;
            /** @description URL that the path and query of the request are appended to, for REDIRECT_PREFIX */
            redirect_prefix?: string | null;
            /** @description URL that requests are redirected to, for REDIRECT_TO_URL */
            redirect_url?: string | null;
            tags?: components["schemas"]["L7Tags"];
        };
        /** @description Omitted fields are unchanged */
        UpdateL7Rule: {
            type?: components["schemas"]["L7RuleType"];
            compare_type?: components["schemas"]["L7RuleCompareType"];
            /** @description Value to compare with, 1 to 255 characters. FILE_TYPE: the extension (`jpg`); SSL_CONN_HAS_CERT: `True`; SSL_VERIFY_RESULT: the number of the result */
            value?: string;
            /** @description Whether the result of the comparison is inverted; false by default */
            invert?: boolean;
            /** @description Name of the header or cookie, or field of the distinguished name (`CN`); required for HEADER, COOKIE, SSL_DN_FIELD. Empty or null: none */
            key?: string | null;
            tags?: components["schemas"]["L7Tags"];
        };
        UpdateLbPool: {
            ca_secret_id?: components["schemas"]["MemberCaSecretId"];
            crl_secret_id?: components["schemas"]["MemberCrlSecretId"];
            secret_id?: components["schemas"]["MemberSecretId"];
            /** @description Keeps a client on the same member; null: off */
            session_persistence?: components["schemas"]["LbPoolSessionPersistenceInput"] | null;
            timeout_client_data?: components["schemas"]["LbPoolClientDataTimeout"];
            timeout_member_connect?: components["schemas"]["LbPoolMemberConnectTimeout"];
            timeout_member_data?: components["schemas"]["LbPoolMemberDataTimeout"];
            /** @description Whether members get traffic */
            admin_state_up?: boolean;
            /** @description Replaces the health monitor; null removes it */
            healthmonitor?: components["schemas"]["ReplaceLbPoolHealthMonitor"] | null;
            lb_algorithm?: components["schemas"]["LbPoolAlgorithm"];
            /** @description Replaces the members, at most 1,000; a member with the same address and port keeps its ID; null removes all */
            members?: components["schemas"]["CreateLbPoolMember"][] | null;
            name?: components["schemas"]["Name"];
            protocol?: components["schemas"]["LbPoolProtocol"];
        };
        /** @description Omitted fields are unchanged, null restores the default */
        UpdateLbPoolHealthMonitor: {
            /** @description Whether members are checked; true by default */
            admin_state_up?: boolean;
            /** @description Time between two checks of a member, in seconds */
            delay?: number;
            /** @description Host name of HTTP and HTTPS checks, in the header `Host` and as the TLS server name */
            domain_name?: string | null;
            /** @description HTTP statuses of a healthy member: statuses and ranges, such as `200,202,300-302`; `200` by default */
            expected_codes?: string | null;
            /** @description Method of HTTP and HTTPS checks; `GET` by default */
            http_method?: components["schemas"]["HttpMethod"] | null;
            /** @description Version of HTTP and HTTPS checks; null: `1.1` with a `domain_name`, otherwise `1.0` */
            http_version?: ("1.0" | "1.1") | null;
            /** @description Number of successful checks in a row after which a member is up */
            max_retries?: number;
            /** @description Number of failed checks in a row after which a member is down; 3 by default */
            max_retries_down?: number;
            /** @description Time limit of a check in seconds; less than `delay` */
            timeout?: number;
            /** @description Path of HTTP and HTTPS checks; `/` by default */
            url_path?: string | null;
            /** @description Accepted and ignored */
            id?: string | null;
            /** @description Accepted and ignored */
            operating_status?: string | null;
            /** @description Accepted and ignored */
            provisioning_status?: string | null;
            /** @description Type of the checks; null: the current type. Required for a new monitor */
            type?: components["schemas"]["HealthMonitorType"] | null;
        };
        UpdateLbPoolMember: {
            /** @description Whether the member gets traffic */
            admin_state_up?: boolean;
            /** @description Whether the member gets traffic only while all others are down */
            backup?: boolean;
            /**
             * Format: ip-address
             * @description Address that the health monitor checks; null: `address`
             */
            monitor_address?: string | null;
            /** @description Port that the health monitor checks; null: `protocol_port` */
            monitor_port?: number | null;
            /** @description Share of the traffic in proportion to the weights of the other members; 1 by default */
            weight?: number;
        };
        UpdateLifecyclePolicy: {
            name?: components["schemas"]["Name"];
            /**
             * @description `active`, or `paused`: no schedule runs and no snapshot expires
             * @enum {unknown}
             */
            status?: "active" | "paused";
        };
        /** @description Omitted fields and an empty `retention_time` are unchanged, null removes. With another `type` the fields of the old one are dropped. A changed interval starts at the change. */
        UpdateLifecyclePolicySchedule: {
            /**
             * @description `cron`: at certain local times; `interval`: at a fixed distance from the creation of the schedule
             * @enum {unknown}
             */
            type?: "cron" | "interval";
            /** @description Number of snapshots of each volume that the schedule keeps */
            max_quantity?: number;
            /** @description Name of the snapshots; `{volume_id}`, `{lifecycle_policy_id}`, `{schedule_id}`, `{scheduled_at}` are replaced; by default "Snapshot of volume {volume_id} created by policy {lifecycle_policy_id}" */
            resource_name_template?: string | null;
            /** @description Age at which snapshots are deleted, the sum of the fields; null: no limit */
            retention_time?: components["schemas"]["CreateRetentionTime"] | null;
            /** @description cron: months, 1 to 12 or names such as `jan-mar` */
            month?: string | null;
            /** @description cron: days of the month, 1 to 31, `last`, or weekdays such as `2nd mon` and `last fri` */
            day?: string | null;
            /** @description cron: ISO weeks, 1 to 53 */
            week?: string | null;
            /** @description cron: weekdays, 0 (Monday) to 6 or names such as `mon-fri` */
            day_of_week?: string | null;
            /** @description cron: hours, 0 to 23 */
            hour?: string | null;
            /** @description cron: minutes, 0 to 59 */
            minute?: string | null;
            /** @description cron: IANA name of the time zone of the other fields; `UTC` by default */
            timezone?: string | null;
            /** @description interval: weeks between runs */
            weeks?: number | null;
            /** @description interval: days between runs */
            days?: number | null;
            /** @description interval: hours between runs */
            hours?: number | null;
            /** @description interval: minutes between runs */
            minutes?: number | null;
        };
        UpdateListener: {
            /** @description Whether the listener accepts connections */
            admin_state_up?: boolean;
            allowed_cidrs?: components["schemas"]["AllowedCidrs"];
            /** @description Maximum number of open connections; more connections wait (UDP: are dropped). -1: 100,000, 0: no connections are accepted */
            connection_limit?: number;
            name?: components["schemas"]["Name"];
            /**
             * Format: uuid
             * @description ID of the secret with the certificate; required for `TERMINATED_HTTPS`, optional for `PROMETHEUS`, otherwise not supported
             */
            secret_id?: string | null;
            /** @description IDs of secrets with further certificates, selected by the TLS server name; requires `secret_id`. Null removes all */
            sni_secret_id?: string[] | null;
            timeout_client_data?: components["schemas"]["ListenerClientDataTimeout"];
            timeout_member_connect?: components["schemas"]["ListenerMemberConnectTimeout"];
            timeout_member_data?: components["schemas"]["ListenerMemberDataTimeout"];
            /** @description Users for HTTP basic authentication, at most 3; only for `HTTP`, `TERMINATED_HTTPS` and `PROMETHEUS`. Null removes all */
            user_list?: components["schemas"]["ListenerUser"][] | null;
        };
        UpdateLoadBalancer: {
            name?: components["schemas"]["Name"];
            /** @description Log settings, stored and returned without effect: no log service is connected; null: none */
            logging?: components["schemas"]["LoadBalancerLoggingInput"] | null;
            /**
             * @description Stored and returned without effect: members are always reached by their IP addresses (L3)
             * @enum {unknown}
             */
            preferred_connectivity?: "L2" | "L3";
            tags?: components["schemas"]["UpdateTags"];
            /** @description Whether the listeners accept connections; false: the load balancer is off */
            admin_state_up?: boolean;
        };
        UpdateLoadBalancerV1: {
            name?: components["schemas"]["Name"];
            /** @description Log settings, stored and returned without effect: no log service is connected; null: none */
            logging?: components["schemas"]["LoadBalancerLoggingInput"] | null;
            /**
             * @description Stored and returned without effect: members are always reached by their IP addresses (L3)
             * @enum {unknown}
             */
            preferred_connectivity?: "L2" | "L3";
            tags?: components["schemas"]["UpdateTags"];
            /** @description Accepted and ignored: the Terraform provider sends null when its configuration names no flavor */
            flavor?: null;
        };
        UpdateNetwork: {
            name?: components["schemas"]["Name"];
            tags?: components["schemas"]["UpdateTags"];
        };
        UpdateProject: {
            name?: components["schemas"]["Name"];
            /** @description Free text, up to 255 characters */
            description?: string | null;
        };
        /** @description Fields that are omitted or null are unchanged */
        UpdatePullSecret: {
            /** @description Registry as for `docker login`: `registry.example.com:5000`, `https://ghcr.io`, `docker.io`. Other text is accepted and cannot be used (`verify` says why), except credentials in a URL. */
            registry?: string | null;
            /** @description User name at the registry, without control characters */
            login?: string | null;
            /**
             * Format: password
             * @description Password or access token at the registry, without control characters
             */
            password?: string | null;
        };
        UpdateRegistryUser: {
            /** @description Days until the user expires, from now; -1: never, 0: at once */
            duration: number;
            /** @description Whether the user can only pull; unchanged when omitted */
            read_only?: boolean;
        };
        UpdateSnapshot: {
            name?: components["schemas"]["Name"];
            tags?: components["schemas"]["UpdateTags"];
        };
        UpdateSubnet: {
            /** @description Addresses of DNS servers; at most 16 */
            dns_nameservers?: string[] | null;
            /** @description Whether DHCP is on; default: true */
            enable_dhcp?: boolean;
            /**
             * Format: ip-address
             * @description Address of the gateway; null: no gateway
             */
            gateway_ip?: string | null;
            /** @description Static routes; at most 64 */
            host_routes?: components["schemas"]["HostRoute"][] | null;
            name?: components["schemas"]["Name"] | null;
            tags?: components["schemas"]["UpdateTags"];
        };
        /** @description JSON Merge Patch (RFC 7386): a value adds or changes a tag, null removes it, and omitted tags are unchanged. Null instead of the map removes all user-managed tags. Read-only tags are always kept. */
        UpdateTags: {
            [key: string]: string | null;
        } | null;
        UpdateVolume: {
            name?: components["schemas"]["Name"];
            /** @description The current size in GiB; to change it, use the operation `extend` */
            size?: number;
            tags?: components["schemas"]["UpdateTags"];
        };
        UpdateWebhook: {
            /**
             * Format: uri
             * @description Absolute `https` or `http` URL with a host
             */
            url?: string;
            /** @description The new key of the signature; null: a generated one */
            secret?: string | null;
        };
        UpdatedWebhook: {
            /**
             * Format: uuid
             * @description ID of the webhook
             */
            id: string;
            /** @description URL of the receiver, normalized */
            url: string;
            /**
             * Format: date-time
             * @description When the webhook was created
             */
            created_at: string;
            /** @description The new key of the signature, if the request changed it */
            secret?: string;
        };
        UserAction: {
            /** @description ID of the entry of the audit log */
            id: string;
            /**
             * Format: date-time
             * @description When the action was accepted
             */
            timestamp: string;
            action_type: components["schemas"]["UserActionType"];
            api_group: components["schemas"]["UserActionGroup"];
            /** @description Whether the subscriber has received it */
            acknowledged: boolean;
            /** @description `operation` and `request_id` of the request */
            action_data: {
                [key: string]: unknown;
            } | null;
            /** @description ID of the client */
            client_id: number | null;
            /** @description ID of the project */
            project_id: number | null;
            /** @description ID of the region */
            region_id: number | null;
            /** @description ID of the token; 0 for a command on the host */
            user_id: number;
            /** @description ID of the token; null for a command on the host */
            token_id: number | null;
            /** @description Always null */
            issued_by_user_id: number | null;
            /** @description Always null */
            email: string | null;
            /** @description Address of the client of the request */
            source_user_ip: string | null;
            /** @description User-Agent of the request */
            user_agent: string | null;
            /** @description ID of the task that the action started; null: none, or it was removed */
            task_id: string | null;
            /** @description false: the entry was too large and is cut off */
            is_complete: boolean;
            /** @description The resources that the action changed */
            resources: components["schemas"]["UserActionResource"][];
            /** @description Always null */
            total_price: components["schemas"]["UserActionPrice"] | null;
        };
        UserActionCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["UserAction"][];
        };
        UserActionDelivery: {
            /** @description ID of the user action */
            user_action_id: string;
            state: components["schemas"]["DeliveryState"];
            /** @description Failed attempts since the last replay */
            failures: number;
            /**
             * Format: date-time
             * @description When the next attempt is due; null when there is none
             */
            next_attempt_at: string | null;
            /** @description The last attempts, oldest first */
            attempts: components["schemas"]["DeliveryAttempt"][];
        };
        /**
         * @description Group of operations
         * @enum {unknown}
         */
        UserActionGroup: "ai_cluster" | "baremetal" | "basic_vm" | "caas_container" | "caas_key" | "caas_pull_secret" | "dbaas_postgres" | "ddos_profile" | "faas_function" | "faas_key" | "faas_namespace" | "file_shares" | "floating_ip" | "image" | "inference_at_the_edge" | "instance" | "instance_isolation" | "k8s_cluster" | "k8s_cluster_template" | "k8s_pool" | "laas" | "laas_topic" | "lb_health_monitor" | "lb_l7policy" | "lb_l7rule" | "lblistener" | "lbpool" | "lbpool_member" | "lifecycle_policy" | "lifecycle_policy_volume_member" | "loadbalancer" | "network" | "port" | "project" | "quota_limit_request" | "registry" | "reservation" | "reserved_fixed_ip" | "role" | "router" | "rtbh" | "secret" | "securitygroup" | "securitygrouprule" | "servergroup" | "shared_flavor" | "shared_image" | "shared_network" | "slurm" | "snapshot" | "snapshot_schedule" | "ssh_key" | "subnet" | "user" | "vip_ip_addresses" | "volume";
        UserActionPrice: {
            /** @description ISO 4217 code */
            currency_code: string | null;
            /** @description Price per hour */
            price_per_hour: number | null;
            /** @description Price per month */
            price_per_month: number | null;
            /**
             * @description Whether the price is known
             * @enum {unknown}
             */
            price_status: "error" | "hide" | "show";
        };
        UserActionResource: {
            /** @description ID of the resource */
            resource_id: string;
            /**
             * @description Type of the resource
             * @enum {unknown}
             */
            resource_type: "caas_key" | "file_shares" | "lb_l7policy" | "lb_l7rule" | "lblistener" | "lbpool_member" | "lbpool" | "lifecycle_policy" | "snapshot_schedule" | "lifecycle_policy_volume_member" | "loadbalancer" | "network" | "project" | "caas_pull_secret" | "quota_limit_request" | "registry" | "registry_repository_artifact" | "registry_repository" | "registry_repository_tag" | "registry_user" | "secret" | "snapshot" | "subnet" | "volume";
            /** @description The fields that changed, or all fields of a new or deleted resource; secrets are redacted */
            resource_body: {
                [key: string]: unknown;
            } | null;
            /** @description Name of the resource, if it is among the changed fields */
            search_field: string | null;
        };
        UserActionSubscription: {
            /** @description ID of the subscription */
            id: number;
            /** @description URL of the receiver */
            url: string;
            /** @description Name of a header of each call */
            auth_header_name: string;
            /** @description Value of that header */
            auth_header_value: string;
        };
        UserActionSubscriptionCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["UserActionSubscription"][];
        };
        /**
         * @description Type of the action
         * @enum {unknown}
         */
        UserActionType: "activate" | "attach" | "change_logging_resources" | "create" | "create_access_rule" | "deactivate" | "delete" | "delete_access_rule" | "delete_metadata" | "detach" | "disable_logging" | "disable_portsecurity" | "download" | "enable_logging" | "enable_portsecurity" | "failover" | "get_certificate" | "get_console" | "get_kubeconfig" | "get_logs" | "put_into_servergroup" | "reboot" | "reboot_hard" | "rebuild" | "regenerate_credentials" | "remove_from_servergroup" | "replace" | "replace_metadata" | "resize" | "resume" | "retype" | "revert" | "scale_down" | "scale_up" | "start" | "stop" | "suspend" | "update" | "update_metadata" | "upgrade";
        Volume: {
            /**
             * Format: uuid
             * @description ID of the volume
             */
            id: string;
            /** @description Name of the volume */
            name: string;
            /** @description Always empty: instances are not supported */
            attachments: components["schemas"]["VolumeAttachment"][];
            /** @description Always false */
            bootable: boolean;
            /**
             * Format: date-time
             * @description When the volume was requested
             */
            created_at: string;
            /** @description Always false */
            is_root_volume: boolean;
            /** @description Always null */
            limiter_stats: null;
            /**
             * @deprecated
             * @description Use `tags`
             */
            metadata: {
                [key: string]: string;
            };
            /**
             * @deprecated
             * @description Use `tags`
             */
            metadata_detailed: components["schemas"]["Tag"][];
            /** @description ID of the project */
            project_id: number;
            /** @description Name of the region */
            region: string;
            /** @description ID of the region */
            region_id: number;
            /**
             * Format: uuid
             * @description ID of the task that created the resource
             */
            creator_task_id: string;
            task_id: components["schemas"]["ActiveTaskId"];
            /** @description Size in GiB; during an extension the old size */
            size: number;
            /** @description IDs of the snapshots of the volume, oldest first */
            snapshot_ids: string[];
            /**
             * @description State of the volume; `available` volumes are ready, `error` volumes failed or lost their data and can be deleted, or reverted if they have a snapshot
             * @enum {unknown}
             */
            status: "attaching" | "available" | "awaiting-transfer" | "backing-up" | "creating" | "deleting" | "detaching" | "downloading" | "error" | "error_backing-up" | "error_deleting" | "error_extending" | "error_restoring" | "extending" | "in-use" | "maintenance" | "reserved" | "restoring-backup" | "retyping" | "reverting" | "uploading";
            /** @description Tags, by key */
            tags: components["schemas"]["Tag"][];
            /**
             * Format: date-time
             * @description When the volume last changed
             */
            updated_at: string;
            /** @description Always null: images are not supported */
            volume_image_metadata: null;
            volume_type: components["schemas"]["VolumeTypeName"];
        };
        VolumeAttachment: {
            /**
             * Format: date-time
             * @description When the volume was attached
             */
            attached_at: string | null;
            /** @description ID of the attachment */
            attachment_id: string;
            /** @description Device of the instance */
            device: string | null;
            /** @description ID of the flavor of the instance */
            flavor_id: string | null;
            /** @description Name of the instance */
            instance_name: string | null;
            /** @description ID of the instance */
            server_id: string | null;
            /**
             * Format: uuid
             * @description ID of the volume
             */
            volume_id: string;
        };
        VolumeCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["Volume"][];
        };
        /**
         * @description Type of the volume
         * @enum {unknown}
         */
        VolumeTypeName: "cold" | "ssd_hiiops" | "ssd_local" | "ssd_lowlatency" | "standard" | "ultra";
        Webhook: {
            /**
             * Format: uuid
             * @description ID of the webhook
             */
            id: string;
            /** @description URL of the receiver, normalized */
            url: string;
            /**
             * Format: date-time
             * @description When the webhook was created
             */
            created_at: string;
        };
        WebhookCollection: {
            count: components["schemas"]["ResultCount"];
            /** @description The matches on this page */
            results: components["schemas"]["Webhook"][];
        };
        /**
         * @description 400 `InvalidInput`: The request is invalid; `errors` names the fields.
         *
         *     401 `Unauthenticated`: The token (or API key) is missing, unknown, expired or revoked.
         *
         *     403 `Forbidden`: The token (or API key) is valid but does not allow the operation.
         *
         *     404 `NotFound`: The resource does not exist or is not visible to this client.
         *
         *     405 `MethodNotAllowed`: The path has no operation with this method; the header `Allow` lists the methods that it has.
         *
         *     409 `ResourceLocked`: A task is changing the resource; the message names the task. Try again when it has ended.
         *
         *     409 `NameTaken`: Another resource has this name.
         *
         *     409 `InUse`: Other resources use this resource; the message names them.
         *
         *     409 `Conflict`: The state of the resource does not allow the operation.
         *
         *     409 `QuotaExceeded`: The request would exceed a quota; the message and `errors` give the figures.
         *
         *     409 `IdempotencyKeyReused`: The `Idempotency-Key` was used for a different request within 24 hours.
         *
         *     413 `BodyTooLarge`: The body is larger than the operation accepts; the message gives the limit.
         *
         *     415 `UnsupportedMediaType`: The body is not `application/json`, or is compressed.
         *
         *     429 `TooManyRequests`: The client, or an address without a valid credential, exceeds a limit; the message names it. See `Retry-After`.
         *
         *     500 `Internal`: Internal error. The server log has the details under the `request_id`.
         *
         *     503 `Unavailable`: The database or the region's worker is not reachable, the database cannot write or is overloaded, the job queue is full, or the address has too many open connections; see `Retry-After`.
         *
         *     507 `InsufficientStorage`: The host of the region has less free space than its reserve; the message names the host.
         * @example {
         *       "exception_class": "InvalidInput",
         *       "message": "the request is invalid",
         *       "request_id": "0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10",
         *       "errors": [
         *         {
         *           "path": "size",
         *           "message": "must be at least 1"
         *         }
         *       ]
         *     }
         */
        Error: {
            /**
             * @description Machine-readable error code
             * @enum {unknown}
             */
            exception_class: "InvalidInput" | "Unauthenticated" | "Forbidden" | "NotFound" | "MethodNotAllowed" | "ResourceLocked" | "NameTaken" | "InUse" | "Conflict" | "QuotaExceeded" | "IdempotencyKeyReused" | "BodyTooLarge" | "UnsupportedMediaType" | "TooManyRequests" | "Internal" | "Unavailable" | "InsufficientStorage";
            /** @description Human-readable error message */
            message: string;
            /** @description ID of the request in the server log; also in the header `X-Request-Id` */
            request_id: string;
            /** @description The invalid fields, at most 100 */
            errors?: {
                /** @description Path of the field, such as `listeners.0.protocol_port` */
                path: string;
                /** @description Error message of the field */
                message: string;
            }[];
        };
    };
    responses: {
        /** @description Success */
        ApiKey: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["ApiKey"];
            };
        };
        /** @description Success */
        Client: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Client"];
            };
        };
        /** @description Success */
        FileShare: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["FileShare"];
            };
        };
        /** @description Success */
        Host: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Host"];
            };
        };
        /** @description Success */
        LifecyclePolicy: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["LifecyclePolicy"];
            };
        };
        /** @description Omitted fields of the request are null or have their defaults */
        LifecyclePolicySchedule: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["LifecyclePolicySchedule"];
            };
        };
        /** @description Success */
        Listener: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Listener"];
            };
        };
        /** @description Success */
        LoadBalancer: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["LoadBalancer"];
            };
        };
        /** @description Only the quotas that would be exceeded */
        LoadBalancerRequiredQuota: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["LoadBalancerRequiredQuota"];
            };
        };
        /** @description Success */
        Network: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Network"];
            };
        };
        /** @description Success */
        Notification: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Notification"];
            };
        };
        /** @description Success */
        NotificationThreshold: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["NotificationThreshold"];
            };
        };
        /** @description Success */
        Price: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Price"];
            };
        };
        /** @description Success */
        Project: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Project"];
            };
        };
        /** @description Success */
        PullSecret: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["PullSecret"];
            };
        };
        /** @description Success */
        QuotaRequest: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["QuotaRequest"];
            };
        };
        /** @description Success */
        Registry: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Registry"];
            };
        };
        /** @description Success */
        RegistryToken: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["RegistryToken"];
            };
        };
        /** @description Success */
        Session: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Session"];
            };
        };
        /** @description Success */
        Snapshot: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Snapshot"];
            };
        };
        /** @description Success */
        Subnet: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Subnet"];
            };
        };
        /** @description Success */
        Tag: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Tag"];
            };
        };
        /** @description Success */
        TagCollection: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["TagCollection"];
            };
        };
        /** @description Success */
        Task: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Task"];
            };
        };
        /** @description Success */
        TaskIds: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                /**
                 * @example {
                 *       "tasks": [
                 *         "0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["TaskIds"];
            };
        };
        /** @description Success */
        UserActionDelivery: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["UserActionDelivery"];
            };
        };
        /** @description Success */
        Volume: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Volume"];
            };
        };
        /** @description Error; `exception_class` contains the error code */
        Error: {
            headers: {
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
    };
    parameters: {
        /**
         * @description ID of the access rule
         * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
         */
        access_rule_id: string;
        /**
         * @description ID of the client
         * @example 1
         */
        client_id: components["schemas"]["IntegerId"];
        /**
         * @description ID of the delivery
         * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
         */
        delivery_id: string;
        /**
         * @description Digest of the artifact
         * @example sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
         */
        digest: string;
        /**
         * @description ID of the fault
         * @example 1
         */
        fault_id: components["schemas"]["IntegerId"];
        /**
         * @description ID of the file share
         * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
         */
        file_share_id: string;
        /**
         * @description Name of the host
         * @example host-1
         */
        host_name: string;
        /**
         * @description Name of the API key
         * @example first-key
         */
        key_name: string;
        /**
         * @description ID of the L7 policy
         * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
         */
        l7policy_id: string;
        /**
         * @description ID of the L7 rule
         * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
         */
        l7rule_id: string;
        /**
         * @description ID of the listener
         * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
         */
        listener_id: string;
        /**
         * @description ID of the load balancer
         * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
         */
        load_balancer_id: string;
        /**
         * @description ID of the member
         * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
         */
        member_id: string;
        /**
         * @description Name of the container
         * @example web
         */
        name: string;
        /**
         * @description Namespace of the container
         * @example default
         */
        namespace: string;
        /**
         * @description ID of the network
         * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
         */
        network_id: string;
        /**
         * @description ID of the notification
         * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
         */
        notification_id: string;
        /**
         * @description ID of the lifecycle policy
         * @example 1
         */
        policy_id: components["schemas"]["IntegerId"];
        /**
         * @description ID of the pool
         * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
         */
        pool_id: string;
        /**
         * @description ID of the project
         * @example 1
         */
        project_id: components["schemas"]["IntegerId"];
        /** @description Only external, or only internal networks */
        query_external: boolean;
        /** @description Key of the tag */
        query_key: string;
        /** @description Maximum number of results */
        query_limit: number;
        /** @description Use `load_balancer_id` */
        query_loadbalancer_id: string;
        /** @description Use `tag_key` */
        query_metadata_k: string;
        /** @description Use `tag_key_value` */
        query_metadata_kv: string;
        /** @description Only networks whose name contains this text */
        query_name: string;
        /** @description Whether the response contains `volumes` */
        query_need_volumes: boolean;
        /** @description Only networks of this type */
        query_network_type: "vlan" | "vxlan";
        /** @description Number of results to skip */
        query_offset: number;
        /** @description Field and direction of the order */
        query_order_by: "created_at.asc" | "created_at.desc" | "name.asc" | "name.desc" | "priority.desc";
        /** @description Only tasks of this project */
        query_project_id: components["schemas"]["FilterId"];
        /** @description Only tasks of this region */
        query_region_id: components["schemas"]["FilterId"];
        /** @description Whether to return traffic counters in `stats` */
        query_show_stats: boolean;
        /** @description Whether to return `available_volume_types` */
        query_show_volume_types: boolean;
        /** @description Use `order_by` */
        query_sorting: "asc" | "desc";
        /** @description Only resources that have a tag with this key; repeat the parameter to require several keys */
        query_tag_key: string[];
        /** @description Only resources that have these tags: a JSON object such as `{"env":"test"}`, or `env=test` */
        query_tag_key_value: string;
        /** @description Maximum time to wait for the end of the task, in seconds */
        query_wait: number;
        /** @description Accepted and ignored */
        query_with_ddos: boolean;
        /**
         * @description ID of the region
         * @example 1
         */
        region_id: components["schemas"]["IntegerId"];
        /**
         * @description ID of the registry
         * @example 1
         */
        registry_id: components["schemas"]["IntegerId"];
        /**
         * @description Name of the repository without the prefix of the registry, such as `team/app`
         * @example team/app
         */
        repository_name: string;
        /**
         * @description ID of the request
         * @example 1
         */
        request_id: components["schemas"]["IntegerId"];
        /**
         * @description ID of the schedule
         * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
         */
        schedule_id: string;
        /**
         * @description ID of the secret
         * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
         */
        secret_id: string;
        /**
         * @description Name of the pull secret
         * @example my-registry
         */
        secret_name: string;
        /**
         * @description ID of the snapshot
         * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
         */
        snapshot_id: string;
        /**
         * @description ID of the subnet
         * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
         */
        subnet_id: string;
        /**
         * @description Name of the tag
         * @example v1
         */
        tag_name: string;
        /**
         * @description ID of the task
         * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
         */
        task_id: string;
        /**
         * @description ID of the token
         * @example 1
         */
        token_id: components["schemas"]["IntegerId"];
        /**
         * @description ID of the user action
         * @example 1
         */
        user_action_id: number;
        /**
         * @description ID of the user of the registry
         * @example 1
         */
        user_id: components["schemas"]["IntegerId"];
        /**
         * @description ID of the volume
         * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
         */
        volume_id: string;
        /**
         * @description ID of the webhook
         * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
         */
        webhook_id: string;
    };
    requestBodies: {
        AttachVolume: {
            content: {
                /**
                 * @example {
                 *       "instance_id": "0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10"
                 *     }
                 */
                "application/json": components["schemas"]["AttachVolume"];
            };
        };
        CheckLoadBalancerLimits: {
            content: {
                /**
                 * @example {
                 *       "floating_ip": {
                 *         "source": "new"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["CheckLoadBalancerLimits"];
            };
        };
        /** @description Address and port identify the member within its pool */
        CreateLbPoolMember: {
            content: {
                /**
                 * @example {
                 *       "address": "10.0.0.11",
                 *       "protocol_port": 8080,
                 *       "weight": 2
                 *     }
                 */
                "application/json": components["schemas"]["CreateLbPoolMember"];
            };
        };
        CreateLifecyclePolicy: {
            content: {
                /**
                 * @example {
                 *       "action": "volume_snapshot",
                 *       "name": "nightly",
                 *       "schedules": [
                 *         {
                 *           "type": "cron",
                 *           "day_of_week": "mon-fri",
                 *           "hour": "3",
                 *           "timezone": "Europe/Luxembourg",
                 *           "max_quantity": 7
                 *         }
                 *       ],
                 *       "volume_ids": [
                 *         "0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["CreateLifecyclePolicy"];
            };
        };
        CreateProject: {
            content: {
                /**
                 * @example {
                 *       "name": "my-project",
                 *       "description": "The project of the web team"
                 *     }
                 */
                "application/json": components["schemas"]["CreateProject"];
            };
        };
        /** @description At most 64 tags as a map from key to value, each of 1 to 255 characters. Keys have no whitespace and no `=`; values have no space at the ends, no tab and no line break. */
        CreateTags: {
            content: {
                /**
                 * @example {
                 *       "team": "web"
                 *     }
                 */
                "application/json": components["schemas"]["CreateTags"];
            };
        };
        DetachVolume: {
            content: {
                /**
                 * @example {
                 *       "instance_id": "0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10"
                 *     }
                 */
                "application/json": components["schemas"]["DetachVolume"];
            };
        };
        LifecyclePolicyVolumeIds: {
            content: {
                /**
                 * @example {
                 *       "volume_ids": [
                 *         "0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["LifecyclePolicyVolumeIds"];
            };
        };
        /** @description At most 64 tags as a map from key to value: keys of 1 to 255 characters, values of up to 255 */
        LoadBalancerMetadata: {
            content: {
                /**
                 * @example {
                 *       "team": "web"
                 *     }
                 */
                "application/json": components["schemas"]["LoadBalancerMetadata"];
            };
        };
        UpdateFileShare: {
            content: {
                /**
                 * @example {
                 *       "name": "renamed-share",
                 *       "tags": {
                 *         "team": null,
                 *         "stage": "test"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["UpdateFileShare"];
            };
        };
        /** @description The target of the action is required; other omitted fields are unchanged */
        UpdateL7Policy: {
            content: {
                /**
                 * @example {
                 *       "action": "REDIRECT_TO_URL",
                 *       "redirect_url": "https://www.example.com/",
                 *       "redirect_http_code": 301
                 *     }
                 */
                "application/json": components["schemas"]["UpdateL7Policy"];
            };
        };
        UpdateLbPool: {
            content: {
                /**
                 * @example {
                 *       "lb_algorithm": "LEAST_CONNECTIONS",
                 *       "session_persistence": {
                 *         "type": "SOURCE_IP"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["UpdateLbPool"];
            };
        };
        UpdateNetwork: {
            content: {
                /**
                 * @example {
                 *       "name": "renamed-network"
                 *     }
                 */
                "application/json": components["schemas"]["UpdateNetwork"];
            };
        };
    };
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    getIndex: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Name, version and links of the server */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ServerIndex"];
                    "text/html": string;
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Health"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getReadiness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Readiness"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getDriverHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DriverStatuses"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getMetrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description One line for each metric, with its help and type */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getOpenApi: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OpenAPI 3.1 */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["OpenApiDocument"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Session"];
            default: components["responses"]["Error"];
        };
    };
    createSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "token": "0123456789ab$secret"
                 *     }
                 */
                "application/json": components["schemas"]["CreateSession"];
            };
        };
        responses: {
            201: components["responses"]["Session"];
            default: components["responses"]["Error"];
        };
    };
    deleteSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    getSignInMethods: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SignInMethods"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    startSignIn: {
        parameters: {
            query?: {
                /** @description Page of the console to show afterwards */
                return_to?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Redirect */
            302: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    finishSignIn: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Redirect */
            302: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    startDeviceSignIn: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeviceSignIn"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    finishDeviceSignIn: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "device": "AWtleS0…"
                 *     }
                 */
                "application/json": components["schemas"]["FinishDeviceSignIn"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeviceToken"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listTokens: {
        parameters: {
            query?: {
                /** @description ID of the client; only the operator may name another client than its own */
                client_id?: components["schemas"]["IntegerId"];
                /** @description Only tokens in this state */
                state?: "active" | "expired" | "revoked";
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TokenCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "ci",
                 *       "role": "member",
                 *       "expires_at": "2030-01-01T00:00:00Z"
                 *     }
                 */
                "application/json": components["schemas"]["CreateToken"];
            };
        };
        responses: {
            /** @description Success */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewToken"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the token
                 * @example 1
                 */
                token_id: components["parameters"]["token_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Token"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    revokeToken: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the token
                 * @example 1
                 */
                token_id: components["parameters"]["token_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    listTasks: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: number;
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
                /** @description Only tasks created at or after this ISO 8601 date */
                from_timestamp?: string;
                /** @description Only tasks created at or before this ISO 8601 date */
                to_timestamp?: string;
                /** @description Only tasks that are, or are not, acknowledged */
                is_acknowledged?: boolean;
                /** @description Order by the creation date; `desc` by default */
                order_by?: "asc" | "desc";
                /** @description Use `order_by` */
                sorting?: components["parameters"]["query_sorting"];
                /** @description Only tasks of these projects */
                project_id?: components["schemas"]["FilterId"][];
                /** @description Only tasks of these regions */
                region_id?: components["schemas"]["FilterId"][];
                /** @description Only tasks of these states */
                state?: ("ERROR" | "FINISHED" | "NEW" | "RUNNING")[];
                /** @description Only tasks of this type, such as `create_volume` */
                task_type?: string;
                /** @description Only tasks of this resource */
                resource_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TaskCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listActiveTasks: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: number;
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
                /** @description Only tasks of these types */
                task_type?: string[];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TaskCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getTask: {
        parameters: {
            query?: {
                /** @description Maximum time to wait for the end of the task, in seconds */
                wait?: components["parameters"]["query_wait"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the task
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                task_id: components["parameters"]["task_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Task"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getTaskShort: {
        parameters: {
            query?: {
                /** @description Maximum time to wait for the end of the task, in seconds */
                wait?: components["parameters"]["query_wait"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the task
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                task_id: components["parameters"]["task_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Task"];
            default: components["responses"]["Error"];
        };
    };
    acknowledgeTask: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the task
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                task_id: components["parameters"]["task_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Task"];
            default: components["responses"]["Error"];
        };
    };
    acknowledgeAllTasks: {
        parameters: {
            query?: {
                /** @description Only tasks of this project */
                project_id?: components["parameters"]["query_project_id"];
                /** @description Only tasks of this region */
                region_id?: components["parameters"]["query_region_id"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    acknowledgeTasks: {
        parameters: {
            query?: {
                /** @description Only tasks of this project */
                project_id?: components["parameters"]["query_project_id"];
                /** @description Only tasks of this region */
                region_id?: components["parameters"]["query_region_id"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "task_ids": [
                 *         "0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["AcknowledgeTasks"];
            };
        };
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    listProjects: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: number;
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
                /** @description Only projects of this client; those of other clients are not visible */
                client_id?: components["schemas"]["FilterId"];
                /** @description Whether to list deleted projects too */
                include_deleted?: boolean;
                /** @description Only projects whose name contains this text */
                name?: string;
                /** @description Field and direction of the order */
                order_by?: "created_at.asc" | "created_at.desc" | "name.asc" | "name.desc";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProjectCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createProject: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: components["requestBodies"]["CreateProject"];
        responses: {
            201: components["responses"]["Project"];
            default: components["responses"]["Error"];
        };
    };
    getProject: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Project"];
            default: components["responses"]["Error"];
        };
    };
    replaceProject: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["CreateProject"];
        responses: {
            200: components["responses"]["Project"];
            default: components["responses"]["Error"];
        };
    };
    deleteProject: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    updateProject: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "name": "renamed-project"
                 *     }
                 */
                "application/json": components["schemas"]["UpdateProject"];
            };
        };
        responses: {
            200: components["responses"]["Project"];
            default: components["responses"]["Error"];
        };
    };
    listRegions: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: number;
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
                /** @description Whether to return `available_volume_types` */
                show_volume_types?: components["parameters"]["query_show_volume_types"];
                /** @description Only the region with this name, in upper or lower case */
                display_name?: string;
                /** @description Field and direction of the order */
                order_by?: "created_at.asc" | "created_at.desc" | "display_name.asc" | "display_name.desc";
                /** @description Only regions with this product; none has one */
                product?: "containers" | "inference";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RegionCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getRegion: {
        parameters: {
            query?: {
                /** @description Whether to return `available_volume_types` */
                show_volume_types?: components["parameters"]["query_show_volume_types"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Region"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listHosts: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: number;
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
                /** @description Only hosts of this region */
                region_id?: components["schemas"]["IntegerId"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["HostCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getHost: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description Name of the host
                 * @example host-1
                 */
                host_name: components["parameters"]["host_name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Host"];
            default: components["responses"]["Error"];
        };
    };
    forgetHost: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description Name of the host
                 * @example host-1
                 */
                host_name: components["parameters"]["host_name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    drainHost: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description Name of the host
                 * @example host-1
                 */
                host_name: components["parameters"]["host_name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Host"];
            default: components["responses"]["Error"];
        };
    };
    undrainHost: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description Name of the host
                 * @example host-1
                 */
                host_name: components["parameters"]["host_name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Host"];
            default: components["responses"]["Error"];
        };
    };
    listNetworks: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
                /** @description Only resources that have a tag with this key; repeat the parameter to require several keys */
                tag_key?: components["parameters"]["query_tag_key"];
                /** @description Only resources that have these tags: a JSON object such as `{"env":"test"}`, or `env=test` */
                tag_key_value?: components["parameters"]["query_tag_key_value"];
                /** @description Use `tag_key` */
                metadata_k?: components["parameters"]["query_metadata_k"];
                /** @description Use `tag_key_value` */
                metadata_kv?: components["parameters"]["query_metadata_kv"];
                /** @description Only external, or only internal networks */
                external?: components["parameters"]["query_external"];
                /** @description Only networks whose name contains this text */
                name?: components["parameters"]["query_name"];
                /** @description Only networks of this type */
                network_type?: components["parameters"]["query_network_type"];
                /** @description Field and direction of the order */
                order_by?: components["parameters"]["query_order_by"];
                /** @description `project`: only networks of the project; `any`: shared ones too */
                owned_by?: "any" | "project";
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NetworkCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createNetwork: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "my-network"
                 *     }
                 */
                "application/json": components["schemas"]["CreateNetwork"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    getNetwork: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the network
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                network_id: components["parameters"]["network_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Network"];
            default: components["responses"]["Error"];
        };
    };
    deleteNetwork: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the network
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                network_id: components["parameters"]["network_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    updateNetworkV1: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the network
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                network_id: components["parameters"]["network_id"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["UpdateNetwork"];
        responses: {
            200: components["responses"]["Network"];
            default: components["responses"]["Error"];
        };
    };
    updateNetwork: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the network
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                network_id: components["parameters"]["network_id"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["UpdateNetwork"];
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    listNetworkMetadata: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the network
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                network_id: components["parameters"]["network_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["TagCollection"];
            default: components["responses"]["Error"];
        };
    };
    replaceNetworkMetadata: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the network
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                network_id: components["parameters"]["network_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["CreateTags"];
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    createNetworkMetadata: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the network
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                network_id: components["parameters"]["network_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["CreateTags"];
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    getNetworkMetadataItem: {
        parameters: {
            query: {
                /** @description Key of the tag */
                key: components["parameters"]["query_key"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the network
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                network_id: components["parameters"]["network_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Tag"];
            default: components["responses"]["Error"];
        };
    };
    deleteNetworkMetadataItem: {
        parameters: {
            query: {
                /** @description Key of the tag */
                key: components["parameters"]["query_key"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the network
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                network_id: components["parameters"]["network_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    listSubnets: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
                /** @description Only resources that have a tag with this key; repeat the parameter to require several keys */
                tag_key?: components["parameters"]["query_tag_key"];
                /** @description Only resources that have these tags: a JSON object such as `{"env":"test"}`, or `env=test` */
                tag_key_value?: components["parameters"]["query_tag_key_value"];
                /** @description Use `tag_key` */
                metadata_k?: components["parameters"]["query_metadata_k"];
                /** @description Use `tag_key_value` */
                metadata_kv?: components["parameters"]["query_metadata_kv"];
                /** @description Only subnets of this network */
                network_id?: string;
                /** @description Field and direction of the order */
                order_by?: "available_ips.asc" | "available_ips.desc" | "cidr.asc" | "cidr.desc" | "created_at.asc" | "created_at.desc" | "name.asc" | "name.desc" | "total_ips.asc" | "total_ips.desc" | "updated_at.asc" | "updated_at.desc";
                /** @description `project`: only subnets of the project; `any`: shared ones too */
                owned_by?: "any" | "project";
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SubnetCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createSubnet: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "my-subnet",
                 *       "network_id": "0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10",
                 *       "cidr": "192.168.10.0/24"
                 *     }
                 */
                "application/json": components["schemas"]["CreateSubnet"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    getSubnet: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the subnet
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                subnet_id: components["parameters"]["subnet_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Subnet"];
            default: components["responses"]["Error"];
        };
    };
    deleteSubnet: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the subnet
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                subnet_id: components["parameters"]["subnet_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    updateSubnet: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the subnet
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                subnet_id: components["parameters"]["subnet_id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "name": "renamed-subnet"
                 *     }
                 */
                "application/json": components["schemas"]["UpdateSubnet"];
            };
        };
        responses: {
            200: components["responses"]["Subnet"];
            default: components["responses"]["Error"];
        };
    };
    listSubnetMetadata: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the subnet
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                subnet_id: components["parameters"]["subnet_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["TagCollection"];
            default: components["responses"]["Error"];
        };
    };
    replaceSubnetMetadata: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the subnet
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                subnet_id: components["parameters"]["subnet_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["CreateTags"];
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    createSubnetMetadata: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the subnet
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                subnet_id: components["parameters"]["subnet_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["CreateTags"];
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    getSubnetMetadataItem: {
        parameters: {
            query: {
                /** @description Key of the tag */
                key: components["parameters"]["query_key"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the subnet
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                subnet_id: components["parameters"]["subnet_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Tag"];
            default: components["responses"]["Error"];
        };
    };
    deleteSubnetMetadataItem: {
        parameters: {
            query: {
                /** @description Key of the tag */
                key: components["parameters"]["query_key"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the subnet
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                subnet_id: components["parameters"]["subnet_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    listAvailableNetworks: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
                /** @description Only resources that have a tag with this key; repeat the parameter to require several keys */
                tag_key?: components["parameters"]["query_tag_key"];
                /** @description Only resources that have these tags: a JSON object such as `{"env":"test"}`, or `env=test` */
                tag_key_value?: components["parameters"]["query_tag_key_value"];
                /** @description Use `tag_key` */
                metadata_k?: components["parameters"]["query_metadata_k"];
                /** @description Use `tag_key_value` */
                metadata_kv?: components["parameters"]["query_metadata_kv"];
                /** @description Only external, or only internal networks */
                external?: components["parameters"]["query_external"];
                /** @description Only networks whose name contains this text */
                name?: components["parameters"]["query_name"];
                /** @description Only networks of this type */
                network_type?: components["parameters"]["query_network_type"];
                /** @description Field and direction of the order */
                order_by?: components["parameters"]["query_order_by"];
                /** @description Only the network with this ID */
                network_id?: string;
                /** @description No network is shared with other projects: `true` returns an empty list */
                shared?: boolean;
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AvailableNetworkCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "my-certificate",
                 *       "payload": {
                 *         "certificate": "-----BEGIN CERTIFICATE-----\nMIIBYzCCAQigAwIBAgIBATAKBggqhkjOPQQDAjAaMRgwFgYDVQQDDA93d3cuZXhh\nbXBsZS5jb20wIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBoxGDAW\nBgNVBAMMD3d3dy5leGFtcGxlLmNvbTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IA\nBJ2i1bypnse6gToUQGD+84X/X1tzztl3HzWVeRAuGBqM+JmU4Qn1jVqVRJLT0pBE\nDOXITZkzxRwiysAbw35iIeWjPTA7MBoGA1UdEQQTMBGCD3d3dy5leGFtcGxlLmNv\nbTAdBgNVHQ4EFgQUKST6NHoTdI3ckUaoMUsitk+WY3swCgYIKoZIzj0EAwIDSQAw\nRgIhAKsNsUbQNiK8ZeF5X9G2JvuRO25Te4JX7jR66EYzAuvQAiEAmzBKOuN8wtUV\nzmp+KW2lUIHtFAewes9KOatwMGZNkw0=\n-----END CERTIFICATE-----",
                 *         "certificate_chain": "",
                 *         "private_key": "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgmlJeDke0sUZEMAg6\nr5rv5K5vD9dHaNa2LiC9fy05ee2hRANCAASdotW8qZ7HuoE6FEBg/vOF/19bc87Z\ndx81lXkQLhgajPiZlOEJ9Y1alUSS09KQRAzlyE2ZM8UcIsrAG8N+YiHl\n-----END PRIVATE KEY-----"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["CreateSecret"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    listSecrets: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SecretCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createSecretV1: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "my-secret",
                 *       "secret_type": "opaque",
                 *       "payload": "c2VjcmV0",
                 *       "payload_content_encoding": "base64",
                 *       "payload_content_type": "application/octet-stream"
                 *     }
                 */
                "application/json": components["schemas"]["CreateSecretV1"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    getSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the secret
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                secret_id: components["parameters"]["secret_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Secret"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    deleteSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the secret
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                secret_id: components["parameters"]["secret_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    listFileShares: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
                /** @description Only shares whose name contains this text */
                name?: string;
                /** @description Only shares of this type; no share is of the type `ddn` */
                type_name?: "ddn" | "standard" | "vast";
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FileShareCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createFileShare: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "my-share",
                 *       "protocol": "NFS",
                 *       "size": 1,
                 *       "network": {
                 *         "network_id": "0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10"
                 *       },
                 *       "access": [
                 *         {
                 *           "access_mode": "rw",
                 *           "ip_address": "10.0.0.0/24"
                 *         }
                 *       ],
                 *       "tags": {
                 *         "team": "web"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["CreateFileShare"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    getFileShare: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the file share
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                file_share_id: components["parameters"]["file_share_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["FileShare"];
            default: components["responses"]["Error"];
        };
    };
    deleteFileShare: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the file share
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                file_share_id: components["parameters"]["file_share_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    updateFileShareV1: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the file share
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                file_share_id: components["parameters"]["file_share_id"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["UpdateFileShare"];
        responses: {
            200: components["responses"]["FileShare"];
            default: components["responses"]["Error"];
        };
    };
    listFileShareUsage: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
                /** @description Only this share */
                file_share_id?: string;
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FileShareUsageCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    updateFileShare: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the file share
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                file_share_id: components["parameters"]["file_share_id"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["UpdateFileShare"];
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    extendFileShare: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the file share
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                file_share_id: components["parameters"]["file_share_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "size": 2
                 *     }
                 */
                "application/json": components["schemas"]["ExtendFileShare"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    listFileShareAccessRules: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the file share
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                file_share_id: components["parameters"]["file_share_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FileShareAccessRuleCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createFileShareAccessRule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the file share
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                file_share_id: components["parameters"]["file_share_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "access_mode": "rw",
                 *       "ip_address": "10.0.0.0/24"
                 *     }
                 */
                "application/json": components["schemas"]["CreateFileShareAccessRule"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FileShareAccessRule"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    deleteFileShareAccessRule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the file share
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                file_share_id: components["parameters"]["file_share_id"];
                /**
                 * @description ID of the access rule
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                access_rule_id: components["parameters"]["access_rule_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    checkFileShareLimits: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "size": 2
                 *     }
                 */
                "application/json": components["schemas"]["CheckFileShareLimits"];
            };
        };
        responses: {
            /** @description Only the quotas that would be exceeded */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FileShareRequiredQuota"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listFileShareMetadata: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the file share
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                file_share_id: components["parameters"]["file_share_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["TagCollection"];
            default: components["responses"]["Error"];
        };
    };
    replaceFileShareMetadata: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the file share
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                file_share_id: components["parameters"]["file_share_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["CreateTags"];
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    createFileShareMetadata: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the file share
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                file_share_id: components["parameters"]["file_share_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["CreateTags"];
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    getFileShareMetadataItem: {
        parameters: {
            query: {
                /** @description Key of the tag */
                key: components["parameters"]["query_key"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the file share
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                file_share_id: components["parameters"]["file_share_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Tag"];
            default: components["responses"]["Error"];
        };
    };
    deleteFileShareMetadataItem: {
        parameters: {
            query: {
                /** @description Key of the tag */
                key: components["parameters"]["query_key"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the file share
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                file_share_id: components["parameters"]["file_share_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    listLoadBalancers: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
                /** @description Only resources that have a tag with this key; repeat the parameter to require several keys */
                tag_key?: components["parameters"]["query_tag_key"];
                /** @description Only resources that have these tags: a JSON object such as `{"env":"test"}`, or `env=test` */
                tag_key_value?: components["parameters"]["query_tag_key_value"];
                /** @description Use `tag_key` */
                metadata_k?: components["parameters"]["query_metadata_k"];
                /** @description Use `tag_key_value` */
                metadata_kv?: components["parameters"]["query_metadata_kv"];
                /** @description `true`: only load balancers with a floating IP, which none has */
                assigned_floating?: boolean;
                /** @description Only load balancers whose `logging.enabled` has this value */
                logging_enabled?: boolean;
                /** @description Only load balancers whose name contains this text */
                name?: string;
                /** @description Field and direction of the order */
                order_by?: "created_at.asc" | "created_at.desc" | "flavor.asc" | "flavor.desc" | "name.asc" | "name.desc" | "operating_status.asc" | "operating_status.desc" | "provisioning_status.asc" | "provisioning_status.desc" | "updated_at.asc" | "updated_at.desc" | "vip_address.asc" | "vip_address.desc" | "vip_ip_family.asc" | "vip_ip_family.desc";
                /** @description Only load balancers with this operating status */
                operating_status?: components["schemas"]["LoadBalancerOperatingStatus"];
                /** @description Only load balancers with this provisioning status */
                provisioning_status?: components["schemas"]["LoadBalancerProvisioningStatus"];
                /** @description Whether to return traffic counters in `stats` */
                show_stats?: components["parameters"]["query_show_stats"];
                /** @description Accepted and ignored */
                with_ddos?: components["parameters"]["query_with_ddos"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoadBalancerCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createLoadBalancer: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "my-load-balancer",
                 *       "listeners": [
                 *         {
                 *           "name": "web",
                 *           "protocol": "HTTP",
                 *           "protocol_port": 80,
                 *           "pools": [
                 *             {
                 *               "name": "web-pool",
                 *               "protocol": "HTTP",
                 *               "lb_algorithm": "ROUND_ROBIN",
                 *               "members": [
                 *                 {
                 *                   "address": "10.0.0.11",
                 *                   "protocol_port": 8080
                 *                 }
                 *               ],
                 *               "healthmonitor": {
                 *                 "type": "HTTP",
                 *                 "url_path": "/healthz",
                 *                 "delay": 10,
                 *                 "timeout": 5,
                 *                 "max_retries": 3
                 *               }
                 *             }
                 *           ]
                 *         }
                 *       ],
                 *       "tags": {
                 *         "team": "web"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["CreateLoadBalancer"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    listLoadBalancerStatuses: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoadBalancerStatusCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    checkLoadBalancerLimits: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["CheckLoadBalancerLimits"];
        responses: {
            200: components["responses"]["LoadBalancerRequiredQuota"];
            default: components["responses"]["Error"];
        };
    };
    checkLoadBalancerLimitsBesides: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the load balancer
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                load_balancer_id: components["parameters"]["load_balancer_id"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["CheckLoadBalancerLimits"];
        responses: {
            200: components["responses"]["LoadBalancerRequiredQuota"];
            default: components["responses"]["Error"];
        };
    };
    getLoadBalancer: {
        parameters: {
            query?: {
                /** @description Whether to return traffic counters in `stats` */
                show_stats?: components["parameters"]["query_show_stats"];
                /** @description Accepted and ignored */
                with_ddos?: components["parameters"]["query_with_ddos"];
                /** @description Accepted and ignored: the Ansible collection repeats the ID of the path */
                loadbalancer_id?: string;
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the load balancer
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                load_balancer_id: components["parameters"]["load_balancer_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["LoadBalancer"];
            default: components["responses"]["Error"];
        };
    };
    deleteLoadBalancer: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the load balancer
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                load_balancer_id: components["parameters"]["load_balancer_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    updateLoadBalancerV1: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the load balancer
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                load_balancer_id: components["parameters"]["load_balancer_id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "name": "renamed-load-balancer",
                 *       "tags": {
                 *         "team": null,
                 *         "stage": "test"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["UpdateLoadBalancerV1"];
            };
        };
        responses: {
            200: components["responses"]["LoadBalancer"];
            default: components["responses"]["Error"];
        };
    };
    updateLoadBalancer: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the load balancer
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                load_balancer_id: components["parameters"]["load_balancer_id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "name": "renamed-load-balancer",
                 *       "tags": {
                 *         "team": null,
                 *         "stage": "test"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["UpdateLoadBalancer"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    resizeLoadBalancer: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the load balancer
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                load_balancer_id: components["parameters"]["load_balancer_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "flavor": "lb1-2-4"
                 *     }
                 */
                "application/json": components["schemas"]["ResizeLoadBalancer"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    failoverLoadBalancer: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the load balancer
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                load_balancer_id: components["parameters"]["load_balancer_id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "force": false
                 *     }
                 */
                "application/json": components["schemas"]["FailoverLoadBalancer"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    getLoadBalancerMetrics: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the load balancer
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                load_balancer_id: components["parameters"]["load_balancer_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "time_interval": 6,
                 *       "time_unit": "hour"
                 *     }
                 */
                "application/json": components["schemas"]["GetLoadBalancerMetrics"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoadBalancerMetricsCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getLoadBalancerTraffic: {
        parameters: {
            query?: {
                /** @description Length of the period before now */
                hours?: number;
                /** @description Only the traffic of this listener */
                listener_id?: string;
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the load balancer
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                load_balancer_id: components["parameters"]["load_balancer_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoadBalancerTrafficHistory"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getLoadBalancerStatus: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the load balancer
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                load_balancer_id: components["parameters"]["load_balancer_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoadBalancerStatus"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    replaceLoadBalancerMetadata: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the load balancer
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                load_balancer_id: components["parameters"]["load_balancer_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["LoadBalancerMetadata"];
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    createLoadBalancerMetadata: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the load balancer
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                load_balancer_id: components["parameters"]["load_balancer_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["LoadBalancerMetadata"];
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    deleteLoadBalancerMetadataItem: {
        parameters: {
            query?: {
                /** @description Key of the tag; without it nothing is deleted */
                key?: string;
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the load balancer
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                load_balancer_id: components["parameters"]["load_balancer_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    listLoadBalancerMetadata: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the load balancer
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                load_balancer_id: components["parameters"]["load_balancer_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["TagCollection"];
            default: components["responses"]["Error"];
        };
    };
    replaceLoadBalancerMetadataV1: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the load balancer
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                load_balancer_id: components["parameters"]["load_balancer_id"];
            };
            cookie?: never;
        };
        /** @description Tags as a map from key to value; a key with null is ignored */
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "team": "web"
                 *     }
                 */
                "application/json": components["schemas"]["ReplaceLoadBalancerTags"];
            };
        };
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    createLoadBalancerMetadataV1: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the load balancer
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                load_balancer_id: components["parameters"]["load_balancer_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["LoadBalancerMetadata"];
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    getLoadBalancerMetadataItem: {
        parameters: {
            query: {
                /** @description Key of the tag */
                key: components["parameters"]["query_key"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the load balancer
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                load_balancer_id: components["parameters"]["load_balancer_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Tag"];
            default: components["responses"]["Error"];
        };
    };
    deleteLoadBalancerMetadataItemV1: {
        parameters: {
            query: {
                /** @description Key of the tag */
                key: components["parameters"]["query_key"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the load balancer
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                load_balancer_id: components["parameters"]["load_balancer_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    listListeners: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
                /** @description Only listeners of this load balancer */
                load_balancer_id?: string;
                /** @description Use `load_balancer_id` */
                loadbalancer_id?: components["parameters"]["query_loadbalancer_id"];
                /** @description Only listeners whose name contains this text */
                name?: string;
                /** @description Whether to return traffic counters in `stats` */
                show_stats?: components["parameters"]["query_show_stats"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ListenerCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createListener: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "web",
                 *       "protocol": "HTTP",
                 *       "protocol_port": 80,
                 *       "load_balancer_id": "0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10"
                 *     }
                 */
                "application/json": components["schemas"]["CreateListener"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    getListener: {
        parameters: {
            query?: {
                /** @description Whether to return traffic counters in `stats` */
                show_stats?: components["parameters"]["query_show_stats"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the listener
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                listener_id: components["parameters"]["listener_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Listener"];
            default: components["responses"]["Error"];
        };
    };
    deleteListener: {
        parameters: {
            query?: {
                /** @description Whether to delete the default pool with the listener */
                delete_default_pool?: boolean;
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the listener
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                listener_id: components["parameters"]["listener_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    updateListenerV1: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the listener
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                listener_id: components["parameters"]["listener_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "renamed-listener"
                 *     }
                 */
                "application/json": components["schemas"]["RenameListener"];
            };
        };
        responses: {
            200: components["responses"]["Listener"];
            default: components["responses"]["Error"];
        };
    };
    updateListener: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the listener
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                listener_id: components["parameters"]["listener_id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "connection_limit": 5000,
                 *       "allowed_cidrs": [
                 *         "10.0.0.0/8"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["UpdateListener"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    listLbPools: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
                /** @description Whether to return whole members instead of their IDs */
                details?: boolean;
                /** @description Only the default pool of this listener; empty: no filter */
                listener_id?: "" | string;
                /** @description Only pools of this load balancer */
                load_balancer_id?: string;
                /** @description Use `load_balancer_id` */
                loadbalancer_id?: components["parameters"]["query_loadbalancer_id"];
                /** @description Only pools whose name contains this text */
                name?: string;
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LbPoolCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createLbPool: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "web-pool",
                 *       "protocol": "HTTP",
                 *       "lb_algorithm": "ROUND_ROBIN",
                 *       "members": [
                 *         {
                 *           "address": "10.0.0.11",
                 *           "protocol_port": 8080
                 *         }
                 *       ],
                 *       "healthmonitor": {
                 *         "type": "HTTP",
                 *         "url_path": "/healthz",
                 *         "delay": 10,
                 *         "timeout": 5,
                 *         "max_retries": 3
                 *       },
                 *       "listener_id": "0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10"
                 *     }
                 */
                "application/json": components["schemas"]["CreateLbPool"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    getLbPool: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the pool
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                pool_id: components["parameters"]["pool_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LbPool"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    deleteLbPool: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the pool
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                pool_id: components["parameters"]["pool_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    updateLbPoolV1: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the pool
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                pool_id: components["parameters"]["pool_id"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["UpdateLbPool"];
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    updateLbPool: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the pool
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                pool_id: components["parameters"]["pool_id"];
            };
            cookie?: never;
        };
        requestBody?: components["requestBodies"]["UpdateLbPool"];
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    getLbPoolHealthMonitor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the pool
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                pool_id: components["parameters"]["pool_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LbPoolHealthMonitor"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createLbPoolHealthMonitor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the pool
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                pool_id: components["parameters"]["pool_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "HTTP",
                 *       "url_path": "/healthz",
                 *       "delay": 10,
                 *       "timeout": 5,
                 *       "max_retries": 3
                 *     }
                 */
                "application/json": components["schemas"]["CreateLbPoolHealthMonitor"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    deleteLbPoolHealthMonitor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the pool
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                pool_id: components["parameters"]["pool_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    updateLbPoolHealthMonitor: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the pool
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                pool_id: components["parameters"]["pool_id"];
            };
            cookie?: never;
        };
        /** @description Omitted fields are unchanged, null restores the default */
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "delay": 20
                 *     }
                 */
                "application/json": components["schemas"]["UpdateLbPoolHealthMonitor"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    createLbPoolMember: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the pool
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                pool_id: components["parameters"]["pool_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["CreateLbPoolMember"];
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    deleteLbPoolMember: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the pool
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                pool_id: components["parameters"]["pool_id"];
                /**
                 * @description ID of the member
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                member_id: components["parameters"]["member_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    listLbPoolMembers: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
                /** @description Field and direction of the order */
                order_by?: "address.asc" | "address.desc" | "created_at.asc" | "created_at.desc";
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the pool
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                pool_id: components["parameters"]["pool_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LbPoolMemberCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    replaceLbPoolMembers: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the pool
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                pool_id: components["parameters"]["pool_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example [
                 *       {
                 *         "address": "10.0.0.11",
                 *         "protocol_port": 8080
                 *       },
                 *       {
                 *         "address": "10.0.0.12",
                 *         "protocol_port": 8080,
                 *         "backup": true
                 *       }
                 *     ]
                 */
                "application/json": components["schemas"]["ReplaceLbPoolMembers"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    addLbPoolMember: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the pool
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                pool_id: components["parameters"]["pool_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["CreateLbPoolMember"];
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    getLbPoolMember: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the pool
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                pool_id: components["parameters"]["pool_id"];
                /**
                 * @description ID of the member
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                member_id: components["parameters"]["member_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LbPoolMember"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    removeLbPoolMember: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the pool
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                pool_id: components["parameters"]["pool_id"];
                /**
                 * @description ID of the member
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                member_id: components["parameters"]["member_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    updateLbPoolMember: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the pool
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                pool_id: components["parameters"]["pool_id"];
                /**
                 * @description ID of the member
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                member_id: components["parameters"]["member_id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "weight": 5
                 *     }
                 */
                "application/json": components["schemas"]["UpdateLbPoolMember"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    listL7Policies: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["L7PolicyCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createL7Policy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "action": "REDIRECT_PREFIX",
                 *       "listener_id": "0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10",
                 *       "redirect_prefix": "https://www.example.com",
                 *       "position": 1
                 *     }
                 */
                "application/json": components["schemas"]["CreateL7Policy"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    getL7Policy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the L7 policy
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                l7policy_id: components["parameters"]["l7policy_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["L7Policy"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    replaceL7Policy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the L7 policy
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                l7policy_id: components["parameters"]["l7policy_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["UpdateL7Policy"];
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    deleteL7Policy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the L7 policy
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                l7policy_id: components["parameters"]["l7policy_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    updateL7Policy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the L7 policy
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                l7policy_id: components["parameters"]["l7policy_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["UpdateL7Policy"];
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    listL7Rules: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the L7 policy
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                l7policy_id: components["parameters"]["l7policy_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["L7RuleCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createL7Rule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the L7 policy
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                l7policy_id: components["parameters"]["l7policy_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "type": "PATH",
                 *       "compare_type": "STARTS_WITH",
                 *       "value": "/api/"
                 *     }
                 */
                "application/json": components["schemas"]["CreateL7Rule"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    getL7Rule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the L7 policy
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                l7policy_id: components["parameters"]["l7policy_id"];
                /**
                 * @description ID of the L7 rule
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                l7rule_id: components["parameters"]["l7rule_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["L7Rule"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    updateL7Rule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the L7 policy
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                l7policy_id: components["parameters"]["l7policy_id"];
                /**
                 * @description ID of the L7 rule
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                l7rule_id: components["parameters"]["l7rule_id"];
            };
            cookie?: never;
        };
        /** @description Omitted fields are unchanged */
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "value": "/api/v2/",
                 *       "invert": true
                 *     }
                 */
                "application/json": components["schemas"]["UpdateL7Rule"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    deleteL7Rule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the L7 policy
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                l7policy_id: components["parameters"]["l7policy_id"];
                /**
                 * @description ID of the L7 rule
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                l7rule_id: components["parameters"]["l7rule_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    listVolumes: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
                /** @description Only resources that have a tag with this key; repeat the parameter to require several keys */
                tag_key?: components["parameters"]["query_tag_key"];
                /** @description Only resources that have these tags: a JSON object such as `{"env":"test"}`, or `env=test` */
                tag_key_value?: components["parameters"]["query_tag_key_value"];
                /** @description Use `tag_key` */
                metadata_k?: components["parameters"]["query_metadata_k"];
                /** @description Use `tag_key_value` */
                metadata_kv?: components["parameters"]["query_metadata_kv"];
                /** @description No volume is bootable: `true` returns an empty list */
                bootable?: boolean;
                /** @description Clusters are not supported: any value returns an empty list */
                cluster_id?: string;
                /** @description No volume is attached: `true` returns an empty list */
                has_attachments?: boolean;
                /** @description Only volumes whose ID contains this text */
                id_part?: string;
                /** @description Instances are not supported: any ID returns an empty list */
                instance_id?: string;
                /** @description Only volumes whose name contains this text */
                name_part?: string;
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["VolumeCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createVolume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CreateVolume"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    getVolume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the volume
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                volume_id: components["parameters"]["volume_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Volume"];
            default: components["responses"]["Error"];
        };
    };
    deleteVolume: {
        parameters: {
            query?: {
                /** @description Accepted and ignored: all snapshots of the volume are deleted */
                snapshots?: string;
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the volume
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                volume_id: components["parameters"]["volume_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    updateVolume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the volume
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                volume_id: components["parameters"]["volume_id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "name": "renamed-volume",
                 *       "tags": {
                 *         "team": null,
                 *         "stage": "test"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["UpdateVolume"];
            };
        };
        responses: {
            200: components["responses"]["Volume"];
            default: components["responses"]["Error"];
        };
    };
    extendVolume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the volume
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                volume_id: components["parameters"]["volume_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "size": 2
                 *     }
                 */
                "application/json": components["schemas"]["ExtendVolume"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    retypeVolume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the volume
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                volume_id: components["parameters"]["volume_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "volume_type": "standard"
                 *     }
                 */
                "application/json": components["schemas"]["RetypeVolume"];
            };
        };
        responses: {
            200: components["responses"]["Volume"];
            default: components["responses"]["Error"];
        };
    };
    attachVolumeV1: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the volume
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                volume_id: components["parameters"]["volume_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["AttachVolume"];
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    detachVolumeV1: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the volume
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                volume_id: components["parameters"]["volume_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["DetachVolume"];
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    attachVolume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the volume
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                volume_id: components["parameters"]["volume_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["AttachVolume"];
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    detachVolume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the volume
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                volume_id: components["parameters"]["volume_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["DetachVolume"];
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    revertVolume: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the volume
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                volume_id: components["parameters"]["volume_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    listVolumeMetadata: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the volume
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                volume_id: components["parameters"]["volume_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["TagCollection"];
            default: components["responses"]["Error"];
        };
    };
    replaceVolumeMetadata: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the volume
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                volume_id: components["parameters"]["volume_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["CreateTags"];
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    createVolumeMetadata: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the volume
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                volume_id: components["parameters"]["volume_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["CreateTags"];
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    getVolumeMetadataItem: {
        parameters: {
            query: {
                /** @description Key of the tag */
                key: components["parameters"]["query_key"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the volume
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                volume_id: components["parameters"]["volume_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Tag"];
            default: components["responses"]["Error"];
        };
    };
    deleteVolumeMetadataItem: {
        parameters: {
            query: {
                /** @description Key of the tag */
                key: components["parameters"]["query_key"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the volume
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                volume_id: components["parameters"]["volume_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    listSnapshots: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
                /** @description Instances are not supported: any value returns an empty list */
                instance_id?: string;
                /** @description Only snapshots that this lifecycle policy created */
                lifecycle_policy_id?: components["schemas"]["FilterId"];
                /** @description Only snapshots that this schedule of a lifecycle policy created */
                schedule_id?: string;
                /** @description Only snapshots of this volume */
                volume_id?: string;
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SnapshotCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createSnapshot: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "my-snapshot",
                 *       "volume_id": "0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10",
                 *       "tags": {
                 *         "team": "web"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["CreateSnapshot"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    getSnapshot: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the snapshot
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                snapshot_id: components["parameters"]["snapshot_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Snapshot"];
            default: components["responses"]["Error"];
        };
    };
    deleteSnapshot: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the snapshot
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                snapshot_id: components["parameters"]["snapshot_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    updateSnapshot: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the snapshot
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                snapshot_id: components["parameters"]["snapshot_id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "name": "renamed-snapshot",
                 *       "tags": {
                 *         "team": null,
                 *         "stage": "test"
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["UpdateSnapshot"];
            };
        };
        responses: {
            200: components["responses"]["Snapshot"];
            default: components["responses"]["Error"];
        };
    };
    listSnapshotMetadata: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the snapshot
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                snapshot_id: components["parameters"]["snapshot_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["TagCollection"];
            default: components["responses"]["Error"];
        };
    };
    replaceSnapshotMetadata: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the snapshot
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                snapshot_id: components["parameters"]["snapshot_id"];
            };
            cookie?: never;
        };
        /** @description The new tags; null removes all user-managed tags, and a tag with the value null is ignored */
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "team": "web"
                 *     }
                 */
                "application/json": components["schemas"]["UpdateTags"];
            };
        };
        responses: {
            200: components["responses"]["Snapshot"];
            default: components["responses"]["Error"];
        };
    };
    createSnapshotMetadata: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the snapshot
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                snapshot_id: components["parameters"]["snapshot_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["CreateTags"];
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    getSnapshotMetadataItem: {
        parameters: {
            query: {
                /** @description Key of the tag */
                key: components["parameters"]["query_key"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the snapshot
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                snapshot_id: components["parameters"]["snapshot_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Tag"];
            default: components["responses"]["Error"];
        };
    };
    deleteSnapshotMetadataItem: {
        parameters: {
            query: {
                /** @description Key of the tag */
                key: components["parameters"]["query_key"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the snapshot
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                snapshot_id: components["parameters"]["snapshot_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    listLifecyclePolicies: {
        parameters: {
            query?: {
                /** @description Whether the response contains `volumes` */
                need_volumes?: components["parameters"]["query_need_volumes"];
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LifecyclePolicyCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createLifecyclePolicy: {
        parameters: {
            query?: {
                /** @description Whether the response contains `volumes` */
                need_volumes?: components["parameters"]["query_need_volumes"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["CreateLifecyclePolicy"];
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LifecyclePolicy"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getLifecyclePolicy: {
        parameters: {
            query?: {
                /** @description Whether the response contains `volumes` */
                need_volumes?: components["parameters"]["query_need_volumes"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the lifecycle policy
                 * @example 1
                 */
                policy_id: components["parameters"]["policy_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["LifecyclePolicy"];
            default: components["responses"]["Error"];
        };
    };
    deleteLifecyclePolicy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the lifecycle policy
                 * @example 1
                 */
                policy_id: components["parameters"]["policy_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    updateLifecyclePolicy: {
        parameters: {
            query?: {
                /** @description Whether the response contains `volumes` */
                need_volumes?: components["parameters"]["query_need_volumes"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the lifecycle policy
                 * @example 1
                 */
                policy_id: components["parameters"]["policy_id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "status": "paused"
                 *     }
                 */
                "application/json": components["schemas"]["UpdateLifecyclePolicy"];
            };
        };
        responses: {
            200: components["responses"]["LifecyclePolicy"];
            default: components["responses"]["Error"];
        };
    };
    addLifecyclePolicySchedules: {
        parameters: {
            query?: {
                /** @description Whether the response contains `volumes` */
                need_volumes?: components["parameters"]["query_need_volumes"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the lifecycle policy
                 * @example 1
                 */
                policy_id: components["parameters"]["policy_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "schedules": [
                 *         {
                 *           "type": "cron",
                 *           "day_of_week": "mon-fri",
                 *           "hour": "3",
                 *           "timezone": "Europe/Luxembourg",
                 *           "max_quantity": 7
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["AddLifecyclePolicySchedules"];
            };
        };
        responses: {
            200: components["responses"]["LifecyclePolicy"];
            default: components["responses"]["Error"];
        };
    };
    removeLifecyclePolicySchedules: {
        parameters: {
            query?: {
                /** @description Whether the response contains `volumes` */
                need_volumes?: components["parameters"]["query_need_volumes"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the lifecycle policy
                 * @example 1
                 */
                policy_id: components["parameters"]["policy_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "schedule_ids": [
                 *         "0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["RemoveLifecyclePolicySchedules"];
            };
        };
        responses: {
            200: components["responses"]["LifecyclePolicy"];
            default: components["responses"]["Error"];
        };
    };
    runLifecyclePolicy: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the lifecycle policy
                 * @example 1
                 */
                policy_id: components["parameters"]["policy_id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /** @example {} */
                "application/json": components["schemas"]["RunLifecyclePolicy"];
            };
        };
        responses: {
            200: components["responses"]["TaskIds"];
            default: components["responses"]["Error"];
        };
    };
    listLifecyclePolicyMissedRuns: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: number;
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the lifecycle policy
                 * @example 1
                 */
                policy_id: components["parameters"]["policy_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MissedLifecyclePolicyRunCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listLifecyclePolicyRuns: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: number;
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
                /** @description Only runs of this schedule */
                schedule_id?: string;
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the lifecycle policy
                 * @example 1
                 */
                policy_id: components["parameters"]["policy_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LifecyclePolicyRunCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getLifecyclePolicySchedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the schedule
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                schedule_id: components["parameters"]["schedule_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["LifecyclePolicySchedule"];
            default: components["responses"]["Error"];
        };
    };
    updateLifecyclePolicySchedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the schedule
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                schedule_id: components["parameters"]["schedule_id"];
            };
            cookie?: never;
        };
        /** @description Omitted fields and an empty `retention_time` are unchanged, null removes. With another `type` the fields of the old one are dropped. A changed interval starts at the change. */
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "hour": "4",
                 *       "max_quantity": 14
                 *     }
                 */
                "application/json": components["schemas"]["UpdateLifecyclePolicySchedule"];
            };
        };
        responses: {
            200: components["responses"]["LifecyclePolicySchedule"];
            default: components["responses"]["Error"];
        };
    };
    addLifecyclePolicyVolumes: {
        parameters: {
            query?: {
                /** @description Whether the response contains `volumes` */
                need_volumes?: components["parameters"]["query_need_volumes"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the lifecycle policy
                 * @example 1
                 */
                policy_id: components["parameters"]["policy_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["LifecyclePolicyVolumeIds"];
        responses: {
            200: components["responses"]["LifecyclePolicy"];
            default: components["responses"]["Error"];
        };
    };
    removeLifecyclePolicyVolumes: {
        parameters: {
            query?: {
                /** @description Whether the response contains `volumes` */
                need_volumes?: components["parameters"]["query_need_volumes"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the lifecycle policy
                 * @example 1
                 */
                policy_id: components["parameters"]["policy_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["LifecyclePolicyVolumeIds"];
        responses: {
            200: components["responses"]["LifecyclePolicy"];
            default: components["responses"]["Error"];
        };
    };
    forecastLifecyclePolicy: {
        parameters: {
            query?: {
                /** @description Number of runs of each schedule */
                count?: number;
                /** @description Maximum number of snapshots */
                limit?: number;
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the lifecycle policy
                 * @example 1
                 */
                policy_id: components["parameters"]["policy_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LifecyclePolicyForecast"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    previewLifecyclePolicySchedule: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "schedule": {
                 *         "type": "cron",
                 *         "day_of_week": "mon-fri",
                 *         "hour": "3",
                 *         "timezone": "Europe/Luxembourg",
                 *         "max_quantity": 7
                 *       },
                 *       "count": 5
                 *     }
                 */
                "application/json": components["schemas"]["PreviewSchedule"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SchedulePreview"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    estimateLifecyclePolicyUsage: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["CreateLifecyclePolicy"];
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LifecyclePolicyUsage"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    previewLifecyclePolicyPrice: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "schedules": [
                 *         {
                 *           "type": "cron",
                 *           "day_of_week": "mon-fri",
                 *           "hour": "3",
                 *           "timezone": "Europe/Luxembourg",
                 *           "max_quantity": 7
                 *         }
                 *       ],
                 *       "volume_ids": [
                 *         "0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["PriceLifecyclePolicy"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LifecyclePolicyPrice"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    previewLifecyclePolicyPriceV1: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: components["requestBodies"]["CreateLifecyclePolicy"];
        responses: {
            200: components["responses"]["Price"];
            default: components["responses"]["Error"];
        };
    };
    listRegistries: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RegistryCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createRegistry: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "images",
                 *       "storage_limit": 10
                 *     }
                 */
                "application/json": components["schemas"]["CreateRegistry"];
            };
        };
        responses: {
            /** @description Success */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Registry"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getRegistry: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the registry
                 * @example 1
                 */
                registry_id: components["parameters"]["registry_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Registry"];
            default: components["responses"]["Error"];
        };
    };
    deleteRegistry: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the registry
                 * @example 1
                 */
                registry_id: components["parameters"]["registry_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    resizeRegistry: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the registry
                 * @example 1
                 */
                registry_id: components["parameters"]["registry_id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "storage_limit": 20
                 *     }
                 */
                "application/json": components["schemas"]["ResizeRegistry"];
            };
        };
        responses: {
            200: components["responses"]["Registry"];
            default: components["responses"]["Error"];
        };
    };
    checkRegistryLimits: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "storage_limit": 10
                 *     }
                 */
                "application/json": components["schemas"]["CheckRegistryLimits"];
            };
        };
        responses: {
            /** @description Only the quotas that would be exceeded */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RegistryRequiredQuota"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listRegistryUsers: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the registry
                 * @example 1
                 */
                registry_id: components["parameters"]["registry_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RegistryUserCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createRegistryUser: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the registry
                 * @example 1
                 */
                registry_id: components["parameters"]["registry_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "ci",
                 *       "duration": 30,
                 *       "read_only": false
                 *     }
                 */
                "application/json": components["schemas"]["CreateRegistryUser"];
            };
        };
        responses: {
            /** @description Success */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RegistryUserWithSecret"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createRegistryUsers: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the registry
                 * @example 1
                 */
                registry_id: components["parameters"]["registry_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "users": [
                 *         {
                 *           "name": "ci",
                 *           "duration": 30,
                 *           "read_only": false
                 *         },
                 *         {
                 *           "name": "deploy",
                 *           "duration": -1,
                 *           "read_only": true
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["CreateRegistryUsers"];
            };
        };
        responses: {
            /** @description All new users in `results`; the other fields are those of the first one */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RegistryUsersWithSecrets"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    deleteRegistryUser: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the registry
                 * @example 1
                 */
                registry_id: components["parameters"]["registry_id"];
                /**
                 * @description ID of the user of the registry
                 * @example 1
                 */
                user_id: components["parameters"]["user_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    updateRegistryUser: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the registry
                 * @example 1
                 */
                registry_id: components["parameters"]["registry_id"];
                /**
                 * @description ID of the user of the registry
                 * @example 1
                 */
                user_id: components["parameters"]["user_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "duration": 90,
                 *       "read_only": true
                 *     }
                 */
                "application/json": components["schemas"]["UpdateRegistryUser"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RegistryUser"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    refreshRegistryUserSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the registry
                 * @example 1
                 */
                registry_id: components["parameters"]["registry_id"];
                /**
                 * @description ID of the user of the registry
                 * @example 1
                 */
                user_id: components["parameters"]["user_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RegistryUserWithSecret"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listRegistryRepositories: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the registry
                 * @example 1
                 */
                registry_id: components["parameters"]["registry_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RegistryRepositoryCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    deleteRegistryRepository: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the registry
                 * @example 1
                 */
                registry_id: components["parameters"]["registry_id"];
                /**
                 * @description Name of the repository without the prefix of the registry, such as `team/app`
                 * @example team/app
                 */
                repository_name: components["parameters"]["repository_name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    listRegistryArtifacts: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the registry
                 * @example 1
                 */
                registry_id: components["parameters"]["registry_id"];
                /**
                 * @description Name of the repository without the prefix of the registry, such as `team/app`
                 * @example team/app
                 */
                repository_name: components["parameters"]["repository_name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RegistryArtifactCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    deleteRegistryArtifact: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the registry
                 * @example 1
                 */
                registry_id: components["parameters"]["registry_id"];
                /**
                 * @description Name of the repository without the prefix of the registry, such as `team/app`
                 * @example team/app
                 */
                repository_name: components["parameters"]["repository_name"];
                /**
                 * @description Digest of the artifact
                 * @example sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
                 */
                digest: components["parameters"]["digest"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    deleteRegistryTag: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description ID of the registry
                 * @example 1
                 */
                registry_id: components["parameters"]["registry_id"];
                /**
                 * @description Name of the repository without the prefix of the registry, such as `team/app`
                 * @example team/app
                 */
                repository_name: components["parameters"]["repository_name"];
                /**
                 * @description Digest of the artifact
                 * @example sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
                 */
                digest: components["parameters"]["digest"];
                /**
                 * @description Name of the tag
                 * @example v1
                 */
                tag_name: components["parameters"]["tag_name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    previewFileSharePrice: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "source": "new-file-share",
                 *       "size": 100,
                 *       "type_name": "standard"
                 *     }
                 */
                "application/json": components["schemas"]["PriceFileShare"];
            };
        };
        responses: {
            200: components["responses"]["Price"];
            default: components["responses"]["Error"];
        };
    };
    previewVolumePrice: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "source": "new-volume",
                 *       "size": 100,
                 *       "type_name": "standard"
                 *     }
                 */
                "application/json": components["schemas"]["PriceVolume"];
            };
        };
        responses: {
            200: components["responses"]["Price"];
            default: components["responses"]["Error"];
        };
    };
    previewSnapshotPrice: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "volume_id": "0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10"
                 *     }
                 */
                "application/json": components["schemas"]["PriceSnapshot"];
            };
        };
        responses: {
            200: components["responses"]["Price"];
            default: components["responses"]["Error"];
        };
    };
    previewLoadBalancerPrice: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "flavor": "lb1-1-2"
                 *     }
                 */
                "application/json": components["schemas"]["PriceLoadBalancer"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoadBalancerPrice"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    previewLoadBalancerPriceV1: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "flavor": "lb1-1-2"
                 *     }
                 */
                "application/json": components["schemas"]["PriceLoadBalancerV1"];
            };
        };
        responses: {
            200: components["responses"]["Price"];
            default: components["responses"]["Error"];
        };
    };
    listLoadBalancerFlavors: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
                /** @description Whether the response contains the price of each flavor */
                include_prices?: boolean;
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["LoadBalancerFlavorCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    auditQuotas: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QuotaDriftCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listClientQuotas: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AllClientQuotas"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getGlobalQuotas: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the client
                 * @example 1
                 */
                client_id: components["parameters"]["client_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["GlobalQuotas"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getRegionalQuotas: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the client
                 * @example 1
                 */
                client_id: components["parameters"]["client_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RegionalQuotas"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    updateClientQuotas: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the client
                 * @example 1
                 */
                client_id: components["parameters"]["client_id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "region_id": 1,
                 *       "volume_count_limit": 20
                 *     }
                 */
                "application/json": components["schemas"]["UpdateClientQuotas"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClientQuotaFigures"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listQuotaRequests: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
                /** @description Only requests created at or after this date */
                created_from?: string;
                /** @description Only requests created at or before this date */
                created_to?: string;
                /** @description Only requests with these IDs */
                request_ids?: components["schemas"]["FilterId"][];
                /** @description Only requests in these states */
                status?: ("done" | "in progress" | "rejected")[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QuotaRequestCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createQuotaRequest: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "description": "We move our archive here.",
                 *       "requested_limits": {
                 *         "regional_limits": [
                 *           {
                 *             "region_id": 1,
                 *             "volume_count_limit": 200,
                 *             "volume_size_limit": 50000
                 *           }
                 *         ]
                 *       }
                 *     }
                 */
                "application/json": components["schemas"]["CreateQuotaRequest"];
            };
        };
        responses: {
            /** @description No content */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    getQuotaRequest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the request
                 * @example 1
                 */
                request_id: components["parameters"]["request_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["QuotaRequest"];
            default: components["responses"]["Error"];
        };
    };
    deleteQuotaRequest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the request
                 * @example 1
                 */
                request_id: components["parameters"]["request_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    approveQuotaRequest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the request
                 * @example 1
                 */
                request_id: components["parameters"]["request_id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /** @example {} */
                "application/json": components["schemas"]["ApproveQuotaRequest"];
            };
        };
        responses: {
            200: components["responses"]["QuotaRequest"];
            default: components["responses"]["Error"];
        };
    };
    declineQuotaRequest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the request
                 * @example 1
                 */
                request_id: components["parameters"]["request_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "reason": "The region has no space for 50 TB; write to us about another one."
                 *     }
                 */
                "application/json": components["schemas"]["DeclineQuotaRequest"];
            };
        };
        responses: {
            200: components["responses"]["QuotaRequest"];
            default: components["responses"]["Error"];
        };
    };
    listApiKeys: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKeyCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "first-key",
                 *       "containers": [
                 *         {
                 *           "name": "web",
                 *           "namespace": "default"
                 *         }
                 *       ],
                 *       "expire": "2030-01-01T00:00:00Z"
                 *     }
                 */
                "application/json": components["schemas"]["CreateApiKey"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedApiKey"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description Name of the API key
                 * @example first-key
                 */
                key_name: components["parameters"]["key_name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["ApiKey"];
            default: components["responses"]["Error"];
        };
    };
    deleteApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description Name of the API key
                 * @example first-key
                 */
                key_name: components["parameters"]["key_name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    updateApiKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description Name of the API key
                 * @example first-key
                 */
                key_name: components["parameters"]["key_name"];
            };
            cookie?: never;
        };
        /** @description Omitted fields are unchanged */
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "containers": [
                 *         {
                 *           "name": "web",
                 *           "namespace": "default"
                 *         },
                 *         {
                 *           "name": "api",
                 *           "namespace": "default"
                 *         }
                 *       ],
                 *       "expire": null
                 *     }
                 */
                "application/json": components["schemas"]["UpdateApiKey"];
            };
        };
        responses: {
            200: components["responses"]["ApiKey"];
            default: components["responses"]["Error"];
        };
    };
    listPullSecrets: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
            };
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PullSecretCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createPullSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "my-registry",
                 *       "registry": "registry.example.com",
                 *       "login": "ci",
                 *       "password": "my-password"
                 *     }
                 */
                "application/json": components["schemas"]["CreatePullSecret"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PullSecret"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getPullSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description Name of the pull secret
                 * @example my-registry
                 */
                secret_name: components["parameters"]["secret_name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["PullSecret"];
            default: components["responses"]["Error"];
        };
    };
    deletePullSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description Name of the pull secret
                 * @example my-registry
                 */
                secret_name: components["parameters"]["secret_name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    updatePullSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description Name of the pull secret
                 * @example my-registry
                 */
                secret_name: components["parameters"]["secret_name"];
            };
            cookie?: never;
        };
        /** @description Fields that are omitted or null are unchanged */
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "password": "my-new-password"
                 *     }
                 */
                "application/json": components["schemas"]["UpdatePullSecret"];
            };
        };
        responses: {
            200: components["responses"]["PullSecret"];
            default: components["responses"]["Error"];
        };
    };
    verifyPullSecret: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description Name of the pull secret
                 * @example my-registry
                 */
                secret_name: components["parameters"]["secret_name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PullSecretVerification"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getPullSecretDockerConfigJson: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description Name of the pull secret
                 * @example my-registry
                 */
                secret_name: components["parameters"]["secret_name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DockerConfigJson"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getNotificationThreshold: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the client
                 * @example 1
                 */
                client_id: components["parameters"]["client_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["NotificationThreshold"];
            default: components["responses"]["Error"];
        };
    };
    setNotificationThreshold: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the client
                 * @example 1
                 */
                client_id: components["parameters"]["client_id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "threshold": 80
                 *     }
                 */
                "application/json": components["schemas"]["SetNotificationThreshold"];
            };
        };
        responses: {
            200: components["responses"]["NotificationThreshold"];
            default: components["responses"]["Error"];
        };
    };
    deleteNotificationThreshold: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the client
                 * @example 1
                 */
                client_id: components["parameters"]["client_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    listClients: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClientCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createClient: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "name": "Example"
                 *     }
                 */
                "application/json": components["schemas"]["CreateClient"];
            };
        };
        responses: {
            201: components["responses"]["Client"];
            default: components["responses"]["Error"];
        };
    };
    getClient: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the client
                 * @example 1
                 */
                client_id: components["parameters"]["client_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Client"];
            default: components["responses"]["Error"];
        };
    };
    updateClient: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the client
                 * @example 1
                 */
                client_id: components["parameters"]["client_id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "emails": [
                 *         "alerts@example.com"
                 *       ]
                 *     }
                 */
                "application/json": components["schemas"]["UpdateClient"];
            };
        };
        responses: {
            200: components["responses"]["Client"];
            default: components["responses"]["Error"];
        };
    };
    listNotifications: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: number;
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
                /** @description Only notifications of this type */
                type?: components["schemas"]["NotificationType"];
                /** @description Only notifications that were sent to this webhook */
                webhook_id?: string;
                /** @description Only notifications with a delivery in this state */
                delivery_state?: "pending" | "delivered" | "simulated" | "failed";
                /** @description Field and direction of the order */
                order_by?: "created_at.asc" | "created_at.desc";
            };
            header?: never;
            path: {
                /**
                 * @description ID of the client
                 * @example 1
                 */
                client_id: components["parameters"]["client_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NotificationCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getNotification: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the client
                 * @example 1
                 */
                client_id: components["parameters"]["client_id"];
                /**
                 * @description ID of the notification
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                notification_id: components["parameters"]["notification_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Notification"];
            default: components["responses"]["Error"];
        };
    };
    replayDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the client
                 * @example 1
                 */
                client_id: components["parameters"]["client_id"];
                /**
                 * @description ID of the notification
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                notification_id: components["parameters"]["notification_id"];
                /**
                 * @description ID of the delivery
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                delivery_id: components["parameters"]["delivery_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["Notification"];
            default: components["responses"]["Error"];
        };
    };
    listWebhooks: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the client
                 * @example 1
                 */
                client_id: components["parameters"]["client_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the client
                 * @example 1
                 */
                client_id: components["parameters"]["client_id"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "url": "https://hooks.example.com/cloudyard"
                 *     }
                 */
                "application/json": components["schemas"]["CreateWebhook"];
            };
        };
        responses: {
            /** @description Success */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NewWebhook"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the client
                 * @example 1
                 */
                client_id: components["parameters"]["client_id"];
                /**
                 * @description ID of the webhook
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                webhook_id: components["parameters"]["webhook_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    deleteWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the client
                 * @example 1
                 */
                client_id: components["parameters"]["client_id"];
                /**
                 * @description ID of the webhook
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                webhook_id: components["parameters"]["webhook_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    updateWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the client
                 * @example 1
                 */
                client_id: components["parameters"]["client_id"];
                /**
                 * @description ID of the webhook
                 * @example 0c5a7d6e-3a1f-4c3b-9d58-6f1f8b1f2a10
                 */
                webhook_id: components["parameters"]["webhook_id"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "url": "https://hooks.example.com/other"
                 *     }
                 */
                "application/json": components["schemas"]["UpdateWebhook"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UpdatedWebhook"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listAudit: {
        parameters: {
            query?: {
                /** @description Only changes by this operationId */
                operation?: string;
                /** @description Only changes of this client */
                client_id?: components["schemas"]["IntegerId"];
                /** @description Only changes in this project */
                project_id?: components["schemas"]["IntegerId"];
                /** @description Only changes in this region */
                region_id?: components["schemas"]["IntegerId"];
                /** @description Only changes by this token */
                token_id?: components["schemas"]["IntegerId"];
                /** @description Only changes by this request */
                request_id?: string;
                /** @description Only changes of this table, such as `file_shares` */
                table?: string;
                /** @description Only changes of the resource with this ID */
                row_id?: string;
                /** @description Only changes of resources that have or had this name, for resources whose responses have no ID; needs `table` */
                row_name?: string;
                /** @description Only changes at or after this date */
                from_timestamp?: string;
                /** @description Only changes at or before this date */
                to_timestamp?: string;
                /** @description Maximum number of entries; 100 by default, and all of them as `csv` or `jsonl` */
                limit?: number;
                /** @description `json` is a page; `csv` and `jsonl` (a JSON object in each line) are streams. Default: by `Accept` */
                format?: "json" | "csv" | "jsonl";
                /** @description `next` of the previous page */
                before?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditPage"];
                    "text/csv": components["schemas"]["AuditPage"];
                    "application/x-ndjson": components["schemas"]["AuditPage"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    streamEvents: {
        parameters: {
            query?: {
                /** @description Only projects, and resources of these projects or of none */
                project_id?: components["schemas"]["IntegerId"][];
                /** @description Only resources of these kinds */
                kinds?: ("api_key" | "client" | "development_clock" | "development_fault" | "file_share" | "l7_policy" | "l7_rule" | "lb_listener" | "lb_pool" | "lifecycle_policy" | "load_balancer" | "network" | "notification" | "project" | "pull_secret" | "quota" | "quota_request" | "region" | "registry" | "secret" | "snapshot" | "subnet" | "task" | "threshold" | "token" | "user_action_subscription" | "volume" | "webhook" | "worker")[];
                /** @description As the header `Last-Event-ID`, which takes precedence */
                last_event_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["ResourceEvent"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listUserActions: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
                /** @description Only actions of these types */
                action_type?: components["schemas"]["UserActionType"][];
                /** @description Only actions in these groups */
                api_group?: components["schemas"]["UserActionGroup"][];
                /** @description Only actions at or after this date */
                from_timestamp?: string;
                /** @description Only actions at or before this date */
                to_timestamp?: string;
                /** @description Order by time; `desc` by default */
                order_by?: "asc" | "desc";
                /** @description Use `order_by` */
                sorting?: components["parameters"]["query_sorting"];
                /** @description Only actions in these projects */
                project_id?: components["schemas"]["FilterId"][];
                /** @description Only actions in these regions */
                region_id?: components["schemas"]["FilterId"][];
                /** @description Only actions on resources with these IDs */
                resource_id?: string[];
                /** @description Only actions on resources with this name */
                search_field?: string;
                /** @description Only actions from these addresses */
                source_user_ips?: string[];
                /** @description Only actions with these user agents */
                user_agents?: string[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserActionCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    subscribeToUserActions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "url": "https://siem.example.com/cloudyard",
                 *       "auth_header_name": "Authorization",
                 *       "auth_header_value": "Bearer s3cret"
                 *     }
                 */
                "application/json": components["schemas"]["SubscribeToUserActions"];
            };
        };
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    unsubscribeFromUserActions: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    listUserActionSubscriptions: {
        parameters: {
            query?: {
                /** @description Maximum number of results */
                limit?: components["parameters"]["query_limit"];
                /** @description Number of results to skip */
                offset?: components["parameters"]["query_offset"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UserActionSubscriptionCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    getUserActionDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the user action
                 * @example 1
                 */
                user_action_id: components["parameters"]["user_action_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["UserActionDelivery"];
            default: components["responses"]["Error"];
        };
    };
    replayUserActionDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the user action
                 * @example 1
                 */
                user_action_id: components["parameters"]["user_action_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["UserActionDelivery"];
            default: components["responses"]["Error"];
        };
    };
    getClock: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ClockNow"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    moveClock: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Exactly one of the fields */
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "advance_seconds": 3600
                 *     }
                 */
                "application/json": components["schemas"]["MoveClock"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MovedClock"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    listFaults: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FaultCollection"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    createFault: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "resource": "file_share",
                 *       "operation": "apply",
                 *       "mode": "fail"
                 *     }
                 */
                "application/json": components["schemas"]["CreateFault"];
            };
        };
        responses: {
            /** @description Success */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Fault"];
                };
            };
            default: components["responses"]["Error"];
        };
    };
    clearFaults: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    deleteFault: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the fault
                 * @example 1
                 */
                fault_id: components["parameters"]["fault_id"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    getRegistryToken: {
        parameters: {
            query?: {
                /** @description Name of the registry host */
                service?: string;
                /** @description Requested access, `repository:<name>:<actions>`; several are separated by spaces, or the parameter is repeated */
                scope?: string[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            200: components["responses"]["RegistryToken"];
            default: components["responses"]["Error"];
        };
    };
    createRegistryToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/x-www-form-urlencoded": components["schemas"]["RegistryTokenForm"];
            };
        };
        responses: {
            200: components["responses"]["RegistryToken"];
            default: components["responses"]["Error"];
        };
    };
    receiveRegistryEvents: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    authorizeContainer: {
        parameters: {
            query?: {
                /** @description Name of the container */
                name?: string;
                /** @description Namespace of the container */
                namespace?: string;
                /** @description ID of the project; when omitted, keys of any project are valid */
                project_id?: components["schemas"]["IntegerId"];
                /** @description ID of the region; when omitted, keys of any region are valid */
                region_id?: components["schemas"]["IntegerId"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
    authorizeContainerByPath: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description ID of the project
                 * @example 1
                 */
                project_id: components["parameters"]["project_id"];
                /**
                 * @description ID of the region
                 * @example 1
                 */
                region_id: components["parameters"]["region_id"];
                /**
                 * @description Namespace of the container
                 * @example default
                 */
                namespace: components["parameters"]["namespace"];
                /**
                 * @description Name of the container
                 * @example web
                 */
                name: components["parameters"]["name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description No content */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            default: components["responses"]["Error"];
        };
    };
}
