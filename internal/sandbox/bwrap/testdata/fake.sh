#!/bin/sh
# A bubblewrap that only says its version and why it cannot set up a sandbox.
if [ "$1" = --version ]; then
	echo "bubblewrap VERSION"
	exit 0
fi
echo "bwrap: MESSAGE" >&2
exit 1
