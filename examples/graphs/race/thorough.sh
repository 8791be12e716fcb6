#!/usr/bin/env bash
sleep 60
echo '{"text": "a thorough answer"}'
