#!/usr/bin/env bash
echo '{"cities": [{"name": "Rome", "river": "Tiber"}, {"name": "Paris", "river": "Seine"}, {"name": "Cairo", "river": "Nile"}]}'
