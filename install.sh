#!/bin/sh
# Installs Loki below PREFIX, ~/.local unless it is set, without root:
#
#   install.sh [VERSION]      downloads a release, the newest one without VERSION
#   install.sh --from DIR     takes the files from DIR, an unpacked release or what make install builds
#   install.sh --uninstall    removes what it has installed
#
# LOKI_RELEASE_FEED and LOKI_RELEASE_KEY name other releases than those of the publisher of this
# file; DESTDIR is put in front of PREFIX. docs/install.md describes what is verified.
set -eu

feed=${LOKI_RELEASE_FEED:-} # a release sets both defaults
keys=${LOKI_RELEASE_KEY:-}
prefix=${PREFIX:-${HOME:?set HOME or PREFIX}/.local}
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
root=${DESTDIR:-}$prefix
tag=
verified=

# say prints a line, in which nothing that came from elsewhere moves the cursor.
say() { printf '%s\n' "$*" | tr -d '\000-\010\013-\037\177' >&2; }

# fail WHAT [HINT] ends with an error. The trap on EXIT removes what is unfinished.
fail() {
	say "install.sh: $1"
	[ $# -lt 2 ] || say "  $2"
	exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# files prints a line for each file that is installed: its name in a release, its path below PREFIX, its mode.
# The program is the last one: it is replaced when everything else is there.
files() {
	cat <<-'END'
		loki.1.gz share/man/man1/loki.1.gz 644
		completions/loki.bash share/bash-completion/completions/loki 644
		completions/loki.zsh share/zsh/site-functions/_loki 644
		completions/loki.fish share/fish/vendor_completions.d/loki.fish 644
		loki bin/loki 755
	END
}

tmp=
cleanup() {
	files | while read -r _ path _; do rm -f "$root/$path.new.$$"; done
	[ -z "$tmp" ] || rm -rf "$tmp"
}

# fetch URL FILE downloads a file. If that fails, said is what the downloader says.
fetch() {
	have curl || have wget || fail "neither curl nor wget is installed" "Install one of them, or build Loki from its sources: make install"
	protocols="=http,https"
	case $1 in https:*) protocols="=https" ;; esac # also after redirections
	if have curl; then
		curl -fsSL --proto "$protocols" --connect-timeout 30 --speed-limit 1 --speed-time 30 --max-filesize 300000000 -o "$2" "$1"
	else
		wget -nv -t 2 -T 30 -O "$2" "$1"
	fi 2>"$tmp/said" && return
	said=$(tail -n 1 "$tmp/said")
	return 1
}

# download NAME downloads a file of the release to $tmp.
download() {
	from=$(address "$1")
	fetch "$from" "$tmp/$1" || fail "cannot download $from: $said" "Nothing was installed. Check the network, the proxy and LOKI_RELEASE_FEED."
}

# secure URL fails unless the address is encrypted or of this computer.
secure() {
	case $1 in
	https://?*) ;;
	http://*@*) fail "$1 is not encrypted" "What is before @ is not the name of the server." ;;
	http://127.0.0.1[:/]* | http://localhost[:/]* | "http://[::1]"[:/]*)
		case $feed in https:*) fail "$1 is not encrypted" ;; esac ;;
	*) fail "$1 is not encrypted" "LOKI_RELEASE_FEED must begin with https://" ;;
	esac
}

# pairs prints the description of the release with each of its names and values on a line.
pairs() { tr '{},' '[\n*]' <"$tmp/release"; }

