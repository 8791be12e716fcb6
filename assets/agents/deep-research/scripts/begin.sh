#!/usr/bin/env bash
# begin: notes today's date.

echo "{\"today\": \"$(date +%Y-%m-%d)\"}"
