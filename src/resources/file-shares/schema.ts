/** Requests and responses of file shares. */
import { type Static, Type } from 'typebox';
import {
  Body,
  Collection,
  Component,
  CurrentSizeGib,
  Described,
  exampleUuid,
  ExtendBody,
  Input,
  IpNetwork,
  Name,
  Nullable,
  OrNull,
  Paging,
  PlaceFields,
  RequiredQuota,
  ShortText,
  SizeGib,
  TaskFields,
  Uuid,
} from '../../http/shapes.ts';
import { selectBranch } from '../../http/validation.ts';
import { newTagFields, Tag, UpdateTags } from '../../tags/tags.ts';

export const FileShareTypeName = Type.Enum(['standard', 'vast'], {
  description:
    '`standard` or `vast`; both are NFS shares. Only the request for a standard share names its network and its first access rules',
});
export type FileShareTypeName = Static<typeof FileShareTypeName>;

/** The deprecated `volume_type` of each type. */
export const volumeTypes = { standard: 'default_share_type', vast: 'vast_share_type' } as const;

const fileShareStatuses = [
  'available',
  'awaiting_transfer',
  'backup_creating',
  'backup_restoring',
  'backup_restoring_error',
  'creating',
  'creating_from_snapshot',
  'deleted',
  'deleting',
  'ensuring',
  'error',
  'error_deleting',
  'extending',
  'extending_error',
  'inactive',
  'manage_error',
  'manage_starting',
  'migrating',
  'migrating_to',
  'replication_change',
  'reverting',
  'reverting_error',
  'shrinking',
  'shrinking_error',
  'shrinking_possible_data_loss_error',
  'unmanage_error',
  'unmanage_starting',
  'unmanaged',
] as const;
export type FileShareStatus = (typeof fileShareStatuses)[number];

const NameLimit = Type.Enum(['LCD', 'NPL']);

const shareSettings = {
  allowed_characters: Described(NameLimit, 'Characters allowed in file names; vast shares only'),
  path_length: Described(NameLimit, 'Limit of path lengths; vast shares only'),
  root_squash: Type.Boolean({ description: 'Whether the root user of clients is mapped to an unprivileged user' }),
};

const ShareSettingsInput = Input(
  'FileShareSettingsInput',
  {
    allowed_characters: Type.Optional(shareSettings.allowed_characters),
    path_length: Type.Optional(shareSettings.path_length),
    root_squash: Type.Optional(shareSettings.root_squash),
    trash_access: Type.Optional(
      Type.Literal(false, { description: 'Always false: shares have no trash; vast shares only' }),
    ),
  },
  'Settings of the share',
);
export type ShareSettingsInput = Static<typeof ShareSettingsInput>;

const AccessMode = Type.Enum(['ro', 'rw'], { description: '`ro`: read only; `rw`: read and write' });
const accessRule = { access_mode: 'rw', ip_address: '10.0.0.0/24' };

export const CreateAccessRule = Body('CreateFileShareAccessRule', [accessRule], {
  access_mode: AccessMode,
  ip_address: Described(IpNetwork, 'Address or network that may mount the share'),
});
export type CreateAccessRule = Static<typeof CreateAccessRule>;

const FileShareNetwork = Input(
  'FileShareNetwork',
  {
    network_id: Described(Uuid, 'ID of the network'),
    subnet_id: Type.Optional(Described(Uuid, 'ID of the subnet; by default the first one of the network')),
  },
  'Network of a standard share',
);

/** Fields that a create request sets and an update may change. A new one is added here, so that neither request lacks it. */
const editable = { name: Name };

const common = {
  ...editable,
  protocol: Type.Literal('NFS', { description: 'Always `NFS`' }),
  size: SizeGib,
  ...newTagFields,
  share_settings: Type.Optional(ShareSettingsInput),
};

export const maxAccessRules = 100;
const deprecatedType = { deprecated: true, description: 'Use `type_name`' };

const CreateStandardFileShare = Input('CreateStandardFileShare', {
  ...common,
  network: FileShareNetwork,
  access: Type.Optional(
    Type.Array(CreateAccessRule, { maxItems: maxAccessRules, description: 'Initial access rules; none by default' }),
  ),
  type_name: Type.Optional(Type.Literal('standard', { description: 'Always `standard`' })),
  volume_type: Type.Optional(Type.Literal(volumeTypes.standard, deprecatedType)),
});

const CreateVastFileShare = Input('CreateVastFileShare', {
  ...common,
  type_name: Type.Optional(Type.Literal('vast', { description: 'Always `vast`' })),
  volume_type: Type.Optional(Type.Literal(volumeTypes.vast, deprecatedType)),
});

/** A body with an unknown type, whose error lists the types. */
const CreateUnknownFileShare = Type.Object(
  {
    ...CreateStandardFileShare.properties,
    network: Type.Optional(FileShareNetwork),
    type_name: Type.Optional(FileShareTypeName),
    volume_type: Type.Optional(Type.Enum(Object.values(volumeTypes))),
  },
  { additionalProperties: false },
);

