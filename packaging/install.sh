#!/bin/sh
# Installs a release of commq for one user; usage says how.
set -eu
releases=https://github.com/commq/commq/releases
version= prefix=${HOME:+$HOME/.local} from=

fail() {
	echo "install.sh: $*" >&2
	exit 2
}
usage() {
	cat <<-'END'
		Installs a release of commq for one user: no root, Go or compiler is needed.

		    sh install.sh [--version VERSION] [--prefix FOLDER] [--from PLACE]

		VERSION   for example 0.1.0 (default: the newest)
		FOLDER    gets bin/commq, manual pages and completion (default: ~/.local)
		PLACE     an address or a folder with the release's files (default: the project's releases). A compute
		          node without a network takes a folder.

		The archive must have the checksum in SHA256SUMS; else nothing is installed. Exit status 2: it could not be.
	END
}

while [ $# -gt 0 ]; do
	case $1 in
	-h | --help)
		usage
		exit
		;;
	--version | --prefix | --from)
		[ -n "${2:-}" ] || fail "$1 needs a value"
		eval "${1#--}=\$2"
		shift 2
		;;
	*) fail "unknown argument $1 (--help lists what there is)" ;;
	esac
done
version=${version#v}

case $(uname -s)-$(uname -m) in
Linux-x86_64) arch=amd64 ;;
Linux-aarch64 | Linux-arm64) arch=arm64 ;;
*) fail "there is no release for $(uname -s) on $(uname -m): build commq with Go (docs/how-to/install.md)" ;;
esac
glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed 's/^glibc //') || glibc=
case $glibc in
'') fail "this system's C library is not glibc: commq needs glibc 2.28 or newer" ;;
1.* | 2.[0-9] | 2.1[0-9] | 2.2[0-7]) fail "glibc $glibc is too old: commq needs 2.28 or newer" ;;
esac
if [ -z "$from" ]; then
	from=$releases/latest/download
	[ -z "$version" ] || from=$releases/download/v$version
fi

get() { # get FILE: puts a file of the release into the present folder
	case $from in
	http://* | https://*)
		if command -v curl >/dev/null; then
			curl -fsSL --retry 3 -o "$1" "$from/$1"
		elif command -v wget >/dev/null; then
			wget -q -O "$1" "$from/$1"
		else
			fail "neither curl nor wget is here: download the release elsewhere and name its folder with --from"
		fi
		;;
	*) cp "$folder/$1" "$1" ;;
	esac || fail "$from has no $1"
}

for tool in tar xz sha256sum; do
	command -v $tool >/dev/null || fail "$tool is not here, which unpacks and checks the archive: install it, or take the .deb or .rpm"
done
[ -n "$prefix" ] || fail "\$HOME is not set: choose a folder with --prefix"
folder=$from
case $from in
http://* | https://*) ;;
*) folder=$(cd "$from" 2>/dev/null && pwd) || fail "$from is neither a folder nor an address (http://, https://)" ;;
esac
mkdir -p "$prefix" 2>/dev/null && [ -w "$prefix" ] || fail "cannot write to $prefix: choose another folder with --prefix"
prefix=$(cd "$prefix" && pwd)
work=$(mktemp -d -p "$prefix") || fail "cannot write to $prefix: choose another folder with --prefix" # beside the target, so that the program is replaced at once
trap 'rm -rf "$work"' EXIT
trap 'exit 2' HUP INT TERM
cd "$work"

get SHA256SUMS
archive=$(sed -n "s/^[0-9a-f]\{64\} [ *]\(commq-.*-linux-$arch\.tar\.xz\)\$/\1/p" SHA256SUMS)
[ -z "$version" ] || archive=$(echo "$archive" | grep -Fx "commq-$version-linux-$arch.tar.xz") ||
	fail "$from has no commq $version for $arch: its SHA256SUMS does not list it"
[ "$(echo "$archive" | grep -c .)" = 1 ] || fail "SHA256SUMS of $from lists no archive for $arch, or several: choose one with --version"
get "$archive"
want=$(grep -F "$archive" SHA256SUMS | cut -c 1-64)
[ "$(sha256sum "$archive" | cut -c 1-64)" = "$want" ] ||
	fail "$archive has another checksum than SHA256SUMS says: it was damaged or changed on its way; try again"
tar -xJf "$archive" || fail "$archive does not unpack"
tree=${archive%.tar.xz}
found=$("$tree/bin/commq" --version) || fail "the program does not start on this machine (may programs in $prefix be executed?)"
{ mkdir -p "$prefix/share" && cp -R "$tree/share/." "$prefix/share/"; } || fail "cannot write to $prefix/share"
{ mkdir -p "$prefix/bin" && mv -f "$tree/bin/commq" "$prefix/bin/commq"; } || fail "cannot write to $prefix/bin"
modules=share/modulefiles/commq # each loads whatever program is in bin: those of older versions go
for module in "$prefix/$modules"/[0-9]*.[0-9]*.[0-9]*.lua; do
	case ${module##*/} in *[!0-9.]*.lua) continue ;; esac # a site's own, such as 1.2.3-gcc.lua
	[ -e "$tree/$modules/${module##*/}" ] || rm -f "$module" || fail "cannot remove $module, which is of another version"
done
echo "$found is in $prefix/bin"
case :$PATH: in
*:"$prefix/bin":*) ;;
*) echo "Put it on your path:  export PATH=$prefix/bin:\$PATH" ;;
esac
case ${SHELL:-} in
*/zsh) echo "For completion, before compinit in ~/.zshrc:  fpath=($prefix/share/zsh/site-functions \$fpath)" ;;
esac
echo "Next:  commq doctor"
