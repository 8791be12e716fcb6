#!/bin/sh
echo 'pages.idx: no such file' >&2
exit 1
