#!/usr/bin/env bash
# Copies the text files of a folder into backup/ and prints how many.
set -eu

source=$1
mkdir -p backup
count=0
for file in $(ls $source/*.txt); do
  cp $file backup/
  count=$((count + 1))
done
echo "$count files"
