#!/usr/bin/env bash
# A service that takes an idempotency key does a thing once for each key:
#   curl -H "Idempotency-Key: $LOKI_IDEMPOTENCY_KEY" ...
case $LOKI_IDEMPOTENCY_KEY in
"$LOKI_RUN_ID"/*) echo '{"sent": true}' ;;
*) exit 1 ;;
esac
