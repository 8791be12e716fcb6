#!/usr/bin/env bash
echo '{"topic": "The novel"}'