# address NAME prints where a file of the release is, as the feed has it.
address() {
	at=$(pairs | awk -v want="$1" '
		function value(line) { sub(/^[^:]*:[ \t]*"/, "", line); sub(/"[^"]*$/, "", line); return line }
		/^[ \t]*"name"[ \t]*:/ { name = value($0) }
		/^[ \t]*"browser_download_url"[ \t]*:/ { if (name == want) { print value($0); exit } }')
	case $at in
	'') at=$feed/download/$tag/$1 ;;
	*://*) ;;
	/*) at=$(printf '%s\n' "$feed" | sed 's|^\([^:]*://[^/]*\).*|\1|')$at ;;
	*) at=$feed/$at ;;
	esac
	secure "$at"
	printf '%s\n' "$at"
}

# target prints the system as releases name it.
target() {
	case $(uname -m) in
	x86_64 | amd64) arch=x86_64 ;;
	aarch64 | arm64) arch=aarch64 ;;
	*) arch=$(uname -m) ;;
	esac
	case $(uname -s) in
	Darwin) echo "$arch-apple-darwin" ;;
	*) echo "$arch-unknown-$(uname -s | tr '[:upper:]' '[:lower:]')-musl" ;;
	esac
}

# sum FILE prints the SHA-256 sum of a file, and its name.
sum() {
	if have sha256sum; then
		sha256sum "$1"
	elif have shasum; then
		shasum -a 256 "$1"
	else
		openssl dgst -sha256 -r "$1"
	fi
}

# bytes BASE64 prints what a text encodes.
bytes() { printf '%s' "$1" | openssl base64 -d -A; }

# signed_by KEY reports whether the release's checksums are signed with a key of minisign, for this tag. Its status is 2 if
# no program here can verify that.
signed_by() {
	if have minisign; then
		minisign -V -q -P "$1" -m "$tmp/checksums.txt" >/dev/null 2>&1
		return
	fi
	have openssl && openssl dgst -blake2b512 /dev/null >/dev/null 2>&1 && openssl pkeyutl -help 2>&1 | grep -q rawin || return 2
	# A line of minisign is two letters for the algorithm, 8 bytes for the key, and the key or the signature itself. The algorithm
	# ED signs the BLAKE2b sum of the file, Ed the file. The second signature covers the first one and the trusted comment.
	bytes "$1" >"$tmp/key" || return 1
	bytes "$(sed -n 2p "$tmp/checksums.txt.minisig")" >"$tmp/signature" || return 1
	bytes "$(sed -n 4p "$tmp/checksums.txt.minisig")" >"$tmp/second" || return 1
	[ "$(wc -c <"$tmp/key")" -eq 42 ] && [ "$(wc -c <"$tmp/signature")" -eq 74 ] || return 1
	{ printf '\060\052\060\005\006\003\053\145\160\003\041\000' && tail -c 32 "$tmp/key"; } >"$tmp/key.der"
	case $(dd if="$tmp/signature" bs=2 count=1 2>/dev/null) in
	ED) openssl dgst -blake2b512 -binary "$tmp/checksums.txt" >"$tmp/signed" ;;
	Ed) cp "$tmp/checksums.txt" "$tmp/signed" ;;
	*) return 1 ;;
	esac
	tail -c 64 "$tmp/signature" >"$tmp/first"
	{ cat "$tmp/first" && printf '%s' "$comment"; } >"$tmp/commented"
	verify_with_openssl "$tmp/signed" "$tmp/first" && verify_with_openssl "$tmp/commented" "$tmp/second"
}

verify_with_openssl() {
	openssl pkeyutl -verify -pubin -keyform DER -inkey "$tmp/key.der" -rawin -in "$1" -sigfile "$2" >/dev/null 2>&1
}

# verify_signature fails if checksums.txt is not signed with one of the keys for this release.
verify_signature() {
	if [ -z "$keys" ]; then
		say "The signature was not verified: LOKI_RELEASE_KEY does not name a key. The download is only compared with the checksums of the same server."
		return
	fi
	download checksums.txt.minisig
	comment=$(sed -n '3s/^trusted comment: //p' "$tmp/checksums.txt.minisig" | tr -d '\r')
	for key in $keys; do
		if signed_by "$key"; then
			verified=yes
		elif [ $? -eq 2 ]; then
			say "The signature was not verified: that needs minisign, or openssl 3. The download is only compared with the checksums of the same server."
			return
		fi
	done
	[ -n "$verified" ] || fail "the signature of release $tag is wrong, or by another key than $keys" "Nothing was installed. Do not install this release before its publisher has explained it."
	case " $comment " in
	*" $tag "*) ;;
	*) fail "the signature is not for release $tag, but for \"$comment\"" "Nothing was installed." ;;
	esac
}

# get_release VERSION downloads and verifies a release, and unpacks it into $tmp/files.
get_release() {
	feed=${feed%/}
	[ -n "$feed" ] || fail "this copy of install.sh does not name a server of releases" "Take install.sh from a release, set LOKI_RELEASE_FEED, or build Loki from its sources: make install"
	secure "$feed"
	case ${1:-latest} in
	latest) about=$feed/latest ;;
	[0-9]*) about=$feed/tags/v$1 ;;
	*) about=$feed/tags/$1 ;;
	esac
	fetch "$about" "$tmp/release" || fail "there is no release at $about: $said" "Check the version, the network, the proxy and LOKI_RELEASE_FEED."
	tag=$(pairs | sed -n 's/^[[:space:]]*"tag_name"[[:space:]]*:[[:space:]]*"\([A-Za-z0-9][A-Za-z0-9._+-]*\)".*/\1/p' | head -n 1)
	[ -n "$tag" ] || fail "$about does not describe a release" "Check LOKI_RELEASE_FEED."
	name=loki-$(target).tar.gz
	download checksums.txt
	verify_signature
	want=$(awk -v name="$name" '{ sub(/^\*/, "", $2) } $2 == name { print tolower($1); exit }' "$tmp/checksums.txt")
	[ -n "$want" ] || fail "release $tag has no $name, which this computer needs" "Build Loki from its sources: make install"
	say "Downloading $name, release $tag"
	download "$name"
	got=$(sum "$tmp/$name") || fail "no program for SHA-256 sums is installed" "Install sha256sum, shasum or openssl."
	got=${got%% *}
	[ "$got" = "$want" ] || fail "the checksum of $name is wrong: it is $got, but the release says $want" "Nothing was installed. Try again, and report it to the publisher if it stays so."
	mkdir "$tmp/files"
	tar -xzf "$tmp/$name" -C "$tmp/files" || fail "cannot unpack $name" "Nothing was installed."
}

# place DIR installs the files in DIR that there are. Each is written beside its place and renamed, the program last,
# once it has run.
place() {
	[ -f "$1/loki" ] || fail "$1 has no program loki"
	links=$(files | while read -r name _; do [ ! -L "$1/$name" ] || printf '%s ' "$1/$name"; done)
	[ -z "$links" ] || fail "a file to install is a symbolic link: $links"
	foreign && fail "$root/bin/loki is not this program" "Choose another directory, PREFIX=DIR, or remove the file first."
	files | while read -r name path mode; do
		[ -f "$1/$name" ] || continue
		[ ! -d "$root/$path" ] && mkdir -p "$root/${path%/*}" && cp "$1/$name" "$root/$path.new.$$" && chmod "$mode" "$root/$path.new.$$" || exit 1
	done || fail "cannot write below $root" "Nothing was installed. Choose another directory: PREFIX=DIR"
	version=$("$root/bin/loki.new.$$" --version </dev/null) || fail "the program does not run on this computer" "Nothing was installed."
	case ${tag:-} in
	v[0-9]*) [ "$version" = "loki ${tag#v}" ] || fail "the program says that it is \"$version\", but the release is $tag" "Nothing was installed." ;;
	esac
	files | while read -r name path _; do
		[ ! -f "$root/$path.new.$$" ] || mv -f "$root/$path.new.$$" "$root/$path" || exit 1
	done || fail "cannot write below $root"
	say "Installed $version in $root/bin/loki${verified:+; its signature is right}."
	[ -z "${DESTDIR:-}" ] || return 0
	case :$PATH: in
	*:"$prefix/bin":*)
		first=$(command -v loki) || first=
		[ "$first" = "$prefix/bin/loki" ] || say "But $first comes first in PATH, so that is what loki starts."
		;;
	*) say "$prefix/bin is not in PATH. Add this line to the startup file of your shell: export PATH=\"$prefix/bin:\$PATH\"" ;;
	esac
}

