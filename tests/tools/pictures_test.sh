#!/usr/bin/env bash
# The pictures of docs/ are of the pages as they are: nothing that they were made from has changed since.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
list=docs/pictures.sha256

fail() {
  echo "pictures_test: $1" >&2
  exit 1
}

sha256sum --check --quiet "$list" || fail "docs' pictures were made from other files: run ./dev pictures"

# And a change of a page's style would be seen.
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tar -cf - -T <(cut -c67- "$list") | tar -xf - -C "$copy"
echo "body { color: red; }" >>"$copy/pages/page.css"
! (cd "$copy" && sha256sum --check --quiet - >/dev/null 2>&1) <"$list" || fail "a changed page.css was not seen"
