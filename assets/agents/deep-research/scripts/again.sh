#!/usr/bin/env bash
# again: goes back to plan, which reads the criticism in feedback.

echo '{"_next": "plan"}'