# foreign reports whether bin/loki is there and is another program.
foreign() {
	[ -f "$root/bin/loki" ] && case $("$root/bin/loki" --version </dev/null 2>/dev/null) in "loki "[0-9]*) false ;; esac
}

uninstall() {
	foreign && fail "$root/bin/loki is not this program" "Nothing was removed."
	removed=$(files | while read -r _ path _; do
		[ ! -f "$root/$path" ] || { rm -f "$root/$path" && echo "$root/$path"; } || exit 1
	done) || fail "cannot remove what is below $root"
	[ -n "$removed" ] || fail "nothing of Loki is below $root" "Set PREFIX to where it was installed."
	say "Removed:" "$removed"
	say "Configuration, sessions and runs were kept. docs/install.md has their directories."
}

main() {
	umask 022
	trap cleanup EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	case ${1:-} in
	--from)
		[ $# -eq 2 ] || fail "--from needs a directory"
		place "$2"
		;;
	--uninstall)
		[ $# -eq 1 ] || fail "--uninstall has no arguments"
		uninstall
		;;
	-h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$0" ;;
	-*) fail "there is no option $1" "install.sh [VERSION], install.sh --from DIR, install.sh --uninstall" ;;
	*)
		tmp=$(mktemp -d) || fail "cannot make a temporary directory"
		get_release "$@"
		place "$tmp/files"
		;;
	esac
}

main "$@" # on the last line, so that a script that was cut off does nothing
