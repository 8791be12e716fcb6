#!/bin/sh
printf '{"changes": "parser: names are checked\\nserver: keys are kept as hashes\\ncli: --runs is faster", "count": 3, "authors": ["ada", "grace"]}\n'