export const CreateFileShare = selectBranch(
  Type.Union([CreateStandardFileShare, CreateVastFileShare], {
    title: 'CreateFileShare',
    examples: [
      {
        name: 'my-share',
        protocol: 'NFS',
        size: 1,
        network: { network_id: exampleUuid },
        access: [accessRule],
        tags: { team: 'web' },
      },
    ],
  }),
  ({ type_name: type, volume_type: deprecated = volumeTypes.standard }) => {
    const [types, given] =
      type === undefined ? [Object.values(volumeTypes), deprecated] : [Object.keys(volumeTypes), type];
    return [...types, given].indexOf(given);
  },
  CreateUnknownFileShare,
);
export type CreateFileShare = Static<typeof CreateFileShare>;

export const UpdateFileShare = Body(
  'UpdateFileShare',
  [{ name: 'renamed-share', tags: { team: null, stage: 'test' } }],
  {
    ...Type.Partial(Type.Object(editable)).properties,
    share_settings: Type.Optional(ShareSettingsInput),
    size: CurrentSizeGib,
    tags: Type.Optional(UpdateTags),
  },
);
export type UpdateFileShare = Static<typeof UpdateFileShare>;

export const ExtendFileShare = ExtendBody('ExtendFileShare');

export const CheckFileShareLimits = Body('CheckFileShareLimits', [{ size: 2 }], {
  size: Described(SizeGib, 'Size of the planned share in GiB'),
});

export const ListFileShares = Type.Object({
  ...Paging(1000),
  name: Type.Optional(Described(ShortText, 'Only shares whose name contains this text')),
  type_name: Type.Optional(
    Type.Enum(['ddn', 'standard', 'vast'], { description: 'Only shares of this type; no share is of the type `ddn`' }),
  ),
});
export type ListFileShares = Static<typeof ListFileShares>;

const networkFields = {
  network_id: Described(Uuid, 'ID of the network'),
  network_name: Type.String({ description: 'Name of the network' }),
  subnet_id: Described(Uuid, 'ID of the subnet'),
  subnet_name: Type.String({ description: 'Name of the subnet' }),
};

export const FileShare = Component('FileShare', {
  id: Described(Uuid, 'ID of the share'),
  name: Type.String({ description: 'Name of the share' }),
  connection_point: OrNull.text('What clients mount, `host:/path`; null until available'),
  created_at: Type.String({ description: 'When the share was requested: ISO 8601, UTC, without a zone' }),
  network: Type.Object(networkFields, { description: 'Network of the share' }),
  ...networkFields,
  share_network_name: OrNull.text('Name of the share network'),
  ...PlaceFields,
  ...TaskFields,
  protocol: Type.String({ description: 'Always `NFS`' }),
  share_settings: Component(
    'FileShareSettings',
    {
      type_name: FileShareTypeName,
      root_squash: Type.Optional(
        Described(
          shareSettings.root_squash,
          // Where it was never set it is omitted: the Terraform provider would take `false` for a change.
          'Whether the root user of clients is mapped to an unprivileged user; absent from standard shares for which it was ' +
            'never set, which do not map it',
        ),
      ),
      allowed_characters: Type.Optional(Nullable(shareSettings.allowed_characters)),
      path_length: Type.Optional(Nullable(shareSettings.path_length)),
      // The SDKs require it of vast shares.
      trash_access: Type.Optional(Type.Boolean({ description: 'Present in vast shares; always false' })),
    },
    'Settings of the share',
  ),
  size: SizeGib,
  status: Type.Enum([...fileShareStatuses], {
    description: 'State of the share; `available` shares can be mounted, `error` shares failed and can be deleted',
  }),
  tags: Type.Array(Tag, { description: 'Tags, by key' }),
  type_name: FileShareTypeName,
  volume_type: Type.Enum(Object.values(volumeTypes), deprecatedType),
});
export type FileShare = Static<typeof FileShare>;
export const FileShareCollection = Collection(FileShare);

export const ListFileShareUsage = Type.Object({
  ...Paging(1000),
  file_share_id: Type.Optional(Described(Uuid, 'Only this share')),
});
export type ListFileShareUsage = Static<typeof ListFileShareUsage>;

export const FileShareUsage = Component('FileShareUsage', {
  file_share_id: Described(Uuid, 'ID of the share'),
  used_bytes: Type.Integer({ description: 'Used space, including the metadata of the filesystem' }),
  total_bytes: Type.Integer({ description: 'Space of the filesystem' }),
});
export type FileShareUsage = Static<typeof FileShareUsage>;
export const FileShareUsageCollection = Collection(FileShareUsage);

const accessRuleStates = [
  'active',
  'applying',
  'denying',
  'error',
  'new',
  'queued_to_apply',
  'queued_to_deny',
] as const;
export type AccessRuleState = (typeof accessRuleStates)[number];

export const AccessRule = Component('FileShareAccessRule', {
  id: Described(Uuid, 'ID of the rule'),
  access_level: AccessMode,
  access_to: Type.String({ description: 'Address or network that may mount the share' }),
  state: Type.Enum([...accessRuleStates], { description: '`active` once the rule is in force' }),
});
export type AccessRule = Static<typeof AccessRule>;
export const AccessRuleCollection = Collection(AccessRule);

export const FileShareRequiredQuota = RequiredQuota('FileShareRequiredQuota', {
  sfs_count_limit: 'Limit of the number of shares',
  sfs_count_requested: 'Number of shares requested',
  sfs_count_usage: 'Number of shares in use',
  sfs_size_limit: 'Limit of the size of all shares in GiB',
  sfs_size_requested: 'Size requested in GiB',
  sfs_size_usage: 'Size of all shares in GiB',
});
export type FileShareRequiredQuota = Static<typeof FileShareRequiredQuota>;
