package direct

// wrapper runs one command so that folder and exports live on: it takes the files
// that keep the exports and the folder, and the command. A command that is killed
// leaves the files whole.
const wrapper = `exports=%q
folder=%q
if [ -r "$exports" ]; then . "$exports"; fi
trap 'status=$?
pwd > "$folder.new" && mv "$folder.new" "$folder"
export -p > "$exports.new" && mv "$exports.new" "$exports"
exit $status' EXIT
%s
`

// pipScript stands for pip: it copies a package out of the index.
const pipScript = `#!/usr/bin/env bash
set -eu
[ "$1" = install ] || { echo "pip: install only" >&2; exit 2; }
shift
if [ "$1" = -r ]; then
  set -- $(sed 's/#.*//' "$2")
fi
for spec in "$@"; do
  name=${spec%%==*}
  version='*'
  [ "$name" = "$spec" ] || version=${spec##*==}
  found=$(ls -d "$DIRECT_INDEX"/pip/$name-$version | sort -V | tail -1)
  cp -r "$found"/. "$DIRECT_BASE/env/"
done
`

// npmScript stands for npm.
const npmScript = `#!/usr/bin/env bash
set -eu
[ "$1" = install ] || { echo "npm: install only" >&2; exit 2; }
shift
for name in "$@"; do
  found=$(ls -d "$DIRECT_INDEX"/npm/$name-* | sort -V | tail -1)
  cp -r "$found" "$DIRECT_BASE/node_modules/$name"
done
`
