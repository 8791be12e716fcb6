#!/bin/sh
# deb.sh PACKAGE installs a package for Debian, runs what is in it, removes it and shows what is left.
set -eu
package=$1
command -v dpkg >/dev/null || { echo "skipped: dpkg is not installed"; exit 0; }
[ "$(id -u)" -eq 0 ] || { echo "skipped: only root installs packages"; exit 0; }
if dpkg -s loki >/dev/null 2>&1; then
	echo "skipped: a package loki is installed here"
	exit 0
fi
home=$(mktemp -d)
trap 'rm -rf "$home"; dpkg --purge loki >/dev/null 2>&1' EXIT

dpkg -i "$package"
files=$(dpkg -L loki | while read -r f; do [ -d "$f" ] || echo "$f"; done)
for f in $files; do
	[ -s "$f" ] || { echo "$f is missing or empty"; exit 1; }
done
for want in /usr/bin/loki /usr/share/man/man1/loki.1.gz /usr/share/bash-completion/completions/loki; do
	echo "$files" | grep -qx "$want" || { echo "the package has no $want"; exit 1; }
done
said=$(env -i HOME="$home" PATH=/usr/bin:/bin loki -m builtin:echo "from a package" </dev/null)
[ "$said" = "from a package" ] || { echo "loki printed: $said"; exit 1; }
if env -i HOME="$home" PATH=/usr/bin:/bin LOKI_RELEASE_FEED=https://localhost:1 LOKI_RELEASE_KEY=RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3 loki --update </dev/null; then
	echo "the program replaced the file of a package"
	exit 1
fi

dpkg -r loki
for f in $files; do
	[ ! -e "$f" ] || { echo "$f is left behind"; exit 1; }
done
echo "left in the home of the user:"
(cd "$home" && find . -type f)
