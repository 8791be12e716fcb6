#!/usr/bin/env bash
# Goes back to the node `draft`. _next is the one member of a script's output that does
# not go into the state, but says which node comes next.

echo '{"_next": "draft"}'
