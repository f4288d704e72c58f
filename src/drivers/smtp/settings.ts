/** Checks the settings of the mail server; pure. */
const sender = /^([^\s<>@,;"]+@[\w.-]+|[^<>\r\n]*<[^\s<>@,;"]+@[\w.-]+>)$/;

/** The errors in the settings. No message contains a value, because the URL contains a password. */
export function mailErrors(url: string | undefined, from: string | undefined): string[] {
  const errors: string[] = [];
  if (url !== undefined && !(URL.canParse(url) && /^smtps?:\/\/[^/?#]/.test(url))) {
    errors.push('CLOUDYARD_SMTP_URL must be a URL such as smtp://user:password@mail.example.com:587 or smtps://…');
  }
  if (url !== undefined && from === undefined) {
    errors.push('CLOUDYARD_SMTP_FROM is required when CLOUDYARD_SMTP_URL is set');
  }
  if (from !== undefined && !sender.test(from)) {
    errors.push('CLOUDYARD_SMTP_FROM must be an address such as alerts@example.com or Cloudyard <alerts@example.com>');
  }
  return errors;
}

export interface Sender {
  /** Empty without one. */
  name: string;
  address: string;
}

/** The parts of a sender that `mailErrors` has checked. A name may have a comma, with or without quotes; in quotes `\` escapes. */
export function senderOf(from: string): Sender {
  const [, name = '', address = from] = /^(.*)<(.*)>$/.exec(from) ?? [];
  const [, quoted] = /^"(.*)"$/.exec(name.trim()) ?? [];
  return { name: quoted?.replace(/\\(.)/g, '$1') ?? name.trim(), address };
}
