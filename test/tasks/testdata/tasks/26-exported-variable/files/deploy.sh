#!/usr/bin/env bash
set -eu
: "${REGION:?is not set}" "${STAGE:?is not set}"
{
  echo "region: $STAGE"
  echo "stage: $STAGE"
} > deploy.txt
echo "written"
