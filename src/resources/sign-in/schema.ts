/** Requests and responses of sign-in. */
import { type Static, Type } from 'typebox';
import { DateTime, Described, Nullable, OrNull } from '../../http/shapes.ts';

export const SignInMethods = Type.Object(
  {
    oidc: Type.Boolean({ description: 'Whether people can sign in with an OpenID Connect provider' }),
    issuer: OrNull.text('URL of the provider'),
  },
  { title: 'SignInMethods' },
);

/** The provider decides what it sends. */
export const Callback = Type.Object({}, { additionalProperties: true });

export const DeviceSignIn = Type.Object(
  {
    device: Type.String({ description: 'Send it to `POST /cloudyard/v1/sign_in/device/token`' }),
    user_code: Type.String({ description: 'The code that the person confirms' }),
    verification_uri: Type.String({ description: 'The page of the provider where the person confirms it' }),
    verification_uri_complete: OrNull.text('The same with the code, for a QR code or a link'),
    expires_in: Type.Integer({ description: 'Seconds until the code expires' }),
    interval: Type.Integer({ description: 'Seconds between two requests for the token' }),
  },
  { title: 'DeviceSignIn' },
);
export type DeviceSignIn = Static<typeof DeviceSignIn>;

export const FinishDeviceSignIn = Type.Object(
  { device: Type.String({ minLength: 1, maxLength: 4000, description: '`device` of the sign-in that was started' }) },
  { title: 'FinishDeviceSignIn', additionalProperties: false, examples: [{ device: 'AWtleS0…' }] },
);

export const DeviceToken = Type.Object(
  {
    status: Type.Enum(['pending', 'complete'], { description: '`pending` until the person has confirmed' }),
    token: OrNull.text('The token `<id>$<secret>`; only this response contains it'),
    expires_at: Described(Nullable(DateTime), 'When the token expires'),
  },
  { title: 'DeviceToken' },
);
