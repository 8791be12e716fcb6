#!/bin/sh
printf '{"numbers": [1'
i=2
while [ $i -le 3400 ]; do printf ',%d' $i; i=$((i + 1)); done
printf ']}\n'
