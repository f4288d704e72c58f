/**
 * A file that cannot be read or is invalid. The message has a line for each error. Here without the parser and the checks of
 * yaml-file.ts, so that a command that reads no file does not load them.
 */
export class ConfigurationFileError extends Error {}
