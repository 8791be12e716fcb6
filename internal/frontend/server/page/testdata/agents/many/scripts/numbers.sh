#!/bin/sh
printf '{"numbers": [1'
i=2
while [ $i -le 5100 ]; do printf ',%d' $i; i=$((i + 1)); done
printf ']}\n'
