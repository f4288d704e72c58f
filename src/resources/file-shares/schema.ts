/** Requests and responses of file shares (docs/interface.md, "File shares"). */
import { Type } from 'typebox';
import type { Static } from 'typebox';
import {
  Collection,
  IntegerId,
  IpNetwork,
  Name,
  Nullable,
  Paging,
  ShortText,
  SizeGib,
  Uuid,
} from '../../http/shapes.ts';
import { selectBranch } from '../../http/validation.ts';
import { CreateTags, Tag, UpdateTags } from '../../tags/tags.ts';

export const FileSharePath = Type.Object({ project_id: IntegerId, region_id: IntegerId, file_share_id: Uuid });
export const AccessRulePath = Type.Object({ ...FileSharePath.properties, access_rule_id: Uuid });

export const FileShareTypeName = Type.Enum(['standard', 'vast']);
export type FileShareTypeName = Static<typeof FileShareTypeName>;

/** The deprecated names of the types. */
export const volumeTypes = { standard: 'default_share_type', vast: 'vast_share_type' } as const;

export const fileShareStatuses = [
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

const ShareSettingsInput = Type.Object(
  {
    allowed_characters: Type.Optional(NameLimit),
    path_length: Type.Optional(NameLimit),
    root_squash: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false, description: 'allowed_characters and path_length are for vast shares only' },
);
export type ShareSettingsInput = Static<typeof ShareSettingsInput>;

export const CreateAccessRule = Type.Object(
  { access_mode: Type.Enum(['ro', 'rw']), ip_address: IpNetwork },
  { additionalProperties: false },
);
export type CreateAccessRule = Static<typeof CreateAccessRule>;

const FileShareNetwork = Type.Object(
  { network_id: Uuid, subnet_id: Type.Optional(Uuid) },
  { additionalProperties: false },
);

const common = {
  name: Name,
  protocol: Type.Literal('NFS'),
  size: SizeGib,
  tags: Type.Optional(CreateTags),
  /** The Terraform provider writes tags under this name. */
  metadata: Type.Optional(CreateTags),
  share_settings: Type.Optional(ShareSettingsInput),
};

const maxAccessRules = 100;

const CreateStandardFileShare = Type.Object(
  {
    ...common,
    network: FileShareNetwork,
    access: Type.Optional(Type.Array(CreateAccessRule, { maxItems: maxAccessRules })),
    type_name: Type.Optional(Type.Literal('standard')),
    volume_type: Type.Optional(Type.Literal('default_share_type', { deprecated: true })),
  },
  { additionalProperties: false },
);

const CreateVastFileShare = Type.Object(
  {
    ...common,
    type_name: Type.Optional(Type.Literal('vast')),
    volume_type: Type.Optional(Type.Literal('vast_share_type', { deprecated: true })),
  },
  { additionalProperties: false },
);

export const CreateFileShare = selectBranch(
  Type.Union([CreateStandardFileShare, CreateVastFileShare]),
  // An unknown type is checked as a standard one, whose schema then names the field.
  (body) =>
    body.type_name === 'vast' || (body.type_name === undefined && body.volume_type === 'vast_share_type') ? 1 : 0,
);
export type CreateFileShare = Static<typeof CreateFileShare>;

export const UpdateFileShare = Type.Object(
  { name: Type.Optional(Name), share_settings: Type.Optional(ShareSettingsInput), tags: Type.Optional(UpdateTags) },
  { additionalProperties: false },
);
export type UpdateFileShare = Static<typeof UpdateFileShare>;

export const ExtendFileShare = Type.Object({ size: SizeGib }, { additionalProperties: false });

export const ListFileShares = Type.Object({
  ...Paging(1000),
  name: Type.Optional(ShortText),
  type_name: Type.Optional(FileShareTypeName),
});
export type ListFileShares = Static<typeof ListFileShares>;

export const ListAccessRules = Type.Object(Paging(1000));
export type ListAccessRules = Static<typeof ListAccessRules>;

export const FileShare = Type.Object({
  id: Uuid,
  name: Type.String(),
  connection_point: Nullable(Type.String()),
  created_at: Type.String(),
  creator_task_id: Uuid,
  network: Type.Object({
    network_id: Uuid,
    network_name: Type.String(),
    subnet_id: Uuid,
    subnet_name: Type.String(),
  }),
  network_id: Uuid,
  network_name: Type.String(),
  subnet_id: Uuid,
  subnet_name: Type.String(),
  share_network_name: Nullable(Type.String()),
  project_id: Type.Integer(),
  region: Type.String(),
  region_id: Type.Integer(),
  protocol: Type.String(),
  share_settings: Type.Object({
    type_name: FileShareTypeName,
    root_squash: Type.Optional(
      Type.Boolean({
        description: 'of standard shares only when on: the Terraform provider takes it for a change otherwise',
      }),
    ),
    allowed_characters: Type.Optional(Nullable(NameLimit)),
    path_length: Type.Optional(Nullable(NameLimit)),
    /** The SDKs require it of vast shares. */
    trash_access: Type.Optional(Type.Boolean({ description: 'of vast shares; always false' })),
  }),
  size: SizeGib,
  status: Type.Enum([...fileShareStatuses]),
  tags: Type.Array(Tag),
  task_id: Nullable(Uuid),
  type_name: FileShareTypeName,
  volume_type: Type.Enum(Object.values(volumeTypes), { deprecated: true }),
});
export type FileShare = Static<typeof FileShare>;
export const FileShareCollection = Collection(FileShare);
export type FileShareCollection = Static<typeof FileShareCollection>;

export const accessRuleStates = [
  'active',
  'applying',
  'denying',
  'error',
  'new',
  'queued_to_apply',
  'queued_to_deny',
] as const;
export type AccessRuleState = (typeof accessRuleStates)[number];

export const AccessRule = Type.Object({
  id: Uuid,
  access_level: Type.Enum(['ro', 'rw']),
  access_to: Type.String(),
  state: Type.Enum([...accessRuleStates]),
});
export type AccessRule = Static<typeof AccessRule>;
export const AccessRuleCollection = Collection(AccessRule);
export type AccessRuleCollection = Static<typeof AccessRuleCollection>;

/** Only what would be exceeded; empty when all fits. */
export const FileShareRequiredQuota = Type.Object({
  sfs_count_limit: Type.Optional(Type.Integer()),
  sfs_count_requested: Type.Optional(Type.Integer()),
  sfs_count_usage: Type.Optional(Type.Integer()),
  sfs_size_limit: Type.Optional(Type.Integer()),
  sfs_size_requested: Type.Optional(Type.Integer()),
  sfs_size_usage: Type.Optional(Type.Integer()),
});
export type FileShareRequiredQuota = Static<typeof FileShareRequiredQuota>;
