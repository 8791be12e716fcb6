#!/usr/bin/env bash
# replan: goes back to the plan, which reads the user's wish in feedback.

echo '{"_next": "plan"}'
