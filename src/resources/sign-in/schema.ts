/** Requests and responses of sign-in. */
import { type Static, Type } from 'typebox';
import { Body, Component, DateTime, Described, Nullable, OrNull } from '../../http/shapes.ts';

export const SignInMethods = Component('SignInMethods', {
  oidc: Type.Boolean({ description: 'Whether people can sign in with an OpenID Connect provider' }),
  issuer: OrNull.text('URL of the provider'),
});

/** The provider decides what it sends. */
export const Callback = Type.Object({}, { additionalProperties: true });

export const DeviceSignIn = Component('DeviceSignIn', {
  device: Type.String({ description: 'Send it to `POST /cloudyard/v1/sign_in/device/token`' }),
  user_code: Type.String({ description: 'The code that the person confirms' }),
  verification_uri: Type.String({ description: 'The page of the provider where the person confirms it' }),
  verification_uri_complete: OrNull.text('The same with the code, for a QR code or a link'),
  expires_in: Type.Integer({ description: 'Seconds until the code expires' }),
  interval: Type.Integer({ description: 'Seconds between two requests for the token' }),
});
export type DeviceSignIn = Static<typeof DeviceSignIn>;

export const FinishDeviceSignIn = Body('FinishDeviceSignIn', [{ device: 'AWtleS0…' }], {
  device: Type.String({ minLength: 1, maxLength: 4000, description: '`device` of the sign-in that was started' }),
});

export const DeviceToken = Component('DeviceToken', {
  status: Type.Enum(['pending', 'complete'], { description: '`pending` until the person has confirmed' }),
  token: OrNull.text('The token `<id>$<secret>`; only this response contains it'),
  expires_at: Described(Nullable(DateTime), 'When the token expires'),
});
