#!/bin/sh
# Settings of the services also apply to the commands of an administrator, also while the data directory is moved away.
settings=/etc/cloudyard/cloudyard.env
if [ -r "$settings" ] && { [ -w /var/lib/cloudyard/api ] || [ "$(id -u)" = 0 ]; }; then
  : "${CLOUDYARD_DATA_DIR:=/var/lib/cloudyard/api}"
  export CLOUDYARD_DATA_DIR
  exec /usr/lib/cloudyard/bin/node --env-file="$settings" /usr/lib/cloudyard/bin/cloudyard.mjs "$@"
fi
exec /usr/lib/cloudyard/bin/node /usr/lib/cloudyard/bin/cloudyard.mjs "$@"
