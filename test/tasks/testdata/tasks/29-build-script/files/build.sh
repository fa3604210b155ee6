#!/usr/bin/env bash
# Joins the modules of src/ into bundle.js, in the order of order.txt.
set -u

: > bundle.js
while read -r name; do
  cat "src/$name.js" >> bundle.js
done < order.txt
echo "built"
