"""Hooks of schemathesis: the formats of Cloudyard, and the rejections of valid data that a schema cannot express."""

import json
import os
import re
from datetime import datetime

import schemathesis
from hypothesis import strategies as st

MIN_DATE, MAX_DATE = datetime(1970, 1, 1), datetime(2100, 1, 1)
octet = st.integers(0, 255)
ipv4 = st.builds("10.{}.{}.{}".format, octet, octet, octet)
ipv6 = st.builds("fd00::{:x}:{:x}".format, st.integers(1, 65535), st.integers(1, 65535))
schemathesis.openapi.format("ip-address", ipv4 | ipv6)
schemathesis.openapi.format("iso-date-time", st.datetimes(MIN_DATE, MAX_DATE).map("{:%Y-%m-%dT%H:%M:%SZ}".format))
cidr = st.builds("10.{}.{}.0/24".format, octet, octet) | st.builds("fd00:{:x}::/64".format, st.integers(1, 65535))
schemathesis.openapi.format("ip-cidr", cidr)
schemathesis.openapi.format("ip-network", ipv4 | ipv6 | cidr)

# IDs of the token of the run, and of no token.
OWN_TOKEN = os.environ["TEST_FUZZ_TOKEN_ID"]
UNKNOWN_TOKEN = 2147483647
# The largest limit of a quota in a message. A JSON number has 53 bits, so the next integers are the same number.
LARGEST_LIMIT = 9223372036854776000
# In a long run. A short one prints them only.
FAILS_IF_UNEXPLAINED = "TEST_FUZZ_SECONDS" in os.environ


@schemathesis.hook
def before_call(context, case, kwargs):
    """Keeps the run from revoking its own token."""
    if case.method == "DELETE" and str((case.path_parameters or {}).get("token_id")) == OWN_TOKEN:
        case.path_parameters["token_id"] = UNKNOWN_TOKEN


# Rejections (400) of data that its schema allows. They depend on other fields, on other resources, on the region or on the
# time, or on a grammar beyond regular expressions. If a schema can express a new rule, it belongs into the schema.
EXPLAINED = [
    re.compile(pattern)
    for pattern in [
        # All texts; the schemas do not repeat it.
        r"^must not contain NUL characters or unpaired surrogates$",
        # Texts that are too long for a pattern in a schema, and schedules without an instant or with one that no date can show.
        r"^must not contain (control characters|credentials)",
        r"^never fires",
        r"^must end before the year ",
        # Parts of the official API that no region has.
        r"^is not supported(; the region assigns the address)?$",
        r"^must be ipv4(, because the region has no IPv6 range)?$",
        # Other resources, the region, the services that it has, and usage.
        r"not found",
        r" has no subnet; create one",
        r"^the region offers ",
        r"(images|instances) are not supported(, so there is nothing to (at|de)tach a volume (to|from))?$",
        r"does not contain a certificate",
        r"^must be .* behind .* listeners$",
        r"^must be (at least the current usage|greater than the current size)",
        r"^must equal the current size \(",
        r"^must be the client of the token \(",
        r"^is in the past$",
        # Several fields together, and fields with two spellings.
        r"^is (only |not )?supported (for|behind|with|by) ",
        r"^is required( (for|with|without) \w+)?$",
        r"[Aa]t least one of ",
        r"send (exactly|only) one( of .*)?$",
        r"^must request at least one limit$",
        r"^is the same (network )?as ",
        r"^must be less than ",
        r"^(conflicts with|duplicates|repeats|requires|has the same address and port as|is listed twice)\b",
        r"^(UDP-CONNECT|HTTP_COOKIE|APP_COOKIE) requires an? ",
        r"^must be [A-Z-]+ or [A-Z-]+ for an? \w+ pool, not ",
        r"^must be [46]: \S+ is an IPv[46] network$",
        r"^is a (regional|global) quota; ",
        r", like the subnet('s)?$",
        r"^must be an? (host )?address of ",
        # Grammars of schedules, URLs, names of snapshots, addresses, certificates, tags and statuses.
        r"is (invalid|not a (month|weekday)); (write|use) ",
        r" is not a zone of the IANA database",
        r"^(\{.*\} is not a placeholder|has a brace outside a placeholder); use ",
        r"is less than \d+, the minimum$",
        r"^must be a JSON object of strings such as ",
        r"^must be an absolute http or https URL ",
        r"^must be HTTP statuses and ranges of them",
        r"^must have a prefix from /",
        r"^must be a crypt\(3\) hash",
        r"^is neither PEM, nor ",
        r"^is empty$",
        r"^must be an instant from 1970 to ",
        r"^is not base64$",
        r"^is invalid PEM",
        r" cannot be parsed$",
        r"^contains no (certificate|private key)",
    ]
]


# Path parameters that schemathesis.toml fixes, so that an invalid value is not sent.
FIXED = re.compile(r"parameter `(project_id|region_id|client_id)` in path")


def value_at(body, path):
    """The value of a field, such as `users.0.name`; None if the path leads to none."""
    for part in path.split("."):
        try:
            body = body[int(part)] if isinstance(body, list) else body[part]
        except (KeyError, IndexError, ValueError, TypeError):
            return None
    return body


def is_rounded(body):
    """Whether a body contains an integer that is too large, and that JSON does not distinguish from the largest limit."""
    if isinstance(body, (dict, list)):
        return any(is_rounded(part) for part in (body.values() if isinstance(body, dict) else body))
    return isinstance(body, int) and body > LARGEST_LIMIT and float(body) == float(LARGEST_LIMIT)


# Of src/http/patterns.ts.
RULE_OF_PATTERN = re.compile(r"must (match pattern|be (\d+ to \d+ |text |a |the |printable |`sha256))")


def is_explained(message, value):
    # In Python, whose expressions generate the data, `$` also matches before a newline at the end.
    if RULE_OF_PATTERN.match(message) and str(value).endswith("\n"):
        return True
    # In a query, 1e-5 is not taken for a number.
    if message == "must be a number" and isinstance(value, float):
        return "e" in str(value)
    return any(rule.search(message) for rule in EXPLAINED)


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Drops a rejection of valid data if every error is explained, and an accepted invalid value that was not sent
    or that the server cannot distinguish from a valid one."""
    name = type(failure).__name__
    if name == "AcceptedNegativeData":
        is_too_large = failure.message.endswith("Value greater than maximum")
        return not FIXED.search(failure.message) and not (is_too_large and is_rounded(case.body))
    if name != "RejectedPositiveData" or response.status_code != 400:
        return True
    errors = json.loads(response.content).get("errors", [])
    unexplained = 0
    for path, message in ((error["path"], error["message"]) for error in errors):
        value = value_at(case.body, path)
        if value is None:
            value = (case.query or {}).get(path)
        if not is_explained(message, value):
            unexplained += 1
            print(f"not explained: {case.method} {case.path}: {re.sub(r'[0-9]+', 'N', path)}: {message[:200]}: {repr(value)[-60:]}")
    return not errors or (unexplained > 0 and FAILS_IF_UNEXPLAINED)
