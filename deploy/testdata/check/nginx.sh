#!/bin/sh
# Has nginx check nginx.conf, with a certificate made for it and an address in the place of the name "loki".
set -e
cd "$(dirname "$0")/../.."
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=loki -keyout "$dir/tls.key" -out "$dir/tls.crt" 2>/dev/null
sed "s#loki:3400#127.0.0.1:3400#; s#/etc/nginx/certs#$dir#" nginx.conf >"$dir/nginx.conf"
nginx -t -c "$dir/nginx.conf"
