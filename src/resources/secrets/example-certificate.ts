/** The example of a request. Its key is public, so it protects nothing. */

/** For www.example.com, valid from 2020 to 2120, signed by its own key. */
export const exampleCertificate = [
  '-----BEGIN CERTIFICATE-----',
  'MIIBYzCCAQigAwIBAgIBATAKBggqhkjOPQQDAjAaMRgwFgYDVQQDDA93d3cuZXhh',
  'bXBsZS5jb20wIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBoxGDAW',
  'BgNVBAMMD3d3dy5leGFtcGxlLmNvbTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IA',
  'BJ2i1bypnse6gToUQGD+84X/X1tzztl3HzWVeRAuGBqM+JmU4Qn1jVqVRJLT0pBE',
  'DOXITZkzxRwiysAbw35iIeWjPTA7MBoGA1UdEQQTMBGCD3d3dy5leGFtcGxlLmNv',
  'bTAdBgNVHQ4EFgQUKST6NHoTdI3ckUaoMUsitk+WY3swCgYIKoZIzj0EAwIDSQAw',
  'RgIhAKsNsUbQNiK8ZeF5X9G2JvuRO25Te4JX7jR66EYzAuvQAiEAmzBKOuN8wtUV',
  'zmp+KW2lUIHtFAewes9KOatwMGZNkw0=',
  '-----END CERTIFICATE-----',
].join('\n');

export const examplePrivateKey = [
  '-----BEGIN PRIVATE KEY-----',
  'MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgmlJeDke0sUZEMAg6',
  'r5rv5K5vD9dHaNa2LiC9fy05ee2hRANCAASdotW8qZ7HuoE6FEBg/vOF/19bc87Z',
  'dx81lXkQLhgajPiZlOEJ9Y1alUSS09KQRAzlyE2ZM8UcIsrAG8N+YiHl',
  '-----END PRIVATE KEY-----',
].join('\n');
